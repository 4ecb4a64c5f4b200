// Numbers that are made one after another into part of a dataset, a piece at a time.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <optional>
#include <vector>

#include "lockstep/core/direct_file.h"
#include "lockstep/core/hdf5.h"

namespace lockstep::ode::detail {

// Past the page cache memory stays bounded whatever the size of the dataset: a piece has so many numbers.
inline constexpr std::size_t kPieceElements = std::size_t{1} << 18;

// The numbers next() of a part of a dataset, in order: past the page cache where that is possible. What waits for the
// disk before a file is shown holds up the solve once its buffers are full.
template <class T, class Next>
void write_in_order(hdf5::Dataset& dataset, DirectFile* direct, PageBuffer& piece, const hdf5::Shape& start,
                    const hdf5::Shape& count, Next next) {
  const std::size_t row = std::accumulate(count.begin() + 1, count.end(), std::size_t{1}, std::multiplies<>{});
  const std::size_t elements = count[0] * row;
  const auto offset = direct == nullptr ? std::nullopt : dataset.offset_in_file<T>();
  if (!offset) {
    std::vector<T> numbers(elements);
    std::ranges::generate(numbers, std::ref(next));
    return dataset.write<T>(numbers, start, count);
  }
  for (std::size_t done = 0; done < elements; done += kPieceElements) {
    const std::size_t here = std::min(kPieceElements, elements - done);
    const std::uint64_t to = *offset + (start[0] * row + done) * sizeof(T);
    piece.fit(here * sizeof(T), to);
    for (std::size_t i = 0; i < here; ++i) {
      const T number = next();
      std::memcpy(piece.data() + i * sizeof(T), &number, sizeof(T));
    }
    direct->write({piece.data(), piece.size()}, to);
  }
}

}  // namespace lockstep::ode::detail
