// solve --certificate and validate as a user runs them: files in, exit codes out.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>
#include <vector>

#include "lockstep/cli/app.h"
#include "lockstep/cli/stored_problem.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/safetensors.h"

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
  void change_b(double relative) const { change("b.h5", relative); }

  void change(const char* name, double relative) const {
    hdf5::File file = hdf5::File::open(path(name), hdf5::File::Access::update);
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

// What was not looked at is told, and no secret of the JSON.
TEST_F(Validate, says_where_single_trajectories_were_not_examined) {
  const auto said = [&](const std::vector<std::string>& words) {
    ::testing::internal::CaptureStdout();
    const int code = run(words);
    const std::string text = ::testing::internal::GetCapturedStdout();
    EXPECT_EQ(code, 0) << text;
    return text;
  };
  change_b(0x1p-52);
  const std::string whole = said({"validate", path("a.h5"), path("b.h5")});
  EXPECT_EQ(whole.find("not examined"), std::string::npos);
  EXPECT_NE(whole.find("one of them was made by another build, or is damaged"), std::string::npos) << whole;
  EXPECT_NE(said({"validate", path("a.h5"), path("b.h5"), "--stored-only"}).find("not solved again (--stored-only)"),
            std::string::npos);
  for (const char* name : {"a.h5", "b.h5"}) {
    hdf5::File file = hdf5::File::open(path(name), hdf5::File::Access::update);
    file.group("problem").set_attribute("system", "rossler");
  }
  const std::string text = said({"validate", path("a.h5"), path("b.h5"), "--report", path("report")});
  EXPECT_NE(text.find("(the farthest trajectories were not examined singly)"), std::string::npos) << text;
  EXPECT_NE(text.find("were not solved again (" + path("a.h5") + ": found another equation"), std::string::npos)
      << text;
  std::ifstream page(folder_ / "report" / "index.html");
  const std::string html(std::istreambuf_iterator<char>(page), {});
  EXPECT_NE(html.find("were not examined singly"), std::string::npos);
  EXPECT_NE(said({"validate", path("a.h5"), path("b.h5"), "--json"}).find("\"not_examined\""), std::string::npos);
}

// One wrong trajectory in the reference is no disagreement of the port's.
TEST_F(Validate, answers_2_for_a_damaged_reference) {
  const auto damage = [&](const char* name) {
    hdf5::File file = hdf5::File::open(path(name), hdf5::File::Access::update);
    hdf5::Dataset state = file.dataset("state");
    std::vector<double> numbers = state.read<double>();
    numbers.back() *= -1;
    state.write<double>(numbers);
  };
  damage("a.h5");
  EXPECT_EQ(validate("a.h5", "b.h5"), 2);
  EXPECT_EQ(validate("b.h5", "a.h5"), 1);
  solve({"--output", path("plain.h5")});
  damage("plain.h5");
  EXPECT_EQ(validate("plain.h5", "b.h5"), 2);
}

TEST_F(Validate, answers_alike_for_two_precisions_in_either_order) {
  std::ofstream(folder_ / "lorenz.toml")
      << "[rhs.equations]\nx = \"v\"\nv = \"(1 - x^2) * v - x\"\n"
         "[ensemble]\ntrajectories = 100\ninitial_state = { box = { low = [0, 0], high = [2, 1] } }\n"
         "[time]\nspan = [0, 60]\nsave = 101\n[method]\nrtol = 1e-4\nprecision = \"f64\"\n";
  solve({"--output", path("wide.h5"), "--certificate"});
  solve({"--output", path("narrow.h5"), "--precision", "f32"});
  EXPECT_EQ(validate("wide.h5", "narrow.h5"), 0);
  EXPECT_EQ(validate("narrow.h5", "wide.h5"), 0);
  solve({"--output", path("wrong.h5")});
  change("wrong.h5", 1e-2);
  EXPECT_EQ(validate("narrow.h5", "wrong.h5"), 1);
}

TEST_F(Validate, answers_1_for_more_than_rounding) {
  // 1e-9 at the first save point, where four ulps have not grown beyond 1e-13.
  change_b(1e-9);
  EXPECT_EQ(validate("a.h5", "b.h5", {"--report", path("report")}), 1);
  EXPECT_GT(std::filesystem::file_size(folder_ / "report" / "index.html"), 10'000u);
}

TEST_F(Validate, without_a_certificate_a_sample_is_solved_again) {
  std::filesystem::rename(path("b.h5"), path("plain.h5"));
  solve({"--output", path("b.h5")});
  change_b(0x1p-52);
  EXPECT_EQ(validate("plain.h5", "b.h5"), 0);
  EXPECT_EQ(validate("b.h5", "plain.h5"), 0);  // b.h5 is not what its problem gives; plain.h5 is
  EXPECT_EQ(validate("plain.h5", "b.h5", {"--stored-only"}), 2);
  EXPECT_EQ(validate("plain.h5", "b.h5", {"--lyapunov", "0.906"}), 0);
  change_b(1e-9);
  EXPECT_EQ(validate("plain.h5", "b.h5"), 1);
  EXPECT_EQ(validate("plain.h5", "b.h5", {"--json"}), 1);
}

// Every way to state a problem: solved again from the file alone, the bits are the file's.
TEST_F(Validate, rebuilds_every_kind_of_problem_from_its_file) {
  const std::string net = std::string("model = \"") + LOCKSTEP_TEST_DATA "/lorenz_tanh_3_100_3.safetensors\"\n";
  const std::string ensemble =
      "[ensemble]\ntrajectories = 70\ninitial_state = { normal = { mean = [1, 1, 25], std = 5 } }\n";
  const std::string time = "[time]\nspan = [0, 1]\nsave = 6\n";
  const std::string adaptive = "[method]\nname = \"dopri5\"\nrtol = 1e-5\natol = 1e-6\n";
  const std::string event = "[event]\ncomponent = \"z\"\nvalue = 20.0\ndirection = \"falling\"\n";
  const std::string shared_impulses = "[[impulses]]\ncomponent = 0\nchange = 1\nfrom = 0\nevery = 0.375\n";
  const std::string own_impulses =
      "[[impulses]]\ncomponent = \"y\"\nchange = { box = [-1, 1] }\nfactor = 0.9\ntimes = [1.1, 0.4]\n"
      "[[impulses]]\nfile = \"doses.csv\"\n";
  std::ofstream(folder_ / "doses.csv") << "trajectory,time,component,change\n5,0.5,z,2\n0,0.25,x,1\n5,0.3,0,-2\n";
  const std::vector<std::string> problems{
      "[rhs]\nsystem = \"lorenz\"\n" + ensemble + time + adaptive + "control = \"common\"\nprecision = \"f64\"\n",
      "[rhs]\n" + net + ensemble + time + "[method]\nname = \"rk4\"\ncontrol = \"fixed\"\ndt = 0.01\n",
      "[rhs]\nsystem = \"lorenz\"\n" + net + ensemble + time + adaptive + "initial_step = 0.001\nmax_step = 0.05\n",
      "[rhs]\nsystem = \"lorenz\"\n" + ensemble + time + adaptive + event,
      "[rhs]\nsystem = \"lorenz\"\n" + ensemble +
          "parameters = { box = { low = [9, 20, 2], high = [11, 30, 3] } }\n"
          "[time]\nspan = { box = { low = [0, 1], high = [0.5, 2] } }\nsave = 5\n" +
          adaptive,
      "[rhs]\nparameters = { rho = 28, beta = \"8/3\" }\nmodels = { net = \"" LOCKSTEP_TEST_DATA
      "/lorenz_tanh_3_100_3.safetensors\" }\n[rhs.equations]\nx = \"net(x, y, z)[0]\"\n"
      "y = \"x * (rho - z) - y\"\nz = \"x*y - beta*z + 0.01 * sin(t)\"\n" +
          ensemble + time + adaptive,
      "[rhs]\nsystem = \"lorenz\"\n" + ensemble + time + adaptive +
          "[event]\nfunction = \"x*y - rho * cos(t)\"\ndirection = \"falling\"\n",
      "[rhs]\nsystem = \"lorenz\"\n" + ensemble + time + adaptive + event + shared_impulses,
      "[rhs]\nsystem = \"lorenz\"\n" + ensemble + time + adaptive + "control = \"common\"\n" + shared_impulses,
      "[rhs]\n" + net + ensemble + time + "[method]\nname = \"rk4\"\ndt = 0.125\n" + shared_impulses,
      "[rhs]\nsystem = \"lorenz\"\n" + ensemble + time + adaptive + own_impulses,
      "[rhs]\nsystem = \"lorenz\"\n" + ensemble +
          "[time]\nspan = { box = { low = [0, 1], high = [0.5, 2] } }\nsave = 5\n" + adaptive + own_impulses +
          "[[impulses]]\ncomponent = 2\nfactor = 0.75\nevery = 0.25\n",
  };
  for (const std::string& problem : problems) {
    SCOPED_TRACE(problem);
    std::ofstream(folder_ / "kind.toml") << problem;
    ASSERT_EQ(run({"solve", path("kind.toml"), "--output", path("kind.h5"), "--quiet", "--overwrite"}), 0);
    const agreement::Certificate certificate =
        recompute_certificate(ode::ResultFile(path("kind.h5")), {.samples = 13, .members = 2}, {});
    EXPECT_EQ(certificate.trajectories, agreement::evenly_spaced(70, 13));
    EXPECT_EQ(certificate.states.size(), 2 * 13 * certificate.save_points * 3);
  }
}

// Whatever a net's solve does outside its training range, and where some trajectories start outside.
TEST_F(Validate, rebuilds_guarded_nets_from_their_file) {
  nn::Model model = nn::load(LOCKSTEP_TEST_DATA "/lorenz_tanh_3_100_3.safetensors");
  for (nn::Feature& feature : model.inputs[0].features) feature.minimum = -12, feature.maximum = 36;
  nn::write_safetensors(path("ranged.safetensors"), model, Existing::refuse);
  std::size_t turn = 0;
  for (const std::string rhs :
       {"model = \"ranged.safetensors\"\n", "system = \"lorenz\"\nmodel = \"ranged.safetensors\"\n"}) {
    for (const std::string guard : {"flag", "clamp", "stop", "ignore"}) {
      if (!is_tried(turn++, 3)) continue;
      SCOPED_TRACE(rhs + guard);
      std::ofstream(folder_ / "kind.toml")
          << "[rhs]\n" + rhs + "guard = \"" + guard +
                 "\"\n[ensemble]\ntrajectories = 70\ninitial_state = { normal = { mean = [1, 1, 25], std = 5 } }\n"
                 "[time]\nspan = [0, 1]\nsave = 6\n";
      ASSERT_EQ(run({"solve", path("kind.toml"), "--output", path("kind.h5"), "--quiet", "--overwrite"}), 0);
      const ode::ResultFile file(path("kind.h5"));
      std::size_t outside = 0;
      for (const auto& record : file.records(0, 70)) outside += record.status == ode::Status::outside_range ? 1 : 0;
      EXPECT_EQ(outside > 0, guard == "flag" || guard == "stop") << outside;
      EXPECT_EQ(recompute_certificate(file, {.samples = 70, .members = 1}, {}).samples(), 70u);
    }
  }
}

TEST_F(Validate, measures_the_distance_of_another_method_or_tolerance_and_gives_no_verdict) {
  solve({"--method", "dopri5", "--output", path("method.h5")});
  solve({"--rtol", "1e-5", "--output", path("rtol.h5")});
  for (const char* other : {"method", "rtol"}) {
    const std::string name = std::string(other) + ".h5";
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(run({"validate", path("a.h5"), path(name.c_str())}), 2);
    const std::string text = ::testing::internal::GetCapturedStdout();
    for (const std::string& said :
         {std::string("different: "), std::string("largest absolute"), std::string("earliest in time"),
          "No verdict: a.h5 and " + name + " are of one problem, but not solved alike (" + other + " differs",
          std::string("In units of the solution's size, the median trajectory")}) {
      EXPECT_NE(text.find(said), std::string::npos) << said << "\n" << text;
    }
    EXPECT_EQ(validate("a.h5", name.c_str()), 2);
    ::testing::internal::CaptureStdout();
    EXPECT_EQ(run({"validate", path("a.h5"), path(name.c_str()), "--json"}), 2);
    EXPECT_NE(::testing::internal::GetCapturedStdout().find("\"median_distance\""), std::string::npos);
  }
}

TEST_F(Validate, answers_2_for_another_problem) {
  std::filesystem::remove(path("lorenz.toml"));
  std::ofstream(folder_ / "lorenz.toml") << std::regex_replace(kProblem, std::regex("0, 10"), "0, 9");
  solve({"--output", path("other.h5")});
  EXPECT_EQ(validate("a.h5", "other.h5"), 2);
  EXPECT_EQ(validate("a.h5", "lorenz.toml"), 2);
}

}  // namespace
}  // namespace lockstep::cli
