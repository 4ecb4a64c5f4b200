// Datasets: reading, writing, hyperslabs and dimension scales.
#include <hdf5.h>
#include <hdf5_hl.h>

#include <algorithm>
#include <array>
#include <string>

#include "lockstep/core/detail/hdf5_call.h"
#include "lockstep/core/detail/links.h"
#include "lockstep/core/hdf5.h"

namespace lockstep::hdf5 {
namespace {

using detail::Call;
using detail::check;
using detail::extents;
using detail::opened;
using detail::product;
using detail::text;

void check_box(const std::string& name, const Shape& shape, const Shape& start, const Shape& count,
               const Shape& stride = {}) {
  bool inside = start.size() == shape.size() && count.size() == shape.size() && !shape.empty() &&
                (stride.empty() || stride.size() == shape.size());
  for (std::size_t i = 0; inside && i < shape.size(); ++i) {
    const std::size_t step = stride.empty() ? 1 : stride[i];
    // The last element read is start + (count - 1) * step.
    inside = step > 0 && start[i] <= shape[i] && (count[i] == 0 || start[i] < shape[i]) &&
             (count[i] == 0 || count[i] - 1 <= (shape[i] - 1 - start[i]) / step);
  }
  if (!inside) {
    throw Error(ErrorKind::invalid_argument, {name,
                                              "start " + text(start) + " count " + text(count) +
                                                  (stride.empty() ? std::string() : " stride " + text(stride)),
                                              "a part of shape " + text(shape), ""});
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

// Names of the files behind a virtual dataset, each once.
std::vector<std::string> files_behind(const std::string& name, std::int64_t dataset) {
  const Handle properties = opened(H5Dget_create_plist(dataset), name, "its properties");
  if (H5Pget_layout(properties.id()) != H5D_VIRTUAL) return {};
  std::size_t sources = 0;
  check(H5Pget_virtual_count(properties.id(), &sources), name, "its sources");
  std::vector<std::string> files;
  for (std::size_t i = 0; i < sources; ++i) {
    const auto length = static_cast<std::size_t>(
        check(H5Pget_virtual_filename(properties.id(), i, nullptr, 0), name, "a source's file"));
    std::string file(length + 1, '\0');
    check(H5Pget_virtual_filename(properties.id(), i, file.data(), file.size()), name, "a source's file");
    file.resize(length);
    if (std::ranges::find(files, file) == files.end()) files.push_back(std::move(file));
  }
  return files;
}

// What a virtual dataset's numbers may fill lies in other files.
std::uintmax_t source_bytes(const std::string& name, std::int64_t dataset) {
  const std::vector<std::string> files = files_behind(name, dataset);
  if (files.empty()) return 0;
  // Beside the file itself, where the name is a link to it.
  const std::filesystem::path folder = behind_links(name.substr(0, name.rfind(":/"))).parent_path();
  std::uintmax_t bytes = 0;
  for (const std::string& file : files) {
    std::error_code missing;
    const std::uintmax_t size = std::filesystem::file_size(folder / file, missing);
    if (!missing) bytes += size;
  }
  return bytes;
}

// A few damaged bytes can claim terabytes. No filter of HDF5's own packs more than 1:1032 (deflate's limit).
void check_claimed_bytes(const std::string& name, std::int64_t dataset, std::size_t bytes) {
  constexpr std::size_t kAlwaysAllowed = 1 << 20, kBestPacking = 1032;
  if (bytes <= kAlwaysAllowed) return;
  const Call call;
  const Handle file = opened(H5Iget_file_id(dataset), name, "its file");
  hsize_t file_bytes = 0;
  check(H5Fget_filesize(file.id(), &file_bytes), name, "the size of its file");
  file_bytes += source_bytes(name, dataset);
  if (bytes / kBestPacking > file_bytes) {
    if (H5Dget_storage_size(dataset) == 0) {
      throw Error(ErrorKind::file, {name, std::to_string(bytes) + " bytes of numbers that were never written",
                                    "numbers in the file", "run again what was to write them"});
    }
    throw Error(ErrorKind::file,
                {name, std::to_string(bytes) + " bytes claimed in a file of " + std::to_string(file_bytes),
                 "a size the file can hold", "check that the file is whole"});
  }
}

// HDF5 tells of a missing filter as of a folder of plugins that it did not find.
void require_filters(std::int64_t dataset, const std::string& name) {
  const Handle properties(H5Dget_create_plist(dataset));
  for (int i = 0; i < H5Pget_nfilters(properties.id()); ++i) {
    unsigned flags = 0, settings = 0;
    std::size_t values = 0;
    std::array<char, 64> words{};
    const H5Z_filter_t filter = H5Pget_filter2(properties.id(), static_cast<unsigned>(i), &flags, &values, nullptr,
                                               words.size(), words.data(), &settings);
    if (filter < 0 || H5Zfilter_avail(filter) > 0) continue;
    throw Error(ErrorKind::file,
                {name, "numbers behind the filter " + std::string(words.data()) + " (" + std::to_string(filter) + ")",
                 "filters that HDF5 has itself", "h5repack -f NONE makes a copy without, where the filter is known"});
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

bool Dataset::is_null() const {
  const Call call;
  return H5Sget_simple_extent_type(opened(H5Dget_space(id()), name_, "a readable shape").id()) == H5S_NULL;
}

void Dataset::transfer(bool writing, void* data, std::int64_t memory, const Shape* start, const Shape* count,
                       const Shape* stride) const {
  const Call call;
  const Handle file_space = opened(H5Dget_space(id()), name_, "a readable shape");
  Handle memory_space(H5S_ALL);
  hid_t file_selection = H5S_ALL;
  if (start != nullptr) {
    const std::vector<hsize_t> first = extents(*start), number = extents(*count);
    const std::vector<hsize_t> step = stride == nullptr ? std::vector<hsize_t>() : extents(*stride);
    check(H5Sselect_hyperslab(file_space.id(), H5S_SELECT_SET, first.data(), step.empty() ? nullptr : step.data(),
                              number.data(), nullptr),
          name_, "a part of it");
    memory_space = opened(H5Screate_simple(static_cast<int>(number.size()), number.data(), nullptr), name_, "memory");
    file_selection = file_space.id();
  }
  const hid_t memory_selection = start == nullptr ? H5S_ALL : memory_space.id();
  if (writing) {
    check(H5Dwrite(id(), memory, memory_selection, file_selection, H5P_DEFAULT, data), name_, "to write it");
  } else {
    const herr_t done = H5Dread(id(), memory, memory_selection, file_selection, H5P_DEFAULT, data);
    if (done < 0) require_filters(id(), name_);
    check(done, name_, "readable data");
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

template <Number T>
void Dataset::read_into(std::span<T> values, const Shape& start, const Shape& count, const Shape& stride) const {
  const Call call;
  check_box(name_, shape(), start, count, stride);
  check_type<T>(name_, type());
  if (values.size() != product(count, name_)) {
    throw Error(ErrorKind::invalid_argument, {name_, "memory for " + std::to_string(values.size()) + " values",
                                              std::to_string(product(count, name_)) + " for count " + text(count), ""});
  }
  if (!values.empty()) {
    transfer(false, values.data(), detail::memory_type<T>(), &start, &count, stride.empty() ? nullptr : &stride);
  }
}

void Dataset::transfer_stored(bool writing, void* data, std::size_t bytes, const Shape& start,
                              const Shape& count) const {
  const Call call;
  const ElementType stored = type();
  if (stored.kind != Kind::integer && stored.kind != Kind::real)
    throw Error(ErrorKind::file, {name_, to_string(stored), "numbers", ""});
  const bool scalar = start.empty() && count.empty() && shape().empty();
  if (!scalar) check_box(name_, shape(), start, count);
  const std::size_t expected = product(count, name_) * stored.bytes;
  if (bytes != expected) {
    throw Error(ErrorKind::invalid_argument, {name_, "memory for " + std::to_string(bytes) + " bytes",
                                              std::to_string(expected) + " for count " + text(count), ""});
  }
  if (bytes == 0 || is_null()) return;
  const Handle type = opened(H5Dget_type(id()), name_, "a readable type");
  transfer(writing, data, type.id(), scalar ? nullptr : &start, scalar ? nullptr : &count);
}

void Dataset::read_stored(std::span<std::byte> values, const Shape& start, const Shape& count) const {
  transfer_stored(false, values.data(), values.size(), start, count);
}

void Dataset::write_stored(std::span<const std::byte> values, const Shape& start, const Shape& count) {
  transfer_stored(true, const_cast<std::byte*>(values.data()), values.size(), start, count);
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

template <Number T>
std::optional<std::uint64_t> Dataset::offset_in_file() const {
  const Call call;
  const Handle properties = opened(H5Dget_create_plist(id()), name_, "its layout");
  const Handle file_type = opened(H5Dget_type(id()), name_, "a readable type");
  if (H5Pget_layout(properties.id()) != H5D_CONTIGUOUS || H5Pget_external_count(properties.id()) != 0) return {};
  if (H5Tequal(file_type.id(), detail::memory_type<T>()) <= 0) return {};
  const haddr_t offset = H5Dget_offset(id());
  const Handle file = opened(H5Iget_file_id(id()), name_, "its file");
  hsize_t file_bytes = 0;
  check(H5Fget_filesize(file.id(), &file_bytes), name_, "the size of its file");
  const std::uint64_t bytes = size() * sizeof(T);
  if (offset == HADDR_UNDEF || bytes > file_bytes || offset > file_bytes - bytes) return {};
  return offset;
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

bool Dataset::is_scale() const {
  const Call call;
  return check(H5DSis_scale(id()), name_, "to ask whether it is a dimension scale") > 0;
}

std::vector<std::string> Dataset::scale_names() const {
  const Call call;
  const auto own_name = [](hid_t object) {
    std::string path(1024, '\0');
    const ssize_t length = H5Iget_name(object, path.data(), path.size());
    path.resize(length < 0 ? 0 : std::min(static_cast<std::size_t>(length), path.size() - 1));
    return path.substr(path.rfind('/') + 1);
  };
  const auto first_scale = [](hid_t, unsigned, hid_t scale, void* found) -> herr_t {
    *static_cast<hid_t*>(found) = scale;
    H5Iinc_ref(scale);
    return 1;
  };
  const std::size_t rank = shape().size();
  std::vector<std::string> names(rank);
  if (is_scale()) {
    if (rank > 0) names[0] = own_name(id());
    return names;
  }
  for (std::size_t dimension = 0; dimension < rank; ++dimension) {
    hid_t found = -1;
    if (H5DSiterate_scales(id(), static_cast<unsigned>(dimension), nullptr, first_scale, &found) < 0) continue;
    const Handle scale(found);
    if (scale.id() >= 0) names[dimension] = own_name(scale.id());
  }
  return names;
}

std::vector<std::vector<Place>> Dataset::scale_places() const {
  const Call call;
  struct Found {
    std::vector<Place> places;
    const std::string& name;
    bool failed = false;
  };
  // C calls it: no exception may leave it.
  const auto note = [](hid_t, unsigned, hid_t scale, void* to) -> herr_t {
    Found& found = *static_cast<Found*>(to);
    try {
      found.places.push_back(detail::place_of(scale, found.name));
    } catch (const std::exception&) {
      found.failed = true;
    }
    return found.failed ? 1 : 0;
  };
  std::vector<std::vector<Place>> places(shape().size());
  if (is_scale()) return places;
  for (std::size_t dimension = 0; dimension < places.size(); ++dimension) {
    Found found{{}, name_};
    check(H5DSiterate_scales(id(), static_cast<unsigned>(dimension), nullptr, note, &found), name_,
          "readable dimension scales");
    if (found.failed)
      throw Error(ErrorKind::file, {name_, "a dimension scale that cannot be read", "one that can", ""});
    places[dimension] = std::move(found.places);
  }
  return places;
}

std::vector<std::string> Dataset::source_files() const {
  const Call call;
  return files_behind(name_, id());
}

#define LOCKSTEP_HDF5_NUMBER(T)                                                                      \
  template std::vector<T> Dataset::read<T>() const;                                                  \
  template std::vector<T> Dataset::read<T>(const Shape&, const Shape&) const;                        \
  template void Dataset::read_into<T>(std::span<T>, const Shape&, const Shape&, const Shape&) const; \
  template std::optional<std::uint64_t> Dataset::offset_in_file<T>() const;                          \
  template void Dataset::write<T>(std::span<const T>);                                               \
  template void Dataset::write<T>(std::span<const T>, const Shape&, const Shape&);
LOCKSTEP_HDF5_NUMBER(float)
LOCKSTEP_HDF5_NUMBER(double)
LOCKSTEP_HDF5_NUMBER(std::uint8_t)
LOCKSTEP_HDF5_NUMBER(std::int32_t)
LOCKSTEP_HDF5_NUMBER(std::int64_t)
#undef LOCKSTEP_HDF5_NUMBER

}  // namespace lockstep::hdf5
