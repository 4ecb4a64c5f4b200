// For tests: while it lives the system has no thread left, as under a limit that is reached.
#pragma once

#include <pthread.h>

#include <cstddef>

namespace lockstep {

// Every thread asks for more stack than there are addresses.
class NoThreads {
 public:
  NoThreads() {
    pthread_attr_init(&attributes_);
    pthread_getattr_default_np(&attributes_);
    pthread_attr_t none;
    pthread_attr_init(&none);
    pthread_attr_setstacksize(&none, std::size_t{1} << 48);
    pthread_setattr_default_np(&none);
    pthread_attr_destroy(&none);
  }
  ~NoThreads() { pthread_setattr_default_np(&attributes_); }
  NoThreads(const NoThreads&) = delete;
  NoThreads& operator=(const NoThreads&) = delete;

 private:
  pthread_attr_t attributes_;
};

}  // namespace lockstep
