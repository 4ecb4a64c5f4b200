// How the HDF5 wrapper calls the C library: one at a time, silently, with its error stack made into our Error.
#pragma once

#include <hdf5.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/standard_arithmetic.h"

namespace lockstep::hdf5::detail {

static_assert(sizeof(hid_t) == sizeof(std::int64_t), "HDF5 1.10 or later");

std::recursive_mutex& call_mutex();

// Held during every use of the C library, whose conversions of numbers must not trap either.
class Call {
 public:
  Call() : lock_(call_mutex()) {
    H5Eget_auto2(H5E_DEFAULT, &print_, &print_data_);
    H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  Call(const Call&) = delete;
  ~Call() {
    H5Eclear2(H5E_DEFAULT);
    H5Eset_auto2(H5E_DEFAULT, print_, print_data_);
  }

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  StandardArithmetic arithmetic_;
  H5E_auto2_t print_ = nullptr;
  void* print_data_ = nullptr;
};

// The innermost entry of HDF5's error stack: the cause, without the chain of callers.
std::string cause();

// Throws Error (file) with `found` = HDF5's cause when the call's result is negative.
template <class Result>
Result check(Result result, const std::string& object, const std::string& expected) {
  if (result < 0) {
    throw Error(ErrorKind::file,
                {object, cause(), expected, "check that the file is whole and the disk has room and works"});
  }
  return result;
}

inline Handle opened(hid_t id, const std::string& object, const std::string& expected) {
  return Handle(check(id, object, expected));
}

// Files and the objects in them look the same whenever they are made, so that equal content is equal bytes.
Handle creation_properties(hid_t kind, const std::string& object);

ElementType element_type(hid_t type);
Place place_of(hid_t object, const std::string& name);
Handle string_type();  // UTF-8, variable length

// For C's sake: throws where the text holds a zero byte, which would silently end it.
const char* c_text(const std::string& value, const std::string& object);

std::string text(const Shape& shape);  // "[2, 3]"
// Throws where the number of elements cannot be addressed.
std::size_t product(const Shape& shape, const std::string& object);
inline std::vector<hsize_t> extents(const Shape& shape) { return {shape.begin(), shape.end()}; }

// The HDF5 type of T in memory and, little-endian, in files.
template <Number T>
hid_t memory_type() {
  if constexpr (std::same_as<T, float>) return H5T_NATIVE_FLOAT;
  if constexpr (std::same_as<T, double>) return H5T_NATIVE_DOUBLE;
  if constexpr (std::same_as<T, std::uint8_t>) return H5T_NATIVE_UINT8;
  if constexpr (std::same_as<T, std::int32_t>) return H5T_NATIVE_INT32;
  if constexpr (std::same_as<T, std::int64_t>) return H5T_NATIVE_INT64;
}

template <Number T>
hid_t file_type() {
  if constexpr (std::same_as<T, float>) return H5T_IEEE_F32LE;
  if constexpr (std::same_as<T, double>) return H5T_IEEE_F64LE;
  if constexpr (std::same_as<T, std::uint8_t>) return H5T_STD_U8LE;
  if constexpr (std::same_as<T, std::int32_t>) return H5T_STD_I32LE;
  if constexpr (std::same_as<T, std::int64_t>) return H5T_STD_I64LE;
}

// Reads strings of fixed or variable length by read(memory_type, buffer), which returns HDF5's status.
template <class Read>
std::vector<std::string> read_strings(hid_t type, hid_t space, std::size_t count, const std::string& object,
                                      Read read) {
  std::vector<std::string> result(count);
  if (count == 0) return result;
  if (check(H5Tis_variable_str(type), object, "a string type") > 0) {
    const Handle memory = opened(H5Tcopy(type), object, "a string type");
    std::vector<char*> pointers(count, nullptr);
    check(read(memory.id(), pointers.data()), object, "readable strings");
    for (std::size_t i = 0; i < count; ++i) result[i] = pointers[i] == nullptr ? "" : pointers[i];
    H5Dvlen_reclaim(memory.id(), space, H5P_DEFAULT, pointers.data());
    return result;
  }
  const std::size_t width = H5Tget_size(type);
  std::vector<char> characters(count * width);
  check(read(type, characters.data()), object, "readable strings");
  for (std::size_t i = 0; i < count; ++i) {
    std::string& text = result[i].assign(characters.data() + i * width, width);
    text.erase(std::min(text.find('\0'), text.size()));
    if (H5Tget_strpad(type) == H5T_STR_SPACEPAD) text.erase(text.find_last_not_of(' ') + 1);
  }
  return result;
}

}  // namespace lockstep::hdf5::detail
