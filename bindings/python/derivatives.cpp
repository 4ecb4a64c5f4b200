#include "bindings/python/derivatives.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "bindings/python/device_derivatives.h"
#include "bindings/python/ports.h"
#include "lockstep/kernels/tile.h"
#include "lockstep/nn/net_derivatives.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

enum class Side { jvp, vjp };

template <class T>
nb::object multiply(Net& net, const PortArrays& x, const PortArrays& vector, Side side) {
  const nn::NetDerivatives<T> derivatives = net.derivatives<T>();  // a share of it
  const std::vector<nn::Port>& made = side == Side::jvp ? net.model().outputs : net.model().inputs;
  const ArrayView& first = *x.views.front();
  std::vector<MatrixView<const T>> in, along;
  for (const auto& array : x.views) in.push_back(array->template view<const T>());
  for (const auto& array : vector.views) along.push_back(array->template view<const T>());
  std::vector<nb::object> results;
  std::vector<std::unique_ptr<ArrayView>> arrays;
  std::vector<MatrixView<T>> to;
  for (const nn::Port& port : made) {
    results.push_back(new_array(first.precision(), first.leading(), port.features.size()));
    arrays.push_back(std::make_unique<ArrayView>(results.back(), Access::write, "result"));
    to.push_back(arrays.back()->template view<T>());
  }
  {
    const nb::gil_scoped_release others_may_run;
    using In = std::span<const MatrixView<const T>>;
    using Out = std::span<const MatrixView<T>>;
    if (side == Side::jvp) {
      derivatives.jvp(In(in), In(along), Out(), Out(to));
    } else {
      derivatives.vjp(In(in), In(along), Out(), Out(to));
    }
  }
  return like_example(results, made, x.example);
}

nb::object multiply(Net& net, nb::handle x, nb::handle vector, Side side) {
  const bool forward = side == Side::jvp;
  const PortArrays in = read_ports(x, net.model().inputs, "x", "input port", nullptr, Memory::host_or_cuda);
  const PortArrays along =
      read_ports(vector, forward ? net.model().inputs : net.model().outputs, forward ? "v" : "w",
                 forward ? "input port" : "output port", in.views.front().get(), Memory::host_or_cuda);
  if (in.views.front()->cuda())
    return multiply_on_device(net, in, along, forward ? nn::Derivative::jvp : nn::Derivative::vjp);
  return in.views.front()->precision() == Precision::f32 ? multiply<float>(net, in, along, side)
                                                         : multiply<double>(net, in, along, side);
}

// Where the derivative of one port's features by another's lies: [sample][output][input].
template <class T>
struct Block {
  T* data;
  std::size_t outputs, inputs;

  // What products make, [row][made feature]: of one seed's unit vector for all samples, of all of them for one sample.
  MatrixView<T> of_seed(Side side, std::size_t seed, std::size_t rows, std::size_t made) const {
    T* const first = data + seed * (side == Side::jvp ? 1 : inputs);
    return {first, rows, made, static_cast<std::ptrdiff_t>(outputs * inputs),
            side == Side::jvp ? static_cast<std::ptrdiff_t>(inputs) : 1};
  }
  MatrixView<T> of_sample(Side side, std::size_t sample, std::size_t seeds, std::size_t made) const {
    T* const first = data + sample * outputs * inputs;
    const auto along_inputs = std::ptrdiff_t(1), along_outputs = static_cast<std::ptrdiff_t>(inputs);
    return side == Side::jvp ? MatrixView<T>{first, seeds, made, along_inputs, along_outputs}
                             : MatrixView<T>{first, seeds, made, along_outputs, along_inputs};
  }
};

// J of `rows` samples into blocks[output port][input port], a unit vector after another: for all samples at once, or of
// each sample all of a port's at once, whichever leaves fewer lanes of a tile idle.
template <class T>
void differentiate(const nn::NetDerivatives<T>& derivatives, const std::vector<MatrixView<const T>>& in,
                   const std::vector<std::vector<Block<T>>>& blocks) {
  const auto widths = [](auto ports) {
    std::vector<std::size_t> list;
    for (const auto& port : ports) list.push_back(port.width);
    return list;
  };
  const auto sum = [](const std::vector<std::size_t>& list) {
    return std::accumulate(list.begin(), list.end(), std::size_t(0));
  };
  const std::vector<std::size_t> in_widths = widths(derivatives.inputs()), out_widths = widths(derivatives.outputs());
  const std::size_t rows = in.front().rows;
  const Side side = sum(out_widths) < sum(in_widths) ? Side::vjp : Side::jvp;
  const std::vector<std::size_t>& seeded = side == Side::jvp ? in_widths : out_widths;
  const std::vector<std::size_t>& made = side == Side::jvp ? out_widths : in_widths;
  const std::size_t widest = *std::max_element(seeded.begin(), seeded.end());
  const std::vector<T> zeros(widest);
  std::vector<T> units(widest * widest);
  for (std::size_t i = 0; i < widest; ++i) units[i * widest + i] = 1;
  const auto multiply = [&](const std::vector<MatrixView<const T>>& at, const std::vector<MatrixView<const T>>& along,
                            const std::vector<MatrixView<T>>& to) {
    using In = std::span<const MatrixView<const T>>;
    using Out = std::span<const MatrixView<T>>;
    if (side == Side::jvp) {
      derivatives.jvp(In(at), In(along), Out(), Out(to));
    } else {
      derivatives.vjp(In(at), In(along), Out(), Out(to));
    }
  };
  const auto block = [&](std::size_t port, std::size_t seed) -> const Block<T>& {
    return side == Side::jvp ? blocks[port][seed] : blocks[seed][port];
  };
  // Rows of unit vectors of port `which` from the one of feature `first` on, `step` apart; of the others, none.
  const auto unit_rows = [&](std::size_t which, std::size_t first, std::size_t count, std::size_t step) {
    std::vector<MatrixView<const T>> along;
    for (std::size_t port = 0; port < seeded.size(); ++port) {
      const bool chosen = port == which;
      along.push_back({chosen ? units.data() + first * widest : zeros.data(), count, seeded[port],
                       chosen ? static_cast<std::ptrdiff_t>(step) : 0, 1});
    }
    return along;
  };
  std::vector<MatrixView<T>> to(made.size());
  for (std::size_t seed = 0; seed < seeded.size(); ++seed) {
    const std::size_t width = seeded[seed];
    constexpr std::size_t kLanes = kTileLanes;
    const auto tiles = [](std::size_t samples) { return (samples + kLanes - 1) / kLanes; };
    if (width * tiles(rows) <= rows * tiles(width)) {
      for (std::size_t i = 0; i < width; ++i) {
        for (std::size_t port = 0; port < made.size(); ++port)
          to[port] = block(port, seed).of_seed(side, i, rows, made[port]);
        multiply(in, unit_rows(seed, i, rows, 0), to);
      }
      continue;
    }
    for (std::size_t sample = 0; sample < rows; ++sample) {
      std::vector<MatrixView<const T>> at = in;
      for (auto& view : at)
        view = {view.data + static_cast<std::ptrdiff_t>(sample) * view.row_stride, width, view.columns, 0,
                view.column_stride};
      for (std::size_t port = 0; port < made.size(); ++port)
        to[port] = block(port, seed).of_sample(side, sample, width, made[port]);
      multiply(at, unit_rows(seed, 0, width, widest), to);
    }
  }
}

template <class T>
nb::object whole(Net& net, nb::handle x, const PortArrays& arrays) {
  const nn::NetDerivatives<T> derivatives = net.derivatives<T>();  // a share of it
  const ArrayView& first = *arrays.views.front();
  const std::vector<nn::Port>& inputs = net.model().inputs;
  const std::vector<nn::Port>& outputs = net.model().outputs;
  std::vector<MatrixView<const T>> in;
  for (const auto& array : arrays.views) in.push_back(array->template view<const T>());
  std::vector<std::vector<nb::object>> results;  // [output port][input port]
  std::vector<std::vector<Block<T>>> blocks;
  for (const nn::Port& output : outputs) {
    results.emplace_back();
    blocks.emplace_back();
    const std::size_t height = output.features.size();
    for (const nn::Port& input : inputs) {
      const std::size_t width = input.features.size();
      const nb::object made = new_array(first.precision(), std::array{first.rows() * height}, width);
      blocks.back().push_back({ArrayView(made, Access::write, "result").template view<T>().data, height, width});
      results.back().push_back(made.attr("reshape")(shape_of(first.leading(), {height, width})));
    }
  }
  if (first.rows() > 0) {
    const nb::gil_scoped_release others_may_run;
    differentiate<T>(derivatives, in, blocks);
  }
  std::vector<nb::object> by_output;
  for (const auto& row : results) {
    nb::object one = like_example(row, inputs, arrays.example);
    if (PyDict_Check(x.ptr()) && row.size() == 1) {
      nb::dict named;
      named[inputs.front().name.c_str()] = one;
      one = named;
    }
    by_output.push_back(one);
  }
  if (outputs.size() == 1) return by_output.front();
  nb::dict named;
  for (std::size_t i = 0; i < outputs.size(); ++i) named[outputs[i].name.c_str()] = by_output[i];
  return named;
}

}  // namespace

nb::object jvp(Net& net, nb::handle x, nb::handle v) { return multiply(net, x, v, Side::jvp); }
nb::object vjp(Net& net, nb::handle x, nb::handle w) { return multiply(net, x, w, Side::vjp); }
nb::object jacobian(Net& net, nb::handle x) {
  const PortArrays in = read_ports(x, net.model().inputs, "x", "input port", nullptr, Memory::host_or_cuda);
  if (in.views.front()->cuda()) return jacobian_on_device(net, in);
  return in.views.front()->precision() == Precision::f32 ? whole<float>(net, x, in) : whole<double>(net, x, in);
}

}  // namespace lockstep::python
