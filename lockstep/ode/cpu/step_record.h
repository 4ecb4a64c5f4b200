// What a tile's forward pass leaves for its way back: times of every step, and the arguments of every stage while
// memory lasts; before that, states at checkpoints from which steps are computed again.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/ode/cpu/reset_tile.h"
#include "lockstep/ode/cpu/tile_state.h"
#include "lockstep/ode/differentiable_tile.h"

namespace lockstep::ode::cpu {

// One attempt of the tile in which some lane moved. Rows [kept lane].
struct TileStep {
  std::size_t index;  // among all
  double* t;
  double* t_new;
  double* h;  // 0 in lanes that did not move
  // Of solves with stops: times of the stages at the step's end, and of the derivative behind a jump there. Else t_new.
  double* t_last;
  double* t_behind;
  LaneMask accepted;
  LaneMask renewed;   // lanes whose next step begins with a derivative of its own, at t_behind
  LaneMask reset;     // lanes whose state resets changed, within the step or behind what happens at its end
  bool interpolated;  // the stages that only the interpolant needs were evaluated
};

// Steps one after another, in pieces that stay where they are as more come, and for the next ones.
class TileSteps {
 public:
  std::size_t size() const { return size_; }
  const TileStep& operator[](std::size_t i) const { return pieces_[i / kPiece][i % kPiece]; }
  TileStep& back() { return pieces_[(size_ - 1) / kPiece][(size_ - 1) % kPiece]; }
  // One more; `index` and where rows lie are set.
  TileStep& add() {
    if (size_ == kPiece * pieces_.size()) add_piece();
    ++size_;
    return back();
  }
  // For new ones with rows of so many lanes, a multiple of 8.
  void clear(std::size_t lanes, bool has_stops) {
    size_ = 0;
    if (lanes == lanes_ && has_stops == has_stops_) return;
    lanes_ = lanes;
    has_stops_ = has_stops;
    pieces_.clear();
    rows_.clear();
  }

 private:
  static constexpr std::size_t kPiece = 16;

  void add_piece();

  std::size_t lanes_ = 0, size_ = 0;
  bool has_stops_ = false;
  std::vector<std::unique_ptr<TileStep[]>> pieces_;
  std::vector<AlignedBuffer<double>> rows_;  // [piece]
};

// What resets made of a lane's state in a step: at once, at a time that moves with the state where it crossed a
// threshold within the step, and is fixed where impulses at the step's end carried it over one, or a function leapt
// there.
template <class T>
struct ResetRecord {
  std::size_t step;
  bool within;
  bool leapt = false;                // within, at its end, by a leap of the function: at a fixed time all the same
  double t, seen;                    // when, and at which side of a jump there functions are evaluated
  double theta;                      // of a crossing within
  std::vector<double> rate;          // [component] du/dt before, along the interpolant; of a crossing within
  std::vector<double> rate_behind;   // [component] du/dt behind; empty where the trajectory ends there
  std::vector<ResetChange> changes;  // one behind the other, of one lane
  std::vector<T> behind;             // [component] the state with which the next step begins

  int lane() const { return changes.front().lane; }
};

// A step's stage arguments Y_i, i = 2 .. all stages, and what the right-hand side recorded there.
template <class T>
struct StageRecord {
  std::span<T> slopes;            // [stage - 1][component][kept lane], k_i that were solved for; else empty
  std::span<T> arguments;         // [stage - 1][component][kept lane]
  std::span<std::byte> recorded;  // [stage - 1][record_bytes()], empty when not kept
  bool usable = false;            // `recorded` belongs to `arguments`
};

// The first lanes of rows of kTileLanes.
template <class T>
void keep_rows(const T* rows, std::size_t count, std::size_t lanes, T* to) {
  if (lanes == kTileLanes) {
    std::copy_n(rows, count * kTileLanes, to);
    return;
  }
  for (; count-- > 0; rows += kTileLanes) to = std::copy_n(rows, lanes, to);
}

// Memory for records, zero-filled, that stays as long as this. Where there is much of it, many come out of one piece:
// large pieces are backed by large pages as they are first written, where records one by one would wait for the system
// at every 4 KiB.
class RecordMemory {
 public:
  // One more record, of at most so many from now on.
  template <class T>
  StageRecord<T> take(std::size_t slopes, std::size_t arguments, std::size_t recorded_bytes, std::size_t most) {
    const std::size_t bytes = (slopes + arguments) * sizeof(T) + recorded_bytes;
    if (bytes == 0) return {};
    if (left_ < bytes) add_piece(bytes, most);
    std::byte* const first = pieces_.back().data() + (pieces_.back().size() - left_);
    T* const numbers = reinterpret_cast<T*>(first);
    left_ -= bytes;
    return {
        {numbers, slopes}, {numbers + slopes, arguments}, {first + (slopes + arguments) * sizeof(T), recorded_bytes}};
  }

 private:
  void add_piece(std::size_t bytes, std::size_t most);

  std::vector<AlignedBuffer<std::byte>> pieces_;
  std::size_t left_ = 0;  // bytes of the last piece
  std::size_t all_ = 0;   // bytes of all
};

// A step of one trajectory.
template <class T>
struct LongStep {
  // That are looked at: the longest one, and one from the second half, wherever that is.
  static constexpr std::size_t kOfATrajectory = 2;

  std::size_t trajectory = 0;
  double t = 0, h = 0;   // h 0: none
  std::vector<T> state;  // [component], where it begins or close by
};

// Of a trajectory the largest local error that the method estimates of a derivative, in a step that took it to its
// largest value so far, relative to the largest along the trajectory, and in which step that was. 0 where the method is
// linearly implicit or does not estimate errors.
struct LocalError {
  double error = 0;
  double t = 0, h = 0;
};

// Some steps of a trajectory, evenly spaced however many they become.
template <class T>
struct StepSample {
  static constexpr std::size_t kMost = kTileLanes;
  std::size_t count = 0, stride = 1;
  std::vector<LongStep<T>> steps;

  // Whether the next step is one of them; add() it then.
  bool wants_next() { return count++ % stride == 0; }
  void add(LongStep<T> step) {
    if (steps.size() == kMost) {
      for (std::size_t i = 0; 2 * i < kMost; ++i) std::swap(steps[i], steps[2 * i]);
      steps.resize(kMost / 2);
      stride *= 2;
    }
    steps.push_back(std::move(step));
  }
};

template <class T>
struct Checkpoint {
  std::size_t step;
  AlignedBuffer<T> y, k_first;  // [component][lane]
};

// Stands for a right-hand side and keeps the arguments of its evaluations in the StageRecord it is pointed at; what
// follows a step's stages, as a look at its error, leaves no trace.
template <class T>
class Recorder final : public TileFunction<T> {
 public:
  Recorder(const DifferentiableTile<T>& rhs, std::size_t components) : rhs_(&rhs), components_(components) {}

  // So many lanes of the rows that are kept from now on.
  void keep_lanes(std::size_t lanes) { lanes_ = lanes; }
  // The next evaluations are stages 2 + `known`, ... of a step; null: not recorded.
  void point_at(StageRecord<T>* record, std::size_t known = 0) {
    record_ = record;
    stage_ = known;
  }
  // Stages since the second.
  std::size_t stages() const { return stage_; }
  std::size_t workspace_bytes() const override { return rhs_->workspace_bytes(); }
  void evaluate(const TileView<T>& tile, std::byte* workspace) const override {
    const std::size_t size = components_ * lanes_;
    if (record_ == nullptr || stage_ * size == record_->arguments.size()) return rhs_->evaluate(tile, workspace);
    keep_rows(tile.in, components_, lanes_, record_->arguments.data() + stage_ * size);
    if (record_->recorded.empty()) {
      rhs_->evaluate(tile, workspace);
    } else {
      rhs_->evaluate_recording(tile, record_->recorded.data() + stage_ * rhs_->record_bytes(), workspace);
    }
    ++stage_;
  }

 private:
  const DifferentiableTile<T>* rhs_;
  std::size_t components_, lanes_ = kTileLanes;
  StageRecord<T>* record_ = nullptr;
  mutable std::size_t stage_ = 0;
};

// Steps whose weight gradients are summed at a time: few enough that their records stay in the second-level cache.
inline constexpr std::size_t kSumSteps = 4;

// How a tile's records are divided over its share of memory.
struct RecordPlan {
  std::size_t segment_steps = 1;     // steps whose stages are kept at once
  std::size_t most_checkpoints = 2;  // beyond, every other one is dropped
  bool keep_recorded = false;        // the right-hand side's own records too
};

// `bytes` for one tile; `stages` counts what is kept of [component][lane], `recorded` the stages with a record too.
template <class T>
RecordPlan plan_records(std::size_t bytes, std::size_t components, std::size_t stages, std::size_t recorded,
                        std::size_t record_bytes, double expected_steps) {
  RecordPlan plan;
  const double stage_bytes = static_cast<double>(stages * components * kTileLanes * sizeof(T));
  const double with_records = stage_bytes + static_cast<double>(recorded * record_bytes);
  const double budget = 0.75 * static_cast<double>(bytes);
  plan.keep_recorded = record_bytes != 0 && expected_steps * with_records <= budget;
  const double steps = budget / (plan.keep_recorded ? with_records : stage_bytes) / static_cast<double>(kSumSteps);
  plan.segment_steps = kSumSteps * static_cast<std::size_t>(std::max(1.0, steps));
  const double checkpoint_bytes = static_cast<double>(2 * components * kTileLanes * sizeof(T));
  plan.most_checkpoints = static_cast<std::size_t>(std::max(2.0, 0.25 * static_cast<double>(bytes) / checkpoint_bytes));
  return plan;
}

}  // namespace lockstep::ode::cpu
