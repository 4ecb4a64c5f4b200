#include "lockstep/cli/plot/finished.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "lockstep/cli/text.h"

namespace lockstep::cli {

std::vector<std::size_t> finished_trajectories(const ode::ResultFile& file) {
  constexpr std::size_t kPiece = std::size_t{1} << 16;
  std::vector<std::size_t> finished;
  finished.reserve(file.trajectories());
  for (std::size_t first = 0; first < file.trajectories(); first += kPiece) {
    const auto records = file.records(first, std::min(kPiece, file.trajectories() - first));
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (records[i].status != ode::Status::cancelled) finished.push_back(first + i);
    }
  }
  return finished;
}

std::vector<std::size_t> finished_trajectories(const ode::ResultFile& file, const ode::ResultFile& other) {
  const std::vector<std::size_t> a = finished_trajectories(file), b = finished_trajectories(other);
  std::vector<std::size_t> both;
  std::ranges::set_intersection(a, b, std::back_inserter(both));
  return both;
}

std::string left_out_text(const ode::ResultFile& file) {
  const std::size_t open = ode::count_cancelled(file.hdf5());
  if (open == 0) return {};
  return count_text(open) + " of " + counted_text(file.trajectories(), "trajectory") + " left out: not finished in " +
         file.path().filename().string();
}

}  // namespace lockstep::cli
