// What tests of every combination leave out under AddressSanitizer.
#pragma once

#include <cstddef>

#include "lockstep/core/detail/sanitizer.h"

namespace lockstep {

#ifdef LOCKSTEP_ADDRESS_SANITIZER
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Whether combination `turn` of a loop over all of them is tried: every one, but under AddressSanitizer, where the code
// without vector instructions takes a hundred times as long, every `of`-th. Let `of` have no factor in common with the
// sizes of the inner loops, and each of their values still has its turn.
constexpr bool is_tried(std::size_t turn, std::size_t of) { return !kSanitized || turn % of == 0; }

}  // namespace lockstep
