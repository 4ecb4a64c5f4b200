#include "bindings/python/derivatives.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "bindings/python/device_derivatives.h"
#include "bindings/python/ports.h"
#include "lockstep/core/matrix_batch_view.h"
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

// The derivative of one port's features by another's, [sample][output][input], and where these are counted from.
template <class T>
struct Block {
  T* data;
  std::size_t outputs, inputs, first_output, first_input;

  void take(const MatrixBatchView<T>& jacobian) {
    T* to = data;
    for (std::size_t sample = 0; sample < jacobian.samples; ++sample) {
      for (std::size_t i = 0; i < outputs; ++i)
        to = std::copy_n(&jacobian(sample, first_output + i, first_input), inputs, to);
    }
  }
};

template <class T>
nb::object whole(Net& net, nb::handle x, const PortArrays& arrays) {
  const nn::NetDerivatives<T> derivatives = net.derivatives<T>();  // a share of it
  const ArrayView& first = *arrays.views.front();
  const std::vector<nn::Port>& inputs = net.model().inputs;
  const std::vector<nn::Port>& outputs = net.model().outputs;
  std::vector<MatrixView<const T>> in;
  for (const auto& array : arrays.views) in.push_back(array->template view<const T>());
  std::vector<std::vector<nb::object>> results;  // [output port][input port]
  std::vector<Block<T>> blocks;
  std::size_t all_outputs = 0, all_inputs = 0;
  for (const nn::Port& output : outputs) {
    results.emplace_back();
    const std::size_t height = output.features.size();
    all_inputs = 0;
    for (const nn::Port& input : inputs) {
      const std::size_t width = input.features.size();
      const nb::object made = new_array(first.precision(), std::array{first.rows() * height}, width);
      T* const data = ArrayView(made, Access::write, "result").template view<T>().data;
      blocks.push_back({data, height, width, all_outputs, all_inputs});
      results.back().push_back(made.attr("reshape")(shape_of(first.leading(), {height, width})));
      all_inputs += width;
    }
    all_outputs += height;
  }
  if (first.rows() > 0) {
    const nb::gil_scoped_release others_may_run;
    // In place where one block is all there is.
    std::vector<T> numbers(blocks.size() == 1 ? 0 : first.rows() * all_outputs * all_inputs);
    const MatrixBatchView<T> jacobian{blocks.size() == 1 ? blocks.front().data : numbers.data(), first.rows(),
                                      all_outputs, all_inputs};
    derivatives.jacobian(std::span<const MatrixView<const T>>(in), {}, jacobian);
    if (blocks.size() > 1) {
      for (Block<T>& block : blocks) block.take(jacobian);
    }
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
