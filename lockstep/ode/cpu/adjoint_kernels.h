// The vector work of a step's transpose on a tile, compiled for each instruction set. Arrays are [component][lane].
#pragma once

#include "lockstep/kernels/cpu_target.h"
#include "lockstep/ode/cpu/linear_tile.h"
#include "lockstep/ode/cpu/tile_state.h"

namespace lockstep::ode::cpu {

// Cotangents on their way back, of the first `lanes` lanes: kernels compute the registers that hold those. A lane that
// took no part in a step keeps `y` and `k_first` as they are.
template <class T>
struct TileCotangents {
  TileCotangents(std::size_t components, int stages)
      : y(components * kTileLanes),
        k_first(components * kTileLanes),
        y1(components * kTileLanes),
        stage_argument(components * kTileLanes),
        k(static_cast<std::size_t>(stages) * components * kTileLanes),
        saved(components * kTileLanes) {}

  AlignedBuffer<T> y;               // of the state before the step
  AlignedBuffer<T> k_first;         // of k_1, which the step before evaluated as its k_s
  AlignedBuffer<T> y1;              // of the state after it
  AlignedBuffer<T> stage_argument;  // of Y_i
  AlignedBuffer<T> k;               // [stage]
  AlignedBuffer<T> saved;           // of states saved within the step
  alignas(64) T h[kTileLanes] = {};  // 0 in lanes that took no part
  alignas(64) double theta[kTileLanes];
  int lanes = kTileLanes;
};

template <class T>
struct AdjointKernels {
  // k_s = k_first, y1 = y and y = 0 in the lanes of `accepted`; every other k and, in other lanes, y1 are zero; so is
  // stage_argument.
  void (*begin)(TileCotangents<T>&, std::size_t components, int stages, int total_stages, LaneMask accepted);
  // A save point within the step at theta: y += saved, k_j += h p_j(theta) saved.
  void (*interpolate)(TileCotangents<T>&, std::size_t components, const LoweredTableau<T>&);
  // Y_i = y + h sum_j a_ij k_j: y += stage_argument, k_j += h a_ij stage_argument; then stage_argument = 0.
  void (*stage)(TileCotangents<T>&, std::size_t components, const StageSum<T>& row);
  // out = t + c h, by one fma.
  void (*stage_times)(const double* t, const double* h, double c, double* out, int lanes);
  // k_first = k_1 in the lanes of `accepted`.
  void (*end)(TileCotangents<T>&, std::size_t components, LaneMask accepted);
  // out = in in the lanes of `kept`, row by row of `width` numbers, else the row of `other` [components][lane] that
  // comes round.
  void (*merge)(T* in_out, std::size_t rows, std::size_t width, const T* other, std::size_t components, LaneMask kept,
                int lanes);
  // Of a linearly implicit method: J in linear.matrix becomes the factors of W = 1/gamma - h J.
  void (*factor)(const LinearTile<T>& linear, T inverse_gamma, const T* h, int lanes);
  // rows [component][lane] become W^-1 or W^-T times them.
  void (*solve)(const LinearTile<T>& linear, T* rows, int lanes);
  void (*solve_transposed)(const LinearTile<T>& linear, T* rows, int lanes);
  // k_j += w_j from, for the terms of `row`.
  void (*spread)(TileCotangents<T>&, std::size_t components, const StageSum<T>& row, const T* from);
  // out = h in, of a number h for each lane.
  void (*scale)(const T* h, std::size_t rows, const T* in, T* out, int lanes);
  // out += h in, rounded twice.
  void (*add_scaled)(const T* h, std::size_t rows, const T* in, T* out, int lanes);
  // out = from + sum_j (h a_ij) k_j, as add_scaled() would add them one by one: k is [stage][rows][lane]. Null for
  // zeros.
  void (*stage_sum)(const T* h, std::size_t rows, const StageSum<T>& row, const T* k, const T* from, T* out, int lanes);
  // h p_j(theta) of the interpolant's stages, one after another, by what interpolate() computes.
  void (*interpolant_weights)(const LoweredTableau<T>&, double theta, double h, T* weights);
  // sum_i weights[i] h(states[i] - targets[i]) in float64, eight sums side by side that are then added in halves;
  // bar[i] is its derivative by states[i]. h(e) is e^2, and beyond thresholds[i], where there are any,
  // thresholds[i] (2 |e| - thresholds[i]). A target that is NaN adds nothing.
  double (*squared_error)(const T* states, const double* targets, const double* weights, const double* thresholds,
                          std::size_t count, T* bar);
};

template <class T>
const AdjointKernels<T>& adjoint_kernels(CpuTarget target);

}  // namespace lockstep::ode::cpu
