// What a result file keeps of its problem beside the numbers, so that trajectories can be solved again from the file
// alone: the equation with its net, end times, event and resets. The rest (initial states, parameters, save times,
// options) stands in the file anyway.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/agreement/certificate.h"
#include "lockstep/agreement/solved_again.h"
#include "lockstep/agreement/verdict.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/run_control.h"
#include "lockstep/ode/result_file.h"

namespace lockstep::cli {

// Adds group "problem" to a file that is being made: docs/files.md lists its members.
void store_problem(hdf5::File& file, const ProblemFile& problem_file, const ProblemSetup& setup);

// Which of the state's components the file has, by index; empty: all.
std::vector<std::size_t> stored_components(const ode::ResultFile& file);

// Why the equation that the file keeps is not the one whose digest it states, or cannot be read; empty where nothing is
// wrong, and of files that keep none.
std::string wrong_equation(const ode::ResultFile& file);

struct StoredProblem {
  ode::Problem problem;
  ode::Options options;
  std::vector<std::size_t> components;  // which of the state's the file has, by index; empty: all
};

// The problem of the given trajectories (ascending), and how they were solved. Throws Error (unsupported) where the
// file does not hold enough, or where what it holds is not the equation whose digest it states.
StoredProblem rebuild_problem(const ode::ResultFile& file, std::span<const std::size_t> trajectories);

// A certificate computed anew from the file alone. The sampled trajectories are first solved unperturbed: only a
// problem that gives the file's own bits is the one the file is about. Throws Error (unsupported) where that fails or
// the problem cannot be rebuilt, (cancelled) at the caller's request.
agreement::Certificate recompute_certificate(const ode::ResultFile& file, const agreement::CertificateOptions& which,
                                             const RunControl& control, const agreement::SolvedAgain& how = {});

// What Settings::solved_by is to return. Throws Error (unsupported) as rebuild_problem does, and where the file has
// some of the components alone: nothing can be solved from such a state on.
agreement::Settings::OwnProblem own_problem(const ode::ResultFile& file, std::size_t trajectory, Precision precision,
                                            const RunControl& control);

}  // namespace lockstep::cli
