// Somebody else's array, borrowed without a copy: NumPy's by the buffer protocol, others' (PyTorch, JAX, CuPy) by
// DLPack.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "lockstep/core/matrix_view.h"
#include "lockstep/core/precision.h"

namespace lockstep::python {

inline constexpr int kCuda = 2;  // as DLPack numbers devices
// How the libraries copy array x from a GPU.
inline constexpr const char* kToHost = "x.cpu() (PyTorch), jax.device_get(x) or cupy.asnumpy(x)";

bool is_plain_numpy(nanobind::handle object);  // of no subclass, as masked arrays are

enum class Access { read, write };
enum class Memory { host, host_or_cuda };

// Where an array on a GPU may be used, and when: what its owner queued before comes first on that stream.
struct CudaPlace {
  int device = 0;
  std::uintptr_t stream = 1;  // as DLPack names it: a cudaStream_t, or 1 for the legacy default stream
  bool current = false;       // the stream is the one on which the array's library works just now
};

// One dimension is one sample (or row); of more, the last counts features and the others samples: two have any strides,
// more lie such that one stride leads from each sample to the next. Holds the array while it lives.
class ArrayView {
 public:
  // `name` is what messages call it. Throws WrongType when the object is no array of float32 or float64 in such memory,
  // or may not be written although it is to be; Error (invalid_argument) for other dimensions. With `beside`, it must
  // lie where that one does, and is used on its stream.
  ArrayView(nanobind::handle object, Access access, const char* name, Memory memory = Memory::host,
            const ArrayView* beside = nullptr);
  ~ArrayView();
  ArrayView(const ArrayView&) = delete;
  ArrayView& operator=(const ArrayView&) = delete;

  Precision precision() const { return precision_; }
  // Of an array on a GPU; none for one in the CPU's memory.
  const std::optional<CudaPlace>& cuda() const { return cuda_; }
  std::span<const std::size_t> leading() const { return {leading_.data(), leading_count_}; }  // all but the last
  bool has_samples_of(const ArrayView& other) const { return std::ranges::equal(leading(), other.leading()); }
  std::size_t rows() const { return rows_; }
  std::size_t columns() const { return columns_; }
  // T must match precision().
  template <class T>
  MatrixView<T> view() const {
    return {static_cast<T*>(data_), rows_, columns_, row_stride_, column_stride_};
  }

  bool same_memory(const ArrayView& other) const;  // the same elements in the same places
  // They share an element. Both have the same precision.
  bool overlaps(const ArrayView& other) const;

 private:
  // False where the array lies on a GPU: its type may have the buffer protocol nevertheless (jax.Array).
  bool take_buffer(nanobind::handle object, Access access, const char* name);
  void take_dlpack(nanobind::handle object, Access access, const char* name, Memory memory, const ArrayView* beside);
  void take_tensor(nanobind::handle object, Access access, const char* name);
  // Shape in elements and strides in bytes, of no more than kMostDimensions.
  static constexpr std::size_t kMostDimensions = 8;
  void require_dimensions(std::size_t dimensions, nanobind::handle object, const char* name) const;
  void lay_out(std::span<const std::int64_t> shape, std::span<const std::int64_t> strides, nanobind::handle object,
               const char* name);

  Py_buffer buffer_{};
  bool holds_buffer_ = false;
  nanobind::ndarray<nanobind::ro> tensor_;  // keeps what DLPack handed over
  void* data_ = nullptr;
  std::optional<CudaPlace> cuda_;
  Precision precision_ = Precision::f32;
  std::array<std::size_t, kMostDimensions - 1> leading_{};
  std::size_t leading_count_ = 0;
  std::size_t rows_ = 0, columns_ = 0;
  std::ptrdiff_t row_stride_ = 0, column_stride_ = 1;  // in elements
};

// "float32 array of shape (3, 4)", "list": for messages.
std::string array_text(nanobind::handle object);

}  // namespace lockstep::python
