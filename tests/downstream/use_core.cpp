// The smallest user: threads and errors of the core library.
#include <atomic>
#include <iostream>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"

int main() {
  std::atomic<int> sum = 0;
  lockstep::run_on_threads(3, [&](int thread) { sum += thread; });
  try {
    throw lockstep::Error(lockstep::ErrorKind::invalid_argument, {"dt", "-1", "a positive step", "drop the sign"});
  } catch (const lockstep::Error& error) {
    std::cout << error.what() << "\n";
    return sum == 3 && error.field() == "dt" ? 0 : 1;
  }
}
