// One trajectory of an ensemble that advances by whole matrix products: its numbers lie in the device's memory, one
// column of matrices [component][trajectory], and go through registers only while a kernel works on them.
#pragma once

#include "lockstep/ode/cuda/gemm/factor.h"
#include "lockstep/ode/cuda/gemm/gemm_launch.h"
#include "lockstep/ode/cuda/program_derivative.h"

namespace lockstep::ode::cuda {

// A built-in system of the sum. Not inlined on a device: there are many, and few sums have one.
template <class T>
LOCKSTEP_HOST_DEVICE_CALL void evaluate_system_part(const PartProgram& part, T t, const T* u, const T* p, T* du) {
  ProgramDerivative<kMostComponents, 1, T>::evaluate_system(systems::AllSystems(), part.system, t, u, p, du);
}

// The trajectory of `ensemble` in column `column`, for a thread. Derivative is a ProductDerivative, with or without an
// event of its own; Terms: see derivative.h.
template <class Number, class Derivative = ProductDerivative<Number>, class Terms = BuiltInTerms>
class ColumnTrajectory {
  using L = ScalarLane<Number>;

 public:
  using T = Number;

  LOCKSTEP_HOST_DEVICE ColumnTrajectory(const GemmLaunch<T>& launch, const Ensemble<T>& ensemble, std::int64_t column)
      : launch_(launch),
        column_(column),
        scheme_(launch.method),
        derivative_(launch.program.components),
        trajectory_(ensemble, launch.rules, launch.event, scheme_, derivative_, memory(launch, column)) {}

  // Takes up the column's first trajectory. True when there is one.
  template <class Take>
  LOCKSTEP_HOST_DEVICE bool start(const Take& take) {
    trajectory_.start(take);
    return save();
  }

  // Goes on after the nets were evaluated. True while there is work.
  template <class Take>
  LOCKSTEP_HOST_DEVICE bool resume(const Take& take) {
    trajectory_.restore(launch_.saved[column_]);
    if (!trajectory_.busy()) return false;
    collect();
    trajectory_.resume(take);
    return save();
  }

  LOCKSTEP_HOST_DEVICE static bool is_busy(const GemmLaunch<T>& launch, std::int64_t column) {
    return launch.saved[column].busy();
  }

  // Takes over what another column holds, between evaluations.
  LOCKSTEP_HOST_DEVICE void move_from(std::int64_t from) {
    const std::int64_t rows = std::int64_t{launch_.vector_count} * launch_.program.components;
    for (std::int64_t row = 0; row < rows; ++row)
      launch_.vectors[row * launch_.pitch + column_] = launch_.vectors[row * launch_.pitch + from];
    trajectory_.restore(launch_.saved[from]);
    save();
    launch_.saved[from] = Trajectory::idle();
  }

 private:
  using Trajectory = BlockTrajectory<T, Derivative, ColumnMemory<T>>;

  static LOCKSTEP_HOST_DEVICE ColumnMemory<T> memory(const GemmLaunch<T>& launch, std::int64_t column) {
    const std::int64_t vector = launch.program.components * launch.pitch;
    T* const first = launch.vectors + column;
    return {{first, launch.pitch},
            {first + vector, launch.pitch},
            {first + 2 * vector, launch.pitch},
            {first + kVectorsBesideStages * vector, vector, launch.pitch}};
  }

  // The derivative where it belongs: the parts added up in order.
  LOCKSTEP_HOST_DEVICE void collect() {
    const Column<T> sum = trajectory_.derivatives();
    const int n = launch_.program.components;
    for (int i = 0; i < launch_.program.parts; ++i) {
      const PartProgram& part = launch_.program.part[i];
      if (part.system != kNetPart) {
        T u[Derivative::kMostComponents], du[Derivative::kMostComponents];
        for (int c = 0; c < n; ++c) u[c] = trajectory_.argument(c);
        const T* const p = trajectory_.parameters() + part.first_parameter;
        if constexpr (Terms::kOwn) {
          Terms::evaluate(i, trajectory_.time(), u, p, du);
        } else {
          evaluate_system_part(part, static_cast<T>(trajectory_.time()), u, p, du);
        }
        for (int c = 0; c < n; ++c) sum[c] = i == 0 ? du[c] : L::add(sum[c], du[c]);
        continue;
      }
      const T* const out = launch_.nets[i].out + column_ * launch_.nets[i].out_pitch;
      for (int c = 0; c < n; ++c) {
        T y = out[c];
        if (part.net.output_scale >= 0)
          y = L::fma(y, launch_.weights[part.net.output_scale + c], launch_.weights[part.net.output_shift + c]);
        sum[c] = i == 0 ? y : L::add(sum[c], y);
      }
    }
  }

  // What the nets are to be evaluated for next.
  LOCKSTEP_HOST_DEVICE void write_arguments() const {
    for (int i = 0; i < launch_.program.parts; ++i) {
      const PartProgram& part = launch_.program.part[i];
      if (part.system != kNetPart) continue;
      const GemmNet<T>& net = launch_.nets[i];
      int filled = 0;
      const auto put = [&](T x) {
        x = bounded_input(part, launch_.weights, filled, x);
        if (part.net.input_scale >= 0) {
          x = L::div(L::sub(x, launch_.weights[part.net.input_shift + filled]),
                     launch_.weights[part.net.input_scale + filled]);
        }
        store_factor(net.in, filled++ * launch_.pitch + column_, x, net.mode);
      };
      for (int c = 0; c < launch_.program.components; ++c) put(trajectory_.argument(c));
      for (int p = 0; p < part.parameters; ++p) put(trajectory_.parameters()[part.first_parameter + p]);
      if (part.with_time) put(static_cast<T>(trajectory_.time()));
    }
  }

  LOCKSTEP_HOST_DEVICE bool save() const {
    launch_.saved[column_] = trajectory_.save();
    if (!trajectory_.busy()) return false;
    write_arguments();
    return true;
  }

  const GemmLaunch<T>& launch_;
  std::int64_t column_;
  TableScheme<T> scheme_;
  Derivative derivative_;
  Trajectory trajectory_;
};

}  // namespace lockstep::ode::cuda
