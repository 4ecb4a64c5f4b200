#include "lockstep/kernels/math/detail/function_table.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <vector>

#include "lockstep/kernels/lane/targets.h"
#include "lockstep/kernels/math/math.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/math/detail/function_table.cpp"
#include <hwy/foreach_target.h>
//
#include "lockstep/kernels/lane/dispatch.h"
#include "lockstep/kernels/math/math_hwy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
using math::Elementary;
using math::Entry;
using math::kBase;
using math::kLargeExponent;
using math::kSmallExponent;
#define LOCKSTEP_LANE_FN HWY_INLINE
#include "lockstep/kernels/math/detail/function_loops-inl.h"
#undef LOCKSTEP_LANE_FN

template <class T>
struct Registers {
  using D = hn::ScalableTag<T>;
  static HWY_INLINE size_t lanes() { return hn::Lanes(D()); }
  static HWY_INLINE hn::Vec<D> load(const T* p) { return hn::LoadU(D(), p); }
  static HWY_INLINE void store(hn::Vec<D> v, T* p) { hn::StoreU(v, D(), p); }
};

Loop<float> loop_f32(const Entry& entry) { return loop_of<HwyLane<hn::ScalableTag<float>>, Registers<float>>(entry); }
Loop<double> loop_f64(const Entry& entry) {
  return loop_of<HwyLane<hn::ScalableTag<double>>, Registers<double>>(entry);
}

// Left to the compiler to vectorise; errors are not negative, so that their bits order them.
math::ErrorSummary error_loop(const float* y, const double* truth, double* error, size_t n) {
  constexpr int64_t smallest_exponent = 1023 - 126, largest_exponent = 1023 + 127;
  constexpr double top = 0x1p128;
  int64_t largest = 0, over_one = 0;
  for (size_t i = 0; i < n; ++i) {
    double t = truth[i], v = double(y[i]);
    t = t > top ? top : t < -top ? -top : t;
    v = v > top ? top : v < -top ? -top : v;
    int64_t bits;
    memcpy(&bits, &t, 8);
    int64_t exponent = (bits >> 52) & 0x7ff;
    exponent = exponent < smallest_exponent ? smallest_exponent : exponent;
    exponent = exponent > largest_exponent ? largest_exponent : exponent;
    const int64_t scale_bits = (2046 + 23 - exponent) << 52;
    double scale;
    memcpy(&scale, &scale_bits, 8);
    double e = (v < t ? t - v : v - t) * scale;
    e = e != e ? 1e30 : e;
    e = ((v != v) & (t != t)) ? 0 : e;
    error[i] = e;
    int64_t error_bits;
    memcpy(&error_bits, &e, 8);
    largest = error_bits > largest ? error_bits : largest;
    over_one += error_bits > 0x3ff0000000000000;
  }
  double result;
  memcpy(&result, &largest, 8);
  return {result, uint64_t(over_one)};
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {

template <class T>
static auto choose_loop(CpuTarget target) {
  if constexpr (sizeof(T) == 4) {
    return LOCKSTEP_CHOOSE(target, loop_f32);
  } else {
    return LOCKSTEP_CHOOSE(target, loop_f64);
  }
}

namespace math {

ErrorSummary float_errors(CpuTarget target, const float* y, const double* truth, double* error, std::size_t n) {
  return LOCKSTEP_CHOOSE(target, error_loop)(y, truth, error, n);
}

namespace {
#define LOCKSTEP_LANE_FN LOCKSTEP_HOST_DEVICE
#include "lockstep/kernels/math/detail/function_loops-inl.h"
#undef LOCKSTEP_LANE_FN

template <class T>
struct One {
  static size_t lanes() { return 1; }
  static T load(const T* p) { return *p; }
  static void store(T v, T* p) { *p = v; }
};

// Derivatives that change sign are sums of terms of size s, each with a few roundings of 2^-p s.
double derivative_bound(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::gelu:
    case ActivationKind::silu:
    case ActivationKind::mish:
    case ActivationKind::hard_swish:
      return 4;
    case ActivationKind::gelu_tanh:
      return 8;
    case ActivationKind::celu:  // the rounding of v = x/alpha, in e^v: |v| e^v 2^-p
      return 1;
    default:
      return 0;
  }
}

std::vector<Entry> make_table() {
  std::vector<Entry> table;
  const auto elementary = [&](const char* name, Elementary function, double ulps) {
    table.push_back({.name = name, .elementary = function, .ulps = ulps});
  };
  elementary("exp", Elementary::exp, 2);
  elementary("expm1", Elementary::expm1, 2.5);
  elementary("exp2", Elementary::exp2, 2.5);
  elementary("log", Elementary::log, 2.5);
  elementary("log2", Elementary::log2, 2.5);
  elementary("tanh", Elementary::tanh, 2);
  elementary("sigmoid", Elementary::sigmoid, 2.5);
  elementary("softplus", Elementary::softplus, 2.5);
  elementary("erf", Elementary::erf, 2.5);
  elementary("sin", Elementary::sin, 2.5);
  elementary("cos", Elementary::cos, 2.5);
  elementary("atan", Elementary::atan, 2);
  elementary("pow(x,-9/64)", Elementary::small_pow, 2.5);
  elementary("pow(x,33.75)", Elementary::large_pow, 2.5);
  elementary("pow(1.125,x)", Elementary::base_pow, 2.5);
  elementary("floor", Elementary::floor, 0);
  elementary("round", Elementary::round, 0);
  elementary("mod(x,1.125)", Elementary::modulo, 0.5);

  std::vector<Activation> activations(all_activations().begin(), all_activations().end());
  activations.push_back({ActivationKind::leaky_relu, 0.2});
  activations.push_back({ActivationKind::elu, 0.7});
  activations.push_back({ActivationKind::celu, 0.7});
  for (const Activation& activation : activations) {
    Entry entry{.name = to_string(activation), .kind = Entry::Kind::activation, .activation = activation};
    // The exponent 2u of gelu's tanh form carries a relative error of 1.5 2^-p: |x| e^-v v 1.5 2^-p <= 0.6 |x| 2^-p.
    if (activation.kind == ActivationKind::gelu_tanh) entry.absolute = 1;
    table.push_back(entry);
    entry.name = "d " + entry.name;
    entry.kind = Entry::Kind::derivative;
    entry.ulps = 8;  // about eight roundings, of at most one 2^-p each
    entry.absolute = derivative_bound(activation.kind);
    table.push_back(entry);
  }
  return table;
}

}  // namespace

const std::vector<Entry>& function_table() {
  static const std::vector<Entry> table = make_table();
  return table;
}

template <class T>
void evaluate(const Entry& entry, CpuTarget target, const T* x, T* y, std::size_t n) {
  const Loop<T> loop = choose_loop<T>(target)(entry);
  const std::size_t whole = n / 64 * 64;  // no register holds more
  loop(x, y, whole, entry.activation.alpha);
  if (whole == n) return;
  T in[64] = {}, out[64];
  std::copy(x + whole, x + n, in);
  loop(in, out, 64, entry.activation.alpha);
  std::copy(out, out + (n - whole), y + whole);
}

template <class T>
void evaluate_scalar(const Entry& entry, const T* x, T* y, std::size_t n) {
  loop_of<ScalarLane<T>, One<T>>(entry)(x, y, n, entry.activation.alpha);
}

template void evaluate(const Entry&, CpuTarget, const float*, float*, std::size_t);
template void evaluate(const Entry&, CpuTarget, const double*, double*, std::size_t);
template void evaluate_scalar(const Entry&, const float*, float*, std::size_t);
template void evaluate_scalar(const Entry&, const double*, double*, std::size_t);

}  // namespace math
}  // namespace lockstep
#endif
