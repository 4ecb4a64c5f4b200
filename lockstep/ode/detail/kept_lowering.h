// What a right-hand side was lowered to, kept as long as it lives: who solves again and again waits for it once.
#pragma once

#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/generated/lane_code.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode::detail {

// For a function that never changes. Any thread may call it. Function<T> is what is kept.
template <template <class> class Function = TileFunction>
class KeptLowering {
 public:
  // make(), or what it gave the last time for this target.
  template <class T, class Make>
  std::shared_ptr<const Function<T>> get(CpuTarget target, const Make& make) const {
    const bool generates = LaneCode::available(target);  // by the environment, which may change
    const std::lock_guard lock(mutex_);
    auto& kept = kept_of<T>();
    for (const auto& entry : kept) {
      if (entry.target == target && entry.generates == generates) return entry.function;
    }
    return kept.emplace_back(Entry<T>{target, generates, make()}).function;
  }

 private:
  template <class T>
  struct Entry {
    CpuTarget target;
    bool generates;
    std::shared_ptr<const Function<T>> function;
  };
  template <class T>
  std::vector<Entry<T>>& kept_of() const {
    if constexpr (std::is_same_v<T, float>) {
      return kept_f32_;
    } else {
      return kept_f64_;
    }
  }

  mutable std::mutex mutex_;
  mutable std::vector<Entry<float>> kept_f32_;
  mutable std::vector<Entry<double>> kept_f64_;
};

}  // namespace lockstep::ode::detail
