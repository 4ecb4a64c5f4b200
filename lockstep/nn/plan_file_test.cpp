#include "lockstep/nn/plan_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <filesystem>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/testing/small_model.h"

namespace lockstep::nn {
namespace {

using ::testing::HasSubstr;
using testing::small_model;

PlanFile small_plan() { return {small_model(), Precision::f64, CpuTarget::avx2}; }

// Every operation, its numbers telling fields apart. Not a net that anybody would train.
Model every_operation() {
  Model model;
  model.inputs.push_back({"x", "", std::vector<Feature>(2)});
  const auto add = [&](const char* name, Operation operation, std::vector<std::string> reads) {
    model.nodes.push_back({name, std::move(operation), std::move(reads)});
  };
  add("standardise", Standardise{{1, 2}, {3, 4}}, {"x"});
  add("dense", Dense{2, 2, {1, 2, 3, 0.1}, {5, 6}}, {"standardise"});
  add("activate", Activate{{ActivationKind::leaky_relu, 0.3}}, {"dense"});
  add("constant", Constant{{7, -std::numeric_limits<double>::infinity()}}, {});
  add("both", Concatenate{}, {"activate", "constant"});
  add("columns", Columns{{3, 0}}, {"both"});
  add("unary", Unary{UnaryKind::cosine}, {"columns"});
  add("clip", Clip{.maximum = 0.75}, {"unary"});
  add("zone", DeadZone{-0.5, 0.25, 0.125}, {"clip"});
  add("binary", Binary{BinaryKind::minimum}, {"zone", "activate"});
  add("choose", Choose{{1, 0}}, {"binary", "zone"});
  add("normalise", LayerNormalise{{2, 3}, {4, 5}, 0.01}, {"choose"});
  add("softmax", Softmax{SoftmaxKind::logarithm}, {"normalise"});
  add("rescale", Rescale{{9, 10}, {11, 12}}, {"softmax"});
  add("chain", Chain{{ActivationKind::celu, 1.5}}, {"rescale", "softmax"});
  add("reduce", Reduce{ReduceKind::mean}, {"chain"});
  add("table", Interpolate{{-1, 0, 2}, 2, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}}, {"reduce"});
  model.outputs.push_back({"table", "table", std::vector<Feature>(2)});
  model.outputs.push_back({"y", "rescale", std::vector<Feature>(2)});
  model.outputs.push_back({"mean", "reduce", std::vector<Feature>(1)});
  return model;
}

TEST(PlanFile, returns_the_model_precision_and_target_that_went_in) {
  const PlanFile plan = small_plan();
  const PlanFile back = read_plan(plan_bytes(plan), "bytes");
  EXPECT_EQ(back.model.digest(), plan.model.digest());
  EXPECT_EQ(back.precision, Precision::f64);
  EXPECT_EQ(back.target, CpuTarget::avx2);
  EXPECT_EQ(back.model.name, "small");
  EXPECT_EQ(back.model.inputs[0].features[1].name, "temperature");
  EXPECT_EQ(back.model.inputs[0].features[1].minimum, 200);
  EXPECT_EQ(back.model.outputs[0].features[0].unit, "W m-2");
  EXPECT_EQ(back.model.outputs[0].features[0].maximum, std::numeric_limits<double>::infinity());
  EXPECT_EQ(back.model.provenance.licence, "CC0-1.0");
}

TEST(PlanFile, keeps_every_operation) {
  const Model model = every_operation();
  const PlanFile back = read_plan(plan_bytes({model, Precision::f32, CpuTarget::neon}), "bytes");
  EXPECT_EQ(back.model.digest(), model.digest());
  EXPECT_EQ(back.target, CpuTarget::neon);
}

TEST(PlanFile, damage_anywhere_is_noticed) {
  const std::vector<std::byte> sound = plan_bytes(small_plan());
  for (std::size_t i = 0; i < sound.size(); ++i) {
    std::vector<std::byte> bytes = sound;
    bytes[i] ^= std::byte{16};
    EXPECT_NE(message_of([&] { read_plan(bytes, "net.plan"); }), "no error") << "byte " << i;
  }
  for (std::size_t length = 0; length < sound.size(); length += 7) {
    const std::vector<std::byte> bytes(sound.begin(), sound.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_THAT(message_of([&] { read_plan(bytes, "net.plan"); }), HasSubstr("net.plan")) << length;
  }
}

TEST(PlanFile, another_version_is_named) {
  std::vector<std::byte> bytes = plan_bytes(small_plan());
  bytes[8] = std::byte{9};
  EXPECT_THAT(message_of([&] { read_plan(bytes, "net.plan"); }),
              HasSubstr("found a plan file of version 9, expected version 1 to 3; make it again from the model"));
  EXPECT_THAT(message_of([&] { read_plan(std::vector<std::byte>(100), "net.plan"); }), HasSubstr("no plan file"));
}

TEST(PlanFile, a_target_this_machine_lacks_is_refused_when_it_is_to_run) {
  const PlanFile plan = read_plan(plan_bytes({small_model(), Precision::f32, CpuTarget::neon}), "net.plan");
  const auto here = available_cpu_targets();
  if (std::find(here.begin(), here.end(), CpuTarget::neon) != here.end()) GTEST_SKIP() << "this machine has it";
  EXPECT_THAT(message_of([&] { compile<float>(plan.model, plan.target); }), HasSubstr("found neon, expected one this"));
}

// So that a file made on one node of a cluster loads on another; readers of before refuse its version.
TEST(PlanFile, for_any_machine_it_is_for_the_best_of_the_one_that_reads_it) {
  PlanFile plan{small_model(), Precision::f64, CpuTarget::neon, PlanFor::any_machine};
  std::vector<std::byte> bytes = plan_bytes(plan);
  EXPECT_EQ(bytes[8], std::byte{kPlanFileVersionForAnyMachine});
  const PlanFile back = read_plan(bytes, "net.plan");
  EXPECT_EQ(back.made_for, PlanFor::any_machine);
  EXPECT_EQ(back.target, best_cpu_target());
  EXPECT_EQ(back.model.digest(), plan.model.digest());
  EXPECT_EQ(plan_bytes(back), bytes);
  plan.made_for = PlanFor::target;  // as files of before are
  bytes = plan_bytes(plan);
  EXPECT_EQ(bytes[8], std::byte{kPlanFileVersion});
  EXPECT_EQ(read_plan(bytes, "net.plan").target, CpuTarget::neon);
  EXPECT_EQ(read_plan(bytes, "net.plan").made_for, PlanFor::target);
}

TEST(PlanFile, a_plan_has_the_bits_of_its_model) {
  const Model model = load(std::string(LOCKSTEP_TEST_DATA) + "/qlknn_7_11_tanh_10_133x5_8.safetensors");
  const PlanFile plan = read_plan(plan_bytes({model, Precision::f32, best_cpu_target()}), "net.plan");
  const std::vector<float> x(10, 0.7F);
  std::vector<float> a(8), b(8);
  compile<float>(model).evaluate(MatrixView<const float>::row_major(x.data(), 1, 10),
                                 MatrixView<float>::row_major(a.data(), 1, 8));
  compile<float>(plan.model, plan.target)
      .evaluate(MatrixView<const float>::row_major(x.data(), 1, 10), MatrixView<float>::row_major(b.data(), 1, 8));
  EXPECT_EQ(std::memcmp(a.data(), b.data(), sizeof(float) * 8), 0);
}

TEST(PlanFile, files_are_not_replaced_by_accident) {
  const auto path = std::filesystem::path(::testing::TempDir()) / ("lockstep-" + std::to_string(::getpid()) + ".plan");
  write_plan(path, small_plan());
  EXPECT_EQ(read_plan(path).model.digest(), small_model().digest());
  EXPECT_NE(message_of([&] { write_plan(path, small_plan()); }), "no error");
  EXPECT_THAT(message_of([&] { load(path); }), HasSubstr("found a plan file"));
  EXPECT_THAT(message_of([&] { load(path); }), HasSubstr("lockstep explain shows what it holds"));
  std::filesystem::remove(path);
}

TEST(PlanFile, a_path_without_a_file_is_named_as_where_a_plan_should_be) {
  EXPECT_EQ(message_of([] { read_plan(std::filesystem::path("absent.plan")); }),
            "absent.plan: found no such file, expected a plan file, as lockstep compile writes it; check the path");
}

}  // namespace
}  // namespace lockstep::nn
