#include "bindings/c/load_model.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/static_program.h"
#include "lockstep/nn/detail/activation_list.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/plan_file.h"

namespace lockstep::c {
namespace {

constexpr const char* kReader = "liblockstep_c_readers.so";
using ReadModel = int (*)(const char* path, unsigned char** bytes, std::size_t* size);

// What reads any net, a plain stack or not.
std::string by_compiling(const std::filesystem::path& path) {
  return "turn the model into a plan file, lockstep compile " + path.string() +
         " -o net.plan, and give that to lockstep_plan_load";
}

// The reader lies beside this library, or beside the program that it was linked into, or where the system looks for
// libraries. It stays open.
ReadModel find_reader(const std::filesystem::path& path) {
  if (program_is_static()) {
    throw Error(ErrorKind::unsupported,
                {path.string(), "a file of ONNX, Keras or HDF5 in a program that was linked with -static",
                 "safetensors or a plan file", by_compiling(path) + ", or link the runtimes shared"});
  }
  Dl_info self{};
  void* library = nullptr;
  if (dladdr(reinterpret_cast<void*>(&find_reader), &self) && self.dli_fname) {
    const std::filesystem::path beside = std::filesystem::path(self.dli_fname).parent_path() / kReader;
    library = dlopen(beside.c_str(), RTLD_NOW | RTLD_LOCAL);
  }
  if (!library) library = dlopen(kReader, RTLD_NOW | RTLD_LOCAL);
  void* function = library ? dlsym(library, "lockstep_read_model") : nullptr;
  if (!function) {
    const char* why = dlerror();
    throw Error(ErrorKind::unsupported,
                {path.string(), "a file of ONNX, Keras or HDF5",
                 "safetensors, or Lockstep's readers beside this library (" + std::string(why ? why : kReader) + ")",
                 "install " + std::string(kReader) + ", or " + by_compiling(path)});
  }
  return reinterpret_cast<ReadModel>(function);
}

nn::Model load_elsewhere(const std::filesystem::path& path, const nn::ReadOptions& options) {
  const ReadModel read = find_reader(path);
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
  nn::Model model = nn::read_plan(std::as_bytes(std::span(bytes, size)), path.string()).model;
  nn::detail::require_agreement(model, options, path.string());
  return model;
}

}  // namespace

nn::Model load_model(const std::filesystem::path& path, const nn::ReadOptions& options) {
  // Compiled without HDF5, detect_format() calls every HDF5 file by this name.
  switch (nn::detect_format(path)) {
    case nn::ModelFormat::lockstep_hdf5:
    case nn::ModelFormat::keras_archive:
    case nn::ModelFormat::onnx:
      return load_elsewhere(path, options);
    default:
      return nn::load(path, options);
  }
}

}  // namespace lockstep::c
