// Threads for one call: no pool, no global state.
#pragma once

#include <functional>

namespace lockstep {

// Hardware threads this process may use (its affinity mask and OMP_NUM_THREADS count), at least 1.
int available_threads();

// Runs body(0) .. body(threads - 1), each on a thread of its own (one of them the caller's), and waits for
// all. The first exception thrown is rethrown here after every body has ended. threads >= 1.
void run_on_threads(int threads, const std::function<void(int thread)>& body);

}  // namespace lockstep
