#include "lockstep/kernels/cpu_target.h"

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

constexpr std::array kNames{std::pair{CpuTarget::scalar, std::string_view("scalar")},
                            std::pair{CpuTarget::avx2, std::string_view("avx2")},
                            std::pair{CpuTarget::avx512, std::string_view("avx512")},
                            std::pair{CpuTarget::neon, std::string_view("neon")}};

std::vector<CpuTarget> detect() {
  std::vector<CpuTarget> targets{CpuTarget::scalar};
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (v3) targets.push_back(CpuTarget::avx2);
#ifndef LOCKSTEP_NO_AVX512
  if (v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512cd")) {
    targets.push_back(CpuTarget::avx512);
  }
#endif
#elif defined(__aarch64__)
  targets.push_back(CpuTarget::neon);
#endif
  return targets;
}

}  // namespace

std::string_view to_string(CpuTarget target) {
  for (const auto& [value, name] : kNames) {
    if (value == target) return name;
  }
  return "unknown";
}

std::optional<CpuTarget> parse_cpu_target(std::string_view name) {
  for (const auto& [value, text] : kNames) {
    if (text == name) return value;
  }
  return std::nullopt;
}

std::span<const CpuTarget> available_cpu_targets() {
  static const std::vector<CpuTarget> targets = detect();
  return targets;
}

CpuTarget best_cpu_target() { return available_cpu_targets().back(); }

void require_cpu_target(CpuTarget target) {
  const auto targets = available_cpu_targets();
  if (std::find(targets.begin(), targets.end(), target) != targets.end()) return;
  std::string names;
  for (const CpuTarget t : targets) names += (names.empty() ? "" : ", ") + std::string(to_string(t));
  throw Error(ErrorKind::unsupported, {.field = "cpu target",
                                       .found = std::string(to_string(target)),
                                       .expected = "one this machine runs (" + names + ")",
                                       .remedy = "leave the choice to the library or name one of these"});
}

}  // namespace lockstep
