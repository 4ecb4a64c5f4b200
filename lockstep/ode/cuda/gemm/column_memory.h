// Vectors of a trajectory that lie in the device's memory: columns of matrices [component][trajectory], so that threads
// side by side read and write side by side.
#pragma once

#include <cstdint>

#include "lockstep/kernels/lane/scalar_lane.h"

namespace lockstep::ode::cuda {

template <class T>
struct Column {
  T* first;
  std::int64_t pitch;  // numbers from one component to the next
  LOCKSTEP_HOST_DEVICE T& operator[](std::int64_t c) const { return first[c * pitch]; }
};

// What Trajectory takes in place of a thread's own memory.
template <class T>
struct ColumnMemory {
  using Row = Column<T>;
  using ConstRow = Column<T>;
  struct Scratch {
    LOCKSTEP_HOST_DEVICE explicit Scratch(const ColumnMemory& memory) : column(memory.scratch_) {}
    LOCKSTEP_HOST_DEVICE Row row() const { return column; }
    Column<T> column;
  };
  struct Stages {
    T* first;
    std::int64_t stage, pitch;  // numbers from one stage to the next, from one component to the next
    LOCKSTEP_HOST_DEVICE Column<T> operator[](std::int64_t i) const { return {first + i * stage, pitch}; }
  };

  Column<T> y_, y1_, scratch_;
  Stages k_;
};

}  // namespace lockstep::ode::cuda
