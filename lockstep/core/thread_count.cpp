#include "lockstep/core/thread_count.h"

#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"

namespace lockstep {

int chosen_threads(int threads, const char* field) {
  constexpr int kMost = 4096;
  if (threads < 0 || threads > kMost) {
    throw Error(ErrorKind::invalid_argument,
                {field, std::to_string(threads), "a number of threads up to 4096, or 0 for all", {}});
  }
  return threads == 0 ? available_threads() : threads;
}

}  // namespace lockstep
