// Times whole ensemble solves and prints one JSON object a line, for the scripts that pair them with other libraries.
//   ode_bench --workload NAME --size TRAJECTORIES [--threads N] [--budget SECONDS] [--model FILE] [--cpu-target NAME]
//             [--equations]
// With --equations the Lorenz workloads take the right-hand side written as text instead of the built-in system.
// `best` is the smallest time of the repeats, in microseconds a trajectory; `error` the largest deviation of up to 64
// trajectories from a float64 solve by dop853 at 1e-13.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <random>

#include "lockstep/core/error.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/model.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "lorenz_ensemble.h"

namespace {

using namespace lockstep;

struct Arguments {
  std::string workload;
  std::size_t size = 10'000;
  int threads = 1;
  double budget = 2;
  std::string model = LOCKSTEP_BENCH_MODEL;
  std::string cpu_target;
  bool equations = false;
};

ode::Problem lorenz(const Arguments& arguments) {
  ode::Problem problem = lorenz_ensemble(arguments.size);
  if (!arguments.equations) return problem;
  nn::Equations system;
  system.equations = {{"x", "sigma * (y - x)", ""}, {"y", "x * (rho - z) - y", ""}, {"z", "x*y - beta*z", ""}};
  system.parameters = {{"sigma", {}}, {"rho", {}}, {"beta", {}}};
  problem.rhs = ode::net(nn::to_graph(nn::equations(system)));
  return problem;
}

// The trained 3-100-3 net from (1, 0, 0) plus normal noise of 0.1, t from 0 to 1, 101 saved states.
ode::Problem neural(std::size_t size, const std::string& model) {
  ode::Problem problem;
  problem.rhs = ode::net(nn::to_mlp(nn::load(model)));
  problem.end_times = {1};
  for (int i = 0; i <= 100; ++i) problem.save_times.push_back(i == 100 ? 1 : 0.01 * i);
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 0.1);
  for (std::size_t i = 0; i < size; ++i) {
    for (const double centre : {1.0, 0.0, 0.0})
      problem.initial_states.push_back(static_cast<float>(centre + noise(random)));
  }
  return problem;
}

// Trajectories whose step counts differ by more than ten: rho is 28 for all, but every eighth runs to t = 12 and the
// others to t = 1, in random order. "uniform" has the same mean number of steps in each trajectory.
ode::Problem uneven(std::size_t size, bool uniform) {
  ode::Problem problem;
  problem.rhs = ode::system("lorenz");
  problem.parameters = {10, 28, 8.0 / 3};
  problem.end_times.clear();
  std::mt19937_64 random(2);
  for (std::size_t i = 0; i < size; ++i) {
    const double x = std::uniform_real_distribution<double>(-1, 1)(random);
    problem.initial_states.insert(problem.initial_states.end(), {x - 8, x - 8, x + 27});
    problem.end_times.push_back(uniform ? 2.375 : random() % 8 == 0 ? 12 : 1);
  }
  return problem;
}

ode::Options reference_options() {
  ode::Options options;
  options.method = "dop853";
  options.precision = Precision::f64;
  options.rtol = options.atol = 1e-13;
  options.max_steps = 1'000'000;
  options.threads = 1;
  return options;
}

// Up to 64 evenly spaced trajectories of the ensemble.
std::vector<std::size_t> sample_of(std::size_t size) {
  std::vector<std::size_t> sample;
  const std::size_t count = std::min<std::size_t>(size, 64);
  for (std::size_t i = 0; i < count; ++i) sample.push_back(count == 1 ? 0 : i * (size - 1) / (count - 1));
  return sample;
}

class Bench {
 public:
  Bench(Arguments arguments, ode::Problem problem) : arguments_(std::move(arguments)), problem_(std::move(problem)) {
    ode::Problem part = problem_;
    part.initial_states.clear();
    part.parameters.clear();
    if (problem_.end_times.size() != 1) part.end_times.clear();
    const std::size_t n = problem_.rhs->components(), m = problem_.rhs->parameters();
    sample_ = sample_of(problem_.trajectories());
    for (const std::size_t i : sample_) {
      part.initial_states.insert(part.initial_states.end(), &problem_.initial_states[i * n],
                                 &problem_.initial_states[i * n] + n);
      const double* p = m == 0 ? nullptr : problem_.parameters_of(i);
      part.parameters.insert(part.parameters.end(), p, p + m);
      if (problem_.end_times.size() != 1) part.end_times.push_back(problem_.end_times[i]);
    }
    reference_ = std::make_unique<ode::Solution>(ode::solve(part, reference_options()));
  }

  void run(ode::Options options) {
    options.threads = arguments_.threads;
    if (!arguments_.cpu_target.empty()) options.cpu_target = parse_cpu_target(arguments_.cpu_target);
    std::vector<double> seconds;
    double error = 0, steps = 0;
    const auto now = [] { return std::chrono::steady_clock::now(); };
    const auto begin = now();
    ode::Solution solution(options.precision, problem_.trajectories(), problem_.rhs->components(), problem_.save_times,
                           false);
    struct Sink : ode::SolutionSink {
      explicit Sink(ode::Solution& s) : solution(s) {}
      ode::SolutionBlock acquire(std::size_t first, std::size_t count) override { return solution.block(first, count); }
      void commit(const ode::SolutionBlock&) override {}
      ode::Solution& solution;
    } sink(solution);
    while (seconds.size() < 3 || std::chrono::duration<double>(now() - begin).count() < arguments_.budget) {
      const auto start = now();
      ode::solve(problem_, options, sink);
      seconds.push_back(std::chrono::duration<double>(now() - start).count());
    }
    for (std::size_t s = 0; s < sample_.size(); ++s) {
      for (std::size_t c = 0; c < problem_.rhs->components(); ++c) {
        error = std::max(error, std::fabs(solution.end_state(sample_[s], c) - reference_->end_state(s, c)));
        for (std::size_t k = 0; k < problem_.save_points(); ++k) {
          error = std::max(error, std::fabs(solution.state(sample_[s], k, c) - reference_->state(s, k, c)));
        }
      }
    }
    for (const auto& record : solution.records()) steps += record.accepted + record.rejected;
    std::sort(seconds.begin(), seconds.end());
    const double scale = 1e6 / static_cast<double>(problem_.trajectories());
    nlohmann::ordered_json row = {{"workload", arguments_.workload},
                                  {"size", problem_.trajectories()},
                                  {"threads", arguments_.threads},
                                  {"unit", "us/trajectory"},
                                  {"rhs", problem_.rhs->description()},
                                  {"best", seconds.front() * scale},
                                  {"median", seconds[seconds.size() / 2] * scale},
                                  {"repeats", seconds.size()},
                                  {"error", error},
                                  {"method", options.method},
                                  {"steps", steps / static_cast<double>(problem_.trajectories())},
                                  {"ns_per_step", seconds.front() * 1e9 / steps}};
    if (options.control != ode::StepControl::fixed) row["tolerance"] = options.rtol;
    std::printf("%s\n", row.dump().c_str());
    std::fflush(stdout);
  }

 private:
  Arguments arguments_;
  ode::Problem problem_;
  std::vector<std::size_t> sample_;
  std::unique_ptr<ode::Solution> reference_;
};

ode::Options adaptive(const std::string& method, Precision precision, double tolerance) {
  ode::Options options;
  options.method = method;
  options.precision = precision;
  options.rtol = options.atol = tolerance;
  return options;
}

ode::Options fixed(const std::string& method, double dt) {
  ode::Options options;
  options.method = method;
  options.control = ode::StepControl::fixed;
  options.dt = dt;
  return options;
}

void run(const Arguments& arguments) {
  if (arguments.workload == "lorenz_f64_adaptive") {
    Bench bench(arguments, lorenz(arguments));
    // Those nearest below the errors that the peers are compared at, and some between.
    for (const double tolerance : {1.5e-6, 1e-6, 1e-8}) bench.run(adaptive("tsit5", Precision::f64, tolerance));
    for (const double tolerance : {2e-5, 1e-5, 1e-7}) bench.run(adaptive("vern7", Precision::f64, tolerance));
    for (const double tolerance : {1e-8, 5e-13}) bench.run(adaptive("dop853", Precision::f64, tolerance));
    for (const double tolerance : {2.5e-7, 1e-9, 2e-11}) bench.run(adaptive("vern9", Precision::f64, tolerance));
  } else if (arguments.workload == "lorenz_f32_fixed") {
    Bench(arguments, lorenz(arguments)).run(fixed("rk4", 1e-3));
  } else if (arguments.workload == "neural_f32_fixed") {
    Bench(arguments, neural(arguments.size, arguments.model)).run(fixed("tsit5", 0.01));
  } else if (arguments.workload == "neural_f32_adaptive") {
    Bench(arguments, neural(arguments.size, arguments.model)).run(adaptive("tsit5", Precision::f32, 1e-6));
  } else if (arguments.workload == "uneven_f64_adaptive") {
    Bench(arguments, uneven(arguments.size, false)).run(adaptive("tsit5", Precision::f64, 1e-6));
  } else if (arguments.workload == "uniform_f64_adaptive") {
    Bench(arguments, uneven(arguments.size, true)).run(adaptive("tsit5", Precision::f64, 1e-6));
  } else {
    throw Error(ErrorKind::invalid_argument,
                {.field = "--workload",
                 .found = arguments.workload,
                 .expected = "lorenz_f64_adaptive, lorenz_f32_fixed, neural_f32_fixed, neural_f32_adaptive, "
                             "uneven_f64_adaptive or uniform_f64_adaptive"});
  }
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("times ensemble solves");
  app.add_option("--workload", arguments.workload)->required();
  app.add_option("--size", arguments.size);
  app.add_option("--threads", arguments.threads);
  app.add_option("--budget", arguments.budget);
  app.add_option("--model", arguments.model);
  app.add_option("--cpu-target", arguments.cpu_target);
  app.add_flag("--equations", arguments.equations);
  CLI11_PARSE(app, argc, argv);
  try {
    run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ode_bench: error: %s\n", error.what());
    return 2;
  }
}
