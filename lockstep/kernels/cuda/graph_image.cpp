#include "lockstep/kernels/cuda/graph_image.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/kernels/graph/detail/knots.h"
#include "lockstep/kernels/graph/detail/schedule.h"

namespace lockstep::cuda {
namespace {

using namespace graph;

template <class T>
class Imaging {
 public:
  explicit Imaging(const Graph& graph) : graph_(graph) {}

  GraphImage<T> run() {
    const std::size_t ports = graph_.inputs.size() + graph_.outputs.size();
    if (ports > kMostGraphPorts) {
      throw Error(ErrorKind::unsupported,
                  {"net", std::to_string(ports) + " ports", "at most " + std::to_string(kMostGraphPorts) + " on a GPU",
                   "join some of them into one, or run on the CPU"});
    }
    const Schedule schedule = graph::schedule(graph_);
    image_.rows = static_cast<std::int64_t>(schedule.rows);
    image_.summary = schedule.summary;
    for (const Port& port : graph_.inputs) image_.inputs.push_back({-1, static_cast<std::int32_t>(port.width)});
    for (const Port& port : graph_.outputs) image_.outputs.push_back({-1, static_cast<std::int32_t>(port.width)});
    for (const auto& [port, row, base] : schedule.loads) image_.inputs[port].row = static_cast<std::int64_t>(row);
    for (const auto& [port, row, base] : schedule.stores) image_.outputs[port].row = static_cast<std::int64_t>(row);
    for (const ScheduledStep& scheduled : schedule.steps) {
      GraphStep step{};
      step.width = static_cast<std::int32_t>(scheduled.width);
      step.out = static_cast<std::int64_t>(scheduled.out);
      step.a = operand(scheduled.a);
      step.b = operand(scheduled.b);
      step.c = operand(scheduled.c);
      if (scheduled.copies) {
        step.code = GraphCode::copy;
      } else {
        std::visit([&](const auto& operation) { bind(step, scheduled, operation); }, scheduled.node->operation);
      }
      image_.steps.push_back(step);
    }
    return std::move(image_);
  }

 private:
  static T rounded(double value, const std::string& field) { return round_to<T>(value, field); }

  std::int64_t align() {
    constexpr std::size_t kStep = 64 / sizeof(T);
    image_.numbers.resize((image_.numbers.size() + kStep - 1) / kStep * kStep);
    return static_cast<std::int64_t>(image_.numbers.size());
  }

  std::int64_t keep(const std::vector<double>& values, const std::string& field) {
    const std::int64_t start = align();
    for (std::size_t i = 0; i < values.size(); ++i)
      image_.numbers.push_back(round_to<T>(values[i], field, i));
    return start;
  }

  template <class List>
  std::int64_t keep_indices(const List& values) {
    const auto start = static_cast<std::int64_t>(image_.indices.size());
    for (const auto value : values) image_.indices.push_back(static_cast<std::int32_t>(value));
    return start;
  }

  GraphOperand operand(const ScheduledOperand& from) {
    return {from.constants == nullptr ? -1 : keep(from.constants->values, from.name),
            static_cast<std::int64_t>(from.row), static_cast<std::int64_t>(from.step)};
  }

  static void set(GraphStep& step, GraphCode code, std::int32_t kind = 0) {
    step.code = code;
    step.kind = kind;
  }
  template <class Kind>
  static std::int32_t number_of(Kind kind) {
    return static_cast<std::int32_t>(kind);
  }
  void set_lists(GraphStep& step, const std::vector<double>& first, const char* first_name,
                 const std::vector<double>& second, const char* second_name, const std::string& name) {
    step.first = keep(first, name + first_name);
    step.second = keep(second, name + second_name);
  }

  // Each sets what the kernel reads besides operands.

  void bind(GraphStep& step, const ScheduledStep& scheduled, const Dense&) {
    const DenseLayer layer = merged_layer(scheduled);
    const std::string& name = scheduled.node->name;
    set(step, GraphCode::dense, number_of(layer.activation.kind));
    step.inputs = static_cast<std::int32_t>(layer.inputs);
    step.numbers[0] = rounded(layer.activation.alpha, name + ".alpha");
    step.weights = align();
    for (std::size_t first = 0; first < layer.outputs; first += kNetBlock) {
      const auto add_row = [&](const char* what, auto value) {
        for (std::size_t j = first; j < first + kNetBlock; ++j)
          image_.numbers.push_back(j < layer.outputs ? rounded(value(j), name + what) : T(0));
      };
      add_row(".bias", [&](std::size_t j) { return layer.bias[j]; });
      for (std::size_t k = 0; k < layer.inputs; ++k)
        add_row(".weight", [&](std::size_t j) { return layer.weights[j * layer.inputs + k]; });
    }
    step.weights = shared(step.weights);
  }
  // Where the numbers from `start` to the end stand, which are a layer's: a Jacobian multiplies by one layer's again
  // and again.
  std::int64_t shared(std::int64_t start) {
    std::vector<T>& numbers = image_.numbers;
    const std::size_t count = numbers.size() - static_cast<std::size_t>(start);
    for (const auto& [earlier, size] : layers_) {
      if (size != count || std::memcmp(&numbers[static_cast<std::size_t>(earlier)],
                                       &numbers[static_cast<std::size_t>(start)], count * sizeof(T)) != 0) {
        continue;
      }
      numbers.resize(static_cast<std::size_t>(start));
      return earlier;
    }
    layers_.emplace_back(start, count);
    return start;
  }
  void bind(GraphStep& step, const ScheduledStep& scheduled, const Activate& activate) {
    set(step, GraphCode::activate, number_of(activate.activation.kind));
    step.numbers[0] = rounded(activate.activation.alpha, scheduled.node->name + ".alpha");
  }
  void bind(GraphStep& step, const ScheduledStep& scheduled, const Standardise& standardise) {
    set(step, GraphCode::standardise);
    set_lists(step, standardise.shift, ".shift", standardise.scale, ".scale", scheduled.node->name);
  }
  void bind(GraphStep& step, const ScheduledStep& scheduled, const Rescale& rescale) {
    set(step, GraphCode::rescale);
    set_lists(step, rescale.scale, ".scale", rescale.shift, ".shift", scheduled.node->name);
  }
  void bind(GraphStep& step, const ScheduledStep& scheduled, const Constant& constant) {
    set(step, GraphCode::fill);
    step.a = {keep(constant.values, scheduled.node->name), 0, 1};
  }
  void bind(GraphStep& step, const ScheduledStep&, const Columns& columns) {
    set(step, GraphCode::columns);
    step.indices = keep_indices(columns.indices);
  }
  void bind(GraphStep&, const ScheduledStep&, const Concatenate&) {}  // its parts are copies, or nothing
  void bind(GraphStep& step, const ScheduledStep&, const Unary& unary) {
    set(step, GraphCode::unary, number_of(unary.kind));
  }
  void bind(GraphStep& step, const ScheduledStep& scheduled, const Clip& clip) {
    set(step, GraphCode::clip);
    step.numbers[0] = rounded(clip.minimum, scheduled.node->name);
    step.numbers[1] = rounded(clip.maximum, scheduled.node->name);
  }
  void bind(GraphStep& step, const ScheduledStep& scheduled, const DeadZone& zone) {
    set(step, GraphCode::dead_zone);
    step.numbers[0] = rounded(zone.lower, scheduled.node->name);
    step.numbers[1] = rounded(zone.upper, scheduled.node->name);
    step.numbers[2] = rounded(zone.bias, scheduled.node->name);
  }
  void bind(GraphStep& step, const ScheduledStep& scheduled, const Interpolate& table) {
    const std::string& name = scheduled.node->name;
    const std::vector<T> knots = padded_knots<T>(table, name);
    set(step, GraphCode::interpolate);
    step.numbers[0] = knots.front();
    step.numbers[1] = knots[table.knots.size() - 1];
    step.indices = keep_indices(std::array{table.knots.size(), knots.size(), table.powers()});
    step.first = align();
    image_.numbers.insert(image_.numbers.end(), knots.begin(), knots.end());
    step.second = keep(table.coefficients, name + ".coefficients");
  }
  void bind(GraphStep& step, const ScheduledStep&, const Binary& binary) {
    set(step, GraphCode::binary, number_of(binary.kind));
  }
  void bind(GraphStep& step, const ScheduledStep&, const Choose& choose) {
    set(step, GraphCode::choose);
    step.indices = keep_indices(choose.mask);
  }
  void bind(GraphStep& step, const ScheduledStep&, const Select&) { set(step, GraphCode::select); }
  void bind(GraphStep& step, const ScheduledStep& scheduled, const Chain& chain) {
    set(step, GraphCode::chain, number_of(chain.activation.kind));
    step.numbers[0] = rounded(chain.activation.alpha, scheduled.node->name + ".alpha");
  }
  void bind(GraphStep& step, const ScheduledStep&, const Softmax& softmax) {
    set(step, GraphCode::softmax, number_of(softmax.kind));
  }
  void bind(GraphStep& step, const ScheduledStep&, const Reduce& reduce) {
    set(step, GraphCode::reduce, number_of(reduce.kind));
  }
  void bind(GraphStep& step, const ScheduledStep& scheduled, const LayerNormalise& normalise) {
    set(step, GraphCode::layer_normalise);
    set_lists(step, normalise.scale, ".scale", normalise.shift, ".shift", scheduled.node->name);
    step.numbers[0] = rounded(normalise.epsilon, scheduled.node->name + ".epsilon");
  }

  const Graph& graph_;
  GraphImage<T> image_;
  std::vector<std::pair<std::int64_t, std::size_t>> layers_;  // where in image_.numbers, and how many
};

}  // namespace

template <class T>
GraphImage<T> make_graph_image(const graph::Graph& graph) {
  return Imaging<T>(graph).run();
}

template GraphImage<float> make_graph_image<float>(const graph::Graph&);
template GraphImage<double> make_graph_image<double>(const graph::Graph&);

}  // namespace lockstep::cuda
