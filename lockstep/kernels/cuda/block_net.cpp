#include "lockstep/kernels/cuda/block_net.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"

namespace lockstep::cuda {
namespace {

template <class T>
T rounded(double number) {
  const T result = static_cast<T>(number);
  if (std::isfinite(result)) return result;
  throw Error(ErrorKind::model, {.field = "a weight of the net",
                                 .found = number_text(number),
                                 .expected = "a number that fits in float32",
                                 .remedy = "evaluate the net in float64"});
}

// `count` numbers, `neutral` where there are none, zeros to the next 16 bytes; where they start.
template <class T>
std::int32_t append(std::vector<T>& to, const std::vector<double>& numbers, std::size_t count, double neutral) {
  const std::size_t start = to.size();
  for (std::size_t i = 0; i < count; ++i) to.push_back(rounded<T>(numbers.empty() ? neutral : numbers[i]));
  constexpr std::size_t step = 16 / sizeof(T);
  to.resize((to.size() + step - 1) / step * step);
  return static_cast<std::int32_t>(start);
}

void require(bool good, std::string found, std::string expected) {
  if (good) return;
  throw Error(ErrorKind::unsupported, {.field = "net",
                                       .found = std::move(found),
                                       .expected = std::move(expected) + " on a GPU",
                                       .remedy = "evaluate it on the CPU"});
}

}  // namespace

template <class T>
BlockNet BlockWeights<T>::add(const Mlp& mlp) {
  mlp.validate();
  require(mlp.layers.size() <= kMostLayers, std::to_string(mlp.layers.size()) + " layers",
          "at most " + std::to_string(kMostLayers));
  BlockNet net{};
  net.inputs = static_cast<std::int32_t>(mlp.inputs());
  net.outputs = static_cast<std::int32_t>(mlp.outputs());
  std::size_t widest = mlp.inputs();
  for (const DenseLayer& layer : mlp.layers) widest = std::max(widest, layer.outputs);
  require(widest <= kMostBlockWidth, "a net " + std::to_string(widest) + " wide",
          "at most " + std::to_string(kMostBlockWidth));
  net.widest = static_cast<std::int32_t>(widest);

  const std::size_t chunks_before = chunks.size() / kChunkNumbers<T>;
  for (const DenseLayer& dense : mlp.layers) {
    const int padded = padded_width(static_cast<int>(dense.outputs));
    net.layer[net.layers++] = {static_cast<std::int32_t>(dense.inputs), static_cast<std::int32_t>(dense.outputs),
                               padded, static_cast<std::int32_t>(dense.activation.kind), dense.activation.alpha,
                               // Padded, too: threads read the bias of outputs that are not there.
                               append(resident, dense.bias, dense.outputs, 0), 0};
    resident.resize(static_cast<std::size_t>(net.layer[net.layers - 1].bias + padded));
    const std::size_t width = static_cast<std::size_t>(padded), rows = kChunkNumbers<T> / width;
    for (std::size_t first = 0; first < dense.inputs; first += rows) {
      std::size_t at = chunks.size();
      chunks.resize(at + kChunkNumbers<T>);
      for (std::size_t k = first; k < std::min(first + rows, dense.inputs); ++k, at += width)
        for (std::size_t j = 0; j < dense.outputs; ++j)
          chunks[at + j] = rounded<T>(dense.weights[j * dense.inputs + k]);
    }
  }
  net.chunks = static_cast<std::int32_t>(chunks.size() / kChunkNumbers<T> - chunks_before);

  const InputScaling& input = mlp.input_scaling;
  const OutputScaling& output = mlp.output_scaling;
  net.input_shift = net.input_scale = net.output_scale = net.output_shift = -1;
  if (!input.shift.empty() || !input.scale.empty()) {
    net.input_shift = append(resident, input.shift, mlp.inputs(), 0);
    net.input_scale = append(resident, input.scale, mlp.inputs(), 1);
  }
  if (!output.shift.empty() || !output.scale.empty()) {
    net.output_scale = append(resident, output.scale, mlp.outputs(), 1);
    net.output_shift = append(resident, output.shift, mlp.outputs(), 0);
  }
  return net;
}

template struct BlockWeights<float>;
template struct BlockWeights<double>;

}  // namespace lockstep::cuda
