#include "lockstep/core/cpu_quota.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

struct Limit {
  std::optional<double> processors;
  void lower_to(double quota, double period) {
    if (quota > 0 && period > 0) processors = std::min(processors.value_or(quota / period), quota / period);
  }
};

void read_limit(const fs::path& group, Limit& limit) {
  double quota = 0, period = 0;
  if (std::ifstream file(group / "cpu.max"); file >> quota >> period) limit.lower_to(quota, period);  // or "max 100000"
  std::ifstream quota_file(group / "cpu.cfs_quota_us"), period_file(group / "cpu.cfs_period_us");
  if (quota_file >> quota && period_file >> period) limit.lower_to(quota, period);  // or -1
}

bool lists(std::string_view controllers, std::string_view name) {
  while (!controllers.empty()) {
    const std::string_view one = controllers.substr(0, controllers.find(','));
    if (one == name) return true;
    controllers.remove_prefix(std::min(controllers.size(), one.size() + 1));
  }
  return false;
}

}  // namespace

std::optional<double> cpu_quota(std::string_view groups, const fs::path& root) {
  Limit limit;
  while (!groups.empty()) {  // lines "0::/path", "4:cpu,cpuacct:/path"
    const std::string_view line = groups.substr(0, groups.find('\n'));
    groups.remove_prefix(std::min(groups.size(), line.size() + 1));
    const std::size_t first = line.find(':');
    const std::size_t second = first == line.npos ? first : line.find(':', first + 1);
    if (second == line.npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (!controllers.empty() && !lists(controllers, "cpu")) continue;
    const fs::path mounted = root / controllers;
    fs::path group = fs::path(line.substr(second + 1)).lexically_normal().relative_path();
    // In a container the path may be the host's: its own group is then what is mounted.
    for (; !group.empty(); group = group.parent_path()) read_limit(mounted / group, limit);
    read_limit(mounted, limit);
  }
  return limit.processors;
}

std::optional<double> cpu_quota() {
  std::ifstream file("/proc/self/cgroup");
  const std::string groups{std::istreambuf_iterator<char>(file), {}};
  return cpu_quota(groups, "/sys/fs/cgroup");
}

}  // namespace lockstep
