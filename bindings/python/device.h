// Nets on arrays that lie on an NVIDIA GPU, and new arrays there.
#pragma once

#include <nanobind/nanobind.h>

#include <cstddef>
#include <initializer_list>
#include <map>
#include <memory>
#include <span>

#include "bindings/python/array_view.h"
#include "lockstep/core/matrix_view.h"
#include "lockstep/nn/device_net_plan.h"

namespace lockstep::python {

// A net's plans, compiled when a device is first asked for.
class DevicePlans {
 public:
  // Python's lock is away while it compiles. Error (unsupported) says how arrays reach the CPU where a device cannot be
  // had.
  template <class T>
  nn::DeviceNetPlan<T> get(const nn::Model& model, int device);

  // To be freed without Python's lock: giving memory back waits for the device, which may wait for a host function of
  // another library's that wants the lock.
  static std::shared_ptr<DevicePlans> make();

 private:
  std::map<int, nn::DeviceNetPlan<float>> plans_f32_;
  std::map<int, nn::DeviceNetPlan<double>> plans_f64_;
};

// Queues the evaluation on the place's stream, and waits for it unless that is the stream on which the arrays' library
// works: any other stream might read the results, or use the arguments' memory anew, too early.
template <class T>
void enqueue(const nn::DeviceNetPlan<T>& plan, const CudaPlace& place, std::span<const MatrixView<const T>> in,
             std::span<const MatrixView<T>> out);

// A DeviceArray of the device, dtype, dimensions and samples of `like`, which lies on a device: [..., rest].
nanobind::object new_device_array(const ArrayView& like, std::initializer_list<std::size_t> rest);

void bind_device(nanobind::module_& module);

}  // namespace lockstep::python
