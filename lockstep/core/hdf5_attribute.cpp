// Attributes of HDF5 objects.
#include <algorithm>
#include <cmath>
#include <type_traits>

#include "lockstep/core/detail/hdf5_call.h"
#include "lockstep/core/hdf5.h"

namespace lockstep::hdf5 {
namespace {

using detail::Call;
using detail::check;
using detail::opened;

struct OpenAttribute {
  std::string name;
  Handle attribute, type, space;
  std::size_t count = 0;
  bool scalar = false;
};

OpenAttribute open_attribute(std::int64_t object, const std::string& object_name, const std::string& attribute) {
  OpenAttribute result;
  result.name = object_name + "@" + attribute;
  if (check(H5Aexists(object, attribute.c_str()), result.name, "an attribute") == 0) {
    throw Error(ErrorKind::file, {result.name, "no such attribute", "one", ""});
  }
  result.attribute = opened(H5Aopen(object, attribute.c_str(), H5P_DEFAULT), result.name, "a readable attribute");
  result.type = opened(H5Aget_type(result.attribute.id()), result.name, "a readable type");
  result.space = opened(H5Aget_space(result.attribute.id()), result.name, "a readable shape");
  result.count =
      static_cast<std::size_t>(check(H5Sget_simple_extent_npoints(result.space.id()), result.name, "a readable shape"));
  result.scalar = H5Sget_simple_extent_type(result.space.id()) == H5S_SCALAR;
  // An attribute's storage is limited to 64 KiB in files of the old format; this is generous for the new one.
  constexpr std::size_t kMostElements = 1 << 24;
  if (result.count > kMostElements) {
    throw Error(ErrorKind::file, {result.name, std::to_string(result.count) + " elements",
                                  "at most " + std::to_string(kMostElements), "check that the file is whole"});
  }
  return result;
}

template <class T>
std::vector<T> read_numbers(const OpenAttribute& open, hid_t memory_type) {
  std::vector<T> values(open.count);
  if (open.count > 0) check(H5Aread(open.attribute.id(), memory_type, values.data()), open.name, "readable numbers");
  return values;
}

template <class T>
AttributeValue one_or_list(std::vector<T> values, bool scalar) {
  if (scalar && values.size() == 1) return std::move(values.front());
  return values;
}

template <class T>
void write_attribute(std::int64_t object, const std::string& name, const std::string& attribute, hid_t type,
                     const Handle& space, const T* values) {
  const std::string full_name = name + "@" + attribute;
  if (check(H5Aexists(object, attribute.c_str()), full_name, "to look for it") > 0) {
    // In place where the new value fits: no table of the file changes, so a crash cannot break one.
    const OpenAttribute old = open_attribute(object, name, attribute);
    if (H5Tis_variable_str(type) == 0 && H5Tequal(old.type.id(), type) > 0 &&
        H5Sextent_equal(old.space.id(), space.id()) > 0) {
      if (values != nullptr) check(H5Awrite(old.attribute.id(), type, values), full_name, "to write the attribute");
      return;
    }
    check(H5Adelete(object, attribute.c_str()), full_name, "to replace it");
  }
  const Handle handle = opened(H5Acreate2(object, attribute.c_str(), type, space.id(), H5P_DEFAULT, H5P_DEFAULT),
                               full_name, "to create the attribute");
  if (values != nullptr) check(H5Awrite(handle.id(), type, values), full_name, "to write the attribute");
}

[[noreturn]] void wrong_type(const std::string& name, const std::optional<AttributeValue>& value,
                             const std::string& expected) {
  constexpr const char* kNames[] = {"a string",           "an integer",        "a number",       "a list of strings",
                                    "a list of integers", "a list of numbers", "a list of bytes"};
  throw Error(ErrorKind::file, {name, value ? kNames[value->index()] : "another type", expected, ""});
}

}  // namespace

bool Object::has_attribute(const std::string& attribute) const {
  const Call call;
  return check(H5Aexists(id(), attribute.c_str()), name_, "to look for attribute " + attribute) > 0;
}

std::vector<std::string> Object::attribute_names() const {
  const Call call;
  std::vector<std::string> names;
  const auto collect = [](hid_t, const char* name, const H5A_info_t*, void* list) -> herr_t {
    static_cast<std::vector<std::string>*>(list)->emplace_back(name);
    return 0;
  };
  check(H5Aiterate2(id(), H5_INDEX_NAME, H5_ITER_INC, nullptr, collect, &names), name_, "readable attributes");
  std::sort(names.begin(), names.end());
  return names;
}

void Object::set_attribute(const std::string& attribute, const AttributeValue& value) {
  const Call call;
  if (has_attribute(attribute) && this->attribute(attribute) == value) return;
  const auto space_of = [&](std::size_t count, bool scalar) {
    const hsize_t extent = count;
    return opened(scalar ? H5Screate(H5S_SCALAR) : H5Screate_simple(1, &extent, nullptr), name_, "a shape");
  };
  const auto write_list = [&]<class T>(const T* values, std::size_t count, bool scalar) {
    const T* data = count == 0 ? nullptr : values;
    if constexpr (std::is_same_v<T, std::string>) {
      std::vector<const char*> pointers;
      for (std::size_t i = 0; i < count; ++i) pointers.push_back(detail::c_text(values[i], name_ + "@" + attribute));
      write_attribute(id(), name_, attribute, detail::string_type().id(), space_of(count, scalar),
                      count == 0 ? nullptr : pointers.data());
    } else {
      write_attribute(id(), name_, attribute, detail::memory_type<T>(), space_of(count, scalar), data);
    }
  };
  std::visit(
      [&]<class V>(const V& v) {
        if constexpr (requires {
                        typename V::value_type;
                        v.front();
                      } &&
                      !std::is_same_v<V, std::string>) {
          write_list(v.data(), v.size(), false);
        } else {
          write_list(&v, 1, true);
        }
      },
      value);
}

std::optional<AttributeValue> Object::attribute(const std::string& attribute) const {
  const Call call;
  const OpenAttribute open = open_attribute(id(), name_, attribute);
  switch (detail::element_type(open.type.id()).kind) {
    case Kind::integer:
      // Bytes stay bytes when an attribute is copied: CF wants flag_values to have its variable's type.
      if (!open.scalar && H5Tget_size(open.type.id()) == 1 && H5Tget_sign(open.type.id()) == H5T_SGN_NONE) {
        return read_numbers<std::uint8_t>(open, H5T_NATIVE_UINT8);
      }
      return one_or_list(read_numbers<std::int64_t>(open, H5T_NATIVE_INT64), open.scalar);
    case Kind::real:
      return one_or_list(read_numbers<double>(open, H5T_NATIVE_DOUBLE), open.scalar);
    case Kind::string:
      return one_or_list(
          detail::read_strings(open.type.id(), open.space.id(), open.count, open.name,
                               [&](hid_t type, void* buffer) { return H5Aread(open.attribute.id(), type, buffer); }),
          open.scalar);
    case Kind::other:
      break;
  }
  return std::nullopt;
}

bool Object::is_value(const std::string& attribute) const {
  const Call call;
  const OpenAttribute open = open_attribute(id(), name_, attribute);
  return detail::element_type(open.type.id()).kind != Kind::other &&
         H5Sget_simple_extent_type(open.space.id()) != H5S_NULL && H5Sget_simple_extent_ndims(open.space.id()) <= 1;
}

void Object::copy_attribute(const Object& from, const std::string& attribute) {
  const Call call;
  const OpenAttribute open = open_attribute(from.id(), from.name_, attribute);
  if (H5Tdetect_class(open.type.id(), H5T_REFERENCE) > 0) {
    throw Error(ErrorKind::file, {open.name, "a reference to an object of its file", "numbers or text",
                                  "remove it: it would lead nowhere in another file"});
  }
  const Handle type = opened(H5Tcopy(open.type.id()), open.name, "a readable type");
  if (has_attribute(attribute)) check(H5Adelete(id(), attribute.c_str()), name_ + "@" + attribute, "to replace it");
  const Handle copy = opened(H5Acreate2(id(), attribute.c_str(), type.id(), open.space.id(), H5P_DEFAULT, H5P_DEFAULT),
                             name_ + "@" + attribute, "to create the attribute");
  if (open.count == 0) return;
  std::vector<std::byte> content(open.count * H5Tget_size(type.id()));
  check(H5Aread(open.attribute.id(), type.id(), content.data()), open.name, "a readable attribute");
  const herr_t written = H5Awrite(copy.id(), type.id(), content.data());
  H5Dvlen_reclaim(type.id(), open.space.id(), H5P_DEFAULT, content.data());
  check(written, name_ + "@" + attribute, "to write the attribute");
}

std::string Object::string_attribute(const std::string& attribute) const {
  const std::vector<std::string> values = string_list_attribute(attribute);
  if (values.size() != 1) {
    throw Error(ErrorKind::file,
                {name_ + "@" + attribute, std::to_string(values.size()) + " strings", "one string", ""});
  }
  return values.front();
}

std::int64_t Object::integer_attribute(const std::string& attribute) const {
  const auto value = this->attribute(attribute);
  if (value) {
    if (const auto* scalar = std::get_if<std::int64_t>(&*value)) return *scalar;
    const auto* list = std::get_if<std::vector<std::int64_t>>(&*value);
    if (list != nullptr && list->size() == 1) return list->front();
    const auto* bytes = std::get_if<std::vector<std::uint8_t>>(&*value);
    if (bytes != nullptr && bytes->size() == 1) return bytes->front();
    // MATLAB writes every plain number as a double.
    const auto* number = std::get_if<double>(&*value);
    const auto* numbers = std::get_if<std::vector<double>>(&*value);
    if (numbers != nullptr && numbers->size() == 1) number = &numbers->front();
    if (number != nullptr && *number == std::trunc(*number) && std::abs(*number) < 0x1p53) {
      return static_cast<std::int64_t>(*number);
    }
  }
  wrong_type(name_ + "@" + attribute, value, "an integer");
}

double Object::number_attribute(const std::string& attribute) const {
  const std::vector<double> values = number_list_attribute(attribute);
  if (values.size() != 1) {
    throw Error(ErrorKind::file,
                {name_ + "@" + attribute, std::to_string(values.size()) + " numbers", "one number", ""});
  }
  return values.front();
}

std::vector<std::string> Object::string_list_attribute(const std::string& attribute) const {
  auto value = this->attribute(attribute);
  if (value) {
    if (auto* scalar = std::get_if<std::string>(&*value)) return {std::move(*scalar)};
    if (auto* list = std::get_if<std::vector<std::string>>(&*value)) return std::move(*list);
  }
  wrong_type(name_ + "@" + attribute, value, "a string");
}

std::vector<double> Object::number_list_attribute(const std::string& attribute) const {
  auto value = this->attribute(attribute);
  if (value) {
    if (const auto* scalar = std::get_if<double>(&*value)) return {*scalar};
    if (const auto* integer = std::get_if<std::int64_t>(&*value)) return {static_cast<double>(*integer)};
    if (auto* list = std::get_if<std::vector<double>>(&*value)) return std::move(*list);
    if (const auto* list = std::get_if<std::vector<std::int64_t>>(&*value)) return {list->begin(), list->end()};
    if (const auto* list = std::get_if<std::vector<std::uint8_t>>(&*value)) return {list->begin(), list->end()};
  }
  wrong_type(name_ + "@" + attribute, value, "a number");
}

}  // namespace lockstep::hdf5
