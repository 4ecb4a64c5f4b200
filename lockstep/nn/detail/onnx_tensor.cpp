#include "lockstep/nn/detail/onnx_tensor.h"

#include <charconv>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <span>

#include "lockstep/core/error.h"
#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_steps.h"
#include "lockstep/nn/detail/refuse.h"
#include "lockstep/nn/detail/safetensors_container.h"

namespace lockstep::nn::detail {
namespace {

// What safetensors calls the type, and how many bytes one number takes.
struct Stored {
  const char* name;
  std::size_t bytes;
  bool integral;
  WeightType type;
};

Stored stored_as(int data_type, const std::string& name) {
  switch (data_type) {
    case onnx::TensorProto::FLOAT:
      return {"F32", 4, false, WeightType::f32};
    case onnx::TensorProto::DOUBLE:
      return {"F64", 8, false, WeightType::f64};
    case onnx::TensorProto::FLOAT16:
      return {"F16", 2, false, WeightType::f16};
    case onnx::TensorProto::BFLOAT16:
      return {"BF16", 2, false, WeightType::bf16};
    case onnx::TensorProto::INT64:
      return {"I64", 8, true, WeightType::f64};
    case onnx::TensorProto::INT32:
      return {"I32", 4, true, WeightType::f64};
    case onnx::TensorProto::BOOL:
    case onnx::TensorProto::UINT8:
      return {"U8", 1, true, WeightType::f64};
    case onnx::TensorProto::INT8:
      return {"I8", 1, true, WeightType::f64};
    case onnx::TensorProto::INT16:
      return {"I16", 2, true, WeightType::f64};
    case onnx::TensorProto::UINT16:
      return {"U16", 2, true, WeightType::f64};
    case onnx::TensorProto::UINT32:
      return {"U32", 4, true, WeightType::f64};
    case onnx::TensorProto::UINT64:
      return {"U64", 8, true, WeightType::f64};
    default:
      break;
  }
  refuse(name, "numbers of type " + type_name(data_type),
         "float16, bfloat16, float32, float64, integers or truth values",
         "export the model in float32, and not quantised");
}

std::size_t element_count(const onnx::TensorProto& tensor, const std::string& name) {
  std::size_t count = 1;  // without extents of 0
  bool empty = false;
  for (const std::int64_t extent : tensor.dims()) {
    if (extent < 0) refuse(name, "an extent of " + std::to_string(extent), "extents of 0 or more");
    empty = empty || extent == 0;
    if (extent == 0) continue;
    if (count > std::numeric_limits<std::size_t>::max() / 16 / static_cast<std::size_t>(extent)) {
      refuse(name, "a shape of more numbers than memory holds", "a shape that fits its data");
    }
    count *= static_cast<std::size_t>(extent);
  }
  // No data stand for its other extents, along which operators go nevertheless.
  if (empty && count > kMostFeatures) refuse(name, "a shape of no numbers with large extents", "at most 2^20 beside 0");
  return empty ? 0 : count;
}

std::size_t external_number(const std::string& text, const std::string& name, const char* key) {
  std::size_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    refuse(name + "." + key, '"' + text + '"', "a whole number of bytes");
  }
  return value;
}

// Only a regular file in the model's own folder is opened: no way up, no absolute path, no link (these were
// CVE-2022-25882, CVE-2024-27318 and CVE-2026-27489 in other readers). Nothing is allocated before the file is known to
// be long enough.
std::vector<std::byte> external_bytes(const onnx::TensorProto& tensor, const std::string& name,
                                      const std::filesystem::path& model_path, std::size_t bytes) {
  std::string location, offset = "0", length;
  for (const auto& entry : tensor.external_data()) {
    if (entry.key() == "location") location = entry.value();
    if (entry.key() == "offset") offset = entry.value();
    if (entry.key() == "length") length = entry.value();
  }
  const std::filesystem::path file_name(location);
  if (location.empty() || file_name.filename() != file_name || location == "." || location == "..") {
    refuse(name + ".location", '"' + location + '"', "the name of a file in the model's own folder",
           "put both files into one folder, or export the weights into the model's file");
  }
  const std::filesystem::path path = model_path.parent_path() / file_name;
  std::error_code error;
  if (!std::filesystem::is_regular_file(std::filesystem::symlink_status(path, error))) {
    throw Error(ErrorKind::file,
                {path.string(), "no regular file", "the weights that " + model_path.string() + " keeps there",
                 "copy the file beside the model"});
  }
  const std::size_t begin = external_number(offset, name, "offset");
  if (!length.empty() && external_number(length, name, "length") != bytes) {
    refuse(name + ".length", length + " bytes", std::to_string(bytes) + ", as shape and type ask for");
  }
  const std::uintmax_t size = std::filesystem::file_size(path, error);
  if (error || begin > size || bytes > size - begin) {
    refuse(name, "bytes " + std::to_string(begin) + " to " + std::to_string(begin + bytes) + " of " + path.string(),
           "a range within its " + std::to_string(size) + " bytes");
  }
  std::vector<std::byte> data(bytes);
  std::ifstream file(path, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(begin));
  if (!file.read(reinterpret_cast<char*>(data.data()), static_cast<std::streamsize>(bytes))) {
    throw Error(ErrorKind::file, {path.string(), "an error while reading", "the weights of the model", ""});
  }
  return data;
}

template <class T>
std::vector<double> integers(std::span<const std::byte> data) {
  std::vector<double> values(data.size() / sizeof(T));
  for (std::size_t i = 0; i < values.size(); ++i) {
    T value;
    std::memcpy(&value, data.data() + i * sizeof(T), sizeof(T));
    values[i] = static_cast<double>(value);
  }
  return values;
}

std::vector<double> from_bytes(std::span<const std::byte> data, const Stored& stored, std::size_t count,
                               const std::string& name) {
  if (data.size() != count * stored.bytes) {
    refuse(name, std::to_string(data.size()) + " bytes",
           std::to_string(count * stored.bytes) + ", as its shape asks for");
  }
  if (stored.integral) {
    const bool plus = stored.name[0] == 'U';
    if (stored.bytes == 1) return plus ? integers<std::uint8_t>(data) : integers<std::int8_t>(data);
    if (stored.bytes == 2) return plus ? integers<std::uint16_t>(data) : integers<std::int16_t>(data);
    if (stored.bytes == 4) return plus ? integers<std::uint32_t>(data) : integers<std::int32_t>(data);
    return plus ? integers<std::uint64_t>(data) : integers<std::int64_t>(data);
  }
  const Tensor tensor{stored.name, {count}, 0, data.size(), data};
  return numbers_of(tensor).value();
}

// Numbers in the fields for single types; 16-bit floats are stored bit by bit in the int32 field.
std::vector<double> from_fields(const onnx::TensorProto& tensor, const Stored& stored, std::size_t count,
                                const std::string& name) {
  std::vector<double> values;
  switch (tensor.data_type()) {
    case onnx::TensorProto::FLOAT:
      values.assign(tensor.float_data().begin(), tensor.float_data().end());
      break;
    case onnx::TensorProto::DOUBLE:
      values.assign(tensor.double_data().begin(), tensor.double_data().end());
      break;
    case onnx::TensorProto::INT64:
      values.assign(tensor.int64_data().begin(), tensor.int64_data().end());
      break;
    case onnx::TensorProto::INT32:
    case onnx::TensorProto::BOOL:
    case onnx::TensorProto::INT8:
    case onnx::TensorProto::UINT8:
    case onnx::TensorProto::INT16:
    case onnx::TensorProto::UINT16:
      values.assign(tensor.int32_data().begin(), tensor.int32_data().end());
      break;
    case onnx::TensorProto::UINT32:
    case onnx::TensorProto::UINT64:
      values.assign(tensor.uint64_data().begin(), tensor.uint64_data().end());
      break;
    default: {
      std::vector<std::uint16_t> bits(tensor.int32_data().begin(), tensor.int32_data().end());
      return from_bytes(std::as_bytes(std::span(bits)), stored, count, name);
    }
  }
  if (values.size() != count) {
    refuse(name, std::to_string(values.size()) + " numbers", std::to_string(count) + ", as its shape asks for");
  }
  return values;
}

}  // namespace

std::optional<std::size_t> OnnxTensor::first_nan() const {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isnan(values[i])) return i;
  }
  return {};
}

OnnxTensor read_tensor(const onnx::TensorProto& tensor, const std::string& name,
                       const std::filesystem::path& model_path) {
  const Stored stored = stored_as(tensor.data_type(), name);
  const std::size_t count = element_count(tensor, name);
  OnnxTensor result{{tensor.dims().begin(), tensor.dims().end()}, {}, stored.type, false, stored.integral};
  if (tensor.data_location() == onnx::TensorProto::EXTERNAL) {
    result.values = from_bytes(external_bytes(tensor, name, model_path, count * stored.bytes), stored, count, name);
  } else if (tensor.has_raw_data()) {
    const std::string& raw = tensor.raw_data();
    result.values = from_bytes(std::as_bytes(std::span(raw.data(), raw.size())), stored, count, name);
  } else {
    result.values = from_fields(tensor, stored, count, name);
  }
  return result;
}

}  // namespace lockstep::nn::detail
