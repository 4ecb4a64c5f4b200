// solve --certificate and validate as a user runs them: files in, exit codes out.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lockstep/cli/app.h"
#include "lockstep/core/hdf5.h"

namespace lockstep::cli {
namespace {

constexpr const char* kProblem = R"(
[rhs]
system = "lorenz"
[ensemble]
trajectories = 60
initial_state = { normal = { mean = [1, 1, 25], std = 5 } }
[time]
span = [0, 10]
save = 21
[method]
name = "tsit5"
rtol = 1e-9
atol = 1e-9
precision = "f64"
)";

class Validate : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(::testing::TempDir()) / "lockstep_validate_test";
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    std::ofstream(folder_ / "lorenz.toml") << kProblem;
    solve({"--certificate", "--output", path("a.h5")});
    solve({"--output", path("b.h5")});
  }

  std::string path(const char* name) const { return (folder_ / name).string(); }

  static int run(std::vector<std::string> words) {
    words.insert(words.begin(), "lockstep");
    std::vector<const char*> argv;
    for (const std::string& word : words) argv.push_back(word.c_str());
    return run_app(static_cast<int>(argv.size()), argv.data());
  }

  void solve(std::vector<std::string> more) const {
    more.insert(more.begin(), {"solve", path("lorenz.toml"), "--quiet", "--threads", "1"});
    ASSERT_EQ(run(more), 0);
  }

  int validate(const char* a, const char* b, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words{"validate", path(a), path(b), "--quiet"};
    words.insert(words.end(), more.begin(), more.end());
    return run(words);
  }

  // Another engine's b.h5: every state after the first save point times 1 + relative.
  void change_b(double relative) const {
    hdf5::File file = hdf5::File::open(path("b.h5"), hdf5::File::Access::update);
    hdf5::Dataset state = file.dataset("state");
    std::vector<double> numbers = state.read<double>();
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      if (i / 3 % 21 != 0) numbers[i] *= 1 + (i % 2 == 0 ? relative : -relative);
    }
    state.write<double>(numbers);
  }

  std::filesystem::path folder_;
};

TEST_F(Validate, answers_0_for_the_same_bits) {
  EXPECT_EQ(validate("a.h5", "b.h5"), 0);
  EXPECT_EQ(validate("a.h5", "b.h5", {"--bits"}), 0);
}

TEST_F(Validate, answers_0_for_rounding_and_1_where_bits_were_asked_for) {
  change_b(0x1p-52);
  EXPECT_EQ(validate("a.h5", "b.h5"), 0);
  EXPECT_EQ(validate("a.h5", "b.h5", {"--bits"}), 1);
}

TEST_F(Validate, answers_1_for_more_than_rounding) {
  // 1e-9 at the first save point, where four ulps have not grown beyond 1e-13.
  change_b(1e-9);
  EXPECT_EQ(validate("a.h5", "b.h5", {"--report", path("report")}), 1);
  EXPECT_GT(std::filesystem::file_size(folder_ / "report" / "index.html"), 10'000u);
}

TEST_F(Validate, without_a_certificate_any_difference_counts) {
  std::filesystem::rename(path("b.h5"), path("plain.h5"));
  solve({"--output", path("b.h5")});
  change_b(0x1p-52);
  EXPECT_EQ(validate("plain.h5", "b.h5"), 1);
  EXPECT_EQ(validate("plain.h5", "b.h5", {"--lyapunov", "0.906"}), 0);
}

TEST_F(Validate, answers_2_for_another_problem) {
  solve({"--method", "dopri5", "--output", path("other.h5")});
  EXPECT_EQ(validate("a.h5", "other.h5"), 2);
  EXPECT_EQ(validate("a.h5", "lorenz.toml"), 2);
}

}  // namespace
}  // namespace lockstep::cli
