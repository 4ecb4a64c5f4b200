// Whether numbers are all finite, several at a time: nets are asked often, and have many.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>

namespace lockstep {

// Whether all numbers, converted to To, are finite. One too large for float32 becomes an infinity there.
template <class To = double>
bool all_finite(std::span<const double> numbers) {
  // An exponent of ones, and nothing else, carries into the sign's place: no comparison, which compilers for baseline
  // x86-64 would take one by one.
  using Bits = std::conditional_t<sizeof(To) == 4, std::uint32_t, std::uint64_t>;
  constexpr int kMantissa = sizeof(To) == 4 ? 23 : 52, kSign = sizeof(To) * 8 - 1;
  constexpr Bits kLeast = Bits{1} << kMantissa, kExponent = (Bits{1} << kSign) - kLeast;
  Bits carried = 0;
  for (const double number : numbers) carried |= (std::bit_cast<Bits>(static_cast<To>(number)) & kExponent) + kLeast;
  return carried >> kSign == 0;
}

}  // namespace lockstep
