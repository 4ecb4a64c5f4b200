#include "lockstep/ode/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::ode {
namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& found, const std::string& expected,
                         const std::string& remedy = {}) {
  throw Error(ErrorKind::invalid_argument, {.field = field, .found = found, .expected = expected, .remedy = remedy});
}

std::string count_of(std::size_t count) { return std::to_string(count) + " numbers"; }

// A loss over all trajectories, or over their segments.
GradientSolver make_solver(const Rhs& rhs, const TrajectoryData& data, const FitOptions& options,
                           const FitPhase& phase) {
  const std::size_t n = rhs->components(), m = rhs->parameters();
  const std::size_t count = data.trajectories, points = data.points(n);
  const std::size_t used = phase.horizon == 0 ? points : std::min(points, std::max<std::size_t>(phase.horizon, 2));
  const std::size_t intervals = used - 1;
  const std::size_t length = phase.segment == 0 ? intervals : std::min(phase.segment, intervals);
  Problem problem;
  problem.rhs = rhs;
  problem.start_times.clear();
  problem.save_times_per_trajectory = true;
  SquaredError loss{.targets = {}, .weights = options.component_weights, .scale = 1.0 / static_cast<double>(count)};
  const bool shared_parameters = data.parameters.size() == m;
  if (shared_parameters) problem.parameters = data.parameters;
  for (std::size_t trajectory = 0; trajectory < count; ++trajectory) {
    const double* times = data.times.data() + (data.shares_times(n) ? 0 : trajectory * points);
    const double* states = data.states.data() + trajectory * points * n;
    for (std::size_t begin = 0; begin < intervals; begin += length) {
      const std::size_t first = std::min(begin, intervals - length);
      problem.start_times.push_back(times[first]);
      problem.end_times.push_back(times[first + length]);
      problem.initial_states.insert(problem.initial_states.end(), states + first * n, states + (first + 1) * n);
      problem.save_times.insert(problem.save_times.end(), times + first + 1, times + first + length + 1);
      loss.targets.insert(loss.targets.end(), states + (first + 1) * n, states + (first + length + 1) * n);
      if (!shared_parameters) {
        const double* p = data.parameters.data() + trajectory * m;
        problem.parameters.insert(problem.parameters.end(), p, p + m);
      }
    }
  }
  const GradientOptions gradient_options{.failed = FailedTrajectories::leave_out, .memory_bytes = options.memory_bytes};
  return GradientSolver(std::move(problem), phase.solve.value_or(options.solve), std::move(loss), gradient_options);
}

}  // namespace

std::size_t TrajectoryData::points(std::size_t components) const {
  return trajectories == 0 || components == 0 ? 0 : states.size() / components / trajectories;
}

void TrajectoryData::validate(const StateFunction& rhs) const {
  const std::size_t n = rhs.components(), m = rhs.parameters();
  if (trajectories == 0) refuse("data.trajectories", "0", "at least one");
  if (states.empty() || states.size() % (n * trajectories) != 0) {
    refuse("data.states", count_of(states.size()),
           "a multiple of " + std::to_string(trajectories) + " trajectories x " + std::to_string(n) + " components");
  }
  const std::size_t count = points(n);
  if (count < 2) refuse("data.states", "one point a trajectory", "at least two");
  if (times.size() != count && times.size() != count * trajectories) {
    refuse("data.times", count_of(times.size()),
           std::to_string(count) + " shared by all, or " + std::to_string(count * trajectories) +
               " for points of their own");
  }
  for (std::size_t i = 0; i < times.size(); ++i) {
    const std::size_t row = i % count;
    const std::string where = "trajectory " + std::to_string(i / count) + ", row " + std::to_string(row);
    if (!std::isfinite(times[i])) refuse("data.times", "a number that is not finite in " + where, "finite times");
    if (row < 2) {
      if (row == 1 && times[i] == times[i - 1])
        refuse("data.times", "the same time twice in " + where, "times in order");
      continue;
    }
    const bool descends = times[i - row + 1] < times[i - row];
    if (descends ? times[i] < times[i - 1] : times[i] > times[i - 1]) continue;
    refuse("data.times", std::to_string(times[i]) + " after " + std::to_string(times[i - 1]) + " in " + where,
           "times in order", "sort the rows and drop repeats");
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (std::isfinite(states[i])) continue;
    const std::size_t row = i / n;
    refuse("data.states",
           "a number that is not finite in trajectory " + std::to_string(row / count) + ", row " +
               std::to_string(row % count) + ", component " + std::to_string(i % n),
           "finite states");
  }
  if (parameters.size() != m && parameters.size() != m * trajectories) {
    refuse("data.parameters", count_of(parameters.size()),
           std::to_string(m) + " shared by all, or " + std::to_string(m * trajectories));
  }
  for (const double p : parameters) {
    if (!std::isfinite(p)) refuse("data.parameters", "a number that is not finite", "finite numbers");
  }
}

void FitOptions::validate() const {
  solve.validate();
  if (phases.empty()) refuse("options.phases", "none", "at least one phase");
  for (const FitPhase& phase : phases) {
    phase.training.validate();
    if (phase.solve) phase.solve->validate();
    if (phase.horizon == 1) refuse("options.phases.horizon", "1", "at least 2 points, or 0 for all");
  }
  for (const double w : component_weights) {
    if (!(w >= 0) || !std::isfinite(w)) {
      refuse("options.component_weights", std::to_string(w), "finite numbers that are not negative");
    }
  }
  if (validate_every < 1) refuse("options.validate_every", std::to_string(validate_every), "at least 1");
}

std::vector<FitPhase> recommended_phases(std::size_t points, std::optional<double> target) {
  const auto lbfgs = [](const char* name, std::int64_t iterations) {
    train::Phase phase;
    phase.name = name;
    phase.iterations = iterations;
    phase.rule = train::LbfgsOptions{};
    return phase;
  };
  std::vector<FitPhase> phases;
  phases.push_back({.training = lbfgs("segments of 1 interval", 100), .segment = 1});
  if (points > 10) phases.push_back({.training = lbfgs("segments of 5 intervals", 100), .segment = 5});
  if (points > 40) phases.push_back({.training = lbfgs("segments of 20 intervals", 100), .segment = 20});
  phases.push_back({.training = lbfgs("whole trajectories", 2000)});
  phases.back().training.target = target;
  return phases;
}

namespace {

// Mean and standard deviation by Welford's recurrence.
class Moments {
 public:
  void add(double x) {
    ++count_;
    const double before = x - mean_;
    mean_ += before / static_cast<double>(count_);
    squares_ += before * (x - mean_);
  }
  double mean() const { return mean_; }
  // 1 where nothing varies.
  double deviation() const { return squares_ > 0 ? std::sqrt(squares_ / static_cast<double>(count_)) : 1; }

 private:
  std::size_t count_ = 0;
  double mean_ = 0, squares_ = 0;
};

}  // namespace

void fit_scaling(Mlp& mlp, const TrajectoryData& data) {
  const std::size_t n = mlp.outputs(), points = data.points(n), given = data.parameters.size();
  const auto are_given = [&](std::size_t m) { return given == m || given == m * data.trajectories; };
  const std::size_t more = mlp.inputs() < n ? 0 : mlp.inputs() - n;
  const bool with_time = !are_given(more);
  const std::size_t m = with_time ? more - 1 : more;
  if (mlp.inputs() < n || points < 2 || (with_time && (more == 0 || !are_given(m)))) {
    refuse("data",
           std::to_string(points) + " points a trajectory and " + count_of(given) + " of parameters for a net with " +
               std::to_string(mlp.inputs()) + " inputs and " + std::to_string(n) + " outputs",
           "at least 2 points, and the net's inputs to be state, parameters and perhaps time");
  }
  std::vector<Moments> inputs(mlp.inputs()), outputs(n);
  for (std::size_t row = 0; row < data.trajectories * points; ++row) {
    const std::size_t trajectory = row / points, point = row % points;
    const double* times = data.times.data() + (data.shares_times(n) ? 0 : trajectory * points);
    const double* state = data.states.data() + row * n;
    const double* parameters = data.parameters.data() + (given == m ? 0 : trajectory * m);
    for (std::size_t c = 0; c < n; ++c) {
      inputs[c].add(state[c]);
      if (point > 0) outputs[c].add((state[c] - *(state + c - n)) / (times[point] - times[point - 1]));
    }
    for (std::size_t i = 0; i < m; ++i) inputs[n + i].add(parameters[i]);
    if (with_time) inputs[n + m].add(times[point]);
  }
  mlp.input_scaling = {};
  mlp.output_scaling = {};
  for (const Moments& moments : inputs) {
    mlp.input_scaling.shift.push_back(moments.mean());
    mlp.input_scaling.scale.push_back(moments.deviation());
  }
  for (const Moments& moments : outputs) {
    mlp.output_scaling.scale.push_back(moments.deviation());
    mlp.output_scaling.shift.push_back(moments.mean());
  }
}

template <class T>
struct FitLoss<T>::Parts {
  Rhs rhs;
  TrajectoryData data;
  FitOptions options;
  std::vector<std::optional<GradientSolver>> phases;  // made when first needed
  std::optional<GradientSolver> whole, validation;
  std::vector<double> weights;
  std::size_t left_out = 0;
  std::optional<std::size_t> good_phase;  // the one in which all trajectories have reached their ends before

  const Gradients& evaluate(std::optional<GradientSolver>& solver, const TrajectoryData& of, const FitPhase& phase,
                            std::span<const T> at) {
    if (!solver) solver.emplace(make_solver(rhs, of, options, phase));
    weights.assign(at.begin(), at.end());
    const Gradients& gradients = solver->evaluate(weights);
    left_out = gradients.left_out;
    return gradients;
  }

  bool must_stop() const { return left_out != 0 && options.failed == FailedTrajectories::stop; }

  // Names the first trajectory, and its segment where they are cut, that did not reach its end.
  void require_success(const Gradients& gradients, const TrajectoryData& of) const {
    if (!must_stop()) return;
    const std::size_t segments = gradients.records.size() / of.trajectories;
    for (std::size_t i = 0; i < gradients.records.size(); ++i) {
      const TrajectoryRecord& record = gradients.records[i];
      if (record.status == Status::success) continue;
      refuse("trajectory " + std::to_string(i / segments) +
                 (segments == 1 ? "" : ", segment " + std::to_string(i % segments)),
             std::string(to_string(record.status)) + " at t = " + std::to_string(record.end_time),
             "every trajectory to reach its end",
             "lower the learning rate, begin with short segments, or leave failed trajectories out");
    }
  }
};

template <class T>
FitLoss<T>::FitLoss(Rhs rhs, TrajectoryData data, FitOptions options) {
  options.validate();
  if (!rhs) refuse("rhs", "none", "a right-hand side");
  data.validate(*rhs);
  if (options.validation) options.validation->validate(*rhs);
  if (rhs->weights().empty()) {
    refuse("rhs", rhs->description() + ", which has no weights", "a right-hand side with something to train",
           "use ode::net, or a sum of which one part is a net");
  }
  if (!options.component_weights.empty() && options.component_weights.size() != rhs->components()) {
    refuse("options.component_weights", count_of(options.component_weights.size()),
           std::to_string(rhs->components()) + ", one for each component, or none");
  }
  parts_ = std::make_unique<Parts>();
  parts_->phases.resize(options.phases.size());
  parts_->rhs = std::move(rhs);
  parts_->data = std::move(data);
  parts_->options = std::move(options);
}
template <class T>
FitLoss<T>::~FitLoss() = default;
template <class T>
FitLoss<T>::FitLoss(FitLoss&&) noexcept = default;
template <class T>
FitLoss<T>& FitLoss<T>::operator=(FitLoss&&) noexcept = default;

template <class T>
std::size_t FitLoss<T>::weights() const {
  return parts_->rhs->weights().size();
}
template <class T>
std::size_t FitLoss<T>::left_out() const {
  return parts_->left_out;
}

template <class T>
double FitLoss<T>::operator()(const train::Place& place, std::span<const T> weights, std::span<T> gradient) {
  const FitPhase& phase = parts_->options.phases[place.phase];
  const Gradients& gradients = parts_->evaluate(parts_->phases[place.phase], parts_->data, phase, weights);
  // A line search that went too far takes a shorter step when it is told so.
  if (parts_->must_stop() && phase.training.is_lbfgs() && parts_->good_phase == place.phase) {
    std::fill(gradient.begin(), gradient.end(), T(0));
    return std::numeric_limits<double>::infinity();
  }
  parts_->require_success(gradients, parts_->data);
  parts_->good_phase = place.phase;
  std::transform(gradients.weights.begin(), gradients.weights.end(), gradient.begin(),
                 [](double g) { return static_cast<T>(g); });
  return gradients.loss;
}

template <class T>
double FitLoss<T>::loss(std::span<const T> weights) {
  const Gradients& gradients = parts_->evaluate(parts_->whole, parts_->data, {}, weights);
  return parts_->must_stop() ? std::numeric_limits<double>::infinity() : gradients.loss;
}

template <class T>
double FitLoss<T>::validation_loss(std::span<const T> weights) {
  if (!parts_->options.validation) refuse("options.validation", "none", "validation data");
  const Gradients& gradients = parts_->evaluate(parts_->validation, *parts_->options.validation, {}, weights);
  return parts_->must_stop() ? std::numeric_limits<double>::infinity() : gradients.loss;
}

template class FitLoss<float>;
template class FitLoss<double>;

namespace {

template <class T>
FitResult fit_as(const Rhs& rhs, const TrajectoryData& data, const FitOptions& options, const FitControl& control,
                 const std::vector<double>& start) {
  FitLoss<T> loss(rhs, data, options);
  std::vector<train::Phase> phases;
  for (const FitPhase& phase : options.phases) phases.push_back(phase.training);
  train::Training<T> training(std::move(phases), std::vector<T>(start.begin(), start.end()));
  if (options.validation) {
    training.validate_with([&](const train::Place&, std::span<const T> w) { return loss.validation_loss(w); },
                           options.validate_every);
  }
  FitResult result;
  while (!training.finished() && !(result.cancelled = control.cancel != nullptr && control.cancel->requested())) {
    const auto report = training.iterate(
        [&](const train::Place& place, std::span<const T> w, std::span<T> g) { return loss(place, w, g); });
    ++result.iterations;
    if (control.progress) control.progress(report);
  }
  const auto best = training.best_parameters();
  result.weights.assign(best.begin(), best.end());
  result.loss = loss.loss(best);
  if (options.validation) result.validation_loss = loss.validation_loss(best);
  return result;
}

}  // namespace

FitResult fit(const Rhs& rhs, const TrajectoryData& data, const FitOptions& options, const FitControl& control,
              std::optional<std::vector<double>> start) {
  if (!rhs) refuse("rhs", "none", "a right-hand side");
  const std::vector<double> weights = start ? *start : rhs->weights();
  if (weights.size() != rhs->weights().size()) {
    refuse("start", count_of(weights.size()), std::to_string(rhs->weights().size()) + ", as the right-hand side has");
  }
  return options.solve.precision == Precision::f32 ? fit_as<float>(rhs, data, options, control, weights)
                                                   : fit_as<double>(rhs, data, options, control, weights);
}

}  // namespace lockstep::ode
