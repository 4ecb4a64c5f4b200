#include "lockstep/core/thread_count.h"

#include <string>

#include "lockstep/core/error.h"

namespace lockstep {

void require_thread_count(int threads, const char* field) {
  if (threads < 0 || threads > kMostThreads) {
    throw Error(ErrorKind::invalid_argument,
                {field,
                 std::to_string(threads),
                 "a number of threads up to " + std::to_string(kMostThreads) + ", or 0 for all",
                 {}});
  }
}

}  // namespace lockstep
