// The times at which a graph as a right-hand side bends or jumps.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/ode/detail/graph_inputs.h"
#include "lockstep/ode/time_knot.h"

namespace lockstep::ode::detail {

struct KnownKnots {
  std::vector<TimeKnot> ever;  // of an infinite span, those that no parameter moves; ascending where they are many
  KnotBounds bounds;           // of those
  bool many = false;           // StateFunction::has_many_knots(): for the length of its tables
  bool some_move = false;
  bool some_repeat = false;
  // Whether it compares, or looks up, what is made of the time in another way, sin(t) > 0.9: at times that nothing
  // tells. Not what the state has a part in, whose errors the steps see, nor what is continuous.
  bool some_hide = false;
  std::vector<std::size_t> continuous;  // continuous_choices(): those bend, all other comparisons jump
};
KnownKnots known_knots(const graph::Graph& graph, const GraphPieces& pieces, std::size_t parameters);

// Whether it jumps where the time comes to what a state tells: t < c, t % period < c, of c a component. Of states that
// do move not where the time stands in another form than a multiple of it, x < sin(t) or x * t < 1: those it is that
// then come to a threshold, as they do without the time, and whose errors the steps see.
bool hides_knots_of_states(const graph::Graph& graph, const GraphPieces& pieces, const KnownKnots& known,
                           std::size_t parameters);

// Of everything in it that reads a multiple of the time plus a constant, piece by piece: tables, comparisons, bounds,
// whole parts and remainders. Given parameters are constants; without them what reads one tells nothing. As
// StateFunction::time_knots; `known` are the graph's own.
std::vector<TimeKnot> time_knots(const graph::Graph& graph, const GraphPieces& pieces, const KnownKnots& known,
                                 const TimeSpan& span, std::span<const double> parameters);

KnotBounds knot_bounds(const graph::Graph& graph, const GraphPieces& pieces, const KnownKnots& known,
                       std::span<const double> parameters);

// Those of KnownKnots::ever for a span.
std::vector<TimeKnot> knots_within(const KnownKnots& known, const TimeSpan& span);

// Parameters as good as any others, which make no factor of the time vanish but by design.
inline std::vector<double> any_parameters(std::size_t count) {
  std::vector<double> values;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(0.7390851332151607 + 0.5671432904097838 * static_cast<double>(i));
  }
  return values;
}

}  // namespace lockstep::ode::detail
