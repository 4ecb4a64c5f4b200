#include "lockstep/ode/cuda/gemm/device_gemm.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/ode/cuda/compile.h"
#include "lockstep/ode/cuda/engine.h"

namespace lockstep::ode::cuda {
namespace {

constexpr const char* kCheckTheDevice = "check the device with nvidia-smi, and that the stream belongs to it";

// Numbers of columns, each half of the one before.
std::vector<std::int32_t> halvings(std::size_t columns, std::size_t least) {
  std::vector<std::int32_t> result;
  for (std::size_t next = columns;; next = round_up(next / 2, kColumnStep)) {
    if (!result.empty() && next >= static_cast<std::size_t>(result.back())) return result;
    result.push_back(static_cast<std::int32_t>(next));
    if (next <= least || result.size() == kMostLevels) return result;
  }
}

}  // namespace

template <class T>
DeviceGemm<T>::DeviceGemm(const Problem& problem, const Options& options, const GemmTarget& target, void* stream)
    : lowered_(lower_gemm<T>(problem, options)), workspace_(lowered_), stops_(lowered_.stops) {
  const std::size_t fitting = target.memory_budget / workspace_.bytes_per_column();
  columns_ = std::max(std::min(target.most_columns, fitting) / kColumnStep * kColumnStep, kColumnStep);
  std::optional<KernelImage> image;  // compiled once
  if (lowered_.source) image = compile_for(*target.runtime, target.device, *lowered_.source);
  for (;;) {
    Fault fault;
    stream_.reset();
    gemm_ = target.gemm->borrow(target.device, stream, fault);
    if (gemm_ != nullptr) stream_ = target.runtime->borrow_stream(target.device, stream, fault);
    if (stream_ == nullptr) refuse(fault, "check the driver with nvidia-smi");
    if (image) {
      if (fault = gemm_->add_advance(*image); fault.happened) refuse(fault, "update the driver");
    }
    if (workspace_.allocate(*stream_, columns_) && stops_.allocate(*stream_, 1)) {
      stops_.upload(*stream_, 0, 1);
      workspace_.launch.columns = static_cast<std::int32_t>(columns_);
      workspace_.launch.ensemble = {};  // no trajectories
      stream_->clear(workspace_.launch.saved, columns_ * sizeof *workspace_.launch.saved);
      fault = gemm_->prepare_all(workspace_.program, &workspace_.launch, halvings(columns_, target.least_columns));
      if (!fault.happened) {
        fault = gemm_->prepare_graphs();
        if (fault.happened && !fault.out_of_memory) {
          throw Error(ErrorKind::unsupported,
                      {.field = "options.engine",
                       .found = "cuda_gemm, and no CUDA graphs here that repeat themselves: " + fault.text,
                       .expected = "a driver of CUDA 12.4 or later: without those this engine has to ask between "
                                   "passes, and cannot only queue",
                       .remedy = "update the driver, use cuda_fused where it has a kernel, or ode::solve"});
        }
      }
      if (!fault.happened) fault = stream_->take_fault();
    } else {
      fault = stream_->take_fault();
      if (!fault.happened) fault = {true, true, "memory", "too little for " + std::to_string(columns_) + " columns"};
    }
    if (!fault.happened) break;
    if (!fault.out_of_memory) refuse(fault, kCheckTheDevice);
    if (columns_ <= kColumnStep) refuse(fault, "free memory on the device");
    columns_ = std::max(columns_ / 2 / kColumnStep * kColumnStep, kColumnStep);
  }
  description_ = "cuda_gemm, " + (lowered_.source ? lowered_.source->name + ", " : std::string()) +
                 gemm_->description() + ", " + std::to_string(columns_) + " columns";
}

template <class T>
void DeviceGemm<T>::enqueue(const Ensemble<T>& ensemble) {
  workspace_.launch.ensemble = ensemble;
  stops_.place(workspace_.launch.ensemble);
  if (const Fault fault = gemm_->enqueue(&workspace_.launch); fault.happened) refuse(fault, kCheckTheDevice);
}

template class DeviceGemm<float>;
template class DeviceGemm<double>;

}  // namespace lockstep::ode::cuda
