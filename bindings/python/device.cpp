#include "bindings/python/device.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/ports.h"
#include "lockstep/core/error.h"
#include "lockstep/kernels/cuda/device_memory.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

cuda::EvaluationRuntime& runtime_of(int device) {
  int multiprocessors = 0;
  return cuda::require_device(device, multiprocessors);
}

// [sample ...][feature], or one sample's features, without gaps.
class DeviceArray {
 public:
  DeviceArray(const ArrayView& like, std::initializer_list<std::size_t> rest)
      : device_(like.cuda()->device),
        precision_(like.precision()),
        shape_(like.leading().begin(), like.leading().end()),
        memory_(std::make_unique<cuda::DeviceMemory>(runtime_of(device_), device_)) {
    shape_.insert(shape_.end(), rest);
    std::size_t count = like.rows();
    for (const std::size_t dimension : rest) count *= dimension;
    if (count == 0) return;
    data_ = precision_ == Precision::f32 ? static_cast<void*>(memory_->allocate<float>(count))
                                         : static_cast<void*>(memory_->allocate<double>(count));
  }

  ~DeviceArray() {
    const nb::gil_scoped_release others_may_run;  // see DevicePlans::make
    memory_.reset();
  }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  int device() const { return device_; }
  const char* dtype() const { return precision_ == Precision::f32 ? "float32" : "float64"; }
  nb::object shape() const { return shape_of(shape_, {}); }
  // `self` is this array's Python object, which lives as long as the capsule.
  nb::object capsule(nb::handle self) const {
    const auto type = precision_ == Precision::f32 ? nb::dtype<float>() : nb::dtype<double>();
    return nb::cast(nb::ndarray<>(data_, shape_.size(), shape_.data(), self, nullptr, type, kCuda, device_));
  }

 private:
  int device_;
  Precision precision_;
  std::vector<std::size_t> shape_;
  std::unique_ptr<cuda::DeviceMemory> memory_;
  void* data_ = nullptr;
};

template <class T>
nn::DeviceNetPlan<T> compile(const nn::Model& model, int device) {
  const nb::gil_scoped_release others_may_run;
  try {
    return nn::DeviceNetPlan<T>::compile(model, device);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::unsupported) throw;
    throw Error(ErrorKind::unsupported, {error.field(), error.found(), error.expected(),
                                         error.remedy() + ", to which you copy arrays with " + kToHost});
  }
}

// Whatever stream the consumer names: it is the one that the results were queued on, or they are there already.
nb::object to_dlpack(nb::handle self, nb::handle /*stream*/, nb::handle /*max_version*/, nb::handle place,
                     nb::handle copy) {
  const auto& array = nb::cast<const DeviceArray&>(self);
  if (!place.is_none() && !place.equal(nb::make_tuple(kCuda, array.device()))) {
    throw nb::buffer_error("a DeviceArray is not copied to another device; ask for it where it lies");
  }
  if (!copy.is_none() && nb::cast<bool>(copy)) throw nb::buffer_error("a DeviceArray is not copied; leave out copy");
  return array.capsule(self);
}

}  // namespace

template <class T>
nn::DeviceNetPlan<T> DevicePlans::get(const nn::Model& model, int device) {
  auto& plans = [this]() -> std::map<int, nn::DeviceNetPlan<T>>& {
    if constexpr (sizeof(T) == 4) {
      return plans_f32_;
    } else {
      return plans_f64_;
    }
  }();
  if (const auto found = plans.find(device); found != plans.end()) return found->second;
  nn::DeviceNetPlan<T> plan = compile<T>(model, device);
  return plans.emplace(device, std::move(plan)).first->second;  // another thread's, where one came first
}
template nn::DeviceNetPlan<float> DevicePlans::get(const nn::Model&, int);
template nn::DeviceNetPlan<double> DevicePlans::get(const nn::Model&, int);

std::shared_ptr<DevicePlans> DevicePlans::make() {
  return {new DevicePlans, [](DevicePlans* plans) {
            const nb::gil_scoped_release others_may_run;
            delete plans;
          }};
}

template <class T>
void enqueue(const nn::DeviceNetPlan<T>& plan, const CudaPlace& place, std::span<const MatrixView<const T>> in,
             std::span<const MatrixView<T>> out) {
  const nb::gil_scoped_release others_may_run;
  plan.enqueue(reinterpret_cast<void*>(place.stream), in, out);
  if (place.current) return;
  for (const MatrixView<T>& result : out) {
    if (result.rows == 0 || result.columns == 0 || result.data == nullptr) continue;
    // A copy to the host on the legacy default stream comes back when all that was queued there before is done.
    T number;
    const std::string failure = runtime_of(place.device).download(place.device, &number, result.data, sizeof number);
    if (!failure.empty()) cuda::refuse_device(place.device, failure, "evaluate on the CPU");
    return;
  }
}
template void enqueue(const nn::DeviceNetPlan<float>&, const CudaPlace&, std::span<const MatrixView<const float>>,
                      std::span<const MatrixView<float>>);
template void enqueue(const nn::DeviceNetPlan<double>&, const CudaPlace&, std::span<const MatrixView<const double>>,
                      std::span<const MatrixView<double>>);

nb::object new_device_array(const ArrayView& like, std::initializer_list<std::size_t> rest) {
  std::unique_ptr<DeviceArray> array;
  {
    const nb::gil_scoped_release others_may_run;
    array = std::make_unique<DeviceArray>(like, rest);
  }
  return nb::cast(array.release(), nb::rv_policy::take_ownership);
}

void bind_device(nb::module_& module) {
  nb::class_<DeviceArray>(module, "DeviceArray",
                          "A result on a GPU, for libraries that take arrays by DLPack: `cupy.from_dlpack(y)`.")
      .def("__dlpack__", &to_dlpack, nb::kw_only(), nb::arg("stream") = nb::none(), nb::arg("max_version") = nb::none(),
           nb::arg("dl_device") = nb::none(), nb::arg("copy") = nb::none(),
           nb::sig("def __dlpack__(self, *, stream: typing.Any = None, max_version: typing.Any = None, "
                   "dl_device: typing.Any = None, copy: typing.Any = None) -> typing.Any"))
      .def(
          "__dlpack_device__", [](const DeviceArray& array) { return nb::make_tuple(kCuda, array.device()); },
          nb::sig("def __dlpack_device__(self) -> tuple[int, int]"))
      .def_prop_ro("shape", &DeviceArray::shape)
      .def_prop_ro("dtype", &DeviceArray::dtype, "\"float32\" or \"float64\".")
      .def("__repr__", [](const DeviceArray& array) {
        return "<lockstep.DeviceArray on cuda:" + std::to_string(array.device()) + ": " + array.dtype() + " " +
               nb::cast<std::string>(nb::str(array.shape())) + ">";
      });
}

}  // namespace lockstep::python
