#include "lockstep/cli/trajectory_judgement.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "lockstep/cli/text.h"
#include "lockstep/core/equal_part.h"
#include "lockstep/core/resolved_text.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kMostColumns = 4;      // trajectories in the picture
constexpr std::size_t kMostRows = 4;         // components
constexpr std::size_t kCurvePoints = 240;    // at least, of a fitted curve
constexpr std::size_t kMostInInterval = 24;  // but no more between two points of the data
constexpr std::size_t kMostDrawn = 4000;     // points of a trajectory; more than a picture's pixels

std::size_t first_row(const TrajectoryTable& table, std::size_t trajectory) {
  return std::accumulate(table.lengths.begin(), table.lengths.begin() + static_cast<std::ptrdiff_t>(trajectory),
                         std::size_t{0});
}

// The file's only one, which has no name.
bool is_alone(const TrajectoryTable& table) {
  return table.trajectories() == 1 && table.numbers.empty() && table.names.empty();
}

// Of a row: the distance to the nearest other time of its trajectory, whose rows are [first, end).
double time_resolution(const std::vector<double>& times, std::size_t row, std::size_t first, std::size_t end) {
  double nearest = std::numeric_limits<double>::infinity();
  if (row > first) nearest = times[row] - times[row - 1];
  if (row + 1 < end) nearest = std::min(nearest, times[row + 1] - times[row]);
  return nearest;
}

// "trajectory 3, t = 2.5"
std::string place_text(const TrajectoryTable& table, std::size_t row) {
  std::size_t trajectory = 0, first = 0;
  while (first + table.lengths[trajectory] <= row) first += table.lengths[trajectory++];
  return (is_alone(table) ? "" : "trajectory " + table.name(trajectory) + ", ") + table.time_name + " = " +
         resolved_text(table.times[row], time_resolution(table.times, row, first, first + table.lengths[trajectory])) +
         (table.time_unit.empty() ? "" : " " + table.time_unit);
}

std::string share_text(double relative) {
  return std::isfinite(relative) ? percent_text(relative) + " of the spread" : "not solved to its end";
}

// From the best to the worst.
std::vector<std::size_t> ranked(const std::vector<double>& errors) {
  std::vector<std::size_t> order(errors.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return errors[a] < errors[b]; });
  return order;
}

// "Huber's loss, thresholds of 1.345 sigma: 3 of 80 numbers of the training data beyond; the farthest: x at ..."
std::string outliers_text(const FittedEquations& of, const TrajectoryTable& table, const ode::FitErrors& errors) {
  constexpr double kFarFromFound = 2;  // times what the fit leaves
  if (!of.huber_threshold) return {};
  const bool found = !of.found_errors.empty();
  const std::string unit = found ? "errors" : "sigma";
  std::string text = "Huber's loss, threshold " + rounded_text(*of.huber_threshold, 4) + " " + unit;
  std::string sizes, smaller;
  for (std::size_t c = 0; c < of.found_errors.size(); ++c) {
    if (!std::isfinite(of.found_errors[c])) continue;
    const std::string& name = table.component_names[c];
    sizes += (sizes.empty() ? "" : ", ") + name + " " + rounded_text(of.found_errors[c], 3);
    const auto& within = errors.components[c].within;
    // Of normal errors the numbers within 1.345 deviations have an RMS of 0.7 of one.
    if (within && 2 * within->numbers > errors.components[c].numbers && within->rms > 0 &&
        kFarFromFound * within->rms < of.found_errors[c])
      smaller += (smaller.empty() ? "" : ", ") + name + " = " + rounded_text(within->rms, 2);
  }
  if (!sizes.empty()) text += ", taken to be of " + sizes + " as successive numbers scatter";
  text +=
      ": " + count_text(errors.beyond) + " of " + count_text(errors.compared) + " numbers of the training data beyond";
  for (std::size_t i = 0; i < errors.outliers.size(); ++i) {
    const ode::FitErrors::Outlier& one = errors.outliers[i];
    text += (i == 0 ? ", farthest " : ", ") + table.component_names[one.component] + " at " +
            place_text(table, one.row) + " (" + rounded_text(one.size * *of.huber_threshold, 3) + " " + unit + ")";
  }
  if (!smaller.empty())
    text += "; what the fit leaves is smaller: sigma = { " + smaller + " } would draw the threshold nearer";
  return text;
}

struct Pick {
  std::string what;  // ", worst"; or empty
  std::size_t trajectory;
};
// At most `most` of the best, the median and the worst; the worst first to be taken.
std::vector<Pick> picked(const std::vector<double>& errors, std::size_t most) {
  const std::vector<std::size_t> order = ranked(errors);
  if (order.empty() || most == 0) return {};
  if (order.size() == 1) return {{"", order[0]}};
  const Pick best{", best", order[0]}, median{", median", order[order.size() / 2]}, worst{", worst", order.back()};
  if (most == 1) return {worst};
  if (most == 2 || order.size() == 2) return {best, worst};
  return {best, median, worst};
}

// The components that are shown: of many those of the largest share of their spread, in their order.
std::vector<std::size_t> shown_components(const std::vector<train::ColumnErrors>& errors) {
  std::vector<double> shares;
  for (const train::ColumnErrors& error : errors) {
    shares.push_back(std::isnan(error.relative()) ? std::numeric_limits<double>::infinity() : -error.relative());
  }
  std::vector<std::size_t> order = ranked(shares);
  order.resize(std::min(order.size(), kMostRows));
  std::sort(order.begin(), order.end());
  return order;
}

class Judge {
 public:
  explicit Judge(const FittedEquations& of) : of_(of) {}

  // Their errors as rows of the report; ranks trajectories.
  ode::FitErrors errors(const JudgedTrajectories& of, const std::vector<double>& states, const char* data,
                        std::span<const double> spreads, FitReport& report) const {
    ode::FitErrors errors = ode::fit_errors(of.data, states, spreads, of_.thresholds);
    for (std::size_t c = 0; c < errors.components.size(); ++c) {
      const train::ColumnErrors& error = errors.components[c];
      const std::string unit = of.table.component_units.empty() ? std::string() : of.table.component_units[c];
      report.rows.push_back({data, of.table.component_names[c], unit, error,
                             error.numbers == 0 ? std::string() : place_text(of.table, error.largest_row)});
    }
    return errors;
  }

  // The trajectory's points, and what the right-hand side makes of its start in between as well.
  FittedTrajectory fitted(const JudgedTrajectories& of, std::size_t trajectory,
                          const std::vector<std::size_t>& components) const {
    const std::size_t n = of.table.component_names.size(), first = first_row(of.table, trajectory);
    const std::size_t points = of.table.lengths[trajectory];
    const double *const times = of.table.times.data() + first, *const states = of.table.states.data() + first * n;
    const std::size_t pieces = std::clamp<std::size_t>(kCurvePoints / points, 1, kMostInInterval);
    ode::TrajectoryData one{.times = {}, .states = {}, .parameters = of.data.parameters};
    if (const std::size_t each = of_.rhs->parameters(); one.parameters.size() != each) {
      const auto own = of.data.parameters.begin() + static_cast<std::ptrdiff_t>(trajectory * each);
      one.parameters.assign(own, own + static_cast<std::ptrdiff_t>(each));
    }
    if (!of.table.impulses.empty()) one.impulses = of.table.impulses[trajectory];
    std::ranges::stable_sort(one.impulses, {}, &ode::Impulse::time);
    auto next = one.impulses.begin();
    const auto add_between = [&](double time) {
      one.times.push_back(time);
      one.states.insert(one.states.end(), n, std::numeric_limits<double>::quiet_NaN());
    };
    for (std::size_t point = 0; point < points; ++point) {
      const std::size_t steps = point + 1 < points ? pieces : 1;
      for (std::size_t step = 0; step < steps; ++step) {
        const double share = static_cast<double>(step) / static_cast<double>(pieces);
        const double time = step == 0 ? times[point] : times[point] + share * (times[point + 1] - times[point]);
        // The state before an impulse is one of the curve.
        for (; next != one.impulses.end() && next->time < time; ++next) {
          if (!one.times.empty() && next->time > one.times.back()) add_between(next->time);
        }
        add_between(time);
        if (step == 0) std::copy_n(states + point * n, n, one.states.end() - static_cast<std::ptrdiff_t>(n));
      }
    }
    std::span<const double> start;
    if (!of.starts.empty()) start = std::span(of.starts).subspan(trajectory * n, n);
    const std::vector<double> curve = solved(one, start);
    FittedTrajectory result;
    const std::size_t stride = (points + kMostDrawn - 1) / kMostDrawn;
    for (std::size_t point = 0; point < points; point += stride) {
      result.times.push_back(times[point]);
      for (const std::size_t c : components) {
        result.data.push_back(states[point * n + c]);
        if (!of.table.sigma.empty()) result.sigma.push_back(of.table.sigma[(first + point) * n + c]);
      }
    }
    const std::size_t curve_stride = (one.times.size() + kMostDrawn - 1) / kMostDrawn;
    for (std::size_t point = 0; point < one.times.size(); ++point) {
      const auto impulses = equal_part(one.impulses, one.times[point], &ode::Impulse::time);
      if (point % curve_stride != 0 && impulses.empty()) continue;
      std::vector<double> state(curve.begin() + static_cast<std::ptrdiff_t>(point * n),
                                curve.begin() + static_cast<std::ptrdiff_t>((point + 1) * n));
      const auto add = [&] {
        result.curve_times.push_back(one.times[point]);
        for (const std::size_t c : components) result.curve.push_back(state[c]);
      };
      add();
      if (impulses.empty() || point + 1 == one.times.size()) continue;
      for (const ode::Impulse& impulse : impulses) {
        double& x = state[impulse.component];
        x = impulse.behind(x);
      }
      add();  // the state behind them
    }
    return result;
  }

  std::vector<double> solved(const ode::TrajectoryData& data, std::span<const double> starts,
                             std::optional<ode::UnresolvedDerivatives>* unresolved = nullptr) const {
    return ode::fitted_states(of_.rhs, of_.weights, data, of_.options, starts, of_.resets, of_.control, unresolved);
  }

 private:
  const FittedEquations& of_;
};

}  // namespace

Judgement judge_fit(const FittedEquations& equations, const JudgedTrajectories& training,
                    const JudgedTrajectories& validation) {
  const Judge judge(equations);
  const std::vector<double> spreads =
      train::column_spreads(training.table.states, training.table.component_names.size());
  Judgement judgement;
  const bool has_validation = validation.table.trajectories() > 0;
  FittedStates& found = judgement.fitted;
  for (std::size_t i = 0; i < training.table.trajectories(); ++i) found.trajectories.push_back(training.table.name(i));
  found.lengths = training.table.lengths;
  found.components = training.table.component_names;
  found.times = training.table.times;
  found.data = training.table.states;
  found.states = judge.solved(training.data, training.starts, &judgement.unresolved);
  found.starts_are_found = !training.starts.empty();
  const ode::FitErrors errors = judge.errors(training, found.states, "training", spreads, judgement.report);
  ode::FitErrors kept;
  if (has_validation) {
    kept = judge.errors(validation, judge.solved(validation.data, validation.starts), "validation", spreads,
                        judgement.report);
  }

  const auto add_worst = [&](const JudgedTrajectories& of, const std::vector<double>& ranks, const char* data) {
    if (ranks.size() < 2) return;
    const std::size_t worst = ranked(ranks).back();
    judgement.report.worst += (judgement.report.worst.empty() ? "trajectory " : ", ") + of.table.name(worst) +
                              " of the " + data + " data (" + share_text(ranks[worst]) + ")";
  };
  add_worst(training, errors.trajectories, "training");
  judgement.report.outliers = outliers_text(equations, training.table, errors);
  if (has_validation) add_worst(validation, kept.trajectories, "validation");

  const std::vector<std::size_t> shown = shown_components(has_validation ? kept.components : errors.components);
  FittedCurves& curves = judgement.curves;
  for (const std::size_t c : shown) {
    const FitReport::Row& row = judgement.report.rows[c];
    curves.names.push_back(row.name);
    curves.units.push_back(row.unit);
  }
  const TrajectoryTable& table = training.table;
  curves.time_name = table.time_name;
  curves.time_unit = table.time_unit;
  const auto add = [&](const JudgedTrajectories& of, const std::vector<double>& ranks, const char* data) {
    for (const Pick& pick : picked(ranks, kMostColumns - curves.trajectories.size())) {
      FittedTrajectory fitted = judge.fitted(of, pick.trajectory, shown);
      const double relative = ranks[pick.trajectory];
      fitted.title = std::string(data) + pick.what + (is_alone(of.table) ? "" : ": " + of.table.name(pick.trajectory)) +
                     (std::isfinite(relative) ? " (" + percent_text(relative) + ")" : " (failed)");
      fitted.is_validation = &of == &validation;
      curves.trajectories.push_back(std::move(fitted));
    }
  };
  if (has_validation) add(validation, kept.trajectories, "validation");
  add(training, errors.trajectories, "training");
  return judgement;
}

}  // namespace lockstep::cli
