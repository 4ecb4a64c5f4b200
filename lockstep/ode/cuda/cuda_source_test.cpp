// Right-hand sides that come as text: the same text compiled by the host's compiler has the CPU engine's bits in the
// device's kernel; NVRTC, where it is installed, makes machine code of it; what does not compile is told; the cache.
#include "lockstep/ode/cuda_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/ode/cuda/compile.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/cuda/nvrtc.h"
#include "lockstep/ode/cuda/testing/host_runtime.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/methods/tsit5.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode::cuda {
namespace {

using ::testing::HasSubstr;
namespace fs = std::filesystem;

// The file lies elsewhere where only this program was copied (scripts/gpu_check.sh).
std::string lorenz_text() {
  const char* const folder = std::getenv("LOCKSTEP_TEST_BODIES");
  std::ifstream file((folder != nullptr ? folder : LOCKSTEP_CUDA_TESTING) + std::string("/lorenz_body.inc"));
  return {std::istreambuf_iterator<char>(file), {}};
}

// The text as the CPU engine runs it.
Rhs lorenz_on_cpu() {
  return function<3, 4>("lorenz with a force", [](auto t, const auto& u, const auto& p, auto& du) {
#include "lockstep/ode/cuda/testing/lorenz_body.inc"
  });
}

// The text as a kernel holds it.
struct LorenzInKernel {
  template <class T>
  static void evaluate(double t, const T* u, const T* p, T* du) {
#include "lockstep/ode/cuda/testing/lorenz_body.inc"
  }
};

template <class T>
using LorenzBody = KernelBody<T, CompiledScheme<Tsit5>, SourceDerivative<LorenzInKernel, 3, 4, T>>;

// A machine whose only device is the host, and a cache of its own.
class CudaSource : public ::testing::Test {
 protected:
  CudaSource() : runtime_(device_) {
    folder_ = fs::path(::testing::TempDir()) / ("lockstep_kernels_" + std::to_string(::getpid()));
    setenv("XDG_CACHE_HOME", folder_.c_str(), 1);
    Fault fault;
    loaded_.runtime = &runtime_;
    loaded_.devices = runtime_.devices(fault);
    replace_runtime(&loaded_);
    device_.sources["source lorenz, tsit5, f32"] = [](HostDevice& device, const void* launch) {
      run_body<LorenzBody<float>>(device, "source", launch);
    };
    device_.sources["source lorenz, tsit5, f64"] = [](HostDevice& device, const void* launch) {
      run_body<LorenzBody<double>>(device, "source", launch);
    };
  }
  ~CudaSource() override {
    replace_runtime(nullptr);
    unsetenv("XDG_CACHE_HOME");
    fs::remove_all(folder_);
  }

  static KernelSource source_of(const std::string& text, Precision precision = Precision::f64,
                                const char* method = "tsit5") {
    return make_kernel_source({"lorenz", &text, 3, 4}, method, precision);
  }
  // So that nothing has to be compiled.
  void keep_some_code(Precision precision) {
    keep_kernel(kept_kernel_path(source_of(lorenz_text(), precision), loaded_.devices[0]), {'c', 'o', 'd', 'e'});
  }

  HostDevice device_;
  HostRuntime runtime_;
  LoadedRuntime loaded_;
  fs::path folder_;
};

Problem ensemble(Rhs rhs) {
  Problem problem;
  problem.rhs = std::move(rhs);
  for (int i = 0; i < 37; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), {1 + 0.01 * i, 2, 20});
    problem.parameters.insert(problem.parameters.end(), {10, 28 - 0.1 * i, 8.0 / 3, 0.3 * i});
  }
  problem.end_times = {1};
  problem.save_times = {0, 0.3, 1};
  return problem;
}

TEST_F(CudaSource, has_the_bits_of_the_same_text_on_the_cpu) {
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    keep_some_code(precision);
    Options options;
    options.precision = precision;
    options.rtol = options.atol = 1e-5;
    options.device = DeviceChoice::cpu();
    const Solution cpu = solve(ensemble(lorenz_on_cpu()), options);
    options.device = DeviceChoice::cuda();
    const Solution cuda = solve(ensemble(with_cuda_source(lorenz_on_cpu(), "lorenz", lorenz_text())), options);
    EXPECT_EQ(device_.launches["source"], precision == Precision::f32 ? 2 : 4);  // batches of 32
    for (std::size_t i = 0; i < cpu.trajectories(); ++i) {
      EXPECT_EQ(cpu.record(i).accepted, cuda.record(i).accepted);
      for (std::size_t s = 0; s < 3; ++s) {
        for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(cpu.state(i, s, c), cuda.state(i, s, c)) << i << s << c;
      }
    }
  }
}

TEST_F(CudaSource, runs_on_the_cpu_as_what_it_wraps_and_is_the_same_mathematics) {
  const Rhs both = with_cuda_source(lorenz_on_cpu(), "lorenz", lorenz_text());
  EXPECT_EQ(both->digest(), lorenz_on_cpu()->digest());
  Options options;
  options.device = DeviceChoice::cpu();
  EXPECT_EQ(solve(ensemble(both), options).state(5, 2, 1), solve(ensemble(lorenz_on_cpu()), options).state(5, 2, 1));
  const Rhs alone = cuda_source("lorenz", lorenz_text(), 3, 4);
  EXPECT_NE(alone->digest(), cuda_source("lorenz", lorenz_text() + " ", 3, 4)->digest());
  try {
    solve(ensemble(alone), options);
    ADD_FAILURE() << "ran on the CPU";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), HasSubstr("for a GPU alone"));
  }
  EXPECT_THROW(cuda_source("name", " \n", 3), Error);
  EXPECT_THROW(cuda_source("quo\"te", "du[0] = 0;", 1), Error);
  EXPECT_THROW(cuda_source("name", "du[0] = 0;", 0), Error);
}

TEST_F(CudaSource, a_kept_kernel_is_used_for_its_text_device_and_driver_only_and_never_when_damaged) {
  const KernelSource source = source_of(lorenz_text());
  const DeviceInfo& device = loaded_.devices[0];
  const fs::path path = kept_kernel_path(source, device);
  EXPECT_NE(path, kept_kernel_path(source_of(lorenz_text() + "//"), device));
  EXPECT_NE(path, kept_kernel_path(source_of(lorenz_text(), Precision::f32), device));
  EXPECT_NE(path, kept_kernel_path(source_of(lorenz_text(), Precision::f64, "dopri5"), device));
  DeviceInfo other = device;
  other.driver = "99.0";
  EXPECT_NE(path, kept_kernel_path(source, other));
  other = device;
  other.major = 8;
  EXPECT_NE(path, kept_kernel_path(source, other));

  keep_kernel(path, {'c', 'o', 'd', 'e'});
  EXPECT_EQ(read_kept_kernel(path), (std::vector<char>{'c', 'o', 'd', 'e'}));
  EXPECT_EQ(compile_for(runtime_, 0, source).code.size(), 4u);
  std::ofstream(path, std::ios::app) << "more";
  EXPECT_TRUE(read_kept_kernel(path).empty());
  EXPECT_TRUE(read_kept_kernel(folder_ / "none").empty());
  keep_kernel("/proc/nowhere/file", {'x'});  // only costs time
}

TEST(KernelSourceText, is_copied_into_every_stage_unless_the_copies_are_long_together) {
  const auto is_called = [](const std::string& text, const char* method, std::size_t components = 1) {
    const std::string whole = make_kernel_source({"f", &text, components, 0}, method, Precision::f64).text;
    EXPECT_NE(whole.find("__noinline__") != std::string::npos, whole.find("__forceinline__") != std::string::npos);
    return whole.find("__noinline__") != std::string::npos;
  };
  EXPECT_FALSE(is_called("du[0] = -u[0];", "vern9"));
  EXPECT_FALSE(is_called(std::string(2000, ' ') + "du[0] = -u[0];", "tsit5"));
  EXPECT_TRUE(is_called(std::string(3000, ' ') + "du[0] = -u[0];", "tsit5"));
  // From a table of the method there is one copy for all stages.
  EXPECT_FALSE(is_called(std::string(3000, ' ') + "for (int i = 0; i < 40; ++i) du[i] = -u[i];", "tsit5", 40));
  EXPECT_FALSE(is_called("du[0] = math::sin(u[0]);", "tsit5"));
  EXPECT_TRUE(is_called("du[0] = math::sin(u[0]);", "vern9"));
  EXPECT_TRUE(is_called("du[0] = math::sin(u[0]) * math::exp(u[0]) * math::log(u[0]);", "tsit5"));
}

TEST(Nvrtc, that_is_missing_is_an_error_that_says_how_to_get_it) {
  const std::string text = lorenz_text();
  try {
    Nvrtc{.version = "", .missing = "NVRTC is not on this machine"}.compile(
        make_kernel_source({"lorenz", &text, 3, 4}, "tsit5", Precision::f64), 90);
    ADD_FAILURE() << "compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.remedy(), HasSubstr("pip install nvidia-cuda-nvrtc"));
  }
}

TEST(Nvrtc, is_handed_the_header_of_every_method) {
  for (const std::string_view method : explicit_method_names()) {
    const std::string header = "lockstep/ode/methods/" + std::string(method) + ".h";
    EXPECT_TRUE(std::any_of(embedded_headers().begin(), embedded_headers().end(), [&](const EmbeddedHeader& embedded) {
      return embedded.name == header;
    })) << header;
  }
}

class Compiling : public CudaSource {
 protected:
  void SetUp() override {
    if (!load_nvrtc().missing.empty()) GTEST_SKIP() << load_nvrtc().missing;
  }
};

TEST_F(Compiling, makes_code_once_and_finds_it_again) {
  const KernelSource source = source_of(lorenz_text());
  const KernelImage first = compile_for(runtime_, 0, source);
  ASSERT_GT(first.code.size(), 1000u);
  EXPECT_EQ(std::memcmp(first.code.data(),
                        "\x7f"
                        "ELF",
                        4),
            0);
  EXPECT_EQ(read_kept_kernel(kept_kernel_path(source, loaded_.devices[0])), first.code);
}

TEST_F(Compiling, serves_methods_from_constants_and_from_a_table) {
  if (kSanitized) GTEST_SKIP() << "NVRTC reads the same text without sanitizers";
  const std::string text = "for (int i = 0; i < 40; ++i) du[i] = -u[i];";
  const KernelSource many = make_kernel_source({"many", &text, 40, 0}, "bs3", Precision::f32);
  EXPECT_THAT(many.text, HasSubstr("TableScheme"));
  EXPECT_THAT(source_of(lorenz_text()).text, HasSubstr("CompiledScheme<ode::Tsit5>"));
  EXPECT_GT(load_nvrtc().compile(many, 80).size(), 1000u);
}

TEST_F(Compiling, what_does_not_compile_is_told_with_the_texts_own_lines) {
  try {
    load_nvrtc().compile(source_of("du[0] = u[1];\ndu[1] = missing(u[0]);\n"), 90);
    ADD_FAILURE() << "compiled";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(), HasSubstr("lorenz(2): error: identifier \"missing\" is undefined"));
  }
  EXPECT_THROW(load_nvrtc().compile(source_of(lorenz_text()), 11), Error);  // no such architecture
}

// With LOCKSTEP_TEST_DEVICE=cuda, on this machine's first GPU.
TEST(OnACard, code_that_was_compiled_by_nvrtc_has_the_bits_of_the_cpu) {
  const char* const wanted = std::getenv("LOCKSTEP_TEST_DEVICE");
  if (wanted == nullptr || std::string_view(wanted) != "cuda") GTEST_SKIP() << "LOCKSTEP_TEST_DEVICE is not cuda";
  if (!load_nvrtc().missing.empty()) GTEST_SKIP() << load_nvrtc().missing;
  for (const char* const method : {"tsit5", "dop853", "vern9", "rk4"}) {
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      Options options;
      options.method = method;
      options.precision = precision;
      options.rtol = options.atol = 1e-5;
      if (std::string_view(method) == "rk4") {
        options.control = StepControl::fixed;
        options.dt = 0.01;
      }
      options.device = DeviceChoice::cpu();
      const Solution cpu = solve(ensemble(lorenz_on_cpu()), options);
      options.device = DeviceChoice::cuda();
      const Solution cuda = solve(ensemble(with_cuda_source(lorenz_on_cpu(), "lorenz", lorenz_text())), options);
      for (std::size_t i = 0; i < cpu.trajectories(); ++i) {
        EXPECT_EQ(cpu.record(i).accepted, cuda.record(i).accepted);
        for (std::size_t s = 0; s < 3; ++s) {
          for (std::size_t c = 0; c < 3; ++c)
            EXPECT_EQ(cpu.state(i, s, c), cuda.state(i, s, c)) << method << i << s << c;
        }
      }
    }
  }
}

}  // namespace
}  // namespace lockstep::ode::cuda
