#include "lockstep/ode/cuda/gemm/testing/fake_cublaslt.h"

#include <cuda_runtime_api.h>

#include "lockstep/ode/cuda/gemm/cublaslt.cuh"

// The simulator has words of its own for these.
#undef __device__
#undef __forceinline__
#undef __global__
#undef __grid_constant__
#undef __launch_bounds__

#include <bit>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "lockstep/ode/cuda/gemm/gemm_kernels.h"
#include "lockstep/ode/cuda/gemm/round.cuh"
#include "lockstep/ode/cuda/gemm/testing/fake_graphs.h"

// An opaque type of cuBLASLt.
struct cublasLtContext {};

namespace lockstep::ode::cuda {
namespace testing {

FakeCublasLt& fake_cublaslt() {
  static FakeCublasLt state;
  return state;
}

namespace {

struct Operation {
  cublasComputeType_t compute;
  cudaDataType scale;
  cublasOperation_t a = CUBLAS_OP_N, b = CUBLAS_OP_N;
  cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_DEFAULT;
  const void* bias = nullptr;
  std::int32_t bias_type = -1;
};
struct Layout {
  cudaDataType type;
  std::uint64_t rows, columns;
  std::int64_t leading;
};

double number_at(const void* matrix, const Layout& layout, std::uint64_t row, std::uint64_t column) {
  if (row >= layout.rows || column >= layout.columns) std::abort();
  const std::int64_t index = static_cast<std::int64_t>(row) + static_cast<std::int64_t>(column) * layout.leading;
  switch (layout.type) {
    case CUDA_R_64F:
      return static_cast<const double*>(matrix)[index];
    case CUDA_R_16BF:
      return load_factor<float>(matrix, index, MatrixPrecision::bf16);
    case CUDA_R_16F:
      return load_factor<float>(matrix, index, MatrixPrecision::fp16);
    default:
      return static_cast<const float*>(matrix)[index];
  }
}
void put(void* matrix, const Layout& layout, std::uint64_t row, std::uint64_t column, double value) {
  const std::int64_t index = static_cast<std::int64_t>(row) + static_cast<std::int64_t>(column) * layout.leading;
  switch (layout.type) {
    case CUDA_R_64F:
      static_cast<double*>(matrix)[index] = value;
      break;
    case CUDA_R_16BF:
      store_factor(matrix, index, static_cast<float>(value), MatrixPrecision::bf16);
      break;
    case CUDA_R_16F:
      store_factor(matrix, index, static_cast<float>(value), MatrixPrecision::fp16);
      break;
    default:
      static_cast<float*>(matrix)[index] = static_cast<float>(value);
  }
}

// What tensor cores take of a float32 number: they cut off the bits that tf32 does not have.
double tf32_factor(double x) {
  const auto cut = std::bit_cast<float>(std::bit_cast<std::uint32_t>(static_cast<float>(x)) & ~0x1fffu);
  if (cut != static_cast<float>(x)) ++fake_cublaslt().cut_factors;
  return cut;
}

// Sums in double: an order that no device has, and no worse than any.
void multiply(const Operation& op, const void* a, const Layout& a_layout, const void* b, const Layout& b_layout,
              void* d, const Layout& d_layout) {
  const std::uint64_t inputs = op.a == CUBLAS_OP_T ? a_layout.rows : a_layout.columns;
  if (inputs != (op.b == CUBLAS_OP_T ? b_layout.columns : b_layout.rows)) std::abort();
  for (std::uint64_t column = 0; column < d_layout.columns; ++column) {
    for (std::uint64_t row = 0; row < d_layout.rows; ++row) {
      double sum = 0;
      for (std::uint64_t k = 0; k < inputs; ++k) {
        double x = op.a == CUBLAS_OP_T ? number_at(a, a_layout, k, row) : number_at(a, a_layout, row, k);
        double y = op.b == CUBLAS_OP_T ? number_at(b, b_layout, column, k) : number_at(b, b_layout, k, column);
        if (op.compute == CUBLAS_COMPUTE_32F_FAST_TF32) x = tf32_factor(x), y = tf32_factor(y);
        sum += x * y;
      }
      if (op.epilogue != CUBLASLT_EPILOGUE_DEFAULT) {
        const Layout bias{static_cast<cudaDataType>(op.bias_type), d_layout.rows, 1, 1};
        sum += number_at(op.bias, bias, row, 0);
      }
      if (op.epilogue == CUBLASLT_EPILOGUE_RELU_BIAS) sum = std::fmax(sum, 0);
      if (op.epilogue == CUBLASLT_EPILOGUE_GELU_BIAS) sum = activate({ActivationKind::gelu_tanh}, sum);
      put(d, d_layout, row, column, sum);
    }
  }
}

template <class T>
struct Tokens {
  char start, advance, plan, move, activate;
};
template <class T>
Tokens<T> tokens;
char enter_token, repeat_token, count_token, source_token;

template <class T, class Body>
void run_kernel(cudaStream_t stream, dim3 grid, dim3 block, const void* argument, const Body& body,
                std::size_t shared_bytes = 0) {
  const auto* const launch = *static_cast<const GemmLaunch<T>* const*>(argument);
  queue(stream, [=] {
    lockstep::cuda::testing::simulate(
        {.blocks = grid.x, .threads = block.x, .shared_bytes = shared_bytes, .seed = grid.x},
        [&](unsigned char* shared) { body(*launch, shared); });
  });
}

template <class T>
bool launch_one_of(cudaStream_t stream, const void* kernel, dim3 grid, dim3 block, void** arguments) {
  if (kernel == &tokens<T>.start) {
    const auto ensemble = *static_cast<const Ensemble<T>*>(arguments[1]);
    run_kernel<T>(stream, grid, block, arguments[0],
                  [=](const auto& launch, unsigned char*) { start_columns(launch, ensemble); });
  } else if (kernel == &tokens<T>.advance) {
    const bool counts = *static_cast<bool*>(arguments[1]);
    run_kernel<T>(stream, grid, block, arguments[0],
                  [=](const auto& launch, unsigned char*) { advance_columns(launch, counts); });
  } else if (kernel == &tokens<T>.plan) {
    const std::int32_t target = *static_cast<std::int32_t*>(arguments[1]);
    run_kernel<T>(
        stream, grid, block, arguments[0],
        [=](const auto& launch, unsigned char* shared) {
          plan_moves(launch, target, reinterpret_cast<std::int32_t*>(shared));
        },
        kCompactionSharedBytes);
  } else if (kernel == &tokens<T>.move) {
    run_kernel<T>(stream, grid, block, arguments[0], [](const auto& launch, unsigned char*) { move_columns(launch); });
  } else if (kernel == &tokens<T>.activate) {
    const auto launch = *static_cast<const ActivationLaunch<T>*>(arguments[0]);
    queue(stream, [=] {
      lockstep::cuda::testing::simulate({.blocks = grid.x, .threads = block.x, .shared_bytes = 0, .seed = grid.x},
                                        [&](unsigned char*) { activate_products(launch); });
    });
  } else {
    return false;
  }
  return true;
}

template <class To>
cublasStatus_t set(To& to, const void* value, std::size_t bytes) {
  if (bytes != sizeof(To)) return CUBLAS_STATUS_INVALID_VALUE;
  std::memcpy(&to, value, bytes);
  return CUBLAS_STATUS_SUCCESS;
}

CublasLt make_fake() {
  CublasLt lt;
  lt.version = "0.0";
  lt.create = [](cublasLtHandle_t* handle) {
    ++fake_cublaslt().open;
    *handle = new cublasLtContext;
    return CUBLAS_STATUS_SUCCESS;
  };
  lt.destroy = [](cublasLtHandle_t handle) {
    --fake_cublaslt().open;
    delete handle;
    return CUBLAS_STATUS_SUCCESS;
  };
  lt.status_text = [](cublasStatus_t) -> const char* { return "the fake's own trouble"; };
  lt.create_operation = [](cublasLtMatmulDesc_t* made, cublasComputeType_t compute, cudaDataType scale) {
    ++fake_cublaslt().open;
    *made = reinterpret_cast<cublasLtMatmulDesc_t>(new Operation{.compute = compute, .scale = scale});
    return CUBLAS_STATUS_SUCCESS;
  };
  lt.destroy_operation = [](cublasLtMatmulDesc_t made) {
    --fake_cublaslt().open;
    delete reinterpret_cast<Operation*>(made);
    return CUBLAS_STATUS_SUCCESS;
  };
  lt.set_operation = [](cublasLtMatmulDesc_t made, cublasLtMatmulDescAttributes_t attribute, const void* value,
                        std::size_t bytes) {
    Operation& op = *reinterpret_cast<Operation*>(made);
    switch (attribute) {
      case CUBLASLT_MATMUL_DESC_TRANSA:
        return set(op.a, value, bytes);
      case CUBLASLT_MATMUL_DESC_TRANSB:
        return set(op.b, value, bytes);
      case CUBLASLT_MATMUL_DESC_EPILOGUE:
        return set(op.epilogue, value, bytes);
      case CUBLASLT_MATMUL_DESC_BIAS_POINTER:
        return set(op.bias, value, bytes);
      case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE:
        return set(op.bias_type, value, bytes);
      default:
        return CUBLAS_STATUS_INVALID_VALUE;
    }
  };
  lt.create_layout = [](cublasLtMatrixLayout_t* made, cudaDataType type, std::uint64_t rows, std::uint64_t columns,
                        std::int64_t leading) {
    if (leading < static_cast<std::int64_t>(rows)) return CUBLAS_STATUS_INVALID_VALUE;
    ++fake_cublaslt().open;
    *made = reinterpret_cast<cublasLtMatrixLayout_t>(new Layout{type, rows, columns, leading});
    return CUBLAS_STATUS_SUCCESS;
  };
  lt.destroy_layout = [](cublasLtMatrixLayout_t made) {
    --fake_cublaslt().open;
    delete reinterpret_cast<Layout*>(made);
    return CUBLAS_STATUS_SUCCESS;
  };
  lt.create_preference = [](cublasLtMatmulPreference_t* made) {
    ++fake_cublaslt().open;
    *made = reinterpret_cast<cublasLtMatmulPreference_t>(new char);
    return CUBLAS_STATUS_SUCCESS;
  };
  lt.destroy_preference = [](cublasLtMatmulPreference_t made) {
    --fake_cublaslt().open;
    delete reinterpret_cast<char*>(made);
    return CUBLAS_STATUS_SUCCESS;
  };
  lt.set_preference = [](cublasLtMatmulPreference_t, cublasLtMatmulPreferenceAttributes_t, const void*, std::size_t) {
    return CUBLAS_STATUS_SUCCESS;
  };
  lt.find_algorithms = [](cublasLtHandle_t, cublasLtMatmulDesc_t made, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                          cublasLtMatrixLayout_t, cublasLtMatrixLayout_t d, cublasLtMatmulPreference_t, int,
                          cublasLtMatmulHeuristicResult_t*, int* count) {
    FakeCublasLt& fake = fake_cublaslt();
    const Operation& op = *reinterpret_cast<Operation*>(made);
    const Layout& out = *reinterpret_cast<Layout*>(d);
    const bool epilogue = op.epilogue != CUBLASLT_EPILOGUE_DEFAULT;
    const bool other_bias = epilogue && op.bias_type != static_cast<std::int32_t>(out.type);
    if (other_bias) ++fake.other_biases;
    *count = fake.any_algorithm && (!epilogue || (fake.epilogues && !other_bias)) ? 1 : 0;
    return *count == 0 ? CUBLAS_STATUS_NOT_SUPPORTED : CUBLAS_STATUS_SUCCESS;
  };
  lt.matmul = [](cublasLtHandle_t, cublasLtMatmulDesc_t op, const void*, const void* a, cublasLtMatrixLayout_t a_layout,
                 const void* b, cublasLtMatrixLayout_t b_layout, const void*, const void*, cublasLtMatrixLayout_t,
                 void* d, cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t*, void*, std::size_t,
                 cudaStream_t stream) {
    called("cublasLtMatmul");
    if (!fake_cublaslt().captured && of(stream).capturing != nullptr) {
      of(stream).broken = true;
      return CUBLAS_STATUS_INTERNAL_ERROR;
    }
    queue(stream,
          [op = *reinterpret_cast<Operation*>(op), a, a_layout = *reinterpret_cast<Layout*>(a_layout), b,
           b_layout = *reinterpret_cast<Layout*>(b_layout), d,
           d_layout = *reinterpret_cast<Layout*>(d_layout)] { multiply(op, a, a_layout, b, b_layout, d, d_layout); });
    return CUBLAS_STATUS_SUCCESS;
  };
  return lt;
}

}  // namespace
}  // namespace testing

const CublasLt& cublaslt() {
  static const CublasLt fake = testing::make_fake();
  return fake;
}

template <class T>
GemmKernels gemm_kernels() {
  using testing::tokens;
  return {&tokens<T>.start, &tokens<T>.advance, &tokens<T>.plan, &tokens<T>.move, &tokens<T>.activate};
}
template GemmKernels gemm_kernels<float>();
template GemmKernels gemm_kernels<double>();
const void* gemm_enter_kernel() { return &testing::enter_token; }
const void* gemm_repeat_kernel() { return &testing::repeat_token; }
const void* gemm_count_kernel() { return &testing::count_token; }

}  // namespace lockstep::ode::cuda

using namespace lockstep::ode::cuda;
using namespace lockstep::ode::cuda::testing;

extern "C" {

cudaError_t cudaGetLastError() { return cudaSuccess; }
const char* cudaGetErrorString(cudaError_t) { return "operation not supported"; }
const char* cudaGetErrorName(cudaError_t) { return "cudaErrorNotSupported"; }
cudaError_t cudaGetDevice(int* device) {
  *device = 0;
  return called("cudaGetDevice");
}
cudaError_t cudaSetDevice(int) { return called("cudaSetDevice"); }
cudaError_t cudaMallocHost(void** memory, size_t bytes) {
  ++fake_cublaslt().open;
  *memory = std::malloc(bytes);
  return called("cudaMallocHost");
}
cudaError_t cudaFreeHost(void* memory) {
  if (memory != nullptr) --fake_cublaslt().open;
  std::free(memory);
  return called("cudaFreeHost");
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind, cudaStream_t stream) {
  if (of(stream).capturing != nullptr) std::abort();
  std::memcpy(to, from, bytes);
  return called("cudaMemcpyAsync");
}
cudaError_t cudaMemsetAsync(void* to, int value, size_t bytes, cudaStream_t stream) {
  queue(stream, [=] { std::memset(to, value, bytes); });
  return called("cudaMemsetAsync");
}
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes*, const void*) { return called("cudaFuncGetAttributes"); }
cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void*, cudaJitOption*, void**, unsigned,
                                cudaLibraryOption*, void**, unsigned) {
  if (!fake_cublaslt().source) return cudaErrorInvalidValue;
  ++fake_cublaslt().open;
  *library = reinterpret_cast<cudaLibrary_t>(&source_token);
  return called("cudaLibraryLoadData");
}
cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t, const char*) {
  *kernel = reinterpret_cast<cudaKernel_t>(&source_token);
  return called("cudaLibraryGetKernel");
}
cudaError_t cudaLibraryUnload(cudaLibrary_t) {
  --fake_cublaslt().open;
  return called("cudaLibraryUnload");
}
cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments, size_t, cudaStream_t stream) {
  called("cudaLaunchKernel");
  if (kernel == &source_token) {
    const bool counts = *static_cast<bool*>(arguments[1]);
    run_kernel<float>(stream, grid, block, arguments[0],
                      [=](const auto& launch, unsigned char*) { fake_cublaslt().source(&launch, counts); });
    return cudaSuccess;
  }
  if (launch_one_of<float>(stream, kernel, grid, block, arguments) ||
      launch_one_of<double>(stream, kernel, grid, block, arguments))
    return cudaSuccess;
  auto* const busy = *static_cast<std::int32_t**>(arguments[0]);
  if (kernel == gemm_count_kernel()) {
    queue(stream, [=] { end_pass(busy); });
    return cudaSuccess;
  }
  if (kernel != gemm_enter_kernel() && kernel != gemm_repeat_kernel()) return cudaErrorInvalidValue;
  const std::int32_t floor = *static_cast<std::int32_t*>(arguments[1]);
  const auto again = *static_cast<cudaGraphConditionalHandle*>(arguments[2]);
  const bool ends = kernel == gemm_repeat_kernel();
  queue(stream, [=] { conditions()[again] = ends ? end_pass(busy) > floor : has_work(busy, floor); });
  return cudaSuccess;
}

}  // extern "C"
