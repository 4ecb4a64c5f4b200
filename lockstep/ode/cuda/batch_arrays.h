// A batch of trajectories on its way through a device: what goes in and comes out, in device memory and in the pinned
// host memory that copies run from. For every engine on CUDA devices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/ode/cuda/ensemble.h"
#include "lockstep/ode/cuda/runtime.h"
#include "lockstep/ode/detail/stops.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode::cuda {

inline constexpr std::size_t kLeastBatch = 32;

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

// Where steps end: the times, the sides of each, and what happens to the state there. `stops` must stay.
class StopArrays {
 public:
  explicit StopArrays(const detail::Stops& stops) : stops_(stops) {}

  static std::size_t bytes_per_trajectory(const detail::Stops& stops) {
    if (!stops.differ()) return 0;
    const std::size_t changes = stops.most_changes(1);
    return stops.most(1) * (3 * sizeof(double) + (changes == 0 ? 0 : sizeof(std::int64_t))) + sizeof(std::int64_t) +
           changes * sizeof(detail::StateChange);
  }

  // For at most `most` trajectories, of the stream's memory. False when there is too little.
  bool allocate(Stream& stream, std::size_t most) {
    row_ = stops_.most(most);
    uploaded_ = false;
    const std::size_t changes = stops_.most_changes(most);
    return times_.allocate(stream, 3 * row_) && first_.allocate(stream, stops_.empty() ? 0 : sets(most) + 1) &&
           first_change_.allocate(stream, changes == 0 ? 0 : row_ + 1) && changes_.allocate(stream, changes);
  }

  // Queues the copy of those of `count` trajectories; of those that all share, once.
  void upload(Stream& stream, std::size_t first, std::size_t count) {
    if (stops_.empty() || uploaded_) return;
    std::size_t end = 0;
    std::int64_t changes = 0;
    for (std::size_t i = 0; i < sets(count); ++i) {
      const detail::StopTimes from = stops_.times(first + i);
      first_.host[i] = static_cast<std::int64_t>(end);
      double* to = times_.host + end;
      for (const double* times : {from.time, from.low, from.high}) {
        std::copy_n(times, from.count, to);
        to += row_;
      }
      if (changes_.size != 0) {
        for (std::int32_t k = 0; k < from.count; ++k) {
          first_change_.host[end + static_cast<std::size_t>(k)] = changes + from.first_change[k] - from.first_change[0];
        }
        const std::int64_t own = from.first_change[from.count] - from.first_change[0];
        std::copy_n(from.changes + from.first_change[0], own, changes_.host + changes);
        changes += own;
      }
      end += static_cast<std::size_t>(from.count);
    }
    if (changes_.size != 0) first_change_.host[end] = changes;
    first_.host[sets(count)] = static_cast<std::int64_t>(end);
    times_.upload(stream);
    first_.upload(stream);
    first_change_.upload(stream);
    changes_.upload(stream);
    uploaded_ = !stops_.differ();
  }

  // Says to an ensemble where they lie.
  template <class T>
  void place(Ensemble<T>& ensemble) const {
    if (stops_.empty()) return;
    const double* const device = times_.device;
    ensemble.stops = {device, device + row_, device + 2 * row_, static_cast<std::int32_t>(row_), stops_.times(0).fixed};
    if (changes_.size != 0) {
      ensemble.stops.first_change = first_change_.device;
      ensemble.stops.changes = changes_.device;
    }
    ensemble.first_stop = first_.device;
    ensemble.stop_stride = stops_.differ() ? 1 : 0;
  }

 private:
  std::size_t sets(std::size_t trajectories) const { return stops_.differ() ? trajectories : 1; }

  const detail::Stops& stops_;
  Mirror<double> times_;        // [time, low, high][stop]
  Mirror<std::int64_t> first_;  // [trajectory + 1], or of the one set that all share
  Mirror<std::int64_t> first_change_;  // [stop + 1], where there are changes
  Mirror<detail::StateChange> changes_;
  std::size_t row_ = 0;
  bool uploaded_ = false;  // those that all share
};

template <class T>
class BatchArrays {
 public:
  // Both must stay.
  BatchArrays(const Problem& problem, const detail::Stops& stops)
      : problem_(problem), stops_(stops), bytes_(bytes_per_trajectory(problem, stops)) {}

  static std::size_t bytes_per_trajectory(const Problem& problem, const detail::Stops& stops) {
    const std::size_t n = problem.rhs->components(), saves = problem.save_points();
    return (n * (saves + 2) + problem.rhs->parameters()) * sizeof(T) + sizeof(TrajectoryRecord) +
           (2 + (problem.save_times_per_trajectory ? saves : 0)) * sizeof(double) +
           StopArrays::bytes_per_trajectory(stops);
  }

  // For at most `most` trajectories, of the stream's memory. False when there is too little.
  bool allocate(Stream& stream, std::size_t most) {
    const std::size_t n = problem_.rhs->components(), m = problem_.rhs->parameters(), saves = problem_.save_points();
    const auto each = [most](bool own) { return own ? most : std::size_t{1}; };
    return initial_.allocate(stream, most * n) && parameters_.allocate(stream, each(own_parameters()) * m) &&
           start_.allocate(stream, each(own_starts())) && end_.allocate(stream, each(own_ends())) &&
           save_.allocate(stream, each(problem_.save_times_per_trajectory) * saves) &&
           states_.allocate(stream, most * saves * n) && end_states_.allocate(stream, most * n) &&
           records_.allocate(stream, most) && stops_.allocate(stream, most);
  }

  // Queues the copies of a batch's inputs, which have been read when this returns, and says where all of it lies.
  Ensemble<T> upload(Stream& stream, std::size_t first, std::size_t count) {
    first_ = first;
    count_ = count;
    const std::size_t n = problem_.rhs->components(), m = problem_.rhs->parameters(), saves = problem_.save_points();
    round_into(initial_.host, &problem_.initial_states[first * n], count * n);
    if (m != 0) round_into(parameters_.host, problem_.parameters_of(first), (own_parameters() ? count : 1) * m);
    copy_into(start_.host, problem_.start_times, first, own_starts() ? count : 1);
    copy_into(end_.host, problem_.end_times, first, own_ends() ? count : 1);
    if (saves != 0)
      std::copy_n(problem_.save_times_of(first), (problem_.save_times_per_trajectory ? count : 1) * saves, save_.host);
    initial_.upload(stream);
    parameters_.upload(stream);
    start_.upload(stream);
    end_.upload(stream);
    save_.upload(stream);
    const auto stride = [](bool own, std::size_t numbers) { return own ? static_cast<std::int64_t>(numbers) : 0; };
    Ensemble<T> placed{
        .count = static_cast<std::int64_t>(count),
        .initial_states = initial_.device,
        .initial_strides = {.trajectory = static_cast<std::int64_t>(n)},
        .parameters = parameters_.device,
        .parameter_stride = stride(own_parameters(), m),
        .parameter_component = 1,
        .gathered_parameters = 0,
        .start_times = start_.device,
        .start_stride = stride(own_starts(), 1),
        .end_times = end_.device,
        .end_stride = stride(own_ends(), 1),
        .save_times = save_.device,
        .save_stride = stride(problem_.save_times_per_trajectory, saves),
        .save_points = static_cast<std::int32_t>(saves),
        .states = states_.device,
        .state_strides = {.trajectory = static_cast<std::int64_t>(saves * n), .time = static_cast<std::int64_t>(n)},
        .end_states = end_states_.device,
        .end_strides = {.trajectory = static_cast<std::int64_t>(n)},
        .records = records_.device};
    stops_.upload(stream, first, count);
    stops_.place(placed);
    return placed;
  }

  // Queues the copies of the results.
  void download(Stream& stream) {
    const std::size_t n = problem_.rhs->components();
    states_.download(stream, count_ * problem_.save_points() * n);
    end_states_.download(stream, count_ * n);
    records_.download(stream, count_);
  }

  std::size_t first() const { return first_; }
  std::size_t count() const { return count_; }
  bool busy() const { return count_ != 0; }
  void forget() { count_ = 0; }

  // Hands the finished batch to the sink, in blocks near a megabyte as the sinks like them.
  void deliver(SolutionSink& sink, Summary& summary) {
    const std::size_t n = problem_.rhs->components(), row = problem_.save_points() * n;
    const std::size_t by_memory = (std::size_t{1} << 20) / bytes_;
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
  Mirror<T> initial_, parameters_, states_, end_states_;
  Mirror<double> start_, end_, save_;
  Mirror<TrajectoryRecord> records_;
  StopArrays stops_;
  std::size_t bytes_;  // a trajectory
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace lockstep::ode::cuda
