// A little longer: what is done last, when somebody has asked to stop.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "lockstep/core/run_control.h"

namespace lockstep::cli {

// Its token is requested some time after another one, while it lives.
class Grace {
 public:
  // `of` null: never.
  explicit Grace(const CancelToken* of, std::chrono::milliseconds time = std::chrono::seconds(1));
  ~Grace();
  Grace(const Grace&) = delete;

  const CancelToken& token() const { return token_; }

 private:
  void wait(const CancelToken& of, std::chrono::milliseconds time);
  bool over_within(std::chrono::milliseconds time);

  CancelToken token_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace lockstep::cli
