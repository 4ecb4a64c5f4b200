#include "lockstep/core/matrix_batch_overlap.h"

#include <cstdlib>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

struct BatchAxis {
  std::size_t count = 1;
  std::ptrdiff_t stride = 0;
};

// Those axes that have more than one element, from the innermost out.
struct SortedAxes {
  BatchAxis axes[3];
  std::size_t count = 0;

  explicit SortedAxes(const BatchPlaces& batch) {
    const BatchAxis all[] = {
        {batch.samples, batch.sample_stride}, {batch.rows, batch.row_stride}, {batch.columns, batch.column_stride}};
    for (const BatchAxis& axis : all) {
      if (axis.count < 2) continue;
      std::size_t at = count++;
      for (; at > 0 && std::abs(axes[at - 1].stride) > std::abs(axis.stride); --at) axes[at] = axes[at - 1];
      axes[at] = axis;
    }
  }
};

bool is_empty(const BatchPlaces& batch) { return batch.samples == 0 || batch.rows == 0 || batch.columns == 0; }

bool fits_memory(const BatchPlaces& batch) {
  const Places samples{batch.address, batch.bytes, batch.samples, 1, batch.sample_stride, 0};
  return fits_memory(batch.matrix()) && fits_memory(samples);
}

// A matrix for each sample; or one view, of which more is soon known, where one axis goes on where another ends, as in
// arrays without gaps.
Slices slices_of(const BatchPlaces& batch) {
  SortedAxes sorted(batch);
  BatchAxis(&axes)[3] = sorted.axes;
  for (std::size_t i = 0; sorted.count == 3 && i < 2; ++i) {
    if (axes[i + 1].stride != static_cast<std::ptrdiff_t>(axes[i].count) * axes[i].stride) continue;
    axes[i].count *= axes[i + 1].count;
    if (i == 0) axes[1] = axes[2];
    sorted.count = 2;
  }
  if (sorted.count == 3) return {batch.matrix(), batch.samples, batch.sample_stride};
  return {{batch.address, batch.bytes, axes[1].count, axes[0].count, axes[1].stride, axes[0].stride}, 1, 0};
}

}  // namespace

bool shares_places(const BatchPlaces& batch) {
  if (is_empty(batch)) return false;
  if (!fits_memory(batch)) return true;
  const SortedAxes sorted(batch);
  std::ptrdiff_t reach = 0;  // of the axes within
  bool nested = true;
  for (std::size_t i = 0; i < sorted.count; ++i) {
    const auto& [count, stride] = sorted.axes[i];
    if (stride == 0) return true;
    nested = nested && std::abs(stride) > reach;
    reach += static_cast<std::ptrdiff_t>(count - 1) * std::abs(stride);
  }
  if (nested) return false;
  const Slices slices = slices_of(batch);
  return shares_places(slices.first) || slices_share_memory(slices, slices);
}

bool share_memory(const BatchPlaces& batch, const Places& other) {
  if (is_empty(batch)) return false;
  return !fits_memory(batch) || shares_memory(slices_of(batch), other);
}

void refuse_batch(std::string written, const BatchPlaces& batch) {
  const auto text = [](auto number) { return std::to_string(number); };
  throw Error(
      ErrorKind::invalid_argument,
      {std::move(written),
       "strides " + text(batch.sample_stride) + ", " + text(batch.row_stride) + " and " + text(batch.column_stride) +
           " for " + text(batch.samples) + " x " + text(batch.rows) + " x " + text(batch.columns),
       "a place for each result, within memory", "give the strides of an array of three dimensions, in elements"});
}

}  // namespace lockstep
