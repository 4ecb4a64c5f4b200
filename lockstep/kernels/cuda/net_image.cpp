#include "lockstep/kernels/cuda/net_image.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"
#include "lockstep/kernels/cuda/thread_net.h"

namespace lockstep::cuda {
namespace {

template <class T>
class Image {
 public:
  explicit Image(std::vector<T>& weights) : weights_(weights) {}

  // Where the next array starts.
  std::int64_t align() {
    constexpr std::size_t kStep = 64 / sizeof(T);
    weights_.resize((weights_.size() + kStep - 1) / kStep * kStep);
    return static_cast<std::int64_t>(weights_.size());
  }
  void add(double number) {
    weights_.push_back(static_cast<T>(number));
    if (std::isfinite(weights_.back())) return;
    throw Error(ErrorKind::model, {.field = "a weight of the net",
                                   .found = number_text(number),
                                   .expected = "a number that fits in float32",
                                   .remedy = "evaluate the net in float64"});
  }
  std::int64_t add_all(const std::vector<double>& numbers) {
    if (numbers.empty()) return -1;
    const std::int64_t start = align();
    for (const double number : numbers) add(number);
    return start;
  }
  void pad_to(std::int64_t size) { weights_.resize(static_cast<std::size_t>(size)); }
  std::int64_t size() const { return static_cast<std::int64_t>(weights_.size()); }

 private:
  std::vector<T>& weights_;
};

// One number a feature where either vector has them, as lowering for the CPU does.
std::vector<double> filled(const std::vector<double>& numbers, const std::vector<double>& other, double neutral) {
  return numbers.empty() ? std::vector<double>(other.size(), neutral) : numbers;
}

bool foldable(const Mlp& mlp) {
  return mlp.layers.size() == 2 && mlp.layers.back().activation.kind == ActivationKind::identity &&
         mlp.inputs() == mlp.outputs();
}

// As TanhTable16 of thread_net.h.
template <class T>
void add_tanh_table(Image<T>& image) {
  for (std::size_t i = 0; i < 16; ++i) {
    image.add(math::tanh_of_points().entry[i]);
    image.add(math::tanh_points().entry[i]);
  }
}

// As FoldedHead and FoldedUnits of thread_net.h: tables that the activation needs, n numbers of each kind, the units
// by four, with zeros where the last are fewer.
template <class T>
void add_folded(const Mlp& mlp, Image<T>& image, NetImage& net) {
  const std::size_t n = mlp.inputs();
  const DenseLayer& hidden = mlp.layers[0];
  const DenseLayer& last = mlp.layers[1];
  const auto scaling = [&](const std::vector<double>& numbers, double none) {
    for (std::size_t c = 0; c < n; ++c) image.add(numbers.empty() ? none : numbers[c]);
  };
  net.folded = image.align();
  const std::int64_t tables = folded_table_numbers<T>(hidden.activation.kind);
  if (tables > 0) add_tanh_table(image);
  for (std::size_t c = 0; c < n; ++c) image.add(last.bias[c]);
  scaling(mlp.input_scaling.shift, 0);
  scaling(mlp.input_scaling.scale, 1);
  scaling(mlp.output_scaling.scale, 1);
  scaling(mlp.output_scaling.shift, 0);
  image.pad_to(net.folded + tables + folded_head_numbers<T>(static_cast<int>(n)));
  for (std::size_t first = 0; first < hidden.outputs; first += kFoldedUnits) {
    const auto add_row = [&](auto value) {
      for (std::size_t unit = first; unit < first + kFoldedUnits; ++unit)
        image.add(unit < hidden.outputs ? value(unit) : 0.0);
    };
    add_row([&](std::size_t unit) { return hidden.bias[unit]; });
    for (std::size_t c = 0; c < n; ++c) add_row([&](std::size_t unit) { return hidden.weights[unit * n + c]; });
    for (std::size_t c = 0; c < n; ++c)
      add_row([&](std::size_t unit) { return last.weights[c * hidden.outputs + unit]; });
  }
  net.folded_numbers = image.size() - net.folded;
}

}  // namespace

template <class T>
NetImage make_net_image(const Mlp& mlp, std::vector<T>& weights) {
  if (mlp.layers.size() > kMostLayers) {
    throw Error(ErrorKind::unsupported, {.field = "net",
                                         .found = std::to_string(mlp.layers.size()) + " layers",
                                         .expected = "at most " + std::to_string(kMostLayers) + " on a GPU",
                                         .remedy = "run on the CPU"});
  }
  Image<T> image(weights);
  NetImage net{};
  net.inputs = static_cast<std::int32_t>(mlp.inputs());
  net.outputs = static_cast<std::int32_t>(mlp.outputs());
  net.widest = net.inputs;
  for (const DenseLayer& dense : mlp.layers) {
    LayerImage& layer = net.layer[net.layers++];
    layer = {static_cast<std::int32_t>(dense.inputs), static_cast<std::int32_t>(dense.outputs),
             static_cast<std::int32_t>(dense.activation.kind), dense.activation.alpha, image.align()};
    net.widest = std::max(net.widest, layer.outputs);
    for (std::size_t first = 0; first < dense.outputs; first += kNetBlock) {
      const auto add_row = [&](auto value) {
        for (std::size_t j = first; j < first + kNetBlock; ++j) image.add(j < dense.outputs ? value(j) : 0.0);
      };
      add_row([&](std::size_t j) { return dense.bias[j]; });
      for (std::size_t k = 0; k < dense.inputs; ++k)
        add_row([&](std::size_t j) { return dense.weights[j * dense.inputs + k]; });
    }
  }
  const InputScaling& input = mlp.input_scaling;
  const OutputScaling& output = mlp.output_scaling;
  net.input_shift = image.add_all(filled(input.shift, input.scale, 0));
  net.input_scale = image.add_all(filled(input.scale, input.shift, 1));
  net.output_scale = image.add_all(filled(output.scale, output.shift, 1));
  net.output_shift = image.add_all(filled(output.shift, output.scale, 0));
  net.folded = -1;
  if (foldable(mlp)) add_folded(mlp, image, net);
  image.align();
  return net;
}

template NetImage make_net_image<float>(const Mlp&, std::vector<float>&);
template NetImage make_net_image<double>(const Mlp&, std::vector<double>&);

}  // namespace lockstep::cuda
