// The CUDA component's own code over CUDA functions that the host plays: what reaches the device and in which order,
// what is given back, and what is said, when any one call fails. Not linked with CUDA; built where its headers are.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "lockstep/core/error.h"
#include "lockstep/kernels/cuda/device_graph_plan.h"
#include "lockstep/kernels/cuda/device_plan.h"
#include "lockstep/kernels/cuda/evaluation_runtime.h"
#include "lockstep/kernels/graph/testing/random_graph.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/block_launch.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/cuda/testing/fake_cuda.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/device_solver.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::cuda {
extern "C" EvaluationRuntime* lockstep_cuda_evaluation(int version);
}
namespace lockstep::ode::cuda {
extern "C" Runtime* lockstep_cuda_runtime(int version);
namespace {

using ::testing::AnyOf;
using testing::fake_cuda;
using testing::FakeCuda;
using ::testing::HasSubstr;

class Component : public ::testing::Test {
 protected:
  Component() : runtime_(lockstep_cuda_runtime(kRuntimeVersion)) {
    fake_cuda() = {};
    Fault fault;
    loaded_.runtime = runtime_;
    loaded_.devices = runtime_->devices(fault);
    replace_runtime(&loaded_);
  }
  ~Component() override { replace_runtime(nullptr); }

  Runtime* runtime_;
  LoadedRuntime loaded_;
};

Problem lorenz(std::size_t count) {
  Problem problem;
  problem.rhs = system("lorenz");
  for (std::size_t i = 0; i < count; ++i)
    problem.initial_states.insert(problem.initial_states.end(), {1 + 0.01 * static_cast<double>(i), 2, 20});
  problem.parameters = {10, 28, 8.0 / 3};
  problem.end_times = {0.2};
  problem.save_times = {0, 0.1};
  return problem;
}

Options options_on(DeviceChoice device) {
  Options options;
  options.precision = Precision::f64;
  options.device = std::move(device);
  return options;
}

// Batches of 64, two at a time.
constexpr std::size_t kBudget = 30'000;

Solution solve_here(Runtime* runtime, const Problem& problem) {
  HostDevice unused;
  return solve_on(unused, problem, options_on(DeviceChoice::cuda()), kBudget, nullptr, runtime);
}

void expect_nothing_left(const FakeCuda& fake) {
  EXPECT_EQ(fake.device_blocks, 0);
  EXPECT_EQ(fake.pinned_blocks, 0);
  EXPECT_EQ(fake.streams, 0);
  EXPECT_EQ(fake.libraries, 0);
  EXPECT_EQ(fake.used, 0u);
  EXPECT_EQ(fake.pinned, 0u);
}

TEST_F(Component, has_the_bits_of_the_cpu_engine_and_gives_everything_back) {
  const Problem problem = lorenz(151);
  expect_same(solve(problem, options_on(DeviceChoice::cpu())), solve_here(runtime_, problem));
  expect_nothing_left(fake_cuda());
  EXPECT_EQ(fake_cuda().calls["cudaLaunchKernel"], 3);
}

TEST_F(Component, overlaps_each_batch_with_the_results_of_the_one_before) {
  solve_here(runtime_, lorenz(151));
  const auto& calls = fake_cuda().sequence;
  const auto first_launch = std::find(calls.begin(), calls.end(), "cudaLaunchKernel");
  const auto first_wait = std::find(calls.begin(), calls.end(), "cudaStreamSynchronize");
  const auto second_launch = std::find(first_launch + 1, calls.end(), "cudaLaunchKernel");
  EXPECT_LT(second_launch - calls.begin(), first_wait - calls.begin());
}

// Every call of a solve fails in turn: once for want of memory, once for good, as when a device falls off its bus.
TEST_F(Component, survives_any_call_that_fails_or_says_what_did) {
  const Problem problem = lorenz(151);
  const Solution expected = solve(problem, options_on(DeviceChoice::cpu()));
  fake_cuda() = {.devices = 3, .current_device = 2};
  solve_here(runtime_, problem);
  const int calls = fake_cuda().calls_so_far;
  ASSERT_GT(calls, 100);
  int survived = 0;
  for (const bool lasting : {false, true}) {
    for (int call = 0; call < calls; ++call) {
      SCOPED_TRACE(call);
      fake_cuda() = {};
      fake_cuda().devices = 3;
      fake_cuda().current_device = 2;  // the caller's
      fake_cuda().failing_call = call;
      fake_cuda().error = lasting ? cudaErrorIllegalAddress : cudaErrorMemoryAllocation;
      fake_cuda().lasting = lasting;
      try {
        expect_same(expected, solve_here(runtime_, problem));  // every trajectory once: solve_on() counts them
        ++survived;
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::unsupported);
        EXPECT_THAT(error.what(), HasSubstr("cuda "));
        EXPECT_THAT(error.what(), HasSubstr(lasting ? "an illegal memory access" : "memory"));
        EXPECT_THAT(error.remedy(), HasSubstr("--device cpu"));
      }
      expect_nothing_left(fake_cuda());
    }
  }
  EXPECT_GT(survived, calls / 2);  // a single failure for want of memory halves a batch
}

TEST_F(Component, halves_batches_until_device_and_pinned_memory_hold_them) {
  const Problem problem = lorenz(1000);
  const Solution expected = solve(problem, options_on(DeviceChoice::cpu()));
  for (const std::size_t memory : {200'000u, 50'000u, 15'000u}) {
    fake_cuda() = {};
    fake_cuda().memory = memory;
    HostDevice unused;
    expect_same(expected,
                solve_on(unused, problem, options_on(DeviceChoice::cuda()), std::size_t{1} << 28, nullptr, runtime_));
    expect_nothing_left(fake_cuda());
  }
  fake_cuda() = {};
  fake_cuda().memory = 1000;
  HostDevice unused;
  EXPECT_THROW(solve_on(unused, problem, options_on(DeviceChoice::cuda()), std::size_t{1} << 28, nullptr, runtime_),
               Error);
  expect_nothing_left(fake_cuda());
}

TEST(MemoryBudget, is_shared_by_devices_and_no_more_than_2_GiB_each) {
  EXPECT_GT(memory_budget(1), 0u);
  EXPECT_LE(memory_budget(1), std::size_t{2} << 30);
  EXPECT_LE(memory_budget(8), memory_budget(1));
  // So many that the host's memory decides: a quarter of it, in whole bytes a device.
  const int many = 1'000'000;
  EXPECT_NEAR(static_cast<double>(memory_budget(many)) * 2, static_cast<double>(memory_budget(many / 2)), 2);
}

// A disk that is full after some blocks, and a user who stops then.
class LimitedSink : public SolutionSink {
 public:
  LimitedSink(Solution& solution, std::size_t blocks) : solution_(solution), left_(blocks) {}
  SolutionBlock acquire(std::size_t first, std::size_t count) override {
    if (left_ == 0 && throws) throw std::runtime_error("no space left on device");
    return solution_.block(first, count);
  }
  void commit(const SolutionBlock& block) override {
    committed += block.count;
    if (--left_ == 0 && !throws) stop.request();
  }
  bool throws = true;
  std::size_t committed = 0;
  CancelToken stop;

 private:
  Solution& solution_;
  std::size_t left_;
};

TEST_F(Component, stops_where_results_cannot_be_kept_or_are_wanted_no_more) {
  const Problem problem = lorenz(300);
  const Solution expected = solve(problem, options_on(DeviceChoice::cpu()));
  for (const bool throws : {true, false}) {
    Solution solution(Precision::f64, 300, 3, problem.save_times, false);
    LimitedSink sink(solution, 2);
    sink.throws = throws;
    RunControl control;
    control.cancel = &sink.stop;
    fake_cuda() = {};
    const auto run = [&] {
      return advance<double>(problem, options_on(DeviceChoice::cuda()), {runtime_, 0, kBudget}, sink, control);
    };
    if (throws) {
      EXPECT_THROW(run(), std::runtime_error);
    } else {
      EXPECT_EQ(run().count_of[0], sink.committed);
    }
    EXPECT_EQ(sink.committed, 128u);  // two batches of 64, which keep their bits
    for (std::size_t i = 0; i < 128; ++i) ASSERT_EQ(solution.state(i, 1, 0), expected.state(i, 1, 0));
    expect_nothing_left(fake_cuda());
  }
}

// What a CUDA graph may capture: nothing but copies, fills and launches on the caller's stream.
const std::set<std::string> kMayBeCaptured = {"cudaMemsetAsync", "cudaMemcpyAsync", "cudaLaunchKernel"};
// Asked of the thread, not of the stream.
const std::set<std::string> kHarmless = {"cudaGetDevice", "cudaSetDevice"};

void expect_only_queued(const FakeCuda& fake, void* stream, int launches) {
  for (const auto& [name, count] : fake.calls)
    EXPECT_TRUE(kMayBeCaptured.contains(name) || kHarmless.contains(name)) << name << ", " << count << " times";
  for (void* const used : fake.queued_on) EXPECT_EQ(used, stream);
  EXPECT_EQ(fake.calls.at("cudaLaunchKernel"), launches);
}

template <class T>
void expect_captured(Rhs rhs, std::size_t n, std::size_t m) {
  int anything = 0;
  void* const stream = &anything;
  Options options = options_on(DeviceChoice::cuda());
  options.precision = kPrecisionOf<T>;
  DeviceSolver<T> solver(std::move(rhs), options, stream);
  std::vector<T> state(40 * n, T(0.5)), parameters(m + 1, T(2));
  const double start = 0, end = 0.1;
  const int blocks = fake_cuda().device_blocks;
  for (int solve = 0; solve < 2; ++solve) {
    fake_cuda().calls.clear();
    fake_cuda().queued_on.clear();
    solver.enqueue({.trajectories = 40,
                    .initial_states = {state.data(), static_cast<std::int64_t>(n)},
                    .parameters = {parameters.data()},
                    .start_times = {&start},
                    .end_times = {&end},
                    .end_states = {state.data(), static_cast<std::int64_t>(n)}});
    expect_only_queued(fake_cuda(), stream, 1);
    EXPECT_EQ(fake_cuda().device_blocks, blocks);
  }
}

TEST_F(Component, device_solver_queues_only_from_its_first_solve_on) {
  expect_captured<double>(system("lorenz"), 3, 3);
  expect_captured<float>(net(mlp::random_mlp({3, 20, 3}, {ActivationKind::tanh}, 1)), 3, 0);
  // More shared memory than a kernel may have unasked.
  expect_captured<float>(net(mlp::random_mlp({3, 200, 3}, {ActivationKind::silu}, 1)), 3, 0);
  EXPECT_EQ(fake_cuda().streams, 0) << "the stream is the caller's";
  expect_nothing_left(fake_cuda());
}

TEST_F(Component, asks_for_room_for_every_block_of_a_kernel_with_much_shared_memory) {
  Fault fault;
  const auto stream = runtime_->open_stream(0, fault);
  ASSERT_NE(stream, nullptr) << fault.text;
  const BlockLaunch<float> launch{};
  EXPECT_FALSE(stream->prepare("lorenz_rk4_f32", &launch).happened);
  EXPECT_TRUE(fake_cuda().shared_percent.empty());
  EXPECT_FALSE(stream->prepare("tiles_f32", &launch).happened);
  // Two blocks of 65,536 bytes, 1,024 of its own and as many of the driver's: of 233,472.
  ASSERT_EQ(fake_cuda().shared_percent.size(), 1u);
  EXPECT_EQ(fake_cuda().shared_percent.begin()->second, 58);
}

TEST_F(Component, gives_back_code_that_it_cannot_use) {
  Fault fault;
  const auto stream = runtime_->open_stream(0, fault);
  ASSERT_NE(stream, nullptr) << fault.text;
  int taken = 0, refused = 0;
  for (int call = 0; call < 6; ++call) {  // each that taking a kernel makes, and none
    fake_cuda().failing_call = fake_cuda().calls_so_far + call;
    fake_cuda().error = 200;  // cudaErrorInvalidKernelImage
    (stream->add_kernel("text", {.code = {'c'}, .entry = "entry", .threads = 64}).happened ? refused : taken) += 1;
    EXPECT_EQ(fake_cuda().libraries, taken) << "call " << call << " failed";
  }
  EXPECT_GT(taken, 0);
  EXPECT_GE(refused, 2);
}

TEST_F(Component, device_plan_queues_one_kernel) {
  lockstep::cuda::replace_evaluation_runtime(
      lockstep::cuda::lockstep_cuda_evaluation(lockstep::cuda::kEvaluationVersion));
  {
    const auto plan =
        lockstep::cuda::DevicePlan<float>::compile(mlp::random_mlp({3, 100, 3}, {ActivationKind::tanh}, 1));
    int anything = 0;
    std::vector<float> numbers(3 * 200);
    fake_cuda().calls.clear();
    const auto view = MatrixView<float>::row_major(numbers.data(), 200, 3);
    plan.enqueue(&anything, view, view);
    expect_only_queued(fake_cuda(), &anything, 1);
  }
  lockstep::cuda::replace_evaluation_runtime(nullptr);
  expect_nothing_left(fake_cuda());
}

TEST_F(Component, device_graph_plan_queues_one_kernel) {
  lockstep::cuda::replace_evaluation_runtime(
      lockstep::cuda::lockstep_cuda_evaluation(lockstep::cuda::kEvaluationVersion));
  for (const std::size_t width : {10u, 5000u}) {  // values in shared memory, and in a workspace
    graph::testing::Builder b;
    const std::size_t x = b.input(3), y = b.input(3);
    const std::size_t hidden = b.add(b.dense(3, width), {b.add(graph::Binary{}, {x, y})});
    b.output(b.add(graph::Reduce{}, {hidden}));
    const auto plan = lockstep::cuda::DeviceGraphPlan<float>::compile(b.graph);
    int anything = 0;
    std::vector<float> numbers(7 * 200);
    fake_cuda().calls.clear();
    fake_cuda().queued_on.clear();
    const MatrixView<const float> in[] = {MatrixView<const float>::row_major(numbers.data(), 200, 3),
                                          MatrixView<const float>::row_major(numbers.data() + 600, 200, 3)};
    const auto out = MatrixView<float>::row_major(numbers.data() + 1200, 200, 1);
    plan.enqueue(&anything, in, std::span(&out, 1));
    expect_only_queued(fake_cuda(), &anything, 1);
  }
  lockstep::cuda::replace_evaluation_runtime(nullptr);
  expect_nothing_left(fake_cuda());
}

TEST_F(Component, leaves_the_callers_device_current) {
  fake_cuda().devices = 3;
  fake_cuda().current_device = 2;
  Fault fault;
  EXPECT_EQ(runtime_->devices(fault).size(), 3u);
  solve_here(runtime_, lorenz(40));  // on device 0
  EXPECT_EQ(fake_cuda().current_device, 2);
}

std::string missing_with(const FakeCuda& fake, Runtime* runtime) {
  fake_cuda() = fake;
  Fault fault;
  EXPECT_TRUE(runtime->devices(fault).empty());
  EXPECT_TRUE(fault.happened);
  return fault.text;
}

TEST_F(Component, says_why_there_is_no_device) {
  EXPECT_EQ(missing_with({.driver = 0}, runtime_), "no CUDA driver on this machine");
  EXPECT_EQ(missing_with({.driver = 11040}, runtime_),
            "CUDA driver version is insufficient for CUDA runtime version (cudaErrorInsufficientDriver); the driver "
            "knows CUDA 11.4, this build needs 13.0");
  EXPECT_THAT(missing_with({.devices = 2, .major = 7}, runtime_),
              HasSubstr("no device of compute capability 8.0 or later among 2"));
  // The first call is cudaGetDeviceCount, the second asks for the device's properties.
  EXPECT_THAT(missing_with({.failing_call = 1, .error = cudaErrorDevicesUnavailable}, runtime_),
              HasSubstr("the device went away"));
  EXPECT_EQ(lockstep_cuda_runtime(kRuntimeVersion + 1), nullptr);
}

TEST_F(Component, names_a_device_that_is_not_there_or_went_away) {
  Fault fault;
  EXPECT_EQ(runtime_->open_stream(5, fault), nullptr);
  EXPECT_EQ(fault.where, "device 5");
  fake_cuda() = {.failing_call = 0, .error = cudaErrorDevicesUnavailable, .lasting = true};
  EXPECT_EQ(runtime_->borrow_stream(0, nullptr, fault), nullptr);
  EXPECT_EQ(fault.text, "the device went away (cudaErrorDevicesUnavailable)");
}

}  // namespace
}  // namespace lockstep::ode::cuda
