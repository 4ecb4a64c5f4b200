// The built-in systems' derivatives: along a direction one pass of dual lanes; their transposes column by column, a
// pass for each component and parameter; of the derivative along a direction, by dual lanes of dual lanes.
#include "lockstep/ode/detail/reverse_system.h"

#include "lockstep/kernels/lane/targets.h"
#include "lockstep/ode/systems/systems.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/ode/reverse_system.cpp"
#include <hwy/foreach_target.h>
#include "lockstep/kernels/lane/dispatch.h"
#include "lockstep/ode/systems/systems_hwy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
namespace {

#define LOCKSTEP_LANE_FN HWY_INLINE
#include "lockstep/ode/detail/dual_lane-inl.h"
#undef LOCKSTEP_LANE_FN

using ode::ForwardTileView;
using ode::ReverseTileView;

// Zeros where the system does not read it.
template <class System, class T>
struct RoundedTime {
  explicit RoundedTime(const double* t) {
    if constexpr (systems::kDependsOnTime<System>) {
      for (int lane = 0; lane < kTileLanes; ++lane) of_lane[lane] = static_cast<T>(t[lane]);
    }
  }
  alignas(64) T of_lane[kTileLanes] = {};
};

template <class System, class T>
void reverse_system(const ReverseTileView<T>& tile) {
  const hn::ScalableTag<T> d;
  using L = HwyLane<decltype(d)>;
  using Dual = DualLane<L>;
  constexpr int n = System::kComponents, m = System::kParameters;
  const bool by_time = systems::kDependsOnTime<System> && tile.time_bar != nullptr;
  const RoundedTime<System, T> time(tile.t);
  for (int lane = 0; lane < tile.lanes; lane += static_cast<int>(hn::Lanes(d))) {
    for (int direction = 0; direction < n + m + (by_time ? 1 : 0); ++direction) {
      typename Dual::V u[n], p[m > 0 ? m : 1], du[n];
      const auto seed = [&](const T* row, int index) {
        return typename Dual::V(hn::Load(d, row + lane), L::set(index == direction ? T(1) : T(0)));
      };
      for (int c = 0; c < n; ++c) u[c] = seed(tile.in + c * kTileLanes, c);
      for (int q = 0; q < m; ++q) p[q] = seed(tile.parameters + q * kTileLanes, n + q);
      const typename Dual::V t(hn::Load(d, time.of_lane + lane), L::set(direction == n + m ? T(1) : T(0)));
      systems::evaluate_at<System, Dual>(t, u, p, du);
      T* const bar = lane + (direction < n       ? tile.in_bar + direction * kTileLanes
                             : direction < n + m ? tile.parameter_bar + (direction - n) * kTileLanes
                                                 : tile.time_bar);
      auto sum = hn::Load(d, bar);
      for (int c = 0; c < n; ++c) sum = L::fma(hn::Load(d, tile.out_bar + c * kTileLanes + lane), du[c].slope, sum);
      hn::Store(sum, d, bar);
    }
  }
}

template <class System, class T>
void forward_system(const ForwardTileView<T>& tile) {
  const hn::ScalableTag<T> d;
  using L = HwyLane<decltype(d)>;
  using Dual = DualLane<L>;
  constexpr int n = System::kComponents, m = System::kParameters;
  const RoundedTime<System, T> time(tile.t);
  for (int lane = 0; lane < tile.lanes; lane += static_cast<int>(hn::Lanes(d))) {
    typename Dual::V u[n], p[m > 0 ? m : 1], du[n];
    const auto pair = [&](const T* rows, const T* dots, int index) {
      return typename Dual::V(hn::Load(d, rows + index * kTileLanes + lane),
                              hn::Load(d, dots + index * kTileLanes + lane));
    };
    for (int c = 0; c < n; ++c) u[c] = pair(tile.in, tile.in_dot, c);
    for (int q = 0; q < m; ++q) p[q] = pair(tile.parameters, tile.parameter_dot, q);
    systems::evaluate_at<System, Dual>(typename Dual::V(hn::Load(d, time.of_lane + lane), L::zero()), u, p, du);
    for (int c = 0; c < n; ++c) hn::Store(du[c].slope, d, tile.out_dot + c * kTileLanes + lane);
  }
}

// A register's lanes from `lane` on, their slopes along the direction that StateFunction::directional_f64() tells of.
// value(row, index) loads one, which is component or then parameter `index`, or none with -1.
template <class Along, class System, class T, class Value>
HWY_INLINE void derivative_along(const T* time, const T* in, const T* parameters, int lane, const Value& value,
                                 typename Along::V* du) {
  constexpr int n = System::kComponents, m = System::kParameters;
  typename Along::V u[n], p[m > 0 ? m : 1];
  for (int c = 0; c < n; ++c)
    u[c] = {value(in + c * kTileLanes + lane, c), value(in + (n + c) * kTileLanes + lane, -1)};
  for (int q = 0; q < m; ++q) p[q] = {value(parameters + q * kTileLanes + lane, n + q), Along::L::zero()};
  const typename Along::V t_along = {value(time + lane, -1), value(in + 2 * n * kTileLanes + lane, -1)};
  systems::evaluate_at<System, Along>(t_along, u, p, du);
}

template <class System, class T>
void evaluate_along(const TileView<T>& tile) {
  const hn::ScalableTag<T> d;
  using L = HwyLane<decltype(d)>;
  const RoundedTime<System, T> time(tile.t);
  for (int lane = 0; lane < tile.lanes; lane += static_cast<int>(hn::Lanes(d))) {
    typename DualLane<L>::V du[System::kComponents];
    const auto value = [&](const T* row, int) { return hn::Load(d, row); };
    derivative_along<DualLane<L>, System>(time.of_lane, tile.in, tile.parameters, lane, value, du);
    for (int c = 0; c < System::kComponents; ++c) hn::Store(du[c].slope, d, tile.out + c * kTileLanes + lane);
  }
}

template <class System, class T>
void reverse_along(const ReverseTileView<T>& tile) {
  const hn::ScalableTag<T> d;
  using L = HwyLane<decltype(d)>;
  constexpr int n = System::kComponents, m = System::kParameters;
  const RoundedTime<System, T> time(tile.t);
  for (int lane = 0; lane < tile.lanes; lane += static_cast<int>(hn::Lanes(d))) {
    for (int direction = 0; direction < n + m; ++direction) {
      typename DualLane<DualLane<L>>::V du[n];
      const auto value = [&](const T* row, int index) {
        return typename DualLane<L>::V(hn::Load(d, row), L::set(index == direction ? T(1) : T(0)));
      };
      derivative_along<DualLane<DualLane<L>>, System>(time.of_lane, tile.in, tile.parameters, lane, value, du);
      T* const bar = lane + (direction < n ? tile.in_bar + direction * kTileLanes
                                           : tile.parameter_bar + (direction - n) * kTileLanes);
      auto sum = hn::Load(d, bar);
      for (int c = 0; c < n; ++c)
        sum = L::fma(hn::Load(d, tile.out_bar + c * kTileLanes + lane), du[c].slope.slope, sum);
      hn::Store(sum, d, bar);
    }
  }
}

template <class T>
using Evaluation = void (*)(const TileView<T>&);
template <class T>
using Reverse = void (*)(const ReverseTileView<T>&);
template <class T>
using Forward = void (*)(const ForwardTileView<T>&);

// By place in AllSystems.
template <class T, class... System>
Reverse<T> reverse_function(systems::SystemList<System...>, std::size_t index) {
  constexpr Reverse<T> functions[] = {reverse_system<System, T>...};
  return functions[index];
}
template <class T, class... System>
Forward<T> forward_function(systems::SystemList<System...>, std::size_t index) {
  constexpr Forward<T> functions[] = {forward_system<System, T>...};
  return functions[index];
}
template <class T, class... System>
Reverse<T> reverse_along_function(systems::SystemList<System...>, std::size_t index) {
  constexpr Reverse<T> functions[] = {reverse_along<System, T>...};
  return functions[index];
}
template <class T, class... System>
Evaluation<T> along_function(systems::SystemList<System...>, std::size_t index) {
  constexpr Evaluation<T> functions[] = {evaluate_along<System, T>...};
  return functions[index];
}

}  // namespace

Reverse<float> reverse_f32(std::size_t index) { return reverse_function<float>(systems::AllSystems(), index); }
Reverse<double> reverse_f64(std::size_t index) { return reverse_function<double>(systems::AllSystems(), index); }
Forward<float> forward_f32(std::size_t index) { return forward_function<float>(systems::AllSystems(), index); }
Forward<double> forward_f64(std::size_t index) { return forward_function<double>(systems::AllSystems(), index); }
Reverse<float> reverse_along_f32(std::size_t index) {
  return reverse_along_function<float>(systems::AllSystems(), index);
}
Reverse<double> reverse_along_f64(std::size_t index) {
  return reverse_along_function<double>(systems::AllSystems(), index);
}
Evaluation<float> along_f32(std::size_t index) { return along_function<float>(systems::AllSystems(), index); }
Evaluation<double> along_f64(std::size_t index) { return along_function<double>(systems::AllSystems(), index); }

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace lockstep {
namespace {

template <class T>
class DirectionalSystem final : public ode::DifferentiableTile<T> {
 public:
  DirectionalSystem(std::size_t index, CpuTarget target) {
    require_cpu_target(target);
    if constexpr (sizeof(T) == 4) {
      evaluate_ = LOCKSTEP_CHOOSE(target, along_f32)(index);
      reverse_ = LOCKSTEP_CHOOSE(target, reverse_along_f32)(index);
    } else {
      evaluate_ = LOCKSTEP_CHOOSE(target, along_f64)(index);
      reverse_ = LOCKSTEP_CHOOSE(target, reverse_along_f64)(index);
    }
  }

  void evaluate(const TileView<T>& tile, std::byte*) const override { evaluate_(tile); }
  void reverse(const ode::ReverseTileView<T>& tile, std::byte*) const override { reverse_(tile); }

 private:
  void (*evaluate_)(const TileView<T>&);
  void (*reverse_)(const ode::ReverseTileView<T>&);
};

template <class T>
class ReverseSystem final : public ode::DifferentiableTile<T> {
 public:
  ReverseSystem(std::size_t index, CpuTarget target, std::shared_ptr<const ode::TileFunction<T>> function)
      : function_(std::move(function)) {
    require_cpu_target(target);
    if constexpr (sizeof(T) == 4) {
      forward_ = LOCKSTEP_CHOOSE(target, forward_f32)(index);
      reverse_ = LOCKSTEP_CHOOSE(target, reverse_f32)(index);
    } else {
      forward_ = LOCKSTEP_CHOOSE(target, forward_f64)(index);
      reverse_ = LOCKSTEP_CHOOSE(target, reverse_f64)(index);
    }
  }

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override { function_->evaluate(tile, workspace); }
  void reverse(const ode::ReverseTileView<T>& tile, std::byte*) const override { reverse_(tile); }
  bool pushes_forward() const override { return true; }
  void forward(const ode::ForwardTileView<T>& tile, std::byte*) const override { forward_(tile); }
  std::size_t workspace_bytes() const override { return function_->workspace_bytes(); }
  bool knows_time() const override { return true; }
  std::string description() const override { return function_->description(); }

 private:
  std::shared_ptr<const ode::TileFunction<T>> function_;
  void (*forward_)(const ode::ForwardTileView<T>&);
  void (*reverse_)(const ode::ReverseTileView<T>&);
};

}  // namespace

namespace ode::detail {

template <class T>
std::shared_ptr<DifferentiableTile<T>> reverse_system(std::size_t index, CpuTarget target,
                                                      std::shared_ptr<const TileFunction<T>> function) {
  return std::make_shared<ReverseSystem<T>>(index, target, std::move(function));
}
template std::shared_ptr<DifferentiableTile<float>> reverse_system(std::size_t, CpuTarget,
                                                                   std::shared_ptr<const TileFunction<float>>);
template std::shared_ptr<DifferentiableTile<double>> reverse_system(std::size_t, CpuTarget,
                                                                    std::shared_ptr<const TileFunction<double>>);

template <class T>
std::shared_ptr<DifferentiableTile<T>> directional_system(std::size_t index, CpuTarget target) {
  return std::make_shared<DirectionalSystem<T>>(index, target);
}
template std::shared_ptr<DifferentiableTile<float>> directional_system(std::size_t, CpuTarget);
template std::shared_ptr<DifferentiableTile<double>> directional_system(std::size_t, CpuTarget);

}  // namespace ode::detail
}  // namespace lockstep
#endif  // HWY_ONCE
