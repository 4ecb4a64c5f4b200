#include "bindings/python/array_view.h"

#include <nanobind/stl/string.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "bindings/python/errors.h"
#include "lockstep/core/matrix_overlap.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

std::size_t bytes_of(Precision precision) { return precision == Precision::f32 ? 4 : 8; }

std::string text_of(nb::handle object) { return nb::cast<std::string>(nb::str(object)); }

std::string attribute_text(nb::handle object, const char* name) {
  PyObject* value = PyObject_GetAttrString(object.ptr(), name);
  if (!value) {
    PyErr_Clear();
    return {};
  }
  return text_of(nb::steal(value));
}

// Of what stands for numbers under jit, grad and vmap.
bool is_traced_by_jax(nb::handle object) {
  const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
  return attribute_text(type, "__module__").starts_with("jax") && attribute_text(type, "__name__").ends_with("Tracer");
}

[[noreturn]] void refuse_type(nb::handle object, const char* name, const std::string& remedy) {
  if (is_traced_by_jax(object)) {
    throw WrongType({name, "an array that JAX traces, which has no numbers yet", "an array of numbers",
                     "call it by jax.pure_callback, as docs/python.md does"});
  }
  throw WrongType({name, array_text(object), "an array of float32 or float64", remedy});
}

// A dtype that keeps all digits: numbers of Python and those of a dtype that is not known are float64.
[[noreturn]] void refuse_to_convert(nb::handle object, const char* name) {
  const std::string dtype = attribute_text(object, "dtype");
  const bool is_single = dtype == "float32" || dtype == "Float32" || dtype == "float16";
  refuse_type(object, name,
              std::string("convert it with numpy.asarray(x, dtype=numpy.") + (is_single ? "float32)" : "float64)"));
}

// float32 and float64 of this machine's byte order; struct module's notation, which the buffer protocol uses.
bool native_format(const char* format, Precision& precision) {
  if (!format) return false;
  constexpr char kNative = '<';
  if (format[0] == '@' || format[0] == '=' || format[0] == kNative) ++format;
  if (format[0] == '\0' || format[1] != '\0') return false;
  if (format[0] != 'f' && format[0] != 'd') return false;
  precision = format[0] == 'f' ? Precision::f32 : Precision::f64;
  return true;
}

// DLPack's names of the places an array may lie (dlpack.h, DLDeviceType).
std::string device_name(int type) {
  switch (type) {
    case 2:
      return "a CUDA device";
    case 8:
      return "a Metal device";
    case 10:
      return "a ROCm device";
    default:
      return "DLPack device type " + std::to_string(type);
  }
}

bool on_cpu(int type) { return type == 1 || type == 3 || type == 11; }  // host memory, or pinned by CUDA or ROCm

bool lies_on_cuda(nb::handle object) {
  return nb::hasattr(object, "__dlpack_device__") && nb::cast<int>(object.attr("__dlpack_device__")()[0]) == kCuda;
}

// A NumPy array with a mask hands out its numbers, those under the mask, too, which mean nothing.
void refuse_masked(nb::handle object, const char* name) {
  if (is_plain_numpy(object)) return;  // most of them; no look-up
  const nb::handle type(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr())));
  if (!nb::hasattr(object, "mask") || !nb::hasattr(type, "compressed")) return;
  const auto masked = nb::cast<std::size_t>(nb::module_::import_("numpy.ma").attr("count_masked")(object));
  if (masked == 0) return;
  throw WrongType({name, "a masked array with " + std::to_string(masked) + " numbers masked", "an array of numbers",
                   "fill them, x.filled(0), or leave their rows out, numpy.ma.compress_rows(x)"});
}

[[noreturn]] void refuse_place(const char* name, const std::string& found, const CudaPlace& expected) {
  throw WrongType({name, found, "one on cuda:" + std::to_string(expected.device) + ", as the net's first input",
                   "copy it there, or all of them to one place"});
}

// PyTorch's lazy negative, as x.conj().imag gives it: DLPack hands out its memory, which holds the negated numbers.
void refuse_negative(nb::handle object, const char* name) {
  if (!nb::hasattr(object, "is_neg") || !nb::cast<bool>(object.attr("is_neg")())) return;
  throw WrongType({name, array_text(object) + " whose memory holds its numbers negated, as PyTorch says by is_neg()",
                   "one that holds the numbers themselves", "give x.resolve_neg()"});
}

CudaPlace place_on(int device, nb::handle object) {
  const nb::object stream = nb::module_::import_("lockstep._arrays").attr("current_stream")(object, device);
  if (stream.is_none()) return {.device = device};
  return {.device = device, .stream = nb::cast<std::uintptr_t>(stream), .current = true};
}

// NumPy, PyTorch and CuPy arrays can be written; a jax.Array never, whatever attributes it has.
bool may_be_written(nb::handle object) {
  const std::string module =
      attribute_text(nb::handle(reinterpret_cast<PyObject*>(Py_TYPE(object.ptr()))), "__module__");
  return !module.starts_with("jax") && (nb::hasattr(object, "__setitem__") || lies_on_cuda(object));
}

}  // namespace

std::string array_text(nb::handle object) {
  const std::string type = nb::cast<std::string>(nb::handle(Py_TYPE(object.ptr())).attr("__name__"));
  const std::string dtype = attribute_text(object, "dtype"), shape = attribute_text(object, "shape");
  return dtype.empty() || shape.empty() ? type : type + " of " + dtype + " with shape " + shape;
}

bool is_plain_numpy(nb::handle object) { return std::strcmp(Py_TYPE(object.ptr())->tp_name, "numpy.ndarray") == 0; }

ArrayView::ArrayView(nb::handle object, Access access, const char* name, Memory memory, const ArrayView* beside) {
  if (!PyObject_CheckBuffer(object.ptr()) || !take_buffer(object, access, name)) {
    take_dlpack(object, access, name, memory, beside);
  }
  if (beside && beside->cuda_ && !cuda_) {
    if (holds_buffer_) PyBuffer_Release(&buffer_);
    refuse_place(name, "an array in the CPU's memory", *beside->cuda_);
  }
}

ArrayView::~ArrayView() {
  if (holds_buffer_) PyBuffer_Release(&buffer_);
}

bool ArrayView::take_buffer(nb::handle object, Access access, const char* name) {
  const int flags = PyBUF_STRIDES | PyBUF_FORMAT | (access == Access::write ? PyBUF_WRITABLE : 0);
  if (PyObject_GetBuffer(object.ptr(), &buffer_, flags) != 0) {
    const nb::python_error why;
    if (lies_on_cuda(object)) return false;
    if (access == Access::write) {
      throw WrongType({name, array_text(object) + " that is read-only", "an array that can be written", "give a copy"});
    }
    refuse_to_convert(object, name);
  }
  holds_buffer_ = true;
  try {
    if (!native_format(buffer_.format, precision_)) {
      refuse_type(object, name, "convert it with x.astype(numpy.float32) or x.astype(numpy.float64)");
    }
    refuse_masked(object, name);
    data_ = buffer_.buf;
    const auto dimensions = static_cast<std::size_t>(buffer_.ndim);
    require_dimensions(dimensions, object, name);
    std::array<std::int64_t, kMostDimensions> shape{}, strides{};
    std::copy_n(buffer_.shape, dimensions, shape.begin());
    std::copy_n(buffer_.strides, dimensions, strides.begin());
    lay_out(std::span(shape).first(dimensions), std::span(strides).first(dimensions), object, name);
  } catch (...) {
    PyBuffer_Release(&buffer_);
    throw;
  }
  return true;
}

void ArrayView::take_dlpack(nb::handle object, Access access, const char* name, Memory memory,
                            const ArrayView* beside) {
  if (!nb::hasattr(object, "__dlpack__") || !nb::hasattr(object, "__dlpack_device__")) {
    if (nb::hasattr(object, "columns")) {  // whose order a net would not know
      refuse_type(object, name,
                  "choose columns in the order of the net's inputs, x[[\"a\", \"b\"]].to_numpy(\"float64\")");
    }
    refuse_to_convert(object, name);
  }
  refuse_negative(object, name);
  const nb::object place = object.attr("__dlpack_device__")();
  const int type = nb::cast<int>(place[0]), device = nb::cast<int>(place[1]);
  const bool devices = memory == Memory::host_or_cuda && (!beside || beside->cuda_);
  if (!on_cpu(type) && !(devices && type == kCuda)) {
    throw WrongType(
        {name, "an array on " + device_name(type), "one in the CPU's memory", std::string("copy it with ") + kToHost});
  }
  if (type == kCuda) {
    if (beside && beside->cuda_->device != device) {
      refuse_place(name, "an array on cuda:" + std::to_string(device), *beside->cuda_);
    }
    cuda_ = beside ? beside->cuda_ : place_on(device, object);
  }
  nb::object capsule;
  try {
    capsule = cuda_ ? object.attr("__dlpack__")(nb::arg("stream") = cuda_->stream) : object.attr("__dlpack__")();
  } catch (const nb::python_error& error) {
    throw WrongType({name, array_text(object) + ", which says: " + text_of(error.value()), "an array to borrow",
                     "in PyTorch give x.detach(), elsewhere numpy.asarray(x)"});
  }
  if (!nb::try_cast(capsule, tensor_)) refuse_type(object, name, "convert it with numpy.asarray(x)");
  const bool there =
      cuda_ ? tensor_.device_type() == kCuda && tensor_.device_id() == device : on_cpu(tensor_.device_type());
  if (!there) {
    throw WrongType({name, array_text(object) + " whose __dlpack__ and __dlpack_device__ name different places",
                     "one place", std::string("copy it with ") + kToHost});
  }
  take_tensor(object, access, name);
}

void ArrayView::take_tensor(nb::handle object, Access access, const char* name) {
  const nb::ndarray<nb::ro>& array = tensor_;
  if (array.dtype() == nb::dtype<float>()) {
    precision_ = Precision::f32;
  } else if (array.dtype() == nb::dtype<double>()) {
    precision_ = Precision::f64;
  } else {
    refuse_type(object, name,
                "convert it to float32 or float64: x.float() in PyTorch, x.astype(\"float32\") elsewhere");
  }
  // DLPack without a version says nothing of arrays that may not be written: jax.Array is the one that matters.
  if (access == Access::write && !may_be_written(object)) {
    throw WrongType({name, array_text(object) + " that is read-only", "an array that can be written",
                     "leave out the argument, or give an array of NumPy, PyTorch or CuPy"});
  }
  data_ = const_cast<void*>(array.data());
  require_dimensions(array.ndim(), object, name);
  std::array<std::int64_t, kMostDimensions> shape{}, strides{};
  for (std::size_t i = 0; i < array.ndim(); ++i) {
    shape[i] = static_cast<std::int64_t>(array.shape(i));
    strides[i] = array.stride(i) * static_cast<std::int64_t>(bytes_of(precision_));
  }
  lay_out(std::span(shape).first(array.ndim()), std::span(strides).first(array.ndim()), object, name);
}

void ArrayView::require_dimensions(std::size_t dimensions, nb::handle object, const char* name) const {
  if (dimensions >= 1 && dimensions <= kMostDimensions) return;
  throw Error(ErrorKind::invalid_argument,
              {name, array_text(object),
               "from one dimension (a sample) to " + std::to_string(kMostDimensions) + ", the last of them features",
               "reshape it: x.reshape(-1, x.shape[-1])"});
}

void ArrayView::lay_out(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, nb::handle object,
                        const char* name) {
  const auto size = static_cast<std::int64_t>(bytes_of(precision_));
  bool aligned = reinterpret_cast<std::uintptr_t>(data_) % static_cast<std::uintptr_t>(size) == 0;
  for (std::size_t i = 0; i < shape.size(); ++i) aligned = aligned && (shape[i] < 2 || strides[i] % size == 0);
  if (!aligned) {
    throw WrongType({name, "numbers that do not lie at multiples of their size", "aligned ones", "copy it: x.copy()"});
  }
  const std::size_t last = shape.size() - 1;
  columns_ = static_cast<std::size_t>(shape[last]);
  column_stride_ = columns_ < 2 ? 1 : strides[last] / size;
  leading_count_ = last;
  rows_ = 1;
  for (std::size_t i = 0; i < last; ++i) rows_ *= leading_[i] = static_cast<std::size_t>(shape[i]);
  // Strides over a single element may be anything: NumPy does not promise sense.
  row_stride_ = static_cast<std::ptrdiff_t>(columns_);
  std::optional<std::int64_t> next;  // the stride of this dimension, where samples follow one another
  for (std::size_t i = last; i-- > 0 && rows_ > 1;) {
    if (shape[i] == 1) continue;
    if (!next) row_stride_ = strides[i] / size;
    if (strides[i] != next.value_or(strides[i])) {
      throw Error(ErrorKind::invalid_argument,
                  {name, array_text(object) + " whose samples do not follow one another in memory",
                   "one stride from each sample to the next, or two dimensions",
                   "copy it with numpy.ascontiguousarray(x), or give it slice by slice"});
    }
    next = strides[i] * shape[i];
  }
}

bool ArrayView::same_memory(const ArrayView& other) const {
  return data_ == other.data_ && rows_ == other.rows_ && columns_ == other.columns_ &&
         row_stride_ == other.row_stride_ && column_stride_ == other.column_stride_;
}

bool ArrayView::overlaps(const ArrayView& other) const {
  const auto places = [](const ArrayView& array) {
    return Places{reinterpret_cast<std::uintptr_t>(array.data_),
                  bytes_of(array.precision_),
                  array.rows_,
                  array.columns_,
                  array.row_stride_,
                  array.column_stride_};
  };
  return share_memory(places(*this), places(other));
}

}  // namespace lockstep::python
