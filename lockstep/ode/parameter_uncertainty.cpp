#include "lockstep/ode/parameter_uncertainty.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/kernels/math/math.h"
#include "lockstep/ode/detail/data_rows.h"
#include "lockstep/ode/detail/fit_data.h"
#include "lockstep/ode/detail/known_states.h"
#include "lockstep/ode/detail/least_squares.h"
#include "lockstep/ode/detail/linearised.h"
#include "lockstep/ode/detail/opened_parameters.h"
#include "lockstep/ode/detail/start_solver.h"
#include "lockstep/ode/detail/weight_columns.h"
#include "lockstep/ode/huber.h"
#include "lockstep/ode/sensitivity.h"

namespace lockstep::ode {
namespace {

[[noreturn]] void refuse_uncertainty(ErrorKind kind, std::string field, std::string found, std::string expected,
                                     std::string remedy = {}) {
  throw Error(kind, {std::move(field), std::move(found), std::move(expected), std::move(remedy)});
}

// What counts as none, relative to the effect that it is a part of.
double smallest_effect(const Options& options) {
  return options.control == StepControl::fixed ? 1e-10 : std::max(1e-10, options.rtol);
}

// What nets leave of a parameter's effect counts as none below this: their columns are good to a tenth of it.
constexpr double kLeftByNets = 10 * detail::kColumnsAreGoodTo;

// Rows [by weight of nets that are let go..., by trained parameter..., residual] that stand for all of the data, and
// what was counted on the way.
struct Reduced {
  detail::Rows rows;
  std::vector<double> squares;  // [trained parameter], of derivatives at fixed starts and nets
  double loss = 0;
  std::size_t numbers = 0, beyond = 0;
  std::size_t starts = 0;               // those that the data determine, given the parameters
  bool failed = false;                  // some solve with other weights: their columns say nothing
  std::optional<UnresolvedDerivatives> unresolved;
};

class Reduction {
 public:
  // `let_go`: weights of nets that are unknowns.
  Reduction(Rhs rhs, std::span<const TrainedParameter> trained, std::span<const double> let_go,
            const TrajectoryData& data, Options options, const UncertaintyOptions& uncertainty,
            const RunControl& control)
      : rhs_(std::move(rhs)),
        let_go_(let_go),
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
    if (uncertainty.huber_threshold)
      thresholds_ = huber_thresholds(data_, components_, weights_, *uncertainty.huber_threshold);
    result_.rows.columns = let_go.size() + trained.size() + 1;
    result_.squares.resize(trained.size());
    if (!given_) return;
    by_parameter_of_starts_ = detail::starts_by_parameter(*given_, data_);
    if (starts_.empty()) given_states_ = start_states(*given_, {}, data_);
  }

  // Some tiles of equally long trajectories at a time, whose derivatives take at most 256 MB where one tile's do.
  Reduced all() {
    const std::size_t tile =
        32 * sizeof(double) * data_.points(components_) * components_ * (free_ + let_go_.size() + trained_.size());
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
    if (found.unresolved && !result_.unresolved) {
      result_.unresolved = found.unresolved;
      result_.unresolved->trajectory += some.front();
    }
    const detail::DataRows rows(data, components_);
    by_weights_.assign(found.states.size() * let_go_.size(), 0.0);
    if (!let_go_.empty() && !result_.failed) {
      auto columns = detail::weight_columns(problem, let_go_, options_, control_);
      result_.failed = !columns.has_value();
      if (columns) by_weights_ = *std::move(columns);
    }
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

  // A trajectory's rows [by start..., by weight..., by trained parameter..., residual]. Those that its start is found
  // from are taken out: what remains below them says all about the others.
  void add(const TrajectoryData& data, const detail::DataRows& rows, const Problem& problem,
           const DirectionalDerivatives& found, std::size_t trajectory, std::size_t of_all) {
    const std::size_t n = components_, m = rhs_->parameters(), first_trained = free_ + let_go_.size();
    // By parameters, of the start of component c.
    const auto by_parameters = [&](std::size_t c) { return by_parameter_of_starts_.data() + (of_all * n + c) * m; };
    detail::MeasuredRows measured{{first_trained + trained_.size() + 1}, free_, {}};
    std::vector<double> row(measured.rows.columns);
    const double* const states = data.states.data() + rows.first(trajectory) * n;
    const auto push = [&](std::size_t at, double state) {
      const std::size_t of_data = rows.first(trajectory) * n + at;
      const double threshold = detail::measurement_threshold(data, thresholds_, of_data, at % n);
      const double residual = states[at] - state;
      row.back() = std::clamp(residual, -threshold, threshold);
      if (row.back() != residual) ++result_.beyond;
      const double root = std::sqrt(detail::measurement_weight(data, weights_, of_data, at % n));
      for (const double number : row) measured.rows.numbers.push_back(root * number);
      measured.components.push_back(at % n);
      measured.roundings.push_back(root * smallest_effect(options_) * std::fabs(state));
    };
    for (std::size_t c = 0; c < n; ++c) {
      if (std::isnan(states[c]) || (free_ == 0 && !is_given(c))) continue;
      std::fill(row.begin(), row.end(), 0.0);
      if (!is_given(c)) row[c] = 1;
      for (std::size_t j = 0; j < trained_.size() && is_given(c); ++j) {
        row[first_trained + j] = by_parameters(c)[trained_[j].parameter];
      }
      push(c, problem.initial_states[trajectory * n + c]);
    }
    for (std::size_t point = 1; point < rows.points(trajectory); ++point) {
      for (std::size_t c = 0; c < n; ++c) {
        const std::size_t at = (trajectory * (rows.points(trajectory) - 1) + point - 1) * n + c;
        if (std::isnan(states[point * n + c])) continue;
        const double* const by = found.by_direction.data() + at * (free_ + trained_.size());
        std::copy_n(by, free_, row.begin());
        std::copy_n(by_weights_.data() + at * let_go_.size(), let_go_.size(), row.data() + free_);
        std::copy_n(by + free_, trained_.size(), row.data() + first_trained);
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
        const double effect = own.at(i, free_ + let_go_.size() + j);
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
  std::span<const double> let_go_;
  std::span<const TrainedParameter> trained_;
  const TrajectoryData& data_;
  Options options_;
  std::span<const double> starts_;
  const std::optional<GivenStarts>& given_;
  const std::vector<Reset>& resets_;
  std::vector<double> by_parameter_of_starts_;  // [trajectory][component][parameter]
  std::vector<double> given_states_;            // [trajectory][component], where nothing is free
  std::vector<double> by_weights_;              // detail::weight_columns() of some trajectories
  std::size_t components_, free_;
  std::span<const double> weights_;  // [component], or none
  std::vector<double> thresholds_;   // likewise, of residuals
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
  if (const auto& threshold = uncertainty.huber_threshold;
      threshold && !(*threshold > 0 && std::isfinite(*threshold))) {
    refuse_uncertainty(ErrorKind::invalid_argument, "huber_threshold", number_text(*threshold),
                       "a finite number greater than 0", "give none for the sum of squares");
  }
  if (uncertainty.huber_threshold && uncertainty.error_size == ErrorSize::as_stated && data.sigma.empty() &&
      uncertainty.component_weights.empty()) {
    refuse_uncertainty(ErrorKind::invalid_argument, "huber_threshold", "errors as stated without sigma and weights",
                       "sigma, or component_weights, in units of which the threshold is");
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

// How many weights of nets may be unknowns: two solves each, and numbers by their square to eliminate them.
bool may_be_let_go(std::size_t weights, const TrajectoryData& data) {
  constexpr std::size_t kMostWeights = 256;
  constexpr double kMostWork = 5e9;
  const auto squared = static_cast<double>(weights * weights);
  return weights <= kMostWeights && static_cast<double>(data.states.size()) * squared <= kMostWork;
}

// The least squares that a report is made of.
struct LeastSquares {
  detail::Rows rows;            // [by trained parameter..., residual]
  std::vector<double> effects;  // [trained parameter], of each by itself
  double smallest = 0;          // what of an effect counts as none
  double loss = 0;
  std::size_t numbers = 0, others = 0;  // others: unknowns that are no parameters
  bool stated = false;                  // errors are of the size that sigma says
  double threshold = std::numeric_limits<double>::infinity();  // of Huber's loss, in deviations
  double within = 1;                                           // the share of the numbers that are

  std::size_t freedom(std::size_t parameters) const { return numbers - others - parameters; }
  // Huber's K. psi' is 1 within the threshold and 0 beyond: its mean is m, its variance m (1 - m).
  double correction(std::size_t parameters) const {
    return 1 + static_cast<double>(others + parameters) / static_cast<double>(numbers) * (1 - within) / within;
  }
  double deviation(std::size_t parameters) const { return std::sqrt(variance(loss, parameters)); }
  double variance(double squares, std::size_t parameters) const {
    return correction(parameters) * correction(parameters) * (squares / static_cast<double>(freedom(parameters)));
  }
  // Of errors: what the covariance is to be multiplied by, squared.
  double size(std::size_t parameters) const {
    return stated ? correction(parameters) * size_as_stated() : deviation(parameters);
  }
  // Root of E psi^2 / m^2 where a share e of the numbers is far off and the others err normally with deviation 1. P of
  // these are within the threshold d, P = erf(d / sqrt 2), so that m = (1 - e) P, and
  // E psi^2 = (1 - e) (P - 2 d phi(d) + d^2 (1 - P)) + e d^2, phi the normal density (by parts, of x^2 phi = -x phi').
  // m of P or more, by chance, says that there are none. Without Huber's loss 1.
  double size_as_stated() const {
    if (std::isinf(threshold)) return 1;
    constexpr double kRootOfHalf = 0.7071067811865476, kNormalAtZero = 0.3989422804014327;
    const double d = threshold, square = d * d;
    const double inside = math::erf(d * kRootOfHalf), density = kNormalAtZero * math::exp(-0.5 * square);
    const double good = std::min(1.0, within / inside);
    const double mean_square = good * (inside - 2 * d * density + square * (1 - inside)) + (1 - good) * square;
    return std::sqrt(mean_square) / (good * inside);
  }
  double student(std::size_t parameters) const {
    return stated ? detail::kNormal95 : detail::student_t_95(freedom(parameters));
  }
};

// The bound that keeps a parameter from where the data would have it, if there is one that it has come to: nearer than
// a hundredth of the error it would have without bounds, and than a thousandth of the width between them, or of the way
// from its start to the only one. (An optimiser comes ever nearer, and never gets there. The error alone would do where
// it is small; where it is large all that there is would be near.)
ParameterUncertainty::Bound bound_ahead(const TrainedParameter& of, double value, double error, double step) {
  constexpr double kOfError = 0.01, kOfWidth = 1e-3;
  const auto is_at = [&](double bound, const std::optional<double>& other) {
    const double width = std::abs(other.value_or(of.start) - bound), way = std::abs(value - bound);
    return way < kOfError * error && way <= kOfWidth * width;
  };
  if (of.min && step < 0 && is_at(*of.min, of.max)) return ParameterUncertainty::Bound::min;
  if (of.max && step > 0 && is_at(*of.max, of.min)) return ParameterUncertainty::Bound::max;
  return ParameterUncertainty::Bound::none;
}

// Takes parameters out of `free`, and notes them, that a bound keeps from where the data would have them, as far as
// noise does not explain that: one after the other, the plainest first. Returns what the others are found to be.
//
// Without the bound the sum of squares would be less by g = (step / error)^2, error for measurements of deviation 1, as
// that is how it rises along a parameter when all others follow. Where the truth lies within the bounds g is at most
// sigma^2 chi^2 of one degree of freedom: the estimate is beyond by chance. It is taken for more where g exceeds the
// 95 % of that, or with the size of errors from what the free fit leaves, of Student's t^2. Else the parameter stays an
// unknown: its error, and what it adds to the others', is what it would be without bounds.
detail::Linearised hold_at_bounds(std::span<const TrainedParameter> trained, const LeastSquares& of,
                                  std::vector<std::size_t>& free, ParameterUncertainty& result) {
  for (;;) {
    detail::Linearised found = detail::linearise(of.rows, of.effects, free, result.values, of.smallest);
    const double size = of.size(found.rank), t = of.student(found.rank);
    double plainest = 0;
    std::size_t place = free.size();
    auto held = ParameterUncertainty::Bound::none;
    for (std::size_t k = 0; k < free.size(); ++k) {
      const std::size_t i = free[k];
      const double gain = found.step[k] * found.step[k] / (found.errors[k] * found.errors[k]);
      const double noise = of.stated ? size * size : of.variance(std::max(0.0, of.loss - gain), found.rank);
      const auto bound = bound_ahead(trained[i], result.values[i], size * found.errors[k], found.step[k]);
      if (bound == ParameterUncertainty::Bound::none || !(gain > t * t * noise) || !(gain > plainest)) continue;
      plainest = gain;
      place = k;
      held = bound;
    }
    if (place == free.size()) return found;
    result.at_bound[free[place]] = held;
    free.erase(free.begin() + static_cast<std::ptrdiff_t>(place));
  }
}

// How far the step to the least sum of squares would lead, those held that stand at a bound and would go beyond.
double distance(std::span<const TrainedParameter> trained, const LeastSquares& of, double size,
                const detail::Linearised& found, std::vector<std::size_t> free, const ParameterUncertainty& result) {
  std::vector<double> step = found.step, error = found.errors;
  for (std::size_t k = free.size(); k-- > 0;) {
    const auto bound = bound_ahead(trained[free[k]], result.values[free[k]], size * error[k], step[k]);
    if (bound == ParameterUncertainty::Bound::none) continue;
    free.erase(free.begin() + static_cast<std::ptrdiff_t>(k));
    error.erase(error.begin() + static_cast<std::ptrdiff_t>(k));
  }
  if (free.size() != step.size()) {
    step = detail::linearise(of.rows, of.effects, free, result.values, of.smallest).step;
  }
  double largest = 0;
  for (std::size_t k = 0; k < free.size(); ++k) {
    if (size * error[k] > 0 && std::isfinite(step[k]))
      largest = std::max(largest, std::abs(step[k]) / (size * error[k]));
  }
  return largest;
}

// With the weights that were let go taken out, or as trained where that leaves no more numbers than unknowns.
LeastSquares least_squares(Reduced reduced, std::size_t weights, const Options& options, const RunControl& control,
                           ParameterUncertainty& result) {
  const std::size_t count = reduced.squares.size();
  LeastSquares of{
      .smallest = smallest_effect(options), .loss = reduced.loss, .numbers = reduced.numbers, .others = reduced.starts};
  if (reduced.beyond != 0) {
    of.within = 1 - static_cast<double>(reduced.beyond) / static_cast<double>(reduced.numbers);
    of.loss /= of.within * of.within;
    for (std::size_t i = 0; i < reduced.rows.count(); ++i) reduced.rows.at(i, reduced.rows.columns - 1) /= of.within;
  }
  for (const double square : reduced.squares) of.effects.push_back(std::sqrt(square));
  detail::Rows without{count + 1};
  for (std::size_t i = 0; i < reduced.rows.count(); ++i) {
    for (std::size_t j = weights; j < reduced.rows.columns; ++j) without.numbers.push_back(reduced.rows.at(i, j));
  }
  if (weights != 0) {
    const std::size_t found =
        reduced.failed ? 0 : detail::eliminate(reduced.rows, weights, detail::kColumnsAreGoodTo, control);
    if (found != 0 && of.numbers > of.others + found + count) {
      result.nets = ParameterUncertainty::Nets::let_go;
      std::vector<std::size_t> all(count);
      std::iota(all.begin(), all.end(), std::size_t{0});
      const detail::Linearised given = detail::linearise(without, of.effects, all, result.values, of.smallest);
      of.smallest = std::max(of.smallest, kLeftByNets);
      of.others += found;
      const detail::Linearised beside = detail::linearise(reduced.rows, of.effects, all, result.values, of.smallest);
      for (std::size_t i = 0; i < count; ++i) {
        const double share = std::isnan(beside.errors[i]) ? 0 : given.errors[i] / beside.errors[i];
        result.left_by_nets.push_back(std::isnan(given.errors[i]) ? given.errors[i] : std::min(1.0, share));
      }
      without = std::move(reduced.rows);
    }
  }
  detail::reduce(without);
  of.rows = std::move(without);
  return of;
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
  const Rhs at = own == 0 ? rhs : detail::at_weights(rhs, weights.first(own));
  const bool lets_go = own != 0 && uncertainty.nets == UncertaintyOptions::Nets::let_go && may_be_let_go(own, data);
  const std::span<const double> let_go = weights.first(lets_go ? own : 0);
  if (own != 0) result.nets = ParameterUncertainty::Nets::as_trained;
  Reduced reduced = Reduction(at, trained, let_go, whole, solve, uncertainty, control).all();
  result.unresolved = reduced.unresolved;
  result.beyond = reduced.beyond;
  if (reduced.beyond != 0 && reduced.beyond == reduced.numbers) {
    refuse_uncertainty(ErrorKind::invalid_argument, "data", "no number within the threshold of Huber's loss",
                       "a fit that describes some of them", "train on, or give larger sigma or a larger threshold");
  }
  LeastSquares of = least_squares(std::move(reduced), let_go.size(), options, control, result);
  of.stated = uncertainty.error_size == ErrorSize::as_stated;
  if (uncertainty.huber_threshold) of.threshold = *uncertainty.huber_threshold;
  result.numbers = of.numbers;
  result.at_bound.assign(count, ParameterUncertainty::Bound::none);
  if (of.numbers <= of.others + count) {
    refuse_uncertainty(ErrorKind::invalid_argument, "data", std::to_string(of.numbers) + " numbers to compare",
                       "more than the " + std::to_string(of.others + count) + " unknowns");
  }
  std::vector<std::size_t> free(count);  // parameters that are not held at a bound
  std::iota(free.begin(), free.end(), std::size_t{0});
  const detail::Linearised found = hold_at_bounds(trained, of, free, result);
  result.unknowns = of.others + found.rank;
  result.deviation = of.deviation(found.rank);
  const double size = of.size(found.rank);  // of errors, in units of sigma
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  result.standard_errors.assign(count, nothing);
  result.lower = result.upper = result.standard_errors;
  result.correlations.assign(count * count, nothing);
  for (const std::vector<double>& change : found.undetermined) {
    std::vector<double>& all = result.undetermined.emplace_back(count);
    for (std::size_t i = 0; i < free.size(); ++i) all[free[i]] = change[i];
  }
  result.distance = distance(trained, of, size, found, free, result);
  const double t = of.student(found.rank);
  for (std::size_t k = 0; k < free.size(); ++k) {
    const std::size_t i = free[k];
    const double error = size * found.errors[k], value = result.values[i];
    if (std::isnan(error)) continue;
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
    for (std::size_t l = 0; l < free.size(); ++l) {
      result.correlations[i * count + free[l]] = found.correlations[k * free.size() + l];
    }
  }
  return result;
}

}  // namespace lockstep::ode
