#include "lockstep/core/parallel.h"

#include <omp.h>

#include <algorithm>
#include <exception>
#include <mutex>

namespace lockstep {

// omp_get_max_threads() is what OMP_NUM_THREADS says.
int available_threads() { return std::max(1, std::min(omp_get_num_procs(), omp_get_max_threads())); }

void run_on_threads(int threads, const std::function<void(int thread)>& body) {
  if (threads == 1) return body(0);
  std::exception_ptr first;
  std::mutex mutex;
  // One iteration a thread, whatever number of threads OpenMP grants: the bodies draw from a queue of their own.
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) {
    try {
      body(thread);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (!first) first = std::current_exception();
    }
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace lockstep
