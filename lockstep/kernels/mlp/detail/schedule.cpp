// Which kernel serves the samples that do not fill a strip. All give the same bits; this is about time only.
#include <algorithm>

#include "lockstep/kernels/mlp/detail/packed.h"

namespace lockstep::mlp {
namespace {

// Costs count fused multiply-adds of one register, of which a core begins two a cycle with a latency of four.
constexpr std::size_t kInFlight = 8;        // sums that must be open to keep the units busy
constexpr std::size_t kCall = 30;           // a block: call, bias, stores begun
constexpr std::size_t kRow = 4;             // a sample's part of it where registers run over outputs
constexpr std::size_t kActivation = 16;     // a register of tanh or the like
constexpr std::size_t kThinTanh = 14;       // one among the products of two layers
constexpr std::size_t kFirstCache = 24576;  // bytes of weights that stay in the first-level cache
constexpr std::size_t kSecondCache = std::size_t{3} << 19;  // in the second-level cache
// A register of weights takes the time of so many multiply-adds where it comes from there, from beyond (an Intel Xeon:
// 178 and 31 GB/s; a Zen 4: 1.5 cycles a register more than from there beside sums of 3 samples, 0.5 beside 8; a Zen 5:
// 1.3 beside sums of 4 and 5).
constexpr std::size_t kSecondLoad = 2;
constexpr std::size_t third_load(WidePipes pipes) {
  return pipes == WidePipes::two_far ? 14 : pipes == WidePipes::two ? 3 : 1;
}

template <class T>
std::size_t activation_cost(const PackedLayer<T>& layer) {
  return layer.activation == ActivationKind::identity || layer.activation == ActivationKind::relu ? 2 : kActivation;
}

// Loads of one input's step, in multiply-adds: 0.25 to 0.3 cycles each beside two multiply-adds a cycle, nothing beside
// one (an Intel Xeon, a Zen 4).
constexpr std::size_t load_cost(std::size_t loads, WidePipes pipes) { return pipes == WidePipes::one ? 0 : loads / 2; }

template <class T>
std::size_t tile_cost(const Packed<T>& net, std::size_t registers, std::size_t samples, WidePipes pipes) {
  std::size_t cost = 0;
  for (std::size_t i = 0; i < net.layers.size(); ++i) {
    const PackedLayer<T>& layer = net.layers[i];
    if (layer.thin_weights != nullptr && layer.activation == ActivationKind::tanh) {
      const PackedLayer<T>& next = net.layers[++i];
      cost += registers *
                  (layer.outputs * (layer.inputs + next.outputs + kThinTanh) + next.outputs * activation_cost(next)) +
              kCall;
    } else {
      cost += layer_tile_cost(layer, registers, pipes);
    }
  }
  // Lanes that are not full are filled and emptied number by number.
  const bool full = samples == registers * net.kernels->lanes;
  return cost + (full ? 0 : (net.inputs() + net.outputs()) * samples);
}

template <class T>
std::size_t row_cost(const Packed<T>& net, std::size_t rows, WidePipes pipes) {
  if (rows == 0) return 0;
  std::size_t cost = net.outputs() * rows;
  const std::size_t bytes = net.weights.size() * sizeof(T) / 2;
  for (const PackedLayer<T>& layer : net.layers) cost += layer_row_cost(layer, *net.kernels, rows, bytes, pipes);
  return cost;
}

}  // namespace

template <class T>
std::size_t layer_tile_cost(const PackedLayer<T>& layer, std::size_t registers, WidePipes pipes) {
  std::size_t cost = 0;
  for (std::size_t block = 0; block < layer.tile_blocks.blocks; ++block) {
    const std::size_t sums = layer.tile_blocks[block] * registers;
    const std::size_t loads = load_cost(layer.tile_blocks[block] + registers, pipes);
    cost += layer.inputs * (std::max(sums, kInFlight) + loads) + sums * activation_cost(layer) + kCall;
  }
  return cost;
}

template <class T>
std::size_t layer_row_cost(const PackedLayer<T>& layer, const Kernels<T>& kernels, std::size_t rows, std::size_t bytes,
                           WidePipes pipes) {
  // The first samples bring a panel of weights to the second-level cache, where the others find it.
  const std::size_t load = bytes > kFirstCache ? kSecondLoad : 1;
  // Sums hardly hide the way from beyond it.
  const std::size_t first_load = bytes > kSecondCache ? third_load(pipes) : 0;
  const Partition groups(rows, kernels.row_registers.size());
  const std::size_t registers = (layer.outputs + kernels.lanes - 1) / kernels.lanes;
  const Partition panels(registers, layer.row_panel);
  std::size_t cost = 0;
  for (std::size_t panel = 0; panel < panels.blocks; ++panel) {
    for (std::size_t group = 0; group < groups.blocks; ++group) {
      const std::size_t count = groups[group];
      const Partition parts(panels[panel], static_cast<std::size_t>(kernels.row_registers[count - 1]));
      for (std::size_t part = 0; part < parts.blocks; ++part) {
        const std::size_t sums = count * parts[part];
        const std::size_t busy =
            std::max({sums, kInFlight, load * parts[part]}) + (group == 0 ? first_load * parts[part] : 0);
        const std::size_t loads = load_cost(count + parts[part], pipes);
        cost += layer.inputs * (busy + loads) + sums * activation_cost(layer) + kCall + kRow * count;
      }
    }
  }
  return cost;
}

template <class T>
std::size_t schedule_rests(Packed<T>& net, WidePipes pipes) {
  const std::size_t lanes = net.kernels->lanes;
  std::size_t most_rows = 0;
  for (std::size_t samples = 1; samples < net.kernels->strip(); ++samples) {
    std::size_t best = ~std::size_t(0);
    for (std::size_t registers = 0; registers <= 2; ++registers) {
      const std::size_t in_lanes = std::min(samples, registers * lanes), rows = samples - in_lanes;
      const std::size_t cost =
          (registers == 0 ? 0 : tile_cost(net, registers, in_lanes, pipes)) + row_cost(net, rows, pipes);
      if (cost >= best) continue;
      best = cost;
      net.rest[samples] = {static_cast<std::uint8_t>(registers), static_cast<std::uint8_t>(rows)};
    }
    most_rows = std::max<std::size_t>(most_rows, net.rest[samples].rows);
  }
  return most_rows;
}

template std::size_t layer_tile_cost<float>(const PackedLayer<float>&, std::size_t, WidePipes);
template std::size_t layer_tile_cost<double>(const PackedLayer<double>&, std::size_t, WidePipes);
template std::size_t layer_row_cost<float>(const PackedLayer<float>&, const Kernels<float>&, std::size_t, std::size_t,
                                           WidePipes);
template std::size_t layer_row_cost<double>(const PackedLayer<double>&, const Kernels<double>&, std::size_t,
                                            std::size_t, WidePipes);
template std::size_t schedule_rests<float>(Packed<float>&, WidePipes);
template std::size_t schedule_rests<double>(Packed<double>&, WidePipes);

}  // namespace lockstep::mlp
