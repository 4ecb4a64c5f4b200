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
#include "lockstep/ode/detail/compared_rows.h"
#include "lockstep/ode/detail/fit_data.h"
#include "lockstep/ode/detail/least_squares.h"
#include "lockstep/ode/detail/linearised.h"
#include "lockstep/ode/detail/opened_parameters.h"
#include "lockstep/ode/detail/weight_columns.h"

namespace lockstep::ode {
namespace {

[[noreturn]] void refuse_uncertainty(ErrorKind kind, std::string field, std::string found, std::string expected,
                                     std::string remedy = {}) {
  throw Error(kind, {std::move(field), std::move(found), std::move(expected), std::move(remedy)});
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

// Those that a trajectory's start is found from are taken out: what remains below them says all about the others.
Reduced reduced(detail::ComparedRows compared, std::size_t let_go, std::size_t trained, const Options& options,
                const RunControl& control) {
  Reduced result;
  result.rows.columns = let_go + trained + 1;
  result.squares.resize(trained);
  const std::size_t starts = compared.starts();
  const auto take = [&](std::size_t, detail::Rows own) {
    for (std::size_t i = 0; i < own.count(); ++i) {
      const double residual = own.at(i, own.columns - 1);
      result.loss += residual * residual;
      for (std::size_t j = 0; j < trained; ++j) {
        const double effect = own.at(i, starts + let_go + j);
        result.squares[j] += effect * effect;
      }
    }
    result.numbers += own.count();
    result.starts += detail::eliminate(own, starts, detail::smallest_effect(options), control);
    detail::reduce(own);
    result.rows.numbers.insert(result.rows.numbers.end(), own.numbers.begin(), own.numbers.end());
  };
  compared.each(take, [&] { reduce(result.rows); });
  result.beyond = compared.beyond();
  result.failed = compared.failed();
  result.unresolved = compared.unresolved();
  return result;
}

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

struct Distance {
  double all = 0, resolved = 0;
};

// How far the step to the least sum of squares would lead, those held that stand at a bound and would go beyond; and
// how far of parameters that it changes by more than `smallest` of their value.
Distance distance(std::span<const TrainedParameter> trained, const LeastSquares& of, double size,
                  const detail::Linearised& found, std::vector<std::size_t> free, const ParameterUncertainty& result,
                  double smallest) {
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
  Distance largest;
  for (std::size_t k = 0; k < free.size(); ++k) {
    if (!(size * error[k] > 0) || !std::isfinite(step[k])) continue;
    const double of_parameter = std::abs(step[k]) / (size * error[k]);
    largest.all = std::max(largest.all, of_parameter);
    if (std::abs(step[k]) > smallest * std::abs(result.values[free[k]]))
      largest.resolved = std::max(largest.resolved, of_parameter);
  }
  return largest;
}

// With the weights that were let go taken out, or as trained where that leaves no more numbers than unknowns.
LeastSquares least_squares(Reduced reduced, std::size_t weights, const Options& options, const RunControl& control,
                           ParameterUncertainty& result) {
  const std::size_t count = reduced.squares.size();
  LeastSquares of{.smallest = detail::smallest_effect(options),
                  .loss = reduced.loss,
                  .numbers = reduced.numbers,
                  .others = reduced.starts};
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
  Reduced rows =
      reduced({at, trained, let_go, whole, solve, uncertainty, control}, let_go.size(), count, solve, control);
  result.unresolved = rows.unresolved;
  result.beyond = rows.beyond;
  if (rows.beyond != 0 && rows.beyond == rows.numbers) {
    refuse_uncertainty(ErrorKind::invalid_argument, "data", "no number within the threshold of Huber's loss",
                       "a fit that describes some of them", "train on, or give larger sigma or a larger threshold");
  }
  LeastSquares of = least_squares(std::move(rows), let_go.size(), options, control, result);
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
  constexpr double kFewRoundings = 0x1p-22;  // of float32, whose half unit in the last place is 2^-24
  const bool narrow = options.precision == Precision::f32;
  const double good_to = std::max(detail::smallest_effect(options), narrow ? kFewRoundings : 0);
  const Distance away = distance(trained, of, size, found, free, result, good_to);
  result.distance = away.all;
  result.resolved_distance = away.resolved;
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
