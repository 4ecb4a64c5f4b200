#include "lockstep/ode/cuda/gemm/gemm_engine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <string>

#include "lockstep/ode/cuda/batch_arrays.h"
#include "lockstep/ode/cuda/compile.h"
#include "lockstep/ode/cuda/engine.h"
#include "lockstep/ode/cuda/gemm/gemm_workspace.h"

namespace lockstep::ode::cuda {
namespace {

// A batch is many times its columns, so that few of them stand idle at its end; and an ensemble is cut into several.
constexpr std::size_t kTrajectoriesAColumn = 16;

template <class T>
class GemmBatches {
 public:
  GemmBatches(const Problem& problem, const Options& options, const GemmTarget& target)
      : problem_(problem),
        target_(target),
        lowered_(lower_gemm<T>(problem, options)),
        workspace_(lowered_),
        arrays_{{BatchArrays<T>(problem, lowered_.stops), BatchArrays<T>(problem, lowered_.stops)}} {
    const std::size_t total = problem.trajectories();
    columns_ = round_up(
        std::min({total, target.most_columns, target.memory_budget / 2 / workspace_.bytes_per_column()}), kColumnStep);
    columns_ = std::max(columns_, kColumnStep);
    const std::size_t share = target.memory_budget / 2 / batch_bytes(1);
    size_ = std::clamp(share, columns_, std::max(columns_, columns_ * kTrajectoriesAColumn));
    size_ = std::min(size_, std::max<std::size_t>(total, 1));
  }
  ~GemmBatches() {
    if (copies_ != nullptr) copies_->wait();  // where a failure left results on their way into memory that ends here
  }

  Summary run(SolutionSink& sink, const RunControl& control) {
    const std::size_t total = problem_.trajectories();
    allocate();
    std::size_t done = 0, delivered = 0;
    int turn = 0;
    const auto deliver = [&](BatchArrays<T>& arrays) {
      if (!arrays.busy()) return;
      if (const Fault fault = copies_->wait(); fault.happened) refuse(fault, remedy_for(fault));
      delivered += arrays.count();
      arrays.deliver(sink, summary_);
      if (control.progress) control.progress(delivered, total);
    };
    while (done < total && !control.cancelled()) {
      const std::size_t count = std::min(size_, total - done);
      BatchArrays<T>& arrays = arrays_[static_cast<std::size_t>(turn)];
      Fault fault = begin(arrays, done, count);
      // What the batch before left arrives and goes to the sink while the device is busy with this one.
      deliver(arrays_[static_cast<std::size_t>(1 - turn)]);
      if (!fault.happened) fault = finish(arrays);
      if (fault.happened) {
        // The batch is done again, in smaller pieces.
        if (!fault.out_of_memory || !halve()) refuse(fault, remedy_for(fault));
        arrays.forget();
        allocate();
        continue;
      }
      done += count;
      turn = 1 - turn;
    }
    deliver(arrays_[static_cast<std::size_t>(1 - turn)]);
    const std::string own = lowered_.source ? lowered_.source->name + ", " : "";
    summary_.kernel = "cuda gemm, " + own + gemm_->description() + ", " + std::to_string(columns_) +
                      " columns, batches of " + std::to_string(size_);
    return summary_;
  }

 private:
  // Of a batch and the one before it, which is being delivered.
  std::size_t batch_bytes(std::size_t trajectories) const {
    return 2 * trajectories * BatchArrays<T>::bytes_per_trajectory(problem_, lowered_.stops);
  }

  // Less of what takes more memory. False when there is nothing left to give up.
  bool halve() {
    if (size_ > columns_ &&
        (batch_bytes(size_) >= columns_ * workspace_.bytes_per_column() || columns_ <= kColumnStep)) {
      size_ = std::max(columns_, size_ / 2);
    } else if (columns_ > kColumnStep) {
      columns_ = round_up(columns_ / 2, kColumnStep);
      size_ = std::max(std::min(size_, columns_), size_ / 2);
    } else if (size_ > kLeastBatch) {
      size_ = std::max(kLeastBatch, size_ / 2);
    } else {
      return false;
    }
    return true;
  }

  void allocate() {
    while (!try_to_allocate()) {
      if (const Fault fault = stream_->take_fault(); fault.happened && !fault.out_of_memory)
        refuse(fault, remedy_for(fault));
      if (!halve()) {
        refuse({true, true, "memory", "not enough for " + std::to_string(columns_) + " trajectories"},
               "free memory on the device, save fewer times, or run on the CPU with --device cpu");
      }
    }
  }

  bool try_to_allocate() {
    stream_.reset();
    gemm_.reset();
    Fault fault;
    gemm_ = target_.gemm->open(target_.device, fault);
    if (gemm_ != nullptr) stream_ = target_.runtime->borrow_stream(target_.device, gemm_->native(), fault);
    if (stream_ != nullptr && copies_ == nullptr) copies_ = target_.runtime->open_stream(target_.device, fault);
    if (stream_ == nullptr || copies_ == nullptr)
      refuse(fault, "check the driver with nvidia-smi, or run on the CPU with --device cpu");
    add_source();
    return workspace_.allocate(*stream_, columns_) && arrays_[0].allocate(*stream_, size_) &&
           (size_ >= problem_.trajectories() || arrays_[1].allocate(*stream_, size_));
  }

  // The kernel that came as text, where there is one: compiled once.
  void add_source() {
    if (!lowered_.source) return;
    if (!image_) image_ = compile_for(*target_.runtime, target_.device, *lowered_.source);
    if (const Fault fault = gemm_->add_advance(*image_); fault.happened)
      refuse(fault, "update the driver, or run on the CPU with --device cpu");
  }

  // Queues a batch: its inputs, and rounds until half of the columns are idle.
  Fault begin(BatchArrays<T>& arrays, std::size_t first, std::size_t count) {
    workspace_.launch.ensemble = arrays.upload(*stream_, first, count);
    stream_->clear(workspace_.launch.counter, sizeof *workspace_.launch.counter);
    stream_->clear(workspace_.launch.busy, kBusyNumbers * sizeof *workspace_.launch.busy);
    workspace_.launch.columns = static_cast<std::int32_t>(std::min(columns_, round_up(count, kColumnStep)));
    if (const Fault fault = gemm_->prepare(workspace_.program, &workspace_.launch); fault.happened) return fault;
    gemm_->start();
    run_until_half_are_idle();
    return {};
  }

  // The rest of it. Its results are on their way then, on a stream of their own: the next batch need not wait for them.
  Fault finish(BatchArrays<T>& arrays) {
    for (;;) {
      std::int32_t busy = 0;
      if (const Fault fault = gemm_->wait(busy); fault.happened) return fault;
      if (busy == 0) break;
      const auto target = static_cast<std::int32_t>(round_up(static_cast<std::size_t>(busy), kColumnStep));
      gemm_->compact(target);
      workspace_.launch.columns = target;
      if (const Fault fault = gemm_->prepare(workspace_.program, &workspace_.launch); fault.happened) return fault;
      run_until_half_are_idle();
    }
    if (const Fault fault = stream_->wait(); fault.happened) return fault;
    arrays.download(*copies_);
    return {};
  }

  // Or until none has work, where fewer columns would be no gain.
  void run_until_half_are_idle() {
    const std::size_t now = static_cast<std::size_t>(workspace_.launch.columns);
    const std::size_t fewer = round_up(now / 2, kColumnStep);
    const std::size_t floor = now <= target_.least_columns || fewer >= now ? 0 : fewer;
    gemm_->run(static_cast<std::int32_t>(floor));
  }

  std::string remedy_for(const Fault& fault) const {
    if (fault.out_of_memory) return "free memory on the device, or run on the CPU with --device cpu";
    return "engine cuda_gemm: check the device with nvidia-smi, update the driver, or run on the CPU with --device cpu";
  }

  const Problem& problem_;
  GemmTarget target_;
  LoweredGemm<T> lowered_;
  std::optional<KernelImage> image_;  // of a kernel that came as text
  std::unique_ptr<GemmStream> gemm_;  // before what borrows from it
  std::unique_ptr<Stream> stream_;
  std::unique_ptr<Stream> copies_;  // of results to the host
  GemmWorkspace<T> workspace_;
  std::array<BatchArrays<T>, 2> arrays_;  // in turn
  std::size_t columns_ = 0, size_ = 0;
  Summary summary_;
};

}  // namespace

template <class T>
Summary advance_gemm(const Problem& problem, const Options& options, const GemmTarget& target, SolutionSink& sink,
                     const RunControl& control) {
  if (problem.trajectories() == 0) return {};
  return GemmBatches<T>(problem, options, target).run(sink, control);
}

template Summary advance_gemm<float>(const Problem&, const Options&, const GemmTarget&, SolutionSink&,
                                     const RunControl&);
template Summary advance_gemm<double>(const Problem&, const Options&, const GemmTarget&, SolutionSink&,
                                      const RunControl&);

}  // namespace lockstep::ode::cuda
