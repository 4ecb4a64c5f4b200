// What a host opens with dlopen(): a library of its own that holds ours.
#include <atomic>

#include "lockstep/core/parallel.h"

extern "C" __attribute__((visibility("default"))) int run_bodies(int threads) {
  std::atomic<int> runs{0};
  lockstep::run_on_threads(threads, [&](int) { ++runs; });
  return runs;
}
