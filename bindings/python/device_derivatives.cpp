#include "bindings/python/device_derivatives.h"

#include <memory>
#include <span>
#include <vector>

#include "bindings/python/device.h"
#include "lockstep/core/error.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

// Queues the derivative on `in` and the other arrays into `results`, one for each port behind the net's own outputs,
// whose values nobody wants.
template <class T>
void enqueue_derivative(Net& net, nn::Derivative kind, const PortArrays& in, const PortArrays* more,
                        const std::vector<MatrixView<T>>& results) {
  const ArrayView& first = *in.views.front();
  const nn::DeviceNetPlan<T> plan = net.derivative(kind).device_plan<T>(first.cuda()->device);
  std::vector<MatrixView<const T>> from;
  for (const auto& array : in.views) from.push_back(array->template view<const T>());
  for (std::size_t i = 0; more != nullptr && i < more->views.size(); ++i)
    from.push_back(more->views[i]->template view<const T>());
  std::vector<MatrixView<T>> to;
  for (const nn::Port& port : net.model().outputs) to.push_back({nullptr, first.rows(), port.features.size(), 0, 0});
  to.insert(to.end(), results.begin(), results.end());
  enqueue<T>(plan, *first.cuda(), from, to);
}

template <class T>
nb::object multiply(Net& net, const PortArrays& x, const PortArrays& vector, nn::Derivative product) {
  const std::vector<nn::Port>& made = product == nn::Derivative::jvp ? net.model().outputs : net.model().inputs;
  const PortResults results = take_results(std::array<const ArrayView*, 1>{x.views.front().get()}, made, nb::none());
  std::vector<MatrixView<T>> to;
  for (const auto& array : results.views) to.push_back(array->template view<T>());
  enqueue_derivative<T>(net, product, x, &vector, to);
  return like_example(results.objects, made, x.example);
}

template <class T>
nb::object whole(Net& net, const PortArrays& x) {
  const ArrayView& first = *x.views.front();
  const std::size_t height = net.model().outputs[0].features.size(), width = net.model().inputs[0].features.size();
  const nb::object made = new_device_array(first, {height, width});
  T* const data = ArrayView(made, Access::write, "result", Memory::host_or_cuda, &first).template view<T>().data;
  enqueue_derivative<T>(net, nn::Derivative::jacobian, x, nullptr,
                        {MatrixView<T>::row_major(data, first.rows(), height * width)});
  return like_example({made}, net.model().outputs, x.example);
}

}  // namespace

nb::object multiply_on_device(Net& net, const PortArrays& x, const PortArrays& vector, nn::Derivative product) {
  return x.views.front()->precision() == Precision::f32 ? multiply<float>(net, x, vector, product)
                                                        : multiply<double>(net, x, vector, product);
}

nb::object jacobian_on_device(Net& net, const PortArrays& x) {
  if (net.model().inputs.size() != 1 || net.model().outputs.size() != 1) {
    throw Error(ErrorKind::invalid_argument,
                {"x", "arrays on a GPU, for a net of several ports", "one input port and one output port",
                 "net.derivative(\"jacobian\") is a net of all ports that has the Jacobian as another"});
  }
  return x.views.front()->precision() == Precision::f32 ? whole<float>(net, x) : whole<double>(net, x);
}

}  // namespace lockstep::python
