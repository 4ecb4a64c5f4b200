#include "lockstep/core/hdf5.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <limits>
#include <string_view>

#include "lockstep/core/detail/hdf5_call.h"
#include "lockstep/core/hdf5_closing.h"
#include "lockstep/core/text.h"

namespace lockstep::hdf5 {
namespace {

using detail::Call;
using detail::check;
using detail::creation_properties;
using detail::extents;
using detail::opened;
using detail::product;
using detail::text;

std::string child(const std::string& parent, const std::string& member) {
  return parent + (parent.back() == '/' ? "" : "/") + member;
}

}  // namespace

namespace detail {

std::string text(const Shape& shape) {
  std::string result = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) result += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return result + "]";
}

std::size_t product(const Shape& shape, const std::string& object) {
  std::size_t total = 1;
  for (const std::size_t extent : shape) {
    if (extent != 0 && total > std::numeric_limits<std::size_t>::max() / 16 / extent) {
      throw Error(ErrorKind::file, {object, "shape " + text(shape), "a size this machine can address", ""});
    }
    total *= extent;
  }
  return total;
}

const char* c_text(const std::string& value, const std::string& object) {
  if (value.find('\0') != std::string::npos) {
    throw Error(ErrorKind::invalid_argument, {object, "a text with a zero byte", "text without", ""});
  }
  return value.c_str();
}

std::recursive_mutex& call_mutex() {
  static std::recursive_mutex mutex;
  return mutex;
}

std::string cause() {
  std::string description;
  const auto innermost = [](unsigned, const H5E_error2_t* entry, void* result) -> herr_t {
    if (entry->desc != nullptr && *entry->desc != '\0') *static_cast<std::string*>(result) = entry->desc;
    return 1;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, innermost, &description);
  // "file write failed: time = ..., errno = 28, error message = 'No space left on device', buf = ..."
  static constexpr std::string_view kSystem = "error message = '";
  if (const std::size_t at = description.find(kSystem); at != description.npos) {
    const std::size_t first = at + kSystem.size(), end = description.find('\'', first);
    description = description.substr(0, description.find(": ")) + ": " + description.substr(first, end - first);
  }
  // "truncated file: eof = 4161, sblock->base_addr = 0, stored_eof = 20808"
  unsigned long long there = 0, base = 0, all = 0;
  if (std::sscanf(description.c_str(), "truncated file: eof = %llu, sblock->base_addr = %llu, stored_eof = %llu",
                  &there, &base, &all) == 3) {
    return "a truncated file, " + grouped_digits(there) + " of " + grouped_digits(all) + " bytes";
  }
  return description.empty() ? "a failure HDF5 does not explain" : description;
}

ElementType element_type(hid_t type) {
  const std::size_t bytes = H5Tget_size(type);
  switch (H5Tget_class(type)) {
    case H5T_INTEGER:
      return {Kind::integer, bytes, H5Tget_sign(type) == H5T_SGN_NONE};
    case H5T_FLOAT:
      return {Kind::real, bytes};
    case H5T_STRING:
      return {Kind::string, bytes};
    default:
      return {Kind::other, bytes};
  }
}

Handle string_type() {
  Handle type(H5Tcopy(H5T_C_S1));
  H5Tset_size(type.id(), H5T_VARIABLE);
  H5Tset_cset(type.id(), H5T_CSET_UTF8);
  return type;
}

Handle creation_properties(hid_t kind, const std::string& object) {
  Handle properties = opened(H5Pcreate(kind), object, "a property list");
  check(H5Pset_obj_track_times(properties.id(), false), object, "a property list");
  return properties;
}

}  // namespace detail

std::string to_string(ElementType type) {
  switch (type.kind) {
    case Kind::integer:
      return (type.is_unsigned ? "uint" : "int") + std::to_string(8 * type.bytes);
    case Kind::real:
      return "float" + std::to_string(8 * type.bytes);
    case Kind::string:
      return "string";
    case Kind::other:
      break;
  }
  return "another type";
}

namespace {
std::atomic<bool> some_closing_failed = false;
}
bool closing_failed() noexcept { return some_closing_failed; }

void Handle::close() noexcept {
  if (id_ < 0) return;
  const Call call;
  if (H5Iis_valid(id_) > 0 && H5Idec_ref(id_) < 0) some_closing_failed = true;
  id_ = -1;
}

namespace {

std::string file_name(std::int64_t object, const std::string& name) {
  std::string text(static_cast<std::size_t>(check(H5Fget_name(object, nullptr, 0), name, "its file")), '\0');
  check(H5Fget_name(object, text.data(), text.size() + 1), name, "its file");
  return text;
}

}  // namespace

Place detail::place_of(hid_t object, const std::string& name) {
  hobj_ref_t address = 0;
  check(H5Rcreate(&address, object, ".", H5R_OBJECT, -1), name, "where it lies");
  return {file_name(object, name), address};
}

Place Object::place() const {
  const Call call;
  return detail::place_of(id(), name_);
}

// ---- groups

bool Group::has(const std::string& member) const {
  const Call call;
  // "a/b": HDF5 looks for no link below one that is not there or no group.
  for (std::size_t slash = member.find('/', 1); slash != std::string::npos; slash = member.find('/', slash + 1)) {
    const std::string above = member.substr(0, slash);
    if (H5Lexists(id(), above.c_str(), H5P_DEFAULT) <= 0) return false;
    const Handle group(H5Gopen2(id(), above.c_str(), H5P_DEFAULT));
    if (group.id() < 0) return false;
  }
  return check(H5Lexists(id(), member.c_str(), H5P_DEFAULT), name_, "to look for " + member) > 0;
}

std::vector<Member> Group::members() const {
  const Call call;
  std::vector<Member> all;
  const auto collect = [](hid_t, const char* name, const H5L_info_t* link, void* list) -> herr_t {
    const MemberKind kind = link->type == H5L_TYPE_HARD       ? MemberKind::dataset  // or what else, is seen below
                            : link->type == H5L_TYPE_SOFT     ? MemberKind::soft_link
                            : link->type == H5L_TYPE_EXTERNAL ? MemberKind::external_link
                                                              : MemberKind::other;
    static_cast<std::vector<Member>*>(list)->push_back({name, kind});
    return 0;
  };
  check(H5Literate(id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &all), name_, "readable members");
  for (Member& member : all) {
    if (member.kind != MemberKind::dataset) continue;
    const Handle object = opened(H5Oopen(id(), member.name.c_str(), H5P_DEFAULT), child(name_, member.name),
                                 "a readable dataset or group");
    const H5I_type_t type = H5Iget_type(object.id());
    if (type != H5I_DATASET) member.kind = type == H5I_GROUP ? MemberKind::group : MemberKind::type;
  }
  std::ranges::sort(all, {}, &Member::name);
  return all;
}

// What is the file's own and cannot be opened is damaged, and not to be left out. A link may lead nowhere.
std::vector<std::string> Group::leading_to(int wanted_type) const {
  const Call call;
  std::vector<std::string> result;
  for (Member& member : members()) {
    const Handle object(H5Oopen(id(), member.name.c_str(), H5P_DEFAULT));
    if (object.id() >= 0 && H5Iget_type(object.id()) == wanted_type) result.push_back(std::move(member.name));
  }
  return result;
}

std::vector<std::string> Group::groups() const { return leading_to(H5I_GROUP); }
std::vector<std::string> Group::datasets() const { return leading_to(H5I_DATASET); }

Group Group::group(const std::string& member) const {
  const Call call;
  if (!has(member)) throw Error(ErrorKind::file, {child(name_, member), "nothing of that name", "a group", ""});
  return Group(opened(H5Gopen2(id(), member.c_str(), H5P_DEFAULT), child(name_, member), "a group"),
               child(name_, member));
}

Group Group::create_group(const std::string& member) {
  const Call call;
  const std::string full_name = child(name_, member);
  const Handle properties = creation_properties(H5P_GROUP_CREATE, full_name);
  return Group(opened(H5Gcreate2(id(), member.c_str(), H5P_DEFAULT, properties.id(), H5P_DEFAULT), full_name,
                      "to create the group"),
               full_name);
}

void Group::remove(const std::string& member) {
  const Call call;
  check(H5Ldelete(id(), member.c_str(), H5P_DEFAULT), child(name_, member), "to remove it");
}

void Group::link(const std::string& member, const Object& to) {
  const Call call;
  check(H5Olink(to.id(), id(), member.c_str(), H5P_DEFAULT, H5P_DEFAULT), child(name_, member),
        "to link it to " + to.name());
}

namespace {

// The value of a soft or external link, and its type.
std::pair<H5L_type_t, std::vector<char>> link_value(std::int64_t group, const std::string& member,
                                                    const std::string& full_name) {
  H5L_info_t about;
  check(H5Lget_info(group, member.c_str(), &about, H5P_DEFAULT), full_name, "a link");
  std::vector<char> value(about.type == H5L_TYPE_HARD ? 0 : about.u.val_size + 1);
  if (!value.empty())
    check(H5Lget_val(group, member.c_str(), value.data(), value.size(), H5P_DEFAULT), full_name, "a link");
  return {about.type, std::move(value)};
}

struct ExternalTarget {
  const char* file = nullptr;
  const char* object = nullptr;
};

ExternalTarget external_target(const std::vector<char>& value, const std::string& full_name) {
  ExternalTarget target;
  unsigned flags = 0;
  check(H5Lunpack_elink_val(value.data(), value.size() - 1, &flags, &target.file, &target.object), full_name,
        "an external link");
  return target;
}

}  // namespace

std::string Group::linked_file(const std::string& member) const {
  const Call call;
  const std::string full_name = child(name_, member);
  const auto [type, value] = link_value(id(), member, full_name);
  if (type != H5L_TYPE_EXTERNAL) throw Error(ErrorKind::file, {full_name, "no external link", "one", ""});
  return external_target(value, full_name).file;
}

void Group::copy_link(const Group& from, const std::string& member) {
  const Call call;
  const std::string full_name = child(from.name_, member);
  const auto [type, value] = link_value(from.id(), member, full_name);
  if (type == H5L_TYPE_SOFT) {
    check(H5Lcreate_soft(value.data(), id(), member.c_str(), H5P_DEFAULT, H5P_DEFAULT), child(name_, member),
          "to create the link");
  } else if (type == H5L_TYPE_EXTERNAL) {
    const ExternalTarget target = external_target(value, full_name);
    check(H5Lcreate_external(target.file, target.object, id(), member.c_str(), H5P_DEFAULT, H5P_DEFAULT),
          child(name_, member), "to create the link");
  } else {
    throw Error(ErrorKind::file, {full_name, "no link that names another place", "a soft or external link", ""});
  }
}

Dataset Group::dataset(const std::string& member) const {
  const Call call;
  if (!has(member)) throw Error(ErrorKind::file, {child(name_, member), "nothing of that name", "a dataset", ""});
  const Handle object(H5Oopen(id(), member.c_str(), H5P_DEFAULT));
  if (object.id() >= 0 && H5Iget_type(object.id()) == H5I_GROUP)
    throw Error(ErrorKind::file, {child(name_, member), "a group", "a dataset", "name one inside it"});
  return Dataset(opened(H5Dopen2(id(), member.c_str(), H5P_DEFAULT), child(name_, member), "a dataset"),
                 child(name_, member));
}

bool Group::holds(const Dataset& dataset) const {
  const Call call;
  const Handle properties = opened(H5Dget_create_plist(dataset.id()), dataset.name_, "its properties");
  return file_name(dataset.id(), dataset.name_) == file_name(id(), name_) &&
         H5Pget_layout(properties.id()) != H5D_VIRTUAL && H5Pget_external_count(properties.id()) == 0;
}

Dataset Group::create_like(const std::string& member, const Dataset& pattern, const DatasetOptions& options) {
  const Call call;
  const std::int64_t stored = pattern.id();
  const Handle type = opened(H5Tcopy(opened(H5Dget_type(stored), pattern.name(), "a readable type").id()),
                             pattern.name(), "a readable type");
  if (!pattern.is_null()) return create(member, type.id(), pattern.shape(), options);
  const std::string full_name = child(name_, member);
  const Handle space = opened(H5Screate(H5S_NULL), full_name, "a shape");
  const Handle properties = creation_properties(H5P_DATASET_CREATE, full_name);
  return Dataset(
      opened(H5Dcreate2(id(), member.c_str(), type.id(), space.id(), H5P_DEFAULT, properties.id(), H5P_DEFAULT),
             full_name, "to create a dataset of null shape"),
      full_name);
}

Dataset Group::create(const std::string& member, std::int64_t type, const Shape& shape, const DatasetOptions& options) {
  const Call call;
  const std::string full_name = child(name_, member);
  const std::string expected = "to create a dataset of shape " + text(shape);
  product(shape, full_name);
  const std::vector<hsize_t> sizes = extents(shape);
  const Handle space = opened(
      shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr),
      full_name, expected);
  const Handle properties = creation_properties(H5P_DATASET_CREATE, full_name);
  const H5D_alloc_time_t when = options.deflate > 0 ? H5D_ALLOC_TIME_INCR : H5D_ALLOC_TIME_EARLY;
  check(H5Pset_alloc_time(properties.id(), when), full_name, expected);
  if (options.fill) {
    check(H5Pset_fill_value(properties.id(), H5T_NATIVE_DOUBLE, &*options.fill), full_name, expected);
    check(H5Pset_fill_time(properties.id(), H5D_FILL_TIME_ALLOC), full_name, expected);
  } else {
    check(H5Pset_fill_time(properties.id(), H5D_FILL_TIME_NEVER), full_name, expected);
  }
  if (!options.chunk.empty()) {
    const std::vector<hsize_t> chunk = extents(options.chunk);
    check(H5Pset_chunk(properties.id(), static_cast<int>(chunk.size()), chunk.data()), full_name, expected);
    if (options.deflate > 0) {
      check(H5Pset_shuffle(properties.id()), full_name, expected);
      check(H5Pset_deflate(properties.id(), static_cast<unsigned>(options.deflate)), full_name, expected);
    }
  }
  return Dataset(opened(H5Dcreate2(id(), member.c_str(), type, space.id(), H5P_DEFAULT, properties.id(), H5P_DEFAULT),
                        full_name, expected),
                 full_name);
}

template <Number T>
Dataset Group::create_dataset(const std::string& member, const Shape& shape, const DatasetOptions& options) {
  const Call call;
  return create(member, detail::file_type<T>(), shape, options);
}

template <Number T>
Dataset Group::create_virtual(const std::string& member, const Shape& shape, std::span<const VirtualSource> sources,
                              T fill) {
  const Call call;
  const std::string full_name = child(name_, member);
  const std::string expected = "to create a virtual dataset of shape " + text(shape);
  const auto space_of = [&](const Shape& sizes) {
    const std::vector<hsize_t> dims = extents(sizes);
    return opened(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), full_name, expected);
  };
  const Handle space = space_of(shape);
  const Handle properties = creation_properties(H5P_DATASET_CREATE, full_name);
  check(H5Pset_fill_value(properties.id(), detail::memory_type<T>(), &fill), full_name, expected);
  for (const VirtualSource& source : sources) {
    const std::vector<hsize_t> start = extents(source.start), count = extents(source.shape);
    const Handle source_space = space_of(source.shape);
    check(H5Sselect_hyperslab(space.id(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr), full_name,
          expected);
    check(H5Pset_virtual(properties.id(), space.id(), detail::c_text(source.file, full_name),
                         detail::c_text(source.dataset, full_name), source_space.id()),
          full_name, expected);
  }
  check(H5Sselect_all(space.id()), full_name, expected);
  return Dataset(opened(H5Dcreate2(id(), member.c_str(), detail::file_type<T>(), space.id(), H5P_DEFAULT,
                                   properties.id(), H5P_DEFAULT),
                        full_name, expected),
                 full_name);
}

Dataset Group::create_strings(const std::string& member, std::span<const std::string> values) {
  return create_strings(member, values, {values.size()});
}

Dataset Group::create_strings(const std::string& member, std::span<const std::string> values, const Shape& shape) {
  const Call call;
  const Handle type = detail::string_type();
  // Strings of variable length are pointers: they need their fill value.
  const std::string full_name = child(name_, member);
  if (values.size() != product(shape, full_name)) {
    throw Error(ErrorKind::invalid_argument, {full_name, std::to_string(values.size()) + " strings",
                                              "as many as shape " + text(shape) + " has", ""});
  }
  const std::vector<hsize_t> sizes = extents(shape);
  const Handle space = opened(
      shape.empty() ? H5Screate(H5S_SCALAR) : H5Screate_simple(static_cast<int>(sizes.size()), sizes.data(), nullptr),
      full_name, "a shape");
  const Handle properties = creation_properties(H5P_DATASET_CREATE, full_name);
  Dataset dataset(
      opened(H5Dcreate2(id(), member.c_str(), type.id(), space.id(), H5P_DEFAULT, properties.id(), H5P_DEFAULT),
             full_name, "to create a list of strings"),
      full_name);
  std::vector<const char*> pointers;
  for (const std::string& value : values) pointers.push_back(detail::c_text(value, full_name));
  if (values.empty()) return dataset;
  // Where strings become what the file holds of them: HDF5 would fill two buffers of a megabyte with zeros, whose pages
  // take as long as the rest of a small file.
  constexpr std::size_t kStored = 16, kLeast = 4096, kMost = std::size_t{1} << 20;  // bytes: of a string, of a buffer
  const Handle transfer = opened(H5Pcreate(H5P_DATASET_XFER), full_name, "a property list");
  const std::size_t bytes = std::clamp(values.size() * kStored, kLeast, kMost);
  check(H5Pset_buffer(transfer.id(), bytes, nullptr, nullptr), full_name, "a smaller buffer");
  check(H5Dwrite(dataset.id(), type.id(), H5S_ALL, H5S_ALL, transfer.id(), pointers.data()), full_name, "to write it");
  return dataset;
}

#define LOCKSTEP_HDF5_NUMBER(T)                                                                       \
  template Dataset Group::create_dataset<T>(const std::string&, const Shape&, const DatasetOptions&); \
  template Dataset Group::create_virtual<T>(const std::string&, const Shape&, std::span<const VirtualSource>, T);
LOCKSTEP_HDF5_NUMBER(float)
LOCKSTEP_HDF5_NUMBER(double)
LOCKSTEP_HDF5_NUMBER(std::uint8_t)
LOCKSTEP_HDF5_NUMBER(std::int32_t)
LOCKSTEP_HDF5_NUMBER(std::int64_t)
#undef LOCKSTEP_HDF5_NUMBER

}  // namespace lockstep::hdf5
