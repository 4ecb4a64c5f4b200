// What the engine cuda_gemm keeps on a device for one problem: its matrices, its columns, and what lies between
// products.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "lockstep/ode/cuda/batch_arrays.h"
#include "lockstep/ode/cuda/gemm/gemm_program.h"
#include "lockstep/ode/cuda/gemm/gemm_runtime.h"

namespace lockstep::ode::cuda {

// Columns come in multiples of this, which tensor cores like.
inline constexpr std::size_t kColumnStep = 32;
// cuBLASLt's own advice for its workspace on cards of compute capability 9.0.
inline constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;

inline std::size_t round_up(std::size_t value, std::size_t step) { return (value + step - 1) / step * step; }

// `lowered` must stay.
template <class T>
class GemmWorkspace {
 public:
  explicit GemmWorkspace(const LoweredGemm<T>& lowered) : lowered_(lowered) {}

  // The ensemble and the columns in use are left to the caller.
  GemmLaunch<T> launch{};
  GemmProgram program;

  std::size_t bytes_per_column() const {
    const GemmLaunch<T>& shape = lowered_.launch;
    std::size_t bytes =
        static_cast<std::size_t>(shape.vector_count) * static_cast<std::size_t>(shape.program.components) * sizeof(T) +
        sizeof(SavedTrajectory<T>) + 2 * sizeof(std::int32_t);
    const auto widest = static_cast<std::size_t>(lowered_.widest);
    bytes += widest * (sizeof(T) + 2 * lowered_.factor_bytes());
    for (const auto& net : lowered_.nets) {
      bytes += static_cast<std::size_t>(net.layers.front().in_pitch) * lowered_.factor_bytes() +
               static_cast<std::size_t>(net.layers.back().out_pitch) * sizeof(T);
    }
    return bytes;
  }

  // Room for so many columns, of the stream's memory, and the matrices, whose upload is queued. False when there is too
  // little, for any of what was asked for.
  bool allocate(Stream& stream, std::size_t columns) {
    stream_ = &stream;
    const GemmLaunch<T>& shape = lowered_.launch;
    const std::size_t vectors =
        static_cast<std::size_t>(shape.vector_count) * static_cast<std::size_t>(shape.program.components) * columns;
    launch = shape;
    launch.pitch = static_cast<std::int64_t>(columns);
    launch.vectors = device<T>(vectors);
    launch.saved = device<SavedTrajectory<T>>(columns);
    launch.placed = device<Ensemble<T>>(1);
    launch.busy = device<std::int32_t>(kBusyNumbers);
    launch.moves = device<std::int32_t>(2 * columns);
    launch.counter = device<unsigned long long>(1);
    launch.copies = device<GemmLaunch<T>>(kMostLevels);
    launch.weights = uploaded(lowered_.scalings);
    program = {};
    program.float64 = sizeof(T) == 8;
    program.mode = lowered_.mode;
    program.workspace = device<std::byte>(kWorkspaceBytes);
    program.workspace_bytes = kWorkspaceBytes;
    program.plain = device<T>(static_cast<std::size_t>(lowered_.widest) * columns);
    program.rounds = std::max(1, lowered_.launch.method.stages - 1);  // about a step
    const bool fits = launch.vectors != nullptr && launch.saved != nullptr && launch.placed != nullptr &&
                      launch.busy != nullptr && launch.moves != nullptr && launch.counter != nullptr &&
                      launch.copies != nullptr && (launch.weights != nullptr || lowered_.scalings.empty()) &&
                      program.workspace != nullptr && program.plain != nullptr;
    return fits && add_products(columns);
  }

 private:
  bool add_products(std::size_t columns) {
    std::byte* const factors = uploaded(lowered_.factors);
    T* const biases = uploaded(lowered_.biases);
    const std::size_t factor = lowered_.factor_bytes(), widest = static_cast<std::size_t>(lowered_.widest);
    std::byte* const between[2] = {device<std::byte>(widest * columns * factor),
                                   device<std::byte>(widest * columns * factor)};
    if (factors == nullptr || biases == nullptr || between[0] == nullptr || between[1] == nullptr) return false;
    for (const auto& net : lowered_.nets) {
      const std::size_t in_bytes = static_cast<std::size_t>(net.layers.front().in_pitch) * columns * factor;
      std::byte* const in = device<std::byte>(in_bytes);
      const int out_pitch = net.layers.back().out_pitch;
      T* const out = device<T>(static_cast<std::size_t>(out_pitch) * columns);
      if (in == nullptr || out == nullptr) return false;
      stream_->clear(in, in_bytes);  // its padding stays zero
      launch.nets[net.part] = {in, out, out_pitch, lowered_.mode};
      for (std::size_t i = 0; i < net.layers.size(); ++i) {
        const GemmLayer& layer = net.layers[i];
        const bool first = i == 0, last = i + 1 == net.layers.size();
        program.products.push_back({.inputs = layer.inputs,
                                    .outputs = layer.outputs,
                                    .in_pitch = layer.in_pitch,
                                    .out_pitch = layer.out_pitch,
                                    .weights = factors + layer.weights,
                                    .bias = biases + layer.bias,
                                    .in = first ? in : between[(i + 1) % 2],
                                    .first = first,
                                    .out = last ? static_cast<void*>(out) : between[i % 2],
                                    .last = last,
                                    .activation = layer.activation});
      }
    }
    return true;
  }

  // Memory of the device; null where it was refused.
  template <class Number>
  Number* device(std::size_t count) {
    return count == 0 ? nullptr : static_cast<Number*>(stream_->allocate(count * sizeof(Number)));
  }
  template <class Number>
  Number* uploaded(const std::vector<Number>& numbers) {
    Mirror<Number> mirror;
    if (!mirror.allocate(*stream_, numbers.size())) return nullptr;
    std::copy(numbers.begin(), numbers.end(), mirror.host);
    mirror.upload(*stream_);
    return mirror.device;
  }

  const LoweredGemm<T>& lowered_;
  Stream* stream_ = nullptr;
};

}  // namespace lockstep::ode::cuda
