// Messages about names nobody knows: which known one was probably meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "lockstep/core/error.h"

namespace lockstep {

// The known name with the fewest insertions, deletions and replacements of letters; the first of equals. Empty when
// none is close (more than a third of the longer name's letters would change, of two letters both).
std::string nearest_name(std::string_view name, std::span<const std::string_view> known);

// "FIELD: found "NAME", expected one of A, B, C; did you mean A?", to be thrown.
Error unknown_name(std::string field, std::string_view name, std::span<const std::string_view> known);

}  // namespace lockstep
