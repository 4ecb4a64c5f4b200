// Where the numbers of a value lie that has several dimensions, and where operators that select, turn or repeat take
// them from. The dimension of the batch is written as 1: one sample.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace lockstep::nn::detail {

using Extents = std::vector<std::int64_t>;
using Indices = std::vector<std::size_t>;

// How many numbers there are; nothing where they are more than `most`, or an extent is negative.
std::optional<std::size_t> numbers_in(const Extents& extents, std::size_t most);
// Of each dimension, how far its neighbours lie apart, row-major.
Indices strides_of(const Extents& extents);
// The sum of at[i] * steps[i] for every place within `extents`, row-major.
Indices places(const Extents& extents, const Indices& steps);

// What an operator takes from its operand: from[i] is the place of the number that comes to place i.
struct Picture {
  Extents extents;
  Indices from;
};
Picture whole(Extents extents);
// Of row-major numbers, along one dimension the parts `list`, in that order; `otherwise` where the list says kNone.
inline constexpr std::size_t kNone = SIZE_MAX;
template <class Number>
std::vector<Number> taken(const std::vector<Number>& numbers, const Extents& extents, std::size_t axis,
                          std::span<const std::size_t> list, Number otherwise) {
  std::vector<Number> result;
  if (numbers.empty()) return result;
  const auto extent = static_cast<std::size_t>(extents[axis]);
  const std::size_t inner = strides_of(extents)[axis], outer = numbers.size() / inner / extent;
  result.reserve(outer * list.size() * inner);
  for (std::size_t o = 0; o < outer; ++o) {
    for (const std::size_t at : list) {
      for (std::size_t i = 0; i < inner; ++i) {
        result.push_back(at == kNone ? otherwise : numbers[(o * extent + at) * inner + i]);
      }
    }
  }
  return result;
}
Picture taken(const Picture& picture, std::size_t axis, const Indices& list, std::size_t otherwise = 0);
// Dimension i of the result is order[i] of the picture.
Picture transposed(const Picture& picture, const Indices& order);
// As NumPy does it; nothing where `from` does not fit.
std::optional<Indices> broadcast(Extents from, const Extents& to);
// For every place of the other dimensions, row-major, the places along the dimensions `axes`, which ascend.
std::vector<Indices> groups_along(const Extents& extents, const Indices& axes);

}  // namespace lockstep::nn::detail
