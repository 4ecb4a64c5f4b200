// A round of the engine cuda_gemm, beside its matrix products: each thread goes on with one trajectory, from the
// derivative that the products left to where the next one is wanted. And what makes fewer columns of many that are
// idle.
#pragma once

#include "lockstep/kernels/cuda/device_words.cuh"
#include "lockstep/kernels/cuda/thread_net.h"
#include "lockstep/ode/cuda/gemm/column.h"
#include "lockstep/ode/cuda/gemm/round_launch.h"

namespace lockstep::ode::cuda {

// Counts a block's columns that have work into launch.busy.
template <class T>
__device__ void count_busy(const GemmLaunch<T>& launch, bool busy) {
  const int count = __syncthreads_count(busy);
  if (threadIdx.x == 0 && count != 0) atomicAdd(launch.busy, count);
}

// Column i takes up trajectory i, if there is one: where a trajectory lies does not hang on the order of threads before
// columns are taken again, and so its products' sums do not. The ensemble goes where the kernels that follow find it:
// they may have been captured before it was known.
template <class T>
__device__ void start_columns(const GemmLaunch<T>& launch, const Ensemble<T>& ensemble) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kGemmThreads + threadIdx.x;
  if (column < launch.columns) ColumnTrajectory<T>(launch, ensemble, column).start([&] { return column; });
  if (column != 0) return;
  *launch.counter = static_cast<unsigned long long>(launch.columns);
  *launch.placed = ensemble;
  const std::int64_t count = ensemble.count;
  launch.busy[kBusyLast] = count < launch.columns ? static_cast<std::int32_t>(count) : launch.columns;
}

// Every column goes on by one evaluation, as a Column: a ColumnTrajectory. `counts`: the last round before somebody asks
// how many are busy.
template <class Column>
__device__ void advance_columns_as(const GemmLaunch<typename Column::T>& launch, bool counts) {
  const std::int64_t column = std::int64_t{blockIdx.x} * kGemmThreads + threadIdx.x;
  const auto take = [&] { return static_cast<std::int64_t>(atomicAdd(launch.counter, 1ull)); };
  const bool busy = column < launch.columns && Column(launch, *launch.placed, column).resume(take);
  if (counts) count_busy(launch, busy);
}
template <class T>
__device__ void advance_columns(const GemmLaunch<T>& launch, bool counts) {
  advance_columns_as<ColumnTrajectory<T>>(launch, counts);
}

// After the last round of a pass, by one thread: how many columns have work.
inline __device__ std::int32_t end_pass(std::int32_t* busy) {
  const std::int32_t now = busy[kBusyNow];
  busy[kBusyLast] = now;
  busy[kBusyNow] = 0;
  return now;
}
// Before the first pass of a repetition, by one thread: whether there is anything to repeat.
inline __device__ bool has_work(const std::int32_t* busy, std::int32_t floor) { return busy[kBusyLast] > floor; }

// For fewer columns: which of those from `target` on that have work go where. One block. There is room, since no more
// than `target` have work. The same whatever the order of threads, so that runs can be compared.
template <class T>
__device__ void plan_moves(const GemmLaunch<T>& launch, std::int32_t target, std::int32_t* shared) {
  const int thread = static_cast<int>(threadIdx.x);
  std::int32_t* const free_before = shared;                           // [thread + 1]
  std::int32_t* const busy_before = shared + kCompactionThreads + 1;  // [thread + 1]
  // A stretch of the columns that stay, and one of those that go, for each thread.
  const auto bound = [](std::int64_t first, std::int64_t last, int part) {
    return first + (last - first) * part / kCompactionThreads;
  };
  const auto is_busy = [&](std::int64_t column) { return ColumnTrajectory<T>::is_busy(launch, column); };
  std::int32_t free = 0, busy = 0;
  for (auto c = bound(0, target, thread); c < bound(0, target, thread + 1); ++c) free += is_busy(c) ? 0 : 1;
  for (auto c = bound(target, launch.columns, thread); c < bound(target, launch.columns, thread + 1); ++c)
    busy += is_busy(c) ? 1 : 0;
  free_before[thread + 1] = free;
  busy_before[thread + 1] = busy;
  __syncthreads();
  if (thread == 0) {
    free_before[0] = busy_before[0] = 0;
    for (int i = 1; i <= kCompactionThreads; ++i) {
      free_before[i] += free_before[i - 1];
      busy_before[i] += busy_before[i - 1];
    }
    launch.busy[kMoveCount] = busy_before[kCompactionThreads];
  }
  __syncthreads();
  free = free_before[thread];
  busy = busy_before[thread];
  for (auto c = bound(0, target, thread); c < bound(0, target, thread + 1); ++c) {
    if (!is_busy(c)) launch.moves[free++] = static_cast<std::int32_t>(c);
  }
  for (auto c = bound(target, launch.columns, thread); c < bound(target, launch.columns, thread + 1); ++c) {
    if (is_busy(c)) launch.moves[launch.pitch + busy++] = static_cast<std::int32_t>(c);
  }
}

// A thread for each move.
template <class T>
__device__ void move_columns(const GemmLaunch<T>& launch) {
  const std::int64_t i = std::int64_t{blockIdx.x} * kGemmThreads + threadIdx.x;
  if (i >= launch.busy[kMoveCount]) return;
  ColumnTrajectory<T>(launch, *launch.placed, launch.moves[i]).move_from(launch.moves[launch.pitch + i]);
}

// Four numbers of a column at a time, `kind` known to the compiler or (-1) not.
template <int kind, class T>
__device__ void activate_products_as(const ActivationLaunch<T>& launch) {
  using Four = FourNumbers<T>;
  const int fours = launch.pitch / 4;  // of a column
  const std::int64_t all = launch.columns * fours, step = std::int64_t{gridDim.x} * kGemmThreads;
  std::int64_t i = std::int64_t{blockIdx.x} * kGemmThreads + threadIdx.x;
  const int rest = static_cast<int>(step % fours);
  const T alpha = static_cast<T>(launch.alpha);
  for (int place = static_cast<int>(i % fours); i < all; i += step) {
    Four x = reinterpret_cast<const Four*>(launch.in)[i];
    if (launch.bias != nullptr) {
      const Four bias = reinterpret_cast<const Four*>(launch.bias)[place];
      for (int j = 0; j < 4; ++j) x.of[j] = ScalarLane<T>::add(x.of[j], bias.of[j]);
    }
    for (int j = 0; j < 4; ++j) {
      if constexpr (kind >= 0) {
        x.of[j] = lockstep::cuda::activate_unit<static_cast<ActivationKind>(kind)>(x.of[j], alpha);
      } else {
        x.of[j] = lockstep::cuda::activate_any(launch.activation, x.of[j], alpha);
      }
    }
    store_four_factors(launch.out, 4 * i, x, launch.mode);
    place += rest;
    if (place >= fours) place -= fours;
  }
}
template <class T>
__device__ void activate_products(const ActivationLaunch<T>& launch) {
  constexpr int identity = static_cast<int>(ActivationKind::identity), relu = static_cast<int>(ActivationKind::relu),
                tanh = static_cast<int>(ActivationKind::tanh);
  switch (launch.activation) {
    case identity:
      return activate_products_as<identity>(launch);
    case relu:
      return activate_products_as<relu>(launch);
    case tanh:
      return activate_products_as<tanh>(launch);
    default:
      return activate_products_as<-1>(launch);
  }
}

}  // namespace lockstep::ode::cuda
