// One trajectory forward with a record, and back again, vectorised over components and over what the right-hand side
// offers for one sample: the path of the smallest ensembles. Its states have the engine's bits.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/ode/cpu/step_record.h"
#include "lockstep/ode/cpu/tile_state.h"
#include "lockstep/ode/differentiable_tile.h"
#include "lockstep/ode/gradient.h"

namespace lockstep::ode::cpu {

// All that the loops below work on. Rows of `width` numbers: components, padded to whole registers.
template <class T>
struct SampleWork {
  SampleWork(const Problem& problem, const Options& options, const DifferentiableSample<T>& rhs);

  struct Step {
    double t, t_new, h;
    std::size_t first_save, end_save;  // save points within
    bool interpolated;
  };

  static constexpr std::size_t kMostBytes = std::size_t{1} << 25;  // of records
  static constexpr std::size_t kStepsAChunk = 16;
  // Of the next step to be recorded: its stage arguments [stage - 1][width] and the function's records behind them.
  std::byte* slot(std::size_t step) { return chunks[step / kStepsAChunk].data() + step % kStepsAChunk * slot_bytes; }
  T* argument(std::size_t step, std::size_t stage) { return reinterpret_cast<T*>(slot(step)) + (stage - 1) * width; }
  std::byte* recorded(std::size_t step, std::size_t stage) {
    return slot(step) + (total - 1) * width * sizeof(T) + (stage - 1) * rhs->record_bytes();
  }
  // False when the next step finds no room.
  bool make_room();

  const DifferentiableSample<T>* rhs;
  LoweredTableau<T> tableau;
  std::size_t components, width, stages, total, save_points, slot_bytes;
  T rtol;
  double rtol_f64, max_step, initial_step, dt;
  std::vector<double> atol_f64;  // [component]
  std::int64_t max_steps;
  float beta1, beta2;
  bool fixed;
  AlignedBuffer<T> atol;  // [width], 1 past the components

  // The trajectory.
  double t_start = 0, t_end = 0;
  const double* save_times = nullptr;
  AlignedBuffer<T> parameters, y, y1, k, errors;  // k [stage][width]
  AlignedBuffer<T> states;                        // [time][component]
  AlignedBuffer<double> theta;                    // [time], where it lies in its step
  AlignedBuffer<T> weights;                       // [interpolant stage][time]
  std::size_t weights_stride;
  std::size_t saved = 0, saved_at_start = 0;
  TrajectoryRecord outcome;
  std::vector<Step> steps;
  std::vector<AlignedBuffer<std::byte>> chunks;
  AlignedBuffer<std::byte> start_record, workspace, cotangents;
  AlignedBuffer<T> initial;

  // Cotangents.
  AlignedBuffer<T> y_bar, k_first_bar, k_bar, argument_bar, input_bar, parameter_bar, sum;
  std::vector<RecordedEvaluation> pending;
};

// The loops, compiled for each instruction set.
template <class T>
struct SampleSweeps {
  bool (*forward)(SampleWork<T>&);  // false: no room for the record
  void (*backward)(SampleWork<T>&, const T* states_bar);
};
template <class T>
SampleSweeps<T> sample_sweeps(CpuTarget target);

template <class T>
class AdjointSample {
 public:
  // Ensembles of up to this many trajectories are taken one by one.
  static constexpr std::size_t kMostTrajectories = 8;
  // has_stops: whether steps end where they must.
  static bool suits(const Problem& problem, const Options& options, const DifferentiableTile<T>& rhs, bool has_stops);

  // All are kept by reference.
  AdjointSample(const Problem& problem, const Options& options, const DifferentiableSample<T>& rhs, CpuTarget target);

  // False when the record outgrows SampleWork::kMostBytes: the trajectory is for a tile then.
  bool forward(std::size_t trajectory);
  std::span<const T> states() const { return {work_.states.data(), work_.save_points * work_.components}; }
  std::size_t saved() const { return work_.saved; }  // save points reached
  const TrajectoryRecord& record() const { return work_.outcome; }
  std::vector<AcceptedStep> steps() const;
  std::array<LongStep<T>, LongStep<T>::kOfATrajectory> long_steps();

  // Once after forward(). states_bar [time][component], followed by work_.width numbers that may be read.
  void backward(const T* states_bar, T* gradient);
  T initial_state_bar(std::size_t component) const { return work_.y_bar[component]; }
  T parameter_bar(std::size_t parameter) const { return work_.parameter_bar[parameter]; }
  std::size_t width() const { return work_.width; }

 private:
  const Problem& problem_;
  std::size_t trajectory_ = 0;
  SampleWork<T> work_;
  SampleSweeps<T> sweeps_;
};

extern template class AdjointSample<float>;
extern template class AdjointSample<double>;

}  // namespace lockstep::ode::cpu
