#include "lockstep/ode/parameter_uncertainty.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/kernels/math/math.h"
#include "lockstep/ode/detail/data_rows.h"
#include "lockstep/ode/detail/fit_data.h"
#include "lockstep/ode/detail/knots_of_inner.h"
#include "lockstep/ode/detail/known_states.h"
#include "lockstep/ode/detail/least_squares.h"
#include "lockstep/ode/detail/opened_parameters.h"
#include "lockstep/ode/detail/start_solver.h"
#include "lockstep/ode/differentiable_tile.h"
#include "lockstep/ode/sensitivity.h"

namespace lockstep::ode {
namespace {

[[noreturn]] void refuse_uncertainty(ErrorKind kind, std::string field, std::string found, std::string expected,
                                     std::string remedy = {}) {
  throw Error(kind, {std::move(field), std::move(found), std::move(expected), std::move(remedy)});
}

// A right-hand side at other weights than its own.
class AtWeights final : public detail::KnotsOfInner {
 public:
  AtWeights(Rhs inner, std::span<const double> weights)
      : KnotsOfInner(std::move(inner)), weights_(weights.begin(), weights.end()) {}

  std::size_t components() const override { return inner_->components(); }
  std::size_t parameters() const override { return inner_->parameters(); }
  std::string description() const override { return inner_->description(); }
  std::string digest() const override {
    return ContentHash().add("weights").add(inner_->digest()).add(std::span<const double>(weights_)).hex();
  }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override {
    return lower_differentiable<float>(*this, target);
  }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return lower_differentiable<double>(*this, target);
  }
  std::vector<double> weights() const override { return weights_; }
  std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget target) const override {
    return with_weights(inner_->differentiable_f32(target));
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return with_weights(inner_->differentiable_f64(target));
  }
  std::shared_ptr<DifferentiableTile<float>> directional_f32(CpuTarget target) const override {
    return with_weights(inner_->directional_f32(target));
  }
  std::shared_ptr<DifferentiableTile<double>> directional_f64(CpuTarget target) const override {
    return with_weights(inner_->directional_f64(target));
  }

 private:
  template <class T>
  std::shared_ptr<DifferentiableTile<T>> with_weights(std::shared_ptr<DifferentiableTile<T>> tile) const {
    if (tile) tile->set_weights(std::vector<T>(weights_.begin(), weights_.end()));
    return tile;
  }
  std::vector<double> weights_;
};

// What counts as none, relative to the effect that it is a part of.
double smallest_effect(const Options& options) {
  return options.control == StepControl::fixed ? 1e-10 : std::max(1e-10, options.rtol);
}

// Rows [by trained parameter..., residual] that stand for all of the data, and what was counted on the way.
struct Reduced {
  detail::Rows rows;
  std::vector<double> squares;  // [trained parameter], of derivatives at fixed starts
  double loss = 0;
  std::size_t numbers = 0, starts = 0;  // starts: those that the data determine, given the parameters
};

class Reduction {
 public:
  Reduction(Rhs rhs, std::span<const TrainedParameter> trained, const TrajectoryData& data, Options options,
            const UncertaintyOptions& uncertainty, const RunControl& control)
      : rhs_(std::move(rhs)),
        trained_(trained),
        data_(data),
        options_(std::move(options)),
        starts_(uncertainty.initial_states),
        given_(uncertainty.starts),
        resets_(uncertainty.resets),
        components_(rhs_->components()),
        free_(starts_.empty() ? 0 : components_),
        weights_(uncertainty.component_weights),
        control_(control) {
    result_.rows.columns = trained.size() + 1;
    result_.squares.resize(trained.size());
    if (!given_) return;
    by_parameter_of_starts_ = detail::starts_by_parameter(*given_, data_);
    if (starts_.empty()) given_states_ = start_states(*given_, {}, data_);
  }

  // Some tiles of equally long trajectories at a time, whose derivatives take at most 256 MB where one tile's do.
  Reduced all() {
    const std::size_t tile = 32 * sizeof(double) * data_.points(components_) * components_ * (free_ + trained_.size());
    const std::size_t together = 32 * std::clamp<std::size_t>((std::size_t{1} << 28) / tile, 1, 32);
    std::vector<std::uint32_t> some;
    for (std::size_t i = 0; i < data_.trajectories; ++i) {
      some.push_back(static_cast<std::uint32_t>(i));
      const bool same = i + 1 < data_.trajectories && length(i + 1) == length(i);
      if (some.size() < together && same) continue;
      add(some);
      some.clear();
    }
    return std::move(result_);
  }

 private:
  std::size_t length(std::size_t trajectory) const { return data_.points(trajectory, components_); }

  void add(const std::vector<std::uint32_t>& some) {
    const TrajectoryData data = detail::chosen(data_, components_, rhs_->parameters(), some);
    FitOptions fit;
    fit.solve = options_;
    fit.resets = resets_;
    Problem problem = detail::make_task(rhs_, data, fit, {}, length(some.front()) - 1).problem;
    const std::span<const double> begins = free_ != 0 ? starts_ : given_states_;
    if (!begins.empty()) {
      const auto first = begins.subspan(some.front() * components_, some.size() * components_);
      problem.initial_states.assign(first.begin(), first.end());
    }
    const DirectionalDerivatives found = solve_along(problem, directions(some), options_, control_);
    const detail::DataRows rows(data, components_);
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (found.records[i].status == Status::success) add(data, rows, problem, found, i, some.front() + i);
    }
    reduce(result_.rows);
  }

  // Of starts that are free, then of trained parameters, which move given starts too.
  Directions directions(const std::vector<std::uint32_t>& some) const {
    Directions of;
    of.parameters.assign(free_, Directions::kNoParameter);
    for (const TrainedParameter& each : trained_) of.parameters.push_back(each.parameter);
    if (free_ == 0 && !given_) return of;
    const std::size_t n = components_, m = rhs_->parameters(), count = of.count();
    of.initial_states.assign(some.size() * n * count, 0.0);
    for (std::size_t i = 0; i < some.size(); ++i) {
      for (std::size_t c = 0; c < n; ++c) {
        double* const changes = of.initial_states.data() + (i * n + c) * count;
        const std::size_t start = (some[i] * n + c) * m;
        if (!is_given(c)) {
          if (free_ != 0) changes[c] = 1;
          continue;
        }
        for (std::size_t j = 0; j < trained_.size(); ++j) {
          changes[free_ + j] = by_parameter_of_starts_[start + trained_[j].parameter];
        }
      }
    }
    return of;
  }

  // A trajectory's rows [by start..., by trained parameter..., residual]. Those that its start is found from are
  // taken out: what remains below them says all about the parameters.
  void add(const TrajectoryData& data, const detail::DataRows& rows, const Problem& problem,
           const DirectionalDerivatives& found, std::size_t trajectory, std::size_t of_all) {
    const std::size_t n = components_, m = rhs_->parameters();
    // By parameters, of the start of component c.
    const auto by_parameters = [&](std::size_t c) { return by_parameter_of_starts_.data() + (of_all * n + c) * m; };
    detail::MeasuredRows measured{{free_ + trained_.size() + 1}, free_, {}};
    std::vector<double> row(measured.rows.columns);
    const double* const states = data.states.data() + rows.first(trajectory) * n;
    const auto push = [&](std::size_t at, double state) {
      row.back() = states[at] - state;
      const double root =
          std::sqrt(detail::measurement_weight(data, weights_, rows.first(trajectory) * n + at, at % n));
      for (const double number : row) measured.rows.numbers.push_back(root * number);
      measured.components.push_back(at % n);
      measured.roundings.push_back(root * smallest_effect(options_) * std::fabs(state));
    };
    for (std::size_t c = 0; c < n; ++c) {
      if (std::isnan(states[c]) || (free_ == 0 && !is_given(c))) continue;
      std::fill(row.begin(), row.end(), 0.0);
      if (!is_given(c)) row[c] = 1;
      for (std::size_t j = 0; j < trained_.size() && is_given(c); ++j) {
        row[free_ + j] = by_parameters(c)[trained_[j].parameter];
      }
      push(c, problem.initial_states[trajectory * n + c]);
    }
    for (std::size_t point = 1; point < rows.points(trajectory); ++point) {
      for (std::size_t c = 0; c < n; ++c) {
        const std::size_t at = (trajectory * (rows.points(trajectory) - 1) + point - 1) * n + c;
        if (std::isnan(states[point * n + c])) continue;
        const std::size_t count = free_ + trained_.size();
        std::copy_n(found.by_direction.begin() + static_cast<std::ptrdiff_t>(at * count), count, row.begin());
        push(point * n + c, found.states[at]);
      }
    }
    detail::take_out_known_states(measured);
    add(std::move(measured.rows));
  }

  void add(detail::Rows own) {
    for (std::size_t i = 0; i < own.count(); ++i) {
      const double residual = own.at(i, own.columns - 1);
      result_.loss += residual * residual;
      for (std::size_t j = 0; j < trained_.size(); ++j) {
        const double effect = own.at(i, free_ + j);
        result_.squares[j] += effect * effect;
      }
    }
    result_.numbers += own.count();
    result_.starts += detail::eliminate(own, free_, smallest_effect(options_), control_);
    detail::reduce(own);
    result_.rows.numbers.insert(result_.rows.numbers.end(), own.numbers.begin(), own.numbers.end());
  }

  bool is_given(std::size_t component) const { return given_ && given_->has(component); }

  Rhs rhs_;
  std::span<const TrainedParameter> trained_;
  const TrajectoryData& data_;
  Options options_;
  std::span<const double> starts_;
  const std::optional<GivenStarts>& given_;
  const std::vector<Reset>& resets_;
  std::vector<double> by_parameter_of_starts_;  // [trajectory][component][parameter]
  std::vector<double> given_states_;            // [trajectory][component], where nothing is free
  std::size_t components_, free_;
  std::span<const double> weights_;  // [component], or none
  const RunControl& control_;
  Reduced result_;
};

void check(const Rhs& rhs, std::span<const TrainedParameter> trained, std::span<const double> weights,
           const TrajectoryData& data, const UncertaintyOptions& uncertainty) {
  const std::size_t expected = rhs->weights().size() + trained.size(), n = rhs->components();
  const auto require_count = [](const char* field, std::size_t found, std::size_t expects) {
    if (found == expects) return;
    refuse_uncertainty(ErrorKind::invalid_argument, field, std::to_string(found) + " numbers", std::to_string(expects));
  };
  if (trained.empty())
    refuse_uncertainty(ErrorKind::invalid_argument, "trained", "none", "the parameters that were trained");
  require_count("weights", weights.size(), expected);
  if (!uncertainty.initial_states.empty()) {
    require_count("initial_states", uncertainty.initial_states.size(), data.trajectories * n);
  }
  if (!uncertainty.component_weights.empty()) {
    require_count("component_weights", uncertainty.component_weights.size(), n);
  }
  // Derivatives of a tile and their copy, of 32 trajectories each.
  const std::size_t directions = trained.size() + (uncertainty.initial_states.empty() ? 0 : n);
  const double bytes = 2.0 * 32 * 8 * static_cast<double>(data.points(n) * n * directions);
  if (bytes > 4e9) {
    refuse_uncertainty(ErrorKind::unsupported, "data", std::to_string(data.points(n)) + " points in a trajectory",
                       "fewer: derivatives of these would need " + rounded_text(bytes / 1e9, 3) + " GB",
                       "cut the trajectories");
  }
}

// Least squares linearised about the fit, of some of the parameters; the others stay.
struct Linearised {
  std::vector<std::vector<double>> undetermined;  // where there are any, nothing else
  std::vector<double> errors;                     // [parameter], for measurements of deviation 1
  std::vector<double> step;                       // [parameter], to the least sum of squares
  std::vector<double> correlations;               // [parameter][parameter]
};

// Columns of `kept` and the last are taken of all.
Linearised linearise(const Reduced& reduced, const std::vector<std::size_t>& kept, const std::vector<double>& values,
                     double smallest) {
  const detail::Rows& all = reduced.rows;
  const std::size_t count = kept.size();
  detail::Rows rows{count + 1};
  for (std::size_t i = 0; i < all.count(); ++i) {
    for (const std::size_t column : kept) rows.numbers.push_back(all.at(i, column));
    rows.numbers.push_back(all.at(i, all.columns - 1));
  }
  if (count + 1 != all.columns) detail::reduce(rows);
  Linearised result;
  // In units of each parameter's own effect at fixed starts: where free ones take up all of it, nothing is left.
  detail::Rows triangle{count, std::vector<double>(count * count)};
  std::vector<double> effect(count), residual(count);
  for (std::size_t i = 0; i < std::min(count, rows.count()); ++i) residual[i] = rows.at(i, count);
  for (std::size_t j = 0; j < count; ++j) {
    const double square = reduced.squares[kept[j]];
    effect[j] = square == 0 ? 1 : std::sqrt(square);
  }
  for (std::size_t i = 0; i < std::min(count, rows.count()); ++i) {
    for (std::size_t j = 0; j < count; ++j) triangle.at(i, j) = rows.at(i, j) / effect[j];
  }
  const detail::SingularValues found = detail::singular_values(std::move(triangle));
  const auto size_of = [&](std::size_t i) { return values[kept[i]] == 0 ? 1 : std::abs(values[kept[i]]); };
  for (std::size_t k = 0; k < count; ++k) {
    if (found.values[k] > smallest * std::max(1.0, found.values[0])) continue;
    std::vector<double> change(count);
    double largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      change[i] = found.right.at(i, k) / effect[i];
      if (std::abs(change[i] / size_of(i)) > std::abs(largest)) largest = change[i] / size_of(i);
    }
    for (double& each : change) each /= largest;
    result.undetermined.push_back(std::move(change));
  }
  if (!result.undetermined.empty()) return result;

  std::vector<double> step(count), covariance(count * count);
  for (std::size_t k = 0; k < count; ++k) {
    const double square = found.values[k] * found.values[k];
    double projection = 0;
    for (std::size_t i = 0; i < count; ++i) projection += found.left.at(i, k) * residual[i];
    for (std::size_t i = 0; i < count; ++i) {
      step[i] += found.right.at(i, k) * projection / square;
      for (std::size_t j = 0; j < count; ++j) {
        covariance[i * count + j] += found.right.at(i, k) * found.right.at(j, k) / square;
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const double in_effects = std::sqrt(covariance[i * count + i]);
    result.errors.push_back(in_effects / effect[i]);
    result.step.push_back(step[i] / effect[i]);
    for (std::size_t j = 0; j < count; ++j) {
      result.correlations.push_back(
          i == j ? 1 : covariance[i * count + j] / (in_effects * std::sqrt(covariance[j * count + j])));
    }
  }
  return result;
}

// Takes out of `free`, and notes, the parameters that a bound keeps from where the data would have them. Returns
// whether there are any.
bool hold_at_bounds(std::span<const TrainedParameter> trained, const Linearised& found, double size,
                    std::vector<std::size_t>& free, ParameterUncertainty& result) {
  constexpr double kAtBound = 0.01;  // standard errors
  std::vector<std::size_t> rest;
  for (std::size_t k = 0; k < free.size(); ++k) {
    const std::size_t i = free[k];
    const double near = kAtBound * size * found.errors[k], value = result.values[i], step = found.step[k];
    if (trained[i].min && value - *trained[i].min < near && step < 0) {
      result.at_bound[i] = ParameterUncertainty::Bound::min;
    } else if (trained[i].max && *trained[i].max - value < near && step > 0) {
      result.at_bound[i] = ParameterUncertainty::Bound::max;
    } else {
      rest.push_back(i);
    }
  }
  const bool any = rest.size() != free.size();
  free = std::move(rest);
  return any;
}

}  // namespace

ParameterUncertainty parameter_uncertainty(const Rhs& rhs, std::span<const TrainedParameter> trained,
                                           std::span<const double> weights, const TrajectoryData& data,
                                           const Options& options, const UncertaintyOptions& uncertainty,
                                           const RunControl& control) {
  const StandardArithmetic arithmetic;
  if (!rhs) refuse_uncertainty(ErrorKind::invalid_argument, "rhs", "none", "a right-hand side");
  check(rhs, trained, weights, data, uncertainty);
  const std::size_t count = trained.size(), own = rhs->weights().size();
  ParameterUncertainty result;
  for (std::size_t i = 0; i < count; ++i) result.values.push_back(trained[i].value(weights[own + i]));
  TrajectoryData whole = data;
  whole.parameters = detail::with_values(data.parameters, rhs->parameters(), trained, result.values);
  const bool complete = uncertainty.initial_states.empty();
  whole.validate(*rhs, complete && !uncertainty.starts ? FirstPoints::complete : FirstPoints::may_miss);
  if (uncertainty.starts) {
    uncertainty.starts->validate(*rhs);
    const char* const remedy = "say where they start, or train them";
    if (complete) detail::require_first_points(whole, rhs->components(), "data.states", remedy, uncertainty.starts);
  }
  Options solve = options;
  solve.precision = Precision::f64;
  Rhs at = own == 0 ? rhs : std::make_shared<AtWeights>(rhs, weights.first(own));
  Reduced reduced = Reduction(std::move(at), trained, whole, solve, uncertainty, control).all();
  result.numbers = reduced.numbers;
  result.at_bound.assign(count, ParameterUncertainty::Bound::none);
  const bool stated = uncertainty.error_size == ErrorSize::as_stated;
  double size = 1;  // of errors, in units of sigma
  std::size_t freedom = 0;
  const auto count_unknowns = [&](std::size_t of_parameters) {
    result.unknowns = of_parameters + reduced.starts;
    if (result.numbers <= result.unknowns) {
      refuse_uncertainty(ErrorKind::invalid_argument, "data", std::to_string(result.numbers) + " numbers to compare",
                         "more than the " + std::to_string(result.unknowns) + " unknowns");
    }
    freedom = result.numbers - result.unknowns;
    result.deviation = std::sqrt(reduced.loss / static_cast<double>(freedom));
    if (!stated) size = result.deviation;
  };
  count_unknowns(count);

  std::vector<std::size_t> free(count);  // parameters that are not held at a bound
  std::iota(free.begin(), free.end(), std::size_t{0});
  Linearised found = linearise(reduced, free, result.values, smallest_effect(options));
  if (found.undetermined.empty() && hold_at_bounds(trained, found, size, free, result)) {
    count_unknowns(free.size());
    found = linearise(reduced, free, result.values, smallest_effect(options));
  }
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  result.standard_errors.assign(count, nothing);
  result.lower = result.upper = result.standard_errors;
  result.correlations.assign(count * count, nothing);
  result.distance = nothing;
  for (const std::vector<double>& change : found.undetermined) {
    std::vector<double>& all = result.undetermined.emplace_back(count);
    for (std::size_t i = 0; i < free.size(); ++i) all[free[i]] = change[i];
  }
  if (!result.undetermined.empty()) return result;

  const double t = stated ? detail::kNormal95 : detail::student_t_95(freedom);
  result.distance = 0;
  for (std::size_t k = 0; k < free.size(); ++k) {
    const std::size_t i = free[k];
    const double error = size * found.errors[k], value = result.values[i];
    result.standard_errors[i] = error;
    result.lower[i] = value - t * error;
    result.upper[i] = value + t * error;
    if (trained[i].law == ParameterLaw::positive) {
      const bool near_zero = !(error < value);
      result.lower[i] = near_zero ? 0 : value * math::exp(-t * error / value);
      if (!near_zero) result.upper[i] = value * math::exp(t * error / value);
    }
    if (trained[i].min) result.lower[i] = std::max(result.lower[i], *trained[i].min);
    if (trained[i].max) result.upper[i] = std::min(result.upper[i], *trained[i].max);
    if (error > 0) result.distance = std::max(result.distance, std::abs(found.step[k]) / error);
    for (std::size_t l = 0; l < free.size(); ++l) {
      result.correlations[i * count + free[l]] = found.correlations[k * free.size() + l];
    }
  }
  return result;
}

}  // namespace lockstep::ode
