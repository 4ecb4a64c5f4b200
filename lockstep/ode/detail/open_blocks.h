// What a sink that stands before another keeps of each block between acquire() and commit().
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <utility>

namespace lockstep::ode::detail {

// Any thread may put and take. Moving an Open must leave the memory that its blocks point to where it is, as moving a
// vector does.
template <class Open>
class OpenBlocks {
 public:
  // The token to find it by.
  std::size_t put(Open open) {
    const std::lock_guard lock(mutex_);
    open_.emplace(++last_token_, std::move(open));
    return last_token_;
  }
  // For the one who put it, before taking it.
  Open& at(std::size_t token) {
    const std::lock_guard lock(mutex_);
    return open_.at(token);
  }
  Open take(std::size_t token) {
    const std::lock_guard lock(mutex_);
    return std::move(open_.extract(token).mapped());
  }

 private:
  std::mutex mutex_;
  std::map<std::size_t, Open> open_;
  std::size_t last_token_ = 0;
};

}  // namespace lockstep::ode::detail
