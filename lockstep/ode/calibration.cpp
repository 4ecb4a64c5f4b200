#include "lockstep/ode/calibration.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>
#include <mutex>
#include <nlohmann/json.hpp>
#include <span>
#include <thread>

#include "lockstep/core/pending_file.h"
#include "lockstep/core/standard_arithmetic.h"

namespace lockstep::ode {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// Raised whenever a figure changes its meaning.
constexpr int kVersion = 1;

[[noreturn]] void refuse_calibration(const fs::path& path, const std::string& found, const std::string& expected) {
  throw Error(ErrorKind::file, {.field = path.string(),
                                .found = found,
                                .expected = expected,
                                .remedy = "measure this machine again with lockstep calibrate, or remove the file"});
}

// A file of this version, whole; null where there is none.
Json read_whole(const fs::path& path) {
  std::error_code failure;
  if (!fs::exists(path, failure)) return nullptr;
  if (!fs::is_regular_file(path, failure)) refuse_calibration(path, "no regular file", "a file of lockstep calibrate");
  std::ifstream file(path);
  const Json json = file ? Json::parse(file, nullptr, false) : Json(Json::value_t::discarded);
  if (!file.is_open()) refuse_calibration(path, "a file that cannot be read", "a file of lockstep calibrate");
  if (!json.is_object() || !json.contains("version") || !json["version"].is_number_integer())
    refuse_calibration(path, "a damaged file", "a file of lockstep calibrate");
  if (json["version"] != kVersion)
    refuse_calibration(path, "version " + json["version"].dump(), "version " + std::to_string(kVersion));
  if (!json.contains("machines") || !json["machines"].is_array())
    refuse_calibration(path, "no list of machines", "one");
  return json;
}

double positive(const fs::path& path, const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_number() || !(found->get<double>() > 0) ||
      !std::isfinite(found->get<double>()))
    refuse_calibration(path, std::string(key) + " " + (found == entry.end() ? "missing" : found->dump()),
                       "a number above 0");
  return found->get<double>();
}

std::string text(const fs::path& path, const Json& entry, const char* key) {
  const auto found = entry.find(key);
  if (found == entry.end() || !found->is_string()) refuse_calibration(path, std::string("no ") + key, "a text");
  return found->get<std::string>();
}

Precision precision_of(const fs::path& path, const Json& entry) {
  const std::string name = text(path, entry, "precision");
  if (name != "f32" && name != "f64") refuse_calibration(path, "precision " + name, "f32 or f64");
  return name == "f32" ? Precision::f32 : Precision::f64;
}

const Json& list(const fs::path& path, const Json& machine, const char* key) {
  const auto found = machine.find(key);
  if (found == machine.end() || !found->is_array()) refuse_calibration(path, std::string("no list ") + key, "one");
  for (const Json& entry : *found) {
    if (!entry.is_object())
      refuse_calibration(path, std::string("an entry of ") + key + " that is " + entry.type_name(), "an object");
  }
  return *found;
}

const char* name_of(Precision precision) { return precision == Precision::f32 ? "f32" : "f64"; }

Json to_json(const Calibration& calibration) {
  Json machine = {{"machine", calibration.machine}, {"measured", calibration.measured}};
  machine["cpu"] = Json::array();
  for (const CpuFigures& f : calibration.cpu) {
    machine["cpu"].push_back({{"target", to_string(f.target)},
                              {"precision", name_of(f.precision)},
                              {"net_rate", f.net_rate},
                              {"step_rate", f.step_rate}});
  }
  machine["gpu"] = Json::array();
  for (const GpuFigures& f : calibration.gpu) {
    machine["gpu"].push_back({{"name", f.name},
                              {"driver", f.driver},
                              {"precision", name_of(f.precision)},
                              {"latency", f.latency},
                              {"net_rate", f.net_rate},
                              {"step_rate", f.step_rate},
                              {"bytes_a_second", f.bytes_a_second}});
  }
  return machine;
}

}  // namespace

const CpuFigures* Calibration::find(CpuTarget target, Precision precision) const {
  const auto found =
      std::ranges::find_if(cpu, [&](const auto& f) { return f.target == target && f.precision == precision; });
  return found == cpu.end() ? nullptr : &*found;
}

const GpuFigures* Calibration::find(const std::string& name, const std::string& driver, Precision precision) const {
  const auto found = std::ranges::find_if(
      gpu, [&](const auto& f) { return f.name == name && f.driver == driver && f.precision == precision; });
  return found == gpu.end() ? nullptr : &*found;
}

std::string this_machine() {
  std::string name;
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; name.empty() && std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (colon == std::string::npos) continue;
    // x86 gives a name; ARM says who made it and which part it is.
    if (line.starts_with("model name")) name = line.substr(colon + 2);
    if (line.starts_with("CPU part")) name = "part " + line.substr(colon + 2);
  }
  if (name.empty()) name = "unknown processor";
  return name + ", " + std::to_string(std::thread::hardware_concurrency()) + " threads";
}

fs::path calibration_path() {
  fs::path cache;
  const char* const given = std::getenv("XDG_CACHE_HOME");
  const char* const home = std::getenv("HOME");
  // A relative path is to be ignored (XDG Base Directory Specification).
  if (given != nullptr && fs::path(given).is_absolute()) {
    cache = given;
  } else if (home != nullptr && *home != '\0') {
    cache = fs::path(home) / ".cache";
  } else {
    return {};
  }
  return cache / "lockstep" / "calibration.json";
}

std::optional<Calibration> read_calibration(const fs::path& path, const std::string& machine) {
  const StandardReading arithmetic;
  const Json json = read_whole(path);
  if (json.is_null()) return std::nullopt;
  for (const Json& entry : json["machines"]) {
    if (!entry.is_object())
      refuse_calibration(path, "a machine that is " + std::string(entry.type_name()), "an object");
    if (text(path, entry, "machine") != machine) continue;
    Calibration result{.machine = machine, .measured = text(path, entry, "measured"), .cpu = {}, .gpu = {}};
    for (const Json& f : list(path, entry, "cpu")) {
      const auto target = parse_cpu_target(text(path, f, "target"));
      if (!target) refuse_calibration(path, "target " + text(path, f, "target"), "an instruction set");
      result.cpu.push_back(
          {*target, precision_of(path, f), positive(path, f, "net_rate"), positive(path, f, "step_rate")});
    }
    for (const Json& f : list(path, entry, "gpu")) {
      result.gpu.push_back({text(path, f, "name"), text(path, f, "driver"), precision_of(path, f),
                            positive(path, f, "latency"), positive(path, f, "net_rate"), positive(path, f, "step_rate"),
                            positive(path, f, "bytes_a_second")});
    }
    return result;
  }
  return std::nullopt;
}

void write_calibration(const fs::path& path, const Calibration& calibration) {
  const StandardReading arithmetic;
  Json json;
  try {
    json = read_whole(path);
  } catch (const Error&) {  // damaged, or of another version: written anew
  }
  if (!json.is_object()) json = {{"version", kVersion}, {"machines", Json::array()}};
  Json& machines = json["machines"];
  machines.erase(std::remove_if(machines.begin(), machines.end(),
                                [&](const Json& m) {
                                  return !m.is_object() || m.value("machine", Json()) == calibration.machine;
                                }),
                 machines.end());
  machines.push_back(to_json(calibration));
  std::error_code failure;
  fs::create_directories(path.parent_path(), failure);
  if (failure) {
    throw Error(ErrorKind::file, {.field = path.parent_path().string(),
                                  .found = failure.message(),
                                  .expected = "a folder that can be made",
                                  .remedy = "set XDG_CACHE_HOME to another folder"});
  }
  const std::string content = json.dump(1) + "\n";
  write_file(path, std::as_bytes(std::span(content)), Existing::replace);
}

const KnownFigures& known_figures() {
  static std::mutex mutex;
  static std::map<fs::path, KnownFigures> of;
  // Every solve asks: while the environment stays, so does the answer.
  static std::string cache_seen, home_seen;
  static const KnownFigures* seen = nullptr;
  const auto variable = [](const char* name) {
    const char* const value = std::getenv(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  const std::lock_guard lock(mutex);
  const std::string_view cache = variable("XDG_CACHE_HOME"), home = variable("HOME");
  if (seen != nullptr && cache == cache_seen && home == home_seen) return *seen;
  const fs::path path = calibration_path();
  const auto [found, is_new] = of.try_emplace(path);
  if (is_new && !path.empty()) {
    try {
      found->second.measured = read_calibration(path, this_machine());
    } catch (const Error& error) {
      found->second.warning = error;
    }
  }
  cache_seen = cache;
  home_seen = home;
  seen = &found->second;
  return *seen;
}

}  // namespace lockstep::ode
