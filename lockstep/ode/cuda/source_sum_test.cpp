// Sums with terms that come as text, and events that do: what a kernel compiled from them does, run by the host, has
// the bits of the CPU engine; and NVRTC, where it is installed, compiles the texts.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>

#include "lockstep/core/error.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/compile.h"
#include "lockstep/ode/cuda/nvrtc.h"
#include "lockstep/ode/cuda/program_derivative.h"
#include "lockstep/ode/cuda/testing/run_tiles.h"
#include "lockstep/ode/cuda/testing/solve_on.h"
#include "lockstep/ode/cuda_source.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/methods/tsit5.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode::cuda {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// The files lie elsewhere where only this program was copied (scripts/gpu_check.sh).
std::string text_of(const std::string& name) {
  const char* const folder = std::getenv("LOCKSTEP_TEST_BODIES");
  std::ifstream file((folder != nullptr ? folder : LOCKSTEP_CUDA_TESTING) + std::string("/") + name);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  EXPECT_FALSE(text.empty()) << name;
  return text;
}

Rhs force() {
  return with_cuda_source(function<3, 2>("force",
                                         [](auto t, const auto& u, const auto& p, auto& du) {
#include "lockstep/ode/cuda/testing/force_body.inc"
                                         }),
                          "force", text_of("force_body.inc"));
}

TerminalEvent distance() {
  return {with_cuda_event_source(event_function<3, 2>("distance",
                                                      [](auto t, const auto& u, const auto& p) {
#include "lockstep/ode/cuda/testing/distance_body.inc"
                                                      }),
                                 "distance", text_of("distance_body.inc"))};
}

// The texts as kernels hold them.
template <class T>
struct ForceInKernel {
  static void evaluate(double t, const T* u, const T* p, T* du) {
#include "lockstep/ode/cuda/testing/force_body.inc"
  }
};
template <class T>
struct EventInKernel {
  static T value(double t, const T* u, const T* p) {
#include "lockstep/ode/cuda/testing/distance_body.inc"
  }
};

template <class T>
struct ForceFirst {
  static constexpr bool kOwn = true;
  static void evaluate(int part, double t, const T* u, const T* p, T* du) {
    ASSERT_EQ(part, 0);
    ForceInKernel<T>::evaluate(t, u, p, du);
  }
};
template <class T>
struct ForceAfterLorenz {
  static constexpr bool kOwn = true;
  static void evaluate(int part, double t, const T* u, const T* p, T* du) {
    if (part == 0) systems::evaluate_at<systems::Lorenz, ScalarLane<T>>(static_cast<T>(t), u, p, du);
    if (part == 1) ForceInKernel<T>::evaluate(t, u, p, du);
  }
};

// A machine whose only device is the host, and a cache that holds code for whatever is asked for.
class SumsWithText : public ::testing::Test {
 protected:
  SumsWithText() : runtime_(device_) {
    folder_ = fs::path(::testing::TempDir()) / ("lockstep_sums_" + std::to_string(::getpid()));
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
  }
  ~SumsWithText() override {
    unsetenv("XDG_CACHE_HOME");
    fs::remove_all(folder_);
  }

  // Both engines; `stand_in` is what the text compiles to.
  template <class T>
  void expect_same_on_both(const Problem& problem, const std::string& kernel,
                           std::function<void(HostDevice&, const void*)> stand_in) {
    Options options;
    options.precision = sizeof(T) == 4 ? Precision::f32 : Precision::f64;
    options.rtol = options.atol = sizeof(T) == 4 ? 1e-5 : 1e-8;
    options.device = DeviceChoice::cpu();
    const Lowered<T> lowered = lower_problem<T>(problem, options);
    ASSERT_TRUE(lowered.source);
    EXPECT_EQ(lowered.kernel, kernel + ", tsit5, " + std::string(to_string(options.precision)));
    Runtime* const card = wanted_card();
    if (card == nullptr) {
      Fault fault;
      keep_kernel(kept_kernel_path(*lowered.source, runtime_.devices(fault).front()), {'c', 'o', 'd', 'e'});
      device_.sources[lowered.kernel] = std::move(stand_in);
    } else if (!load_nvrtc().missing.empty()) {
      GTEST_SKIP() << load_nvrtc().missing;
    }
    const Solution cpu = solve(problem, options);
    expect_same(cpu, solve_on(device_, problem, options, std::size_t{1} << 28, nullptr, card));
    EXPECT_EQ(std::any_of(cpu.records().begin(), cpu.records().end(), ended_by_event), problem.event.has_value());
  }
  static bool ended_by_event(const TrajectoryRecord& record) { return record.status == Status::terminated; }

  template <class Derivative, class T>
  void expect_same_by_threads(const Problem& problem, const std::string& kernel) {
    using Body = KernelBody<T, CompiledScheme<Tsit5>, Derivative>;
    expect_same_on_both<T>(problem, kernel,
                           [](HostDevice& device, const void* launch) { run_body<Body>(device, "text", launch); });
  }
  template <class Derivative, class Terms, class T>
  void expect_same_by_tiles(const Problem& problem, const std::string& kernel) {
    expect_same_on_both<T>(problem, kernel, [](HostDevice& device, const void* launch) {
      std::size_t trajectories = 0;
      run_tiles<T, Derivative, Terms>(launch, trajectories);
      device.batches.push_back(trajectories);
    });
  }

  HostDevice device_;
  HostRuntime runtime_;
  fs::path folder_;
};

Problem ensemble(Rhs rhs, std::size_t count) {
  Problem problem;
  problem.rhs = std::move(rhs);
  const bool lorenz = problem.rhs->parameters() > 2;
  for (std::size_t i = 0; i < count; ++i) {
    const double x = static_cast<double>(i % 13) / 13;
    problem.initial_states.insert(problem.initial_states.end(), {1 + x, 0.5, lorenz ? 20 : 0.3});
    if (lorenz) problem.parameters.insert(problem.parameters.end(), {10, 28 - x, 8.0 / 3});
    problem.parameters.insert(problem.parameters.end(), {1.5 + x, 0.4});
  }
  problem.end_times = {0.6};
  problem.save_times = {0, 0.31, 0.6};
  return problem;
}

Rhs small_net() { return net(mlp::random_mlp({3, 20, 3}, {ActivationKind::tanh}, 7)); }
Rhs wide_net() { return net(mlp::random_mlp({3, 33, 3}, {ActivationKind::silu}, 7)); }

TEST_F(SumsWithText, of_a_system_and_a_text_have_the_bits_of_the_cpu_engine) {
  const Problem problem = ensemble(sum(system("lorenz"), force()), 33);
  expect_same_by_threads<ProgramDerivative<3, 0, float, ForceAfterLorenz<float>>, float>(problem,
                                                                                         "lorenz + source force");
  expect_same_by_threads<ProgramDerivative<3, 0, double, ForceAfterLorenz<double>>, double>(problem,
                                                                                            "lorenz + source force");
}

TEST_F(SumsWithText, with_a_net_have_the_bits_of_the_cpu_engine) {
  const Problem problem = ensemble(sum(force(), small_net()), 7);
  expect_same_by_threads<ProgramDerivative<3, 20, float, ForceFirst<float>>, float>(problem, "source force + net");
  expect_same_by_threads<ProgramDerivative<3, 20, double, ForceFirst<double>>, double>(problem, "source force + net");
}

TEST_F(SumsWithText, with_a_wide_net_run_in_tiles_with_the_same_bits) {
  Problem problem = ensemble(sum(force(), wide_net()), 71);
  expect_same_by_tiles<OutsideDerivative<3, float>, ForceFirst<float>, float>(problem, "source force + net");
  problem = ensemble(sum(sum(system("lorenz"), force()), wide_net()), 5);
  expect_same_by_tiles<OutsideDerivative<3, double>, ForceAfterLorenz<double>, double>(problem,
                                                                                       "lorenz + source force + net");
}

TEST_F(SumsWithText, stop_at_events_that_come_as_text) {
  Problem problem = ensemble(sum(force(), wide_net()), 33);
  problem.event = distance();
  const std::string with_event = ", event distance";
  using Outside = WithEvent<OutsideDerivative<3, float>, EventInKernel<float>, float>;
  expect_same_by_tiles<Outside, ForceFirst<float>, float>(problem, "source force + net" + with_event);
  problem = ensemble(force(), 33);
  problem.event = distance();
  using Source = SourceDerivative<ForceInKernel<double>, 3, 2, double>;
  expect_same_by_threads<WithEvent<Source, EventInKernel<double>, double>, double>(problem,
                                                                                   "source force" + with_event);
}

// Once by threads and once by tiles: a kernel of tiles takes NVRTC some ten seconds.
TEST_F(SumsWithText, are_compiled_by_nvrtc) {
  if (!load_nvrtc().missing.empty()) GTEST_SKIP() << load_nvrtc().missing;
  for (const Rhs& learned : {small_net(), wide_net()}) {
    Problem problem = ensemble(sum(force(), learned), 1);
    problem.event = distance();
    EXPECT_GT(load_nvrtc().compile(*lower_problem<float>(problem, Options{}).source, 90).size(), 1000u);
  }
}

TEST_F(SumsWithText, an_event_text_is_no_derivative_and_a_function_of_many_outputs_no_event) {
  EXPECT_THROW(with_cuda_event_source(force(), "force", "return u[0];"), Error);
  EXPECT_THROW(with_cuda_event_source(nullptr, "none", "return u[0];"), Error);
  EXPECT_THROW(with_cuda_event_source(distance().function, "empty", ""), Error);
  const auto value = [](auto, const auto& u, const auto&) { return u[0]; };
  Problem problem = ensemble(force(), 2);
  problem.rhs = with_cuda_event_source(event_function<1>("value", value), "value", "return u[0];");
  const auto found = obstacle(problem, Options{});
  ASSERT_TRUE(found);
  EXPECT_EQ(found->found, "an event's function");
}

}  // namespace
}  // namespace lockstep::ode::cuda
