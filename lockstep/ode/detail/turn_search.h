// Where within a step a function strikes that does not between the step's ends: it turned on its way and came back.
#pragma once

#include "lockstep/kernels/lane/scalar_lane.h"

#ifdef __CUDACC__
#define LOCKSTEP_HOST_DEVICE_CALL __host__ __device__ __noinline__  // seldom called: its caller's registers stay free
#else
#define LOCKSTEP_HOST_DEVICE_CALL inline
#endif

namespace lockstep::ode::detail {

// Looks where a parabola is least on the side of the ends: one through the ends and `middle`, which stands for the
// value at theta = 1/2, then through what the looks found (successive parabolic interpolation: Brent, Algorithms for
// Minimization without Derivatives, 1973, section 5.4). strikes(before, after) is the same at every call.
template <class T>
class TurnSearch {
  using D = ScalarLane<double>;

 public:
  static constexpr int kLooks = 4;

  // False only where there is nothing to look at: the values are on one side, and the parabola is not least within.
  static LOCKSTEP_HOST_DEVICE bool comes_near(T before, T middle, T after) {
    const double g0 = before, gm = middle, g1 = after;
    const double slope = 4 * gm - 3 * g0 - g1, slope_at_end = g0 - 4 * gm + 3 * g1;
    const bool above = (g0 > 0) & (gm > 0) & (g1 > 0) & !((slope < 0) & (slope_at_end > 0));
    const bool below = (g0 < 0) & (gm < 0) & (g1 < 0) & !((slope > 0) & (slope_at_end < 0));
    return !(above | below);
  }

  LOCKSTEP_HOST_DEVICE TurnSearch() {}
  template <class Strikes>
  LOCKSTEP_HOST_DEVICE_CALL TurnSearch(T before, T middle, T after, Strikes strikes)
      : left_{0, double(before)},
        middle_{0.5, double(middle)},
        right_{1, double(after)},
        side_(side_of(before, after)) {
    if (!may_turn(before, middle, after, strikes)) return;
    next_ = middle_;
    open_ = strikes(before, middle) || strikes(middle, after) || choose();
  }

  // Whether to look at theta() of the step, and what was seen there.
  LOCKSTEP_HOST_DEVICE bool open() const { return open_; }
  LOCKSTEP_HOST_DEVICE double theta() const { return next_.theta; }
  template <class Strikes>
  LOCKSTEP_HOST_DEVICE_CALL void see(T value, Strikes strikes) {
    const Place seen{next_.theta, double(value)};
    open_ = false;
    found_ = true;
    if (strikes(T(left_.value), value)) {
      right_ = seen;
    } else if (strikes(value, T(right_.value))) {
      left_ = seen;
    } else {
      found_ = false;
      keep(seen);
      const double error = D::abs(seen.value - next_.value);  // of the parabola that led there
      open_ = looks_ < kLooks && from_zero(seen) > 0 && choose() && from_zero(next_) <= error;
    }
  }

  // Whether it strikes in the step, between which places.
  LOCKSTEP_HOST_DEVICE bool found() const { return found_; }
  LOCKSTEP_HOST_DEVICE double low() const { return left_.theta; }
  LOCKSTEP_HOST_DEVICE double high() const { return right_.theta; }
  LOCKSTEP_HOST_DEVICE T at_low() const { return T(left_.value); }
  LOCKSTEP_HOST_DEVICE T at_high() const { return T(right_.value); }

 private:
  // No parabola is followed that stays away from zero by a quarter of what it changes in the step.
  template <class Strikes>
  static LOCKSTEP_HOST_DEVICE bool may_turn(T before, T middle, T after, const Strikes& strikes) {
    if (strikes(before, middle) || strikes(middle, after)) return true;
    const double side = side_of(before, after);
    const double u0 = side * double(before), um = side * double(middle), u1 = side * double(after);
    // u0 + slope theta + bend theta^2, at its least u0 - slope^2 / (4 bend).
    const double slope = 4 * um - 3 * u0 - u1, slope_at_end = u0 - 4 * um + 3 * u1, bend = 0.5 * (slope_at_end - slope);
    if (!(u0 >= 0 && u1 >= 0 && slope < 0 && slope_at_end > 0)) return false;
    const double most = D::max(u0, u1);
    return 5 * (4 * bend * u0 - slope * slope) <= 4 * bend * most;
  }

  struct Place {
    double theta, value;
  };
  // 1 or -1 where the ends are on one side of zero, one of them perhaps at it; else one of them is beyond, or both at
  // it.
  static LOCKSTEP_HOST_DEVICE double side_of(T before, T after) { return (after != 0 ? after : before) < 0 ? -1 : 1; }
  LOCKSTEP_HOST_DEVICE double from_zero(const Place& place) const { return side_ * place.value; }

  // The parabola's least value on that side, into next_. False where there is none between the places.
  LOCKSTEP_HOST_DEVICE bool choose() {
    const double first = (middle_.value - left_.value) / (middle_.theta - left_.theta);
    const double second = (right_.value - middle_.value) / (right_.theta - middle_.theta);
    const double bend = (second - first) / (right_.theta - left_.theta);
    const double theta = 0.5 * (left_.theta + middle_.theta) - first / (2 * bend);
    const double rise = first + bend * (theta - middle_.theta);  // from left_ to theta
    next_ = {theta, left_.value + rise * (theta - left_.theta)};
    return side_ * bend > 0 && left_.theta < theta && theta < right_.theta;
  }

  // The first place that was looked at takes that of an estimate; the others narrow the places.
  LOCKSTEP_HOST_DEVICE void keep(const Place& seen) {
    const bool before = seen.theta < middle_.theta;
    if (looks_++ == 0) {
      middle_ = seen;
    } else if (from_zero(seen) < from_zero(middle_)) {
      (before ? right_ : left_) = middle_;
      middle_ = seen;
    } else {
      (before ? left_ : right_) = seen;
    }
  }

  Place left_{}, middle_{}, right_{};
  Place next_{};  // to look at; its value is the parabola's
  double side_ = 0;
  bool open_ = false, found_ = false;
  int looks_ = 0;
};

}  // namespace lockstep::ode::detail
