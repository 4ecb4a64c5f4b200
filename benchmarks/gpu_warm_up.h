// An idle card's clocks are a fifth of what they become under load, some tenths of a second later: what is timed there
// is repeated before.
#pragma once

#include <chrono>

namespace lockstep::benchmarks {

// `work` returns when the device is done with it.
template <class Work>
void warm_up(const Work& work) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(400);
  do {
    work();
  } while (std::chrono::steady_clock::now() < end);
}

}  // namespace lockstep::benchmarks
