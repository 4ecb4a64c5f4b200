#include "lockstep/kernels/mlp/reverse.h"

#include <algorithm>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/kernels/mlp/detail/reverse_packed.h"

namespace lockstep {

template <class T>
TrainablePlan<T>::TrainablePlan(std::unique_ptr<mlp::ReverseNet<T>> net) : net_(std::move(net)) {}
template <class T>
TrainablePlan<T>::TrainablePlan(TrainablePlan&&) noexcept = default;
template <class T>
TrainablePlan<T>& TrainablePlan<T>::operator=(TrainablePlan&&) noexcept = default;
template <class T>
TrainablePlan<T>::~TrainablePlan() = default;

template <class T>
TrainablePlan<T> TrainablePlan<T>::compile(const Mlp& mlp, CpuTarget target) {
  const StandardArithmetic arithmetic;
  return TrainablePlan(std::make_unique<mlp::ReverseNet<T>>(mlp::prepare_reverse<T>(mlp, target)));
}

template <class T>
std::size_t TrainablePlan<T>::inputs() const {
  return net_->packed.inputs();
}
template <class T>
std::size_t TrainablePlan<T>::outputs() const {
  return net_->packed.outputs();
}
template <class T>
std::size_t TrainablePlan<T>::parameter_count() const {
  return net_->parameters;
}
template <class T>
CpuTarget TrainablePlan<T>::cpu_target() const {
  return net_->packed.target;
}

template <class T>
void TrainablePlan<T>::set_parameters(std::span<const T> parameters, Paths paths) {
  const StandardArithmetic arithmetic;
  if (parameters.size() != net_->parameters) {
    throw Error(ErrorKind::invalid_argument, {.field = "parameters",
                                              .found = std::to_string(parameters.size()) + " numbers",
                                              .expected = std::to_string(net_->parameters),
                                              .remedy = "give every layer's weights, then its bias"});
  }
  if (paths != Paths::samples) mlp::repack_tiles(*net_, parameters.data());
  if (paths != Paths::tiles) mlp::repack_samples(*net_, parameters.data());
}

template <class T>
std::size_t TrainablePlan<T>::workspace_numbers() const {
  // The tile path stacks one layer's rows beside what an evaluation without a record needs.
  return 2 * net_->packed.half() + net_->packed.widest * kTileLanes;
}
template <class T>
std::size_t TrainablePlan<T>::tile_activation_numbers() const {
  return net_->tile_activations * kTileLanes;
}
template <class T>
std::size_t TrainablePlan<T>::tile_cotangent_numbers() const {
  return net_->tile_cotangents * kTileLanes;
}

template <class T>
void TrainablePlan<T>::evaluate_tile(const TileView<T>& tile, T* activations, T* workspace) const {
  if (activations == nullptr) return net_->packed.kernels->evaluate_tile(net_->packed, tile, workspace);
  net_->kernels->evaluate_tile(*net_, tile, activations, workspace);
}

template <class T>
void TrainablePlan<T>::reverse_tile(const T* activations, const T* out_bar, T* in_bar, T* cotangents, int lanes,
                                    T* workspace, const T* next_activations, InBar in_bar_is) const {
  net_->kernels->reverse_tile(*net_, activations, out_bar, in_bar, cotangents, lanes, workspace, next_activations,
                              in_bar_is);
}

template <class T>
void TrainablePlan<T>::accumulate_tiles(std::span<const RecordedTile<T>> tiles, T* gradient) const {
  net_->kernels->accumulate_tiles(*net_, tiles, gradient);
}

template <class T>
std::size_t TrainablePlan<T>::sample_activation_numbers() const {
  return net_->sample_activations;
}
template <class T>
std::size_t TrainablePlan<T>::sample_cotangent_numbers() const {
  return net_->sample_cotangents;
}
template <class T>
std::size_t TrainablePlan<T>::sample_gradient_numbers() const {
  return net_->sample_sum;
}

template <class T>
void TrainablePlan<T>::evaluate_sample(const T* in, T* out, T* activations, T* workspace) const {
  net_->kernels->evaluate_sample(*net_, in, out, activations, workspace);
}

template <class T>
void TrainablePlan<T>::reverse_sample(const T* activations, const T* out_bar, T* in_bar, T* cotangents,
                                      T* workspace) const {
  net_->kernels->reverse_sample(*net_, activations, out_bar, in_bar, cotangents, workspace);
}

template <class T>
void TrainablePlan<T>::accumulate_samples(std::span<const RecordedSample<T>> samples, T* sum) const {
  net_->kernels->accumulate_samples(*net_, samples, sum);
}

template <class T>
void TrainablePlan<T>::add_sample_gradient(const T* sum, T* gradient) const {
  for (const mlp::ReverseLayer<T>& layer : net_->layers) {
    const std::size_t inputs = layer.forward.inputs, outputs = layer.forward.outputs;
    T* const w = gradient + layer.parameters;
    T* const b = w + inputs * outputs;
    const T* const from = sum + layer.sum;
    const bool by_input = layer.sum_by_input();
    const std::size_t stride = mlp::padded<T>(by_input ? outputs : inputs);
    const T* const bias = by_input ? from : from + outputs * stride;
    for (std::size_t j = 0; j < outputs; ++j) b[j] += bias[j];
    if (!by_input) {
      for (std::size_t j = 0; j < outputs; ++j) {
        for (std::size_t k = 0; k < inputs; ++k) w[j * inputs + k] += from[j * stride + k];
      }
      continue;
    }
    // Cache lines as a whole, of those that are read and of those that are written.
    constexpr std::size_t kTogether = kAlignment / sizeof(T);
    for (std::size_t first = 0; first < outputs; first += kTogether) {
      const std::size_t end = std::min(first + kTogether, outputs);
      for (std::size_t k = 0; k < inputs; ++k) {
        for (std::size_t j = first; j < end; ++j) w[j * inputs + k] += from[(1 + k) * stride + j];
      }
    }
  }
}

template class TrainablePlan<float>;
template class TrainablePlan<double>;

}  // namespace lockstep
