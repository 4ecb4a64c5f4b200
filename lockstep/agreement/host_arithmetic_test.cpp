// A host program may flush subnormal numbers to zero (-ffast-math, some Fortran compilers, PyTorch when asked), round
// upwards or trap exceptions: every public call gives the bits it gives elsewhere, does not trap on numbers
// that nobody reads, and leaves the host's environment as it was.
#include <gmock/gmock.h>
#include <xmmintrin.h>

#include <bit>
#include <cfenv>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>

#include "lockstep/agreement/testing/ensembles.h"
#include "lockstep/agreement/verdict.h"
#include "lockstep/core/random.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/fit.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/net_derivatives.h"
#include "lockstep/nn/plan_file.h"
#include "lockstep/nn/table_model.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/parameter_uncertainty.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/train/initialise.h"

namespace lockstep::agreement {
namespace {

using Bits = std::vector<std::uint64_t>;

// The test's own arithmetic must not run in the host's environment: a call is prepared before it and read after it.
using Read = std::function<Bits()>;
struct Call {
  const char* name;
  std::function<Read()> run;
};

template <class T>
Bits bits_of(const std::vector<T>& numbers) {
  Bits bits;
  for (const double number : numbers) bits.push_back(std::bit_cast<std::uint64_t>(number));
  return bits;
}

template <class T>
Read later(std::vector<T> numbers) {
  return [numbers = std::move(numbers)] { return bits_of(numbers); };
}

constexpr std::size_t kRows = 3000;  // enough for several threads

Mlp net(std::size_t inputs, std::size_t outputs, double scale) {
  Mlp mlp;
  const std::vector<std::size_t> widths{inputs, 24, 24, outputs};
  for (std::size_t i = 0; i + 1 < widths.size(); ++i) {
    DenseLayer layer{.inputs = widths[i], .outputs = widths[i + 1]};
    layer.weights.resize(layer.inputs * layer.outputs);
    layer.bias.resize(layer.outputs);
    if (i + 2 < widths.size()) layer.activation = {ActivationKind::tanh};
    mlp.layers.push_back(layer);
  }
  train::initialise(mlp, train::Initialisation::glorot_uniform, 5);
  for (double& weight : mlp.layers.back().weights) weight *= scale;
  return mlp;
}
// Outputs around 1e-39 are subnormal in float32.
Mlp small_net() { return net(3, 2, 1e-38); }

std::vector<float> inputs(std::size_t count) {
  const Random random(3);
  std::vector<float> numbers(count);
  for (std::size_t i = 0; i < count; ++i) numbers[i] = static_cast<float>(2 * random.uniform(i, 0) - 1);
  return numbers;
}

MatrixView<const float> read(const std::vector<float>& numbers, std::size_t columns) {
  return MatrixView<const float>::row_major(numbers.data(), numbers.size() / columns, columns);
}
MatrixView<float> written(std::vector<float>& numbers, std::size_t columns) {
  return MatrixView<float>::row_major(numbers.data(), numbers.size() / columns, columns);
}

Call evaluation(const char* name, int threads, std::size_t rows) {
  return {name, [=, model = nn::Model::from_mlp(small_net()), in = inputs(rows * 3)]() -> Read {
            std::vector<float> out(rows * 2);
            nn::compile<float>(model).evaluate(read(in, 3), written(out, 2), threads);
            return later(std::move(out));
          }};
}

nn::Equations pendulum() {
  nn::Equations system;
  system.equations = {{"x", "v"}, {"v", "-g * sin(x) - d * v^2 * (1/3)"}};
  system.parameters = {{"g", 9.81}, {"d", 0.1}};
  return system;
}

Call graph_evaluation(const char* name, int threads) {
  return {name, [=, system = pendulum(), state = inputs(kRows * 2), parameters = inputs(kRows * 2)]() -> Read {
            std::vector<float> out(kRows * 2);
            const auto plan = nn::NetPlan<float>::compile(nn::equations(system));
            const MatrixView<const float> in[] = {read(state, 2), read(parameters, 2)};
            const MatrixView<float> outs[] = {written(out, 2)};
            plan.evaluate(in, outs, threads);
            return later(std::move(out));
          }};
}

Call derivatives(const char* name) {
  return {name, [model = nn::Model::from_mlp(small_net()), in = inputs(99 * 3), out_bar = inputs(99 * 2)]() -> Read {
            std::vector<float> out(99 * 2), in_bar(99 * 3), out_dot(99 * 2);
            const auto plan = nn::compile_derivatives<float>(model);
            plan.vjp(read(in, 3), read(out_bar, 2), written(out, 2), written(in_bar, 3));
            plan.jvp(read(in, 3), read(in, 3), written(out, 2), written(out_dot, 2));
            in_bar.insert(in_bar.end(), out_dot.begin(), out_dot.end());
            return later(std::move(in_bar));
          }};
}

// States around 1e-37, which become subnormal in float32 as they swing.
ode::Problem tiny(ode::Rhs rhs) {
  ode::Problem problem;
  problem.rhs = std::move(rhs);
  const Random random(1);
  for (std::size_t i = 0; i < 200; ++i) problem.initial_states.push_back(1e-37 * random.normal(i, 0));
  problem.parameters = {1.3};
  problem.end_times = {2};
  problem.save_times = {0, 0.7, 2};
  return problem;
}
ode::Problem oscillators() { return tiny(ode::system("harmonic_oscillator")); }
ode::Problem oscillators_as_text() {
  nn::Equations system;
  system.equations = {{"x", "v"}, {"v", "-w * x / 3"}};
  system.parameters = {{"w", 1.3}};
  return tiny(ode::net(nn::to_graph(nn::equations(system))));
}

// Some trajectories blow up, one divides by zero.
ode::Problem explosions() {
  nn::Equations system;
  system.equations = {{"x", "x^2 + 1 / x"}};
  ode::Problem problem;
  problem.rhs = ode::net(nn::to_graph(nn::equations(system)));
  problem.initial_states = {1, -1, 3, 0.5, 0};
  problem.end_times = {2};
  problem.save_times = {0, 2};
  return problem;
}

ode::Options fixed(int threads) {
  ode::Options options;
  options.control = ode::StepControl::fixed;
  options.dt = 0.05;
  options.precision = Precision::f32;
  options.threads = threads;
  return options;
}

Call solving(const char* name, const ode::Problem& problem, const ode::Options& options) {
  return {name, [=]() -> Read {
            return [=, solution = std::make_shared<ode::Solution>(ode::solve(problem, options))] {
              std::vector<double> numbers;
              for (std::size_t i = 0; i < solution->trajectories(); ++i) {
                numbers.push_back(static_cast<double>(solution->record(i).status));
                for (std::size_t k = 0; k < problem.save_times.size(); ++k) {
                  for (std::size_t c = 0; c < problem.rhs->components(); ++c) {
                    numbers.push_back(solution->state(i, k, c));
                  }
                }
              }
              return bits_of(numbers);
            };
          }};
}

Call gradients(const char* name) {
  ode::Problem problem = testing::lorenz(40, 1);
  problem.rhs = ode::net(net(3, 3, 1));
  problem.parameters.clear();
  ode::Options options = testing::adaptive(Precision::f32, 1e-5);
  options.threads = 2;
  // The user's own, and computed as the rest.
  const auto loss = [](std::size_t, std::span<const double> states, std::span<double> gradient) {
    double sum = 0;
    for (std::size_t i = 0; i < states.size(); ++i) {
      gradient[i] = 2e-38 * states[i];
      sum += 1e-38 * states[i] * states[i];
    }
    return sum;
  };
  return {name, [=]() -> Read {
            ode::Gradients result = ode::solve_with_gradients(problem, options, ode::TrajectoryLoss(loss));
            result.weights.push_back(result.loss);
            return later(std::move(result.weights));
          }};
}

Call regression(const char* name) {
  std::vector<double> x, y;
  for (const float number : inputs(800)) x.push_back(number);
  for (std::size_t i = 0; i < 400; ++i) y.push_back(x[2 * i] * x[2 * i + 1]);
  nn::FitOptions options;
  options.phases[0].iterations = 20;
  options.threads = 2;
  return {name, [=, start = nn::Model::from_mlp(net(2, 1, 1))]() -> Read {
            nn::Model model = start;
            nn::fit(model,
                    {MatrixView<const double>::row_major(x.data(), 400, 2),
                     MatrixView<const double>::row_major(y.data(), 400, 1)},
                    options);
            return later(nn::to_mlp(model).layers[0].weights);
          }};
}

ode::TrajectoryData lorenz_data() {
  const ode::Problem lorenz = testing::lorenz(3, 1);
  const ode::Solution solution = ode::solve(lorenz);
  ode::TrajectoryData data{.trajectories = 3, .times = lorenz.save_times};
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t k = 0; k < lorenz.save_times.size(); ++k) {
      for (std::size_t c = 0; c < 3; ++c) data.states.push_back(solution.state(i, k, c));
    }
  }
  return data;
}

Call neural_ode(const char* name) {
  const ode::TrajectoryData data = lorenz_data();
  ode::FitOptions options;
  options.phases.resize(1);
  options.phases[0].training.iterations = 3;
  options.solve.threads = 2;
  return {name, [=, rhs = ode::net(net(3, 3, 1))]() -> Read { return later(ode::fit(rhs, data, options).weights); }};
}

// Of rho.
Call parameter_errors(const char* name) {
  ode::TrajectoryData data = lorenz_data();
  data.parameters = {10, 8.0 / 3};
  const std::vector<ode::TrainedParameter> trained{{.parameter = 1, .start = 27}};
  return {name, [=, rhs = ode::system("lorenz")]() -> Read {
            const std::vector<double> one{1};
            return later(ode::parameter_uncertainty(rhs, trained, one, data, {}).standard_errors);
          }};
}

// Float32 with trajectories that end in NaN, read again in float64: HDF5 converts.
Call result_file(const char* name) {
  const auto file = std::filesystem::path(::testing::TempDir()) / "lockstep_host_arithmetic_test.h5";
  return {name, [path = file, problem = explosions(), options = testing::adaptive(Precision::f32, 1e-5)]() -> Read {
            ode::ResultWriter writer(path, problem, Precision::f32, {}, Existing::replace);
            ode::solve(problem, options, writer);
            writer.finish({});
            return later(ode::ResultFile(path).end_states<double>(0, 5));
          }};
}

// Numbers that are not finite are found without a trap, and named.
Call refusals(const char* name) {
  Mlp mlp = small_net();
  mlp.layers[1].bias[3] = std::numeric_limits<double>::quiet_NaN();
  ode::Problem problem = explosions();
  problem.initial_states[2] = std::numeric_limits<double>::infinity();
  ode::Options options = fixed(1);
  options.dt = std::numeric_limits<double>::quiet_NaN();
  return {name, [=]() -> Read {
            const std::string messages = message_of([&] { mlp.validate(); }) + message_of([&] { problem.validate(); }) +
                                         message_of([&] { options.validate(); });
            return [=] { return bits_of(std::vector<int>(messages.begin(), messages.end())); };
          }};
}

// Of a jump moved by rounded times, beside given ones; which fixed steps pass.
Call stops(const char* name) {
  ode::Problem problem = oscillators();
  problem.impulses = {{.time = 0.7, .component = 0, .change = 0.1, .factor = 0.3}};
  ode::Options adaptive = testing::adaptive(Precision::f32, 1e-5), steps = fixed(1);
  adaptive.stops = {0.1, 1.0 / 3};
  steps.dt = 1.0 / 30;
  return {name, [=]() -> Read {
            std::vector<double> times = ode::stop_times(problem, adaptive);
            const auto passed = ode::passed_jump(problem, steps, 5);
            times.push_back(passed ? passed->time : -1);
            return later(std::move(times));
          }};
}

Call files_of_nets(const char* name) {
  const std::filesystem::path data(LOCKSTEP_TEST_DATA);
  const std::vector<std::filesystem::path> files{data / "lorenz_tanh_3_100_3.safetensors",
                                                 data / "ocean_relu_32_128_128_31.safetensors"};
  return {name, [=]() -> Read {
            std::vector<double> found;
            for (const auto& file : files) {
              found.push_back(static_cast<int>(nn::detect_format(file)));
              const nn::Model model = nn::read_plan(nn::plan_bytes({nn::load(file)}), "a plan").model;
              const std::vector<double> weights = nn::to_mlp(model).layers[0].weights;
              found.insert(found.end(), weights.begin(), weights.end());
            }
            return later(std::move(found));
          }};
}

Call clamped(const char* name) {
  ode::Problem problem = testing::lotka_volterra(20, 1);
  const ode::Options options = testing::adaptive(Precision::f64, 1e-7);
  const ode::Range range{{0.1, 1.0 / 3}, {2.5, 1.7}};
  return {name, [=]() -> Read {
            ode::Problem clamped = problem;
            clamped.rhs = ode::clamp_to_range(problem.rhs, range);
            clamped.event = ode::leaves_range(problem.rhs, {{0, 0}, {9, 9}});
            const ode::Solution solution = ode::solve(clamped, options);
            std::vector<double> ends;
            for (std::size_t i = 0; i < 20; ++i) ends.push_back(solution.end_state(i, 1));
            return later(std::move(ends));
          }};
}

// Cubics, whose slopes are computed.
Call table(const char* name) {
  nn::FunctionTable given;
  given.input.name = "x";
  given.at = {0, 0.3, 1, 1.7, 2};
  given.outputs.resize(1);
  given.outputs[0].name = "y";
  given.values = {0.1, 1.0 / 3, -1, 2, 0.7};
  given.interpolation = nn::Interpolation::pchip;
  return {name, [=]() -> Read {
            const nn::Model model = nn::table_model(given);
            std::vector<double> coefficients;
            for (const nn::Node& node : model.nodes) {
              const auto* table = std::get_if<nn::Interpolate>(&node.operation);
              if (table) coefficients = table->coefficients;
            }
            return later(std::move(coefficients));
          }};
}

const std::vector<Call>& calls() {
  static const std::vector<Call> all{
      evaluation("a net on one thread", 1, kRows),
      evaluation("a net on three threads", 3, kRows),
      evaluation("a net for one sample", 1, 1),
      graph_evaluation("a graph on one thread", 1),
      graph_evaluation("a graph on three threads", 3),
      derivatives("derivatives of a net"),
      solving("a built-in system on one thread", oscillators(), fixed(1)),
      solving("a built-in system on three threads", oscillators(), fixed(3)),
      solving("equations", oscillators_as_text(), fixed(2)),
      solving("adaptive steps", oscillators(), testing::adaptive(Precision::f32, 1e-5)),
      solving("blow-up", explosions(), testing::adaptive(Precision::f64, 1e-5)),
      gradients("gradients of a solve"),
      {"sensitivities", [problem = testing::lotka_volterra(
                             3, 1)] { return later(ode::solve_with_sensitivities(problem).by_parameter); }},
      regression("a regression"),
      neural_ode("a neural ODE"),
      parameter_errors("errors of a parameter"),
      result_file("a result file"),
      refusals("refusals"),
      stops("times of stops"),
      files_of_nets("files of nets"),
      clamped("a clamped net"),
      table("a table"),
      {"a verdict",
       [ours = testing::solved(testing::lotka_volterra(30, 2), testing::adaptive(Precision::f64, 1e-7)),
        theirs = testing::solved(testing::lotka_volterra(30, 2), testing::adaptive(Precision::f32, 1e-7))] {
         return later(std::vector<double>{judge(ours, theirs).evidence.value().spread.another_step});
       }},
  };
  return all;
}

// What a host may have set, in MXCSR.
struct Host {
  const char* name;
  unsigned mxcsr;
};
constexpr unsigned kFlags = 0x003f, kAllTrapped = 0;
constexpr Host kHosts[] = {
    {"subnormals flushed to zero, and read as zero", 0x1f80 | 0x8000 | 0x0040},
    {"rounding upwards", 0x1f80 | 0x4000},
    {"rounding to zero", 0x1f80 | 0x6000},
    {"invalid, division and overflow trapped", 0x1f80 & ~0x0680U},
    {"every exception trapped, of rounded results too", kAllTrapped},
    {"all of it", (0x1f80U | 0x8000 | 0x0040 | 0x2000) & ~0x0680U},
};

class InHost {
 public:
  explicit InHost(unsigned mxcsr) : before_(_mm_getcsr()) {
    if (mxcsr == kAllTrapped) feenableexcept(FE_ALL_EXCEPT);  // of the x87 unit, too
    _mm_setcsr(mxcsr);
  }
  ~InHost() {
    fedisableexcept(FE_ALL_EXCEPT);
    _mm_setcsr(before_);
  }

 private:
  unsigned before_;
};

TEST(host_arithmetic, changes_no_bit_and_is_left_as_it_was) {
  for (const Call& call : calls()) {
    const Bits expected = call.run()();
    for (const Host& host : kHosts) {
      SCOPED_TRACE(std::string(call.name) + ", " + host.name);
      Read result;
      unsigned after = 0;
      {
        const InHost in_host(host.mxcsr);
        result = call.run();
        after = _mm_getcsr();
      }
      EXPECT_EQ(result(), expected);
      EXPECT_EQ(after & ~kFlags, host.mxcsr);
    }
  }
}

TEST(host_arithmetic, comes_back_when_a_call_throws) {
  const auto plan = nn::compile<float>(nn::Model::from_mlp(small_net()));
  std::vector<float> in(3), out(3);
  unsigned after = 0;
  {
    const InHost in_host(kHosts[4].mxcsr);
    try {
      plan.evaluate(read(in, 3), written(out, 3));
    } catch (const Error&) {
      after = _mm_getcsr();
    }
  }
  EXPECT_EQ(after, kHosts[4].mxcsr);
}

}  // namespace
}  // namespace lockstep::agreement
