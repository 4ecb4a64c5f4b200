#include "lockstep/ode/cuda/nvrtc.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "lockstep/core/error.h"
#include "lockstep/ode/cuda/nvidia_library.h"

namespace lockstep::ode::cuda {
namespace {

namespace fs = std::filesystem;

// From nvrtc.h of the CUDA toolkit; a program is an opaque pointer, 0 is success.
using Handle = void*;
struct Functions {
  int (*version)(int*, int*) = nullptr;
  int (*create)(Handle*, const char*, const char*, int, const char* const*, const char* const*) = nullptr;
  int (*compile)(Handle, int, const char* const*) = nullptr;
  int (*log_size)(Handle, std::size_t*) = nullptr;
  int (*log)(Handle, char*) = nullptr;
  int (*cubin_size)(Handle, std::size_t*) = nullptr;
  int (*cubin)(Handle, char*) = nullptr;
  int (*destroy)(Handle*) = nullptr;
  const char* (*error)(int) = nullptr;
};
Functions functions;
const Nvrtc* replacement = nullptr;
constexpr int kCompilationFailed = 6;  // NVRTC_ERROR_COMPILATION

void add_folder(const fs::path& folder, std::vector<std::string>& places) {
  std::error_code failure;
  std::vector<std::string> found;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("libnvrtc.so")) found.push_back(entry.path().string());
  }
  std::sort(found.rbegin(), found.rend());  // the newest first
  places.insert(places.end(), found.begin(), found.end());
}

std::vector<std::string> places() {
  if (const char* given = std::getenv("LOCKSTEP_NVRTC_LIBRARY")) return {given};
  std::vector<std::string> result = {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"};
  for (const fs::path& folder : nvidia_folders({"cu13", "cuda_nvrtc"})) add_folder(folder, result);
  return result;
}

template <class Function>
bool find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  return function != nullptr;
}

// It opens this second library by name alone, which the loader knows once it has been opened by its path.
void open_builtins(void* library) {
  Dl_info where;
  if (dladdr(dlsym(library, "nvrtcVersion"), &where) == 0 || where.dli_fname == nullptr) return;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(fs::path(where.dli_fname).parent_path(), failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("libnvrtc-builtins.so")) dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL);
  }
}

Nvrtc load() {
  Nvrtc result;
  std::string tried;
  void* const library = open_first(places(), tried);
  if (library == nullptr) {
    result.missing = "NVRTC is not on this machine (" + tried + ")";
    return result;
  }
  Functions f;
  if (!find(library, "nvrtcVersion", f.version) || !find(library, "nvrtcCreateProgram", f.create) ||
      !find(library, "nvrtcCompileProgram", f.compile) || !find(library, "nvrtcGetProgramLogSize", f.log_size) ||
      !find(library, "nvrtcGetProgramLog", f.log) || !find(library, "nvrtcGetCUBINSize", f.cubin_size) ||
      !find(library, "nvrtcGetCUBIN", f.cubin) || !find(library, "nvrtcDestroyProgram", f.destroy) ||
      !find(library, "nvrtcGetErrorString", f.error)) {
    result.missing = "the NVRTC found here is too old: CUDA 12.1 or later is needed";
    return result;
  }
  open_builtins(library);
  int major = 0, minor = 0;
  f.version(&major, &minor);
  result.version = std::to_string(major) + "." + std::to_string(minor);
  functions = f;
  return result;
}

std::string first_lines(const std::string& text, int lines) {
  std::size_t end = 0;
  for (int i = 0; i < lines && end != std::string::npos; ++i) end = text.find('\n', end == 0 ? 0 : end + 1);
  std::string result = text.substr(0, end);
  while (!result.empty() && (result.back() == '\n' || result.back() == '\0')) result.pop_back();
  return result;
}

// Those of the standard's headers that the embedded ones name.
constexpr const char* kStandardHeaders[] = {"array",       "cmath",    "cstddef", "cstdint", "cstring",
                                            "limits",      "optional", "span",    "string",  "string_view",
                                            "type_traits", "utility",  "vector"};

}  // namespace

const std::vector<std::string>& nvrtc_options() {
  static const std::vector<std::string> options = {"-std=c++20",      "-fmad=false",      "-prec-div=true",
                                                   "-prec-sqrt=true", "-ftz=false",       "-default-device",
                                                   "-device-int128",  "-D__extension__=", "-diag-suppress=177"};
  return options;
}

std::vector<char> Nvrtc::compile(const KernelSource& source, int architecture) const {
  if (!missing.empty()) {
    throw Error(ErrorKind::unsupported, {.field = source.name,
                                         .found = missing,
                                         .expected = "libnvrtc, with which such kernels are compiled",
                                         .remedy = kNvrtcRemedy});
  }
  std::vector<const char*> names, texts;
  for (const EmbeddedHeader& header : embedded_headers()) {
    names.push_back(header.name);
    texts.push_back(header.text);
  }
  for (const char* name : kStandardHeaders) {
    names.push_back(name);
    texts.push_back("#include \"lockstep/ode/cuda/device_standard-inl.h\"\n");
  }
  names.push_back("lockstep/kernels/mlp/mlp.h");  // mentioned only
  texts.push_back("namespace lockstep { struct Mlp; }\n");
  Handle program = nullptr;
  const auto require = [&](int code) {
    if (code == 0) return;
    std::string text = functions.error(code);
    if (program != nullptr) functions.destroy(&program);
    throw Error(ErrorKind::unsupported,
                {.field = source.name,
                 .found = "NVRTC " + version + " for sm_" + std::to_string(architecture) + ": " + text,
                 .expected = "a compiler that knows this device",
                 .remedy = "install a newer NVRTC, or run on the CPU with --device cpu"});
  };
  require(functions.create(&program, source.text.c_str(), "kernel", static_cast<int>(names.size()), texts.data(),
                           names.data()));
  std::vector<std::string> options = nvrtc_options();
  options.push_back("-arch=sm_" + std::to_string(architecture));
  std::vector<const char*> arguments;
  for (const std::string& option : options) arguments.push_back(option.c_str());
  const int code = functions.compile(program, static_cast<int>(arguments.size()), arguments.data());
  if (code == kCompilationFailed) {
    std::size_t size = 0;
    functions.log_size(program, &size);
    std::string log(size, '\0');
    functions.log(program, log.data());
    functions.destroy(&program);
    throw Error(ErrorKind::invalid_argument, {.field = source.name,
                                              .found = "a text that does not compile:\n" + first_lines(log, 6),
                                              .expected = "statements that set du[0], du[1], ... from t, u and p",
                                              .remedy = "see docs/cuda.md for what such a text may use"});
  }
  require(code);
  std::size_t size = 0;
  require(functions.cubin_size(program, &size));
  std::vector<char> result(size);
  require(functions.cubin(program, result.data()));
  functions.destroy(&program);
  return result;
}

const Nvrtc& load_nvrtc() {
  if (replacement != nullptr) return *replacement;
  static const Nvrtc loaded = load();
  return loaded;
}

void replace_nvrtc(const Nvrtc* other) { replacement = other; }

}  // namespace lockstep::ode::cuda
