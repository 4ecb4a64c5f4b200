// Times the CUDA kernels with their data resident on the device, and what they are compared with on this machine's CPU
// and disk. Prints one JSON object a line; gpu_verdict reads them beside gpu_peak's and the other libraries'.
//   gpu_bench [--only lorenz,neural,file] [--scale 0.01] [--folder DIR] [--model FILE]
// Exit code 3 without a device, 1 where something failed or a result is wrong. The largest deviation of up to 64 end
// states from dop853 at 1e-13 is the `error`; `failed` counts trajectories that did not reach their end, and those of
// the 64 whose bits are not the CPU's.
#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "gpu_reference.h"
#include "gpu_warm_up.h"
#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/model.h"
#include "lockstep/ode/cuda/load.h"
#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "lorenz_ensemble.h"
#ifdef LOCKSTEP_GPU_BENCH_ON_HOST  // to try this program without a card
#include "lockstep/ode/cuda/testing/host_runtime.h"
#endif

namespace {

using namespace lockstep;
using Json = nlohmann::ordered_json;

struct Arguments {
  std::string only;
  double scale = 1;
  double budget = 0.4;  // seconds of repeats a row
  std::filesystem::path folder = ".";
  std::string model = "examples/lorenz/lorenz_tanh_3_100_3.safetensors";
};

double seconds_of(const auto& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void print(const Json& row) {
  std::printf("%s\n", row.dump().c_str());
  std::fflush(stdout);
}

// The trained 3-100-3 net from (1, 0, 0) and up to 0.1 beside it, t from 0 to 1, 101 saved states.
ode::Problem neural(std::size_t size, const std::string& model) {
  ode::Problem problem;
  problem.rhs = ode::net(nn::to_mlp(nn::load(model)));
  problem.end_times = {1};
  for (int i = 0; i <= 100; ++i) problem.save_times.push_back(i == 100 ? 1 : 0.01 * i);
  const Random random(1, 0);
  for (std::size_t i = 0; i < 3 * size; ++i)
    problem.initial_states.push_back((i % 3 == 0 ? 1.0 : 0.0) + 0.2 * (random.uniform(i, 0) - 0.5));
  return problem;
}

// A problem on the device, launched again and again from where it lies.
template <class T>
class Resident {
 public:
  Resident(const ode::Problem& problem, ode::cuda::Runtime& runtime, int device) : problem_(problem) {
    ode::cuda::Fault fault;
    stream_ = runtime.open_stream(device, fault);
    if (stream_ == nullptr) fail(fault);
    const std::size_t n = problem.rhs->components(), m = problem.rhs->parameters(), saves = problem.save_points();
    const std::size_t count = problem.trajectories();
    ensemble_ = {
        .count = static_cast<std::int64_t>(count),
        .initial_states = upload<T>(problem.initial_states),
        .initial_strides = {.trajectory = static_cast<std::int64_t>(n)},
        .parameters = upload<T>(problem.parameters),
        .parameter_stride = problem.parameters.size() == m ? 0 : static_cast<std::int64_t>(m),
        .parameter_component = 1,
        .gathered_parameters = 0,
        .start_times = upload<double>(problem.start_times),
        .start_stride = 0,
        .end_times = upload<double>(problem.end_times),
        .end_stride = 0,
        .save_times = upload<double>(problem.save_times),
        .save_stride = 0,
        .save_points = static_cast<std::int32_t>(saves),
        .states = room<T>(count * saves * n),
        .state_strides = {.trajectory = static_cast<std::int64_t>(saves * n), .time = static_cast<std::int64_t>(n)},
        .end_states = room<T>(count * n),
        .end_strides = {.trajectory = static_cast<std::int64_t>(n)},
        .records = room<ode::TrajectoryRecord>(count)};
    counter_ = room<unsigned long long>(1);
    host_end_states_ = static_cast<T*>(pinned(count * n * sizeof(T)));
    host_records_ = static_cast<ode::TrajectoryRecord*>(pinned(count * sizeof(ode::TrajectoryRecord)));
  }

  // Adds seconds, error and steps of a run to `row`. False where a result is wrong.
  bool run(const ode::Options& options, double budget, const benchmarks::Reference& reference, Json row) {
    const ode::cuda::Lowered<T> lowered = ode::cuda::lower_problem<T>(problem_, options);
    ode::cuda::Launch<T> launch = lowered.launch;
    launch.ensemble = ensemble_;
    const std::vector<double> weights(lowered.weights.begin(), lowered.weights.end());
    launch.weights = upload<T>(weights);
    launch.counter = counter_;
    const auto launch_times = [&](int times) {
      return seconds_of([&] {
        for (int i = 0; i < times; ++i) {
          stream_->clear(counter_, sizeof *counter_);
          stream_->launch(lowered.kernel, &launch);
        }
        wait();
      });
    };
    benchmarks::warm_up([&] { launch_times(1); });
    const double once = launch_times(1);
    // Enough in a row that starting and waiting does not count.
    const int times = static_cast<int>(std::clamp(0.02 / once, 1.0, 100.0));
    double best = once, spent = 0;
    int repeats = 0;
    while (repeats < 3 || (spent < budget && repeats < 50)) {
      const double seconds = launch_times(times);
      best = std::min(best, seconds / times);
      spent += seconds;
      ++repeats;
    }
    const std::size_t n = problem_.rhs->components(), count = problem_.trajectories();
    stream_->download(host_end_states_, ensemble_.end_states, count * n * sizeof(T));
    stream_->download(host_records_, ensemble_.records, count * sizeof(ode::TrajectoryRecord));
    wait();
    double steps = 0;
    std::size_t failed = 0;
    for (std::size_t i = 0; i < count; ++i) {
      steps += host_records_[i].accepted + host_records_[i].rejected;
      failed += host_records_[i].status != ode::Status::success;
    }
    failed += reference.other_bits(problem_, options, host_end_states_);
    row["kernel"] = lowered.kernel;
    row["size"] = count;
    row["seconds"] = best;
    row["repeats"] = repeats;
    row["error"] = reference.error(host_end_states_, n);
    row["steps"] = steps / static_cast<double>(count);
    row["failed"] = failed;
    print(row);
    return failed == 0;
  }

 private:
  [[noreturn]] static void fail(const ode::cuda::Fault& fault) {
    throw Error(ErrorKind::unsupported,
                {.field = "cuda " + fault.where, .found = fault.text, .expected = "success", .remedy = ""});
  }
  void wait() {
    if (const auto fault = stream_->wait(); fault.happened) fail(fault);
  }
  void* pinned(std::size_t bytes) {
    void* const memory = stream_->allocate_pinned(std::max<std::size_t>(bytes, 16));
    if (memory == nullptr) fail({true, true, "pinned memory", std::to_string(bytes) + " bytes do not fit"});
    return memory;
  }
  template <class Number>
  Number* room(std::size_t count) {
    void* const memory = stream_->allocate(std::max<std::size_t>(count * sizeof(Number), 16));
    if (memory == nullptr) fail({true, true, "memory", std::to_string(count * sizeof(Number)) + " bytes do not fit"});
    return static_cast<Number*>(memory);
  }
  template <class Number>
  Number* upload(const std::vector<double>& numbers) {
    Number* const device = room<Number>(numbers.size());
    auto* const host = static_cast<Number*>(pinned(numbers.size() * sizeof(Number)));
    std::transform(numbers.begin(), numbers.end(), host, [](double x) { return static_cast<Number>(x); });
    stream_->upload(device, host, numbers.size() * sizeof(Number));
    return device;
  }

  const ode::Problem& problem_;
  std::unique_ptr<ode::cuda::Stream> stream_;
  ode::cuda::Ensemble<T> ensemble_{};
  unsigned long long* counter_ = nullptr;
  T* host_end_states_ = nullptr;
  ode::TrajectoryRecord* host_records_ = nullptr;
};

class Bench {
 public:
  explicit Bench(const Arguments& arguments) : arguments_(arguments), loaded_(ode::cuda::load_runtime()) {}

  bool has_device() const { return loaded_.runtime != nullptr; }
  bool all_right() const { return all_right_; }
  const std::string& missing() const { return loaded_.missing; }

  void lorenz_adaptive() {
    const ode::Problem problem = lorenz_ensemble(scaled(524288));
    const benchmarks::Reference reference(problem);
    Resident<double> resident(problem, *loaded_.runtime, device());
    ode::Options options;
    options.precision = Precision::f64;
    for (const char* method : {"tsit5", "dop853"}) {
      options.method = method;
      // The named tolerances, and looser ones that may reach the same error.
      for (const double tolerance : {1e-3, 1e-6, 1e-8, 1e-2, 1e-4, 1e-5, 1e-7}) {
        options.rtol = options.atol = tolerance;
        all_right_ &= resident.run(
            options, arguments_.budget, reference,
            {{"workload", "lorenz"}, {"precision", "float64"}, {"method", method}, {"tolerance", tolerance}});
      }
    }
  }

  void lorenz_fixed() {
    const ode::Problem problem = lorenz_ensemble(scaled(8388608));
    const benchmarks::Reference reference(problem);
    Resident<float> resident(problem, *loaded_.runtime, device());
    ode::Options options;
    options.method = "rk4";
    options.control = ode::StepControl::fixed;
    options.dt = 1e-3;
    all_right_ &=
        resident.run(options, arguments_.budget, reference,
                     {{"workload", "lorenz"}, {"precision", "float32"}, {"method", "rk4"}, {"tolerance", nullptr}});
  }

  void neural_adaptive() {
    const ode::Problem problem = neural(scaled(1 << 20), arguments_.model);
    const benchmarks::Reference reference(problem);
    ode::Options options;
    {
      Resident<float> resident(problem, *loaded_.runtime, device());
      all_right_ &= resident.run(
          options, arguments_.budget, reference,
          {{"workload", "neural"}, {"precision", "float32"}, {"method", "tsit5"}, {"tolerance", options.rtol}});
    }
    // The same on all of this machine's cores; a part is enough.
    const ode::Problem part = problem.part(0, std::min<std::size_t>(problem.trajectories(), 65536));
    options.device = ode::DeviceChoice::cpu();
    double best = 1e30;
    for (int i = 0; i < 3; ++i) best = std::min(best, seconds_of([&] { ode::solve(part, options); }));
    print({{"workload", "neural_cpu"}, {"size", part.trajectories()}, {"seconds", best}});
  }

  // 3-512-512-3 by matrix products, from call to results, in every mode that there is.
  void wide_net() {
    ode::Problem problem;
    Mlp mlp;
    const Random random(3, 0);
    const std::size_t widths[] = {3, 512, 512, 3};
    double multiply_adds = 0;
    for (std::size_t i = 0; i + 1 < std::size(widths); ++i) {
      DenseLayer layer{widths[i], widths[i + 1], {}, std::vector<double>(widths[i + 1], 0.01), {ActivationKind::relu}};
      if (i + 2 == std::size(widths)) layer.activation = {};
      const double size = std::sqrt(3.0 / static_cast<double>(widths[i]));
      for (std::size_t k = 0; k < widths[i] * widths[i + 1]; ++k)
        layer.weights.push_back(static_cast<float>(size * (2 * random.uniform(k, i) - 1)));
      multiply_adds += static_cast<double>(widths[i] * widths[i + 1]);
      mlp.layers.push_back(std::move(layer));
    }
    problem.rhs = ode::net(mlp);
    problem.end_times = {0.25};
    const std::size_t count = scaled(1 << 17);
    for (std::size_t i = 0; i < 3 * count; ++i) problem.initial_states.push_back(random.uniform(i, 9) - 0.5);
    ode::Options options;
    options.method = "rk4";
    options.control = ode::StepControl::fixed;
    options.dt = 1.0 / 64;
    const benchmarks::Reference reference(problem, options);
    options.device = ode::DeviceChoice::cuda(device());
    options.engine = ode::EngineChoice::cuda_gemm;
    for (const std::string_view name : kMatrixPrecisionNames) {
      options.matrix_precision = *parse_matrix_precision(name);
      double first = 0, best = 1e30, error = 0;  // the first opens cuBLASLt, too
      std::string kernel;
      std::int64_t evaluations = 0;
      const auto seconds = [&] {
        ode::Solution solution(options.precision, count, 3, {}, false);
        const double taken = seconds_of([&] { kernel = solve_into(problem, options, solution, evaluations); });
        error = reference.error(solution.end_states<float>().data(), 3);
        return taken;
      };
      try {
        first = seconds();
      } catch (const Error& error) {
        if (std::string_view(error.what()).find("cuBLASLt, which") == std::string_view::npos) throw;
        print({{"workload", "wide_net"}, {"skipped", error.what()}});  // a driver alone is no fault
        return;
      }
      benchmarks::warm_up(seconds);
      for (int i = 0; i < 3; ++i) best = std::min(best, seconds());
      print({{"workload", "wide_net"},
             {"precision", name == "f32" ? "float32" : std::string(name)},
             {"size", count},
             {"seconds", best},
             {"first_seconds", first},
             {"error", error},
             {"operations", multiply_adds * static_cast<double>(evaluations) / static_cast<double>(count)},
             {"steps", 1},
             {"kernel", kernel}});
    }
  }

  // Robertson's reaction up to t = 1e4 by rodas5p, rates within a half and twice the usual ones, from call to results:
  // on the device, as text that the first call compiles, and a part of it on all of this machine's cores, with the same
  // bits.
  void stiff() {
    ode::Problem problem;
    problem.rhs = ode::system("robertson");
    problem.end_times = {1e4};
    const std::size_t count = scaled(1 << 18);
    for (std::size_t i = 0; i < 3 * count; ++i) problem.initial_states.push_back(i % 3 == 0 ? 1 : 0);
    const Random random(5, 0);
    for (std::size_t i = 0; i < 3 * count; ++i)
      problem.parameters.push_back(std::array{0.04, 3e7, 1e4}[i % 3] * std::exp2(2 * random.uniform(i, 0) - 1));
    ode::Options options;
    options.method = "rodas5p";
    options.precision = Precision::f64;
    options.rtol = 1e-6;
    options.atol = 1e-10;
    const ode::Problem part = problem.part(0, std::min<std::size_t>(count, 16384));
    options.device = ode::DeviceChoice::cpu();
    ode::Solution expected(options.precision, part.trajectories(), 3, {}, false);
    std::int64_t evaluations = 0;
    double best = 1e30;
    for (int i = 0; i < 3; ++i) {
      best = std::min(best, seconds_of([&] { solve_into(part, options, expected, evaluations); }));
    }
    print({{"workload", "stiff_cpu"}, {"size", part.trajectories()}, {"seconds", best}});
    options.device = ode::DeviceChoice::cuda(device());
    ode::Solution solution(options.precision, count, 3, {}, false);
    std::string kernel;
    const auto seconds = [&] {
      return seconds_of([&] { kernel = solve_into(problem, options, solution, evaluations); });
    };
    double first = 0;
    try {
      first = seconds();
    } catch (const Error& error) {
      if (std::string_view(error.what()).find("NVRTC") == std::string_view::npos) throw;
      print({{"workload", "stiff"}, {"skipped", error.what()}});  // a driver alone is no fault
      return;
    }
    benchmarks::warm_up(seconds);
    best = 1e30;
    for (int i = 0; i < 3; ++i) best = std::min(best, seconds());
    const auto ours = solution.end_states<double>(), theirs = expected.end_states<double>();
    std::int64_t differ = 0;
    for (std::size_t i = 0; i < part.trajectories(); ++i)
      differ += std::memcmp(&ours[3 * i], &theirs[3 * i], 3 * sizeof(double)) != 0 ? 1 : 0;
    all_right_ &= differ == 0;
    print({{"workload", "stiff"},
           {"precision", "float64"},
           {"method", "rodas5p"},
           {"tolerance", options.rtol},
           {"size", count},
           {"seconds", best},
           {"first_seconds", first},
           {"failed", differ},
           {"steps", static_cast<double>(evaluations) / static_cast<double>(count)},
           {"kernel", kernel}});
  }

  void file() {
    const ode::Problem problem = neural(scaled(1 << 21), arguments_.model);  // 2.7 GB
    const std::filesystem::path path = arguments_.folder / "gpu_bench.h5";
    ode::Options options;
    options.device = ode::DeviceChoice::cuda(device());
    double best = 1e30, plain = 1e30, spent = 0;
    std::uintmax_t bytes = 0;
    for (int i = 0; i < 2 && spent < 20; ++i) {  // a slow disk has its time once
      best = std::min(best, seconds_of([&] {
                        ode::ResultWriter writer(path, problem, Precision::f32, {"gpu_bench", {"x", "y", "z"}, {}, {}},
                                                 Existing::replace);
                        ode::solve(problem, options, writer);
                        bytes = writer.finish({});
                      }));
      std::filesystem::remove(path);
      const double plainly = plain_write(path, bytes);
      plain = std::min(plain, plainly);
      spent += best + plainly;
    }
    // What the engine does before and after: memory for two batches of 65,536 pinned, and given back.
    ode::cuda::Fault fault;
    const auto stream = loaded_.runtime->open_stream(device(), fault);
    const std::size_t pinned = bytes / problem.trajectories() * std::min<std::size_t>(problem.trajectories(), 1 << 17);
    const double pin = seconds_of([&] {
      if (stream != nullptr) stream->allocate_pinned(pinned);
    });
    const double free = seconds_of([&] {
      if (stream != nullptr) stream->free_all();
    });
    print({{"workload", "file"},
           {"size", problem.trajectories()},
           {"seconds", best},
           {"bytes", bytes},
           {"bytes_per_s", static_cast<double>(bytes) / best},
           {"plain_bytes_per_s", static_cast<double>(bytes) / plain},
           {"pinned_bytes", pinned},
           {"pin_seconds", pin},
           {"free_seconds", free}});
  }

 private:
  int device() const { return loaded_.devices.front().index; }
  std::size_t scaled(std::size_t size) const {
    return std::max<std::size_t>(static_cast<std::size_t>(static_cast<double>(size) * arguments_.scale), 64);
  }

  // What ran.
  static std::string solve_into(const ode::Problem& problem, const ode::Options& options, ode::Solution& solution,
                                std::int64_t& evaluations) {
    class Sink : public ode::SolutionSink {
     public:
      explicit Sink(ode::Solution& solution) : solution_(solution) {}
      ode::SolutionBlock acquire(std::size_t first, std::size_t count) override {
        return solution_.block(first, count);
      }
      void commit(const ode::SolutionBlock&) override {}

     private:
      ode::Solution& solution_;
    } sink(solution);
    const ode::Summary summary = ode::solve(problem, options, sink);
    evaluations = summary.evaluations;
    return summary.kernel;
  }

  // As many bytes by write(2), with the same wait for the disk at the end.
  static double plain_write(const std::filesystem::path& path, std::uintmax_t bytes) {
    std::vector<std::uint32_t> noise(std::size_t{1} << 20);
    const Random random(2, 0);
    for (std::size_t i = 0; i < noise.size(); ++i) noise[i] = static_cast<std::uint32_t>(random.uniform(i, 0) * 4e9);
    const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
    if (file < 0) return std::nan("");
    const double seconds = seconds_of([&] {
      for (std::uintmax_t done = 0; done < bytes;) {
        const ssize_t written = ::write(file, noise.data(), std::min<std::uintmax_t>(4 << 20, bytes - done));
        if (written <= 0) break;
        done += static_cast<std::uintmax_t>(written);
      }
      ::fsync(file);
    });
    ::close(file);
    std::filesystem::remove(path);
    return seconds;
  }

  Arguments arguments_;
  const ode::cuda::LoadedRuntime& loaded_;
  bool all_right_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("times the CUDA kernels where their data lie, one JSON object a line", "gpu_bench");
  Arguments arguments;
  app.add_option("--only", arguments.only,
                 "of lorenz,neural,lorenz_rk4,wide_net,stiff,file, separated by commas; otherwise all");
  app.add_option("--scale", arguments.scale, "of the numbers of trajectories")->capture_default_str();
  app.add_option("--budget", arguments.budget, "seconds of repeats a row")->capture_default_str();
  app.add_option("--folder", arguments.folder, "on the disk to measure")->capture_default_str();
  app.add_option("--model", arguments.model, "the 3-100-3 net")->capture_default_str();
  CLI11_PARSE(app, argc, argv);
#ifdef LOCKSTEP_GPU_BENCH_ON_HOST
  ode::cuda::HostDevice stand_in;
  ode::cuda::HostRuntime runtime(stand_in);
  ode::cuda::Fault fault;
  const ode::cuda::LoadedRuntime loaded{&runtime, runtime.devices(fault), ""};
  ode::cuda::replace_runtime(&loaded);
#endif
  Bench bench(arguments);
  if (!bench.has_device()) {
    std::fprintf(stderr, "gpu_bench: %s\n", bench.missing().c_str());
    return 3;
  }
  int failures = 0;
  const auto run = [&](const char* name, void (Bench::*work)()) {
    if (!arguments.only.empty() &&
        ("," + arguments.only + ",").find("," + std::string(name) + ",") == std::string::npos)
      return;
    try {
      (bench.*work)();
    } catch (const std::exception& error) {  // the other rows are still wanted
      print({{"workload", name}, {"error_text", error.what()}});
      ++failures;
    }
  };
  run("lorenz", &Bench::lorenz_adaptive);
  run("neural", &Bench::neural_adaptive);
  run("lorenz_rk4", &Bench::lorenz_fixed);
  run("wide_net", &Bench::wide_net);
  run("stiff", &Bench::stiff);
  run("file", &Bench::file);
  return failures == 0 && bench.all_right() ? 0 : 1;
}
