// lockstep._lockstep: what of the Python package is C++.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bindings/python/agreement.h"
#include "bindings/python/device.h"
#include "bindings/python/equations.h"
#include "bindings/python/errors.h"
#include "bindings/python/gradients.h"
#include "bindings/python/model.h"
#include "bindings/python/solution.h"
#include "bindings/python/solve.h"
#include "bindings/python/solver.h"
#include "bindings/python/train.h"
#include "lockstep/cli/app.h"

namespace {

// The command line tool, for the wheel's program `lockstep`: arguments with the program's name first, the exit code.
int run_tool(const std::vector<std::string>& arguments) {
  std::vector<const char*> pointers;
  for (const std::string& argument : arguments) pointers.push_back(argument.c_str());
  const nanobind::gil_scoped_release others_may_run;
  return lockstep::cli::run_app(static_cast<int>(pointers.size()), pointers.data());
}

}  // namespace

NB_MODULE(_lockstep, module) {
  using namespace lockstep::python;
#ifdef NDEBUG
  nanobind::set_leak_warnings(false);  // what another library still holds when the interpreter ends is no fault of ours
#endif
  translate_errors();
  module.attr("__version__") = LOCKSTEP_VERSION;
  bind_device(module);
  bind_model(module);
  bind_equations(module);
  bind_solution(module);
  bind_solve(module);
  bind_solver(module);
  bind_gradients(module);
  bind_train(module);
  bind_agreement(module);
  module.def("run_tool", &run_tool);
}
