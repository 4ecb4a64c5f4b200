// lockstep.solve(): a problem file, or its sections as text with arrays and a model beside them.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "bindings/python/given.h"
#include "bindings/python/model.h"
#include "bindings/python/solution.h"
#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::python {

// The arguments that are numbers.
struct Arguments {
  std::optional<Given> u0, parameters, t_span, save_at;
  std::optional<Given> impulses;  // as read_impulses() takes them
};
// `given` has those of them that are given; `numbers` as read_given() takes it.
Arguments read_arguments(const nanobind::dict& given, nanobind::handle numbers);

// What lockstep/_solve.py writes, read: in loops the same text comes again and again. Python's lock is held.
cli::ProblemFile parse_arguments(const std::string& text);

// As the right-hand side, with what is kept of it; none: as the file has it.
void take_model(const Net* model, cli::ProblemFile& file);

// The problem of a file, which holds what is no array, with these in their places: from then on it is the arguments'
// file. Throws Error in the words of the file.
cli::ProblemSetup set_up_arguments(cli::ProblemFile& file, Arguments arguments);

// What is to be said to people, as Python warnings `stack_level` frames above.
void warn_of(const std::vector<std::string>& notes, int stack_level);

// Whether `times` the work of this solve ends before somebody waits for an answer to Ctrl-C, even where trajectories
// make all the steps they may.
bool is_short(const ode::Problem& problem, const ode::Options& options, double times = 1);

// Such a solve is done on the calling thread: one of its own takes tens of microseconds. So is first one that may be
// short, with fewer steps allowed; where a trajectory needs more, it is done again on a thread that Ctrl-C stops.
enum class Length { is_short, may_be_short, is_long };
Length length_of(const ode::Problem& problem, const ode::Options& options);

// Into memory: `own`, or what is `written`. With progress it is watched, however short. Returns the solution and the
// exception that stopped it or None.
std::pair<Solved, nanobind::object> solve_in_memory(std::shared_ptr<const Written> written,
                                                    std::optional<ode::Problem> own, Length length,
                                                    nanobind::handle progress);

void bind_solve(nanobind::module_& module);

}  // namespace lockstep::python
