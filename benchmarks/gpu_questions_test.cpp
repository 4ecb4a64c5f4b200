// The verdicts of gpu_questions.cpp on rows made up for the purpose.
#include "gpu_questions.h"

#include <gtest/gtest.h>

#include <string>

namespace lockstep::benchmarks {
namespace {

using Json = nlohmann::json;

Json answer_to(const std::vector<Json>& rows, const std::string& question) {
  for (const auto& answer : answer_questions(rows)) {
    if (answer["question"].get<std::string>().find(question) != std::string::npos) return answer;
  }
  ADD_FAILURE() << question;
  return {};
}

const Json kDevice = {{"measure", "device"}, {"name", "NVIDIA H200"}};
const Json kPeak32 = {{"measure", "fma_peak"}, {"precision", "float32"}, {"fma_per_s", 30e12}};

Json mlp(const char* precision, double seconds) {
  return {{"workload", "mlp"}, {"precision", precision}, {"size", 1'000'000}, {"seconds", seconds}};
}

Json lorenz(const char* method, double tolerance, double milliseconds, double error) {
  return {{"workload", "lorenz"}, {"precision", "float64"},         {"method", method}, {"tolerance", tolerance},
          {"size", 524288},       {"seconds", milliseconds * 1e-3}, {"error", error},   {"failed", 0}};
}

TEST(GpuQuestions, without_rows_nothing_is_met) {
  const auto answers = answer_questions({});
  EXPECT_GE(answers.size(), 8u);
  for (const auto& answer : answers) EXPECT_EQ(answer["verdict"], "not measured") << answer;
}

TEST(GpuQuestions, a_net_is_judged_by_the_share_of_the_peak_measured_beside_it) {
  // 24,448 fma a million times in 1.2 ms: 20.4e12 a second, 0.68 of 30e12.
  const Json met = answer_to({kDevice, kPeak32, mlp("float32", 1.2e-3)}, "float32");
  EXPECT_EQ(met["verdict"], "met");
  EXPECT_NEAR(met["measured"].get<double>(), 0.6791, 1e-4);
  EXPECT_EQ(answer_to({kDevice, kPeak32, mlp("float32", 1.5e-3)}, "float32")["verdict"], "not met");
  EXPECT_EQ(answer_to({mlp("float32", 1e-3), mlp("bf16", 0.21e-3)}, "bf16")["verdict"], "not met");
  EXPECT_EQ(answer_to({mlp("float32", 1e-3), mlp("bf16", 0.19e-3)}, "bf16")["verdict"], "met");
}

TEST(GpuQuestions, stiff_problems_are_judged_by_what_the_cpu_takes_for_each_trajectory) {
  const Json cpu = {{"workload", "stiff_cpu"}, {"size", 1000}, {"seconds", 1.0}};
  Json device = {{"workload", "stiff"}, {"precision", "float64"}, {"size", 10000}, {"seconds", 0.5}, {"failed", 0}};
  EXPECT_NEAR(answer_to({cpu, device}, "rodas5p")["measured"].get<double>(), 20, 1e-12);
  EXPECT_EQ(answer_to({device}, "rodas5p")["verdict"], "not measured");
  device["seconds"] = 11;
  EXPECT_EQ(answer_to({cpu, device}, "rodas5p")["verdict"], "not met");
  device["failed"] = 1;  // other bits
  device["seconds"] = 0.5;
  EXPECT_NE(answer_to({cpu, device}, "rodas5p")["verdict"], "met");
}

TEST(GpuQuestions, a_time_stands_beside_what_its_instructions_take_on_this_card) {
  // 31,300 instructions of each of 4 schedulers for 128 samples, 30e12 / 32 a second: 1.043 ms for a million samples.
  const Json net = answer_to({kDevice, kPeak32, mlp("float32", 1.2e-3)}, "float32");
  EXPECT_NEAR(net["predicted_ms"].get<double>(), 1.043, 1e-3);
  EXPECT_NEAR(net["times_predicted"].get<double>(), 1.15, 1e-2);
  EXPECT_FALSE(answer_to({kDevice, mlp("float32", 1.2e-3)}, "float32").contains("predicted_ms"));
}

TEST(GpuQuestions, steps_are_predicted_as_many_as_were_made) {
  // 524 instructions of a warp for a step of 32 trajectories: 524,288 * 40 * 524 / 30e12 s.
  Json row = lorenz("tsit5", 1e-6, 0.9, 1e-6);
  row["steps"] = 40;
  EXPECT_NEAR(answer_to({kDevice, kPeak32, row}, "1e-06")["predicted_ms"].get<double>(), 0.3663, 1e-4);
}

TEST(GpuQuestions, lorenz_counts_the_fastest_way_to_the_same_error) {
  std::vector<Json> rows = {kDevice, lorenz("tsit5", 1e-6, 0.9, 1e-6), lorenz("dop853", 1e-5, 0.6, 9e-7),
                            lorenz("tsit5", 1e-5, 0.4, 2e-6)};
  EXPECT_EQ(answer_to(rows, "1e-06")["verdict"], "met");
  EXPECT_EQ(answer_to(rows, "1e-06")["by"], "dop853 at 1e-05");
  rows[2]["error"] = 1.1e-6;
  EXPECT_EQ(answer_to(rows, "1e-06")["verdict"], "not met");
}

TEST(GpuQuestions, wrong_results_meet_nothing) {
  Json row = lorenz("tsit5", 1e-6, 0.1, 1e-6);
  row["failed"] = 3;
  EXPECT_EQ(answer_to({kDevice, row}, "1e-06")["verdict"], "not met");
  EXPECT_EQ(answer_to({kDevice, row}, "1e-06")["why"], "our results are wrong");
  Json net = mlp("float32", 1.2e-3);
  net["failed"] = 1;
  EXPECT_EQ(answer_to({kDevice, kPeak32, net}, "float32")["verdict"], "not met");
  EXPECT_EQ(answer_to({kDevice, kPeak32, net, mlp("float32", 1.3e-3)}, "float32")["verdict"], "met");
  net = mlp("float32", 1.2e-3);
  net["error"] = nullptr;  // not a number
  EXPECT_EQ(answer_to({kDevice, kPeak32, net}, "float32")["verdict"], "not met");
}

TEST(GpuQuestions, another_cards_target_is_scaled_by_its_peak) {
  const Json slow = {{"measure", "fma_peak"}, {"precision", "float64"}, {"fma_per_s", 4.1875e12}};  // a quarter
  const Json other = {{"measure", "device"}, {"name", "NVIDIA A100"}};
  const std::vector<Json> rows = {other, slow, lorenz("tsit5", 1e-6, 2.5, 1e-6)};
  EXPECT_EQ(answer_to(rows, "1e-06")["verdict"], "met");  // 0.65 ms * 4 = 2.6 ms
  EXPECT_EQ(answer_to({kDevice, rows[1], rows[2]}, "1e-06")["verdict"], "not met");
}

TEST(GpuQuestions, peers_are_compared_piece_by_piece_in_their_own_units) {
  const Json ours = {{"workload", "neural"}, {"precision", "float32"}, {"size", 1'000'000}, {"seconds", 0.01}};
  Json peer = {{"workload", "neural"}, {"precision", "float32"},  {"peer", "diffrax-tsit5-vmap"},
               {"size", 100'000},      {"unit", "us/trajectory"}, {"best", 0.6},
               {"tol", 1e-6}};
  EXPECT_EQ(answer_to({ours, peer}, "diffrax")["verdict"], "met");  // 10 ns against 600 ns
  peer["best"] = 0.4;
  EXPECT_EQ(answer_to({ours, peer}, "diffrax")["verdict"], "not met");
  peer["tol"] = nullptr;
  EXPECT_EQ(answer_to({ours, peer}, "diffrax")["verdict"], "not measured");
  const Json cpu = {{"workload", "neural_cpu"}, {"size", 1000}, {"seconds", 3.1e-4}};
  EXPECT_EQ(answer_to({ours, cpu}, "CPU")["verdict"], "met");
}

TEST(GpuQuestions, a_file_is_judged_by_the_slower_of_disk_and_bus) {
  const Json bus = {{"measure", "device_to_host"}, {"bytes_per_s", 20e9}};
  const Json file = {{"workload", "file"}, {"seconds", 1.0}, {"bytes_per_s", 1.7e9}, {"plain_bytes_per_s", 2e9}};
  EXPECT_EQ(answer_to({bus, file}, "HDF5")["verdict"], "met");
  EXPECT_EQ(answer_to({file}, "HDF5")["verdict"], "not measured");
}

}  // namespace
}  // namespace lockstep::benchmarks
