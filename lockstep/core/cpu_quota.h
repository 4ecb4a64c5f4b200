// The share of a machine's processors that a container may use.
#pragma once

#include <filesystem>
#include <optional>
#include <string_view>

namespace lockstep {

// Processors' worth of time that Linux's control groups grant this process (`docker run --cpus=2`, a Kubernetes limit);
// more threads than that only take turns. Nothing where there is no limit or none can be read.
std::optional<double> cpu_quota();

// The same where the text of /proc/self/cgroup is `groups` and control groups are mounted at `root`: the least of the
// group's own and its parents' limits, version 2 (cpu.max) or 1 (cpu.cfs_quota_us over cpu.cfs_period_us).
std::optional<double> cpu_quota(std::string_view groups, const std::filesystem::path& root);

}  // namespace lockstep
