// A net that is no plain stack as a right-hand side.
#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/plan.h"
#include "lockstep/kernels/graph/tile_plan.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/ode/detail/arithmetic_tile.h"
#include "lockstep/ode/detail/evaluation_cost.h"
#include "lockstep/ode/detail/graph_inputs.h"
#include "lockstep/ode/detail/graph_jacobian.h"
#include "lockstep/ode/detail/graph_jumps.h"
#include "lockstep/ode/detail/graph_knots.h"
#include "lockstep/ode/detail/graph_source.h"
#include "lockstep/ode/detail/kept_lowering.h"
#include "lockstep/ode/detail/reverse_arithmetic.h"
#include "lockstep/ode/detail/reverse_graph.h"
#include "lockstep/ode/differentiable_event.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode {
namespace {

using detail::GraphPiece;
using detail::GraphPieces;
using Source = detail::GraphSource;

// Each input port takes one piece: rows are read where they lie, but for time, which is float64.
template <class T>
class GraphTileInPlace final : public TileFunction<T>, public detail::ArithmeticTile<T> {
 public:
  GraphTileInPlace(GraphTilePlan<T> plan, GraphPieces pieces) : plan_(std::move(plan)), pieces_(std::move(pieces)) {}

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override {
    std::array<const T*, GraphTilePlan<T>::kMostInputs> in{};
    detail::place_inputs(pieces_, tile.t, tile.in, tile.parameters, reinterpret_cast<T*>(workspace), in.data());
    plan_.evaluate(std::span(in).first(pieces_.size()), tile.out, tile.lanes, workspace + kTimeBytes);
  }

  std::size_t workspace_bytes() const override { return kTimeBytes + plan_.workspace_bytes(); }
  std::string description() const override { return plan_.description(); }

  const LaneProgram* arithmetic() const override { return plan_.arithmetic(); }
  Source source(std::size_t input) const override { return pieces_[input].source; }
  static_assert(detail::ArithmeticTile<T>::kOutput == GraphTilePlan<T>::kOutput &&
                detail::ArithmeticTile<T>::kFirstInput == GraphTilePlan<T>::kFirstInput);

 private:
  static constexpr std::size_t kTimeBytes = kTileLanes * sizeof(T);

  GraphTilePlan<T> plan_;
  GraphPieces pieces_;
};

// Inputs are put together first.
template <class T>
class GraphTile final : public TileFunction<T> {
 public:
  GraphTile(GraphPlan<T> plan, GraphPieces pieces, std::size_t inputs)
      : plan_(std::move(plan)), pieces_(std::move(pieces)), inputs_(inputs) {}

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override {
    if (pieces_.size() == 1) {  // the state where it lies
      plan_.evaluate_tile(tile, workspace);
      return;
    }
    T* const inputs = reinterpret_cast<T*>(workspace);
    detail::gather_inputs(pieces_, tile.t, tile.in, tile.parameters, inputs);
    plan_.evaluate_tile({tile.t, inputs, nullptr, tile.out, tile.lanes}, workspace + gathered_bytes());
  }

  std::size_t workspace_bytes() const override { return gathered_bytes() + plan_.workspace_bytes(); }
  std::string description() const override { return plan_.description(); }

 private:
  std::size_t gathered_bytes() const { return pieces_.size() == 1 ? 0 : inputs_ * kTileLanes * sizeof(T); }

  GraphPlan<T> plan_;
  GraphPieces pieces_;
  std::size_t inputs_;
};

[[noreturn]] void refuse_net(const std::string& name, std::string found, std::string expected, std::string remedy) {
  throw Error(ErrorKind::invalid_argument, {.field = "net " + name,
                                            .found = std::move(found),
                                            .expected = std::move(expected),
                                            .remedy = std::move(remedy)});
}

class GraphNet : public StateFunction {
 public:
  GraphNet(graph::Graph graph, NetOptions options) : graph_(std::move(graph)), options_(std::move(options)) {
    graph_.widths();  // throws where something does not fit
    if (options_.weight_places.empty()) options_.weight_places = graph::own_places(graph_);
    graph::gather_weights(graph_, options_.weight_places);  // throws too
    if (graph_.outputs.size() != 1) {
      refuse_net(options_.name, std::to_string(graph_.outputs.size()) + " output ports", "one, the state's derivative",
                 "concatenate them, or export the net with this output alone");
    }
    components_ = graph_.outputs[0].width;
    for (const graph::Port& port : graph_.inputs) inputs_ += port.width;
    if (graph_.inputs.size() > 1 && named(graph_.inputs[0].name)) {
      take_by_name();
    } else {
      take_in_order();
    }
    source_ = detail::graph_source(graph_, pieces_);
    knots_ = detail::known_knots(graph_, pieces_, parameters_);
  }

  // Of a function that is no right-hand side.
  GraphNet(graph::Graph graph, std::size_t parameters, std::string name)
      : graph_(std::move(graph)),
        options_{.name = std::move(name), .weight_places = graph::own_places(graph_)},
        parameters_(parameters) {
    graph_.widths();
    if (graph_.outputs.size() != 1 || graph_.inputs.empty() || graph_.inputs[0].name != "u" ||
        (graph_.outputs[0].width != 1 && graph_.outputs[0].width != graph_.inputs[0].width)) {
      throw Error(ErrorKind::invalid_argument,
                  {options_.name, "other ports", "an input port \"u\" first, and one output or as many as u has", {}});
    }
    components_ = graph_.inputs[0].width;
    is_function_ = true;
    take_by_name();
    if (parameters_ != parameters) {
      throw Error(ErrorKind::invalid_argument, {options_.name,
                                                std::to_string(parameters_) + " parameters",
                                                std::to_string(parameters) + ", as a trajectory has",
                                                {}});
    }
    using Form = detail::GraphSourceForm;
    source_ = detail::graph_source(graph_, pieces_, outputs() == 1 ? Form::event : Form::derivative);
    knots_ = detail::known_knots(graph_, pieces_, parameters_);
  }

  std::size_t components() const override { return components_; }
  std::size_t parameters() const override { return parameters_; }
  std::size_t outputs() const override { return graph_.outputs[0].width; }
  std::string description() const override {
    if (is_function_) return options_.name;
    return "net " + options_.name + " (" + std::to_string(inputs_) + " -> " + std::to_string(components_) +
           ", graph of " + std::to_string(graph_.nodes.size()) + " nodes)";
  }
  std::string digest() const override {
    std::call_once(digest_once_, [this] {
      ContentHash hash;
      hash.add("graph net").add(graph_.digest());
      for (const GraphPiece& piece : pieces_) {
        hash.add(piece.source == Source::state ? "state" : piece.source == Source::time ? "time" : "parameters");
      }
      digest_ = hash.hex();
    });
    return digest_;
  }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override { return lower<float>(target); }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return lower<double>(target);
  }
  bool jumps_at_states() const override {
    std::call_once(jumps_once_, [this] { jumps_at_states_ = detail::jumps_at_states(graph_, pieces_); });
    return jumps_at_states_;
  }
  bool moves_knots() const override { return knots_.some_move; }
  bool repeats_knots() const override { return knots_.some_repeat; }
  bool hides_knots() const override { return knots_.some_hide; }
  bool hides_knots_of_states() const override {
    std::call_once(hides_once_, [this] {
      hides_knots_of_states_ = detail::hides_knots_of_states(graph_, pieces_, knots_, parameters_);
    });
    return hides_knots_of_states_;
  }
  std::vector<TimeKnot> time_knots(const TimeSpan& span, std::span<const double> parameters) const override {
    if (stay(parameters)) return detail::knots_within(knots_, span);
    return detail::time_knots(graph_, pieces_, knots_, span, parameters);
  }
  bool has_many_knots() const override { return knots_.many; }
  KnotBounds knot_bounds(std::span<const double> parameters) const override {
    return stay(parameters) ? knots_.bounds : detail::knot_bounds(graph_, pieces_, knots_, parameters);
  }
  // On a GPU it is compiled when a solve needs it.
  std::vector<FunctionPart> parts() const override {
    if (!source_) return {};
    const std::string name = (is_function_ ? "function " : "net ") + digest();
    const bool returns = is_function_ && outputs() == 1;
    return {{SourcePart{name, &*source_, components_, parameters_, returns}, parameters_}};
  }
  std::optional<EvaluationCost> evaluation_cost() const override { return detail::cost_of(graph_); }
  std::vector<double> weights() const override { return graph::gather_weights(graph_, options_.weight_places); }
  std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget target) const override {
    return differentiable<float>(target);
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return differentiable<double>(target);
  }
  std::shared_ptr<DifferentiableTile<float>> directional_f32(CpuTarget target) const override {
    return detail::directional_graph<float>(graph_, pieces_, components_, options_.weight_places, target);
  }
  std::shared_ptr<DifferentiableTile<double>> directional_f64(CpuTarget target) const override {
    return detail::directional_graph<double>(graph_, pieces_, components_, options_.weight_places, target);
  }
  std::shared_ptr<const JacobianTile<float>> jacobian_f32(CpuTarget target) const override {
    return jacobian<float>(target);
  }
  std::shared_ptr<const JacobianTile<double>> jacobian_f64(CpuTarget target) const override {
    return jacobian<double>(target);
  }
  std::shared_ptr<const JacobianSource> jacobian_source(Precision precision) const override {
    if (!source_ || !takes_pieces_in_place()) return nullptr;
    const bool is_f64 = precision == Precision::f64;
    std::call_once(jacobian_source_once_[is_f64], [&] {
      jacobian_source_[is_f64] =
          is_f64 ? detail::graph_jacobian_source<double>(graph_, options_.weight_places, pieces_, components_)
                 : detail::graph_jacobian_source<float>(graph_, options_.weight_places, pieces_, components_);
    });
    return jacobian_source_[is_f64];
  }

 protected:
  const graph::Graph& graph() const { return graph_; }
  const GraphPieces& pieces() const { return pieces_; }

 private:
  // Whether the knots are those that are kept.
  bool stay(std::span<const double> parameters) const {
    return !knots_.some_repeat && (!knots_.some_move || parameters.empty());
  }
  static const Source* named(const std::string& name) {
    static constexpr Source kSources[] = {Source::state, Source::parameters, Source::time};
    if (name == "u" || name == "state") return &kSources[0];
    if (name == "p" || name == "parameters") return &kSources[1];
    if (name == "t" || name == "time") return &kSources[2];
    return nullptr;
  }

  void take_in_order() {
    const std::size_t least = components_ + (options_.with_time ? 1 : 0);
    if (inputs_ < least) {
      refuse_net(options_.name, std::to_string(inputs_) + " inputs and " + std::to_string(components_) + " outputs",
                 std::string("at least ") + std::to_string(least) + " inputs: the state that the outputs are the " +
                     "derivative of" + (options_.with_time ? ", and time" : ""),
                 "give a net that maps the state (and parameters) to the state's derivative");
    }
    parameters_ = inputs_ - least;
    pieces_.push_back({Source::state, 0, components_});
    if (parameters_ > 0) pieces_.push_back({Source::parameters, 0, parameters_});
    if (options_.with_time) pieces_.push_back({Source::time, 0, 1});
  }

  void take_by_name() {
    for (const graph::Port& port : graph_.inputs) {
      const Source* source = named(port.name);
      const bool again = source != nullptr && std::any_of(pieces_.begin(), pieces_.end(),
                                                          [&](const GraphPiece& p) { return p.source == *source; });
      if (source == nullptr || again) {
        refuse_net(options_.name, "an input port \"" + port.name + '"',
                   "one each of state, parameters and time, called u or state, p or parameters, t or time",
                   "rename the ports, or give the net one input port");
      }
      const std::size_t expected = *source == Source::state ? components_ : *source == Source::time ? 1 : port.width;
      if (port.width != expected) {
        refuse_net(options_.name, "an input port \"" + port.name + "\" of " + std::to_string(port.width) + " features",
                   std::to_string(expected), "give a net that maps the state to its derivative");
      }
      if (*source == Source::parameters) parameters_ = port.width;
      pieces_.push_back({*source, 0, port.width});
    }
  }

  bool takes_pieces_in_place() const {
    return pieces_.size() <= GraphTilePlan<double>::kMostInputs && detail::lie_in_place(graph_, pieces_);
  }

  template <class T>
  std::shared_ptr<const TileFunction<T>> lower(CpuTarget target) const {
    return lowered_.get<T>(target, [&]() -> std::shared_ptr<const TileFunction<T>> {
      if (takes_pieces_in_place()) {
        return std::make_shared<GraphTileInPlace<T>>(GraphTilePlan<T>::compile(graph_, target), pieces_);
      }
      return std::make_shared<GraphTile<T>>(GraphPlan<T>::compile(graph_, target), pieces_, inputs_);
    });
  }

  // Each its own: one may be made ready for what another is not asked.
  template <class T>
  std::shared_ptr<DifferentiableTile<T>> differentiable(CpuTarget target) const {
    auto kept = derivatives_.get<T>(target, [&] { return detail::arithmetic_derivative<T>(graph_, pieces_, target); });
    if (kept) return detail::reverse_arithmetic<T>(std::move(kept));
    return detail::reverse_graph<T>(graph_, pieces_, options_.weight_places, target);
  }

  template <class T>
  std::shared_ptr<const JacobianTile<T>> jacobian(CpuTarget target) const {
    if (!takes_pieces_in_place()) return nullptr;
    return jacobians_.get<T>(target, [&] {
      return detail::graph_jacobian<T>(graph_, options_.weight_places, pieces_, components_, target);
    });
  }

  graph::Graph graph_;
  NetOptions options_;
  detail::KeptLowering<> lowered_;
  detail::KeptLowering<JacobianTile> jacobians_;
  detail::KeptLowering<detail::ArithmeticDerivative> derivatives_;
  mutable std::once_flag digest_once_;  // every solve asks for it
  mutable std::string digest_;
  mutable std::once_flag jumps_once_;  // some tens of evaluations
  mutable bool jumps_at_states_ = false;
  mutable std::once_flag hides_once_;
  mutable bool hides_knots_of_states_ = false;
  mutable std::array<std::once_flag, 2> jacobian_source_once_;  // of float32, float64; a solve asks a few times
  mutable std::array<std::shared_ptr<const JacobianSource>, 2> jacobian_source_;
  std::size_t components_ = 0, parameters_ = 0, inputs_ = 0;
  bool is_function_ = false;
  GraphPieces pieces_;
  detail::KnownKnots knots_;
  std::optional<std::string> source_;  // for a GPU; none where the net is too large
};

// An event or a new state, whose derivatives come from a plan made when they are first asked for.
class GraphFunction final : public GraphNet, public DifferentiableEvent, public DifferentiableReset {
 public:
  using GraphNet::GraphNet;

  double slopes(double t, std::span<const double> u, std::span<const double> p, std::span<double> by_state,
                std::span<double> by_parameter) const override {
    const double one = 1;
    return transpose(t, u, p, {&one, 1}, by_state, by_parameter);
  }

  double transpose(double t, std::span<const double> u, std::span<const double> p, std::span<const double> bar,
                   std::span<double> by_state, std::span<double> by_parameter) const override {
    std::call_once(once_, [this] { plan_ = GraphPlan<double>::compile(graph::vjp_graph(graph())); });
    double by_time = 0;
    std::ranges::fill(by_state, 0.0);
    std::ranges::fill(by_parameter, 0.0);
    const auto row = [](auto* data, std::size_t count) {
      return MatrixView<std::remove_pointer_t<decltype(data)>>{data, 1, count, static_cast<std::ptrdiff_t>(count), 1};
    };
    std::vector<MatrixView<const double>> in;
    std::vector<MatrixView<double>> out{
        row(static_cast<double*>(nullptr), outputs())};  // the function itself: not wanted
    for (const GraphPiece& piece : pieces()) {
      const bool state = piece.source == Source::state, time = piece.source == Source::time;
      in.push_back(row(time ? &t : state ? u.data() : p.data(), piece.count));
      out.push_back(row(time ? &by_time : state ? by_state.data() : by_parameter.data(), piece.count));
    }
    in.push_back(row(bar.data(), bar.size()));
    plan_->evaluate(in, out);
    return by_time;
  }

 private:
  mutable std::once_flag once_;
  mutable std::optional<GraphPlan<double>> plan_;
};

}  // namespace

Rhs net(graph::Graph graph, NetOptions options) {
  return std::make_shared<GraphNet>(std::move(graph), std::move(options));
}

Rhs graph_function(graph::Graph graph, std::size_t parameters, std::string name) {
  return std::make_shared<GraphFunction>(std::move(graph), parameters, std::move(name));
}

}  // namespace lockstep::ode
