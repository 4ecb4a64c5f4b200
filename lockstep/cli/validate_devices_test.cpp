// validate on files of the GPU engines, whose kernels a CPU runs here: the same bits where they are promised, and the
// certificate of each mode where they are not.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "lockstep/agreement/certificate.h"
#include "lockstep/cli/app.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/safetensors.h"
#include "lockstep/ode/cuda/gemm/testing/host_gemm.h"
#include "lockstep/ode/cuda/testing/solve_on.h"

namespace lockstep::cli {
namespace {

// Trajectories of a net; saved times begin before bfloat16 has driven them far apart.
class ValidateDevices : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / "lockstep_validate_devices_test";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    write_net(net_);
    std::ofstream(folder_ / "net.toml") << R"([rhs]
model = "net.safetensors"
[ensemble]
trajectories = 40
initial_state = { normal = { mean = [0, 0, 0], std = 1 } }
[time]
span = [0, 0.2]
save = 5
[method]
name = "rk4"
control = "fixed"
dt = 0.05
)";
    device_.threads = 64;
    loaded_.runtime = &runtime_;
    ode::cuda::Fault fault;
    loaded_.devices = runtime_.devices(fault);
    ode::cuda::replace_runtime(&loaded_);
    ode::cuda::replace_gemm_runtime(&products_);
    solve("cpu.h5", {"--device", "cpu"});
  }
  void TearDown() override {
    ode::cuda::replace_runtime(nullptr);
    ode::cuda::replace_gemm_runtime(nullptr);
  }

  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  void write_net(const Mlp& mlp) const {
    nn::write_safetensors(path("net.safetensors"), nn::Model::from_mlp(mlp), Existing::replace);
  }

  static int run(std::vector<std::string> words) {
    words.insert(words.begin(), "lockstep");
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    return run_app(static_cast<int>(argv.size()), argv.data());
  }

  void solve(const std::string& name, std::vector<std::string> flags) const {
    flags.insert(flags.begin(),
                 {"solve", path("net.toml"), "--quiet", "--overwrite", "--threads", "1", "--output", path(name)});
    ASSERT_EQ(run(flags), 0);
  }

  struct Said {
    int code;
    std::string text;
  };
  Said validate(const std::string& a, const std::string& b, const std::vector<std::string>& flags = {}) const {
    std::vector<std::string> words{"validate", path(a), path(b)};
    words.insert(words.end(), flags.begin(), flags.end());
    ::testing::internal::CaptureStdout();
    const int code = run(words);
    return {code, ::testing::internal::GetCapturedStdout()};
  }

  // The file as a port leaves it whose net has another activation: its states, under the right net's name.
  void replace_by_wrong(const std::string& name, const std::vector<std::string>& flags) const {
    Mlp wrong = net_;
    wrong.layers.front().activation = {ActivationKind::sigmoid};
    write_net(wrong);
    solve("wrong.h5", flags);
    write_net(net_);
    hdf5::File file = hdf5::File::open(path(name), hdf5::File::Access::update);
    file.dataset("state").write<float>(hdf5::File::open(path("wrong.h5")).dataset("state").read<float>());
  }

  std::filesystem::path folder_;
  Mlp net_ = mlp::random_mlp({3, 33, 3}, {ActivationKind::tanh}, 4);
  ode::cuda::HostDevice device_;
  ode::cuda::HostRuntime runtime_{device_};
  ode::cuda::HostGemm gemm_{.epilogues = false};  // bias last: not the CPU's sums
  ode::cuda::HostGemmRuntime products_{gemm_};
  ode::cuda::LoadedRuntime loaded_;
};

TEST_F(ValidateDevices, finds_the_same_bits_from_cuda_fused) {
  for (const std::string precision : {"f32", "f64"}) {
    solve("cpu.h5", {"--device", "cpu", "--precision", precision});
    solve("b.h5", {"--device", "cuda", "--engine", "cuda_fused", "--precision", precision});
    const Said said = validate("cpu.h5", "b.h5");
    EXPECT_EQ(said.code, 0);
    EXPECT_EQ(said.text.rfind("same bits", 0), 0u) << said.text;
  }
}

TEST_F(ValidateDevices, certifies_sums_in_another_order) {
  solve("b.h5", {"--device", "cuda", "--engine", "cuda_gemm"});
  EXPECT_EQ(validate("cpu.h5", "b.h5", {"--bits"}).code, 1);
  const Said said = validate("cpu.h5", "b.h5");
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_NE(said.text.find("they differ by no more than rounding explains."), std::string::npos) << said.text;
}

TEST_F(ValidateDevices, certifies_each_mode_of_tensor_cores_within_its_own_rounding) {
  const std::pair<const char*, const char*> modes[] = {{"tf32", "TF32"}, {"bf16", "bfloat16"}, {"fp16", "float16"}};
  std::size_t turn = 0;
  for (const auto& [mode, name] : modes) {
    if (!is_tried(turn++, std::size(modes))) continue;
    for (const std::string engine : {"cuda_fused", "cuda_gemm"}) {
      SCOPED_TRACE(mode + (" by " + engine));
      solve("b.h5", {"--device", "cuda", "--engine", engine, "--matrix-precision", mode});
      for (const auto& [a, b] : {std::pair("cpu.h5", "b.h5"), std::pair("b.h5", "cpu.h5")}) {
        const Said said = validate(a, b);
        EXPECT_EQ(said.code, 0) << said.text;
        EXPECT_NE(said.text.find(std::string("no more than ") + name + "'s rounding explains."), std::string::npos)
            << said.text;
      }
    }
    replace_by_wrong("b.h5", {"--device", "cuda", "--engine", "cuda_gemm", "--matrix-precision", mode});
    const Said said = validate("cpu.h5", "b.h5");
    EXPECT_EQ(said.code, 1) << mode << ": " << said.text;
    EXPECT_NE(said.text.find(std::string("times what ") + name + "'s rounding explains."), std::string::npos)
        << said.text;
  }
}

TEST_F(ValidateDevices, keeps_a_modes_certificate_with_its_file) {
  solve("cpu.h5", {"--device", "cpu", "--certificate"});
  solve("b.h5", {"--device", "cuda", "--matrix-precision", "bf16"});
  // That of the CPU's file is float32's: it says nothing of bfloat16.
  EXPECT_EQ(validate("cpu.h5", "b.h5", {"--stored-only"}).code, 2);
  solve("b.h5", {"--device", "cuda", "--matrix-precision", "bf16", "--certificate", "--certificate-samples",
                 kSanitized ? "8" : "40"});
  const auto certificate = agreement::read_certificate(path("b.h5"));
  ASSERT_TRUE(certificate.has_value());
  EXPECT_EQ(certificate->matrix_precision, MatrixPrecision::bf16);
  const Said said = validate("cpu.h5", "b.h5", {"--stored-only"});
  EXPECT_EQ(said.code, 0) << said.text;
  EXPECT_NE(said.text.find("as far as bfloat16 rounds products, stored in b.h5"), std::string::npos) << said.text;
}

}  // namespace
}  // namespace lockstep::cli
