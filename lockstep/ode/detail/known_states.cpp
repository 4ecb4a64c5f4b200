#include "lockstep/ode/detail/known_states.h"

#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <vector>

namespace lockstep::ode::detail {
namespace {

// Whether nothing but its own start, where that is free, moves what was measured of a component in `row`.
bool stands_alone(const MeasuredRows& measured, std::size_t row, std::size_t component) {
  for (std::size_t column = 0; column + 1 < measured.rows.columns; ++column) {
    const bool own = column < measured.starts && column == component;
    if (!own && measured.rows.at(row, column) != 0) return false;
  }
  return true;
}

// `own`: its rows.
bool is_known(const MeasuredRows& measured, std::size_t component, const std::vector<std::size_t>& own) {
  const Rows& rows = measured.rows;
  double square = 0, product = 0;  // of derivatives by its start, and of these with residuals
  std::size_t count = 0;
  for (const std::size_t row : own) {
    if (!stands_alone(measured, row, component)) return false;
    const double by_start = measured.starts == 0 ? 0 : rows.at(row, component);
    square += by_start * by_start;
    product += by_start * rows.at(row, rows.columns - 1);
    ++count;
  }
  if (count < (square > 0 ? 2u : 1u)) return false;
  const double start = square > 0 ? product / square : 0;  // by how much it differs from the one that was found
  for (const std::size_t row : own) {
    const double by_start = measured.starts == 0 ? 0 : rows.at(row, component);
    if (!(std::fabs(rows.at(row, rows.columns - 1) - by_start * start) <= measured.roundings[row])) return false;
  }
  return true;
}

}  // namespace

void take_out_known_states(MeasuredRows& measured) {
  std::map<std::size_t, std::vector<std::size_t>> rows_of;  // of each component
  for (std::size_t row = 0; row < measured.rows.count(); ++row) rows_of[measured.components[row]].push_back(row);
  std::set<std::size_t> known;
  for (const auto& [component, own] : rows_of) {
    if (is_known(measured, component, own)) known.insert(component);
  }
  if (known.empty()) return;
  MeasuredRows rest{{measured.rows.columns}, measured.starts, {}, {}};
  for (std::size_t row = 0; row < measured.rows.count(); ++row) {
    if (known.contains(measured.components[row])) continue;
    for (std::size_t column = 0; column < measured.rows.columns; ++column) {
      const bool known_start = column < measured.starts && known.contains(column);
      rest.rows.numbers.push_back(known_start ? 0 : measured.rows.at(row, column));
    }
    rest.components.push_back(measured.components[row]);
    rest.roundings.push_back(measured.roundings[row]);
  }
  measured = std::move(rest);
}

}  // namespace lockstep::ode::detail
