#include "lockstep/ode/cuda/gemm/cublaslt.cuh"

#include <dlfcn.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "lockstep/ode/cuda/nvidia_library.h"

namespace lockstep::ode::cuda {
namespace {

constexpr int kMajor = CUBLAS_VER_MAJOR;

std::vector<std::string> places() {
  if (const char* given = std::getenv("LOCKSTEP_CUBLASLT_LIBRARY")) return {given};
  const std::string name = "libcublasLt.so." + std::to_string(kMajor);
  std::vector<std::string> result = {name};
  for (const std::filesystem::path& folder : nvidia_folders({"cu13", "cublas"})) result.push_back(folder / name);
  return result;
}

CublasLt load() {
  CublasLt result;
  std::string tried;
  void* const library = open_first(places(), tried);
  if (library == nullptr) {
    result.missing = "cuBLASLt " + std::to_string(kMajor) + " is not on this machine (" + tried + ")";
    return result;
  }
  bool complete = true;
  const auto find = [&](const char* name, auto& function) {
    function = reinterpret_cast<std::decay_t<decltype(function)>>(dlsym(library, name));
    complete = complete && function != nullptr;
  };
  find("cublasLtCreate", result.create);
  find("cublasLtDestroy", result.destroy);
  find("cublasLtGetStatusString", result.status_text);
  find("cublasLtMatmul", result.matmul);
  find("cublasLtMatmulAlgoGetHeuristic", result.find_algorithms);
  find("cublasLtMatmulDescCreate", result.create_operation);
  find("cublasLtMatmulDescDestroy", result.destroy_operation);
  find("cublasLtMatmulDescSetAttribute", result.set_operation);
  find("cublasLtMatrixLayoutCreate", result.create_layout);
  find("cublasLtMatrixLayoutDestroy", result.destroy_layout);
  find("cublasLtMatmulPreferenceCreate", result.create_preference);
  find("cublasLtMatmulPreferenceDestroy", result.destroy_preference);
  find("cublasLtMatmulPreferenceSetAttribute", result.set_preference);
  decltype(&cublasLtGetVersion) version = nullptr;
  find("cublasLtGetVersion", version);
  if (!complete) {
    result.missing = "the library found is no cuBLASLt, or too old a one";
    return result;
  }
  // As CUBLAS_VERSION: 10000 times the major version, 100 times the minor one.
  const std::size_t number = version();
  const std::size_t major = number / 10000, minor = number / 100 % 100;
  result.version = std::to_string(major) + "." + std::to_string(minor);
  if (major != kMajor) {
    result.missing = "cuBLASLt " + result.version + " is here, and version " + std::to_string(kMajor) + " is needed";
  }
  return result;
}

}  // namespace

const CublasLt& cublaslt() {
  static const CublasLt loaded = load();
  return loaded;
}

}  // namespace lockstep::ode::cuda
