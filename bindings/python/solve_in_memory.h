// Solves into memory, of which Python gets arrays, and how long they take: a short one needs no thread of its own.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/solution.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/core/run_control.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/standstill.h"

namespace lockstep::python {

// Whether `times` the work of this solve ends before somebody waits for an answer to Ctrl-C, where trajectories make
// `steps`, or if that is not known all the steps they may.
bool is_short(const ode::Problem& problem, const ode::Options& options, double times = 1,
              std::optional<double> steps = {});

// Such a solve is done on the calling thread: one of its own takes tens of microseconds. So is first one that may be
// short, with fewer steps allowed; where a trajectory needs more, it is done again on a thread that Ctrl-C stops.
enum class Length { is_short, may_be_short, is_long };
struct Estimate {
  Length length = Length::is_long;
  std::int64_t first_steps = 0;  // of what may be short: how many it is allowed first
};
// The same of any problem of one right-hand side with as many trajectories and save points over the same span, by the
// same options.
Estimate estimate_length(const ode::Problem& problem, const ode::Options& options);
// How often it or is_short() was asked in this process, for tests of what keeps the answer. Python's lock is held.
std::size_t estimates_made();

// Into memory: `own`, or what is `written`. With progress it is watched, however short. Returns the solution and the
// exception that stopped it or None.
std::pair<Solved, nanobind::object> solve_in_memory(std::shared_ptr<const Written> written,
                                                    std::optional<ode::Problem> own, Estimate estimate,
                                                    nanobind::handle progress);

// ---- for solves into files as well

struct Run {
  ode::Summary summary;
  bool ran_out_of_steps;  // some trajectory did, whatever its guard made of that
  std::vector<ode::Excursion> excursions;
};

// This problem and these options, which may differ from those of `setup`, with its guard.
Run solve_into(const cli::ProblemSetup& setup, const ode::Problem& problem, const ode::Options& options,
               ode::SolutionSink& sink, const RunControl& control);
// What was found on the way, for people.
std::vector<std::string> notes_of(const Run& run, const ode::EndSample& ends, const cli::ProblemSetup& setup);

}  // namespace lockstep::python
