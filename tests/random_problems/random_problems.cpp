// Solves problems drawn at random by every way there is, and compares every bit with the plain integrator's: other
// instruction sets, several threads, the ensemble in another order and in parts, and the GPU's kernels as the host runs
// them.
//   usage: random_problems [FIRST_SEED [COUNT]]     1 and 200 by default. Exits with 1 where bits differ.
// The last line ends with a digest of all problems, solutions and gradients, to be compared with another compiler's.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <iostream>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

#include "functions_in_kernel.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/cuda/compile.h"
#include "lockstep/ode/cuda/engine.h"
#include "lockstep/ode/cuda/gemm/gemm_engine.h"
#include "lockstep/ode/cuda/gemm/testing/host_gemm.h"
#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/cuda/testing/host_runtime.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/reference.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/solve.h"
#include "random_problem.h"

namespace lockstep::ode {
namespace {

bool same_number(double a, double b) { return std::isnan(a) ? std::isnan(b) : std::memcmp(&a, &b, sizeof a) == 0; }
std::string both(double a, double b) { return number_text(a) + " for " + number_text(b); }

bool same_numbers(std::span<const double> a, std::span<const double> b) {
  return std::ranges::equal(a, b, same_number);
}

bool same_record(const TrajectoryRecord& a, const TrajectoryRecord& b) {
  return a.status == b.status && a.accepted == b.accepted && a.rejected == b.rejected && a.end_time == b.end_time;
}

// Where trajectory `i` of one solution differs from trajectory `j` of the other.
std::optional<std::string> difference(const Solution& found, std::size_t i, const Solution& expected, std::size_t j) {
  const TrajectoryRecord &a = found.record(i), &b = expected.record(j);
  if (a.status != b.status) return std::string(to_string(a.status)) + " for " + std::string(to_string(b.status));
  if (a.accepted != b.accepted) return "accepted steps " + both(a.accepted, b.accepted);
  if (a.rejected != b.rejected) return "rejected steps " + both(a.rejected, b.rejected);
  if (a.evaluations != b.evaluations) return "evaluations " + both(a.evaluations, b.evaluations);
  if (!same_number(a.end_time, b.end_time)) return "end time " + both(a.end_time, b.end_time);
  for (std::size_t c = 0; c < found.components(); ++c) {
    for (std::size_t k = 0; k < found.save_points(); ++k) {
      const double x = found.state(i, k, c), y = expected.state(j, k, c);
      if (!same_number(x, y)) {
        return "save point " + std::to_string(k) + ", component " + std::to_string(c) + ": " + both(x, y);
      }
    }
    const double x = found.end_state(i, c), y = expected.end_state(j, c);
    if (!same_number(x, y)) return "end state, component " + std::to_string(c) + ": " + both(x, y);
  }
  if (!std::ranges::equal(found.events(i), expected.events(j))) return "logged events";
  return std::nullopt;
}

class Comparison {
 public:
  Comparison(const RandomProblem& drawn, ContentHash& digest)
      : drawn_(drawn),
        digest_(digest),
        options_(drawn.options),
        expected_(
            (options_.device = DeviceChoice::cpu(), options_.threads = 1, solve_reference(drawn.problem, options_))) {}

  // How many ways there were; findings are printed.
  std::size_t run() {
    add_expected();
    for (const CpuTarget target : available_cpu_targets()) {
      for (const int threads : {1, 3}) {
        Options options = options_;
        options.cpu_target = target;
        options.threads = threads;
        compare(std::string(to_string(target)) + ", threads: " + std::to_string(threads),
                solve(drawn_.problem, options));
      }
    }
    if (options_.control != StepControl::common) {
      compare_order();
      compare_parts();
    }
    compare_device();
    compare_derivatives();
    return ways_;
  }
  bool differs() const { return differs_; }

 private:
  void add_expected() {
    digest_.add(drawn_.description);
    for (std::size_t i = 0; i < expected_.trajectories(); ++i) {
      const TrajectoryRecord& record = expected_.record(i);
      std::vector<double> numbers{double(record.status), double(record.accepted), double(record.rejected),
                                  double(record.evaluations), record.end_time};
      for (std::size_t c = 0; c < expected_.components(); ++c) {
        for (std::size_t k = 0; k < expected_.save_points(); ++k) numbers.push_back(expected_.state(i, k, c));
        numbers.push_back(expected_.end_state(i, c));
      }
      add_numbers(numbers);
    }
  }
  // NaN counts as one value: compilers choose its sign and payload.
  void add_numbers(std::vector<double> numbers) {
    std::ranges::replace_if(
        numbers, [](double x) { return std::isnan(x); }, std::numeric_limits<double>::quiet_NaN());
    digest_.add(std::span<const double>(numbers));
  }

  void compare(const std::string& way, const Solution& found) {
    std::vector<std::size_t> rows(found.trajectories());
    std::iota(rows.begin(), rows.end(), std::size_t{0});
    compare(way, found, rows);
  }
  // rows[i]: which of the expected trajectories i is.
  void compare(const std::string& way, const Solution& found, const std::vector<std::size_t>& rows) {
    ++ways_;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (const auto what = difference(found, i, expected_, rows[i])) {
        report(way, "trajectory " + std::to_string(rows[i]) + ": " + *what);
        return;
      }
    }
  }

  void compare_order() {
    std::vector<std::size_t> rows(drawn_.problem.trajectories());
    std::iota(rows.rbegin(), rows.rend(), std::size_t{0});
    std::mt19937 random(1);
    for (std::size_t i = rows.size(); i > 1; --i) std::swap(rows[i - 1], rows[random() % i]);
    compare("in another order", solve(drawn_.problem.selection(rows), options_), rows);
  }
  void compare_parts() {
    const std::size_t all = drawn_.problem.trajectories(), cut = (all + 1) / 3;
    for (const auto& [first, count] : {std::pair{std::size_t{0}, cut}, std::pair{cut, all - cut}}) {
      std::vector<std::size_t> rows(count);
      std::iota(rows.begin(), rows.end(), first);
      compare("in parts", solve(drawn_.problem.part(first, count), options_), rows);
    }
  }
  void compare_device() {
    if (options_.precision == Precision::f32 ? compare_text<float>() : compare_text<double>()) return;
    cuda::HostDevice device;
    cuda::HostRuntime host(device);
    compare_device("the GPU's kernel", [&]<class T>(T, const Problem& problem, SolutionSink& sink) {
      cuda::advance<T>(problem, options_, {&host, 0, kDeviceBytes}, sink, {});
    });
    std::int64_t evaluations = 0;
    for (const TrajectoryRecord& record : expected_.records()) evaluations += record.evaluations;
    if (evaluations > 1000) return;  // fibers for every thread of a block: it would take long
    cuda::HostGemm gemm;
    cuda::HostGemmRuntime products(gemm);
    compare_device("the GPU's products", [&]<class T>(T, const Problem& problem, SolutionSink& sink) {
      cuda::advance_gemm<T>(problem, options_, {&host, &products, 0, kDeviceBytes, 64, 32}, sink, {});
    });
  }
  // Where the kernel would be compiled: its source, round the functions as they are. True where it would be, or the
  // problem runs on the CPU alone.
  template <class T>
  bool compare_text() {
    if (cuda::obstacle(drawn_.problem, options_)) return cuda::comes_as_text(drawn_.problem, options_);
    if (method(options_.method).is_linearly_implicit()) return true;  // implicit_on_device_test has those
    const cuda::Lowered<T> lowered = cuda::lower_problem<T>(drawn_.problem, options_);
    if (!lowered.source) return false;
    if (lowered.source->threads_a_trajectory > 1 || drawn_.problem.resets.size() > 3) return true;
    cuda::HostDevice device;
    cuda::HostRuntime host(device);
    cuda::Fault fault;
    cuda::keep_kernel(cuda::kept_kernel_path(*lowered.source, host.devices(fault).front()), {'c', 'o', 'd', 'e'});
    cuda::FunctionsInKernel<T> functions(drawn_.problem);
    const bool event_is_text = cuda::event_source(drawn_.problem).has_value();
    device.sources[lowered.kernel] = [&](cuda::HostDevice& on, const void* launch) {
      functions.run(on, launch, event_is_text);
    };
    compare_device("the GPU's kernel for its text", [&]<class U>(U, const Problem& problem, SolutionSink& sink) {
      if constexpr (std::is_same_v<T, U>) cuda::advance<T>(problem, options_, {&host, 0, kDeviceBytes}, sink, {});
    });
    return true;
  }
  template <class Advance>
  void compare_device(const std::string& way, const Advance& advance) {
    const Problem& problem = drawn_.problem;
    Solution found(options_.precision, problem.trajectories(), problem.rhs->components(), problem.save_times,
                   problem.save_times_per_trajectory);
    MemorySink sink(found);
    try {
      if (options_.precision == Precision::f32) {
        advance(float(), problem, sink);
      } else {
        advance(double(), problem, sink);
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
      return;
    }
    compare(way, found);
  }

  // Derivatives of a sum of all saved states: the same bits with every instruction set; backwards as forwards, along
  // each number that a trajectory begins with. Both are exact derivatives of the same steps, so that only their
  // roundings differ: of float64 here.
  void compare_derivatives() {
    try {
      const Gradients backward = gradients(options_);
      Options exact = options_;
      exact.precision = Precision::f64;
      compare_directions(exact.precision == options_.precision ? backward : gradients(exact),
                         solve_with_sensitivities(drawn_.problem, exact));
      ++ways_;
      for (std::size_t i = 0; i < drawn_.problem.trajectories(); ++i) {
        if (!same_record(backward.records[i], expected_.record(i))) {
          return report("gradients", "trajectory " + std::to_string(i) + ": another record than the solve's");
        }
      }
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unsupported) throw;
    }
  }
  Gradients gradients(Options options) {
    const TrajectoryLoss loss = [](std::size_t i, std::span<const double> states, std::span<double> gradient) {
      double sum = 0;
      for (std::size_t k = 0; k < states.size(); ++k) {
        if (std::isnan(states[k])) continue;
        gradient[k] = coefficient(i, k);
        sum += gradient[k] * states[k];
      }
      return sum;
    };
    std::optional<Gradients> first;
    for (const CpuTarget target : available_cpu_targets()) {
      options.cpu_target = target;
      options.threads = target == CpuTarget::scalar ? 1 : 2;
      // Little memory: steps are computed again on the way back.
      GradientOptions how;
      if (target == CpuTarget::scalar && drawn_.problem.trajectories() > 16) how.memory_bytes = std::size_t{1} << 20;
      Gradients made = solve_with_gradients(drawn_.problem, options, loss, how);
      ++ways_;
      if (!first) {
        first = std::move(made);
      } else if (!same_numbers(first->initial_states, made.initial_states) ||
                 !same_numbers(first->parameters, made.parameters) || !same_numbers(first->weights, made.weights)) {
        report("gradients", "of " + std::string(to_string(target)) + " differ from the scalar ones");
      }
    }
    for (const std::vector<double>& numbers : {first->initial_states, first->parameters, first->weights})
      add_numbers(numbers);
    return *std::move(first);
  }
  void compare_directions(const Gradients& backward, const Sensitivities& forward) {
    constexpr double kMost = 1e-6;  // of the sum's terms: 2^-53 times what orbits close to a body make of it
    const Problem& problem = drawn_.problem;
    const std::size_t n = problem.rhs->components(), numbers = problem.save_points() * n;
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      if (!same_record(backward.records[i], forward.records[i])) {
        return report("derivatives", "trajectory " + std::to_string(i) + ": records differ");
      }
      const Status status = forward.records[i].status;
      if (status != Status::success && status != Status::terminated) continue;
      for (std::size_t direction = 0; direction < n; ++direction) {
        double sum = 0, size = 0;
        for (std::size_t k = 0; k < numbers; ++k) {
          if (std::isnan(forward.states[i * numbers + k])) continue;
          const double term = coefficient(i, k) * forward.by_initial_state[(i * numbers + k) * n + direction];
          sum += term;
          size += std::fabs(term);
        }
        const double back = backward.initial_states[i * n + direction];
        // Of a root at zero, whose derivative is infinite; of what ran away.
        if (!(size < 1e30)) continue;
        if (!(std::fabs(back - sum) <= kMost * size + 1e-12)) {
          return report("derivatives", "trajectory " + std::to_string(i) + " by u[" + std::to_string(direction) +
                                           "]: " + both(back, sum) + ", of terms " + number_text(size));
        }
      }
    }
  }
  static double coefficient(std::size_t i, std::size_t k) { return std::sin(1.0 + static_cast<double>(3 * i + 7 * k)); }
  void report(const std::string& way, const std::string& what) {
    if (!differs_) std::cout << drawn_.description;
    differs_ = true;
    std::cout << "  " << way << ": " << what << std::endl;
  }

  static constexpr std::size_t kDeviceBytes = std::size_t{1} << 28;
  const RandomProblem& drawn_;
  ContentHash& digest_;
  Options options_;
  Solution expected_;
  std::size_t ways_ = 0;
  bool differs_ = false;
};

int run(std::uint64_t first, std::uint64_t count) {
  std::size_t differing = 0, ways = 0;
  std::map<std::string, std::size_t> refused;
  ContentHash digest;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    std::string what = "seed " + std::to_string(seed);
    try {
      const RandomProblem drawn = random_problem(seed);
      what = drawn.description;
      validate(drawn.problem, drawn.options);
      Comparison comparison(drawn, digest);
      ways += comparison.run();
      differing += comparison.differs() ? 1 : 0;
    } catch (const std::exception& error) {
      if (refused[error.what()]++ == 0) std::cout << what << "  refused: " << error.what() << std::endl;
    }
  }
  std::size_t refusals = 0;
  for (const auto& [what, times] : refused) refusals += times;
  std::cout << count << " problems, " << ways << " solves compared with the plain integrator: " << differing
            << " problems differ, " << refusals << " were refused; digest " << digest.hex() << "\n";
  return differing + refusals > 0 ? 1 : 0;
}

}  // namespace
}  // namespace lockstep::ode

int main(int count, char** arguments) {
  // What stands in for code that was compiled: a cache of this program's own.
  const std::filesystem::path cache =
      std::filesystem::temp_directory_path() / ("lockstep_random_problems_" + std::to_string(getpid()));
  setenv("XDG_CACHE_HOME", cache.c_str(), 1);
  const auto number = [&](int i, std::uint64_t otherwise) {
    return i < count ? std::strtoull(arguments[i], nullptr, 10) : otherwise;
  };
  const int status = lockstep::ode::run(number(1, 1), number(2, 200));
  std::filesystem::remove_all(cache);
  return status;
}
