#include "bindings/python/solver.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/arguments.h"
#include "bindings/python/given.h"
#include "bindings/python/model.h"
#include "bindings/python/solution.h"
#include "bindings/python/solve_in_memory.h"
#include "bindings/python/users_words.h"
#include "lockstep/cli/float32_range.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

// What the last call set up. The next one with numbers of the same shapes takes it and puts its own in their places; it
// is set up anew where they are not finite, which says what is wrong.
struct LastCall {
  std::shared_ptr<const Written> written;
  Estimate estimate;
  std::optional<Given> u0, parameters;  // their shapes, where they were given
};

bool same_shapes(const std::optional<Given>& a, const std::optional<Given>& b) {
  return a.has_value() == b.has_value() && (!a || a->shaped_like(*b));
}

// So few that they may stay in memory between calls.
bool has_few_numbers(const ode::Problem& problem) {
  constexpr std::size_t kFew = std::size_t{1} << 16;
  return problem.initial_states.size() + problem.parameters.size() + problem.save_times.size() +
             problem.impulses.size() <=
         kFew;
}

// Columns with names stand where these say, not where those of the last call stood.
bool has_names(const std::optional<Given>& given) { return given && !given->names.empty(); }

bool all_finite(const std::optional<Given>& given) {
  return !given || std::ranges::all_of(given->values, [](double value) { return std::isfinite(value); });
}

// The numbers of this call where `old`, made of numbers of the same shape, stands: one row of them for all
// trajectories, or the first rows.
std::vector<double> in_place_of(const std::vector<double>& old, std::optional<Given>& given) {
  if (!given) return old;
  std::vector<double>& values = given->values;
  if (values.size() >= old.size()) {
    values.resize(old.size());
    return std::move(values);
  }
  std::vector<double> repeated(old.size());
  for (std::size_t i = 0; i < old.size(); ++i) repeated[i] = values[i % values.size()];
  return repeated;
}

// The arguments of solve(), read once for many solves.
class Prepared {
 public:
  Prepared(const std::string& text, const nb::dict& given, nb::object numbers, const Net* model, std::string command)
      : arguments_(read_arguments(given, numbers)),
        file_(tell_in_users_words([&] { return parse_arguments(text); })),
        command_(std::move(command)),
        numbers_(std::move(numbers)) {
    take_model(model, file_);
  }

  // With these in the place of its own, where they are not None. Returns (Solved, the exception that stopped it or
  // None).
  nb::tuple solve(nb::handle u0, nb::handle parameters) {
    return tell_in_users_words([&] {
      std::optional<Given> states = read("u0", u0), values = read("parameters", parameters);
      const std::shared_ptr<const LastCall> last = last_;  // of whichever thread called last
      const bool again = last && same_shapes(last->u0, states) && same_shapes(last->parameters, values) &&
                         all_finite(states) && all_finite(values) && !has_names(states) && !has_names(values);
      auto [solved, stopped] = again ? solve_again(*last, states, values) : solve_anew(states, values);
      return nb::make_tuple(std::move(solved), std::move(stopped));
    });
  }

 private:
  std::optional<Given> read(const char* name, nb::handle given) const {
    return given.is_none() ? std::nullopt : std::optional(read_given(name, given, numbers_));
  }

  std::pair<Solved, nb::object> solve_again(const LastCall& last, std::optional<Given>& u0,
                                            std::optional<Given>& parameters) {
    const cli::ProblemSetup& setup = last.written->setup;
    const ode::Problem& old = setup.problem;
    ode::Problem own{.rhs = old.rhs,
                     .initial_states = in_place_of(old.initial_states, u0),
                     .parameters = in_place_of(old.parameters, parameters),
                     .start_times = old.start_times,
                     .end_times = old.end_times,
                     .save_times = old.save_times,
                     .save_times_per_trajectory = old.save_times_per_trajectory,
                     .event = old.event,
                     .impulses = old.impulses,
                     .first_impulse = old.first_impulse,
                     .resets = old.resets,
                     .keep_events = old.keep_events};
    if (setup.options.precision == Precision::f32)
      warn_of(cli::float32_range_notes(own, setup.component_names, setup.parameter_names), 2);
    return solve_as_before(last.written, std::move(own), last.estimate);
  }

  std::pair<Solved, nb::object> solve_anew(const std::optional<Given>& u0, const std::optional<Given>& parameters) {
    cli::ProblemFile file = file_;
    Arguments arguments = arguments_;
    if (u0) arguments.u0 = u0;
    if (parameters) arguments.parameters = parameters;
    cli::ProblemSetup setup = set_up_arguments(file, std::move(arguments));
    warn_of(setup.notes, 2);  // below this is Solver.__call__()
    const Estimate estimate = estimate_of(setup);
    const auto written = std::make_shared<const Written>(Written{std::move(file), std::move(setup), command_});
    last_.reset();
    if (estimate.length != Length::is_long || has_few_numbers(written->setup.problem))
      last_ = std::make_shared<const LastCall>(LastCall{written, estimate, u0, parameters});
    return solve_as_before(written, std::nullopt, estimate);
  }

  std::pair<Solved, nb::object> solve_as_before(std::shared_ptr<const Written> written, std::optional<ode::Problem> own,
                                                Estimate estimate) {
    if (estimate.length == Length::may_be_short && was_long_) estimate.length = Length::is_long;
    auto result = solve_in_memory(std::move(written), std::move(own), estimate, nb::none());
    if (estimate.length == Length::may_be_short && result.first.was_watched) was_long_ = true;
    return result;
  }

  // Calls differ in what it depends on by their number of trajectories alone.
  Estimate estimate_of(const cli::ProblemSetup& setup) {
    const std::size_t trajectories = setup.problem.trajectories();
    if (!estimated_ || estimated_->first != trajectories)
      estimated_.emplace(trajectories, estimate_length(setup.problem, setup.options));
    return estimated_->second;
  }

  Arguments arguments_;
  cli::ProblemFile file_;
  std::string command_;
  nb::object numbers_;
  std::shared_ptr<const LastCall> last_;                       // where setting it up may count beside the solve
  std::optional<std::pair<std::size_t, Estimate>> estimated_;  // of so many trajectories
  bool was_long_ = false;                                      // what might have been short
};

}  // namespace

void bind_solver(nb::module_& module) {
  module.def("estimates_made", &estimates_made);
  nb::class_<Prepared>(module, "Prepared")
      .def(nb::init<const std::string&, const nb::dict&, nb::object, const Net*, std::string>(), nb::arg("text"),
           nb::arg("given"), nb::arg("numbers"), nb::arg("model").none(), nb::arg("command"))
      .def("solve", &Prepared::solve, nb::arg("u0").none(), nb::arg("parameters").none());
}

}  // namespace lockstep::python
