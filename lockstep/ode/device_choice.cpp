#include "lockstep/ode/device_choice.h"

#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "lockstep/core/error.h"
#include "lockstep/core/names.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/detail/refuse.h"

namespace lockstep::ode {
namespace {

constexpr const char* kForms = "auto, cpu, cuda, cuda:N, or shares such as cpu=20%,cuda=80%";

using detail::refuse;

std::string name_of(const DeviceShare& share) {
  if (share.kind == DeviceShare::Kind::cpu) return "cpu";
  return share.index == 0 ? "cuda" : "cuda:" + std::to_string(share.index);
}

template <class Number>
std::optional<Number> number(std::string_view text) {
  Number value{};
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return value;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

DeviceShare parse_name(std::string_view text, const std::string& where) {
  DeviceShare share;
  if (text == "cpu") return share;
  share.kind = DeviceShare::Kind::cuda;
  if (text == "cuda") return share;
  if (text.starts_with("cuda:")) {
    const auto index = number<int>(text.substr(5));
    if (!index || *index < 0 || *index > 1023)
      refuse(where, "device number \"" + std::string(text.substr(5)) + "\"", "a number from 0, as in cuda:1");
    share.index = *index;
    return share;
  }
  static constexpr std::array<std::string_view, 3> kNames{"auto", "cpu", "cuda"};
  const bool gpu = text == "gpu" || text == "GPU" || text == "nvidia";  // letters alone say "cpu"
  const std::string nearest = gpu ? "cuda" : nearest_name(text, kNames);
  refuse(where, "\"" + std::string(text) + "\"", kForms, nearest.empty() ? "" : "did you mean \"" + nearest + "\"?");
}

}  // namespace

bool DeviceChoice::uses_cpu() const {
  for (const DeviceShare& share : shares) {
    if (share.kind == DeviceShare::Kind::cpu) return true;
  }
  return false;
}

bool DeviceChoice::uses_cuda() const {
  for (const DeviceShare& share : shares) {
    if (share.kind == DeviceShare::Kind::cuda) return true;
  }
  return false;
}

void DeviceChoice::validate(const std::string& field) const {
  double sum = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const DeviceShare& share = shares[i];
    if (!(share.percent > 0 && share.percent <= 100)) {
      refuse(field, number_text(share.percent) + "% for " + name_of(share), "a share above 0%, at most 100%");
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (name_of(shares[j]) == name_of(share))
        refuse(field, name_of(share) + " twice", "each device once", "add its shares up");
    }
    sum += share.percent;
  }
  // Shares written with a few decimals, such as three of 33.3333 %, may miss by a rounding.
  if (!shares.empty() && std::fabs(sum - 100) > 0.01) {
    refuse(field, "shares that add up to " + number_text(sum) + "%", "100%",
           shares.size() == 1 ? "give one device no share: it takes all" : "");
  }
}

DeviceChoice parse_device(std::string_view text, const std::string& where) {
  text = trim(text);
  if (text.empty()) refuse(where, "nothing", kForms);
  if (text == "auto") return {};
  DeviceChoice choice;
  const bool list = text.find(',') != std::string_view::npos;
  for (bool more = true; more;) {
    const std::size_t comma = text.find(',');
    std::string_view item = trim(text.substr(0, comma));
    more = comma != std::string_view::npos;
    if (more) text.remove_prefix(comma + 1);
    const std::size_t equals = item.find('=');
    DeviceShare share = parse_name(trim(item.substr(0, equals)), where);
    if (equals != std::string_view::npos) {
      std::string_view given = trim(item.substr(equals + 1));
      const auto percent =
          given.ends_with('%') ? number<double>(trim(given.substr(0, given.size() - 1))) : std::nullopt;
      if (!percent)
        refuse(where, "share \"" + std::string(given) + "\" of " + name_of(share), "percent, as in cuda=80%");
      share.percent = *percent;
    } else if (list) {
      refuse(where, name_of(share) + " without a share", "a share for each device, as in cpu=20%,cuda=80%");
    }
    choice.shares.push_back(share);
  }
  choice.validate(where);
  return choice;
}

std::string to_string(const DeviceChoice& choice) {
  if (choice.is_automatic()) return "auto";
  std::string text;
  for (const DeviceShare& share : choice.shares) {
    if (!text.empty()) text += ",";
    text += name_of(share);
    if (choice.shares.size() > 1) text += "=" + number_text(share.percent) + "%";
  }
  return text;
}

}  // namespace lockstep::ode
