#include "lockstep/ode/detail/time_pieces.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <variant>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"
#include "lockstep/kernels/math/math.h"

namespace lockstep::ode::detail {
namespace {

using graph::BinaryKind;
using graph::TimeMultiple;
using graph::UnaryKind;
using Arguments = std::vector<const TimeMultiple*>;

// A step ends at each: more than the steps that a solve may make unless it is told otherwise, by ten times.
constexpr double kMostTimes = 1 << 20;

double value_at(const TimeMultiple& x, double t) { return x.factor == 0 ? x.offset : std::fma(x.factor, t, x.offset); }

TimeMultiple number(double value) { return {0, value, std::fabs(value)}; }

// A time between the two, which may be infinite.
double between(double low, double high) {
  if (std::isinf(low) && std::isinf(high)) return 0;
  if (std::isinf(low)) return high - std::max(1.0, std::fabs(high));
  if (std::isinf(high)) return low + std::max(1.0, std::fabs(low));
  return low + (high - low) / 2;
}

// What each of the operations below makes where none of them bends or jumps, of which t is one time.
std::optional<TimeMultiple> of_unary(UnaryKind kind, const TimeMultiple& x, double t) {
  switch (kind) {
    case UnaryKind::absolute:
      return value_at(x, t) < 0 ? TimeMultiple{-x.factor, -x.offset, x.magnitude} : x;
    case UnaryKind::floor:
      return number(std::floor(value_at(x, t)));
    case UnaryKind::round:
      return number(std::nearbyint(value_at(x, t)));
    default:
      return std::nullopt;
  }
}

std::optional<TimeMultiple> of_binary(BinaryKind kind, const TimeMultiple& a, const TimeMultiple& b, double t) {
  const double left = value_at(a, t), right = value_at(b, t);
  switch (kind) {
    case BinaryKind::minimum:
      return left <= right ? a : b;
    case BinaryKind::maximum:
      return left >= right ? a : b;
    case BinaryKind::less:
      return number(left < right ? 1 : 0);
    case BinaryKind::less_or_equal:
      return number(left <= right ? 1 : 0);
    case BinaryKind::equal:
      return number(left == right ? 1 : 0);
    case BinaryKind::modulo: {
      if (b.factor != 0 || b.offset == 0) return std::nullopt;
      if (a.factor == 0) return number(math::modulo(a.offset, b.offset));
      const double taken = b.offset * std::floor(left / b.offset);
      return TimeMultiple{a.factor, a.offset - taken, std::max(a.magnitude, std::fabs(taken))};
    }
    default:
      return std::nullopt;
  }
}

std::optional<TimeMultiple> value_of(const graph::Operation& operation, const Arguments& x, double t) {
  if (auto made = graph::time_multiple(operation, x)) return made;
  if (const auto* unary = std::get_if<graph::Unary>(&operation)) return of_unary(unary->kind, *x[0], t);
  if (const auto* binary = std::get_if<graph::Binary>(&operation)) return of_binary(binary->kind, *x[0], *x[1], t);
  if (std::holds_alternative<graph::Select>(operation)) return value_at(*x[0], t) != 0 ? *x[1] : *x[2];
  if (const auto* clip = std::get_if<graph::Clip>(&operation)) {
    const double value = value_at(*x[0], t);
    return value < clip->minimum ? number(clip->minimum) : value > clip->maximum ? number(clip->maximum) : *x[0];
  }
  if (const auto* activate = std::get_if<graph::Activate>(&operation)) {
    if (activate->activation.kind == ActivationKind::relu) return value_at(*x[0], t) > 0 ? *x[0] : number(0);
  }
  return std::nullopt;
}

[[noreturn]] void refuse_times(double apart) {
  throw Error(ErrorKind::invalid_argument,
              {"options.stop_at_knots", "a function that jumps every " + rounded_text(apart, 3) + " of time",
               "at most 2^20 times in a span, at each of which a step ends",
               "look for a wrong unit, shorten the span, or give stop_at_knots = false"});
}

}  // namespace

struct TimeWalk::Piece {
  double first, last;
  const Arguments& x;
  bool continuous;
};

// Where x is a multiple of `each` plus `offset`.
void TimeWalk::find_repeated(const TimeMultiple& x, double each, double offset, const Piece& piece,
                             std::vector<double>& cuts) {
  ++sites_;
  if (x.factor == 0 || each == 0) return;
  repeats_ = true;
  const double apart = std::fabs(each / x.factor);
  const auto add = [&](double k) {
    const double value = each * k + offset, time = x.time_of(value);
    knots_.push_back({time, true, std::max(x.magnitude, std::fabs(value)) / std::fabs(x.factor), apart});
    return time;
  };
  const auto place = [&](double t) { return (value_at(x, t) - offset) / each; };
  if (std::isinf(span_.last - span_.first)) {
    add(std::floor(place(between(piece.first, piece.last))));
    return;
  }
  const auto [low, high] = std::minmax({place(piece.first), place(piece.last)});
  if (!(high - low <= kMostTimes - static_cast<double>(knots_.size())) || std::fabs(low) + std::fabs(high) > 0x1p52) {
    refuse_times(apart);
  }
  const auto last = static_cast<std::int64_t>(std::floor(high)) + 1;
  for (auto k = static_cast<std::int64_t>(std::floor(low)); k <= last; ++k) {
    const double time = x.time_of(each * static_cast<double>(k) + offset);
    if (time < piece.first || time > piece.last) continue;
    cuts.push_back(add(static_cast<double>(k)));
  }
}

void TimeWalk::find(const graph::Operation& operation, const Piece& piece, std::vector<double>& cuts) {
  if (const auto* unary = std::get_if<graph::Unary>(&operation); unary != nullptr && graph::is_in_steps(unary->kind)) {
    return find_repeated(*piece.x[0], 1, unary->kind == UnaryKind::round ? 0.5 : 0, piece, cuts);
  }
  const auto* binary = std::get_if<graph::Binary>(&operation);
  if (binary != nullptr && binary->kind == BinaryKind::modulo) {
    if (piece.x[1]->factor == 0) find_repeated(*piece.x[0], piece.x[1]->offset, 0, piece, cuts);
    return;
  }
  const bool finite = !std::isinf(span_.last - span_.first);
  const auto note = [&](const TimeMultiple& argument, double value, bool jumps) {
    const double time = argument.time_of(value);
    if (!std::isfinite(time)) return;
    ++sites_;
    if (time < piece.first || time > piece.last) return;
    jumps = jumps && !piece.continuous;
    knots_.push_back({time, jumps, std::max(argument.magnitude, std::fabs(value)) / std::fabs(argument.factor), 0});
    // Tables that do not repeat are as long as somebody made them.
    if (repeats_ && finite && static_cast<double>(knots_.size()) > kMostTimes) {
      refuse_times((span_.last - span_.first) / kMostTimes);
    }
    cuts.push_back(time);
  };
  graph::find_bends(operation, piece.x, {piece.first, piece.last, ends_only_}, note);
}

std::optional<TimePieces> TimeWalk::apply(const graph::Operation& operation, std::span<const TimePieces* const> inputs,
                                          bool continuous) {
  if (inputs.empty()) {
    const auto made = graph::time_multiple(operation, {});
    return made ? std::optional(whole(*made)) : std::nullopt;
  }
  if (std::ranges::find(inputs, nullptr) != inputs.end()) return std::nullopt;
  TimePieces made;
  bool all = true;
  std::vector<std::size_t> at(inputs.size());
  Arguments x(inputs.size());
  std::vector<double> cuts;
  for (double first = span_.first;;) {
    double last = span_.last;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      x[i] = &(*inputs[i])[at[i]].value;
      last = std::min(last, (*inputs[i])[at[i]].end);
    }
    cuts.clear();
    find(operation, {first, last, x, continuous}, cuts);
    cuts.push_back(last);
    std::ranges::sort(cuts);
    double from = first;
    for (const double cut : cuts) {
      if (!(cut > from) && !(cut == last && from == first)) continue;
      const auto value = all ? value_of(operation, x, between(from, cut)) : std::nullopt;
      all = all && value;
      if (value) made.push_back({cut, *value});
      from = cut;
    }
    if (!(last < span_.last)) return all ? std::optional(std::move(made)) : std::nullopt;
    for (std::size_t i = 0; i < inputs.size(); ++i) at[i] += (*inputs[i])[at[i]].end == last ? 1 : 0;
    first = last;
  }
}

}  // namespace lockstep::ode::detail
