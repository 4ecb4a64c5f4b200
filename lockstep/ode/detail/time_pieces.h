// Values of a graph that are, piece by piece, a multiple of the time plus a constant, and the times at which operations
// on them bend or jump: floor(t) is a constant between whole numbers, t % 24 the time less a constant within a day.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/kernels/graph/time_multiple.h"
#include "lockstep/ode/time_knot.h"

namespace lockstep::ode::detail {

struct TimePiece {
  double end;  // where it ends, which begins where the one before it ends, or with the span
  graph::TimeMultiple value;
};
using TimePieces = std::vector<TimePiece>;  // one after another to the span's end

// What operations do on a span of time. On an infinite one those that repeat are taken for one piece, and one of their
// jumps stands for all. With `ends_only` of a table's knots the first and the last one stand for all.
class TimeWalk {
 public:
  explicit TimeWalk(const TimeSpan& span, bool ends_only = false) : span_(span), ends_only_(ends_only) {}

  TimePieces whole(const graph::TimeMultiple& value) const { return {{span_.last, value}}; }
  // What the operation makes of these values, null where they are none; notes where it bends within the span, and
  // whether it jumps there: not if it is `continuous`. None where it makes no such value. Throws Error where there are
  // too many times to list.
  std::optional<TimePieces> apply(const graph::Operation& operation, std::span<const TimePieces* const> inputs,
                                  bool continuous = false);

  std::vector<TimeKnot> take_knots() { return std::move(knots_); }
  // How many comparisons and the like were located, whether or not they switch within the span.
  std::size_t sites() const { return sites_; }
  bool repeats() const { return repeats_; }

 private:
  struct Piece;
  void find(const graph::Operation& operation, const Piece& piece, std::vector<double>& cuts);
  void find_repeated(const graph::TimeMultiple& x, double each, double offset, const Piece& piece,
                     std::vector<double>& cuts);

  TimeSpan span_;
  bool ends_only_;
  std::vector<TimeKnot> knots_;
  std::size_t sites_ = 0;
  bool repeats_ = false;
};

}  // namespace lockstep::ode::detail
