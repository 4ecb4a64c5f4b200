// A net as a right-hand side.
#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/kernels/graph/stack.h"
#include "lockstep/kernels/mlp/parameters.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/ode/detail/function_with_net.h"
#include "lockstep/ode/detail/kept_lowering.h"
#include "lockstep/ode/detail/reverse_graph.h"
#include "lockstep/ode/detail/reverse_net.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode {
namespace {

// The net reads the state where it lies; where it also takes parameters or time, its inputs are put together first.
template <class T>
class NetTile final : public TileFunction<T> {
 public:
  NetTile(Plan<T> plan, std::size_t components, std::size_t parameters, bool with_time)
      : plan_(std::move(plan)), components_(components), parameters_(parameters), with_time_(with_time) {}

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override {
    if (gathered_inputs() == 0) {
      plan_.evaluate_tile(tile, workspace);
      return;
    }
    T* const inputs = reinterpret_cast<T*>(workspace);
    T* row = std::copy_n(tile.in, components_ * kTileLanes, inputs);
    row = std::copy_n(tile.parameters, parameters_ * kTileLanes, row);
    if (with_time_) {
      for (int lane = 0; lane < kTileLanes; ++lane) row[lane] = T(tile.t[lane]);
    }
    plan_.evaluate_tile({tile.t, inputs, nullptr, tile.out, tile.lanes},
                        workspace + gathered_inputs() * kTileLanes * sizeof(T));
  }

  std::size_t workspace_bytes() const override {
    return gathered_inputs() * kTileLanes * sizeof(T) + plan_.workspace_bytes();
  }
  std::string description() const override { return plan_.description(); }

 private:
  std::size_t gathered_inputs() const { return plan_.inputs() == components_ ? 0 : plan_.inputs(); }

  Plan<T> plan_;
  std::size_t components_;
  std::size_t parameters_;
  bool with_time_;
};

// The same as a graph of one input port.
graph::Graph graph_of(const Mlp& mlp) {
  graph::Graph made{{{"in", 0, mlp.inputs()}}, {}, {}};
  for (graph::Operation& operation : graph::operations_of(mlp)) {
    const std::size_t last = made.nodes.size();
    made.nodes.push_back({"node" + std::to_string(last), std::move(operation), {last}});
  }
  made.outputs = {{"out", made.nodes.size(), mlp.outputs()}};
  return made;
}

class Net final : public StateFunction {
 public:
  Net(Mlp mlp, NetOptions options) : mlp_(std::move(mlp)), options_(std::move(options)) {
    mlp_.validate();
    if (!options_.weight_places.empty()) {
      throw Error(ErrorKind::invalid_argument,
                  {.field = "weight_places",
                   .found = std::to_string(options_.weight_places.size()) + " beside a plain stack of layers",
                   .expected = "none: all its weights are trained",
                   .remedy = "give its graph"});
    }
    const std::size_t least = mlp_.outputs() + (options_.with_time ? 1 : 0);
    if (mlp_.outputs() > 0 && mlp_.inputs() >= least) return;
    throw Error(
        ErrorKind::invalid_argument,
        {.field = "net " + options_.name,
         .found = std::to_string(mlp_.inputs()) + " inputs and " + std::to_string(mlp_.outputs()) + " outputs",
         .expected = std::string("at least ") + std::to_string(least) + " inputs: the state that the outputs are the " +
                     "derivative of" + (options_.with_time ? ", and time" : ""),
         .remedy = "give a net that maps the state (and parameters) to the state's derivative"});
  }

  std::size_t components() const override { return mlp_.outputs(); }
  std::size_t parameters() const override { return mlp_.inputs() - mlp_.outputs() - (options_.with_time ? 1 : 0); }
  std::string description() const override { return "net " + options_.name + " (" + detail::shape(mlp_) + ")"; }
  std::string digest() const override {
    std::call_once(digest_once_, [this] {
      digest_ = ContentHash().add("net").add(detail::digest(mlp_)).add(options_.with_time ? "time" : "").hex();
    });
    return digest_;
  }
  std::vector<FunctionPart> parts() const override { return {{NetPart{&mlp_, options_.with_time}, parameters()}}; }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override { return lower<float>(target); }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return lower<double>(target);
  }
  std::vector<double> weights() const override { return gather_parameters<double>(mlp_); }
  std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget target) const override {
    return detail::reverse_net<float>(mlp_, components(), parameters(), options_.with_time, target);
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return detail::reverse_net<double>(mlp_, components(), parameters(), options_.with_time, target);
  }
  std::shared_ptr<DifferentiableTile<float>> directional_f32(CpuTarget target) const override {
    return directional<float>(target);
  }
  std::shared_ptr<DifferentiableTile<double>> directional_f64(CpuTarget target) const override {
    return directional<double>(target);
  }

 private:
  template <class T>
  std::shared_ptr<const TileFunction<T>> lower(CpuTarget target) const {
    return lowered_.get<T>(target, [&] {
      return std::make_shared<const NetTile<T>>(Plan<T>::compile(mlp_, target), components(), parameters(),
                                                options_.with_time);
    });
  }

  template <class T>
  std::shared_ptr<DifferentiableTile<T>> directional(CpuTarget target) const {
    const graph::Graph graph = graph_of(mlp_);
    detail::GraphPieces pieces{{detail::GraphSource::state, 0, components()}};
    if (parameters() > 0) pieces.push_back({detail::GraphSource::parameters, 0, parameters()});
    if (options_.with_time) pieces.push_back({detail::GraphSource::time, 0, 1});
    return detail::directional_graph<T>(graph, pieces, components(), graph::own_places(graph), target);
  }

  Mlp mlp_;
  NetOptions options_;
  detail::KeptLowering<> lowered_;
  mutable std::once_flag digest_once_;  // who solves in a loop asks for it each time
  mutable std::string digest_;
};

}  // namespace

Rhs net(Mlp mlp, NetOptions options) { return std::make_shared<Net>(std::move(mlp), std::move(options)); }

}  // namespace lockstep::ode
