#include "lockstep/ode/detail/reverse_arithmetic.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/tile_plan.h"

namespace lockstep::ode::detail {
namespace {

// The cotangents of the input ports, one after another as one output port.
graph::Graph transposed(const graph::Graph& graph) {
  graph::Graph made = graph::vjp_graph(graph);
  graph::Node all{"bars", graph::Concatenate{}, {}};
  std::size_t width = 0;
  for (std::size_t port = graph.outputs.size(); port < made.outputs.size(); ++port) {
    all.inputs.push_back(made.outputs[port].value);
    width += made.outputs[port].width;
  }
  made.nodes.push_back(std::move(all));
  made.outputs = {{"bars", made.inputs.size() + made.nodes.size() - 1, width}};
  return made;
}

}  // namespace

template <class T>
struct ArithmeticDerivative {
  graph::Graph graph;
  GraphPieces pieces;  // [port]
  CpuTarget target;
  GraphTilePlan<T> plan, reverse;
  // Made when it is first asked for.
  mutable std::once_flag made_forward = {};
  mutable std::optional<GraphTilePlan<T>> forward = {};
};

namespace {

// Nothing is recorded: the transpose evaluates the function again.
template <class T>
class ReverseArithmetic final : public DifferentiableTile<T> {
 public:
  explicit ReverseArithmetic(std::shared_ptr<const ArithmeticDerivative<T>> derivative)
      : derivative_(std::move(derivative)), outputs_(derivative_->graph.outputs[0].width) {
    for (const GraphPiece& piece : pieces_) inputs_ += piece.count;
  }

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override {
    Rows rows;
    place(tile, workspace, rows);
    plan_.evaluate(std::span(rows).first(pieces_.size()), tile.out, tile.lanes, workspace + kTimeBytes);
  }
  std::size_t workspace_bytes() const override { return kTimeBytes + plan_.workspace_bytes(); }
  std::string description() const override { return plan_.description(); }

  // Lanes that do not count have zeros for cotangents, and inputs at which a derivative may be infinite: their products
  // are NaN, and must be nothing.
  void reverse(const ReverseTileView<T>& tile, std::byte* workspace) const override {
    alignas(64) T counts[kTileLanes] = {};
    const bool all = is_nowhere_zero(tile.out_bar, tile.lanes);  // the first output's tell as a rule
    for (std::size_t j = 0; !all && j < outputs_; ++j) mark(tile.out_bar + j * kTileLanes, counts);
    int lanes = tile.lanes;
    while (!all && lanes > 0 && counts[lanes - 1] == 0) --lanes;
    if (lanes == 0) return;
    Rows rows;
    place(tile, workspace, rows);
    rows[pieces_.size()] = tile.out_bar;
    T* const bars = reinterpret_cast<T*>(workspace + kTimeBytes);
    reverse_.evaluate(std::span(rows).first(pieces_.size() + 1), bars, lanes,
                      workspace + kTimeBytes + bytes_of(inputs_));
    const T* row = bars;
    const int computed = whole_groups(lanes);
    for (const GraphPiece& piece : pieces_) {
      T* const rows_bar = piece.source == GraphSource::state        ? tile.in_bar
                          : piece.source == GraphSource::parameters ? tile.parameter_bar
                                                                    : tile.time_bar;
      for (std::size_t i = 0; i < piece.count; ++i, row += kTileLanes) {
        if (rows_bar == nullptr) continue;
        T* const to = rows_bar + i * kTileLanes;
        if (all) {
          for (int lane = 0; lane < computed; ++lane) to[lane] += row[lane];
        } else {
          for (int lane = 0; lane < computed; ++lane) to[lane] += counts[lane] != 0 ? row[lane] : T(0);
        }
      }
    }
  }
  std::size_t reverse_workspace_bytes() const override {
    return kTimeBytes + bytes_of(inputs_) + reverse_.workspace_bytes();
  }
  bool knows_time() const override { return true; }

  bool keeps_forward() const override { return true; }
  void prepare_forward() override {
    std::call_once(derivative_->made_forward, [this] {
      std::vector<std::size_t> moved;
      for (std::size_t port = 0; port < pieces_.size(); ++port) {
        if (pieces_[port].source != GraphSource::time) moved.push_back(port);
      }
      derivative_->forward =
          GraphTilePlan<T>::compile(graph::jvp_graph(derivative_->graph, moved), derivative_->target);
    });
    forward_ = &*derivative_->forward;
  }
  bool pushes_forward() const override { return forward_ != nullptr; }
  void forward(const ForwardTileView<T>& tile, std::byte* workspace) const override {
    Rows rows;
    place(tile, workspace, rows);
    std::size_t count = pieces_.size();
    for (const GraphPiece& piece : pieces_) {
      if (piece.source != GraphSource::time)
        rows[count++] = piece.source == GraphSource::state ? tile.in_dot : tile.parameter_dot;
    }
    forward_->evaluate(std::span(rows).first(count), tile.out_dot, tile.lanes, workspace + kTimeBytes);
  }
  std::size_t forward_workspace_bytes() const override {
    return forward_ == nullptr ? 0 : kTimeBytes + forward_->workspace_bytes();
  }

 private:
  static constexpr std::size_t kTimeBytes = kTileLanes * sizeof(T);
  static std::size_t bytes_of(std::size_t rows) { return rows * kTileLanes * sizeof(T); }
  using Rows = std::array<const T*, GraphTilePlan<T>::kMostInputs>;

  // Loops over so many lanes are made of whole registers.
  static int whole_groups(int lanes) {
    constexpr int kGroup = 64 / sizeof(T);
    return (lanes + kGroup - 1) / kGroup * kGroup;
  }
  static bool is_nowhere_zero(const T* bar, int lanes) {
    int zeros = 0;
    for (int lane = 0; lane < lanes; ++lane) zeros += bar[lane] == 0 ? 1 : 0;
    return zeros == 0;
  }
  static void mark(const T* bar, T* counts) {
    for (int lane = 0; lane < kTileLanes; ++lane) counts[lane] = bar[lane] != 0 ? T(1) : counts[lane];
  }

  template <class View>
  void place(const View& tile, std::byte* workspace, Rows& rows) const {
    place_inputs(pieces_, tile.t, tile.in, tile.parameters, reinterpret_cast<T*>(workspace), rows.data());
  }

  std::shared_ptr<const ArithmeticDerivative<T>> derivative_;
  const GraphPieces& pieces_ = derivative_->pieces;
  const GraphTilePlan<T>&plan_ = derivative_->plan, &reverse_ = derivative_->reverse;
  std::size_t inputs_ = 0, outputs_;
  const GraphTilePlan<T>* forward_ = nullptr;
};

// Ports together with their directions, and with the cotangent.
template <class T>
bool fits(const graph::Graph& graph, const GraphPieces& pieces) {
  const auto moved = static_cast<std::size_t>(
      std::ranges::count_if(pieces, [](const GraphPiece& piece) { return piece.source != GraphSource::time; }));
  return lie_in_place(graph, pieces) &&
         pieces.size() + std::max<std::size_t>(moved, 1) <= GraphTilePlan<T>::kMostInputs &&
         std::ranges::none_of(
             graph.nodes, [](const graph::Node& node) { return std::holds_alternative<graph::Dense>(node.operation); });
}

}  // namespace

template <class T>
std::shared_ptr<const ArithmeticDerivative<T>> arithmetic_derivative(const graph::Graph& graph,
                                                                     const GraphPieces& pieces, CpuTarget target) {
  if (!fits<T>(graph, pieces)) return nullptr;
  return std::shared_ptr<const ArithmeticDerivative<T>>(
      new ArithmeticDerivative<T>{graph, pieces, target, GraphTilePlan<T>::compile(graph, target),
                                  GraphTilePlan<T>::compile(transposed(graph), target)});
}
template std::shared_ptr<const ArithmeticDerivative<float>> arithmetic_derivative(const graph::Graph&,
                                                                                  const GraphPieces&, CpuTarget);
template std::shared_ptr<const ArithmeticDerivative<double>> arithmetic_derivative(const graph::Graph&,
                                                                                   const GraphPieces&, CpuTarget);

template <class T>
std::shared_ptr<DifferentiableTile<T>> reverse_arithmetic(std::shared_ptr<const ArithmeticDerivative<T>> derivative) {
  return std::make_shared<ReverseArithmetic<T>>(std::move(derivative));
}
template std::shared_ptr<DifferentiableTile<float>> reverse_arithmetic(
    std::shared_ptr<const ArithmeticDerivative<float>>);
template std::shared_ptr<DifferentiableTile<double>> reverse_arithmetic(
    std::shared_ptr<const ArithmeticDerivative<double>>);

}  // namespace lockstep::ode::detail
