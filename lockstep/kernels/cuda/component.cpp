#include "lockstep/kernels/cuda/component.h"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "lockstep/core/static_program.h"

namespace lockstep::cuda {
namespace {

constexpr const char* kLibrary = "liblockstep_cuda.so";

std::vector<std::string> places() {
  if (const char* given = std::getenv("LOCKSTEP_CUDA_LIBRARY")) return {given};
  std::vector<std::filesystem::path> folders;
  std::error_code failure;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", failure);
  if (!failure) folders = {program.parent_path(), program.parent_path().parent_path() / "lib"};
  Dl_info own{};
  if (dladdr(reinterpret_cast<const void*>(&component), &own) != 0 && own.dli_fname != nullptr)
    folders.push_back(std::filesystem::path(own.dli_fname).parent_path());
  std::vector<std::string> result;
  for (const auto& folder : folders) {
    const auto file = folder / kLibrary;
    if (std::filesystem::exists(file, failure)) result.push_back(file.string());
  }
  result.push_back(kLibrary);
  return result;
}

Component open() {
  Component result;
  if (program_is_static()) {
    result.missing =
        "a program that was linked with -static cannot open " + std::string(kLibrary) + ": link the runtimes shared";
    return result;
  }
  std::string tried;
  for (const std::string& place : places()) {
    result.library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (result.library != nullptr) return result;
    const char* const said = dlerror();
    if (tried.empty())
      tried = said == nullptr ? place : said;  // of a file that is there, before the loader's own places
  }
  // An installation may well have one that a program linked from archives does not find.
  if (tried.starts_with(std::string(kLibrary) + ": cannot open")) {
    tried =
        std::string(kLibrary) +
        " is not beside the program, in ../lib or where the loader looks; name it in LOCKSTEP_CUDA_LIBRARY, or link a "
        "program of yours with -Wl,-rpath,FOLDER";
  }
  result.missing = "this installation has no CUDA component (" + tried + "), which CMake builds where it finds nvcc: docs/cuda.md";
  return result;
}

}  // namespace

const Component& component() {
  static const Component opened = open();
  return opened;
}

void* component_entry(const char* name) {
  return component().library == nullptr ? nullptr : dlsym(component().library, name);
}

}  // namespace lockstep::cuda
