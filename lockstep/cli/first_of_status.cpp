#include "lockstep/cli/first_of_status.h"

#include <algorithm>

#include "lockstep/ode/result_file.h"

namespace lockstep::cli {

std::optional<TrajectoryOfStatus> first_of_status(const std::filesystem::path& result, ode::Status status) {
  constexpr std::size_t kRows = 65536;
  const ode::ResultFile file(result);
  for (std::size_t first = 0; first < file.trajectories(); first += kRows) {
    const auto records = file.records(first, std::min(kRows, file.trajectories() - first));
    const auto found = std::ranges::find(records, status, &ode::TrajectoryRecord::status);
    if (found != records.end()) return {{first + static_cast<std::size_t>(found - records.begin()), *found}};
  }
  return std::nullopt;
}

}  // namespace lockstep::cli
