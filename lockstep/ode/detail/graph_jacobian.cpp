#include "lockstep/ode/detail/graph_jacobian.h"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/tile_plan.h"
#include "lockstep/ode/detail/graph_source.h"
#include "lockstep/ode/detail/guarded_tile.h"

namespace lockstep::ode::detail {
namespace {

// Columns of the Jacobian, the time behind the components, and the rows that each may move.
using Columns = std::vector<std::vector<std::size_t>>;

Columns moved_rows(const graph::Graph& graph, const GraphPieces& pieces, std::size_t components) {
  constexpr std::size_t kNone = ~std::size_t(0);
  std::vector<std::size_t> column_of;  // of each input feature
  for (const GraphPiece& piece : pieces) {
    for (std::size_t i = 0; i < piece.count; ++i) {
      column_of.push_back(piece.source == GraphSource::state  ? piece.first + i
                          : piece.source == GraphSource::time ? components
                                                              : kNone);
    }
  }
  Columns columns(components + 1);
  const auto read = graph::dependencies(graph, graph::CountedWeights::all);  // whatever they are trained to
  for (std::size_t row = 0; row < read.size(); ++row) {
    for (const std::size_t feature : read[row]) {
      if (column_of[feature] != kNone) columns[column_of[feature]].push_back(row);
    }
  }
  return columns;
}

std::vector<std::vector<std::size_t>> pattern_of(const Columns& columns) {
  std::vector<std::vector<std::size_t>> pattern(columns.size() - 1);
  for (std::size_t column = 0; column < pattern.size(); ++column) {
    for (const std::size_t row : columns[column]) pattern[row].push_back(column);
  }
  return pattern;
}

// Columns in groups that share no row, each in the first group that has room.
std::vector<std::vector<std::size_t>> grouped(const Columns& columns, std::size_t count) {
  std::vector<std::vector<std::size_t>> groups;
  std::vector<std::vector<bool>> taken;
  for (std::size_t column = 0; column < count; ++column) {
    if (columns[column].empty()) continue;
    const auto has_room = [&](const std::vector<bool>& rows) {
      return std::ranges::none_of(columns[column], [&](std::size_t row) { return rows[row]; });
    };
    const auto group = static_cast<std::size_t>(std::ranges::find_if(taken, has_room) - taken.begin());
    if (group == groups.size()) {
      groups.emplace_back();
      taken.emplace_back(count, false);
    }
    groups[group].push_back(column);
    for (const std::size_t row : columns[column]) taken[group][row] = true;
  }
  return groups;
}

// Along which a group's columns move.
graph::Direction direction_of(const std::vector<std::size_t>& group, const GraphPieces& pieces,
                              std::size_t components) {
  graph::Direction direction(pieces.size());
  for (std::size_t port = 0; port < pieces.size(); ++port) {
    const GraphPiece& piece = pieces[port];
    for (const std::size_t column : group) {
      const GraphSource source = column == components ? GraphSource::time : GraphSource::state;
      if (piece.source != source) continue;
      direction[port].resize(piece.count);
      direction[port][source == GraphSource::time ? 0 : column - piece.first] = 1;
    }
  }
  return direction;
}

// Whole vectors of them.
std::size_t lanes_in_use(int lanes) {
  constexpr std::size_t kLeast = 16;
  return (static_cast<std::size_t>(lanes) + kLeast - 1) / kLeast * kLeast;
}

// Of dense nodes, as jvp_graph() may repeat them: half as many as the transpose reads, where every direction moves all.
std::size_t most_weights(const graph::Graph& graph, std::size_t components) {
  constexpr std::size_t kFew = std::size_t{1} << 15, kMany = std::size_t{1} << 24;
  std::size_t weights = 0;
  for (const graph::Node& node : graph.nodes) {
    if (const auto* dense = std::get_if<graph::Dense>(&node.operation)) weights += dense->weights.size();
  }
  return std::clamp(components * weights, kFew, kMany);
}

template <class T>
class GraphJacobian final : public JacobianTile<T> {
 public:
  GraphJacobian(const graph::Graph& graph, const graph::WeightPlaces& places, const GraphPieces& pieces,
                std::size_t components, CpuTarget target)
      : GraphJacobian(graph, places, pieces, moved_rows(graph, pieces, components), target) {}
  GraphJacobian(const graph::Graph& graph, const graph::WeightPlaces& places, const GraphPieces& pieces,
                const Columns& columns, CpuTarget target)
      : components_(columns.size() - 1),
        target_(target),
        pieces_(pieces),
        graph_(graph),
        places_(places),
        layout_(LinearLayout::of(pattern_of(columns))) {
    const std::size_t components = components_;
    std::vector<std::vector<std::size_t>> groups = grouped(columns, components);
    if (!columns[components].empty() || groups.empty()) groups.push_back({components});
    for (const std::vector<std::size_t>& group : groups) {
      for (const std::size_t column : group) {
        for (const std::size_t row : columns[column]) {
          const std::size_t made = directions_.size() * components + row;
          if (column == components) {
            time_entries_.push_back({made, row});
          } else {
            entries_.push_back({made, layout_.at(layout_.place(row), layout_.place(column))});
          }
        }
      }
      directions_.push_back(direction_of(group, pieces, components));
    }
    rows_ = directions_.size() * components;
  }

  // False where that takes more weights than `most`.
  bool compile(std::size_t most) { return compile(own_weights(), most); }
  // Nothing there, and where it is too long.
  std::optional<std::string> source(std::size_t most) {
    const auto made = derive(own_weights(), most);
    if (!made) return {};
    std::vector<Assignment> assignments;
    for (const Entry& entry : entries_)
      assignments.push_back({"by_state[" + std::to_string(entry.at) + "]", entry.made});
    for (const Entry& entry : time_entries_)
      assignments.push_back({"by_time[" + std::to_string(entry.at) + "]", entry.made});
    const auto zeros = [](std::size_t count, const std::string& of) {
      return "for (int i = 0; i < " + std::to_string(count) + "; ++i) " + of + "[i] = 0;\n";
    };
    auto text = jacobian_source(*made, pieces_, assignments);
    if (text) *text = zeros(layout_.entries(), "by_state") + zeros(components_, "by_time") + *text;
    return text;
  }
  std::shared_ptr<JacobianTile<T>> with_own_weights() const override {
    if (graph::gather_weights(graph_, places_).empty()) return nullptr;
    return std::make_shared<GraphJacobian>(*this);
  }
  void set_weights(std::span<const T> weights) override { compile(weights, std::numeric_limits<std::size_t>::max()); }

  void evaluate(const TileView<T>& tile, T* by_state, T* by_time, std::byte* workspace) const override {
    T* const time = reinterpret_cast<T*>(workspace);
    T* const made = time + kTileLanes;
    std::array<const T*, GraphTilePlan<T>::kMostInputs> in{};
    place_inputs(pieces_, tile.t, tile.in, tile.parameters, time, in.data());
    plan_->evaluate(std::span(in).first(pieces_.size()), made, tile.lanes,
                    workspace + (1 + rows_) * kTileLanes * sizeof(T));
    const std::size_t used = lanes_in_use(tile.lanes);
    for (std::size_t entry = 0; entry < layout_.entries(); ++entry)
      std::fill_n(by_state + entry * kTileLanes, used, T(0));
    for (const Entry& entry : entries_)
      std::copy_n(made + entry.made * kTileLanes, used, by_state + entry.at * kTileLanes);
    std::fill_n(by_time, components_ * kTileLanes, T(0));
    for (const Entry& entry : time_entries_)
      std::copy_n(made + entry.made * kTileLanes, used, by_time + entry.at * kTileLanes);
  }
  std::size_t workspace_bytes() const override {
    return (1 + rows_) * kTileLanes * sizeof(T) + round_up_to_alignment(plan_->workspace_bytes());
  }
  const LinearLayout& layout() const override { return layout_; }

 private:
  std::vector<T> own_weights() const {
    const std::vector<double> given = graph::gather_weights(graph_, places_);
    return {given.begin(), given.end()};
  }

  struct Entry {
    std::size_t made, at;  // of the plan's output, of what it is made for
  };

  bool compile(std::span<const T> weights, std::size_t most) {
    const auto made = derive(weights, most);
    if (made) plan_ = GraphTilePlan<T>::compile(*made, target_);
    return made.has_value();
  }
  // What is worked out before, from weights alone, is worked out from those of the solve's precision.
  std::optional<graph::Graph> derive(std::span<const T> weights, std::size_t most) {
    graph::scatter_weights(std::vector<double>(weights.begin(), weights.end()), places_, graph_);
    return graph::jvp_graph(graph_, directions_, most);
  }

  std::size_t components_;
  CpuTarget target_;
  GraphPieces pieces_;
  graph::Graph graph_;
  graph::WeightPlaces places_;
  std::vector<graph::Direction> directions_;
  LinearLayout layout_;
  std::vector<Entry> entries_, time_entries_;
  std::size_t rows_ = 0;  // of the plan's output
  std::optional<GraphTilePlan<T>> plan_;
};

}  // namespace

template <class T>
std::shared_ptr<const JacobianTile<T>> graph_jacobian(const graph::Graph& graph, const graph::WeightPlaces& places,
                                                      const GraphPieces& pieces, std::size_t components,
                                                      CpuTarget target) {
  const auto jacobian = std::make_shared<GraphJacobian<T>>(graph, places, pieces, components, target);
  return jacobian->compile(most_weights(graph, components)) ? jacobian : nullptr;
}

template <class T>
std::shared_ptr<const JacobianSource> graph_jacobian_source(const graph::Graph& graph,
                                                            const graph::WeightPlaces& places,
                                                            const GraphPieces& pieces, std::size_t components) {
  GraphJacobian<T> jacobian(graph, places, pieces, components, CpuTarget::scalar);
  auto text = jacobian.source(most_weights(graph, components));
  if (!text) return nullptr;
  return std::make_shared<JacobianSource>(JacobianSource{std::move(*text), jacobian.layout()});
}
template std::shared_ptr<const JacobianSource> graph_jacobian_source<float>(const graph::Graph&,
                                                                            const graph::WeightPlaces&,
                                                                            const GraphPieces&, std::size_t);
template std::shared_ptr<const JacobianSource> graph_jacobian_source<double>(const graph::Graph&,
                                                                             const graph::WeightPlaces&,
                                                                             const GraphPieces&, std::size_t);

template std::shared_ptr<const JacobianTile<float>> graph_jacobian(const graph::Graph&, const graph::WeightPlaces&,
                                                                   const GraphPieces&, std::size_t, CpuTarget);
template std::shared_ptr<const JacobianTile<double>> graph_jacobian(const graph::Graph&, const graph::WeightPlaces&,
                                                                    const GraphPieces&, std::size_t, CpuTarget);

}  // namespace lockstep::ode::detail
