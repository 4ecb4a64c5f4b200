// What a solve returns: states at the save points, and for each trajectory how it ended and what it cost.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <variant>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/precision.h"
#include "lockstep/ode/event_log.h"
#include "lockstep/ode/trajectory_record.h"

namespace lockstep::ode {

std::string_view to_string(Status status);

// Where an engine writes trajectories [first, first + count). Memory stays valid until the block is committed.
struct SolutionBlock {
  std::size_t first = 0;
  std::size_t count = 0;
  void* state = nullptr;      // T [trajectory][time][component]; NaN where a trajectory ended before the save point
  void* end_state = nullptr;  // T [trajectory][component], at end_time
  TrajectoryRecord* records = nullptr;      // [trajectory]
  std::size_t token = 0;                    // the sink's own
  const std::uint8_t* handed_in = nullptr;  // [trajectory], the engine's: 1 for rows that hand_in() passed on; or null
  TrajectoryEvents* events = nullptr;       // [trajectory], empty ones to be added to; null: not kept

  bool was_handed_in(std::size_t row) const { return handed_in != nullptr && handed_in[row] != 0; }
};

// Receives an ensemble block by block. The engine calls from many threads; blocks come in any order, each once.
class SolutionSink {
 public:
  virtual ~SolutionSink() = default;
  virtual SolutionBlock acquire(std::size_t first, std::size_t count) = 0;
  virtual void commit(const SolutionBlock& block) = 0;

  // A sink whose content outlives a killed process wants finished trajectories soon, not only when the last one of
  // their block is done. Whenever this number changes, engines that work long on a block hand in what they have.
  // Null: commit() is enough. A sink before another hands both calls on.
  virtual const std::atomic<std::uint32_t>* wishes() const { return nullptr; }
  // Rows of an acquired block that are final; each once, ascending. commit() follows for the whole block.
  virtual void hand_in(const SolutionBlock& /*block*/, std::span<const std::size_t> /*rows*/) {}
};

// An ensemble's solution in host memory. Rows are what a MemorySink's engine wrote, or whoever asked for block().
class Solution {
 public:
  Solution(Precision precision, std::size_t trajectories, std::size_t components, std::vector<double> times,
           bool times_per_trajectory);

  std::size_t trajectories() const { return records_.size(); }
  std::size_t components() const { return components_; }
  std::size_t save_points() const { return save_points_; }
  Precision precision() const { return state_.index() == 0 ? Precision::f32 : Precision::f64; }

  // [time], or [trajectory][time] when they differ.
  std::span<const double> times() const { return times_; }
  bool times_per_trajectory() const { return times_per_trajectory_; }

  // The state of one trajectory at one save point, one component; NaN if it ended before. Throws Error
  // (invalid_argument) for a place that is not there: without Problem::save_times there is no save point.
  double state(std::size_t trajectory, std::size_t time, std::size_t component) const;
  double end_state(std::size_t trajectory, std::size_t component) const;
  // All of it: [trajectory][time][component] and [trajectory][component]. Throws Error (invalid_argument) where T,
  // float or double, is not that of precision().
  template <class T>
  std::span<const T> states() const {
    return numbers<T>("states", state_);
  }
  template <class T>
  std::span<const T> end_states() const {
    return numbers<T>("end_states", end_state_);
  }
  const TrajectoryRecord& record(std::size_t trajectory) const { return records_[trajectory]; }
  std::span<const TrajectoryRecord> records() const { return records_; }

  // Where Problem::keep_events asks for it: the resets that struck a trajectory, in the order in which they did; else
  // none.
  bool keeps_events() const { return keeps_events_; }
  std::span<const ResetEvent> events(std::size_t trajectory) const {
    return keeps_events_ ? std::span<const ResetEvent>(events_[trajectory]) : std::span<const ResetEvent>();
  }
  EventLog event_log() const;  // of all trajectories; of none where none are kept
  // Makes room for them, before any block() is asked for.
  void keep_events();

  // The block that lets an engine write straight into this solution. Its memory may be written here for the first time,
  // and holds zeros until then.
  SolutionBlock block(std::size_t first, std::size_t count);
  // NaN for the states of trajectories that a stopped solve never took up; their end_time becomes 0.
  void mark_unreached();

 private:
  using Numbers = std::variant<AlignedBuffer<float>, AlignedBuffer<double>>;

  template <class T>
  std::span<const T> numbers(const char* asked, const Numbers& held) const {
    static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "T is float or double");
    const auto* const numbers = std::get_if<AlignedBuffer<T>>(&held);
    if (numbers == nullptr) refuse_number_type(asked);
    return numbers->span();
  }
  [[noreturn]] void refuse_number_type(const char* asked) const;

  std::size_t components_;
  std::size_t save_points_;
  std::vector<double> times_;
  bool times_per_trajectory_;
  Numbers state_;
  Numbers end_state_;
  std::vector<TrajectoryRecord> records_;
  std::vector<TrajectoryEvents> events_;  // [trajectory], or empty
  bool keeps_events_ = false;
};

// Writes into a Solution, which must outlive it; blocks are its own memory, so that nothing is left to do when one is
// finished. What was never acquired is NaN when the sink goes.
class MemorySink : public SolutionSink {
 public:
  explicit MemorySink(Solution& solution) : solution_(solution) {}
  ~MemorySink() override {
    if (acquired_.load() < solution_.trajectories()) solution_.mark_unreached();
  }
  MemorySink(const MemorySink&) = delete;
  MemorySink& operator=(const MemorySink&) = delete;
  SolutionBlock acquire(std::size_t first, std::size_t count) override {
    acquired_.fetch_add(count, std::memory_order_relaxed);
    return solution_.block(first, count);
  }
  void commit(const SolutionBlock&) override {}

 private:
  Solution& solution_;
  std::atomic<std::size_t> acquired_{0};  // trajectories
};

}  // namespace lockstep::ode
