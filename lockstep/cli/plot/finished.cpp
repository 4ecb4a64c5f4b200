#include "lockstep/cli/plot/finished.h"

#include <algorithm>
#include <utility>

#include "lockstep/cli/text.h"

namespace lockstep::cli {

FinishedTrajectories::FinishedTrajectories(const ode::ResultFile& file) : all_(file.trajectories()) { keep(file); }

FinishedTrajectories::FinishedTrajectories(const ode::ResultFile& file, const ode::ResultFile& other)
    : FinishedTrajectories(file) {
  keep(other);
}

void FinishedTrajectories::keep(const ode::ResultFile& file) {
  if (ode::count_cancelled(file.hdf5()) == 0) return;
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::vector<std::size_t> kept;
  for (std::size_t i = 0, end; i < size(); i = end) {
    const std::size_t first = (*this)[i], count = std::min(kPiece, all_ - first);
    const auto records = file.records(first, count);
    for (end = i; end < size() && (*this)[end] < first + count; ++end) {
      if (is_finished(records[(*this)[end] - first])) kept.push_back((*this)[end]);
    }
  }
  some_ = std::move(kept);
}

std::string left_out_text(const ode::ResultFile& file) {
  const std::size_t open = ode::count_cancelled(file.hdf5());
  if (open == 0) return {};
  return count_text(open) + " of " + counted_text(file.trajectories(), "trajectory") + " left out: not finished in " +
         file.path().filename().string();
}

}  // namespace lockstep::cli
