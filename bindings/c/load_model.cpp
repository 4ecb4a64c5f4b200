#include "bindings/c/load_model.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/nn/load.h"

namespace lockstep::c {
namespace {

constexpr const char* kReader = "liblockstep_c_hdf5.so";
using HdfToSafetensors = int (*)(const char* path, unsigned char** bytes, std::size_t* size);

// The reader lies beside this library, or where the system looks for libraries. It stays open.
HdfToSafetensors find_reader(const std::filesystem::path& path) {
  Dl_info self{};
  void* library = nullptr;
  if (dladdr(reinterpret_cast<void*>(&find_reader), &self) && self.dli_fname) {
    const std::filesystem::path beside = std::filesystem::path(self.dli_fname).parent_path() / kReader;
    library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) library = dlopen(kReader, RTLD_NOW | RTLD_LOCAL);
  void* function = library ? dlsym(library, "lockstep_hdf5_to_safetensors") : nullptr;
  if (!function) {
    const char* why = dlerror();
    throw Error(ErrorKind::unsupported, {path.string(), "an HDF5 file",
                                         "safetensors, or Lockstep's HDF5 reader beside "
                                         "this library (" +
                                             std::string(why ? why : kReader) + ")",
                                         "install " + std::string(kReader) + ", or save the model as safetensors"});
  }
  return reinterpret_cast<HdfToSafetensors>(function);
}

nn::Model load_hdf5(const std::filesystem::path& path) {
  const HdfToSafetensors read = find_reader(path);
  unsigned char* bytes = nullptr;
  std::size_t size = 0;
  const int result = read(path.c_str(), &bytes, &size);
  const std::unique_ptr<unsigned char, void (*)(void*)> owned(bytes, &std::free);
  if (!bytes) throw std::bad_alloc();
  if (result < 0) throw std::runtime_error(reinterpret_cast<const char*>(bytes));
  if (result > 0) {
    // The message is whole already; its parts stayed on the other side.
    throw Error(static_cast<ErrorKind>(result - 1), {reinterpret_cast<const char*>(bytes), "", "", ""});
  }
  return nn::read_safetensors(std::as_bytes(std::span(bytes, size)), path.string());
}

}  // namespace

nn::Model load_model(const std::filesystem::path& path, const nn::ReadOptions& options) {
  // Compiled without HDF5, detect_format() calls every HDF5 file by this name.
  const bool hdf5 = nn::detect_format(path) == nn::ModelFormat::lockstep_hdf5;
  return hdf5 ? load_hdf5(path) : nn::load(path, options);
}

}  // namespace lockstep::c
