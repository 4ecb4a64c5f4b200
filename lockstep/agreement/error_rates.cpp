// How often the verdict errs: right ports rejected, wrong ones accepted, over random ensembles and mistakes. The table
// of docs/validation.md. Usage: agreement_error_rates [trials] [trajectories] [threads] [first trial]
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lockstep/agreement/testing/compiled_solver.h"
#include "lockstep/agreement/testing/ensembles.h"
#include "lockstep/agreement/testing/foreign_solver.h"
#include "lockstep/agreement/testing/rounded_ports.h"
#include "lockstep/agreement/verdict.h"
#include "lockstep/core/parallel.h"
#include "lockstep/ode/function.h"

namespace lockstep::agreement {
namespace {

using testing::ForeignLorenz;
using testing::ForeignLotkaVolterra;
using testing::kStep;
using testing::Mistakes;
using testing::Rounding;
using testing::solve_rk4;

struct Tally {
  bool right = false;  // should be accepted
  std::size_t trials = 0;
  std::size_t agree = 0;
  std::size_t disagree = 0;
  double least_ratio = 1e300;  // of distance to spread, over trials
  double largest_ratio = 0;
  double largest_alone = 0;  // of a single trajectory to its own members, as a share of what is allowed
};

class Table {
 public:
  void add(const std::string& what, bool right, const Verdict& verdict) {
    const std::lock_guard lock(mutex_);
    if (!tallies_.contains(what)) order_.push_back(what);
    Tally& tally = tallies_[what];
    tally.right = right;
    ++tally.trials;
    if (verdict.outcome == Outcome::agree) ++tally.agree;
    if (verdict.outcome == Outcome::disagree) ++tally.disagree;
    if (verdict.evidence) {
      tally.least_ratio = std::min(tally.least_ratio, verdict.evidence->spread_tier.worst_ratio);
      tally.largest_ratio = std::max(tally.largest_ratio, verdict.evidence->spread_tier.worst_ratio);
      const SpreadTier& tier = verdict.evidence->spread_tier;
      if (tier.allowed_alone > 0) {
        tally.largest_alone = std::max(tally.largest_alone, tier.worst_alone / tier.allowed_alone);
      }
    }
    if (right == (verdict.outcome == Outcome::agree)) return;
    std::fprintf(stderr, "%s: %s\n", what.c_str(), verdict.sentence.c_str());
    for (const std::string& reason : verdict.reasons) std::fprintf(stderr, "  %s\n", reason.c_str());
  }

  void print() const {
    std::printf("| port | should be | trials | agree | disagree | no verdict | ratio to the spread | alone |\n");
    std::printf("|---|---|---|---|---|---|---|---|\n");
    for (const std::string& what : order_) {
      const Tally& t = tallies_.at(what);
      std::printf("| %s | %s | %zu | %zu | %zu | %zu | %.2g to %.2g | %.2g |\n", what.c_str(),
                  t.right ? "accepted" : "rejected", t.trials, t.agree, t.disagree, t.trials - t.agree - t.disagree,
                  t.least_ratio, t.largest_ratio, t.largest_alone);
    }
  }

 private:
  std::mutex mutex_;
  std::map<std::string, Tally> tallies_;
  std::vector<std::string> order_;
};

// What `lockstep validate` does where a file keeps its problem.
Settings examining(const ode::Problem& problem, const ode::Options& options) {
  Settings settings;
  settings.examine = [&problem, options](const std::vector<std::size_t>& trajectories) {
    return make_certificate(problem, options, {.chosen = trajectories, .members = kOwnMembers, .seed = 5});
  };
  return settings;
}

ode::Rhs another_lorenz() {
  return ode::function<3, 3>("another lorenz", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = p[0] * u[1] - p[0] * u[0];
    du[1] = u[0] * p[1] - (u[0] * u[2] + u[1]);
    du[2] = u[1] * u[0] - u[2] * p[2];
  });
}

// Two inputs, six leaky_relu units, two outputs, weights from the seed.
ode::Rhs net_with_slope(double slope, std::uint64_t seed) {
  DenseLayer hidden{2, 6, {}, {}, {}};
  DenseLayer output{6, 2, {}, {}, {}};
  const Random random(seed, 7);
  for (std::uint32_t i = 0; i < 12; ++i) hidden.weights.push_back(random.normal(0, i));
  for (std::uint32_t i = 0; i < 6; ++i) hidden.bias.push_back(random.normal(1, i));
  for (std::uint32_t i = 0; i < 12; ++i) output.weights.push_back(0.3 * random.normal(2, i));
  output.bias = {0.1, -0.1};
  hidden.activation = Activation{ActivationKind::leaky_relu, slope};
  return ode::net({{hidden, output}, {}, {}});
}

// The same net by somebody who sums from the other end, and starts from the bias or adds it last.
ode::Rhs net_summed_backwards(double slope, std::uint64_t seed) {
  const Random random(seed, 7);
  std::array<double, 12> in{}, out{};
  std::array<double, 6> bias{};
  for (std::uint32_t i = 0; i < 12; ++i) in[i] = random.normal(0, i);
  for (std::uint32_t i = 0; i < 6; ++i) bias[i] = random.normal(1, i);
  for (std::uint32_t i = 0; i < 12; ++i) out[i] = 0.3 * random.normal(2, i);
  return ode::function<2, 0>("net summed backwards", [=](auto, const auto& u, const auto&, auto& du) {
    using T = std::decay_t<decltype(du[0])>;
    du[0] = T(0.0);
    du[1] = T(0.0);
    for (std::size_t j = 6; j-- > 0;) {
      const T sum = u[1] * T(in[2 * j + 1]) + u[0] * T(in[2 * j]) + T(bias[j]);
      const T hidden = sum > T(0) ? sum : T(slope) * sum;
      du[0] = du[0] + T(out[j]) * hidden;
      du[1] = du[1] + T(out[6 + j]) * hidden;
    }
    du[0] = du[0] + T(0.1);
    du[1] = du[1] - T(0.1);
  });
}

template <class T>
void try_lorenz(std::uint64_t seed, std::size_t trajectories, double end, const std::string& suffix, Table& table) {
  const ode::Problem problem = testing::lorenz(trajectories, end, seed);
  const HeldEnsemble ours = testing::solved(problem, testing::fixed_rk4(kPrecisionOf<T>), seed);
  const Settings settings = examining(problem, testing::fixed_rk4(kPrecisionOf<T>));
  const auto judged = [&](Numbers numbers) { return judge(ours, HeldEnsemble(problem, std::move(numbers)), settings); };
  const Random random(seed, 99);
  const double sign = random.uniform(0, 0) < 0.5 ? -1 : 1;
  const Numbers contracted = solve_rk4<T, Rounding::contracted, ForeignLorenz>(problem, kStep);
  table.add("Lorenz, fused multiply-add" + suffix, true, judged(contracted));
  table.add("Lorenz, other summation order" + suffix, true,
            judged(solve_rk4<T, Rounding::reversed, ForeignLorenz>(problem, kStep)));
  for (const testing::CompiledSolver& solver : testing::compiled_solvers()) {
    table.add("Lorenz, compiled for " + solver.name + suffix, true,
              judged(sizeof(T) == 8 ? solver.solve_f64(problem, kStep) : solver.solve_f32(problem, kStep)));
  }
  table.add("Lorenz, weight off by 0.1 %" + suffix, false,
            judged(solve_rk4<T, Rounding::contracted, ForeignLorenz>(problem, kStep, {.weight = sign * 1e-3})));
  if (sizeof(T) == 8) {
    table.add("Lorenz, rho off by 1e-12" + suffix, false,
              judged(solve_rk4<T, Rounding::contracted, ForeignLorenz>(problem, kStep, {.parameter = sign * 1e-12})));
    Numbers narrow = solve_rk4<float, Rounding::plain, ForeignLorenz>(problem, kStep);
    narrow.precision = Precision::f64;
    table.add("Lorenz, float32 passed for float64" + suffix, false, judged(narrow));
  } else {
    table.add("Lorenz, rho off by 1e-3" + suffix, false,
              judged(solve_rk4<T, Rounding::contracted, ForeignLorenz>(problem, kStep, {.parameter = sign * 1e-3})));
  }
  Numbers swapped = contracted;
  const auto row = static_cast<std::ptrdiff_t>(ours.save_points() * 3);
  const auto which = static_cast<std::ptrdiff_t>(random.bits(1, 0) % (trajectories - 1));
  const auto at = swapped.states.begin() + which * row;
  std::swap_ranges(at, at + row, at + row);
  table.add("Lorenz, two neighbours swapped" + suffix, false, judged(swapped));
  // Two of the save points at t = 0.5 to 5 (float32: 2.5), in the port that is right otherwise.
  Numbers touched = contracted;
  const std::size_t one = random.bits(2, 0) % trajectories, early = sizeof(T) == 8 ? 10 : 5;
  const std::size_t at_first = random.bits(2, 1) % early;
  const std::size_t at_second = (at_first + 1 + random.bits(2, 2) % (early - 1)) % early;
  for (const std::size_t k : {at_first + 1, at_second + 1}) {
    for (std::size_t c = 0; c < 3; ++c) {
      double& state = touched.states[(one * ours.save_points() + k) * 3 + c];
      state = static_cast<double>(static_cast<T>(state * (1 + sign * (sizeof(T) == 8 ? 1e-9 : 1e-2))));
    }
  }
  table.add("Lorenz, one trajectory off by " + std::string(sizeof(T) == 8 ? "1e-9" : "1 %") + " at two times" + suffix,
            false, judged(touched));
  table.add("Lorenz, save points shifted by one" + suffix, false,
            judged(solve_rk4<T, Rounding::contracted, ForeignLorenz>(problem, kStep, {.late_by = 1})));
}

void try_adaptive(std::uint64_t seed, std::size_t trajectories, const ode::Options& options, const std::string& suffix,
                  Table& table) {
  const ode::Problem problem = testing::lorenz(trajectories, 25, seed);
  ode::Problem other = problem;
  other.rhs = another_lorenz();
  const HeldEnsemble ours = testing::solved(problem, options, seed);
  const Settings settings = examining(problem, options);
  table.add("Lorenz, other summation order, adaptive " + suffix, true,
            judge(ours, HeldEnsemble(problem, numbers_of(ode::solve(other, options))), settings));
  other.parameters[1] += 1e-12;
  if (options.precision == Precision::f64) {
    table.add("Lorenz, rho off by 1e-12, adaptive " + suffix, false,
              judge(ours, testing::stated_port(problem, other, options), settings));
  }
}

void try_orbits(std::uint64_t seed, std::size_t trajectories, Table& table) {
  const ode::Problem problem = testing::lotka_volterra(trajectories, 20, seed);
  const HeldEnsemble ours = testing::solved(problem, testing::fixed_rk4(), seed);
  const auto judged = [&](const Mistakes& mistakes) {
    return judge(
        ours,
        HeldEnsemble(problem, solve_rk4<double, Rounding::contracted, ForeignLotkaVolterra>(problem, kStep, mistakes)),
        examining(problem, testing::fixed_rk4()));
  };
  table.add("Lotka-Volterra, fused multiply-add", true, judged({}));
  table.add("Lotka-Volterra, weight off by 0.1 %", false, judged({.weight = 1e-3}));
  table.add("Lotka-Volterra, beta off by 1e-12", false, judged({.parameter = 1e-12}));
}

void try_net(std::uint64_t seed, std::size_t trajectories, Table& table) {
  ode::Problem problem;
  problem.rhs = net_with_slope(0.01, seed);
  problem.end_times = {3};
  problem.save_times = {0, 0.5, 1, 1.5, 2, 2.5, 3};
  const Random random(seed, 8);
  for (std::uint64_t i = 0; i < 2 * trajectories; ++i) problem.initial_states.push_back(random.normal(i, 0));
  const HeldEnsemble ours = testing::solved(problem, testing::fixed_rk4(), seed);
  ode::Problem backwards = problem;
  backwards.rhs = net_summed_backwards(0.01, seed);
  table.add("net, other summation order", true,
            judge(ours, HeldEnsemble(problem, numbers_of(ode::solve(backwards, testing::fixed_rk4()))),
                  examining(problem, testing::fixed_rk4())));
  ode::Problem wrong = problem;
  wrong.rhs = net_with_slope(0.01 + 1e-6, seed);
  table.add("net, activation slope off by 1e-6", false,
            judge(ours, HeldEnsemble(problem, numbers_of(ode::solve(wrong, testing::fixed_rk4()))),
                  examining(problem, testing::fixed_rk4())));
}

// Nets in the modes of tensor cores, against float32.
void try_rounded_nets(std::uint64_t seed, std::size_t trajectories, Table& table) {
  const Mlp mlp = testing::random_net(seed);
  const ode::Problem problem = testing::problem_of(mlp, trajectories, seed);
  const ode::Options options = testing::fixed_rk4(Precision::f32);
  const HeldEnsemble ours = testing::solved(problem, options, seed);
  Mlp activation = mlp, bias = mlp;
  activation.layers[0].activation = {ActivationKind::sigmoid};
  for (double& number : bias.layers[0].bias) number = 0;
  for (const MatrixPrecision mode : testing::kModes) {
    Settings settings;
    settings.certificate = make_certificate(problem, options, {.seed = seed, .matrix_precision = mode});
    settings.examine = [&](const std::vector<std::size_t>& chosen) {
      return make_certificate(problem, options,
                              {.chosen = chosen, .members = kOwnMembers, .seed = seed + 5, .matrix_precision = mode});
    };
    const auto judged = [&](const Mlp& port) {
      return judge(ours, HeldEnsemble(problem, testing::solve_rounded(problem, port, mode, options)), settings);
    };
    const std::string name = "net in " + std::string(to_string(mode));
    table.add(name, true, judged(mlp));
    table.add(name + ", sigmoid for tanh in a layer", false, judged(activation));
    table.add(name + ", a layer without its bias", false, judged(bias));
  }
}

}  // namespace
}  // namespace lockstep::agreement

int main(int argc, char** argv) {
  using namespace lockstep;
  using namespace lockstep::agreement;
  const int trials = argc > 1 ? std::atoi(argv[1]) : 200;
  const std::size_t trajectories = argc > 2 ? static_cast<std::size_t>(std::atol(argv[2])) : 200;
  const int threads = argc > 3 ? std::atoi(argv[3]) : available_threads();
  const int first = argc > 4 ? std::atoi(argv[4]) : 0;  // another part of the same trials
  Table table;
  const auto attempt = [&](int trial) {
    const auto seed = static_cast<std::uint64_t>(1000 + first + trial);
    try_lorenz<double>(seed, trajectories, 45, "", table);
    try_lorenz<float>(seed, trajectories, 25, ", float32", table);
    try_adaptive(seed, trajectories, agreement::testing::adaptive(Precision::f64, 1e-6), "1e-6", table);
    try_adaptive(seed, trajectories, agreement::testing::adaptive(Precision::f64, 1e-11), "1e-11", table);
    try_adaptive(seed, trajectories, agreement::testing::adaptive(Precision::f32, 1e-6), "1e-6, float32", table);
    try_orbits(seed, trajectories, table);
    try_net(seed, trajectories, table);
    try_rounded_nets(seed, trajectories, table);
  };
  attempt(0);  // alone, for the order of the rows
  std::atomic<int> next{1};
  run_on_threads(threads, [&](int) {
    for (int trial = next++; trial < trials; trial = next++) attempt(trial);
  });
  table.print();
  return 0;
}
