#include "lockstep/core/hdf5_text.h"

#include <array>
#include <charconv>
#include <concepts>
#include <cstdint>
#include <vector>

namespace lockstep::hdf5 {
namespace {

template <class Number>
std::string shortest(Number value) {
  std::array<char, 40> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), value).ptr};
}

std::string item_text(const std::string& item) { return item; }
std::string item_text(double item) { return shortest(item); }
std::string item_text(std::integral auto item) { return shortest(static_cast<std::int64_t>(item)); }

template <class Item>
std::string item_text(const std::vector<Item>& list) {
  std::string text;
  for (const Item& item : list) text += (text.empty() ? "" : ", ") + item_text(item);
  return text;
}

}  // namespace

std::string to_text(const AttributeValue& value) {
  return std::visit([](const auto& held) { return item_text(held); }, value);
}

}  // namespace lockstep::hdf5
