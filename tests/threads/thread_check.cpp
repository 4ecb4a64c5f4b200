// What scripts/thread_check.sh runs under ThreadSanitizer: threads that share plans, one of a plain stack and one of a
// graph with several ports, and threads that load, lower, fail and free beside them, all through the C interface; then
// a team.
//   usage: thread_check NET.safetensors SCRATCH.plan
#include <chrono>
#include <cstdio>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "bindings/c/lockstep.h"
#include "lockstep/core/parallel.h"
#include "lockstep/core/pending_file.h"
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

// Values and both products of every sample; empty where something failed.
std::vector<float> of_stack(const lockstep_plan* plan) {
  const std::size_t inputs = lockstep_plan_inputs(plan), outputs = lockstep_plan_outputs(plan);
  const auto in = static_cast<std::ptrdiff_t>(inputs), out = static_cast<std::ptrdiff_t>(outputs);
  const std::vector<float> x = numbers(kSamples * inputs, 0.02f), bar = numbers(kSamples * outputs, 0.01f);
  std::vector<float> all(kSamples * (2 * outputs + inputs));
  float *y = all.data(), *y_dot = y + kSamples * outputs, *x_bar = y_dot + kSamples * outputs;
  const bool done = good(lockstep_evaluate_f32(plan, kSamples, x.data(), in, 1, y, out, 1, nullptr, 0)) &&
                    good(lockstep_jvp_f32(plan, kSamples, x.data(), in, 1, x.data(), in, 1, nullptr, 0, 0, y_dot, out,
                                          1, nullptr, 0)) &&
                    good(lockstep_vjp_f32(plan, kSamples, x.data(), in, 1, bar.data(), out, 1, nullptr, 0, 0, x_bar, in,
                                          1, nullptr, 0));
  return done ? all : std::vector<float>();
}

std::vector<float> of_ports(const lockstep_plan* plan) {
  const std::vector<float> x = numbers(kSamples * 6, 0.02f);
  std::vector<float> all(kSamples * 12);
  const lockstep_input_f32 in[] = {{x.data(), 3, 1}, {x.data() + kSamples * 3, 3, 1}};
  const auto at = [&](std::size_t place) { return lockstep_output_f32{all.data() + place * kSamples * 3, 3, 1}; };
  const lockstep_output_f32 out[] = {at(0), at(1)}, bar[] = {at(2), at(3)};
  const bool done = good(lockstep_evaluate_ports_f32(plan, kSamples, in, 2, out, 2, nullptr, 0)) &&
                    good(lockstep_vjp_ports_f32(plan, kSamples, in, in, nullptr, bar, 2, 2, nullptr, 0));
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
  if (!team_hands_on()) return std::fprintf(stderr, "error: a team loses calls\n"), 1;
  std::printf("%d threads, one answer\n", kThreads);
}
