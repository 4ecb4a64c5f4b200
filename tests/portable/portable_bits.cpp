// The same computations on every instruction set and processor family: prints one digest a case, to be compared line by
// line with what another machine prints. Exit code 1 when the instruction sets of this machine differ among themselves.
//   usage: portable_bits TESTDATA_FOLDER          a line a case: name, digest
//          portable_bits TESTDATA_FOLDER CASE     the numbers of one case instead, as hexadecimal, an instruction set
//                                                 after another: to find where two machines part
#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/kernels/activation.h"
#include "lockstep/kernels/math/detail/function_table.h"
#include "lockstep/kernels/math/detail/samples.h"
#include "lockstep/kernels/math/math.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/safetensors.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep {
namespace {

// What a case computed, as bits. NaN counts as one value: its sign and payload differ between processors.
class Bits {
 public:
  template <class T>
  void add(std::span<const T> values) {
    for (const T value : values) add(value);
  }
  void add(float value) { words_.push_back(std::bit_cast<std::uint32_t>(value == value ? value : kNoFloat)); }
  void add(double value) { words_.push_back(std::bit_cast<std::uint64_t>(value == value ? value : kNoDouble)); }
  void add(std::int64_t value) { words_.push_back(static_cast<std::uint64_t>(value)); }
  const std::vector<std::uint64_t>& words() const { return words_; }
  std::string digest() const { return content_digest(std::as_bytes(std::span(words_))); }

 private:
  static constexpr float kNoFloat = std::numeric_limits<float>::quiet_NaN();
  static constexpr double kNoDouble = std::numeric_limits<double>::quiet_NaN();
  std::vector<std::uint64_t> words_;
};

struct Case {
  std::string name;
  std::function<Bits(CpuTarget)> run;
};

template <class T>
constexpr const char* kSuffix = sizeof(T) == 4 ? "f32" : "f64";

constexpr std::size_t kTrajectories = 37;  // a tile and a few

// Trajectory i starts at `state` times 1 + i/512, from times that differ.
ode::Problem ensemble_of(ode::Rhs rhs, const std::vector<double>& state, std::vector<double> parameters,
                         double end_time) {
  ode::Problem problem;
  problem.rhs = std::move(rhs);
  problem.parameters = std::move(parameters);
  for (std::size_t i = 0; i < kTrajectories; ++i) {
    for (const double u : state) problem.initial_states.push_back(u * (1 + static_cast<double>(i) / 512));
  }
  problem.end_times = {end_time};
  for (int i = 1; i <= 4; ++i) problem.save_times.push_back(end_time * i / 4);
  return problem;
}

ode::Problem lorenz(double end_time = 1) {
  return ensemble_of(ode::system("lorenz"), {1, 1, 20}, {10, 28, 2.75}, end_time);
}

Bits solved(const ode::Problem& problem, ode::Options options, CpuTarget target) {
  options.cpu_target = target;
  options.threads = 2;
  const ode::Solution solution = ode::solve(problem, options);
  Bits bits;
  if (solution.precision() == Precision::f32) {
    bits.add(solution.states<float>());
    bits.add(solution.end_states<float>());
  } else {
    bits.add(solution.states<double>());
    bits.add(solution.end_states<double>());
  }
  for (const ode::TrajectoryRecord& record : solution.records()) {
    bits.add(record.end_time);
    for (const std::int64_t n : {std::int64_t(record.status), std::int64_t(record.accepted),
                                 std::int64_t(record.rejected), std::int64_t(record.evaluations)}) {
      bits.add(n);
    }
  }
  return bits;
}

void add_solves(std::vector<Case>& cases, const std::string& name, const ode::Problem& problem,
                const ode::Options& options) {
  for (const Precision precision : {Precision::f32, Precision::f64}) {
    ode::Options chosen = options;
    chosen.precision = precision;
    cases.push_back({"solve/" + name + (precision == Precision::f32 ? "/f32" : "/f64"),
                     [=](CpuTarget target) { return solved(problem, chosen, target); }});
  }
}

void add_methods(std::vector<Case>& cases) {
  for (const std::string_view name : ode::method_names()) {
    const std::string method(name);
    add_solves(cases, "lorenz/" + method + "/fixed", lorenz(),
               {.method = method, .control = ode::StepControl::fixed, .dt = 1.0 / 96});
    if (ode::method(name).error.empty()) continue;
    add_solves(cases, "lorenz/" + method + "/adaptive", lorenz(), {.method = method});
  }
  add_solves(cases, "lorenz/tsit5/common", lorenz(), {.control = ode::StepControl::common});
  add_solves(cases, "lorenz/dop853/backwards", lorenz(-0.25), {.method = "dop853", .rtol = 1e-5, .atol = 1e-8});
}

void add_systems(std::vector<Case>& cases) {
  for (const std::string_view name : ode::system_names()) {
    const ode::SystemInfo& info = ode::system_info(name);
    add_solves(cases, "system/" + std::string(name),
               ensemble_of(ode::system(name), info.default_initial_state, info.default_parameters,
                           std::min(info.default_end_time, 4.0)),
               {.max_steps = 300});
  }
}

// A pendulum with drag, its sine ours, and the same with an event at the lowest point.
void add_user_functions(std::vector<Case>& cases) {
  const ode::Rhs pendulum = ode::function<2, 1>("pendulum", [](double, const auto& u, const auto& p, auto& du) {
    du[0] = u[1];
    du[1] = std::fma(-p[0], u[1], -math::sin(u[0]));
  });
  ode::Problem problem = ensemble_of(pendulum, {1.5, 0.25}, {0.125}, 8);
  add_solves(cases, "pendulum/dopri5", problem, {.method = "dopri5"});
  problem.event = ode::TerminalEvent{
      ode::event_function<2, 1>("lowest", [](double, const auto& u, const auto&) { return u[0] * 1; }),
      ode::TerminalEvent::Direction::falling};
  for (const char* method : {"tsit5", "dop853", "bs3"}) {
    add_solves(cases, std::string("pendulum/event/") + method, problem, {.method = method});
  }
}

void add_nets(std::vector<Case>& cases, const std::filesystem::path& folder) {
  const Mlp lorenz_net = nn::to_mlp(nn::read_safetensors(folder / "lorenz_tanh_3_100_3.safetensors"));
  const ode::Problem problem = ensemble_of(ode::net(lorenz_net), {1, 0.25, 0.5}, {}, 1);
  add_solves(cases, "lorenz_net/tsit5", problem, {});
  add_solves(cases, "lorenz_net/rk4", problem, {.method = "rk4", .control = ode::StepControl::fixed, .dt = 1.0 / 64});
  ode::Problem hybrid = lorenz(0.125);
  hybrid.rhs = ode::sum(ode::system("lorenz"), ode::net(lorenz_net));
  add_solves(cases, "lorenz_plus_net/dop853", hybrid, {.method = "dop853"});
}

// mlp(inputs) for row-major inputs of several batch sizes, numbers of both signs and several magnitudes.
template <class T>
void add_plan(std::vector<Case>& cases, const std::string& name, const Mlp& mlp) {
  cases.push_back({"plan/" + name + "/" + kSuffix<T>, [mlp](CpuTarget target) {
                     const auto plan = Plan<T>::compile(mlp, target);
                     Bits bits;
                     for (const std::size_t rows : {std::size_t{1}, std::size_t{5}, std::size_t{67}}) {
                       std::vector<T> in(rows * mlp.inputs()), out(rows * mlp.outputs());
                       for (std::size_t i = 0; i < in.size(); ++i) {
                         in[i] = static_cast<T>(static_cast<double>((i * 7919) % 4001) / 512 - 3.875);
                       }
                       plan.evaluate(MatrixView<const T>::row_major(in.data(), rows, mlp.inputs()),
                                     MatrixView<T>::row_major(out.data(), rows, mlp.outputs()));
                       bits.add(std::span<const T>(out));
                     }
                     return bits;
                   }});
}

void add_plans(std::vector<Case>& cases, const std::filesystem::path& folder) {
  const auto add = [&](const std::string& name, const Mlp& mlp) {
    add_plan<float>(cases, name, mlp);
    add_plan<double>(cases, name, mlp);
  };
  for (const char* name :
       {"ocean_relu_32_128_128_31", "peaks_relu_2_20_5_1", "qlknn_7_11_tanh_10_133x5_8", "lorenz_tanh_3_100_3"}) {
    add(name, nn::to_mlp(nn::read_safetensors(folder / (std::string(name) + ".safetensors"))));
  }
  for (const Activation& activation : all_activations()) {
    Mlp mlp;
    mlp.layers.push_back({3, 13, {}, {}, activation});
    for (int i = 0; i < 39; ++i) mlp.layers[0].weights.push_back((i * 29 % 41 - 20) / 16.0);
    for (int i = 0; i < 13; ++i) mlp.layers[0].bias.push_back((i - 6) / 4.0);
    add("activation/" + to_string(activation), mlp);
  }
}

// Elementary functions over all magnitudes, infinities and NaN.
void add_functions(std::vector<Case>& cases) {
  const auto add = [&]<class T>(const math::Entry& entry, const std::vector<T>& x) {
    constexpr std::array kKinds = {"elementary", "activation", "derivative"};
    cases.push_back(
        {std::string("function/") + kKinds[static_cast<std::size_t>(entry.kind)] + "/" + entry.name + "/" + kSuffix<T>,
         [&entry, x](CpuTarget target) {
           std::vector<T> y(x.size());
           math::evaluate(entry, target, x.data(), y.data(), x.size());
           Bits bits;
           bits.add(std::span<const T>(y));
           return bits;
         }});
  };
  for (const math::Entry& entry : math::function_table()) {
    add(entry, math::all_floats_by(1'000'003));
    add(entry, math::double_samples(4'001, 20261121));
  }
}

int run(const std::filesystem::path& folder, std::string_view only) {
  std::vector<Case> cases;
  add_methods(cases);
  add_systems(cases);
  add_user_functions(cases);
  add_nets(cases, folder);
  add_plans(cases, folder);
  add_functions(cases);
  bool same = true;
  for (const Case& one : cases) {
    if (!only.empty() && one.name != only) continue;
    std::string first;
    for (const CpuTarget target : available_cpu_targets()) {
      const Bits bits = one.run(target);
      if (!only.empty()) {
        std::printf("# %s on %s\n", one.name.c_str(), std::string(to_string(target)).c_str());
        for (const std::uint64_t word : bits.words()) std::printf("%016llx\n", static_cast<unsigned long long>(word));
        continue;
      }
      if (first.empty()) first = bits.digest();
      if (bits.digest() != first) {
        std::fprintf(stderr, "%s: %s differs from scalar\n", one.name.c_str(), std::string(to_string(target)).c_str());
        same = false;
      }
    }
    if (only.empty()) std::printf("%-48s %s\n", one.name.c_str(), first.c_str());
  }
  std::fprintf(stderr, "%zu cases, each on:", cases.size());
  for (const CpuTarget target : available_cpu_targets()) {
    std::fprintf(stderr, " %s", std::string(to_string(target)).c_str());
  }
  std::fprintf(stderr, "\n");
  return same ? 0 : 1;
}

}  // namespace
}  // namespace lockstep

int main(int argc, char** argv) {
  if (argc != 2 && argc != 3) {
    std::fprintf(stderr, "usage: portable_bits TESTDATA_FOLDER [CASE]\n");
    return 2;
  }
  try {
    return lockstep::run(argv[1], argc == 3 ? argv[2] : "");
  } catch (const lockstep::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
