// Figures of a machine: kept, refused when damaged, and what the cost model makes of them. In a cache folder of the
// test's own.
#include "lockstep/ode/calibration.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include "lockstep/ode/calibrate.h"
#include "lockstep/ode/cost_model.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

const cuda::DeviceInfo kCard{
    .name = "a card", .major = 9, .multiprocessors = 132, .clock_ghz = 1.785, .driver = "13.0"};

class Cache : public ::testing::Test {
 protected:
  Cache() {
    folder_ = fs::path(::testing::TempDir()) / ("lockstep_cache_" + std::to_string(::getpid()) + "_" +
                                                ::testing::UnitTest::GetInstance()->current_test_info()->name());
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~Cache() override {
    unsetenv("XDG_CACHE_HOME");
    fs::remove_all(folder_);
  }

  static Calibration made_up(const std::string& machine) {
    return {.machine = machine,
            .measured = "2026-11-21T12:00:00Z",
            .cpu = {{best_cpu_target(), Precision::f32, 4, 2}},
            .gpu = {{"a card", "13.0", Precision::f32, 0.5, 4000, 2000, 1e10}}};
  }
  void damage(const std::string& content) {
    fs::create_directories(calibration_path().parent_path());
    std::ofstream(calibration_path()) << content;
  }

  fs::path folder_;
};

TEST_F(Cache, figures_come_back_as_they_were_kept_for_every_machine) {
  EXPECT_EQ(calibration_path(), folder_ / "lockstep" / "calibration.json");
  EXPECT_FALSE(read_calibration(calibration_path(), "one"));
  write_calibration(calibration_path(), made_up("one"));
  write_calibration(calibration_path(), made_up("two"));
  Calibration changed = made_up("one");
  changed.cpu[0].net_rate = 0.1;
  write_calibration(calibration_path(), changed);
  const auto one = read_calibration(calibration_path(), "one"), two = read_calibration(calibration_path(), "two");
  ASSERT_TRUE(one && two);
  EXPECT_EQ(one->cpu.at(0).net_rate, 0.1);
  EXPECT_EQ(two->cpu.at(0).net_rate, 4);
  EXPECT_EQ(two->measured, "2026-11-21T12:00:00Z");
  EXPECT_EQ(two->gpu.at(0).bytes_a_second, 1e10);
  EXPECT_FALSE(read_calibration(calibration_path(), "three"));
}

TEST_F(Cache, a_damaged_file_is_an_error_that_says_what_to_do_and_can_be_replaced) {
  write_calibration(calibration_path(), made_up("one"));
  std::ifstream file(calibration_path());
  const std::string whole{std::istreambuf_iterator<char>(file), {}};
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = whole;
    const std::size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    return text.replace(at, from.size(), to);
  };
  for (const std::string& content :
       {std::string(), std::string("{"), whole.substr(0, whole.size() / 2), std::string("[1, 2]"),
        with("\"version\": 1", "\"version\": 2"), with("\"net_rate\": 4.0", "\"net_rate\": 0"),
        with("\"net_rate\": 4.0", "\"net_rate\": \"4\""), with("\"step_rate\"", "\"other\""), with("f32", "f16"),
        with("\"machines\"", "\"places\""), with("\"target\": \"", "\"target\": \"x")}) {
    damage(content);
    try {
      read_calibration(calibration_path(), "one");
      ADD_FAILURE() << "accepted: " << content;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::file);
      EXPECT_THAT(error.remedy(), HasSubstr("lockstep calibrate"));
    }
  }
  write_calibration(calibration_path(), made_up("one"));
  EXPECT_TRUE(read_calibration(calibration_path(), "one"));
}

TEST_F(Cache, without_a_place_for_caches_there_are_built_in_figures) {
  const std::string home = std::getenv("HOME") == nullptr ? "" : std::getenv("HOME");
  unsetenv("HOME");
  setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_TRUE(calibration_path().empty());
  EXPECT_FALSE(known_figures().measured);
  EXPECT_FALSE(known_figures().warning);
  setenv("HOME", "/some/where", 1);
  EXPECT_EQ(calibration_path(), "/some/where/.cache/lockstep/calibration.json");
  setenv("HOME", home.c_str(), 1);
}

TEST_F(Cache, measured_rates_take_the_place_of_built_in_ones_only_where_they_fit) {
  const Calibration measured = made_up("one");
  const Work work{.trajectories = 3200,
                  .steps = 100,
                  .operations = 300,
                  .net_operations = 200,
                  .output_bytes = 1,
                  .precision = Precision::f32};
  // 200 operations at 4 and 100 at 2 a nanosecond: 100 ns a step.
  EXPECT_NEAR(predict_cpu_seconds(work, best_cpu_target(), 1, &measured), 3200 * 100 * 100e-9 + 20e-6, 1e-12);
  Work other = work;
  other.precision = Precision::f64;
  EXPECT_EQ(predict_cpu_seconds(other, best_cpu_target(), 1, &measured),
            predict_cpu_seconds(other, best_cpu_target(), 1));
  Work large = work;
  large.trajectories = 1e8;
  EXPECT_NEAR(predict_cuda_seconds(large, kCard, &measured), 0.5 + 1e8 * 100 * 0.1e-9, 1e-9);
  cuda::DeviceInfo updated = kCard;
  updated.driver = "13.1";
  EXPECT_EQ(predict_cuda_seconds(large, updated, &measured), predict_cuda_seconds(large, updated));
  EXPECT_THAT(cuda_figures_text(kCard, Precision::f32, &measured), HasSubstr("measured 2026-11-21"));
  EXPECT_THAT(cuda_figures_text(updated, Precision::f32, &measured), HasSubstr("built in"));
}

Problem lorenz() {
  Problem problem;
  problem.rhs = system("lorenz");
  problem.initial_states = {1, 1, 20};
  problem.parameters = {10, 28, 8.0 / 3};
  problem.end_times = {1};
  return problem;
}

TEST_F(Cache, explain_says_which_figures_it_used) {
  const cuda::LoadedRuntime none{nullptr, {}, "no CUDA driver on this machine"};
  cuda::replace_runtime(&none);
  EXPECT_THAT(explain(lorenz()).reasons, Contains(HasSubstr("on the CPU (figures built in, not measured)")));
  EXPECT_THAT(explain(lorenz()).reasons,
              Contains(HasSubstr("for 200 steps a trajectory, a guess, for a solve has no")));
  // A folder of its own: figures are read once for each path.
  setenv("XDG_CACHE_HOME", (folder_ / "measured").c_str(), 1);
  write_calibration(calibration_path(), made_up(this_machine()));
  EXPECT_THAT(explain(lorenz()).reasons, Contains(HasSubstr("on the CPU (figures measured 2026-11-21")));
  setenv("XDG_CACHE_HOME", (folder_ / "damaged").c_str(), 1);
  damage("{");
  const Explanation damaged = explain(lorenz());
  EXPECT_THAT(damaged.reasons, Contains(HasSubstr("on the CPU (figures built in, not measured)")));
  EXPECT_THAT(damaged.reasons, Contains(HasSubstr("a damaged file")));
  cuda::replace_runtime(nullptr);
}

TEST_F(Cache, a_machine_is_measured_for_each_instruction_set_and_precision) {
  const cuda::LoadedRuntime none{nullptr, {}, "no CUDA driver on this machine"};
  cuda::replace_runtime(&none);
  const Calibration calibration = calibrate({.seconds = 1e-3});
  cuda::replace_runtime(nullptr);
  EXPECT_EQ(calibration.machine, this_machine());
  EXPECT_TRUE(calibration.gpu.empty());
  for (const CpuTarget target : available_cpu_targets()) {
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      const CpuFigures* const figures = calibration.find(target, precision);
      ASSERT_NE(figures, nullptr);
      // Between a scalar call of a library's fma and more than any core does.
      EXPECT_TRUE(figures->net_rate > 1e-3 && figures->net_rate < 1e3) << figures->net_rate;
      EXPECT_TRUE(figures->step_rate > 1e-3 && figures->step_rate < 1e3) << figures->step_rate;
    }
  }
  CancelToken cancel;
  cancel.request();
  EXPECT_THROW(calibrate({.seconds = 1e-3}, {&cancel, {}}), Error);
}

}  // namespace
}  // namespace lockstep::ode
