// What the kernels of the engine cuda_gemm read and write: plain data, for hosts and devices.
#pragma once

#include "lockstep/core/matrix_precision.h"
#include "lockstep/ode/cuda/block_trajectory.h"
#include "lockstep/ode/cuda/gemm/column_memory.h"
#include "lockstep/ode/cuda/launch.h"

namespace lockstep::ode::cuda {

// A net of the sum, between its first and its last matrix product.
template <class T>
struct GemmNet {
  void* in;      // [input][pitch], stored as `mode` says
  const T* out;  // [column][out_pitch], before the net's output scaling
  std::int32_t out_pitch;
  MatrixPrecision mode;
};

// A derivative that the products evaluate; parameters lie side by side.
template <class T, int most_components = kMostComponents>
class ProductDerivative : public OutsideDerivative<most_components, T> {
 public:
  static constexpr int kMostGathered = 0;
  using OutsideDerivative<most_components, T>::OutsideDerivative;
};

template <class T>
using GemmTrajectory = BlockTrajectory<T, ProductDerivative<T>, ColumnMemory<T>>;

// Vectors of a trajectory: the state, a stage's argument, scratch, and the stages.
inline constexpr int kVectorsBesideStages = 3;

// Numbers of GemmLaunch::busy: columns with work to do, as the last round of a pass counts them up from zero; what that
// was at the end of the last pass; and moves that were planned.
inline constexpr int kBusyNow = 0, kBusyLast = 1, kMoveCount = 2, kBusyNumbers = 4;

// Trajectories lie in columns; a column whose trajectory ends takes the next one that nobody has taken. Of the base,
// `weights` holds the nets' scalings and bounds, and PartProgram::net is read for where they lie. Kernels are handed
// where a copy lies on the device, for it is too large for what graphs are captured with (kMostCaptured); the ensemble
// comes by itself.
template <class T>
struct GemmLaunch : Launch<T> {
  GemmNet<T> nets[kMostParts];               // of the program's parts
  Ensemble<T>* placed;                       // where the start leaves the ensemble, for the kernels that go on
  T* vectors;                                // [vector][component][pitch]
  SavedTrajectory<T>* saved;                 // [column]
  std::int32_t columns;                      // in use; the ensemble's first so many at the start
  std::int32_t vector_count;
  std::int64_t pitch;   // columns that there is room for
  std::int32_t* busy;   // [kBusyNumbers]
  std::int32_t* moves;  // [2][pitch]: room for where columns go when there are fewer
  GemmLaunch* copies;   // [kMostLevels]: room for what the kernels read, for each number of columns
};

// The most numbers of columns that one solve is prepared for at once, each half of the one before.
inline constexpr std::size_t kMostLevels = 16;

// Bytes of arguments that any driver takes of a kernel in a graph: more has ended processes (openxla/xla pull request
// 19252).
inline constexpr std::size_t kMostCaptured = 4096;

}  // namespace lockstep::ode::cuda
