#include "lockstep/ode/fit.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/detail/fit_data.h"
#include "lockstep/ode/detail/refuse.h"
#include "lockstep/train/loss_unit.h"

namespace lockstep::ode {
namespace {

using detail::count_of;
using detail::refuse;

}  // namespace

void FitOptions::validate() const {
  solve.validate();
  if (phases.empty()) refuse("options.phases", "none", "at least one phase");
  if (failed == FailedTrajectories::count_until_then)
    refuse("options.failed", "count_until_then, by which failing early costs least", "stop or leave_out");
  for (const FitPhase& phase : phases) {
    phase.training.validate();
    if (phase.solve) phase.solve->validate();
    if (phase.failed == FailedTrajectories::count_until_then)
      refuse("options.phases.failed", "count_until_then, by which failing early costs least", "stop or leave_out");
    if (phase.continuity && !(*phase.continuity > 0 && std::isfinite(*phase.continuity))) {
      refuse("options.phases.continuity", number_text(*phase.continuity), "a finite number greater than 0");
    }
    if (phase.batch != 0 && (phase.training.is_lbfgs() || phase.continuity)) {
      refuse("options.phases.batch",
             std::to_string(phase.batch) + (phase.continuity ? " with free states" : " with L-BFGS"),
             "0: both need the same loss in every iteration");
    }
    if (phase.horizon == 1) refuse("options.phases.horizon", "1", "at least 2 points, or 0 for all");
  }
  const auto require_weights = [](const std::vector<double>& weights, const char* field) {
    for (const double w : weights) {
      if (!(w >= 0) || !std::isfinite(w)) refuse(field, number_text(w), "finite numbers that are not negative");
    }
  };
  require_weights(component_weights, "options.component_weights");
  for (const FitPhase& phase : phases) require_weights(phase.component_weights, "options.phases.component_weights");
  if (huber_threshold && !(*huber_threshold > 0 && std::isfinite(*huber_threshold))) {
    refuse("options.huber_threshold", number_text(*huber_threshold), "a finite number greater than 0",
           "give none for the sum of squares");
  }
  if (!(loss_unit > 0) || !std::isfinite(loss_unit)) {
    refuse("options.loss_unit", number_text(loss_unit), "a finite number greater than 0");
  }
  if (validate_every < 1) refuse("options.validate_every", std::to_string(validate_every), "at least 1");
}

std::int64_t FitOptions::iterations_per_epoch(std::size_t trajectories) const {
  std::size_t most = 1;
  for (const FitPhase& phase : phases) {
    if (phase.batch != 0) most = std::max(most, (trajectories + phase.batch - 1) / phase.batch);
  }
  return static_cast<std::int64_t>(most);
}

double loss_unit(const TrajectoryData& data, std::size_t components) {
  if (!data.sigma.empty()) return 1;
  constexpr double kLeast = 0x1p-960, kMost = 0x1p960;  // of what float64 has room for
  double largest = 0;
  for (const detail::Moments& of : detail::moments(data, components)) {
    if (of.varies()) largest = std::max(largest, of.deviation());
  }
  const double unit = train::unit_of(largest);
  return std::clamp(unit * unit, kLeast, kMost);
}

namespace {

constexpr std::int64_t kFirstIterations = 100, kLastIterations = 2000;

train::Phase lbfgs(const char* name, std::int64_t iterations) {
  train::Phase phase;
  phase.name = name;
  phase.iterations = iterations;
  phase.rule = train::LbfgsOptions{};
  return phase;
}

FitPhase whole_trajectories(std::optional<double> target) {
  FitPhase phase{.training = lbfgs("whole trajectories", kLastIterations)};
  phase.training.target = target;
  return phase;
}

}  // namespace

std::vector<FitPhase> recommended_phases(std::size_t points, std::optional<double> target, bool gaps) {
  std::vector<FitPhase> phases;
  // With gaps all starts are free. An interval by itself may then hold nothing that was measured.
  if (!gaps) phases.push_back({.training = lbfgs("segments of 1 interval", kFirstIterations), .segment = 1});
  const auto segments = [&](const char* name, std::size_t length, double continuity) {
    phases.push_back({.training = lbfgs(name, kFirstIterations), .segment = length});
    if (gaps) phases.back().continuity = continuity;
  };
  if (points > 10) segments("segments of 5 intervals", 5, 1);
  if (points > 40) segments("segments of 20 intervals", 20, 100);
  for (FitPhase& phase : phases) phase.failed = FailedTrajectories::leave_out;
  phases.push_back(whole_trajectories(target));
  return phases;
}

std::vector<FitPhase> noisy_phases(std::size_t points, std::optional<double> target) {
  std::vector<FitPhase> phases = recommended_phases(points, target, true);
  phases.back().continuity = 1;
  return phases;
}

std::vector<FitPhase> growing_phases(std::size_t points, std::optional<double> target,
                                     std::optional<double> continuity) {
  constexpr std::size_t kFewest = 15;  // that say anything of rates and resets
  std::vector<FitPhase> phases;
  for (const auto& [part, name] : {std::pair{8, "an eighth of the points"}, {4, "a quarter"}, {2, "a half"}}) {
    const std::size_t horizon = points / static_cast<std::size_t>(part);
    if (horizon < kFewest) continue;
    phases.push_back({.training = lbfgs(name, kFirstIterations), .continuity = continuity, .horizon = horizon});
  }
  phases.push_back(whole_trajectories(target));
  phases.back().continuity = continuity;
  return phases;
}

namespace {

template <class T>
FitResult fit_as(const Rhs& rhs, const TrajectoryData& data, FitOptions options, const FitControl& control,
                 const std::vector<double>& start) {
  if (options.loss_unit == 1 && options.component_weights.empty()) {
    options.loss_unit = loss_unit(data, rhs->components());
  }
  FitLoss<T> loss(rhs, data, options);
  std::vector<train::Phase> phases;
  for (const FitPhase& phase : options.phases) phases.push_back(phase.training);
  std::vector<T> parameters(start.begin(), start.end());
  parameters.resize(loss.parameters());
  train::Training<T> training(std::move(phases), std::move(parameters));
  training.measure_in(options.loss_unit);
  if (options.validation) {
    training.validate_with([&](const train::Place&, std::span<const T> w) { return loss.validation_loss(w); },
                           options.validate_every);
  } else if (const std::int64_t epoch = options.iterations_per_epoch(data.trajectories); epoch > 1) {
    training.validate_with([&](const train::Place&, std::span<const T> w) { return loss.loss(w); }, epoch);
  }
  training.finish_by([&](const train::Place& place, std::span<const T> w) { return loss.squares(place, w); });
  training.count_left_out([&loss] { return static_cast<std::int64_t>(loss.left_out()); });
  FitResult result;
  loss.stop_when(control.cancel);
  try {
    while (!training.finished() && !(result.cancelled = control.cancel != nullptr && control.cancel->requested())) {
      const auto report = training.iterate(
          [&](const train::Place& place, std::span<const T> w, std::span<T> g) { return loss(place, w, g); });
      ++result.iterations;
      if (control.progress) control.progress(report);
    }
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::cancelled) throw;
    result.cancelled = true;
  }
  loss.stop_when(nullptr);
  const auto best = training.best_parameters();
  result.weights.assign(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(loss.weights()));
  if (options.phases.back().continuity) result.states = loss.states(best);
  result.loss = loss.loss(best);
  if (options.validation) result.validation_loss = loss.validation_loss(best);
  return result;
}

}  // namespace

FitResult fit(const Rhs& rhs, const TrajectoryData& data, const FitOptions& options, const FitControl& control,
              std::optional<std::vector<double>> start) {
  const StandardArithmetic arithmetic;
  if (!rhs) refuse("rhs", "none", "a right-hand side");
  const std::vector<double> weights = start ? *start : rhs->weights();
  if (weights.size() != rhs->weights().size()) {
    refuse("start", count_of(weights.size()), std::to_string(rhs->weights().size()) + ", as the right-hand side has");
  }
  return options.solve.precision == Precision::f32 ? fit_as<float>(rhs, data, options, control, weights)
                                                   : fit_as<double>(rhs, data, options, control, weights);
}

}  // namespace lockstep::ode
