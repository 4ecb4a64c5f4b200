#include "lockstep/nn/net_derivatives.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/matrix_batch_overlap.h"
#include "lockstep/core/short_list.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/kernels/graph/derivative.h"
#include "lockstep/kernels/graph/detail/require_ports.h"
#include "lockstep/kernels/graph/plan.h"
#include "lockstep/kernels/mlp/derivative_plan.h"
#include "lockstep/kernels/tile.h"

namespace lockstep::nn {
namespace {

// Kept by each thread from call to call.
std::span<std::byte> kept_workspace(std::size_t bytes) {
  thread_local AlignedBuffer<std::byte> buffer;
  if (buffer.size() < bytes) buffer = AlignedBuffer<std::byte>(bytes);
  return {buffer.data(), bytes};
}

// Of both sides of a plan of derivatives; nets of more ports have the views allocated by each call.
constexpr std::size_t kFewPorts = 128;

void require_views(const char* field, std::size_t found, std::size_t expected) {
  if (found == expected) return;
  throw Error(ErrorKind::invalid_argument,
              {field, std::to_string(found) + (found == 1 ? " view" : " views"),
               std::to_string(expected) + ", one for each port", "give views in the order of the net's ports"});
}

// What a Jacobian's call reads and writes: where each port's view lies, those of the inputs first; of outputs that are
// not wanted the address is 0. That the scratch is aligned is asked by products, before they write.
void require_fit(const std::vector<graph::Port>& ports, std::size_t inputs, std::span<const Places> views,
                 const BatchPlaces& jacobian, std::span<std::byte> workspace, std::size_t bytes) {
  const auto name = [&](std::size_t i) { return std::string(i < inputs ? "in \"" : "out \"") + ports[i].name + '"'; };
  const auto require = [](std::size_t found, std::size_t expected, const auto& field, const char* remedy) {
    if (found != expected) graph::refuse_argument(field(), found, expected, remedy);
  };
  const std::size_t samples = views[0].rows;
  std::size_t features[2] = {0, 0};  // of inputs, of outputs
  for (std::size_t i = 0; i < ports.size(); ++i) {
    features[i < inputs ? 0 : 1] += ports[i].width;
    if (views[i].address == 0 && i >= inputs) continue;
    require(
        views[i].columns, ports[i].width, [&] { return name(i) + ".columns"; },
        "give one column a feature of the port");
    require(
        views[i].rows, samples, [&] { return name(i) + ".rows"; }, "give all ports the same number of samples");
    if (views[i].address == 0 && samples > 0) refuse_null(name(i));
  }
  const auto part = [](const char* which) { return [which] { return std::string(which); }; };
  require(jacobian.samples, samples, part("jacobian.samples"), "give as many matrices as in has samples");
  require(jacobian.rows, features[1], part("jacobian.rows"), "give one row an output of the net");
  require(jacobian.columns, features[0], part("jacobian.columns"), "give one column an input of the net");
  if (workspace.size() < bytes) {
    graph::refuse_argument("workspace", workspace.size(), bytes, "give at least workspace_bytes() bytes");
  }
  if (samples == 0) return;
  if (jacobian.address == 0) refuse_null("jacobian");
  if (shares_places(jacobian)) refuse_batch("jacobian", jacobian);
  const Places scratch = places_of(workspace_extent(workspace, bytes), jacobian.bytes);
  if (share_memory(jacobian, scratch)) refuse_workspace("jacobian", jacobian.matrix());
  for (std::size_t i = 0; i < ports.size(); ++i) {
    if (views[i].address == 0) continue;
    if (share_memory(views[i], scratch)) refuse_workspace(name(i), views[i]);
    if (share_memory(jacobian, views[i])) refuse_two_results("jacobian", jacobian.matrix(), name(i), views[i]);
    if (i < inputs) continue;
    if (shares_places(views[i])) refuse_shared_places(name(i), views[i]);
    for (std::size_t j = 0; j < i; ++j) {
      if (views[j].address == 0 || !share_memory(views[i], views[j])) continue;
      if (j >= inputs) refuse_two_results(name(i), views[i], name(j), views[j]);
      if (!same_view(views[i], views[j])) refuse_overlap(name(i), views[i], name(j), views[j]);
    }
  }
}

std::size_t tiles(std::size_t samples) { return (samples + kTileLanes - 1) / kTileLanes; }

// So many samples have all their products made one after another, while what the results share is in the cache.
constexpr std::size_t kSamplesTogether = 8 * kTileLanes;

}  // namespace

template <class T>
struct NetDerivatives<T>::Lowered {
  // Of one side.
  using Views = ShortList<MatrixView<T>, kFewPorts / 2>;
  using ReadViews = ShortList<MatrixView<const T>, kFewPorts / 2>;

  // Unit vectors of one length, all of them views of one run of numbers: zeros, a one in the middle, zeros.
  class UnitVectors {
   public:
    UnitVectors() = default;
    explicit UnitVectors(std::size_t length) : length_(length), numbers_(length == 0 ? 0 : 2 * length - 1) {
      if (length > 0) numbers_[length - 1] = 1;
    }

    // From one vector to the next.
    static constexpr std::ptrdiff_t kNext = -1;
    // Elements `first` on of vector `vector` in each row, or of it and those that follow.
    MatrixView<const T> view(std::size_t vector, std::size_t rows, std::ptrdiff_t row_stride, std::size_t first,
                             std::size_t columns) const {
      return {numbers_.data() + (length_ - 1) + first - vector, rows, columns, row_stride, 1};
    }

   private:
    std::size_t length_ = 0;
    std::vector<T> numbers_;
  };

  std::optional<DerivativePlan<T>> stack;        // this,
  std::optional<GraphPlan<T>> forward, reverse;  // or these
  std::vector<Port> inputs, outputs;
  std::vector<graph::Port> ports;  // both of these
  UnitVectors units;               // as many as the side has features that has fewer

  void add_ports(const std::vector<nn::Port>& from, std::vector<Port>& to) {
    for (const nn::Port& port : from) {
      to.push_back({port.name, port.features.size()});
      ports.push_back({port.name, ports.size(), port.features.size()});
    }
  }
  static std::size_t features(const std::vector<Port>& ports) {
    std::size_t sum = 0;
    for (const Port& port : ports) sum += port.width;
    return sum;
  }

  // Of products; behind it, aligned, lie the values of a tile where graphs make a Jacobian of one sample.
  std::size_t product_bytes() const {
    if (stack) return stack->workspace_bytes();
    const std::size_t bytes = std::max(forward->workspace_bytes(), reverse->workspace_bytes());
    return (bytes + kAlignment - 1) / kAlignment * kAlignment;
  }
  std::size_t workspace_bytes() const {
    return product_bytes() + (stack ? 0 : features(outputs) * kTileLanes * sizeof(T));
  }

  // Through the plan of derivatives, which reads `in` and `vector` and makes `out` and `result`.
  void run(const GraphPlan<T>& plan, In in, In vector, Out out, Out result, std::span<std::byte> workspace) const {
    const std::size_t rows = in.empty() ? 0 : in[0].rows;
    ShortList<MatrixView<const T>, kFewPorts> read;
    read.append(in);
    read.append(vector);
    ShortList<MatrixView<T>, kFewPorts> made;
    for (std::size_t i = 0; i < outputs.size(); ++i) {  // not wanted: shapes that fit, and nowhere to go
      const bool wanted = !out.empty() && out[i].data != nullptr;
      made.push_back(wanted ? out[i] : MatrixView<T>{nullptr, rows, outputs[i].width, 0, 0});
    }
    made.append(result);
    plan.evaluate(read.span(), made.span(), workspace);
  }

  void require(In in, In vector, std::size_t vectors, const char* vector_name, Out out, Out result, std::size_t results,
               const char* result_name) const {
    require_views("in", in.size(), inputs.size());
    require_views(vector_name, vector.size(), vectors);
    if (!out.empty()) require_views("out", out.size(), outputs.size());
    require_views(result_name, result.size(), results);
  }

  void require_jacobian(In in, Out out, const MatrixBatchView<T>& jacobian, std::span<std::byte> workspace) const {
    require_views("in", in.size(), inputs.size());
    if (!out.empty()) require_views("out", out.size(), outputs.size());
    ShortList<Places, kFewPorts> views;
    for (const MatrixView<const T>& view : in) views.push_back(places_of(view));
    for (std::size_t i = 0; i < outputs.size(); ++i) views.push_back(out.empty() ? Places{} : places_of(out[i]));
    require_fit(ports, inputs.size(), views.span(), places_of(jacobian), workspace, workspace_bytes());
  }

  // Forward along unit vectors of the inputs, or backward along those of the outputs.
  void differentiate(In in, Out out, const MatrixBatchView<T>& jacobian, std::size_t samples,
                     std::span<std::byte> workspace) const {
    const bool backward = jacobian.rows < jacobian.columns;
    const std::size_t vectors = backward ? jacobian.rows : jacobian.columns;
    const std::ptrdiff_t vector_stride = backward ? jacobian.row_stride : jacobian.column_stride;
    const std::ptrdiff_t made_stride = backward ? jacobian.column_stride : jacobian.row_stride;
    if (stack) {
      const MatrixView<const T> vector = units.view(0, samples, 0, 0, vectors);
      const MatrixView<T> result{jacobian.data, samples, backward ? jacobian.columns : jacobian.rows,
                                 jacobian.sample_stride, made_stride};
      const MatrixView<T> values = out.empty() ? MatrixView<T>{} : out[0];
      const mlp::Vectors all{vectors, units.kNext, vector_stride};
      if (backward) return stack->vjp(in[0], vector, values, result, workspace, all);
      return stack->jvp(in[0], vector, values, result, workspace, all);
    }
    // A unit vector after another for many samples at once; or a sample after another, repeated for all unit vectors,
    // where that leaves fewer lanes of a tile idle: its values lie in the scratch, as many times.
    const bool repeated = samples * tiles(vectors) < vectors * tiles(samples);
    const std::size_t samples_at_once = repeated ? 1 : kSamplesTogether, vectors_at_once = repeated ? kTileLanes : 1;
    T* const numbers = reinterpret_cast<T*>(workspace.data() + product_bytes());
    for (std::size_t sample = 0; sample < samples; sample += samples_at_once) {
      for (std::size_t vector = 0; vector < vectors; vector += vectors_at_once) {
        const std::size_t rows =
            std::min(repeated ? vectors - vector : samples - sample, repeated ? vectors_at_once : samples_at_once);
        ReadViews from, along;
        for (MatrixView<const T> view : in) {
          view.data += static_cast<std::ptrdiff_t>(sample) * view.row_stride;
          from.push_back({view.data, rows, view.columns, repeated ? 0 : view.row_stride, view.column_stride});
        }
        std::size_t before = 0;
        for (const Port& port : backward ? outputs : inputs) {
          along.push_back(units.view(vector, rows, repeated ? units.kNext : 0, before, port.width));
          before += port.width;
        }
        Views values, made;
        T* to = numbers;
        const Out wanted =
            vector + vectors_at_once < vectors ? Out() : out;  // `in` may be written when all have read it
        for (std::size_t i = 0; i < wanted.size(); to += rows * outputs[i++].width) {
          MatrixView<T> view = out[i];
          view.rows = rows;
          if (view.data != nullptr) {
            view.data += static_cast<std::ptrdiff_t>(sample) * view.row_stride;
            if (repeated) view = MatrixView<T>::row_major(to, rows, view.columns);
          }
          values.push_back(view);
        }
        T* at = jacobian.data + static_cast<std::ptrdiff_t>(sample) * jacobian.sample_stride +
                static_cast<std::ptrdiff_t>(vector) * vector_stride;
        for (const Port& port : backward ? inputs : outputs) {
          made.push_back({at, rows, port.width, repeated ? vector_stride : jacobian.sample_stride, made_stride});
          at += static_cast<std::ptrdiff_t>(port.width) * made_stride;
        }
        run(backward ? *reverse : *forward, from.span(), along.span(), values.span(), made.span(),
            workspace.first(product_bytes()));
        if (!repeated) continue;
        for (std::size_t i = 0; i < wanted.size(); ++i) {
          const MatrixView<T>& value = values.span()[i];
          for (std::size_t c = 0; value.data != nullptr && c < value.columns; ++c) out[i](sample, c) = value(0, c);
        }
      }
    }
  }
};

template <class T>
NetDerivatives<T> NetDerivatives<T>::compile(const Model& model, CpuTarget target) {
  const StandardArithmetic arithmetic;
  auto lowered = std::make_shared<Lowered>();
  if (is_stack(model)) {
    lowered->stack = DerivativePlan<T>::compile(to_mlp(model), target);
  } else {
    const graph::Graph graph = to_graph(model);
    lowered->forward = GraphPlan<T>::compile(graph::jvp_graph(graph), target);
    lowered->reverse = GraphPlan<T>::compile(graph::vjp_graph(graph), target);
  }
  lowered->add_ports(model.inputs, lowered->inputs);
  lowered->add_ports(model.outputs, lowered->outputs);
  const std::size_t fewer = std::min(Lowered::features(lowered->inputs), Lowered::features(lowered->outputs));
  lowered->units = typename Lowered::UnitVectors(fewer);
  return NetDerivatives(std::move(lowered));
}

template <class T>
std::span<const typename NetDerivatives<T>::Port> NetDerivatives<T>::inputs() const {
  return lowered_->inputs;
}

template <class T>
std::span<const typename NetDerivatives<T>::Port> NetDerivatives<T>::outputs() const {
  return lowered_->outputs;
}

template <class T>
CpuTarget NetDerivatives<T>::cpu_target() const {
  return lowered_->stack ? lowered_->stack->cpu_target() : lowered_->forward->cpu_target();
}

template <class T>
std::size_t NetDerivatives<T>::workspace_bytes() const {
  return lowered_->workspace_bytes();
}

template <class T>
void NetDerivatives<T>::jvp(In in, In in_dot, Out out, Out out_dot, std::span<std::byte> workspace) const {
  const std::size_t ins = lowered_->inputs.size(), outs = lowered_->outputs.size();
  lowered_->require(in, in_dot, ins, "in_dot", out, out_dot, outs, "out_dot");
  if (!lowered_->stack) return lowered_->run(*lowered_->forward, in, in_dot, out, out_dot, workspace);
  lowered_->stack->jvp(in[0], in_dot[0], out.empty() ? MatrixView<T>{} : out[0], out_dot[0], workspace);
}

template <class T>
void NetDerivatives<T>::vjp(In in, In out_bar, Out out, Out in_bar, std::span<std::byte> workspace) const {
  const std::size_t ins = lowered_->inputs.size(), outs = lowered_->outputs.size();
  lowered_->require(in, out_bar, outs, "out_bar", out, in_bar, ins, "in_bar");
  if (!lowered_->stack) return lowered_->run(*lowered_->reverse, in, out_bar, out, in_bar, workspace);
  lowered_->stack->vjp(in[0], out_bar[0], out.empty() ? MatrixView<T>{} : out[0], in_bar[0], workspace);
}

template <class T>
void NetDerivatives<T>::jacobian(In in, Out out, MatrixBatchView<T> jacobian, std::span<std::byte> workspace) const {
  lowered_->require_jacobian(in, out, jacobian, workspace);
  if (jacobian.samples > 0) lowered_->differentiate(in, out, jacobian, jacobian.samples, workspace);
}

template <class T>
void NetDerivatives<T>::jacobian(In in, Out out, MatrixBatchView<T> jacobian) const {
  this->jacobian(in, out, jacobian, kept_workspace(workspace_bytes()));
}

template <class T>
void NetDerivatives<T>::jvp(In in, In in_dot, Out out, Out out_dot) const {
  jvp(in, in_dot, out, out_dot, kept_workspace(workspace_bytes()));
}

template <class T>
void NetDerivatives<T>::vjp(In in, In out_bar, Out out, Out in_bar) const {
  vjp(in, out_bar, out, in_bar, kept_workspace(workspace_bytes()));
}

template <class T>
void NetDerivatives<T>::jvp(MatrixView<const T> in, MatrixView<const T> in_dot, MatrixView<T> out,
                            MatrixView<T> out_dot) const {
  jvp(In(&in, 1), In(&in_dot, 1), Out(&out, 1), Out(&out_dot, 1));
}

template <class T>
void NetDerivatives<T>::vjp(MatrixView<const T> in, MatrixView<const T> out_bar, MatrixView<T> out,
                            MatrixView<T> in_bar) const {
  vjp(In(&in, 1), In(&out_bar, 1), Out(&out, 1), Out(&in_bar, 1));
}

template <class T>
void NetDerivatives<T>::jacobian(MatrixView<const T> in, MatrixView<T> out, MatrixBatchView<T> jacobian) const {
  this->jacobian(In(&in, 1), Out(&out, 1), jacobian);
}

template class NetDerivatives<float>;
template class NetDerivatives<double>;

}  // namespace lockstep::nn
