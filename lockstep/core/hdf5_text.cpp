#include "lockstep/core/hdf5_text.h"

#include <concepts>
#include <vector>

#include "lockstep/core/text.h"

namespace lockstep::hdf5 {
namespace {

std::string item_text(const std::string& item) { return item; }
std::string item_text(double item) { return number_text(item); }
std::string item_text(std::integral auto item) { return std::to_string(item); }

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
