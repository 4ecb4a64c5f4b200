// Iterations of training a neural ODE (forward, gradient, Adam), as JSON lines for neural_train_vs_peers.py.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "lockstep/nn/compile.h"
#include "lockstep/nn/load.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "lockstep/train/optimiser.h"

namespace {

using namespace lockstep;
using Clock = std::chrono::steady_clock;

// Initial states [trajectory][3], raw float64.
std::vector<double> read_states(const std::string& path) {
  std::ifstream file(path, std::ios::binary | std::ios::ate);
  std::vector<double> states(static_cast<std::size_t>(file.tellg()) / sizeof(double));
  file.seekg(0).read(reinterpret_cast<char*>(states.data()),
                     static_cast<std::streamsize>(states.size() * sizeof(double)));
  return states;
}

// Adam at 0.01 on the mean over trajectories of the sum of squared differences at 101 times in 0..1.
nlohmann::json time_training(const std::string& model, const std::vector<double>& states, bool fixed, int iterations,
                             int threads, std::optional<CpuTarget> target) {
  ode::Problem problem;
  problem.rhs = ode::net(nn::to_mlp(nn::load(model)));
  problem.initial_states = states;
  problem.end_times = {1};
  for (int i = 0; i <= 100; ++i) problem.save_times.push_back(i / 100.0);
  ode::Problem truth = problem;
  truth.rhs = ode::system("lorenz");
  truth.parameters = {10, 28, 8.0 / 3};
  const ode::Options precise{.method = "dop853", .rtol = 1e-12, .atol = 1e-12, .precision = Precision::f64};
  const ode::Solution solution = ode::solve(truth, precise);
  ode::SquaredError loss{.targets = {}, .weights = {}, .scale = 1.0 / static_cast<double>(problem.trajectories())};
  for (const double x : solution.states<double>()) loss.targets.push_back(static_cast<float>(x));
  ode::Options options;
  options.threads = threads;
  options.cpu_target = target;
  if (fixed) {
    options.control = ode::StepControl::fixed;
    options.dt = 0.01;
  }

  const auto begin = Clock::now();
  ode::GradientSolver solver(problem, options, loss);
  std::vector<double> weights = problem.rhs->weights();
  std::vector<float> parameters(weights.begin(), weights.end()), gradient(weights.size());
  train::Optimiser<float> adam({}, parameters.size());
  std::vector<double> seconds;
  double steps = 0, last_loss = 0, first = 0;
  for (int i = 0; i < iterations; ++i) {
    const auto start = Clock::now();
    std::copy(parameters.begin(), parameters.end(), weights.begin());
    const ode::Gradients& gradients = solver.evaluate(weights);
    std::transform(gradients.weights.begin(), gradients.weights.end(), gradient.begin(),
                   [](double g) { return static_cast<float>(g); });
    adam.step(parameters, gradient, 0.01);
    seconds.push_back(std::chrono::duration<double>(Clock::now() - start).count());
    if (i == 0) first = std::chrono::duration<double>(Clock::now() - begin).count();
    last_loss = gradients.loss;
    for (const auto& record : gradients.records) steps += record.accepted + record.rejected;
  }
  std::sort(seconds.begin(), seconds.end());
  return {{"unit", "ms/iteration"},
          {"best", seconds.front() * 1e3},
          {"median", seconds[seconds.size() / 2] * 1e3},
          {"repeats", iterations},
          {"first_iteration_ms", first * 1e3},
          {"steps_mean", steps / static_cast<double>(iterations) / static_cast<double>(problem.trajectories())},
          {"loss_at", iterations},
          {"loss", last_loss}};
}

}  // namespace

int main(int argc, char** argv) {
  std::string model, states, steps = "fixed", target;
  int iterations = 100, threads = 1;
  CLI::App app{"Times iterations of training a neural ODE"};
  app.add_option("--model", model, "safetensors file with the weights to start from")->required();
  app.add_option("--initial-states", states, "raw float64 [trajectory][3]")->required();
  app.add_option("--steps", steps, "fixed (100 of Tsit5) or adaptive (1e-6)")
      ->check(CLI::IsMember({"fixed", "adaptive"}));
  app.add_option("--iterations", iterations, "to time");
  app.add_option("--threads", threads, "");
  app.add_option("--cpu-target", target, "avx2 and the like; the best here otherwise");
  CLI11_PARSE(app, argc, argv);
  std::puts(time_training(model, read_states(states), steps == "fixed", iterations, threads, parse_cpu_target(target))
                .dump()
                .c_str());
}
