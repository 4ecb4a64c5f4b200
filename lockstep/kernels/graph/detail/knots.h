// The knots of a table as the kernels search them.
#pragma once

#include <bit>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"
#include "lockstep/kernels/graph/detail/schedule.h"

namespace lockstep::graph {

// Rounded to T, then NaN up to a power of two; `node` is what messages name. Throws Error (model) where two of them are
// one number in T.
template <class T>
std::vector<T> padded_knots(const Interpolate& table, const std::string& node) {
  constexpr std::string_view kTable = ".table";  // of a table that equations call, whose knots are given as `at`
  const std::string field =
      node.ends_with(kTable) ? node.substr(0, node.size() - kTable.size()) + ".at" : node + ".knots";
  std::vector<T> knots;
  knots.reserve(std::bit_ceil(table.knots.size()));
  for (std::size_t i = 0; i < table.knots.size(); ++i) {
    knots.push_back(round_to<T>(table.knots[i], field, i));
    if (i == 0 || knots[i - 1] < knots[i]) continue;
    throw Error(ErrorKind::model, {field + "[" + std::to_string(i) + "]",
                                   rounded_text(table.knots[i], 17) + " after " + rounded_text(table.knots[i - 1], 17) +
                                       ", which are one number in float32",
                                   "numbers that differ in the precision of the run",
                                   "take float64, or let what the table is read at begin near 0"});
  }
  knots.resize(std::bit_ceil(knots.size()), std::numeric_limits<T>::quiet_NaN());
  return knots;
}

}  // namespace lockstep::graph
