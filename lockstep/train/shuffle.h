// The order in which an epoch takes its samples: the same on every machine.
#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "lockstep/core/random.h"

namespace lockstep::train {

// The stream of the orders of epochs, independent of that of initial weights.
inline constexpr std::uint32_t kOrderStream = 0x4f524452;

// Fisher and Yates, from the counter-based numbers of (seed, stream, epoch). Fewer than 2^32 rows.
inline void shuffle(std::span<std::uint32_t> rows, std::uint64_t seed, std::uint32_t stream, std::uint64_t epoch) {
  const Random random(seed, stream);
  for (std::size_t i = rows.size(); i-- > 1;) {
    const std::uint64_t high = random.bits(epoch, static_cast<std::uint32_t>(i)) >> 32;
    std::swap(rows[i], rows[static_cast<std::size_t>(high * (i + 1) >> 32)]);
  }
}

}  // namespace lockstep::train
