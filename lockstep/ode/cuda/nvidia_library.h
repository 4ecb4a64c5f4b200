// Finding one of NVIDIA's libraries that nothing links: it is opened when it is first needed.
#pragma once

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <initializer_list>
#include <string>
#include <system_error>
#include <vector>

namespace lockstep::ode::cuda {

// The folders to look in where the loader itself knows of none: the toolkit's, the distribution's, those of an active
// environment, and in it of pip's packages nvidia/PACKAGE.
inline std::vector<std::filesystem::path> nvidia_folders(std::initializer_list<const char*> packages) {
  namespace fs = std::filesystem;
  std::vector<fs::path> folders = {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"};
  for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const char* const root = std::getenv(variable);
    if (root == nullptr) continue;
    const fs::path libraries = fs::path(root) / "lib";
    folders.push_back(libraries);
    std::error_code failure;
    for (const auto& python : fs::directory_iterator(libraries, failure)) {
      for (const char* package : packages)
        folders.push_back(python.path() / "site-packages" / "nvidia" / package / "lib");
    }
  }
  return folders;
}

// Opens the first of these files that can be opened. Null where none can, and then what the loader said of the first.
inline void* open_first(const std::vector<std::string>& places, std::string& failure) {
  for (const std::string& place : places) {
    if (void* const library = dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL)) return library;
    if (failure.empty()) failure = dlerror();
  }
  return nullptr;
}

}  // namespace lockstep::ode::cuda
