#include "lockstep/kernels/graph/detail/called_functions.h"

#include <array>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/kernels/graph/detail/knots.h"
#include "lockstep/kernels/lane/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/kernels/graph/detail/called_functions.cpp"
#include <hwy/foreach_target.h>
//
#include "lockstep/kernels/math/math_hwy-inl.h"

#ifndef LOCKSTEP_KERNELS_GRAPH_CALLED_FUNCTIONS_ONCE
#define LOCKSTEP_KERNELS_GRAPH_CALLED_FUNCTIONS_ONCE
namespace lockstep::graph {
// One feature of an Interpolate.
template <class T>
struct CalledTable {
  std::vector<T> knots;  // padded
  std::size_t count, powers;
  std::vector<T> coefficients;  // [power][knot]
};

// Of one precision and instruction set; null where there is none.
struct CalledCodes {
  std::array<const void*, 18> activation{}, chain{};  // [ActivationKind]
  std::array<const void*, kUnaryKinds> unary{};       // [UnaryKind]
  const void* power = nullptr;
  const void* table = nullptr;
};
}  // namespace lockstep::graph
#endif

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace called_functions {

using graph::BinaryKind;
using graph::CalledCodes;
using graph::ReduceKind;
using graph::SoftmaxKind;
using graph::UnaryKind;

// Without a generator nothing calls them, nor by Clang (kCallsFunctions).
#if HWY_ARCH_X86_64 && !HWY_COMPILER_CLANG && (HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3)

#define LOCKSTEP_LANE_FN HWY_INLINE
#include "lockstep/kernels/graph/detail/lane_operations-inl.h"
#undef LOCKSTEP_LANE_FN

template <class T>
using L = HwyLane<hn::ScalableTag<T>>;
template <class T>
using V = typename L<T>::V;
// What the convention hands over in a register.
template <class T>
using Raw = decltype(V<T>::raw);

template <class T, ActivationKind kKind>
Raw<T> activation(const void*, Raw<T> x, Raw<T> alpha) {
  return activate<kKind, L<T>>(V<T>{x}, V<T>{alpha}).raw;
}

template <class T, UnaryKind kKind>
Raw<T> unary(const void*, Raw<T> x) {
  return unary_of<kKind, L<T>>(V<T>{x}).raw;
}

template <class T>
Raw<T> power(const void*, Raw<T> a, Raw<T> b) {
  return binary_of<BinaryKind::power, L<T>>(V<T>{a}, V<T>{b}).raw;
}

template <class T, ActivationKind kKind>
Raw<T> chain(const void*, Raw<T> a, Raw<T> b, Raw<T> alpha) {
  return chain_of<kKind, L<T>>(V<T>{a}, V<T>{b}, V<T>{alpha}).raw;
}

template <class T>
Raw<T> table(const void* context, Raw<T> x) {
  const auto& of = *static_cast<const graph::CalledTable<T>*>(context);
  const T* const knots = of.knots.data();
  const auto at = lanes_among_knots<L<T>>(V<T>{x}, knots, of.knots.size(), knots[0], knots[of.count - 1]);
  return interpolated<L<T>>(at, of.coefficients.data(), of.powers, of.count).raw;
}

template <class F>
const void* code_of(F* function) {
  return reinterpret_cast<const void*>(function);
}

template <class T>
CalledCodes made_codes() {
  CalledCodes codes;
  for (std::size_t k = 0; k < codes.activation.size(); ++k) {
    const auto kind = static_cast<ActivationKind>(k);
    codes.activation[k] = with_activation_kind(kind, [](auto of) { return code_of(activation<T, of()>); });
    codes.chain[k] = with_activation_kind(kind, [](auto of) { return code_of(chain<T, of()>); });
  }
  const auto set = [&]<UnaryKind kKind>(std::integral_constant<UnaryKind, kKind>) {
    codes.unary[static_cast<std::size_t>(kKind)] = code_of(unary<T, kKind>);
  };
  set(std::integral_constant<UnaryKind, UnaryKind::exp>());
  set(std::integral_constant<UnaryKind, UnaryKind::log>());
  set(std::integral_constant<UnaryKind, UnaryKind::erf>());
  set(std::integral_constant<UnaryKind, UnaryKind::cosine>());
  set(std::integral_constant<UnaryKind, UnaryKind::arctangent>());
  codes.power = code_of(power<T>);
  codes.table = code_of(table<T>);
  return codes;
}

#else

template <class T>
CalledCodes made_codes() {
  return {};
}

#endif

template <class T>
const CalledCodes* codes() {
  static const CalledCodes kCodes = made_codes<T>();
  return &kCodes;
}

}  // namespace called_functions

const graph::CalledCodes* called_codes_f32() { return called_functions::codes<float>(); }
const graph::CalledCodes* called_codes_f64() { return called_functions::codes<double>(); }

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "lockstep/kernels/lane/dispatch.h"

namespace lockstep::graph {
namespace {

template <class T>
const CalledCodes& codes_for(CpuTarget target) {
  if constexpr (sizeof(T) == 4) {
    return *LOCKSTEP_CHOOSE(target, called_codes_f32)();
  } else {
    return *LOCKSTEP_CHOOSE(target, called_codes_f64)();
  }
}

}  // namespace

template <class T>
LaneFunction called_function(ActivationKind kind, CpuTarget target) {
  return {codes_for<T>(target).activation[static_cast<std::size_t>(kind)]};
}

template <class T>
LaneFunction called_function(UnaryKind kind, CpuTarget target) {
  return {codes_for<T>(target).unary[static_cast<std::size_t>(kind)]};
}

template <class T>
LaneFunction called_power(CpuTarget target) {
  return {codes_for<T>(target).power};
}

template <class T>
LaneFunction called_chain(ActivationKind kind, CpuTarget target) {
  return {codes_for<T>(target).chain[static_cast<std::size_t>(kind)]};
}

template <class T>
LaneFunction called_table(const Interpolate& table, const std::string& node, std::size_t feature, CpuTarget target) {
  CalledTable<T> made{padded_knots<T>(table, node), table.knots.size(), table.powers(), {}};
  const std::size_t numbers = made.powers * made.count;
  for (std::size_t i = feature * numbers; i < (feature + 1) * numbers; ++i) {
    made.coefficients.push_back(round_to<T>(table.coefficients[i], node + ".coefficients", i));
  }
  return {codes_for<T>(target).table, std::make_shared<const CalledTable<T>>(std::move(made))};
}

template LaneFunction called_function<float>(ActivationKind, CpuTarget);
template LaneFunction called_function<double>(ActivationKind, CpuTarget);
template LaneFunction called_function<float>(UnaryKind, CpuTarget);
template LaneFunction called_function<double>(UnaryKind, CpuTarget);
template LaneFunction called_power<float>(CpuTarget);
template LaneFunction called_power<double>(CpuTarget);
template LaneFunction called_chain<float>(ActivationKind, CpuTarget);
template LaneFunction called_chain<double>(ActivationKind, CpuTarget);
template LaneFunction called_table<float>(const Interpolate&, const std::string&, std::size_t, CpuTarget);
template LaneFunction called_table<double>(const Interpolate&, const std::string&, std::size_t, CpuTarget);

}  // namespace lockstep::graph
#endif
