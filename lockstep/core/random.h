// Random numbers that belong to a trajectory: each is a function of (seed, stream, trajectory, draw) alone, so it
// does not matter how many there are, in which order, or on which machine they are drawn.
#pragma once

#include <array>
#include <cstdint>

namespace lockstep {

// Philox4x32-10: Salmon, Moraes, Dror & Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011. A bijection
// of 128-bit counters for each 64-bit key that passes BigCrush.
constexpr std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = std::uint64_t{0xD2511F53} * counter[0];
    const std::uint64_t product1 = std::uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<std::uint32_t>(product0)};
    key[0] += 0x9E3779B9;  // Weyl sequences: the golden ratio and sqrt(3) - 1
    key[1] += 0xBB67AE85;
  }
  return counter;
}

// The standard normal's quantile for p in (0, 1), relative error about 1e-15: Wichura, Algorithm AS 241 (PPND16),
// Applied Statistics 37 (1988) 477. Only IEEE operations: the same bits everywhere.
double normal_quantile(double p);

class Random {
 public:
  // Different streams of one seed are independent: initial states, parameters, weights.
  explicit constexpr Random(std::uint64_t seed, std::uint32_t stream = 0) : seed_(seed), stream_(stream) {}

  // Uniform in [0, 1): a multiple of 2^-53.
  constexpr double uniform(std::uint64_t trajectory, std::uint32_t draw) const {
    return static_cast<double>(bits(trajectory, draw) >> 11) * 0x1p-53;
  }
  // Standard normal.
  double normal(std::uint64_t trajectory, std::uint32_t draw) const {
    // An odd multiple of 2^-53: never 0 or 1, symmetric about 1/2.
    return normal_quantile(static_cast<double>(bits(trajectory, draw) >> 12) * 0x1p-52 + 0x1p-53);
  }
  // 64 random bits.
  constexpr std::uint64_t bits(std::uint64_t trajectory, std::uint32_t draw) const {
    const auto block = philox4x32(
        {draw / 2, stream_, static_cast<std::uint32_t>(trajectory), static_cast<std::uint32_t>(trajectory >> 32)},
        {static_cast<std::uint32_t>(seed_), static_cast<std::uint32_t>(seed_ >> 32)});
    const std::size_t half = 2 * (draw % 2);
    return std::uint64_t{block[half + 1]} << 32 | block[half];
  }

 private:
  std::uint64_t seed_;
  std::uint32_t stream_;
};

}  // namespace lockstep
