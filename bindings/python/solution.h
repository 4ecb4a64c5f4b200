// Solutions as Python sees them: dicts of arrays, whether they were solved just now or lie in a file.
#pragma once

#include <nanobind/nanobind.h>

#include <memory>
#include <utility>
#include <vector>

#include "lockstep/cli/problem_setup.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/solution.h"

namespace lockstep::python {

// A solution in memory with what it is a solution of, so that it can be judged (agreement.cpp).
struct Solved {
  cli::ProblemSetup setup;
  ode::Solution solution;
  ode::Attributes attributes;
  std::shared_ptr<const cli::ProblemFile> file = nullptr;      // what it was written as, and
  std::pair<ode::Attributes, ode::Attributes> described = {};  // what a file says before and after the solve

  // The names of docs/files.md; `state` and `end_state` are views of the solution, which they keep alive.
  static nanobind::dict arrays(const std::shared_ptr<const Solved>& solved);
};

// Attributes as a dict.
nanobind::dict to_dict(const ode::Attributes& attributes);

// A copy as a NumPy array of this shape.
template <class T>
nanobind::object to_numpy(std::vector<T> values, const std::vector<std::size_t>& shape);

void bind_solution(nanobind::module_& module);

}  // namespace lockstep::python
