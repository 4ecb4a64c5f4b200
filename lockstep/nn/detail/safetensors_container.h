// The safetensors container: named tensors in one block of bytes behind a JSON header. What the tensors mean is
// none of its business. Format: the README of github.com/huggingface/safetensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace lockstep::nn::detail {

// A tensor's entry in the header; `data` points into the caller's bytes, and has exactly the size that shape and
// type ask for.
struct Tensor {
  std::string dtype;  // as written: "F32", "BF16", ...
  std::vector<std::uint64_t> shape;
  std::uint64_t begin = 0, end = 0;  // offsets behind the header
  std::span<const std::byte> data;

  std::size_t elements() const;  // product of the shape; known to fit
};

struct Container {
  std::map<std::string, std::string> metadata;
  std::map<std::string, Tensor> tensors;
};

// Checks everything the format promises before anything is used: lengths, JSON, repeated names, types, shapes,
// and offsets without holes, overlap or rest. Throws Error (model), its field beginning with `source`. Reads no
// tensor data and allocates nothing beyond a few times the header.
Container parse_container(std::span<const std::byte> bytes, const std::string& source);

enum class Allowed { finite, finite_and_infinite };

// The tensor's numbers, whatever they are; empty for types other than F16, BF16, F32 and F64.
std::optional<std::vector<double>> numbers_of(const Tensor& tensor);
// The tensor's numbers. Throws Error (model) naming the tensor for types other than F16, BF16, F32 and F64, and
// naming the element for nan and, unless allowed, infinity.
std::vector<double> numbers_of(const std::string& name, const Tensor& tensor, const std::string& source,
                               Allowed allowed = Allowed::finite);

// A container with these tensors, data in `data` fields; begin and end are not read. Widest types first, then by
// name; the header is padded with spaces to a multiple of eight bytes.
std::vector<std::byte> write_container(const Container& container);

}  // namespace lockstep::nn::detail
