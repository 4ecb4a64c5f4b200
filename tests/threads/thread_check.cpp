// What scripts/thread_check.sh runs under ThreadSanitizer: threads that share plans, one of a plain stack and one of a
// graph with several ports, and threads that load, lower, fail and free beside them, all through the C interface; then
// calls on the process's threads, names of temporary files, a team, and threads that each take the steps of a
// regression.
//   usage: thread_check NET.safetensors SCRATCH.plan
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c/lockstep.h"
#include "lockstep/core/parallel.h"
#include "lockstep/core/pending_file.h"
#include "lockstep/core/temporary_names.h"
#include "lockstep/kernels/mlp/parameters.h"
#include "lockstep/kernels/mlp/regression.h"
#include "lockstep/nn/plan_file.h"

namespace {

constexpr int kThreads = 4, kRepeats = 3;
constexpr std::size_t kSamples = 77;  // two tiles and a rest

// Two inputs, two outputs, operations that keep scratch.
lockstep::nn::Model net_of_ports() {
  using namespace lockstep::nn;
  Model model;
  for (const char* name : {"a", "b"}) model.inputs.push_back({name, "", std::vector<Feature>(3)});
  const auto add = [&](const char* name, Operation operation, std::vector<std::string> reads) {
    model.nodes.push_back({name, std::move(operation), std::move(reads)});
  };
  add("both", Concatenate{}, {"a", "b"});
  add("dense", Dense{6, 3, std::vector<double>(18, 0.25), {1, 2, 3}}, {"both"});
  add("tanh", Activate{{lockstep::ActivationKind::tanh}}, {"dense"});
  add("gate", Binary{BinaryKind::multiply}, {"tanh", "a"});
  add("normalise", LayerNormalise{{1, 1, 1}, {0, 0, 0}, 1e-5}, {"gate"});
  add("share", Softmax{}, {"tanh"});
  model.outputs.push_back({"y", "normalise", std::vector<Feature>(3)});
  model.outputs.push_back({"share", "share", std::vector<Feature>(3)});
  return model;
}

bool good(lockstep_status status) {
  if (status != LOCKSTEP_OK) std::fprintf(stderr, "error: %s\n", lockstep_last_error());
  return status == LOCKSTEP_OK;
}

std::vector<float> numbers(std::size_t count, float step) {
  std::vector<float> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<float>(static_cast<int>(i * 7919 % 201) - 100) * step;
  return result;
}

// Values, both products and the Jacobian of every sample; empty where something failed.
std::vector<float> of_stack(const lockstep_plan* plan) {
  const std::size_t inputs = lockstep_plan_inputs(plan), outputs = lockstep_plan_outputs(plan);
  const auto in = static_cast<std::ptrdiff_t>(inputs), out = static_cast<std::ptrdiff_t>(outputs);
  const std::vector<float> x = numbers(kSamples * inputs, 0.02f), bar = numbers(kSamples * outputs, 0.01f);
  std::vector<float> all(kSamples * (2 * outputs + inputs + outputs * inputs));
  float *y = all.data(), *y_dot = y + kSamples * outputs, *x_bar = y_dot + kSamples * outputs;
  float* const jacobian = x_bar + kSamples * inputs;
  const bool done = good(lockstep_evaluate_f32(plan, kSamples, x.data(), in, 1, y, out, 1, nullptr, 0)) &&
                    good(lockstep_jvp_f32(plan, kSamples, x.data(), in, 1, x.data(), in, 1, nullptr, 0, 0, y_dot, out,
                                          1, nullptr, 0)) &&
                    good(lockstep_vjp_f32(plan, kSamples, x.data(), in, 1, bar.data(), out, 1, nullptr, 0, 0, x_bar, in,
                                          1, nullptr, 0)) &&
                    good(lockstep_jacobian_f32(plan, kSamples, x.data(), in, 1, nullptr, 0, 0, jacobian, out * in, in,
                                               1, nullptr, 0));
  return done ? all : std::vector<float>();
}

std::vector<float> of_ports(const lockstep_plan* plan) {
  const std::vector<float> x = numbers(kSamples * 6, 0.02f);
  std::vector<float> all(kSamples * (12 + 36));
  const lockstep_input_f32 in[] = {{x.data(), 3, 1}, {x.data() + kSamples * 3, 3, 1}};
  const auto at = [&](std::size_t place) { return lockstep_output_f32{all.data() + place * kSamples * 3, 3, 1}; };
  const lockstep_output_f32 out[] = {at(0), at(1)}, bar[] = {at(2), at(3)};
  const bool done = good(lockstep_evaluate_ports_f32(plan, kSamples, in, 2, out, 2, nullptr, 0)) &&
                    good(lockstep_vjp_ports_f32(plan, kSamples, in, in, nullptr, bar, 2, 2, nullptr, 0)) &&
                    good(lockstep_jacobian_ports_f32(plan, kSamples, in, 2, nullptr, 0, all.data() + 12 * kSamples, 36,
                                                     6, 1, nullptr, 0));
  return done ? all : std::vector<float>();
}

lockstep_plan* stack_plan(const char* path) {
  lockstep_model* model = nullptr;
  lockstep_plan* plan = nullptr;
  const lockstep_compile_options options{sizeof options, LOCKSTEP_FLOAT32, "scalar", 1};  // all that is compiled here
  if (good(lockstep_model_load(path, nullptr, &model))) good(lockstep_compile(model, &options, &plan));
  lockstep_model_free(model);
  return plan;
}

// A failure's message is the thread's own.
bool fails_in_its_own_words(int thread) {
  const std::string missing = "no/such/file" + std::to_string(thread);
  lockstep_model* none = nullptr;
  return lockstep_model_load(missing.c_str(), nullptr, &none) == LOCKSTEP_BAD_FILE &&
         std::strstr(lockstep_last_error(), (missing + ":").c_str()) != nullptr;
}

// A team whose members read what another wrote in the call before, some calls after it fell asleep.
bool team_hands_on() {
  lockstep::Team team(kThreads);
  std::vector<int> from(kThreads), to(kThreads);
  const auto body = [&](int i) {
    to[static_cast<std::size_t>(i)] = from[static_cast<std::size_t>((i + 1) % kThreads)] + 1;
  };
  constexpr int kCalls = 300;
  for (int call = 0; call < kCalls; ++call) {
    if (call % 100 == 99) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    team.run(kThreads, body);
    std::swap(from, to);
  }
  return from == std::vector<int>(kThreads, kCalls);
}

// Callers side by side, and bodies that call: nobody looks at a call's own once its caller has gone on.
bool crew_serves_all() {
  std::vector<std::thread> callers;
  std::vector<int> sums(kThreads);
  for (int caller = 0; caller < kThreads; ++caller) {
    callers.emplace_back([&, caller] {
      for (int call = 0; call < 100; ++call) {
        std::vector<int> own(6);
        lockstep::run_on_threads(3, [&](int outer) {
          lockstep::run_on_threads(2, [&](int inner) { own[static_cast<std::size_t>(2 * outer + inner)] = 1; });
        });
        for (const int one : own) sums[static_cast<std::size_t>(caller)] += one;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  return sums == std::vector<int>(kThreads, 600);
}

struct Slope final : lockstep::Stepper<double> {
  void step(std::span<double> parameters, std::span<double> gradient, double rate) override {
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] -= rate * gradient[i];
  }
  std::unique_ptr<Stepper> copy() const override { return std::make_unique<Slope>(); }
};

// Batches of two sizes, rows of steps with a loss asked for and a sleep in between.
std::vector<double> regression(int threads) {
  lockstep::Mlp mlp;
  mlp.layers.push_back({2, 12, std::vector<double>(24, 0.25), std::vector<double>(12, 0.1)});
  mlp.layers.push_back({12, 1, std::vector<double>(12, 0.5), {0}});
  mlp.layers[0].activation = {lockstep::ActivationKind::relu};
  auto plan = lockstep::RegressionPlan<double>::compile(mlp, {}, lockstep::CpuTarget::scalar);
  std::vector<lockstep::TiledSamples<double>> batches;
  for (const std::size_t size : {2100, 1700}) {
    std::vector<double> x(3 * size);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = 0.01 * static_cast<double>(i * 7919 % 201) - 1;
    batches.push_back(plan.make_samples(size));
    plan.assign(batches.back(), lockstep::MatrixView<const double>::row_major(x.data(), size, 2),
                lockstep::MatrixView<const double>::row_major(x.data() + 2 * size, size, 1));
  }
  std::vector<double> x = lockstep::gather_parameters<double>(mlp), gradient(x.size()), losses;
  Slope slope;
  for (std::uint64_t step = 0; step < 60; ++step) {
    if (step % 20 == 10) losses.push_back(plan.loss(batches[0], 1, threads));
    if (step % 20 == 15) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    losses.push_back(plan.loss_and_gradient(x, batches[step / 3 % 2], 1e-3, gradient, threads, {&slope, 1e-3, step}));
    slope.step(x, gradient, 1e-3);
  }
  return losses;
}

// Names noted and forgotten by some, and removed by one, as a signal's handler does beside all threads.
bool names_are_noted_side_by_side() {
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([i] {
      for (int repeat = 0; repeat < 300; ++repeat) {
        if (i == 0) {
          lockstep::remove_temporary_names();
        } else {
          const lockstep::TemporaryName first("no/such/file" + std::to_string(i)), second("no/such/folder/file");
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return std::fprintf(stderr, "usage: thread_check NET.safetensors SCRATCH.plan\n"), 2;
  const char *net = argv[1], *file = argv[2];
  lockstep::nn::write_plan(file, {net_of_ports(), lockstep::Precision::f32, lockstep::CpuTarget::scalar},
                           lockstep::Existing::replace);
  lockstep_plan *stack = stack_plan(net), *ports = nullptr;
  if (!stack || !good(lockstep_plan_load(file, &ports))) return 1;
  bool agree[kThreads] = {};
  std::vector<std::thread> threads;
  std::vector<std::vector<float>> stacks(kThreads), graphs(kThreads);
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      const auto mine = static_cast<std::size_t>(i);
      stacks[mine] = of_stack(stack);
      graphs[mine] = of_ports(ports);
      bool same = !stacks[mine].empty() && !graphs[mine].empty();
      for (int repeat = 0; repeat < kRepeats && same; ++repeat) {
        lockstep_plan *own = stack_plan(net), *loaded = nullptr;
        same = own && good(lockstep_plan_load(file, &loaded)) && of_stack(own) == stacks[mine] &&
               of_ports(loaded) == graphs[mine] && of_stack(stack) == stacks[mine] && of_ports(ports) == graphs[mine] &&
               fails_in_its_own_words(i);
        lockstep_plan_free(own);
        lockstep_plan_free(loaded);
      }
      agree[i] = same;
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int i = 0; i < kThreads; ++i) {
    const auto mine = static_cast<std::size_t>(i);
    if (agree[i] && stacks[mine] == stacks[0] && graphs[mine] == graphs[0]) continue;
    std::fprintf(stderr, "error: thread %d has other answers, or none\n", i);
    return 1;
  }
  lockstep_plan_free(stack);
  lockstep_plan_free(ports);
  if (!crew_serves_all()) return std::fprintf(stderr, "error: calls lose bodies\n"), 1;
  if (!names_are_noted_side_by_side()) return 1;
  if (!team_hands_on()) return std::fprintf(stderr, "error: a team loses calls\n"), 1;
  if (regression(kThreads) != regression(1)) return std::fprintf(stderr, "error: threads' steps differ\n"), 1;
  std::printf("%d threads, one answer\n", kThreads);
}
