// Where tests of numbers run: in the simulator or, with LOCKSTEP_TEST_DEVICE=cuda, on this machine's first GPU.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace lockstep::cuda::testing {

inline bool on_a_card() {
  const char* const wanted = std::getenv("LOCKSTEP_TEST_DEVICE");
  return wanted != nullptr && std::string_view(wanted) == "cuda";
}

// Samples of a batch that fills a card of 132 multiprocessors with the largest tiles, and leaves blocks a second one.
inline constexpr std::size_t kManySamples = 70001;

// Those sizes, and on a card the large one.
inline std::vector<std::size_t> batch_sizes(std::vector<std::size_t> samples) {
  if (on_a_card()) samples.push_back(kManySamples);
  return samples;
}

}  // namespace lockstep::cuda::testing
