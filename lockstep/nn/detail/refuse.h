// Small words that every reader and writer of models says.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::nn::detail {

[[noreturn]] inline void refuse(std::string field, std::string found, std::string expected, std::string remedy = {}) {
  throw Error(ErrorKind::model, {std::move(field), std::move(found), std::move(expected), std::move(remedy)});
}

// "[128, 32]"
inline std::string shape_text(std::span<const std::uint64_t> shape) {
  std::string result = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) result += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return result + "]";
}

// Would float32 lose no bit of any of these?
inline bool all_fit_float32(std::span<const double> values) {
  return std::all_of(values.begin(), values.end(),
                     [](double value) { return static_cast<double>(static_cast<float>(value)) == value; });
}

}  // namespace lockstep::nn::detail
