// Thirty-two trajectories on their way: everything an engine's thread keeps of them, in structure-of-lanes order.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/kernels/tile.h"
#include "lockstep/ode/detail/stop_times.h"
#include "lockstep/ode/jacobian_tile.h"
#include "lockstep/ode/numerics.h"
#include "lockstep/ode/state_function.h"
#include "lockstep/ode/tableau.h"

namespace lockstep::ode::cpu {

using LaneMask = std::uint32_t;  // bit l is lane l
static_assert(kTileLanes == 32);

// A sum over stages, as the kernels walk it: nonzero coefficients only, stages ascending.
template <class T>
struct StageSum {
  struct Term {
    std::size_t stage;
    T weight;
  };
  std::vector<Term> terms;
};

// A tableau in the solve's precision.
template <class T>
struct LoweredTableau {
  explicit LoweredTableau(const Tableau& tableau);

  const Tableau* source;
  std::vector<StageSum<T>> rows;  // [stages + interpolant_stages]
  StageSum<T> error;
  StageSum<T> error3;
  std::vector<std::size_t> interpolant_stages;  // stages with a nonzero interpolant row, ascending
  // Of a linearly implicit method.
  T inverse_gamma = 0;
  std::vector<StageSum<T>> couplings;  // [stages]
  StageSum<T> middle, middle_slope;    // of the interpolant in the middle of a step, and its derivative by theta
  std::vector<T> time_weights;         // [stages]
};

template <class T>
struct GeneratedStep;  // generated_step.h

// Uniform over a solve.
template <class T>
struct StepSettings {
  const LoweredTableau<T>* tableau;
  const TileFunction<T>* rhs;
  T rtol;
  const T* atol;  // [component]
  double rtol_f64;
  const double* atol_f64;  // [component]; in float64 for the first step's size
  double max_step;
  double initial_step;  // 0: chosen by the engine
  float beta1, beta2;
  bool fixed;
  bool has_stops;    // whether any trajectory has: t_end and the times beside it below then are of TileState::stops
  bool keep_stages;  // save points, events or resets may lie within steps: the interpolant will read all stages
  bool few = false;  // trajectories: one register holds them, on every instruction set that code is generated for
  bool one_lane = false;                        // one trajectory alone
  const GeneratedStep<T>* generated = nullptr;  // what the kernels of generated_step.h run
  // Of a linearly implicit method; its linear equations lie in the tile's workspace from linear_tile_at on.
  const JacobianTile<T>* jacobian = nullptr;
  std::size_t linear_tile_at = 0;

  bool heads_for_stops() const { return has_stops && !fixed; }  // fixed steps only find them
};

template <class T>
struct TileState {
  TileState(std::size_t components, std::size_t parameters, int stages, std::byte* workspace);

  // Rows of kTileLanes numbers.
  T* stage(std::size_t i) { return k.data() + i * components * kTileLanes; }

  std::size_t components;
  AlignedBuffer<T> memory;  // of the following
  std::span<T> y, y1;       // [component][lane]: at t, and proposed at t_new
  std::span<T> k;           // [stage][component][lane]
  std::span<T> scratch;     // [component][lane]: arguments of stages, interpolated states
  std::span<T> parameters;  // [parameter][lane]
  std::byte* workspace;     // the right-hand side's, of the thread at work
  AlignedBuffer<T> packed;  // what attempts of one lane work on; empty until there is one

  int lanes = 0;  // the first `lanes` lanes are on their way

  // One number a lane.
  alignas(64) double t[kTileLanes] = {};
  alignas(64) double t_end[kTileLanes] = {};     // of the span, or of the way to the next stop
  alignas(64) double t_before[kTileLanes] = {};  // with stops: the time of stages at t_end
  alignas(64) double t_last[kTileLanes] = {};    // with stops: the time of stages at the end of the step attempted
  alignas(64) double t_behind[kTileLanes] = {};  // with stops and fixed steps: of the next step's first one
  detail::StopTimes stops[kTileLanes] = {};      // where the right-hand side jumps or bends
  alignas(64) double t_stage[kTileLanes] = {};
  alignas(64) double t_new[kTileLanes] = {};
  alignas(64) double h[kTileLanes] = {};      // proposed next step, signed
  alignas(64) double h_try[kTileLanes] = {};  // the step being attempted
  alignas(64) double error_squared[kTileLanes] = {};
  alignas(64) double log_error[kTileLanes] = {};
  alignas(64) double next_save[kTileLanes] = {};  // save time to come; infinite in the step's direction if none
  alignas(64) double theta[kTileLanes] = {};
  // Fixed steps.
  alignas(64) double t_start[kTileLanes] = {};
  alignas(64) double step_index[kTileLanes] = {};
  alignas(64) double step_count[kTileLanes] = {};
  alignas(64) double last_dt[kTileLanes] = {};

  // What the last attempt came to.
  LaneMask last = 0;  // would land on t_end
  LaneMask after_rejection = 0;
  LaneMask accepted = 0;
  LaneMask stuck = 0;     // rejected, and the next step would be too small
  LaneMask save_due = 0;  // accepted, and next_save lies within
};

template <class T>
LoweredTableau<T>::LoweredTableau(const Tableau& tableau) : source(&tableau) {
  const auto lower = [](std::span<const double> weights) {
    StageSum<T> sum;
    for (std::size_t j = 0; j < weights.size(); ++j) {
      if (weights[j] != 0) sum.terms.push_back({j, static_cast<T>(weights[j])});
    }
    return sum;
  };
  const auto total = static_cast<std::size_t>(tableau.stages + tableau.interpolant_stages);
  for (std::size_t i = 0; i < total; ++i) rows.push_back(lower(tableau.a.subspan(i * total, i)));
  error = lower(tableau.error);
  error3 = lower(tableau.error3);
  if (tableau.is_linearly_implicit()) {
    inverse_gamma = static_cast<T>(1 / tableau.gamma);
    const auto stages = static_cast<std::size_t>(tableau.stages);
    for (std::size_t i = 0; i < stages; ++i) couplings.push_back(lower(tableau.coupling.subspan(i * stages, i)));
    for (const double weight : tableau.time_weights) time_weights.push_back(static_cast<T>(weight));
  }
  const auto degree = static_cast<std::size_t>(tableau.interpolant_degree);
  for (std::size_t j = 0; j < total; ++j) {
    for (std::size_t m = 0; m < degree; ++m) {
      if (tableau.interpolant[j * degree + m] != 0) {
        interpolant_stages.push_back(j);
        break;
      }
    }
  }
  if (!tableau.is_linearly_implicit()) return;
  using D = ScalarLane<double>;
  for (const std::size_t j : interpolant_stages) {
    const double* p = &tableau.interpolant[j * degree];
    middle.terms.push_back({j, static_cast<T>(scalar::interpolant_weight<D>(p, tableau.interpolant_degree, 0.5))});
    middle_slope.terms.push_back({j, static_cast<T>(scalar::interpolant_slope<D>(p, tableau.interpolant_degree, 0.5))});
  }
}

template <class T>
TileState<T>::TileState(std::size_t n, std::size_t parameter_count, int stages, std::byte* rhs_workspace)
    : components(n),
      memory(((static_cast<std::size_t>(stages) + 3) * n + parameter_count) * kTileLanes),
      workspace(rhs_workspace) {
  std::span<T> left = memory.span();
  const auto take = [&left](std::size_t rows) {
    const std::span<T> taken = left.first(rows * kTileLanes);
    left = left.subspan(taken.size());
    return taken;
  };
  y = take(n);
  y1 = take(n);
  k = take(static_cast<std::size_t>(stages) * n);
  scratch = take(n);
  parameters = take(parameter_count);
}

}  // namespace lockstep::ode::cpu
