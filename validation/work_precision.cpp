// Error against cost: every method on published problems, at many tolerances or step sizes, as CSV on standard output.
//   build/bin/work_precision > benchmarks/results/work_precision.csv        (--quick: one problem, a few rows)
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "lockstep/ode/methods.h"
#include "lockstep/ode/solve.h"
#include "oracle.h"

namespace lockstep::validation {
namespace {

// One tile's worth of equal trajectories, so that lanes are full and no trajectory waits for another.
constexpr std::size_t kCopies = 32;

struct Row {
  double error;  // the largest component's, relative to the largest of |u|
  ode::TrajectoryRecord record;
  double microseconds;  // a trajectory, one thread
};

Row measure(const PublishedProblem& published, const std::vector<double>& truth, const ode::Options& options) {
  ode::Problem problem = published.problem;
  problem.initial_states.clear();
  for (std::size_t i = 0; i < kCopies; ++i) {
    const auto& u0 = published.problem.initial_states;
    problem.initial_states.insert(problem.initial_states.end(), u0.begin(), u0.end());
  }
  using Clock = std::chrono::steady_clock;
  double best = 1e300, spent = 0;
  Row row{};
  for (int repeat = 0; repeat < 5 && (repeat == 0 || spent < 0.02); ++repeat) {
    const auto start = Clock::now();
    const ode::Solution solution = ode::solve(problem, options);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    best = std::min(best, seconds);
    spent += seconds;
    double size = 0, difference = 0;
    for (std::size_t c = 0; c < truth.size(); ++c) {
      size = std::max(size, std::abs(truth[c]));
      difference = std::max(difference, std::abs(solution.end_state(0, c) - truth[c]));
    }
    row = {solution.record(0).status == ode::Status::success ? difference / size : NAN, solution.record(0), 0};
  }
  row.microseconds = best / kCopies * 1e6;
  return row;
}

void print_method(const PublishedProblem& problem, const std::string& method, Precision precision, int coarsest) {
  const std::vector<double> truth = read_oracle_value(LOCKSTEP_ORACLE, problem.name).end_state;
  const bool adaptive = ode::method(method).error_order > 0;
  ode::Options options{.method = method, .max_steps = 300'000, .precision = precision, .threads = 1};
  const auto print = [&](double setting) {
    const Row row = measure(problem, truth, options);
    if (!(row.error < 1)) return;  // unstable at this step, or out of steps
    std::printf("%s,%s,%s,%.*e,%d,%d,%d,%.3e,%.2f\n", problem.name.c_str(), method.c_str(),
                std::string(to_string(precision)).c_str(), adaptive ? 0 : 4, setting, row.record.evaluations,
                row.record.accepted, row.record.rejected, row.error, row.microseconds);
  };
  if (adaptive) {
    for (int digits = coarsest; digits <= (precision == Precision::f32 ? 7 : 12); ++digits) {
      if (method == "bs3" && digits > 9) continue;
      options.rtol = options.atol = std::pow(10, -digits);
      print(options.rtol);
    }
  } else {
    options.control = ode::StepControl::fixed;
    for (int steps = 128; steps <= 65536; steps *= 2) {
      options.dt = problem.problem.end_times[0] / steps;
      print(options.dt);
    }
  }
}

}  // namespace
}  // namespace lockstep::validation

int main(int count, char** arguments) {
  using namespace lockstep;
  const bool quick = count > 1 && std::string(arguments[1]) == "--quick";
  std::printf("problem,method,precision,tolerance_or_dt,evaluations,accepted,rejected,error,microseconds\n");
  const std::vector<std::string> problems =
      quick ? std::vector<std::string>{"kepler"}
            : std::vector<std::string>{"kepler", "lotka_volterra", "van_der_pol", "pleiades", "arenstorf", "lorenz"};
  for (const std::string& name : problems) {
    const auto& problem = validation::published_problem(name);
    for (const auto method : ode::explicit_method_names()) {
      for (const Precision precision : {Precision::f64, Precision::f32}) {
        if (quick && (precision == Precision::f32 || method != "dop853")) continue;
        validation::print_method(problem, std::string(method), precision, quick ? 9 : 2);
      }
    }
  }
}
