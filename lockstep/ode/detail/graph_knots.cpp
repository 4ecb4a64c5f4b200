#include "lockstep/ode/detail/graph_knots.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <variant>

#include "lockstep/ode/detail/continuous_choice.h"
#include "lockstep/ode/detail/graph_jumps.h"
#include "lockstep/ode/detail/knot_bounds.h"
#include "lockstep/ode/detail/time_pieces.h"

namespace lockstep::ode::detail {

namespace {

using graph::TimeMultiple;
using Values = std::vector<std::optional<TimePieces>>;
using Inputs = std::span<const TimePieces* const>;
using Parameters = std::span<const double>;
using Continuous = std::span<const std::size_t>;

// Of each row of the ports, which take the pieces one after another.
Values row_values(const GraphPieces& pieces, const Parameters& parameters, const TimeWalk& walk) {
  Values values;
  for (const GraphPiece& piece : pieces) {
    for (std::size_t i = piece.first; i < piece.first + piece.count; ++i) {
      if (piece.source == GraphSource::time) {
        values.emplace_back(walk.whole({1, 0, 0}));
      } else if (piece.source == GraphSource::parameters && !parameters.empty() && std::isfinite(parameters[i])) {
        values.emplace_back(walk.whole({0, parameters[i], std::fabs(parameters[i])}));
      } else {
        values.emplace_back();
      }
    }
  }
  return values;
}

// Calls visit(node, inputs, made) for one node after another; those are null that are no multiples of the time. Of the
// graph's values those that are `continuous` bend, and do not jump.
template <class Visit>
void go_through(const graph::Graph& graph, const GraphPieces& pieces, Continuous continuous,
                const Parameters& parameters, TimeWalk& walk, Visit visit) {
  const Values rows = row_values(pieces, parameters, walk);
  Values values;
  std::vector<std::size_t> first_row;  // of each port
  std::size_t row = 0;
  for (const graph::Port& port : graph.inputs) {
    values.push_back(port.width == 1 ? rows[row] : std::nullopt);
    first_row.push_back(row);
    row += port.width;
  }
  const auto at = [](const std::optional<TimePieces>& value) { return value ? &*value : nullptr; };
  std::vector<const TimePieces*> inputs;
  for (const graph::Node& node : graph.nodes) {
    inputs.clear();
    for (const std::size_t input : node.inputs) inputs.push_back(at(values[input]));
    const auto* columns = std::get_if<graph::Columns>(&node.operation);
    if (columns != nullptr && columns->indices.size() == 1 && node.inputs[0] < first_row.size()) {
      inputs[0] = at(rows[first_row[node.inputs[0]] + columns->indices[0]]);
    }
    auto made = walk.apply(node.operation, inputs, std::ranges::binary_search(continuous, values.size()));
    visit(node, Inputs(inputs), at(made));
    values.push_back(std::move(made));
  }
}

// What a value is made of.
struct Sources {
  bool time = false, state = false;
  bool moving_state = false;    // one with a derivative that is not always 0
  bool runs_with_time = false;  // by a multiple of it somewhere

  Sources operator|(const Sources& other) const {
    return {time || other.time, state || other.state, moving_state || other.moving_state,
            runs_with_time || other.runs_with_time};
  }
};

// Whether a multiple of the time stays one beside a state: in sums and what is compared, not in a product of both.
bool keeps_multiples(const graph::Node& node, const std::vector<Sources>& values) {
  using Kind = graph::BinaryKind;
  if (const auto* unary = std::get_if<graph::Unary>(&node.operation)) {
    return unary->kind == graph::UnaryKind::negate || unary->kind == graph::UnaryKind::absolute ||
           graph::is_in_steps(unary->kind);
  }
  const auto* binary = std::get_if<graph::Binary>(&node.operation);
  if (binary == nullptr) {
    return std::holds_alternative<graph::Columns>(node.operation) ||
           std::holds_alternative<graph::Concatenate>(node.operation) ||
           std::holds_alternative<graph::Clip>(node.operation) || std::holds_alternative<graph::Select>(node.operation);
  }
  if (binary->kind != Kind::multiply && binary->kind != Kind::divide) return binary->kind != Kind::power;
  const Sources &a = values[node.inputs[0]], &b = values[node.inputs[1]];
  return (a.runs_with_time && !b.state) || (b.runs_with_time && !a.state && binary->kind == Kind::multiply);
}

// Calls visit(node, number of its value, sources, inputs, made) as go_through() does; of states those that are `still`
// do not move.
template <class Visit>
void go_through_sources(const graph::Graph& graph, const GraphPieces& pieces, const KnownKnots& known,
                        const std::vector<bool>& still, const Parameters& parameters, TimeWalk& walk, Visit visit) {
  std::vector<Sources> rows, values;
  for (const GraphPiece& piece : pieces) {
    const bool time = piece.source == GraphSource::time, state = piece.source == GraphSource::state;
    for (std::size_t i = piece.first; i < piece.first + piece.count; ++i) {
      rows.push_back({time, state, state && !(i < still.size() && still[i]), time});
    }
  }
  std::vector<std::size_t> first_row;
  std::size_t row = 0;
  for (const graph::Port& port : graph.inputs) {
    first_row.push_back(row);
    Sources all;
    for (std::size_t i = 0; i < port.width; ++i) all = all | rows[row++];
    values.push_back(all);
  }
  go_through(graph, pieces, known.continuous, parameters, walk,
             [&](const graph::Node& node, Inputs inputs, const TimePieces* made) {
               Sources all;
               const auto* columns = std::get_if<graph::Columns>(&node.operation);
               if (columns != nullptr && node.inputs[0] < first_row.size()) {
                 for (const std::size_t index : columns->indices) all = all | rows[first_row[node.inputs[0]] + index];
               } else {
                 for (const std::size_t input : node.inputs) all = all | values[input];
               }
               if (all.time && !all.state) {
                 all.runs_with_time = made != nullptr && std::ranges::any_of(*made, [](const auto& piece) {
                                        return piece.value.factor != 0;
                                      });
               } else if (all.state && !keeps_multiples(node, values)) {
                 all.runs_with_time = false;
               }
               visit(node, values.size(), all, inputs, made);
               values.push_back(all);
             });
}

bool may_jump(const graph::Operation& operation) {
  if (const auto* binary = std::get_if<graph::Binary>(&operation)) {
    return binary->kind == graph::BinaryKind::less || binary->kind == graph::BinaryKind::less_or_equal ||
           binary->kind == graph::BinaryKind::modulo;
  }
  if (const auto* unary = std::get_if<graph::Unary>(&operation)) return graph::is_in_steps(unary->kind);
  return std::holds_alternative<graph::Interpolate>(operation) || std::holds_alternative<graph::DeadZone>(operation);
}

// Whether the times at which the operation jumps are found, given that it may: a remainder's with a constant divisor.
bool is_located(const graph::Operation& operation, Inputs inputs, const TimePieces* made) {
  const auto* binary = std::get_if<graph::Binary>(&operation);
  if (binary != nullptr && binary->kind == graph::BinaryKind::modulo) return made != nullptr;
  return std::ranges::find(inputs, nullptr) == inputs.end();
}

bool hides_knots(const graph::Graph& graph, const GraphPieces& pieces, const KnownKnots& known,
                 const Parameters& parameters, TimeWalk& walk) {
  bool hides = false;
  go_through_sources(
      graph, pieces, known, {}, parameters, walk,
      [&](const graph::Node& node, std::size_t value, const Sources& sources, Inputs inputs, const TimePieces* made) {
        hides = hides ||
                (sources.time && !sources.state && may_jump(node.operation) &&
                 !is_located(node.operation, inputs, made) && !std::ranges::binary_search(known.continuous, value));
      });
  return hides;
}

// Of a graph as a right-hand side the components whose derivative is the number 0: nothing but resets and impulses
// moves them.
std::vector<bool> still_components(const graph::Graph& graph) {
  const auto is_zero = [&](std::size_t value) {
    if (value < graph.inputs.size()) return false;
    const auto* constant = std::get_if<graph::Constant>(&graph.nodes[value - graph.inputs.size()].operation);
    return constant != nullptr && std::ranges::all_of(constant->values, [](double x) { return x == 0; });
  };
  const std::vector<std::size_t> widths = graph.widths();
  const std::size_t made = graph.outputs[0].value;
  std::vector<bool> still;
  const auto add = [&](std::size_t value) { still.insert(still.end(), widths[value], is_zero(value)); };
  const graph::Node* node = made < graph.inputs.size() ? nullptr : &graph.nodes[made - graph.inputs.size()];
  if (node != nullptr && std::holds_alternative<graph::Concatenate>(node->operation)) {
    for (const std::size_t value : node->inputs) add(value);
  } else {
    add(made);
  }
  return still;
}

TimeWalk walked(const graph::Graph& graph, const GraphPieces& pieces, Continuous continuous, const TimeSpan& span,
                const Parameters& parameters, bool ends_only = false) {
  TimeWalk walk(span, ends_only);
  go_through(graph, pieces, continuous, parameters, walk, [](const graph::Node&, Inputs, const TimePieces*) {});
  return walk;
}

// Pieces that the span cuts short may be too narrow to tell on which side of a bend they are: they lie beyond it.
TimeSpan with_margin(const TimeSpan& span, double magnitude) {
  const double margin = 0x1p-40 * size_of(span, magnitude);
  return {span.first - margin, span.last + margin};
}

// Lists of as many cost a trajectory less than its steps.
constexpr std::size_t kFewKnots = 256;

std::size_t table_knots(const graph::Graph& graph) {
  std::size_t knots = 0;
  for (const graph::Node& node : graph.nodes) {
    if (const auto* table = std::get_if<graph::Interpolate>(&node.operation)) knots += table->knots.size();
  }
  return knots;
}

bool reads_time(const GraphPieces& pieces) {
  return std::ranges::any_of(pieces, [](const GraphPiece& piece) { return piece.source == GraphSource::time; });
}

}  // namespace

std::vector<TimeKnot> time_knots(const graph::Graph& graph, const GraphPieces& pieces, const KnownKnots& known,
                                 const TimeSpan& span, Parameters parameters) {
  if (!reads_time(pieces)) return {};
  const auto knots_of = [&](const TimeSpan& of) {
    return walked(graph, pieces, known.continuous, of, parameters).take_knots();
  };
  if (std::isinf(span.last - span.first)) return knots_of(kEver);
  TimeWalk ever = walked(graph, pieces, known.continuous, kEver, parameters, known.many);
  const bool repeats = ever.repeats();
  std::vector<TimeKnot> knots = ever.take_knots();
  const KnotBounds bounds = bounds_of(knots, repeats);
  if (repeats) return knots_of(with_margin(span, bounds.magnitude));
  if (!known.many) return knots;
  // By such numbers even pieces of an infinite span may be too narrow.
  const bool is_told = bounds.magnitude < 0x1p40;
  knots = knots_of(is_told ? with_margin(span, bounds.magnitude) : kEver);
  std::erase_if(knots, [&](const TimeKnot& knot) { return knot.time < span.first || knot.time > span.last; });
  return knots;
}

KnotBounds knot_bounds(const graph::Graph& graph, const GraphPieces& pieces, const KnownKnots& known,
                       Parameters parameters) {
  if (!reads_time(pieces)) return {};
  TimeWalk ever = walked(graph, pieces, known.continuous, kEver, parameters, known.many);
  const bool repeats = ever.repeats();
  return bounds_of(ever.take_knots(), repeats);
}

std::vector<TimeKnot> knots_within(const KnownKnots& known, const TimeSpan& span) {
  if (!known.many) return known.ever;
  const auto begin = std::ranges::lower_bound(known.ever, span.first, {}, &TimeKnot::time);
  return {begin, std::ranges::upper_bound(begin, known.ever.end(), span.last, {}, &TimeKnot::time)};
}

bool hides_knots_of_states(const graph::Graph& graph, const GraphPieces& pieces, const KnownKnots& known,
                           std::size_t parameters) {
  constexpr std::size_t kMost = 64;  // that are looked at: each takes a plan of the graph
  if (!reads_time(pieces)) return false;
  const std::vector<double> any = any_parameters(parameters);
  TimeWalk walk(kEver, known.many);
  std::vector<std::size_t> sites;  // nodes
  bool looks_up = false;
  go_through_sources(
      graph, pieces, known, still_components(graph), any, walk,
      [&](const graph::Node& node, std::size_t value, const Sources& sources, Inputs, const TimePieces*) {
        if (!sources.time || !sources.state || !may_jump(node.operation) ||
            std::ranges::binary_search(known.continuous, value))
          return;
        if (!sources.moving_state && std::holds_alternative<graph::Interpolate>(node.operation)) {
          looks_up = true;
        } else if (!sources.moving_state || sources.runs_with_time) {
          sites.push_back(value - graph.inputs.size());
        }
      });
  sites.resize(std::min(sites.size(), kMost));
  return looks_up || std::ranges::any_of(sites, [&](std::size_t node) { return jumps_at_states(graph, pieces, node); });
}

KnownKnots known_knots(const graph::Graph& graph, const GraphPieces& pieces, std::size_t parameters) {
  KnownKnots known;
  if (!reads_time(pieces)) return known;
  known.continuous = continuous_choices(graph);
  known.many = table_knots(graph) > kFewKnots;
  TimeWalk without = walked(graph, pieces, known.continuous, kEver, {}, known.many);
  const std::vector<double> any = any_parameters(parameters);
  TimeWalk with(kEver, known.many);
  known.some_hide = hides_knots(graph, pieces, known, any, with);
  known.some_move = with.sites() != without.sites();
  known.some_repeat = with.repeats();
  known.ever = without.take_knots();
  known.bounds = bounds_of(known.ever, without.repeats());
  if (known.many) {
    known.ever = walked(graph, pieces, known.continuous, kEver, {}).take_knots();
    std::ranges::stable_sort(known.ever, {}, &TimeKnot::time);
  }
  return known;
}

}  // namespace lockstep::ode::detail
