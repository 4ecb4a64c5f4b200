// The first trajectory of a result file that ended in one way.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>

#include "lockstep/ode/trajectory_record.h"

namespace lockstep::cli {

struct TrajectoryOfStatus {
  std::size_t trajectory;  // in the file
  ode::TrajectoryRecord record;
};
std::optional<TrajectoryOfStatus> first_of_status(const std::filesystem::path& result, ode::Status status);

}  // namespace lockstep::cli
