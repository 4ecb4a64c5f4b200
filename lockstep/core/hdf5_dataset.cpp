// Datasets: reading, writing, hyperslabs and dimension scales.
#include <hdf5.h>
#include <hdf5_hl.h>

#include <algorithm>

#include "lockstep/core/detail/hdf5_call.h"
#include "lockstep/core/hdf5.h"

namespace lockstep::hdf5 {
namespace {

using detail::Call;
using detail::check;
using detail::extents;
using detail::opened;
using detail::product;
using detail::text;

void check_box(const std::string& name, const Shape& shape, const Shape& start, const Shape& count) {
  bool inside = start.size() == shape.size() && count.size() == shape.size() && !shape.empty();
  for (std::size_t i = 0; inside && i < shape.size(); ++i) {
    inside = start[i] <= shape[i] && count[i] <= shape[i] - start[i];
  }
  if (!inside) {
    throw Error(ErrorKind::invalid_argument,
                {name, "start " + text(start) + " count " + text(count), "a part of shape " + text(shape), ""});
  }
}

// Can values of the stored type be held by T? Reals never become integers, integers never lose their top.
template <Number T>
void check_type(const std::string& name, ElementType stored) {
  const bool fits = std::floating_point<T> ? stored.kind == Kind::integer || stored.kind == Kind::real
                                           : stored.kind == Kind::integer && stored.bytes <= sizeof(T);
  if (fits) return;
  const std::string expected =
      std::floating_point<T> ? "numbers" : "integers of at most " + std::to_string(8 * sizeof(T)) + " bits";
  throw Error(ErrorKind::file, {name, to_string(stored), expected, ""});
}

// A few damaged bytes can claim terabytes. No filter of HDF5's own packs more than 1:1032 (deflate's limit).
void check_claimed_bytes(const std::string& name, std::int64_t dataset, std::size_t bytes) {
  constexpr std::size_t kAlwaysAllowed = 1 << 20, kBestPacking = 1032;
  if (bytes <= kAlwaysAllowed) return;
  const Call call;
  const Handle file = opened(H5Iget_file_id(dataset), name, "its file");
  hsize_t file_bytes = 0;
  check(H5Fget_filesize(file.id(), &file_bytes), name, "the size of its file");
  if (bytes / kBestPacking > file_bytes) {
    throw Error(ErrorKind::file,
                {name, std::to_string(bytes) + " bytes claimed in a file of " + std::to_string(file_bytes),
                 "a size the file can hold", "check that the file is whole"});
  }
}

}  // namespace

Shape Dataset::shape() const {
  const Call call;
  const Handle space = opened(H5Dget_space(id()), name_, "a readable shape");
  const int rank = check(H5Sget_simple_extent_ndims(space.id()), name_, "a readable shape");
  std::vector<hsize_t> sizes(static_cast<std::size_t>(rank));
  check(H5Sget_simple_extent_dims(space.id(), sizes.data(), nullptr), name_, "a readable shape");
  return {sizes.begin(), sizes.end()};
}

ElementType Dataset::type() const {
  const Call call;
  return detail::element_type(opened(H5Dget_type(id()), name_, "a readable type").id());
}

std::size_t Dataset::size() const { return product(shape(), name_); }

void Dataset::transfer(bool writing, void* data, std::int64_t memory, const Shape* start, const Shape* count) const {
  const Call call;
  const Handle file_space = opened(H5Dget_space(id()), name_, "a readable shape");
  Handle memory_space(H5S_ALL);
  hid_t file_selection = H5S_ALL;
  if (start != nullptr) {
    const std::vector<hsize_t> first = extents(*start), number = extents(*count);
    check(H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, first.data(), nullptr, number.data(), nullptr), name_,
          "a part of it");
    memory_space = opened(H5Screate_simple(static_cast<int>(number.size()), number.data(), nullptr), name_, "memory");
    file_selection = file_space.id();
  }
  const hid_t memory_selection = start == nullptr ? H5S_ALL : memory_space.id();
  if (writing) {
    check(H5Dwrite(id(), memory, memory_selection, file_selection, H5P_DEFAULT, data), name_, "to write it");
  } else {
    check(H5Dread(id(), memory, memory_selection, file_selection, H5P_DEFAULT, data), name_, "readable data");
  }
}

template <Number T>
std::vector<T> Dataset::read() const {
  const Call call;
  const std::size_t count = size();
  check_type<T>(name_, type());
  check_claimed_bytes(name_, id(), count * sizeof(T));
  std::vector<T> values(count);
  if (count > 0) transfer(false, values.data(), detail::memory_type<T>(), nullptr, nullptr);
  return values;
}

template <Number T>
std::vector<T> Dataset::read(const Shape& start, const Shape& count) const {
  const Call call;
  check_box(name_, shape(), start, count);
  check_type<T>(name_, type());
  check_claimed_bytes(name_, id(), product(count, name_) * sizeof(T));
  std::vector<T> values(product(count, name_));
  if (!values.empty()) transfer(false, values.data(), detail::memory_type<T>(), &start, &count);
  return values;
}

std::vector<std::string> Dataset::read_strings() const {
  const Call call;
  const Handle type = opened(H5Dget_type(id()), name_, "a readable type");
  const Handle space = opened(H5Dget_space(id()), name_, "a readable shape");
  const ElementType element = detail::element_type(type.id());
  if (element.kind != Kind::string) throw Error(ErrorKind::file, {name_, to_string(element), "strings", ""});
  check_claimed_bytes(name_, id(), product({size(), std::max<std::size_t>(element.bytes, 1)}, name_));
  return detail::read_strings(type.id(), space.id(), size(), name_, [&](hid_t memory, void* buffer) {
    return H5Dread(id(), memory, H5S_ALL, H5S_ALL, H5P_DEFAULT, buffer);
  });
}

template <Number T>
void Dataset::write(std::span<const T> values) {
  const Call call;
  if (values.size() != size()) {
    throw Error(ErrorKind::invalid_argument, {name_, std::to_string(values.size()) + " values",
                                              std::to_string(size()) + " for shape " + text(shape()), ""});
  }
  if (!values.empty()) transfer(true, const_cast<T*>(values.data()), detail::memory_type<T>(), nullptr, nullptr);
}

template <Number T>
void Dataset::write(std::span<const T> values, const Shape& start, const Shape& count) {
  const Call call;
  check_box(name_, shape(), start, count);
  if (values.size() != product(count, name_)) {
    throw Error(ErrorKind::invalid_argument, {name_, std::to_string(values.size()) + " values",
                                              std::to_string(product(count, name_)) + " for count " + text(count), ""});
  }
  if (!values.empty()) transfer(true, const_cast<T*>(values.data()), detail::memory_type<T>(), &start, &count);
}

void Dataset::flush() {
  const Call call;
  check(H5Dflush(id()), name_, "to flush it");
}

void Dataset::make_scale(const std::string& dimension_name) {
  const Call call;
  check(H5DSset_scale(id(), dimension_name.c_str()), name_, "to make it a dimension scale");
}

void Dataset::attach_scale(std::size_t dimension, const Dataset& scale) {
  const Call call;
  check(H5DSattach_scale(id(), scale.id(), static_cast<unsigned>(dimension)), name_,
        "to attach dimension scale " + scale.name_);
}

#define LOCKSTEP_HDF5_NUMBER(T)                                               \
  template std::vector<T> Dataset::read<T>() const;                           \
  template std::vector<T> Dataset::read<T>(const Shape&, const Shape&) const; \
  template void Dataset::write<T>(std::span<const T>);                        \
  template void Dataset::write<T>(std::span<const T>, const Shape&, const Shape&);
LOCKSTEP_HDF5_NUMBER(float)
LOCKSTEP_HDF5_NUMBER(double)
LOCKSTEP_HDF5_NUMBER(std::uint8_t)
LOCKSTEP_HDF5_NUMBER(std::int32_t)
LOCKSTEP_HDF5_NUMBER(std::int64_t)
#undef LOCKSTEP_HDF5_NUMBER

}  // namespace lockstep::hdf5
