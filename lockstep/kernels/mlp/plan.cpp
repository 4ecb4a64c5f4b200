#include "lockstep/kernels/mlp/plan.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/matrix_overlap.h"
#include "lockstep/core/parallel.h"
#include "lockstep/core/precision.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/thread_count.h"
#include "lockstep/kernels/mlp/detail/kept_workspace.h"
#include "lockstep/kernels/mlp/detail/packed.h"

namespace lockstep {
namespace {

void require(bool good, const char* field, std::size_t found, std::size_t expected, const char* remedy) {
  if (good) return;
  throw Error(ErrorKind::invalid_argument,
              {.field = field, .found = std::to_string(found), .expected = std::to_string(expected), .remedy = remedy});
}

template <class T>
void require_shapes(const mlp::Packed<T>& net, const MatrixView<const T>& in, const MatrixView<T>& out) {
  require(in.columns == net.inputs(), "in.columns", in.columns, net.inputs(), "give one column an input of the net");
  require(out.columns == net.outputs(), "out.columns", out.columns, net.outputs(),
          "give one column an output of the net");
  require(in.rows == out.rows, "out.rows", out.rows, in.rows, "give as many rows as in has");
  if (lacks_address(in)) refuse_null("in");
  if (lacks_address(out)) refuse_null("out");
  if (!has_own_places(out)) refuse_shared_places("out", places_of(out));
  if (!may_write_beside(out, in)) refuse_overlap("out", places_of(out), "in", places_of(in));
}

template <class T>
std::size_t workspace_numbers(const mlp::Packed<T>& net) {
  return net.workspace();
}

template <class T>
void evaluate_rows(const mlp::Packed<T>& net, MatrixView<const T> in, MatrixView<T> out, std::byte* workspace) {
  net.kernels->evaluate(net, in, out, reinterpret_cast<T*>(workspace));
}

template <class View>
View row_range(View view, std::size_t first, std::size_t count) {
  view.data += static_cast<std::ptrdiff_t>(first) * view.row_stride;
  view.rows = count;
  return view;
}

// Waking threads takes some microseconds: each must have work for at least twenty, counted at the fused
// multiply-adds of one register a nanosecond.
template <class T>
std::size_t useful_threads(const mlp::Packed<T>& net, std::size_t rows) {
  constexpr double kLeastNanoseconds = 20e3;
  double row = 0;
  for (const mlp::PackedLayer<T>& layer : net.layers) row += static_cast<double>(layer.outputs * (layer.inputs + 4));
  const double whole = row * static_cast<double>(rows) / static_cast<double>(net.kernels->lanes) / 4;
  return static_cast<std::size_t>(std::max(1.0, whole / kLeastNanoseconds));
}

}  // namespace

template <class T>
Plan<T> Plan<T>::compile(const Mlp& mlp, CpuTarget target) {
  const StandardArithmetic arithmetic;
  return Plan(std::make_shared<Packed>(Packed{mlp::pack<T>(mlp, target)}));
}

template <class T>
std::size_t Plan<T>::inputs() const {
  return packed_->inputs();
}

template <class T>
std::size_t Plan<T>::outputs() const {
  return packed_->outputs();
}

template <class T>
CpuTarget Plan<T>::cpu_target() const {
  return packed_->target;
}

template <class T>
std::size_t Plan<T>::workspace_bytes() const {
  return workspace_numbers(*packed_) * sizeof(T);
}

template <class T>
void Plan<T>::evaluate(MatrixView<const T> in, MatrixView<T> out, std::span<std::byte> workspace) const {
  const StandardArithmetic arithmetic;
  require_shapes(*packed_, in, out);
  const std::size_t bytes = workspace_bytes();
  require(workspace.size() >= bytes, "workspace", workspace.size(), bytes, "give at least workspace_bytes() bytes");
  const Extent used = workspace_extent(workspace, bytes);
  require(used.begin % kAlignment == 0, "workspace alignment", used.begin % kAlignment, 0, "align it to 64 bytes");
  require_apart(used, in, [] { return "in"; });
  require_apart(used, out, [] { return "out"; });
  evaluate_rows(*packed_, in, out, workspace.data());
}

template <class T>
void Plan<T>::evaluate(MatrixView<const T> in, MatrixView<T> out, int threads) const {
  const StandardArithmetic arithmetic;
  require_shapes(*packed_, in, out);
  if (threads != 1) threads = chosen_threads(threads);
  if (threads > 1) threads = static_cast<int>(std::min<std::size_t>(threads, useful_threads(*packed_, in.rows)));
  if (threads == 1) return evaluate_rows(*packed_, in, out, mlp::kept_workspace(workspace_bytes()).data());

  // Threads draw pieces from a queue, so that one that is held up does not hold up the rest. Pieces are whole tiles.
  struct Work {
    const Plan* plan;
    MatrixView<const T> in;
    MatrixView<T> out;
    std::size_t piece;
    std::atomic<std::size_t> next{0};
  } work{this, in, out, 0};
  const std::size_t pieces = static_cast<std::size_t>(threads) * 8;
  work.piece = std::clamp<std::size_t>(in.rows / pieces / kTileLanes * kTileLanes, kTileLanes, 4096);
  run_on_threads(threads, [&work](int) {
    const std::span<std::byte> workspace = mlp::kept_workspace(work.plan->workspace_bytes());
    for (;;) {
      const std::size_t first = work.next.fetch_add(work.piece, std::memory_order_relaxed);
      if (first >= work.in.rows) return;
      const std::size_t count = std::min(work.piece, work.in.rows - first);
      evaluate_rows(*work.plan->packed_, row_range(work.in, first, count), row_range(work.out, first, count),
                    workspace.data());
    }
  });
}

template <class T>
void Plan<T>::evaluate_tile(const TileView<T>& tile, std::byte* workspace) const {
  packed_->kernels->evaluate_tile(*packed_, tile, reinterpret_cast<T*>(workspace));
}

namespace {

// Text is much code: one function for both precisions, and compiled to be small.
[[gnu::cold]] std::string describe(std::string text, std::span<const std::size_t> widths, std::size_t strip,
                                   std::size_t block, std::size_t most_rows, std::size_t bytes) {
  for (std::size_t i = 0; i < widths.size(); ++i) text += (i == 0 ? " " : "-") + std::to_string(widths[i]);
  text += ": strips of " + std::to_string(strip) + " lanes, blocks of up to " + std::to_string(block) + " outputs";
  if (most_rows > 0) text += ", up to " + std::to_string(most_rows) + " samples by rows";
  return text + ", " + std::to_string(bytes) + " bytes packed";
}

}  // namespace

template <class T>
std::string Plan<T>::description() const {
  const mlp::Kernels<T>& kernels = *packed_->kernels;
  std::vector<std::size_t> widths{packed_->inputs()};
  for (const auto& layer : packed_->layers) widths.push_back(layer.outputs);
  std::string name(to_string(packed_->target));
  name.append(" ").append(to_string(kPrecisionOf<T>)).append(" mlp");
  return describe(std::move(name), widths, kernels.strip(), kernels.tile_outputs, packed_->most_rows,
                  packed_->weights.size() * sizeof(T));
}

template class Plan<float>;
template class Plan<double>;

}  // namespace lockstep
