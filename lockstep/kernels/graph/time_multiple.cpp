#include "lockstep/kernels/graph/time_multiple.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <variant>

namespace lockstep::graph {
namespace {

using Inputs = std::span<const TimeMultiple* const>;

bool is_number(const TimeMultiple& value) { return value.factor == 0; }

TimeMultiple scaled(const TimeMultiple& value, double scale) {
  return {value.factor * scale, value.offset * scale, value.magnitude * std::fabs(scale)};
}

TimeMultiple sum(const TimeMultiple& a, const TimeMultiple& b) {
  return {a.factor + b.factor, a.offset + b.offset, std::max(a.magnitude, b.magnitude)};
}

TimeMultiple number(double value) { return {0, value, std::fabs(value)}; }

std::optional<TimeMultiple> of_binary(BinaryKind kind, const TimeMultiple& a, const TimeMultiple& b) {
  switch (kind) {
    case BinaryKind::add:
      return sum(a, b);
    case BinaryKind::subtract:
      return sum(a, scaled(b, -1));
    case BinaryKind::multiply:
      if (is_number(a)) return scaled(b, a.offset);
      if (is_number(b)) return scaled(a, b.offset);
      return std::nullopt;
    case BinaryKind::divide:
      if (is_number(b) && b.offset != 0) return scaled(a, 1 / b.offset);
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

bool reads_values(const Inputs& inputs) {
  return std::ranges::none_of(inputs, [](const TimeMultiple* input) { return input == nullptr; });
}

// Whether a table's pieces beside knot i are one: before the first knot and behind the last one it keeps its value.
bool is_smooth(const Interpolate& table, std::size_t i) {
  const std::size_t knots = table.knots.size(), powers = table.powers(), last = knots - 1;
  for (std::size_t j = 0; j < table.outputs; ++j) {
    // Of the piece that begins at a knot, the highest power first.
    const auto coefficient = [&](std::size_t power, std::size_t knot) {
      return table.coefficients[(j * powers + power) * knots + knot];
    };
    const auto is_level = [&](std::size_t knot) {
      for (std::size_t power = 0; power + 1 < powers; ++power) {
        if (coefficient(power, knot) != 0) return false;
      }
      return true;
    };
    if (i == 0 && !is_level(0)) return false;
    if (i == 0) continue;
    if (is_level(i - 1) && (i == last || is_level(i))) {
      if (coefficient(powers - 1, i - 1) != coefficient(powers - 1, i)) return false;
      continue;
    }
    if (powers != 2 || i == last || coefficient(0, i - 1) != coefficient(0, i)) return false;
  }
  return true;
}

// The first of the table's knots that x meets at the times asked for, and the one behind the last. Rounded times
// ascend, or descend, as the knots do.
std::pair<std::size_t, std::size_t> knots_between(const Interpolate& table, const TimeMultiple& x,
                                                  const KnotsAsked& asked) {
  const auto place = [&](const auto& is_before) {
    return static_cast<std::size_t>(std::ranges::partition_point(table.knots, is_before) - table.knots.begin());
  };
  if (x.factor > 0) {
    return {place([&](double knot) { return x.time_of(knot) < asked.first; }),
            place([&](double knot) { return x.time_of(knot) <= asked.last; })};
  }
  return {place([&](double knot) { return x.time_of(knot) > asked.last; }),
          place([&](double knot) { return x.time_of(knot) >= asked.first; })};
}

// Of a table that meets none of its knots there, one that it meets at another time: that tells who counts that it has
// some.
void find_knots(const Interpolate& table, const TimeMultiple& x, const KnotsAsked& asked,
                const std::function<void(const TimeMultiple&, double, bool)>& found) {
  auto [i, end] = knots_between(table, x, asked);
  const bool jumps = table.powers() == 1;
  while (i < end && is_smooth(table, i)) ++i;
  while (i < end && is_smooth(table, end - 1)) --end;
  if (i == end) {
    std::size_t any = 0;
    while (any < table.knots.size() && is_smooth(table, any)) ++any;
    const double time = any < table.knots.size() ? x.time_of(table.knots[any]) : asked.first;
    if (time < asked.first || time > asked.last) found(x, table.knots[any], jumps);
    return;
  }
  found(x, table.knots[i], jumps);
  if (asked.ends_only) i = std::max(i + 2, end) - 2;
  for (++i; i < end; ++i) {
    if (!is_smooth(table, i)) found(x, table.knots[i], jumps);
  }
}

}  // namespace

std::optional<TimeMultiple> time_multiple(const Operation& operation, Inputs inputs) {
  if (const auto* constant = std::get_if<Constant>(&operation)) {
    if (constant->values.size() != 1 || !std::isfinite(constant->values[0])) return std::nullopt;
    return number(constant->values[0]);
  }
  if (!reads_values(inputs)) return std::nullopt;
  if (const auto* binary = std::get_if<Binary>(&operation)) return of_binary(binary->kind, *inputs[0], *inputs[1]);
  if (const auto* columns = std::get_if<Columns>(&operation)) {
    if (columns->indices.size() == 1) return *inputs[0];  // of a value of one feature
  } else if (const auto* unary = std::get_if<Unary>(&operation)) {
    if (unary->kind == UnaryKind::negate) return scaled(*inputs[0], -1);
  } else if (const auto* rescale = std::get_if<Rescale>(&operation)) {
    if (rescale->scale.size() == 1) return sum(scaled(*inputs[0], rescale->scale[0]), number(rescale->shift[0]));
  } else if (const auto* standardise = std::get_if<Standardise>(&operation)) {
    if (standardise->scale.size() == 1)
      return scaled(sum(*inputs[0], number(-standardise->shift[0])), 1 / standardise->scale[0]);
  }
  return std::nullopt;
}

void find_bends(const Operation& operation, Inputs inputs, const KnotsAsked& asked,
                const std::function<void(const TimeMultiple&, double, bool)>& found) {
  if (inputs.empty() || !reads_values(inputs)) return;
  if (const auto* binary = std::get_if<Binary>(&operation)) {
    const bool jumps = binary->kind == BinaryKind::less || binary->kind == BinaryKind::less_or_equal;
    const bool bends = binary->kind == BinaryKind::minimum || binary->kind == BinaryKind::maximum;
    const TimeMultiple difference = sum(*inputs[0], scaled(*inputs[1], -1));
    if ((jumps || bends) && !is_number(difference)) found(difference, 0, jumps);
    return;
  }
  const TimeMultiple& x = *inputs[0];
  if (is_number(x)) return;
  if (const auto* table = std::get_if<Interpolate>(&operation)) {
    find_knots(*table, x, asked, found);
  } else if (const auto* clip = std::get_if<Clip>(&operation)) {
    for (const double bound : {clip->minimum, clip->maximum}) {
      if (std::isfinite(bound)) found(x, bound, false);
    }
  } else if (const auto* zone = std::get_if<DeadZone>(&operation)) {
    found(x, zone->lower, true);
    found(x, zone->upper, true);
  } else if (const auto* unary = std::get_if<Unary>(&operation)) {
    if (unary->kind == UnaryKind::absolute) found(x, 0, false);
  } else if (const auto* activate = std::get_if<Activate>(&operation)) {
    const ActivationKind kind = activate->activation.kind;
    if (kind == ActivationKind::relu || kind == ActivationKind::leaky_relu) found(x, 0, false);
  }
}

}  // namespace lockstep::graph
