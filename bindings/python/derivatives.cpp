#include "bindings/python/derivatives.h"

#include <cstddef>
#include <span>
#include <vector>

#include "bindings/python/ports.h"
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
    results.push_back(new_array(first.precision(), first.dimensions(), first.rows(), port.features.size()));
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
  const PortArrays in = read_ports(x, net.model().inputs, "x", "input port");
  const PortArrays along = read_ports(vector, forward ? net.model().inputs : net.model().outputs, forward ? "v" : "w",
                                      forward ? "input port" : "output port", in.views.front().get());
  return in.views.front()->precision() == Precision::f32 ? multiply<float>(net, in, along, side)
                                                         : multiply<double>(net, in, along, side);
}

}  // namespace

nb::object jvp(Net& net, nb::handle x, nb::handle v) { return multiply(net, x, v, Side::jvp); }
nb::object vjp(Net& net, nb::handle x, nb::handle w) { return multiply(net, x, w, Side::vjp); }

}  // namespace lockstep::python
