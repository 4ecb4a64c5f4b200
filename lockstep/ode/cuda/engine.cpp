#include "lockstep/ode/cuda/engine.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/ode/cuda/program.h"

namespace lockstep::ode::cuda {
namespace {

constexpr std::size_t kLeastBatch = 32;
// A batch should fill any GPU several times over, and a large ensemble be cut into several, so that the results of
// one travel while the next is computed.
constexpr std::size_t kGoodBatch = std::size_t{1} << 18;
constexpr std::size_t kGoodBatches = 8;

[[noreturn]] void refuse(const Fault& fault, const std::string& remedy) {
  throw Error(ErrorKind::unsupported,
              {.field = "cuda " + fault.where, .found = fault.text, .expected = "success", .remedy = remedy});
}

// An array that lies on the device and, for copies, in pinned host memory.
template <class Number>
struct Mirror {
  Number* host = nullptr;
  Number* device = nullptr;
  std::size_t size = 0;

  std::size_t bytes() const { return size * sizeof(Number); }
  bool allocate(Stream& stream, std::size_t numbers) {
    size = numbers;
    if (numbers == 0) return true;
    host = static_cast<Number*>(stream.allocate_pinned(bytes()));
    device = static_cast<Number*>(stream.allocate(bytes()));
    return host != nullptr && device != nullptr;
  }
  void upload(Stream& stream) const {
    if (size != 0) stream.upload(device, host, bytes());
  }
  void download(Stream& stream, std::size_t numbers) const {
    if (numbers != 0) stream.download(host, device, numbers * sizeof(Number));
  }
};

// What a batch of `most` trajectories needs, and the batch that is under way in it.
template <class T>
class Slot {
 public:
  Slot(const Problem& problem, const Lowered<T>& lowered, std::unique_ptr<Stream> stream)
      : problem_(problem), lowered_(lowered), stream_(std::move(stream)), launch_(lowered.launch) {}

  static std::size_t bytes_per_trajectory(const Problem& problem) {
    const std::size_t n = problem.rhs->components(), saves = problem.save_points();
    return (n * (saves + 2) + problem.rhs->parameters()) * sizeof(T) + sizeof(TrajectoryRecord) +
           (2 + (problem.save_times_per_trajectory ? saves : 0)) * sizeof(double);
  }

  // False when there is too little memory.
  bool allocate(std::size_t most) {
    stream_->free_all();
    const std::size_t n = problem_.rhs->components(), m = problem_.rhs->parameters(), saves = problem_.save_points();
    const auto each = [most](bool own) { return own ? most : std::size_t{1}; };
    const bool fits = initial_.allocate(*stream_, most * n) &&
                      parameters_.allocate(*stream_, each(own_parameters()) * m) &&
                      start_.allocate(*stream_, each(own_starts())) && end_.allocate(*stream_, each(own_ends())) &&
                      save_.allocate(*stream_, each(problem_.save_times_per_trajectory) * saves) &&
                      states_.allocate(*stream_, most * saves * n) && end_states_.allocate(*stream_, most * n) &&
                      records_.allocate(*stream_, most) && weights_.allocate(*stream_, lowered_.weights.size()) &&
                      counter_.allocate(*stream_, 1);
    if (!fits) return false;
    std::copy(lowered_.weights.begin(), lowered_.weights.end(), weights_.host);
    weights_.upload(*stream_);
    return true;
  }

  // Queues a batch; its inputs have been read when this returns.
  void start(std::size_t first, std::size_t count) {
    first_ = first;
    count_ = count;
    const std::size_t n = problem_.rhs->components(), m = problem_.rhs->parameters(), saves = problem_.save_points();
    round_into(initial_.host, &problem_.initial_states[first * n], count * n);
    if (m != 0) round_into(parameters_.host, problem_.parameters_of(first), (own_parameters() ? count : 1) * m);
    copy_into(start_.host, problem_.start_times, first, own_starts() ? count : 1);
    copy_into(end_.host, problem_.end_times, first, own_ends() ? count : 1);
    if (saves != 0)
      std::copy_n(problem_.save_times_of(first), (problem_.save_times_per_trajectory ? count : 1) * saves, save_.host);
    initial_.upload(*stream_);
    parameters_.upload(*stream_);
    start_.upload(*stream_);
    end_.upload(*stream_);
    save_.upload(*stream_);
    stream_->clear(counter_.device, counter_.bytes());
    const auto stride = [](bool own, std::size_t numbers) { return own ? static_cast<std::int64_t>(numbers) : 0; };
    launch_.ensemble = {.count = static_cast<std::int64_t>(count),
                        .initial_states = initial_.device,
                        .parameters = parameters_.device,
                        .parameter_stride = stride(own_parameters(), m),
                        .start_times = start_.device,
                        .start_stride = stride(own_starts(), 1),
                        .end_times = end_.device,
                        .end_stride = stride(own_ends(), 1),
                        .save_times = save_.device,
                        .save_stride = stride(problem_.save_times_per_trajectory, saves),
                        .save_points = static_cast<std::int32_t>(saves),
                        .states = states_.device,
                        .end_states = end_states_.device,
                        .records = records_.device};
    launch_.weights = weights_.device;
    launch_.counter = counter_.device;
    stream_->launch(lowered_.kernel, &launch_);
    states_.download(*stream_, count * saves * n);
    end_states_.download(*stream_, count * n);
    records_.download(*stream_, count);
  }

  Fault wait() { return stream_->wait(); }
  std::size_t first() const { return first_; }
  std::size_t count() const { return count_; }
  bool busy() const { return count_ != 0; }

  // Hands the finished batch to the sink, in blocks near a megabyte as the sinks like them.
  void deliver(SolutionSink& sink, Summary& summary) {
    const std::size_t n = problem_.rhs->components(), row = problem_.save_points() * n;
    const std::size_t by_memory = (std::size_t{1} << 20) / bytes_per_trajectory(problem_);
    const std::size_t size = std::clamp<std::size_t>(by_memory / kLeastBatch * kLeastBatch, kLeastBatch, 4096);
    for (std::size_t done = 0; done < count_; done += size) {
      const SolutionBlock block = sink.acquire(first_ + done, std::min(size, count_ - done));
      std::copy_n(states_.host + done * row, block.count * row, static_cast<T*>(block.state));
      std::copy_n(end_states_.host + done * n, block.count * n, static_cast<T*>(block.end_state));
      std::copy_n(records_.host + done, block.count, block.records);
      for (std::size_t i = 0; i < block.count; ++i) summary.add(block.records[i]);
      sink.commit(block);
    }
    count_ = 0;
  }

 private:
  bool own_parameters() const { return problem_.parameters.size() != problem_.rhs->parameters(); }
  bool own_starts() const { return problem_.start_times.size() != 1; }
  bool own_ends() const { return problem_.end_times.size() != 1; }

  static void round_into(T* to, const double* from, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<T>(from[i]);
  }
  static void copy_into(double* to, const std::vector<double>& times, std::size_t first, std::size_t count) {
    std::copy_n(times.begin() + static_cast<std::ptrdiff_t>(times.size() == 1 ? 0 : first), count, to);
  }

  const Problem& problem_;
  const Lowered<T>& lowered_;
  std::unique_ptr<Stream> stream_;
  Launch<T> launch_;
  Mirror<T> initial_, parameters_, states_, end_states_, weights_;
  Mirror<double> start_, end_, save_;
  Mirror<TrajectoryRecord> records_;
  Mirror<unsigned long long> counter_;
  std::size_t first_ = 0, count_ = 0;
};

// Two slots in turn: while one computes, the other's results are delivered.
template <class T>
class Batches {
 public:
  Batches(const Problem& problem, const Options& options, const DeviceTarget& target)
      : problem_(problem), target_(target), lowered_(lower_problem<T>(problem, options)) {
    const std::size_t total = problem.trajectories();
    const std::size_t share = target.memory_budget / kSlots / Slot<T>::bytes_per_trajectory(problem);
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
        slots_.emplace_back(problem_, lowered_, std::move(stream));
        fits = slots_.back().allocate(size_);
      }
      if (fits) return;
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
    summary_.kernel = "cuda " + lowered_.kernel + ", a thread a trajectory, batches of " + std::to_string(size_);
    return summary_;
  }

  const Problem& problem_;
  DeviceTarget target_;
  Lowered<T> lowered_;
  std::vector<Slot<T>> slots_;
  std::size_t size_ = 0;
  Summary summary_;
};

}  // namespace

template <class T>
Summary advance(const Problem& problem, const Options& options, const DeviceTarget& target, SolutionSink& sink,
                const RunControl& control) {
  if (problem.trajectories() == 0) return {};
  return Batches<T>(problem, options, target).run(sink, control);
}

template Summary advance<float>(const Problem&, const Options&, const DeviceTarget&, SolutionSink&, const RunControl&);
template Summary advance<double>(const Problem&, const Options&, const DeviceTarget&, SolutionSink&, const RunControl&);

}  // namespace lockstep::ode::cuda
