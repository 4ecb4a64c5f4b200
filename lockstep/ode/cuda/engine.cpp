#include "lockstep/ode/cuda/engine.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/ode/cuda/batch_arrays.h"
#include "lockstep/ode/cuda/compile.h"
#include "lockstep/ode/cuda/program.h"

namespace lockstep::ode::cuda {

void refuse(const Fault& fault, const std::string& remedy) {
  throw Error(ErrorKind::unsupported,
              {.field = "cuda " + fault.where, .found = fault.text, .expected = "success", .remedy = remedy});
}

namespace {

// Of this machine or of the container that the program runs in.
std::size_t host_memory() {
  std::size_t memory =
      static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  std::size_t limit = 0;
  if (std::ifstream("/sys/fs/cgroup/memory.max") >> limit) memory = std::min(memory, limit);
  return memory;
}

// Two batches run beside each other and should fill any GPU. A large ensemble is cut into many: the results of one
// travel while others are computed, but nothing is computed while the host pins memory for two, nor while the last
// travel.
constexpr std::size_t kGoodBatch = std::size_t{1} << 16;
constexpr std::size_t kGoodBatches = 32;
// Trajectories from which on a kernel of the problem's own shape is compiled, about two seconds, in place of a general
// one.
constexpr std::size_t kWorthCompiling = 100'000;

// What a batch of `most` trajectories needs, and the batch that is under way in it.
template <class T>
class Slot {
 public:
  Slot(const Problem& problem, const Lowered<T>& lowered, std::unique_ptr<Stream> stream)
      : lowered_(lowered), stream_(std::move(stream)), launch_(lowered.launch), arrays_(problem, lowered.stops) {}

  // False when there is too little memory.
  bool allocate(std::size_t most) {
    stream_->free_all();
    if (!arrays_.allocate(*stream_, most) || !weights_.allocate(*stream_, lowered_.weights.size()) ||
        !counter_.allocate(*stream_, 1))
      return false;
    std::copy(lowered_.weights.begin(), lowered_.weights.end(), weights_.host);
    weights_.upload(*stream_);
    return true;
  }

  // Queues a batch; its inputs have been read when this returns.
  void start(std::size_t first, std::size_t count) {
    launch_.ensemble = arrays_.upload(*stream_, first, count);
    stream_->clear(counter_.device, counter_.bytes());
    launch_.weights = weights_.device;
    launch_.counter = counter_.device;
    stream_->launch(lowered_.kernel, &launch_);
    arrays_.download(*stream_);
  }

  Fault wait() { return stream_->wait(); }
  std::size_t count() const { return arrays_.count(); }
  bool busy() const { return arrays_.busy(); }
  void deliver(SolutionSink& sink, Summary& summary) { arrays_.deliver(sink, summary); }
  Fault take_fault() { return stream_->take_fault(); }

 private:
  const Lowered<T>& lowered_;
  std::unique_ptr<Stream> stream_;
  BlockLaunch<T> launch_;
  BatchArrays<T> arrays_;
  Mirror<T> weights_;
  Mirror<unsigned long long> counter_;
};

// Two slots in turn: while one computes, the other's results are delivered.
template <class T>
class Batches {
 public:
  Batches(const Problem& problem, const Options& options, const DeviceTarget& target)
      : problem_(problem), target_(target), lowered_(lower_problem<T>(problem, options)) {
    const std::size_t total = problem.trajectories();
    const std::size_t share =
        target.memory_budget / kSlots / BatchArrays<T>::bytes_per_trajectory(problem, lowered_.stops);
    const std::size_t wanted = std::max(kGoodBatch, (total + kGoodBatches - 1) / kGoodBatches);
    set_size(std::min({share, wanted, total}));
  }

  Summary run(SolutionSink& sink, const RunControl& control) {
    const std::size_t total = problem_.trajectories();
    allocate();
    std::size_t next = 0, delivered = 0;
    while (delivered < total) {
      for (Slot<T>& slot : slots_) {
        if (slot.busy()) {
          if (const Fault fault = slot.wait(); fault.happened) {
            // Everything under way is done again, in smaller batches.
            if (!fault.out_of_memory || size_ <= kLeastBatch) refuse(fault, remedy_for(fault));
            set_size(size_ / 2);
            allocate();
            next = delivered;
            break;
          }
          delivered += slot.count();
          slot.deliver(sink, summary_);
          if (control.progress) control.progress(delivered, total);
        }
        if (control.cancelled()) return finish();
        if (next < total) {
          const std::size_t count = std::min(size_, total - next);
          slot.start(next, count);
          next += count;
        }
      }
    }
    return finish();
  }

 private:
  static constexpr std::size_t kSlots = 2;

  void set_size(std::size_t size) { size_ = std::max(kLeastBatch, size / kLeastBatch * kLeastBatch); }

  // Slots of the size wanted, or of the half as often as need be.
  void allocate() {
    for (;;) {
      slots_.clear();
      const std::size_t count = problem_.trajectories() <= size_ ? 1 : kSlots;
      bool fits = true;
      for (std::size_t i = 0; i < count && fits; ++i) {
        Fault fault;
        auto stream = target_.runtime->open_stream(target_.device, fault);
        if (stream == nullptr) refuse(fault, "check the driver with nvidia-smi, or run on the CPU with --device cpu");
        add_source_kernel(lowered_, problem_.trajectories() >= kWorthCompiling, *target_.runtime, target_.device,
                          *stream, image_);
        slots_.emplace_back(problem_, lowered_, std::move(stream));
        fits = slots_.back().allocate(size_);
      }
      if (fits) return;
      if (const Fault fault = slots_.back().take_fault(); fault.happened && !fault.out_of_memory)
        refuse(fault, remedy_for(fault));
      if (size_ <= kLeastBatch) {
        refuse({true, true, "memory", "not enough for " + std::to_string(kLeastBatch) + " trajectories"},
               "free memory on the device, save fewer times, or run on the CPU with --device cpu");
      }
      set_size(size_ / 2);
    }
  }

  std::string remedy_for(const Fault& fault) const {
    if (fault.out_of_memory) return "free memory on the device, or run on the CPU with --device cpu";
    return "kernel " + lowered_.kernel +
           ": check the device with nvidia-smi, update the driver, or run on the CPU "
           "with --device cpu";
  }

  Summary finish() {
    slots_.clear();
    const bool tiles = lowered_.kernel.starts_with("tiles") || (image_ && image_->threads_a_trajectory > 1);
    summary_.kernel = "cuda " + lowered_.kernel + (tiles ? ", a block a tile" : ", a thread a trajectory") +
                      ", batches of " + std::to_string(size_);
    return summary_;
  }

  const Problem& problem_;
  DeviceTarget target_;
  Lowered<T> lowered_;
  std::optional<KernelImage> image_;  // of a kernel that came as text
  std::vector<Slot<T>> slots_;
  std::size_t size_ = 0;
  Summary summary_;
};

}  // namespace

std::size_t memory_budget(int devices) {
  return std::min(std::size_t{2} << 30, host_memory() / 4 / static_cast<std::size_t>(std::max(devices, 1)));
}

template <class T>
Summary advance(const Problem& problem, const Options& options, const DeviceTarget& target, SolutionSink& sink,
                const RunControl& control) {
  if (problem.trajectories() == 0) return {};
  return Batches<T>(problem, options, target).run(sink, control);
}

template Summary advance<float>(const Problem&, const Options&, const DeviceTarget&, SolutionSink&, const RunControl&);
template Summary advance<double>(const Problem&, const Options&, const DeviceTarget&, SolutionSink&, const RunControl&);

}  // namespace lockstep::ode::cuda
