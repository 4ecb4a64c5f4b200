#include "lockstep/nn/detail/safetensors_container.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/nn/detail/refuse.h"
#include "lockstep/nn/detail/safetensors_header.h"

namespace lockstep::nn::detail {
namespace {

static_assert(std::endian::native == std::endian::little, "the format is little-endian");

constexpr std::uint64_t kLongestHeader = 100'000'000;  // the reference reader's limit

// Bits an element takes, for every type the format knows (head of 2026-11), so that one that cannot be a weight is
// refused by its name and not by its size.
struct TypeBits {
  std::string_view name;
  unsigned bits;
};
constexpr TypeBits kTypes[] = {{"BOOL", 8},    {"U8", 8},   {"I8", 8},      {"F8_E5M2", 8}, {"F8_E4M3", 8},
                               {"F8_E8M0", 8}, {"F4", 4},   {"F6_E2M3", 6}, {"F6_E3M2", 6}, {"F8_E4M3FNUZ", 8},
                               {"I16", 16},    {"U16", 16}, {"F16", 16},    {"BF16", 16},   {"F8_E5M2FNUZ", 8},
                               {"I32", 32},    {"U32", 32}, {"F32", 32},    {"I64", 64},    {"U64", 64},
                               {"F64", 64},    {"C64", 64}};

unsigned bits_of(std::string_view dtype) {
  for (const TypeBits& type : kTypes) {
    if (type.name == dtype) return type.bits;
  }
  return 0;
}

// Bytes of the tensor's data by its shape, overflow checked.
std::uint64_t bytes_by_shape(const Tensor& tensor, const std::string& field) {
  const unsigned bits = bits_of(tensor.dtype);
  if (bits == 0) refuse(field, "dtype \"" + tensor.dtype + "\"", "F16, BF16, F32 or F64", "save it in one of these");
  std::uint64_t total = bits;
  for (const std::uint64_t extent : tensor.shape) {
    if (extent != 0 && total > std::numeric_limits<std::uint64_t>::max() / extent) {
      refuse(field, "shape " + shape_text(tensor.shape), "a size below 2^64 bits", "check that the file is whole");
    }
    total *= extent;
  }
  if (total % 8 != 0) refuse(field, std::to_string(total) + " bits", "whole bytes");
  return total / 8;
}

double half_to_double(std::uint16_t half) {
  const int exponent = (half >> 10) & 31;
  const double mantissa = half & 1023;
  const double sign = (half & 0x8000) != 0 ? -1 : 1;
  if (exponent == 31) return mantissa == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  return sign * (exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25));
}

template <class Stored, class Convert>
std::vector<double> convert(std::span<const std::byte> data, Convert to_double) {
  std::vector<double> values(data.size() / sizeof(Stored));
  for (std::size_t i = 0; i < values.size(); ++i) {
    Stored stored;
    std::memcpy(&stored, data.data() + i * sizeof stored, sizeof stored);  // files promise no alignment
    values[i] = to_double(stored);
  }
  return values;
}

std::string position(std::size_t element, const std::vector<std::uint64_t>& shape) {
  std::vector<std::uint64_t> index(shape.size());
  for (std::size_t i = shape.size(); i-- > 0;) {
    index[i] = element % shape[i];
    element /= shape[i];
  }
  return shape_text(index);
}

}  // namespace

std::size_t Tensor::elements() const {
  std::size_t count = 1;
  for (const std::uint64_t extent : shape) count *= extent;
  return count;
}

Container parse_container(std::span<const std::byte> bytes, const std::string& source) {
  const std::string whole = "check that the file is whole and in safetensors format";
  std::uint64_t header_length = 0;
  if (bytes.size() < sizeof header_length) {
    refuse(source, "a file of " + std::to_string(bytes.size()) + " bytes", "at least 8, the length of the header",
           whole);
  }
  std::memcpy(&header_length, bytes.data(), sizeof header_length);
  const std::span<const std::byte> rest = bytes.subspan(sizeof header_length);
  if (header_length > kLongestHeader) {
    refuse(source + ": header", "a length of " + std::to_string(header_length) + " bytes",
           "at most " + std::to_string(kLongestHeader), whole);
  }
  if (header_length > rest.size()) {
    refuse(source + ": header", "a length of " + std::to_string(header_length) + " bytes",
           "at most the " + std::to_string(rest.size()) + " that follow", whole);
  }
  const std::string_view json(reinterpret_cast<const char*>(rest.data()), header_length);
  if (json.empty() || json.front() != '{') refuse(source + ": header", "no '{' at its start", "a JSON object", whole);
  const std::span<const std::byte> data = rest.subspan(header_length);

  Container container = parse_header(json, source);
  std::vector<std::pair<const std::string, Tensor>*> in_file_order;
  for (auto& entry : container.tensors) in_file_order.push_back(&entry);
  std::sort(in_file_order.begin(), in_file_order.end(), [](const auto* a, const auto* b) {
    return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
  });
  std::uint64_t next = 0;
  for (auto* entry : in_file_order) {
    Tensor& tensor = entry->second;
    const std::string field = source + ": tensor \"" + entry->first + "\"";
    const std::string offsets =
        "data_offsets [" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + "]";
    if (tensor.end < tensor.begin) refuse(field, offsets, "an end not before the beginning", whole);
    if (tensor.end > data.size()) {
      refuse(field, offsets, "an end within the " + std::to_string(data.size()) + " bytes of data", whole);
    }
    const std::uint64_t size = bytes_by_shape(tensor, field);
    if (tensor.end - tensor.begin != size) {
      refuse(field, offsets, std::to_string(size) + " bytes for " + tensor.dtype + " " + shape_text(tensor.shape),
             whole);
    }
    if (tensor.begin != next) {
      refuse(field, offsets,
             "a beginning at " + std::to_string(next) + ", where the tensor before it ends (no overlap, no hole)",
             whole);
    }
    next = tensor.end;
    tensor.data = data.subspan(tensor.begin, size);
  }
  if (next != data.size()) {
    refuse(source, std::to_string(data.size() - next) + " bytes behind the last tensor", "none", whole);
  }
  return container;
}

std::optional<std::vector<double>> numbers_of(const Tensor& tensor) {
  if (tensor.dtype == "F32") {
    return convert<float>(tensor.data, [](float value) { return static_cast<double>(value); });
  }
  if (tensor.dtype == "F64") return convert<double>(tensor.data, [](double value) { return value; });
  if (tensor.dtype == "F16") return convert<std::uint16_t>(tensor.data, half_to_double);
  if (tensor.dtype != "BF16") return {};
  return convert<std::uint16_t>(tensor.data, [](std::uint16_t value) {
    return static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value) << 16));
  });
}

std::vector<double> numbers_of(const std::string& name, const Tensor& tensor, const std::string& source,
                               Allowed allowed) {
  const std::string field = source + ": tensor \"" + name + "\"";
  std::optional<std::vector<double>> numbers = numbers_of(tensor);
  if (!numbers) refuse(field, "dtype \"" + tensor.dtype + "\"", "F16, BF16, F32 or F64", "save it in one of these");
  std::vector<double> values = std::move(*numbers);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool usable = allowed == Allowed::finite ? std::isfinite(values[i]) : !std::isnan(values[i]);
    if (!usable) {
      refuse(field + " element " + position(i, tensor.shape), std::isnan(values[i]) ? "nan" : "infinity",
             "a finite number", "train or export the net again");
    }
  }
  return values;
}

std::vector<std::byte> write_container(const Container& container) {
  std::vector<const std::pair<const std::string, Tensor>*> order;
  for (const auto& entry : container.tensors) order.push_back(&entry);
  std::stable_sort(order.begin(), order.end(), [](const auto* a, const auto* b) {
    return bits_of(a->second.dtype) > bits_of(b->second.dtype);  // the map is sorted by name already
  });
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!container.metadata.empty()) header["__metadata__"] = container.metadata;
  std::uint64_t next = 0;
  for (const auto* entry : order) {
    const Tensor& tensor = entry->second;
    header[entry->first] = {
        {"dtype", tensor.dtype}, {"shape", tensor.shape}, {"data_offsets", {next, next + tensor.data.size()}}};
    next += tensor.data.size();
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    refuse("metadata", "text that is not UTF-8", "UTF-8", "change the model's names and metadata");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');
  const std::uint64_t length = text.size();
  std::vector<std::byte> bytes(sizeof length + text.size() + next);
  std::memcpy(bytes.data(), &length, sizeof length);
  std::memcpy(bytes.data() + sizeof length, text.data(), text.size());
  std::byte* place = bytes.data() + sizeof length + text.size();
  for (const auto* entry : order) place = std::copy(entry->second.data.begin(), entry->second.data.end(), place);
  return bytes;
}

}  // namespace lockstep::nn::detail
