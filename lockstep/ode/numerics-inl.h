// The arithmetic of one step, over a lane type: what every engine must do, bit for bit (docs/numerics.md).
// No include guard: included once a target inside its namespace, where log2<L> and exp2<L> are known, with
// LOCKSTEP_LANE_FN defined, and once for scalars (reference.h). LD names a lane type of float64, LT one of the state.

// RMS error norm (Hairer, Norsett & Wanner I, II.4, eq. 4.11), as a sum to which each component adds in turn:
// q = error / (atol + rtol max(|y0|, |y1|)), sum = fma(q, q, sum). Starting from zero, components ascending.
template <class L>
LOCKSTEP_LANE_FN typename L::V error_scale(typename L::V y0, typename L::V y1, typename L::V rtol, typename L::V atol) {
  return L::fma(rtol, L::max(L::abs(y0), L::abs(y1)), atol);
}
template <class L>
LOCKSTEP_LANE_FN typename L::V add_square(typename L::V sum, typename L::V error, typename L::V scale) {
  const typename L::V q = L::div(error, scale);
  return L::fma(q, q, sum);
}

// DOP853 has two estimates, a fifth- and a third-order one, whose sums of squares combine to
// |e5|^4 / (|e5|^2 + 0.01 |e3|^2), again the square of a norm (Hairer, Norsett & Wanner I, II.10, the code DOP853).
template <class LD>
LOCKSTEP_LANE_FN typename LD::V combine_errors(typename LD::V square5, typename LD::V square3) {
  const typename LD::V denominator = LD::fma(LD::set(0.01), square3, square5);
  const typename LD::V ratio = LD::select(LD::eq(denominator, LD::zero()), LD::zero(), LD::div(square5, denominator));
  return LD::mul(square5, ratio);
}

// Of two estimates, as sums of squares: the larger one, and the second where it is NaN. (The first is NaN with the new
// state alone, which has a check of its own.)
template <class L>
LOCKSTEP_LANE_FN typename L::V larger_error(typename L::V first, typename L::V second) {
  return L::select(L::le(second, first), first, second);
}

// Zero while every component of the new state is finite, NaN after one that is not.
template <class L>
LOCKSTEP_LANE_FN typename L::V add_finite_check(typename L::V sum, typename L::V y1) {
  return L::fma(y1, L::zero(), sum);
}

// The first step that heads for the end: where it would start within 1 % of the end time it lands on it. Its size is
// the difference of the two times, not what was asked for: else the state would advance by h and time by fl(t + h) - t,
// and at large times the two drift apart. Where time cannot resolve the step (it grows tenfold then) h is what was
// asked for.
template <class LD>
struct StepProposal {
  typename LD::V h;      // signed
  typename LD::V t_new;  // exactly the end time when `last`
  typename LD::M last;
};
template <class LD>
LOCKSTEP_LANE_FN StepProposal<LD> propose_step(typename LD::V t, typename LD::V t_end, typename LD::V h,
                                               typename LD::V max_step) {
  const typename LD::V left = LD::sub(t_end, t);
  const typename LD::V size = LD::min(LD::abs(h), max_step);
  const typename LD::M last = LD::le(LD::abs(left), LD::mul(size, LD::set(1.01)));
  const typename LD::V asked = LD::select(last, left, LD::copysign(size, left));
  const typename LD::V t_new = LD::select(last, t_end, LD::add(t, asked));
  const typename LD::V taken = LD::sub(t_new, t);
  return {LD::select(LD::eq(taken, LD::zero()), asked, taken), t_new, last};
}

// The same on the way to a stop, where the step after it begins anew: from less than two steps before it, two equal
// ones lead there rather than a whole one and a rest.
template <class LD>
LOCKSTEP_LANE_FN StepProposal<LD> propose_step_to_stop(typename LD::V t, typename LD::V limit, typename LD::V h,
                                                       typename LD::V max_step) {
  const typename LD::V left = LD::abs(LD::sub(limit, t));
  const typename LD::V size = LD::min(LD::abs(h), max_step);
  const typename LD::M two = LD::both(LD::lt(LD::mul(size, LD::set(1.01)), left), LD::le(left, LD::add(size, size)));
  return propose_step<LD>(t, limit, LD::select(two, LD::mul(left, LD::set(0.5)), size), LD::set(__builtin_inf()));
}

// Of an adaptive step, its limit being the span's end where there are no stops.
template <class LD>
LOCKSTEP_LANE_FN StepProposal<LD> propose_adaptive_step(bool has_stops, typename LD::V t, typename LD::V limit,
                                                        typename LD::V h, typename LD::V max_step) {
  return has_stops ? propose_step_to_stop<LD>(t, limit, h, max_step) : propose_step<LD>(t, limit, h, max_step);
}

// Step `index` (from 0) of `count` equal steps: times by one fma from the start, never by accumulation.
template <class LD>
LOCKSTEP_LANE_FN StepProposal<LD> propose_fixed_step(typename LD::V t_start, typename LD::V t_end, typename LD::V dt,
                                                     typename LD::V last_dt, typename LD::V index,
                                                     typename LD::V count) {
  const typename LD::V next = LD::add(index, LD::set(1.0));
  const typename LD::M last = LD::le(count, next);
  return {LD::select(last, last_dt, dt), LD::select(last, t_end, LD::fma(next, dt, t_start)), last};
}

// PI step size control (Gustafsson 1991; Hairer, Norsett & Wanner II, IV.2): h_new = h 0.8 err^-beta1 err_old^beta2,
// the factor within [1/5, 10], no growth right after a rejection. err is the norm, given as its square; a norm that is
// not finite counts as a huge one. Powers go through log2 and exp2 in float32: the factor needs no more. The constants
// were chosen by measurement (docs/numerics.md, "Why these constants").
struct ControlExponents {
  float beta1, beta2;
};
// The estimate goes as h to this power. DOP853's two, h^6 and h^4, combine to h^(2 6 - 4).
LOCKSTEP_HOST_DEVICE constexpr int error_power(int error_order, bool has_error3) {
  return error_order + (has_error3 ? 3 : 1);
}
LOCKSTEP_HOST_DEVICE constexpr ControlExponents control_exponents(int power) {
  return {0.85f / static_cast<float>(power), 0.2f / static_cast<float>(power)};
}
// The memory before the first step: an error at the tolerance, which neither holds growth back nor adds to it.
inline constexpr double kFirstLogError = 0;
template <class LD>
struct StepDecision {
  typename LD::M accept;
  typename LD::V h_next;
  typename LD::V log_error;  // log2 of the norm (at least 1e-2), kept for the next step where accepted
};
template <class LD>
LOCKSTEP_LANE_FN StepDecision<LD> decide_step(typename LD::V error_squared, typename LD::V h,
                                              typename LD::V log_error_old,
                                              typename Float32Lane<LD>::L::M after_rejection, float beta1,
                                              float beta2) {
  using F = typename Float32Lane<LD>::L;
  const typename LD::M accept = LD::le(error_squared, LD::set(1.0));
  const typename F::M accepted = Float32Lane<LD>::mask(accept);
  const typename LD::V bounded = LD::max(LD::min(LD::set(1e30), error_squared), LD::set(1e-30));  // NaN becomes 1e30
  const typename F::V log_error = F::mul(F::set(0.5f), log2_of_normal<F>(Float32Lane<LD>::down(bounded)));
  const typename LD::V log_kept = LD::max(Float32Lane<LD>::up(log_error), LD::set(-6.643856189774724));  // log2 1e-2
  const typename F::V base = F::nfma(F::set(beta1), log_error, F::set(-0.32192809488736235f));           // log2 0.8
  const typename F::V with_memory = F::fma(F::set(beta2), Float32Lane<LD>::down(log_error_old), base);
  // No growth where this attempt or the one before was rejected. The exponent is bounded before it is raised:
  // a factor within [1/5, 10] whatever the error.
  const typename F::M may_grow = F::both(accepted, F::negate(after_rejection));
  const typename F::V exponent = F::select(accepted, with_memory, base);
  const typename F::V most = F::select(may_grow, F::set(static_cast<float>(3.321928094887362)), F::zero());  // log2 10
  const typename F::V least = F::set(static_cast<float>(-2.321928094887362));                                // log2 1/5
  const typename F::V factor = exp2_in_normal_range<F>(F::min(F::max(exponent, least), most));
  return {accept, LD::mul(h, Float32Lane<LD>::up(factor)), log_kept};
}

// Below this a step is given up: at the spacing of times at t, four to eight of them, or where the whole span would
// take 2^90 such steps. What happens early in a long span may take steps far below the spacing of times at its end.
template <class LD>
LOCKSTEP_LANE_FN typename LD::V smallest_step(typename LD::V t, typename LD::V t_end) {
  return LD::mul(LD::set(0x1p-50), LD::max(LD::abs(t), LD::mul(LD::set(0x1p-40), LD::abs(t_end))));
}

// Whether the middle of a step is looked at: not in less than 2^-30 of the time. What decays within such a step could
// not be followed in all cases, times being too coarse for it, and is passed over.
template <class LD>
LOCKSTEP_LANE_FN typename LD::M has_a_middle(typename LD::V h, typename LD::V t, typename LD::V t_end) {
  return LD::lt(LD::mul(LD::set(0x1p20), smallest_step<LD>(t, t_end)), LD::abs(h));
}

// Of a step that all share: at the spacing of times at the span's end, so that who asks for less is left behind soon.
template <class LD>
LOCKSTEP_LANE_FN typename LD::V smallest_shared_step(typename LD::V t, typename LD::V t_end) {
  return LD::mul(LD::set(0x1p-50), LD::max(LD::abs(t), LD::abs(t_end)));
}

// First step size (Hairer, Norsett & Wanner I, II.4, "Starting Step Size"), from mean squares of the scaled norms:
// d0 of y0, d1 of f0. Part (b): the size of the explicit Euler trial step.
template <class LD>
LOCKSTEP_LANE_FN typename LD::V trial_step_size(typename LD::V d0_squared, typename LD::V d1_squared,
                                                typename LD::V span) {
  const typename LD::V small = LD::set(1e-10);
  const typename LD::V ratio = LD::mul(LD::set(0.01), LD::sqrt(LD::div(d0_squared, d1_squared)));
  const typename LD::M usable = LD::both(LD::le(small, d0_squared), LD::le(small, d1_squared));
  return LD::min(LD::abs(span), LD::select(usable, ratio, LD::set(1e-6)));
}
// How many trial steps the first step may be: 100 there. So many are 1 / k where a decay of rate k is all there is,
// where the estimate of bs3, h k = z makes it z^3 (1 - z) / 48, vanishes though the step errs by 3 %. No other pair's
// does.
LOCKSTEP_HOST_DEVICE constexpr double first_step_growth(int error_order, int stages) {
  return error_order == 2 && stages == 4 ? 50 : 100;
}
// Parts (d) to (f): h0 is the trial step, d2_squared the mean square of the scaled difference f1 - f0, `exponent`
// 1 / error_power. At most `growth` trial steps. Returns the size, not the sign.
template <class LD>
LOCKSTEP_LANE_FN typename LD::V first_step_size(typename LD::V h0, typename LD::V d1_squared, typename LD::V d2_squared,
                                                typename LD::V span, typename LD::V max_step, float exponent,
                                                double growth) {
  using F = typename Float32Lane<LD>::L;
  const typename LD::V d2 = LD::div(LD::sqrt(d2_squared), h0);
  const typename LD::V steepest = LD::max(LD::sqrt(d1_squared), d2);  // a d2 that is NaN leaves d1
  const typename LD::V bounded = LD::min(LD::max(LD::div(LD::set(0.01), steepest), LD::set(1e-30)), LD::set(1e30));
  const typename LD::V power =
      Float32Lane<LD>::up(exp2<F>(F::mul(F::set(exponent), log2<F>(Float32Lane<LD>::down(bounded)))));
  const typename LD::V flat = LD::max(LD::set(1e-6), LD::mul(h0, LD::set(1e-3)));
  const typename LD::V h1 = LD::select(LD::le(steepest, LD::set(1e-15)), flat, power);
  return LD::min(LD::min(LD::min(LD::mul(LD::set(growth), h0), h1), LD::abs(span)), max_step);
}

// An event is bisected on the interpolant to 2^-52 of the step: the resolution of theta near 1.
inline constexpr int kEventBisections = 52;

// The state at the middle of a step, without stages of an interpolant's own: of the cubic through states and
// derivatives at the step's ends (Hairer, Norsett & Wanner I, II.6, eq. 6.7). `eighth` is h / 8.
template <class L>
LOCKSTEP_LANE_FN typename L::V middle_state(typename L::V y0, typename L::V y1, typename L::V k0, typename L::V k1,
                                            typename L::V eighth) {
  return L::fma(eighth, L::sub(k0, k1), L::mul(L::set(0.5), L::add(y0, y1)));
}

// Where save time lies within a step: 1 exactly at its end, so that the saved state is then y1 itself.
template <class LD>
LOCKSTEP_LANE_FN typename LD::V step_fraction(typename LD::V save_time, typename LD::V t, typename LD::V t_new,
                                              typename LD::V h) {
  return LD::select(LD::eq(save_time, t_new), LD::set(1.0), LD::div(LD::sub(save_time, t), h));
}

// One row of the interpolant at theta, in float64: sum over m of p[m] theta^(m + 1), by Horner's rule.
template <class LD>
LOCKSTEP_LANE_FN typename LD::V interpolant_weight(const double* p, int degree, typename LD::V theta) {
  typename LD::V weight = LD::set(p[degree - 1]);
  for (int m = degree - 2; m >= 0; --m) weight = LD::fma(weight, theta, LD::set(p[m]));
  return LD::mul(weight, theta);
}

// Its derivative by theta: sum over m of (m + 1) p[m] theta^m.
template <class LD>
LOCKSTEP_LANE_FN typename LD::V interpolant_slope(const double* p, int degree, typename LD::V theta) {
  typename LD::V slope = LD::set(degree * p[degree - 1]);
  for (int m = degree - 2; m >= 0; --m) slope = LD::fma(slope, theta, LD::set((m + 1) * p[m]));
  return slope;
}
