// A tile function that can be differentiated: what the adjoint of a solve asks of a right-hand side.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "lockstep/ode/state_function.h"

namespace lockstep::ode {

// One application of the transposed derivative, on a tile laid out as TileView is. With J_u and J_p the derivatives of
// out = f(t, u, p; w) by state and parameters:
//   in_bar += J_u^T out_bar,   parameter_bar += J_p^T out_bar,   time_bar += J_t^T out_bar.
// Only the first `lanes` lanes are wanted; the others hold finite or NaN garbage, as in TileView, and neither wanted
// lanes nor weight gradients depend on it. A lane among the first that does not count comes with finite inputs and
// out_bar = 0, and adds zeros. Nothing overlaps; all memory is 64-byte aligned.
template <class T>
struct ReverseTileView {
  const double* t;                         // [lane]
  const T* in;                             // [component][lane]
  const T* parameters;                     // [parameter][lane], null when there are none
  const T* out_bar;                        // [output][lane]
  T* in_bar;                               // [component][lane]
  T* parameter_bar;                        // [parameter][lane], null when there are none
  const std::byte* record;                 // [record_bytes()], of evaluate_recording() with the same inputs
  std::byte* cotangents;                   // [cotangent_bytes()], written for accumulate()
  const std::byte* next_record = nullptr;  // what `record` will be in the next call, where that is known: a hint
  T* time_bar = nullptr;                   // [lane], null where nobody asks; of tiles with knows_time() alone
  int lanes = kTileLanes;                  // 1 .. kTileLanes, at most those that `record` is of
};

// One application of the derivative itself, along a change of state and parameters at a fixed time:
//   out_dot = J_u in_dot + J_p parameter_dot.
// All memory is 64-byte aligned; nothing overlaps.
template <class T>
struct ForwardTileView {
  const double* t;         // [lane]
  const T* in;             // [component][lane]
  const T* parameters;     // [parameter][lane], null when there are none
  const T* in_dot;         // [component][lane]
  const T* parameter_dot;  // [parameter][lane], null when there are none
  T* out_dot;              // [output][lane]
  int lanes = kTileLanes;  // the first ones, that count
};

// What one evaluation and its reverse() left behind.
struct RecordedEvaluation {
  const std::byte* record;
  const std::byte* cotangents;
  const std::byte* later = nullptr;  // a record that will be read soon: a hint to bring it closer
  int lanes = kTileLanes;            // as in reverse()
};

// The same function for one trajectory at a time, of numbers side by side: for ensembles so small that most lanes of a
// tile would be idle. Forward bits are the tile's. Sums of weight gradients run in an order of their own.
template <class T>
class DifferentiableSample {
 public:
  virtual ~DifferentiableSample() = default;

  virtual std::size_t inputs() const = 0;        // components, then parameters, then what else the function reads
  virtual std::size_t record_bytes() const = 0;  // these are multiples of 64
  virtual std::size_t cotangent_bytes() const = 0;
  virtual std::size_t workspace_bytes() const = 0;

  // out[component]; `record` null: nothing is recorded.
  virtual void evaluate(double t, const T* in, const T* parameters, T* out, std::byte* record,
                        std::byte* workspace) const = 0;
  // in_bar[input] = J^T out_bar, parameters after the state.
  virtual void reverse(const std::byte* record, const T* out_bar, T* in_bar, std::byte* cotangents,
                       std::byte* workspace) const = 0;
  // Adds evaluations to sum[sum_size()], zero at first; its bits do not depend on how they are grouped into calls.
  virtual std::size_t sum_size() const = 0;
  virtual void accumulate(std::span<const RecordedEvaluation> evaluations, T* sum) const = 0;
  // gradient[weight] += sum.
  virtual void add_gradient(const T* sum, T* gradient) const = 0;
};

// Any number of threads may use one at a time; set_weights() needs it to itself.
template <class T>
class DifferentiableTile : public TileFunction<T> {
 public:
  // As evaluate(), with the same bits; leaves in `record` what reverse() and accumulate() need of the first tile.lanes
  // lanes.
  virtual void evaluate_recording(const TileView<T>& tile, std::byte* /*record*/, std::byte* workspace) const {
    this->evaluate(tile, workspace);
  }
  virtual std::size_t record_bytes() const { return 0; }     // a multiple of 64
  virtual std::size_t cotangent_bytes() const { return 0; }  // a multiple of 64

  // Each lane's in_bar and parameter_bar depend on that lane alone. The workspace holds reverse_workspace_bytes().
  virtual void reverse(const ReverseTileView<T>& tile, std::byte* workspace) const = 0;
  virtual std::size_t reverse_workspace_bytes() const { return this->workspace_bytes(); }
  // Whether reverse() adds to time_bar: not where the time is handed to somebody's code.
  virtual bool knows_time() const { return false; }

  // Makes forward() ready at the present weights; where there is no such thing it stays so, and pushes_forward() false.
  // Needs the tile to itself. The workspace of forward() holds forward_workspace_bytes().
  virtual void prepare_forward() {}
  // Whether what it makes serves all solves to come.
  virtual bool keeps_forward() const { return false; }
  virtual bool pushes_forward() const { return false; }
  virtual void forward(const ForwardTileView<T>& /*tile*/, std::byte* /*workspace*/) const {}
  virtual std::size_t forward_workspace_bytes() const { return 0; }

  // Trainable numbers, in StateFunction::weights()' order.
  virtual std::size_t weights() const { return 0; }
  // Whether a tile that was just made is what set_weights() of its function's own weights leaves.
  virtual bool begins_with_own_weights() const { return weights() == 0; }
  virtual void set_weights(std::span<const T> /*weights*/) {}
  // gradient[weight] += J_w^T out_bar, summed over lanes and evaluations in an order of its own that is the same on
  // every instruction set.
  virtual void accumulate(std::span<const RecordedEvaluation> /*evaluations*/, T* /*gradient*/) const {}

  // One trajectory at a time with the same weights, or null where that is not to be had.
  virtual const DifferentiableSample<T>* sample() const { return nullptr; }
};

// Throws Error (unsupported) for a function that cannot be differentiated.
template <class T>
std::shared_ptr<DifferentiableTile<T>> lower_differentiable(const StateFunction& function, CpuTarget target);

// Its derivative along a direction, StateFunction::directional_f64(). Throws Error (unsupported) where that cannot be
// differentiated again.
template <class T>
std::shared_ptr<DifferentiableTile<T>> lower_directional(const StateFunction& function, CpuTarget target);

extern template std::shared_ptr<DifferentiableTile<float>> lower_differentiable(const StateFunction&, CpuTarget);
extern template std::shared_ptr<DifferentiableTile<double>> lower_differentiable(const StateFunction&, CpuTarget);
extern template std::shared_ptr<DifferentiableTile<float>> lower_directional(const StateFunction&, CpuTarget);
extern template std::shared_ptr<DifferentiableTile<double>> lower_directional(const StateFunction&, CpuTarget);

}  // namespace lockstep::ode
