// What storing an ensemble costs: the result writer against plain writes of as many bytes with the same flush habit,
// and solving while writing against the slower of the two.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/core/random.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace {

using namespace lockstep;
namespace fs = std::filesystem;

constexpr std::size_t kComponents = 3;
constexpr std::size_t kSavePoints = 101;
constexpr std::size_t kBlockRows = 2048;

// Of the clock on the wall, and of all threads of this process on processors: the second hardly depends on what else
// the machine does. The kernel's own threads, which carry dirty pages to the disk, are in neither.
struct Cost {
  double seconds = 1e300;
  double user = 1e300;
  double system = 1e300;
  double processor() const { return user + system; }
  void keep_best(const Cost& other) {
    seconds = std::min(seconds, other.seconds);
    if (other.processor() < processor()) user = other.user, system = other.system;
  }
};

double in_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

Cost cost_of(const auto& work) {
  rusage before{}, after{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto begin = std::chrono::steady_clock::now();
  work();
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  ::getrusage(RUSAGE_SELF, &after);
  return {seconds, in_seconds(after.ru_utime) - in_seconds(before.ru_utime),
          in_seconds(after.ru_stime) - in_seconds(before.ru_stime)};
}

ode::Problem lorenz(std::size_t trajectories, double end) {
  ode::Problem problem;
  problem.rhs = ode::system("lorenz");
  problem.parameters = {10, 28, 8.0 / 3};
  const Random random(1, 0);
  problem.initial_states.resize(trajectories * kComponents);
  for (std::size_t i = 0; i < problem.initial_states.size(); ++i) {
    problem.initial_states[i] = static_cast<double>(i % kComponents) + 0.1 * random.uniform(i, 0);
  }
  problem.end_times = {end};
  for (std::size_t i = 0; i < kSavePoints; ++i) {
    problem.save_times.push_back(end * static_cast<double>(i) / (kSavePoints - 1));
  }
  return problem;
}

ode::ResultMetadata metadata() { return {"write_bench", {"x", "y", "z"}, {"sigma", "rho", "beta"}, {}}; }

// Keeps nothing: what a solve costs alone.
class NowhereSink : public ode::SolutionSink {
 public:
  explicit NowhereSink(int threads) : buffers_(static_cast<std::size_t>(8 * threads)) {}
  ode::SolutionBlock acquire(std::size_t first, std::size_t count) override {
    const std::lock_guard lock(mutex_);
    const auto buffer = std::ranges::find(buffers_, false, &Buffer::used);
    buffer->used = true;
    buffer->state.resize(count * kSavePoints * kComponents);
    buffer->end_state.resize(count * kComponents);
    buffer->records.resize(count);
    return {first,
            count,
            buffer->state.data(),
            buffer->end_state.data(),
            buffer->records.data(),
            static_cast<std::size_t>(buffer - buffers_.begin())};
  }
  void commit(const ode::SolutionBlock& block) override {
    const std::lock_guard lock(mutex_);
    buffers_[block.token].used = false;
  }

 private:
  struct Buffer {
    bool used = false;
    std::vector<float> state, end_state;
    std::vector<ode::TrajectoryRecord> records;
  };
  std::vector<Buffer> buffers_;
  std::mutex mutex_;
};

// write(2) of 4 MiB at a time into space taken before, fdatasync as often as the writer commits, fsync at the end.
Cost plain_write(const fs::path& path, const std::vector<float>& numbers, std::uintmax_t bytes) {
  fs::remove(path);
  const int file = ::open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  Cost cost;
  if (file >= 0) {
    cost = cost_of([&] {
      if (::fallocate(file, 0, 0, static_cast<off_t>(bytes)) != 0) std::perror("fallocate");
      auto next = std::chrono::steady_clock::now() + std::chrono::milliseconds(250);
      std::size_t at = 0;
      for (std::uintmax_t done = 0; done < bytes;) {
        const std::size_t piece = std::min<std::uintmax_t>(std::size_t{4} << 20, bytes - done);
        const ssize_t written = ::write(file, reinterpret_cast<const char*>(numbers.data()) + at, piece);
        if (written <= 0) {
          std::perror("write");
          std::exit(1);
        }
        done += static_cast<std::uintmax_t>(written);
        at = (at + static_cast<std::size_t>(written)) % (numbers.size() * sizeof(float) - (std::size_t{4} << 20));
        const auto begin = std::chrono::steady_clock::now();
        if (begin < next) continue;
        ::fdatasync(file);
        const auto end = std::chrono::steady_clock::now();
        next = end + std::max<std::chrono::steady_clock::duration>(std::chrono::milliseconds(250), 4 * (end - begin));
      }
      ::fsync(file);
    });
    ::close(file);
  }
  fs::remove(path);
  return cost;
}

// Ready numbers handed to the writer as an engine would.
Cost write_results(const fs::path& path, const ode::Problem& problem, const std::vector<float>& numbers) {
  fs::remove(path);
  return cost_of([&] {
    ode::ResultWriter writer(path, problem, Precision::f32, metadata(), Existing::replace);
    const std::size_t spare = numbers.size() - kBlockRows * kSavePoints * kComponents;
    std::size_t at = 0;
    for (std::size_t first = 0; first < problem.trajectories(); first += kBlockRows) {
      const std::size_t count = std::min(kBlockRows, problem.trajectories() - first);
      const ode::SolutionBlock block = writer.acquire(first, count);
      std::memcpy(block.state, numbers.data() + at, count * kSavePoints * kComponents * sizeof(float));
      std::memcpy(block.end_state, numbers.data() + at, count * kComponents * sizeof(float));
      for (std::size_t i = 0; i < count; ++i) block.records[i] = {ode::Status::success, 1, 0, 7, 1.0};
      writer.commit(block);
      at = (at + 4099) % spare;
    }
    writer.finish({});
  });
}

// A file of as many bytes under another name, on the disk, renamed, and its folder on the disk.
Cost plain_small_file(const fs::path& path, const std::vector<float>& numbers, std::uintmax_t bytes) {
  const auto check = [](bool fine) {
    if (fine) return;
    std::perror("a plain file");
    std::exit(1);
  };
  return cost_of([&] {
    fs::path other = path;
    other += ".new";
    const int file = ::open(other.c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    check(::write(file, numbers.data(), bytes) == static_cast<ssize_t>(bytes) && ::fsync(file) == 0);
    ::close(file);
    fs::rename(other, path);
    const int folder = ::open(path.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(::fsync(folder) == 0);
    ::close(folder);
  });
}

// The least and the middle time of `count` files of ten trajectories each, in turns.
void time_small_files(const fs::path& path, const std::vector<float>& numbers, int count) {
  const ode::Problem problem = lorenz(10, 1);
  std::vector<double> ours, plain;
  for (int i = 0; i < count; ++i) {
    ours.push_back(write_results(path, problem, numbers).seconds);
    plain.push_back(plain_small_file(path, numbers, fs::file_size(path)).seconds);
  }
  fs::remove(path);
  const auto line = [](const char* what, std::vector<double>& times) {
    std::ranges::sort(times);
    std::printf("%-24s least %6.0f us, middle %6.0f us a file\n", what, times.front() * 1e6,
                times[times.size() / 2] * 1e6);
  };
  line("result writer", ours);
  line("plain writes", plain);
}

Cost solve_into(ode::SolutionSink& sink, const ode::Problem& problem, const ode::Options& options) {
  return cost_of([&] { ode::solve(problem, options, sink); });
}

// What a caller pays who keeps the same numbers in memory.
Cost solve_in_memory(const ode::Problem& problem, const ode::Options& options) {
  return cost_of([&] { ode::solve(problem, options); });
}

Cost solve_and_write(const fs::path& path, const ode::Problem& problem, const ode::Options& options) {
  fs::remove(path);
  return cost_of([&] {
    ode::ResultWriter writer(path, problem, Precision::f32, metadata(), Existing::replace);
    ode::solve(problem, options, writer);
    writer.finish({});
  });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("stores 101 x 3 float32 a trajectory and compares with plain writes", "write_bench");
  std::size_t trajectories = 1'000'000;
  fs::path folder = ".";
  int repeats = 3;
  double end = 4;
  int threads = 0;
  app.add_option("--trajectories", trajectories, "in the file: 1.2 kB each")->capture_default_str();
  app.add_option("--folder", folder, "on the disk to measure")->capture_default_str();
  app.add_option("--repeats", repeats, "the best counts")->capture_default_str();
  app.add_option("--end", end, "span of the solve, in steps of 0.005: longer makes solving the slower part")
      ->capture_default_str();
  app.add_option("--threads", threads, "of the solve")->capture_default_str();
  int small = 0;
  app.add_option("--small", small, "this many files of ten trajectories instead");
  std::string only;
  app.add_option("--only", only, "one part, for a profile: plain, write, solve, memory or both");
  CLI11_PARSE(app, argc, argv);
  try {
    const fs::path path = folder / "write_bench.h5";
    if (small > 0) {
      time_small_files(path, std::vector<float>(std::size_t{1} << 20), small);
      return 0;
    }
    const ode::Problem problem = lorenz(trajectories, end);
    ode::Options options;
    options.method = "rk4";
    options.control = ode::StepControl::fixed;
    options.dt = 0.005;
    options.threads = threads;
    std::vector<float> numbers(std::size_t{16} << 20);
    const Random random(2, 0);
    for (std::size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(random.uniform(i, 0));
    Cost plain, write, solve, memory, both;
    const std::uintmax_t bytes =
        trajectories * ((kSavePoints + 1) * kComponents * 4 + 1 + 3 * 4 + 3 * 8 + kComponents * 8);
    for (int i = 0; i < repeats; ++i) {
      const auto wanted = [&](const char* part) { return only.empty() || only == part; };
      if (wanted("write")) write.keep_best(write_results(path, problem, numbers));
      if (wanted("plain")) plain.keep_best(plain_write(path, numbers, bytes));
      NowhereSink nowhere(64);
      if (wanted("solve")) solve.keep_best(solve_into(nowhere, problem, options));
      if (wanted("memory")) memory.keep_best(solve_in_memory(problem, options));
      if (wanted("both")) both.keep_best(solve_and_write(path, problem, options));
      fs::remove(path);
    }
    const double mb = static_cast<double>(bytes) / 1e6;
    std::printf("%zu trajectories x %zu x %zu float32, %.0f MB, best of %d\n", trajectories, kSavePoints, kComponents,
                mb, repeats);
    const auto line = [&](const char* what, const Cost& cost) {
      std::printf("%-16s %7.3f s  processor %7.3f s (user %.3f, system %.3f)  %5.0f MB/s\n", what, cost.seconds,
                  cost.processor(), cost.user, cost.system, mb / cost.seconds);
    };
    const auto done = [](const Cost& cost) { return cost.seconds < 1e300; };
    if (done(plain)) line("plain writes", plain);
    if (done(write)) line("result writer", write);
    if (done(solve)) line("solve alone", solve);
    if (done(memory)) line("solve in memory", memory);
    if (done(both)) line("solve and write", both);
    if (!only.empty()) return 0;
    std::printf("result writer: %.0f %% of the speed of plain writes\n", 100 * plain.seconds / write.seconds);
    std::printf("solve and write: %.2f x the slower of the two in time, %.2f x solving in processor time\n",
                both.seconds / std::max(solve.seconds, write.seconds), both.processor() / solve.processor());
    std::printf("%.2f x the time of solving into memory\n", both.seconds / memory.seconds);
    // Where solving takes all processors, what writing takes of them comes on top.
    const double shared = (solve.processor() + write.processor()) / available_threads();
    std::printf("both on %d processors: at least %.3f s; took %.2f x that\n", available_threads(),
                std::max({shared, solve.seconds, write.seconds}),
                both.seconds / std::max({shared, solve.seconds, write.seconds}));
  } catch (const Error& error) {
    std::fprintf(stderr, "write_bench: %s\n", error.what());
    return 1;
  }
  return 0;
}
