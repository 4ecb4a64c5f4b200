#include "lockstep/ode/cuda/gemm/gemm_pass.cuh"

#include <algorithm>
#include <utility>

#include "lockstep/ode/cuda/gemm/round_launch.h"

namespace lockstep::ode::cuda {
namespace {

Fault launch_kernel(cudaStream_t stream, const void* kernel, std::int64_t blocks, int threads, void** arguments,
                    const char* name) {
  return fault_of(cudaLaunchKernel(kernel, dim3(static_cast<unsigned>(blocks)), dim3(static_cast<unsigned>(threads)),
                                   arguments, 0, stream),
                  std::string("kernel ") + name);
}

template <class T>
Fault activate_product(cudaStream_t stream, const GemmProgram& program, std::int32_t columns, const Product& product) {
  const DenseProduct& what = product.what();
  ActivationLaunch<T> launch{
      .in = static_cast<const T*>(program.plain),
      .bias = product.remainder() == Remainder::bias_and_activation ? static_cast<const T*>(what.bias) : nullptr,
      .out = what.out,
      .columns = columns,
      .pitch = what.out_pitch,
      .activation = static_cast<std::int32_t>(what.activation.kind),
      .alpha = what.activation.alpha,
      .mode = what.last ? MatrixPrecision::f32 : program.mode};
  const std::int64_t fours = std::int64_t{columns} * what.out_pitch / 4;
  // Four numbers a thread, and no more blocks than a large GPU holds a few times.
  const std::int64_t blocks = std::min<std::int64_t>((fours + kGemmThreads - 1) / kGemmThreads, 8192);
  void* arguments[] = {&launch};
  return launch_kernel(stream, gemm_kernels<T>().activate, blocks, kGemmThreads, arguments, "gemm_activate");
}

}  // namespace

Fault fault_of(cudaError_t error, std::string where) {
  if (error == cudaSuccess) return {};
  cudaGetLastError();  // leaves nothing behind for the next call
  return {true, error == cudaErrorMemoryAllocation, std::move(where),
          std::string(cudaGetErrorString(error)) + " (" + cudaGetErrorName(error) + ")"};
}

GemmPass::Launch GemmPass::copy(const GemmProgram& program, const void* launch) {
  if (program.float64) return *static_cast<const GemmLaunch<double>*>(launch);
  return *static_cast<const GemmLaunch<float>*>(launch);
}

GemmPass::GemmPass(cublasLtHandle_t handle, cudaStream_t stream, const GemmProgram& program, const void* launch,
                   std::int32_t columns, std::size_t level, const void* own_advance, Fault& fault)
    : program_(program), launch_(copy(program, launch)), columns_(columns), own_advance_(own_advance) {
  std::visit(
      [&](auto& own) {
        own.columns = columns;
        on_device_ = own.copies + level;
        fault = fault_of(cudaMemcpyAsync(on_device_, &own, sizeof own, cudaMemcpyHostToDevice, stream),
                         "copy to the device");
      },
      launch_);
  if (fault.happened) return;
  const std::int64_t pitch = std::visit([](const auto& own) { return own.pitch; }, launch_);
  for (const DenseProduct& product : program.products) {
    products_.push_back(std::make_unique<Product>(handle, program_, product, columns, pitch, fault));
    if (fault.happened) return;
  }
}

std::int32_t* GemmPass::busy() const {
  return std::visit([](const auto& own) { return own.busy; }, launch_);
}
unsigned long long* GemmPass::counter() const {
  return std::visit([](const auto& own) { return own.counter; }, launch_);
}
std::int32_t GemmPass::columns_of(const GemmProgram& program, const void* launch) {
  return program.float64 ? static_cast<const GemmLaunch<double>*>(launch)->columns
                         : static_cast<const GemmLaunch<float>*>(launch)->columns;
}
std::int64_t GemmPass::count_of(const GemmProgram& program, const void* launch) {
  return program.float64 ? static_cast<const GemmLaunch<double>*>(launch)->ensemble.count
                         : static_cast<const GemmLaunch<float>*>(launch)->ensemble.count;
}

std::string GemmPass::description() const {
  const auto fused = std::count_if(products_.begin(), products_.end(),
                                   [](const auto& product) { return product->remainder() == Remainder::nothing; });
  return "cuBLASLt " + cublaslt().version + " in " +
         (program_.float64 ? std::string("f64") : std::string(to_string(program_.mode))) + ", " +
         std::to_string(fused) + " of " + std::to_string(products_.size()) + " layers in one kernel";
}

Fault GemmPass::launch_columns(cudaStream_t stream, const void* kernel, void* argument, std::int32_t columns) const {
  void* launch = on_device_;
  void* arguments[] = {&launch, argument};
  return launch_kernel(stream, kernel, (columns + kGemmThreads - 1) / kGemmThreads, kGemmThreads, arguments,
                       "of the engine cuda_gemm");
}

Fault GemmPass::start(cudaStream_t stream) const {
  return std::visit([&](const auto& own) { return start(stream, &own); }, launch_);
}
Fault GemmPass::start(cudaStream_t stream, const void* launch) const {
  return std::visit(
      [&]<class Own>(const Own&) {
        auto ensemble = static_cast<const Own*>(launch)->ensemble;
        return launch_columns(stream, kernels().start, &ensemble, columns_);
      },
      launch_);
}

Fault GemmPass::activate(cudaStream_t stream, const Product& product) const {
  return program_.float64 ? activate_product<double>(stream, program_, columns_, product)
                          : activate_product<float>(stream, program_, columns_, product);
}

Fault GemmPass::rounds(cudaStream_t stream) const {
  for (int round = 0; round < program_.rounds; ++round) {
    for (const auto& product : products_) {
      if (const cublasStatus_t status = product->enqueue(stream); status != CUBLAS_STATUS_SUCCESS)
        return {true, status == CUBLAS_STATUS_ALLOC_FAILED, "cuBLASLt " + cublaslt().version,
                cublaslt().status_text(status)};
      if (product->remainder() == Remainder::nothing) continue;
      if (Fault fault = activate(stream, *product); fault.happened) return fault;
    }
    bool counts = round + 1 == program_.rounds;
    Fault fault = launch_columns(stream, own_advance_ != nullptr ? own_advance_ : kernels().advance, &counts, columns_);
    if (fault.happened) return fault;
  }
  return {};
}

Fault GemmPass::compact(cudaStream_t stream, std::int32_t target) const {
  void* launch = on_device_;
  void* arguments[] = {&launch, &target};
  Fault fault = launch_kernel(stream, kernels().plan, 1, kCompactionThreads, arguments, "gemm_plan");
  return fault.happened ? fault : launch_columns(stream, kernels().move, nullptr, target);
}

Fault GemmPass::count(cudaStream_t stream) const {
  std::int32_t* numbers = busy();
  void* arguments[] = {&numbers};
  return launch_kernel(stream, gemm_count_kernel(), 1, 1, arguments, "gemm_count");
}
Fault GemmPass::enter(cudaStream_t stream, std::int32_t floor, cudaGraphConditionalHandle again) const {
  std::int32_t* numbers = busy();
  void* arguments[] = {&numbers, &floor, &again};
  return launch_kernel(stream, gemm_enter_kernel(), 1, 1, arguments, "gemm_enter");
}
Fault GemmPass::repeat(cudaStream_t stream, std::int32_t floor, cudaGraphConditionalHandle again) const {
  std::int32_t* numbers = busy();
  void* arguments[] = {&numbers, &floor, &again};
  return launch_kernel(stream, gemm_repeat_kernel(), 1, 1, arguments, "gemm_repeat");
}

}  // namespace lockstep::ode::cuda
