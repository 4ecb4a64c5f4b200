#include "lockstep/ode/cuda/load.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>

namespace lockstep::ode::cuda {
namespace {

constexpr const char* kLibrary = "liblockstep_cuda.so";
const LoadedRuntime* replacement = nullptr;

std::vector<std::string> places() {
  if (const char* given = std::getenv("LOCKSTEP_CUDA_LIBRARY")) return {given};
  std::vector<std::string> result;
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (!failure) {
    for (const auto& folder : {program.parent_path(), program.parent_path().parent_path() / "lib"}) {
      const auto file = folder / kLibrary;
      if (std::filesystem::exists(file, failure)) result.push_back(file.string());
    }
  }
  result.push_back(kLibrary);
  return result;
}

LoadedRuntime load() {
  LoadedRuntime result;
  void* library = nullptr;
  std::string tried;
  for (const std::string& place : places()) {
    library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) break;
    tried = dlerror();
  }
  if (library == nullptr) {
    result.missing = std::string("this installation has no CUDA component (") + tried + ")";
    return result;
  }
  const auto entry = reinterpret_cast<RuntimeEntry>(dlsym(library, kRuntimeEntry));
  Runtime* const runtime = entry == nullptr ? nullptr : entry(kRuntimeVersion);
  if (runtime == nullptr) {
    result.missing = std::string(kLibrary) + " is of another version of Lockstep";
    return result;
  }
  Fault fault;
  result.devices = runtime->devices(fault);
  if (result.devices.empty()) {
    result.missing = fault.text.empty() ? "no CUDA device" : fault.text;
    return result;
  }
  result.runtime = runtime;
  return result;
}

}  // namespace

const LoadedRuntime& load_runtime() {
  if (replacement != nullptr) return *replacement;
  static const LoadedRuntime loaded = load();
  return loaded;
}

void replace_runtime(const LoadedRuntime* other) { replacement = other; }

}  // namespace lockstep::ode::cuda
