#include "lockstep/kernels/mlp/detail/tiled_samples.h"

#include <algorithm>
#include <string>

#include "lockstep/core/error.h"

namespace lockstep::mlp {
namespace {

// Samples first .. first + count of those that `rows` picks (all when empty) into lanes [column][kTileLanes], lanes
// past them zero.
template <class T>
void load_tile(const Kernels<T>& kernels, const MatrixView<const T>& view, std::span<const std::uint32_t> rows,
               std::size_t first, std::size_t count, T* to) {
  const int registers = static_cast<int>(kTileLanes / kernels.lanes);
  if (rows.empty()) return kernels.load(view, first, count, registers, to, kTileLanes);
  if (view.columns < 8) {
    std::fill_n(to, view.columns * kTileLanes, T(0));
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t c = 0; c < view.columns; ++c) to[c * kTileLanes + i] = view(rows[first + i], c);
    }
    return;
  }
  constexpr std::size_t kMostColumns = 64;
  T picked[kTileLanes * kMostColumns];
  for (std::size_t column = 0; column < view.columns; column += kMostColumns) {
    const std::size_t columns = std::min(kMostColumns, view.columns - column);
    for (std::size_t i = 0; i < count; ++i) {
      T* const sample = picked + i * columns;
      const std::size_t row = rows[first + i];
      if (view.column_stride == 1) {
        std::copy_n(&view(row, column), columns, sample);
      } else {
        for (std::size_t c = 0; c < columns; ++c) sample[c] = view(row, column + c);
      }
    }
    kernels.load(MatrixView<const T>::row_major(picked, count, columns), 0, count, registers, to + column * kTileLanes,
                 kTileLanes);
  }
}

}  // namespace

template <class T>
TiledSamples<T> make_samples(const SampleShape<T>& shape, std::size_t capacity, ResidualFactors factors) {
  const std::size_t lanes = (capacity + kTileLanes - 1) / kTileLanes * kTileLanes;
  return {AlignedBuffer<T>(lanes * shape.inputs), AlignedBuffer<T>(lanes * shape.outputs),
          AlignedBuffer<T>(factors == ResidualFactors::given ? lanes * shape.outputs : 0), 0};
}

template <class T>
void assign_samples(TiledSamples<T>& tiles, const SampleShape<T>& shape, const Kernels<T>& kernels,
                    const MatrixView<const T>& inputs, const MatrixView<const T>& targets,
                    std::span<const std::uint32_t> rows, const MatrixView<const T>& factors) {
  const std::size_t samples = rows.empty() ? inputs.rows : rows.size();
  const std::size_t room = tiles.inputs.size() / shape.inputs;
  if (inputs.columns != shape.inputs || targets.columns != shape.outputs || inputs.rows != targets.rows ||
      samples > room) {
    throw Error(ErrorKind::invalid_argument,
                {"samples",
                 std::to_string(inputs.rows) + " x " + std::to_string(inputs.columns) + " inputs, " +
                     std::to_string(targets.rows) + " x " + std::to_string(targets.columns) + " targets",
                 "at most " + std::to_string(room) + " x " + std::to_string(shape.inputs) + " and " +
                     std::to_string(shape.outputs),
                 "give inputs and targets of the same samples, and the tiles room for them"});
  }
  const bool weighed = !tiles.factors.empty();
  if (weighed != (factors.rows != 0) ||
      (weighed && (factors.rows != targets.rows || factors.columns != shape.outputs))) {
    throw Error(ErrorKind::invalid_argument,
                {"factors", std::to_string(factors.rows) + " x " + std::to_string(factors.columns),
                 weighed ? std::to_string(targets.rows) + " x " + std::to_string(shape.outputs) : std::string("none"),
                 "make the samples with or without room for factors"});
  }
  tiles.samples = samples;
  for (std::size_t first = 0; first < samples; first += kTileLanes) {
    const std::size_t count = std::min<std::size_t>(kTileLanes, samples - first);
    T* const x = tiles.inputs.data() + first * shape.inputs;
    load_tile(kernels, inputs, rows, first, count, x);
    for (std::size_t c = 0; c < shape.scale.size(); ++c) {
      T* const values = x + c * kTileLanes;
      for (std::size_t lane = 0; lane < count; ++lane) values[lane] = (values[lane] - shape.shift[c]) / shape.scale[c];
    }
    load_tile(kernels, targets, rows, first, count, tiles.targets.data() + first * shape.outputs);
    if (weighed) load_tile(kernels, factors, rows, first, count, tiles.factors.data() + first * shape.outputs);
  }
}

template TiledSamples<float> make_samples(const SampleShape<float>&, std::size_t, ResidualFactors);
template TiledSamples<double> make_samples(const SampleShape<double>&, std::size_t, ResidualFactors);
template void assign_samples(TiledSamples<float>&, const SampleShape<float>&, const Kernels<float>&,
                             const MatrixView<const float>&, const MatrixView<const float>&,
                             std::span<const std::uint32_t>, const MatrixView<const float>&);
template void assign_samples(TiledSamples<double>&, const SampleShape<double>&, const Kernels<double>&,
                             const MatrixView<const double>&, const MatrixView<const double>&,
                             std::span<const std::uint32_t>, const MatrixView<const double>&);

int worthwhile_threads(int threads, std::size_t groups, double registers) {
  return std::max(1, std::min({threads, static_cast<int>(groups), static_cast<int>(registers / 4e3)}));
}

}  // namespace lockstep::mlp
