// How well data determine the parameters that a fit found: standard errors, correlations, 95 % intervals.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/ode/fit.h"
#include "lockstep/ode/trained_parameters.h"

namespace lockstep::ode {

// What is known of the size of measurement errors.
enum class ErrorSize {
  from_fit,   // their ratios: the size is what the fit leaves, SciPy's absolute_sigma=False
  as_stated,  // the data's sigma, or 1 / sqrt(component_weights), absolute_sigma=True
};

struct UncertaintyOptions {
  // [trajectory][component]: trained starts of the trajectories, which count among the unknowns where the data
  // determine them given the parameters, and the data's first points, as far as measured, among the measurements.
  // Empty: the data's first points, taken to be exact.
  std::span<const double> initial_states = {};
  std::span<const double> component_weights = {};  // as FitOptions has them
  ErrorSize error_size = ErrorSize::from_fit;
  // As FitOptions has them, but of `rhs`, without parameters trained. Their numbers among `initial_states` are no
  // unknowns, and what the data have of them is a measurement.
  std::optional<GivenStarts> starts = {};
  std::vector<Reset> resets = {};  // likewise
  // As FitOptions has it. With errors as stated the data have a sigma, or there are weights of components.
  std::optional<double> huber_threshold = {};
  // Whether the weights of nets in `rhs` stay where they are, or are unknowns as well: see ParameterUncertainty::nets.
  enum class Nets { as_trained, let_go };
  Nets nets = Nets::as_trained;
};

// Of least squares linearised about the fit (Gauss-Newton), measurement errors being independent and of one size, or of
// sizes in the ratios that the data's sigma and component_weights = 1 / sigma^2 state. With J the derivatives of all
// compared numbers, in units of their sigma, by the unknowns and s^2 = loss / (numbers - unknowns), the reduced
// chi-square, the covariance is s^2 (J^T J)^-1, or (J^T J)^-1 of errors as stated. States that nothing trained moves
// and that are met exactly are no measurements: detail/known_states.h.
//
// Of Huber's loss, with psi(r) the residuals cut at the threshold d and m the share of them within it: the estimate is
// that of least squares about pseudo-values, the fit plus psi / m, whose residuals stand in the place of r above, and
// s^2 = K^2 sum(psi^2) / m^2 / (numbers - unknowns), K = 1 + (unknowns / numbers) (1 - m) / m (Huber, Robust
// Statistics, 1981, section 7.6, formula 6.5). Errors as stated are normal of deviation 1 but for outliers, as many as
// m says: s^2 is what the formula has on average then.
struct ParameterUncertainty {
  std::vector<double> values;           // [trained parameter]
  std::vector<double> standard_errors;  // these four are NaN of parameters that the data do not determine
  // Whether a parameter has come to one of its bounds, and the data would have it beyond by more than noise explains
  // (at 95 %). It is no unknown then: the others' errors hold with it there, its own is NaN. One that stands at a bound
  // by chance, as it may where the data say little of it, stays an unknown.
  enum class Bound { none, min, max };
  std::vector<Bound> at_bound;  // [trained parameter]
  // 95 % by Student's t, or of errors as stated by the normal distribution. Of the positive law exp(x +- t error(x)),
  // x = log(value), or where the error is above the value itself 0 to value + t error; of the bounded law value +- t
  // error, cut at the bounds.
  std::vector<double> lower, upper;
  std::vector<double> correlations;  // [trained parameter][trained parameter]
  double deviation = 0;              // s: of the measurements, in units of their sigma where weights state it
  std::size_t numbers = 0;           // compared, of trajectories that were solved to their end
  std::size_t beyond = 0;            // numbers beyond the threshold of Huber's loss
  std::size_t unknowns = 0;          // trained parameters, starts and weights, as far as the data determine them
  // How far a Gauss-Newton step would lead: its largest part in standard errors. Well below 1 at an optimum; more says
  // that training ended before it, or had another loss.
  double distance = 0;
  // The same of parameters that the step changes by more than solves are good to: by the relative tolerance of their
  // value, 1e-10 with fixed steps, and a few roundings of float32 where that is the precision. Data without errors may
  // well be met to less than that, and errors that these leave be smaller still.
  double resolved_distance = 0;
  // Of the weights of nets, where `rhs` has any: whether they were unknowns, which UncertaintyOptions asks for. Errors
  // are wrong of parameters whose part a net can take over, if it stays as it was trained: these differ by what the net
  // makes up for. Nets stay as they are all the same that have more than 256 weights, or more than suits the numbers;
  // whose weights and other unknowns are as many as the numbers; and where a solve fails with a weight changed by a
  // thousandth. Combinations of weights whose effect is below 1e-4 of each one's own are no unknowns.
  enum class Nets { none, as_trained, let_go };
  Nets nets = Nets::none;
  // [trained parameter], of let_go: the error with nets as trained over the one there is, which is how much of its
  // effect on the data nets cannot imitate. 0: nothing, and below 1e-3 it counts as that.
  std::vector<double> left_by_nets;
  // Changes of the parameters, [direction][trained parameter], that leave all compared numbers as they are, the largest
  // of them 1 relative to its value: nothing where the data determine each parameter. Those that none of them changes
  // are determined, and have their errors. A direction counts as such where
  // its effect is below 1e-10 of the largest, parameters taken in units of their own effects at fixed starts, or below
  // the relative tolerance of adaptive solves, which is what they are good to. Free starts and nets go along with it.
  std::vector<std::vector<double>> undetermined;
  std::optional<UnresolvedDerivatives> unresolved;  // found: derivatives are wrong, and all above with them
};

// `rhs` without the parameters trained: what train_parameters() was given with `trained`. `weights` are those of fit():
// the right-hand side's, then a number for each parameter. Solves in float64, whatever the precision of the fit. Throws
// Error (invalid_argument) where there are no more numbers than unknowns, (unsupported) as solve_with_sensitivities()
// and for data whose derivatives need more than 4 GB, (cancelled) when control.cancel is requested.
ParameterUncertainty parameter_uncertainty(const Rhs& rhs, std::span<const TrainedParameter> trained,
                                           std::span<const double> weights, const TrajectoryData& data,
                                           const Options& options, const UncertaintyOptions& uncertainty = {},
                                           const RunControl& control = {});

}  // namespace lockstep::ode
