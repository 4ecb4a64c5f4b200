// Numbers to the bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <type_traits>

namespace lockstep::agreement {

// NaN is NaN, whatever its payload.
template <class T>
bool same_number(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b) || (std::isnan(a) && std::isnan(b));
}

}  // namespace lockstep::agreement
