// Times solves of ensembles of neighbouring sizes: what the trajectories cost that do not fill a tile or a register.
//   ensemble_sizes [--workload PART] [--method NAME] [--sizes 31,32,33] [--threads N] [--rounds N] [--cpu-target NAME]
// One line a workload and size: microseconds a solve, the least of the rounds, in which all sizes take turns; and the
// ratio to the size of whole tiles before it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <random>

#include "lockstep/nn/equations.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/model.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace {

using namespace lockstep;

ode::Rhs lorenz_by_text() {
  nn::Equations system;
  system.equations = {{"x", "sigma * (y - x)", ""}, {"y", "x * (rho - z) - y", ""}, {"z", "x*y - beta*z", ""}};
  system.parameters = {{"sigma", {}}, {"rho", {}}, {"beta", {}}};
  return ode::net(nn::to_graph(nn::equations(system)));
}

ode::Rhs tanh_by_text() {
  nn::Equations system;
  system.equations = {{"x", "v", ""}, {"v", "-tanh(x) - 0.1 * v", ""}};
  return ode::net(nn::to_graph(nn::equations(system)));
}

ode::Rhs lorenz96_by_text() {
  constexpr int kSites = 40;
  const auto site = [](int i) { return "u" + std::to_string((i + kSites) % kSites + 1); };
  nn::Equations system;
  for (int i = 0; i < kSites; ++i) {
    system.equations.push_back(
        {site(i), "(" + site(i + 1) + " - " + site(i - 2) + ") * " + site(i - 1) + " - " + site(i) + " + forcing", ""});
  }
  system.parameters = {{"forcing", {}}};
  return ode::net(nn::to_graph(nn::equations(system)));
}

// From the first states plus normal noise, t from 0 to 1; `saves` states are kept of each trajectory.
ode::Problem problem(ode::Rhs rhs, std::vector<double> start, std::vector<double> parameters, int saves,
                     std::size_t trajectories) {
  ode::Problem result;
  result.rhs = std::move(rhs);
  result.parameters = std::move(parameters);
  result.end_times = {1};
  for (int i = 1; i <= saves; ++i) result.save_times.push_back(static_cast<double>(i) / saves);
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 0.1);
  for (std::size_t i = 0; i < trajectories; ++i) {
    for (const double u : start) result.initial_states.push_back(static_cast<float>(u + noise(random)));
  }
  return result;
}

struct Workload {
  std::string name;
  std::function<ode::Problem(std::size_t)> make;
  ode::Options options;
};

std::vector<Workload> workloads(const std::string& method) {
  std::vector<Workload> all;
  struct System {
    std::string name;
    ode::Rhs rhs;
    std::vector<double> start, parameters;
    double dt;
  };
  const std::vector<double> ring(40, 8.0);
  const System systems[] = {
      {"tanh-text", tanh_by_text(), {1, 0}, {}, 0.01},
      {"neural", ode::net(nn::to_mlp(nn::load(LOCKSTEP_BENCH_MODEL))), {1, 0, 0}, {}, 0.01},
      {"lorenz-text", lorenz_by_text(), {1, 0, 0}, {10, 28, 8.0 / 3}, 0.01},
      {"lorenz", ode::system("lorenz"), {1, 0, 0}, {10, 28, 8.0 / 3}, 0.01},
      {"lorenz96-text", lorenz96_by_text(), ring, {8}, 0.01},
      {"lorenz96", ode::system("lorenz96"), ring, {8}, 0.01},
  };
  for (const System& system : systems) {
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      for (const bool fixed : {true, false}) {
        if (!fixed && ode::method(method).error.empty()) continue;
        for (const int saves : {0, 100}) {
          ode::Options options;
          options.method = method;
          options.precision = precision;
          options.rtol = options.atol = precision == Precision::f32 ? 1e-5 : 1e-8;
          if (fixed) {
            options.control = ode::StepControl::fixed;
            options.dt = system.dt;
          }
          all.push_back({system.name + (precision == Precision::f32 ? "/f32" : "/f64") +
                             (fixed ? "/fixed" : "/adaptive") + (saves > 0 ? "/saves" : "/end"),
                         [&, system, saves](std::size_t count) {
                           return problem(system.rhs, system.start, system.parameters, saves, count);
                         },
                         options});
        }
      }
    }
  }
  return all;
}

// Seconds of a solve, of as many as take a few milliseconds.
double time_of(const ode::Problem& problem, const ode::Options& options, int calls) {
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < calls; ++i) ode::solve(problem, options);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / calls;
}

void run(const Workload& workload, const std::vector<std::size_t>& sizes, int rounds) {
  std::vector<ode::Problem> problems;
  std::vector<double> best;
  std::vector<int> calls;
  for (const std::size_t size : sizes) {
    problems.push_back(workload.make(size));
    for (int i = 0; i < 3; ++i) ode::solve(problems.back(), workload.options);
    best.push_back(time_of(problems.back(), workload.options, 1));
    calls.push_back(std::clamp(static_cast<int>(2e-3 / best.back()), 1, 100));
  }
  for (int round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < sizes.size(); ++i)
      best[i] = std::min(best[i], time_of(problems[i], workload.options, calls[i]));
  }
  double whole = 0;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] % 32 == 0) whole = best[i];
    std::printf("%-30s %4zu %10.2f us", workload.name.c_str(), sizes[i], best[i] * 1e6);
    if (whole > 0) std::printf(" %6.2f", best[i] / whole);
    std::printf("\n");
  }
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  std::string part, target, method = "tsit5";
  std::vector<std::size_t> sizes = {1, 8, 9, 16, 17, 24, 32, 33, 40, 48, 63, 64, 65};
  int threads = 1, rounds = 20;
  CLI::App app("times ensembles of neighbouring sizes");
  app.add_option("--workload", part, "those whose name has this in it");
  app.add_option("--sizes", sizes)->delimiter(',');
  app.add_option("--threads", threads);
  app.add_option("--rounds", rounds);
  app.add_option("--cpu-target", target);
  app.add_option("--method", method);
  CLI11_PARSE(app, argc, argv);
  try {
    for (Workload& workload : workloads(method)) {
      if (workload.name.find(part) == std::string::npos) continue;
      workload.options.threads = threads;
      if (!target.empty()) workload.options.cpu_target = parse_cpu_target(target);
      run(workload, sizes, rounds);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ensemble_sizes: error: %s\n", error.what());
    return 2;
  }
}
