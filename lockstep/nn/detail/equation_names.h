// What the names in an expression may be.
#pragma once

#include <algorithm>
#include <string_view>

namespace lockstep::nn::detail {

constexpr bool begins_name(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || static_cast<unsigned char>(c) > 127;
}

constexpr bool is_name(std::string_view text) {
  return !text.empty() && begins_name(text[0]) &&
         std::all_of(text.begin(), text.end(), [](char c) { return begins_name(c) || (c >= '0' && c <= '9'); });
}

}  // namespace lockstep::nn::detail
