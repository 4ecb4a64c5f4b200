#include "lockstep/core/thread_count.h"

#include <string>

#include "lockstep/core/error.h"

namespace lockstep {

void require_thread_count(int threads, const char* field) {
  constexpr int kMost = 4096;
  if (threads < 0 || threads > kMost) {
    throw Error(ErrorKind::invalid_argument,
                {field, std::to_string(threads), "a number of threads up to 4096, or 0 for all", {}});
  }
}

}  // namespace lockstep
