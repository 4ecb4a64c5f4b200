#include "lockstep/cli/grace.h"

#include "lockstep/core/parallel.h"

namespace lockstep::cli {

Grace::Grace(const CancelToken* of, std::chrono::milliseconds time) {
  if (of != nullptr) thread_ = start_thread([this, of, time] { wait(*of, time); }, "one that watches the time");
}

Grace::~Grace() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Grace::wait(const CancelToken& of, std::chrono::milliseconds time) {
  constexpr std::chrono::milliseconds kLook(20);
  while (!of.requested()) {
    if (over_within(kLook)) return;
  }
  if (!over_within(time)) token_.request();
}

bool Grace::over_within(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, time, [this] { return over_; });
}

}  // namespace lockstep::cli
