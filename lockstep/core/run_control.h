// How a caller watches and stops long work.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>

namespace lockstep {

// Set from any thread or a signal handler; long work looks at it between tiles.
class CancelToken {
 public:
  void request() noexcept { requested_.store(true, std::memory_order_relaxed); }
  bool requested() const noexcept { return requested_.load(std::memory_order_relaxed); }

 private:
  std::atomic<bool> requested_{false};
  static_assert(std::atomic<bool>::is_always_lock_free);
};

// Trajectories (or samples) finished of all. Called from worker threads, one call at a time.
using ProgressFunction = std::function<void(std::size_t done, std::size_t total)>;

struct RunControl {
  const CancelToken* cancel = nullptr;
  ProgressFunction progress;

  bool cancelled() const noexcept { return cancel != nullptr && cancel->requested(); }
};

}  // namespace lockstep
