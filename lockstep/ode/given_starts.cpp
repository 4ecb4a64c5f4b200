#include "lockstep/ode/given_starts.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/detail/data_rows.h"
#include "lockstep/ode/detail/refuse.h"
#include "lockstep/ode/detail/start_solver.h"
#include "lockstep/ode/gradient.h"

namespace lockstep::ode {
namespace {

Problem start_problem(const GivenStarts& starts, const TrajectoryData& data, std::size_t trajectories) {
  Problem problem;
  problem.rhs = starts.values;
  problem.initial_states.assign(trajectories * starts.values->components(), 0.0);
  problem.parameters = data.parameters;
  problem.start_times = {0};
  problem.end_times = problem.save_times = {1};
  return problem;
}

Options one_step() {
  Options options;
  options.method = "euler";
  options.control = StepControl::fixed;
  options.dt = 1;
  options.precision = Precision::f64;
  options.threads = 1;
  return options;
}

}  // namespace

StartsNotFinite::StartsNotFinite(std::size_t component, const std::string& trajectories)
    : Error(ErrorKind::invalid_argument,
            {.field = "starts",
             .found = "no finite number for component " + std::to_string(component) + " of " + trajectories,
             .expected = "a state to start from",
             .remedy = "keep the parameters it is made of where it is finite"}),
      component_(component) {}

bool GivenStarts::has(std::size_t component) const { return std::ranges::binary_search(components, component); }

void GivenStarts::validate(const StateFunction& rhs) const {
  if (!values) detail::refuse("starts.values", "none", "a right-hand side whose du/dt is the start");
  const auto require = [](const char* field, std::size_t found, std::size_t expected) {
    if (found == expected) return;
    detail::refuse(field, std::to_string(found), std::to_string(expected) + ", as the right-hand side has");
  };
  require("starts.values.components", values->components(), rhs.components());
  require("starts.values.parameters", values->parameters(), rhs.parameters());
  const std::size_t own = values->weights().size(), all = rhs.weights().size();
  if (own > all) {
    detail::refuse("starts.values.weights", std::to_string(own),
                   "at most " + std::to_string(all) + ": those parameters that the right-hand side trains");
  }
  for (std::size_t i = 0; i < components.size(); ++i) {
    if (components[i] < rhs.components() && (i == 0 || components[i - 1] < components[i])) continue;
    detail::refuse("starts.components", std::to_string(components[i]),
                   "components below " + std::to_string(rhs.components()) + ", ascending");
  }
}

std::vector<double> start_states(const GivenStarts& starts, std::span<const double> weights,
                                 const TrajectoryData& data) {
  const StandardArithmetic arithmetic;
  const std::size_t n = starts.values->components();
  detail::StartSolver solver(starts, data);
  solver.evaluate(weights);
  const detail::DataRows rows(data, n);
  std::vector<double> states;
  for (std::size_t i = 0; i < data.trajectories; ++i) {
    for (std::size_t c = 0; c < n; ++c) {
      states.push_back(starts.has(c) ? solver.start(i, c) : data.states[rows.first(i) * n + c]);
    }
  }
  return states;
}

namespace detail {
namespace {

// Of `count` numbers, each `stride` behind the one before it, by halves.
double sum_of_rows(const double* first, std::size_t count, std::size_t stride) {
  if (count == 1) return *first;
  const std::size_t half = count / 2;
  return sum_of_rows(first, half, stride) + sum_of_rows(first + half * stride, count - half, stride);
}

}  // namespace

struct StartSolver::Parts {
  Parts(const GivenStarts& given, const TrajectoryData& data)
      : starts(given),
        components(given.values->components()),
        is_one(data.parameters.size() == given.values->parameters()),
        values((is_one ? 1 : data.trajectories) * components),
        by_start(values.size()),
        solver(start_problem(given, data, values.size() / components), one_step(),
               TrajectoryLoss([this](std::size_t i, std::span<const double> states, std::span<double> slopes) {
                 std::ranges::copy(states, values.begin() + static_cast<std::ptrdiff_t>(i * components));
                 std::copy_n(by_start.begin() + static_cast<std::ptrdiff_t>(i * components), components,
                             slopes.begin());
                 return 0.0;
               })) {
    if (is_one && data.trajectories > 1) names = {"every trajectory"};
    for (std::size_t i = names.size(); i * components < values.size(); ++i) {
      names.push_back("trajectory " + data.name(i));
    }
  }
  Parts(const Parts&) = delete;

  GivenStarts starts;
  std::size_t components;
  bool is_one;                           // start for all trajectories
  std::vector<std::string> names;        // [trajectory], what messages call it
  std::vector<double> values, by_start;  // [trajectory][component]
  GradientSolver solver;
};

StartSolver::StartSolver(const GivenStarts& starts, const TrajectoryData& data)
    : parts_(std::make_unique<Parts>(starts, data)) {}
StartSolver::~StartSolver() = default;
StartSolver::StartSolver(StartSolver&&) noexcept = default;
StartSolver& StartSolver::operator=(StartSolver&&) noexcept = default;

std::size_t StartSolver::own() const { return parts_->solver.weights(); }

void StartSolver::evaluate(std::span<const double> weights) {
  Parts& parts = *parts_;
  std::ranges::fill(parts.values, std::nan(""));
  parts.solver.evaluate_loss(weights.last(own()));
  for (std::size_t i = 0; i < parts.names.size(); ++i) {
    for (const std::size_t c : parts.starts.components) {
      if (!std::isfinite(parts.values[i * parts.components + c])) throw StartsNotFinite(c, parts.names[i]);
    }
  }
}

double StartSolver::start(std::size_t trajectory, std::size_t component) const {
  return parts_->values[(parts_->is_one ? 0 : trajectory) * parts_->components + component];
}

std::span<const double> StartSolver::slopes(std::span<const double> weights, std::span<const double> by_start,
                                            std::span<const std::uint32_t> trajectories) {
  if (own() == 0) return {};
  Parts& parts = *parts_;
  const std::size_t n = parts.components, rows = by_start.size() / n;
  if (parts.is_one) {
    for (std::size_t c = 0; c < n; ++c) parts.by_start[c] = sum_of_rows(by_start.data() + c, rows, n);
  } else {
    std::ranges::fill(parts.by_start, 0.0);
    for (std::size_t i = 0; i < rows; ++i) {
      const std::size_t trajectory = trajectories.empty() ? i : trajectories[i];
      std::copy_n(by_start.data() + i * n, n, parts.by_start.data() + trajectory * n);
    }
  }
  return parts.solver.evaluate(weights.last(own())).weights;
}

std::vector<double> starts_by_parameter(const GivenStarts& starts, const TrajectoryData& data) {
  Directions by_parameter{std::vector<std::size_t>(starts.values->parameters()), {}};
  std::iota(by_parameter.parameters.begin(), by_parameter.parameters.end(), std::size_t{0});
  return solve_along(start_problem(starts, data, data.trajectories), by_parameter, one_step()).by_direction;
}

}  // namespace detail
}  // namespace lockstep::ode
