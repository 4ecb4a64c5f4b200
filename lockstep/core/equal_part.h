// The part of an ordered list that has one key.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

namespace lockstep {

// Those elements of `list`, ascending by member `key`, whose key is `value`: a view into the list. As
// std::ranges::equal_range, whose subrange Clang 14 does not compile with the library of GCC 12.
template <class T, class Key>
std::span<const T> equal_part(const std::vector<T>& list, const Key& value, Key T::*key) {
  const auto first = std::ranges::lower_bound(list, value, std::ranges::less(), key);
  return {first, std::ranges::upper_bound(first, list.end(), value, std::ranges::less(), key)};
}

}  // namespace lockstep
