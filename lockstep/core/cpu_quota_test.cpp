// Limits of control groups as the kernel's files state them (Documentation/admin-guide/cgroup-v2.rst, cpu.max;
// Documentation/scheduler/sched-bwc.rst of Linux).
#include "lockstep/core/cpu_quota.h"

#include <gtest/gtest.h>

#include <fstream>
#include <string>

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class CpuQuota : public ::testing::Test {
 protected:
  void SetUp() override { fs::remove_all(root_); }
  void TearDown() override { fs::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text;
  }
  const fs::path root_ = fs::path(::testing::TempDir()) / "lockstep_cpu_quota_test";
};

TEST_F(CpuQuota, is_the_least_of_a_group_and_its_parents) {
  write("system.slice/cpu.max", "250000 100000\n");
  write("system.slice/docker-1.scope/cpu.max", "max 100000\n");
  EXPECT_EQ(cpu_quota("0::/system.slice/docker-1.scope\n", root_), 2.5);
  write("system.slice/docker-1.scope/cpu.max", "150000 100000\n");
  EXPECT_EQ(cpu_quota("0::/system.slice/docker-1.scope\n", root_), 1.5);
}

TEST_F(CpuQuota, of_a_container_is_what_is_mounted) {
  write("cpu.max", "200000 100000\n");
  EXPECT_EQ(cpu_quota("0::/\n", root_), 2);
  EXPECT_EQ(cpu_quota("0::/a/path/of/the/host\n", root_), 2);
}

TEST_F(CpuQuota, is_read_of_version_1_as_well) {
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "300000\n");
  write("cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  write("memory/job/cpu.cfs_quota_us", "100000\n");
  write("memory/job/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(cpu_quota("9:memory:/job\n4:cpu,cpuacct:/job\n3:cpuset:/\n", root_), 3);
  write("cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(cpu_quota("4:cpu,cpuacct:/job\n", root_), std::nullopt);
}

TEST_F(CpuQuota, is_none_where_nothing_is_limited_or_readable) {
  EXPECT_EQ(cpu_quota("", root_), std::nullopt);
  EXPECT_EQ(cpu_quota("0::/\n", root_), std::nullopt);
  EXPECT_EQ(cpu_quota("no line of this kind\n::\n0::relative/../..\n", root_), std::nullopt);
  write("cpu.max", "0 0\n");
  EXPECT_EQ(cpu_quota("0::/\n", root_), std::nullopt);
}

}  // namespace
}  // namespace lockstep
