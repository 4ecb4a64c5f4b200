#include "lockstep/ode/cuda/gemm/gemm_program.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/cuda/gemm/factor.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode::cuda {
namespace {

int padded(std::size_t features) {
  return static_cast<int>((features + kFeatureStep - 1) / kFeatureStep * kFeatureStep);
}

std::optional<Obstacle> gemm_part_obstacle(const FunctionPart& part) {
  if (std::holds_alternative<NetPart>(part.what) || std::holds_alternative<SystemPart>(part.what)) return std::nullopt;
  const auto* const source = std::get_if<SourcePart>(&part.what);
  if (source != nullptr && !source->is_event) return std::nullopt;
  return Obstacle{"problem.rhs", "an event's function", "a derivative", "use it as an event"};
}

template <class T>
class GemmLowering {
 public:
  GemmLowering(const Problem& problem, const Options& options) : problem_(problem) {
    lowered_.mode = options.matrix_precision;
    lower_rules<T>(problem, options, lowered_.launch);
    lowered_.stops = detail::Stops(problem, options);
    lowered_.source = gemm_source(problem, options);
    const Tableau& tableau = method(options.method);
    lowered_.launch.vector_count = kVectorsBesideStages + tableau.stages + tableau.interpolant_stages;
  }

  LoweredGemm<T> lower() {
    Program& program = lowered_.launch.program;
    const bool compiles = lowered_.source.has_value();
    for (const FunctionPart& from : problem_.rhs->parts()) {
      PartProgram& part = program.part[program.parts];
      part = begin_part(from, compiles, parameter_);
      parameter_ += part.parameters;
      if (part.system == kNetPart) add_net(std::get<NetPart>(from.what), part);
      ++program.parts;
    }
    return std::move(lowered_);
  }

 private:
  void add_net(const NetPart& net, PartProgram& part) {
    part.with_time = net.with_time;
    Mlp scalings;  // of the net alone: its layers go into matrices
    scalings.input_scaling = net.mlp->input_scaling;
    scalings.output_scaling = net.mlp->output_scaling;
    part.net = lockstep::cuda::make_net_image<T>(scalings, lowered_.scalings);
    if (net.range.minimum != nullptr) {
      part.bounded = static_cast<std::int32_t>(net.range.minimum->size());
      part.minimum = append_scalings(*net.range.minimum);
      part.maximum = append_scalings(*net.range.maximum);
    }
    typename LoweredGemm<T>::Net matrices{lowered_.launch.program.parts, {}};
    for (const DenseLayer& layer : net.mlp->layers) matrices.layers.push_back(add_layer(layer));
    lowered_.nets.push_back(std::move(matrices));
  }

  std::int64_t append_scalings(const std::vector<double>& numbers) {
    const auto first = static_cast<std::int64_t>(lowered_.scalings.size());
    lowered_.scalings.insert(lowered_.scalings.end(), numbers.begin(), numbers.end());
    return first;
  }

  GemmLayer add_layer(const DenseLayer& dense) {
    GemmLayer layer{static_cast<int>(dense.inputs),
                    static_cast<int>(dense.outputs),
                    padded(dense.inputs),
                    padded(dense.outputs),
                    dense.activation,
                    (lowered_.factors.size() + 255) / 256 * 256,
                    lowered_.biases.size()};
    const auto rows = static_cast<std::size_t>(layer.out_pitch), pitch = static_cast<std::size_t>(layer.in_pitch);
    lowered_.factors.resize(layer.weights + rows * pitch * lowered_.factor_bytes());
    void* const matrix = lowered_.factors.data() + layer.weights;
    for (std::size_t j = 0; j < dense.outputs; ++j) {
      for (std::size_t k = 0; k < dense.inputs; ++k) {
        const double weight = dense.weights[j * dense.inputs + k];
        const T factor = static_cast<T>(weight);
        const auto index = static_cast<std::int64_t>(j * pitch + k);
        store_factor(matrix, index, factor, lowered_.mode);
        if (!std::isfinite(load_factor<T>(matrix, index, lowered_.mode))) refuse_weight(weight);
      }
    }
    lowered_.biases.resize(layer.bias + rows);
    for (std::size_t j = 0; j < dense.outputs; ++j) {
      lowered_.biases[layer.bias + j] = static_cast<T>(dense.bias[j]);
      if (!std::isfinite(lowered_.biases[layer.bias + j])) refuse_weight(dense.bias[j]);
    }
    lowered_.widest = std::max({lowered_.widest, layer.in_pitch, layer.out_pitch});
    return layer;
  }

  [[noreturn]] void refuse_weight(double weight) const {
    const bool tensor = lowered_.mode != MatrixPrecision::f32;
    throw Error(ErrorKind::model,
                {.field = "a weight of the net",
                 .found = number_text(weight),
                 .expected = "a number that fits in " + std::string(tensor ? to_string(lowered_.mode) : "float32"),
                 .remedy = tensor ? "use matrix precision f32" : "evaluate the net in float64"});
  }

  const Problem& problem_;
  LoweredGemm<T> lowered_;
  std::int32_t parameter_ = 0;
};

}  // namespace

std::optional<Obstacle> gemm_obstacle(const Problem& problem, const Options& options) {
  if (auto found = method_obstacle(options)) return found;
  if (method(options.method).is_linearly_implicit()) {
    return Obstacle{"options.method", options.method + ", which is linearly implicit",
                    "an explicit method for cuda_gemm", "take tsit5, or let the engine be cuda_fused or auto"};
  }
  const auto parts = problem.rhs->parts();
  const bool has_net = std::any_of(parts.begin(), parts.end(),
                                   [](const FunctionPart& part) { return std::holds_alternative<NetPart>(part.what); });
  if (!has_net) {
    return Obstacle{"problem.rhs", problem.rhs->description(), "a net, alone or in a sum, for the engine cuda_gemm",
                    "use the engine cuda_fused, or run on the CPU"};
  }
  if (auto found = size_obstacle(problem)) return found;
  for (const FunctionPart& part : parts) {
    if (auto found = gemm_part_obstacle(part)) return found;
  }
  if (!problem.resets.empty()) {
    return Obstacle{"problem.resets", "states that change at events", "none for the engine cuda_gemm",
                    "use the engine cuda_fused, or run on the CPU"};
  }
  return event_obstacle(problem);
}

std::optional<KernelSource> gemm_source(const Problem& problem, const Options& options) {
  if (!comes_as_text(problem, options)) return std::nullopt;
  const auto parts = problem.rhs->parts();
  const std::optional<SourcePart> event = event_source(problem);
  return make_gemm_source({.parts = parts,
                           .components = problem.rhs->components(),
                           .parameters = problem.rhs->parameters(),
                           .event = event ? &*event : nullptr},
                          options.precision);
}

template <class T>
LoweredGemm<T> lower_gemm(const Problem& problem, const Options& options) {
  if (auto found = gemm_obstacle(problem, options)) {
    throw Error(ErrorKind::unsupported,
                {.field = found->field, .found = found->found, .expected = found->expected, .remedy = found->remedy});
  }
  return GemmLowering<T>(problem, options).lower();
}

template LoweredGemm<float> lower_gemm<float>(const Problem&, const Options&);
template LoweredGemm<double> lower_gemm<double>(const Problem&, const Options&);

}  // namespace lockstep::ode::cuda
