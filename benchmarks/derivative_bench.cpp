// Times derivatives of solves, forwards and back, for few trajectories and many, and prints one JSON object a line:
//   derivative_bench [--rhs lorenz|text|cells|net|hybrid] [--cells N] [--sizes 1,4,32,1000] [--method NAME] [--steps N]
//                    [--precision f32|f64] [--budget SECONDS]
// `text` is the Lorenz equations as text, `hybrid` that system plus a net. Times are the least of the repeats, in
// microseconds for all trajectories: gradient_us of a solver that is kept, gradient_once_us of solve_with_gradients(),
// which sets one up. `steps` is the sum of their steps.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "lockstep/nn/equations.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/model.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/sensitivity.h"

namespace {

using namespace lockstep;

struct Arguments {
  std::string rhs = "lorenz", model = LOCKSTEP_BENCH_MODEL, method = "tsit5", precision = "f64";
  std::size_t cells = 30;
  std::vector<std::size_t> sizes = {1, 4, 32, 1000};
  int steps = 0;
  double budget = 1;
};

// Diffusion and growth in a row of cells, written as text.
ode::Rhs cells(std::size_t count) {
  nn::Equations system;
  for (std::size_t i = 0; i < count; ++i) {
    const auto cell = [&](std::size_t at) { return "u" + std::to_string(at); };
    const std::string left = i == 0 ? "0" : cell(i - 1), right = i + 1 == count ? "0" : cell(i + 1), here = cell(i);
    system.equations.push_back(
        {here, "k*(" + left + " - 2*" + here + " + " + right + ") + " + here + "*(1 - " + here + ")", ""});
  }
  system.parameters = {{"k", {}}};
  return ode::net(nn::to_graph(nn::equations(system)));
}

ode::Rhs lorenz_as_text() {
  nn::Equations system;
  system.equations = {{"x", "sigma * (y - x)", ""}, {"y", "x * (rho - z) - y", ""}, {"z", "x*y - beta*z", ""}};
  system.parameters = {{"sigma", {}}, {"rho", {}}, {"beta", {}}};
  return ode::net(nn::to_graph(nn::equations(system)));
}

ode::Problem problem_of(const Arguments& arguments, std::size_t trajectories) {
  ode::Problem problem;
  if (arguments.rhs == "lorenz" || arguments.rhs == "text" || arguments.rhs == "hybrid") {
    problem.rhs = arguments.rhs == "text" ? lorenz_as_text() : ode::system("lorenz");
    if (arguments.rhs == "hybrid") problem.rhs = ode::sum(problem.rhs, ode::net(nn::to_mlp(nn::load(arguments.model))));
    problem.parameters = {10, 28, 8.0 / 3};
  } else if (arguments.rhs == "cells") {
    problem.rhs = cells(arguments.cells);
    problem.parameters = {1};
  } else {
    problem.rhs = ode::net(nn::to_mlp(nn::load(arguments.model)));
  }
  std::mt19937_64 random(1);
  std::normal_distribution<double> start(1, 0.1);
  for (std::size_t i = 0; i < trajectories * problem.rhs->components(); ++i)
    problem.initial_states.push_back(start(random));
  problem.end_times = {1};
  for (int i = 0; i <= 10; ++i) problem.save_times.push_back(i == 10 ? 1 : 0.1 * i);
  return problem;
}

template <class Call>
double least_us(double budget, const Call& call) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  double best = 1e30;
  do {
    const auto start = Clock::now();
    call();
    best = std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - start).count());
  } while (std::chrono::duration<double>(Clock::now() - begin).count() < budget);
  return best;
}

void measure(const Arguments& arguments, std::size_t trajectories) {
  const ode::Problem problem = problem_of(arguments, trajectories);
  ode::Options options{.method = arguments.method,
                       .precision = arguments.precision == "f32" ? Precision::f32 : Precision::f64,
                       .threads = 1};
  if (arguments.steps > 0) {
    options.control = ode::StepControl::fixed;
    options.dt = 1.0 / arguments.steps;
  }
  long steps = 0;
  const double sensitivities = least_us(arguments.budget, [&] {
    steps = 0;
    for (const auto& record : ode::solve_with_sensitivities(problem, options).records) steps += record.accepted;
  });
  const auto sum = [](std::size_t, std::span<const double> states, std::span<double> slopes) {
    std::ranges::fill(slopes, 1.0);
    return states.back();
  };
  ode::GradientSolver solver(problem, options, ode::TrajectoryLoss(sum));
  const double gradient = least_us(arguments.budget, [&] { solver.evaluate(); });
  const double once =
      least_us(arguments.budget, [&] { ode::solve_with_gradients(problem, options, ode::TrajectoryLoss(sum)); });
  std::printf(
      "{\"rhs\": \"%s\", \"trajectories\": %zu, \"method\": \"%s\", \"precision\": \"%s\", \"steps\": %ld, "
      "\"sensitivities_us\": %.5g, \"gradient_us\": %.5g, \"gradient_once_us\": %.5g}\n",
      arguments.rhs.c_str(), trajectories, arguments.method.c_str(), arguments.precision.c_str(), steps, sensitivities,
      gradient, once);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app{"Times derivatives of solves."};
  app.add_option("--rhs", arguments.rhs)->check(CLI::IsMember({"lorenz", "text", "cells", "net", "hybrid"}));
  app.add_option("--cells", arguments.cells);
  app.add_option("--model", arguments.model);
  app.add_option("--sizes", arguments.sizes)->delimiter(',');
  app.add_option("--method", arguments.method);
  app.add_option("--steps", arguments.steps, "fixed steps, as many; 0: adaptive");
  app.add_option("--precision", arguments.precision)->check(CLI::IsMember({"f32", "f64"}));
  app.add_option("--budget", arguments.budget);
  CLI11_PARSE(app, argc, argv);
  for (const std::size_t size : arguments.sizes) measure(arguments, size);
  return 0;
}
