// For tests: safetensors files made by hand, right and wrong.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace lockstep::nn::testing {

// The length of the header, the header, the data.
inline std::vector<std::byte> safetensors_bytes(const std::string& header, const std::string& data = {},
                                                std::uint64_t claimed_length = UINT64_MAX) {
  const std::uint64_t length = claimed_length == UINT64_MAX ? header.size() : claimed_length;
  std::string text(sizeof length, '\0');
  std::memcpy(text.data(), &length, sizeof length);
  text += header + data;
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

template <class T>
std::string packed(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace lockstep::nn::testing
