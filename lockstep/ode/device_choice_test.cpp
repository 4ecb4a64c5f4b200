// Which devices a solve runs on: what --device may say, what is chosen from predicted times, and parts on several.
#include "lockstep/ode/device_choice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>

#include "lockstep/core/error.h"
#include "lockstep/ode/cost_model.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/detail/device_plan.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

using ::testing::HasSubstr;
using Kind = DeviceShare::Kind;

TEST(DeviceChoice, reads_devices_and_shares) {
  EXPECT_TRUE(parse_device("auto").is_automatic());
  EXPECT_EQ(parse_device(" cpu "), DeviceChoice::cpu());
  EXPECT_EQ(parse_device("cuda"), DeviceChoice::cuda());
  EXPECT_EQ(parse_device("cuda:3"), DeviceChoice::cuda(3));
  const DeviceChoice both{{{Kind::cpu, 0, 20}, {Kind::cuda, 0, 80}}};
  EXPECT_EQ(parse_device("cpu=20%,cuda=80%"), both);
  EXPECT_EQ(parse_device("cpu = 20 %, cuda:0 = 80%"), both);
  EXPECT_EQ(parse_device("cuda:0=33.3333%,cuda:1=33.3333%,cuda:2=33.3333%").shares.size(), 3u);
  for (const char* text : {"auto", "cpu", "cuda:2", "cpu=20%,cuda:1=80%"})
    EXPECT_EQ(to_string(parse_device(text)), text);
}

std::string refusal(const char* text) {
  try {
    parse_device(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    return error.what();
  }
  return "accepted";
}

TEST(DeviceChoice, refuses_what_it_cannot_read_and_shares_that_do_not_add_up) {
  EXPECT_THAT(refusal(""), HasSubstr("device: found nothing"));
  EXPECT_THAT(refusal("gpu"), HasSubstr("found \"gpu\", expected auto, cpu, cuda"));
  EXPECT_THAT(refusal("gpu"), HasSubstr("did you mean \"cuda\"?"));
  EXPECT_THAT(refusal("cuda:x"), HasSubstr("device number \"x\""));
  EXPECT_THAT(refusal("cuda:-1"), HasSubstr("device number \"-1\""));
  EXPECT_THAT(refusal("cuda:"), HasSubstr("device number \"\""));
  EXPECT_THAT(refusal("cpu=20%,cuda=70%"), HasSubstr("shares that add up to 90%"));
  EXPECT_THAT(refusal("cuda=50%"), HasSubstr("shares that add up to 50%, expected 100%; give one device no share"));
  EXPECT_THAT(refusal("cpu,cuda=80%"), HasSubstr("cpu without a share"));
  EXPECT_THAT(refusal("cpu=20,cuda=80%"), HasSubstr("share \"20\" of cpu, expected percent"));
  EXPECT_THAT(refusal("cpu=nan%,cuda=80%"), HasSubstr("for cpu"));
  EXPECT_THAT(refusal("cpu=-20%,cuda=120%"), HasSubstr("-20% for cpu"));
  EXPECT_THAT(refusal("cuda=50%,cuda:0=50%"), HasSubstr("cuda twice"));
  EXPECT_THAT(refusal("cpu=50%,,cuda=50%"), HasSubstr("found \"\""));
}

// A device that computes nothing: for plans only.
class NoRuntime : public cuda::Runtime {
 public:
  std::vector<cuda::DeviceInfo> devices(cuda::Fault&) override { return {}; }
  std::unique_ptr<cuda::Stream> open_stream(int, cuda::Fault&) override { return nullptr; }
  std::unique_ptr<cuda::Stream> borrow_stream(int, void*, cuda::Fault&) override { return nullptr; }
};

const cuda::DeviceInfo kH200{.name = "H200", .major = 9, .multiprocessors = 132, .clock_ghz = 1.785};
const cuda::DeviceInfo kGaming{
    .name = "a gaming card", .major = 8, .minor = 9, .multiprocessors = 128, .clock_ghz = 2.5};

// Puts devices into the machine for the length of a test.
class Machine {
 public:
  explicit Machine(std::vector<cuda::DeviceInfo> devices) {
    loaded_.devices = std::move(devices);
    if (!loaded_.devices.empty()) loaded_.runtime = &runtime_;
    loaded_.missing = "no CUDA driver on this machine";
    cuda::replace_runtime(&loaded_);
    setenv("XDG_CACHE_HOME", "/nowhere", 1);  // no figures but the built-in ones
  }
  ~Machine() { cuda::replace_runtime(nullptr); }

 private:
  NoRuntime runtime_;
  cuda::LoadedRuntime loaded_;
};

Problem lorenz(std::size_t count) {
  Problem problem;
  problem.rhs = system("lorenz");
  for (std::size_t i = 0; i < count; ++i)
    problem.initial_states.insert(problem.initial_states.end(), {1 + 1e-3 * static_cast<double>(i), 1, 20});
  problem.parameters = {10, 28, 8.0 / 3};
  problem.end_times = {1};
  return problem;
}

Options options_on(const char* device) {
  Options options;
  options.device = parse_device(device);
  options.cpu_target = CpuTarget::scalar;
  options.threads = 1;
  return options;
}

TEST(DevicePlan, says_why_it_stays_on_the_cpu) {
  const Machine none({});
  const auto reason = [](std::size_t count, const Options& options) {
    const auto plan = detail::plan_devices(lorenz(count), options);
    EXPECT_EQ(plan.engine, "cpu");
    EXPECT_EQ(plan.parts.size(), 1u);
    return plan.reason;
  };
  EXPECT_THAT(reason(10, options_on("auto")), HasSubstr("too little for a GPU"));
  EXPECT_EQ(reason(100'000, options_on("auto")), "no CUDA driver on this machine");
  EXPECT_EQ(reason(100'000, options_on("cpu")), "asked for");
  Options common = options_on("auto");
  common.control = StepControl::common;
  EXPECT_THAT(reason(100'000, common), HasSubstr("a GPU cannot run this: options.control is common"));
}

TEST(DevicePlan, takes_a_gpu_where_it_is_faster) {
  const Machine one({kH200});
  const auto plan = detail::plan_devices(lorenz(100'000), options_on("auto"));
  EXPECT_EQ(plan.engine, "cuda_fused");
  EXPECT_EQ(plan.device, "H200");
  EXPECT_THAT(plan.reason, HasSubstr("on H200"));
}

std::string plan_error(const char* device) {
  try {
    detail::plan_devices(lorenz(100), options_on(device));
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    return error.what();
  }
  return "planned";
}

TEST(DevicePlan, names_what_is_missing_where_cuda_is_asked_for) {
  {
    const Machine none({});
    EXPECT_EQ(plan_error("cuda"),
              "options.device: found cuda, expected cpu or auto here: no CUDA driver on this machine; run on the CPU "
              "with --device cpu");
    EXPECT_THAT(plan_error("cpu=20%,cuda=80%"), HasSubstr("no CUDA driver"));
  }
  const Machine one({kH200});
  EXPECT_THAT(plan_error("cuda:1"), HasSubstr("found cuda:1, expected cuda:0 (H200)"));
}

TEST(DevicePlan, cuts_the_ensemble_by_shares) {
  cuda::DeviceInfo second = kGaming;
  second.index = 1;
  const Machine two({kH200, second});
  const auto plan = detail::plan_devices(lorenz(1000), options_on("cpu=20%,cuda:1=30%,cuda=50%"));
  ASSERT_EQ(plan.parts.size(), 3u);
  EXPECT_EQ(plan.engine, "cpu + cuda_fused");
  EXPECT_EQ(plan.parts[0].count, 192u);  // 200, down to a whole tile
  EXPECT_EQ(plan.parts[1].device, 1);
  EXPECT_EQ(plan.parts[1].first, 192u);
  EXPECT_EQ(plan.parts[2].first + plan.parts[2].count, 1000u);
  EXPECT_EQ(plan.device, "a gaming card, H200");
}

TEST(Slice, holds_the_trajectories_it_was_cut_from) {
  Problem problem = lorenz(100);
  problem.end_times.clear();
  for (int i = 0; i < 100; ++i) problem.end_times.push_back(0.5 + 0.01 * i);
  Options options = options_on("cpu");
  const Solution whole = solve(problem, options);
  const Solution part = solve(problem.part(37, 5), options);
  ASSERT_EQ(part.trajectories(), 5u);
  const auto all = whole.end_states<float>().subspan(3 * 37, 15);
  EXPECT_EQ(std::memcmp(all.data(), part.end_states<float>().data(), 15 * sizeof(float)), 0);
}

}  // namespace
}  // namespace lockstep::ode
