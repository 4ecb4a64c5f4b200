// Solutions as Python sees them: arrays by name, whether they were solved just now or lie in a file.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/solution.h"
#include "lockstep/ode/solve.h"

namespace lockstep::python {

// A problem as it was written and set up. Solves that differ in initial states and parameters alone share it.
struct Written {
  cli::ProblemFile file;
  cli::ProblemSetup setup;
  std::string command;
};

// A solution in memory with what it is a solution of, so that it can be judged (agreement.cpp), saved and
// differentiated. What Python may never ask for, it makes when asked.
struct Solved {
  std::shared_ptr<const Written> written;
  std::optional<ode::Problem> own;  // where initial states and parameters are not those of `written`
  ode::Solution solution;
  cli::WallClock::time_point began;
  ode::Summary run = {};
  bool was_watched = false;  // on a thread of its own
  std::vector<std::string> notes = {};  // of what was found on the way, where `own` is none

  const ode::Problem& problem() const { return own ? *own : written->setup.problem; }
  const ode::Options& options() const { return written->setup.options; }
  // All of it, with this problem.
  std::shared_ptr<const cli::ProblemSetup> setup() const;
  // What a file says before the solve; describe_run(run) is what it says after.
  ode::Attributes described() const;
  // All that its file would say.
  ode::Attributes attributes() const;
};

// A copy as a NumPy array of this shape.
template <class T>
nanobind::object to_numpy(std::vector<T> values, const std::vector<std::size_t>& shape);

void bind_solution(nanobind::module_& module);

}  // namespace lockstep::python
