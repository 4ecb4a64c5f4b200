#include "lockstep/cli/explain_model.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/model_text.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/plan_file.h"

namespace lockstep::cli {
namespace {

using Clock = std::chrono::steady_clock;

void print_line(const char* name, const std::string& value) { std::printf("%-14s%s\n", name, value.c_str()); }

// "state 4, forcing 3"
std::string ports_text(const std::vector<nn::Port>& ports) {
  std::string text;
  for (const nn::Port& port : ports) {
    text += (text.empty() ? "" : ", ") + printable(port.name, LineBreaks::escape) + " " +
            std::to_string(port.features.size());
  }
  return text;
}

// Seconds of one evaluation of so many samples on one thread: the best of about 20 ms of them.
template <class T>
double evaluation_seconds(const nn::NetPlan<T>& plan, std::size_t samples) {
  std::vector<std::vector<T>> numbers;
  std::vector<MatrixView<const T>> in;
  std::vector<MatrixView<T>> out;
  for (const auto& port : plan.inputs()) {
    in.push_back(
        MatrixView<const T>::row_major(numbers.emplace_back(samples * port.width, T(0.5)).data(), samples, port.width));
  }
  for (const auto& port : plan.outputs()) {
    out.push_back(MatrixView<T>::row_major(numbers.emplace_back(samples * port.width).data(), samples, port.width));
  }
  double best = std::numeric_limits<double>::infinity();
  for (const auto begin = Clock::now(); Clock::now() - begin < std::chrono::milliseconds(20);) {
    const auto start = Clock::now();
    plan.evaluate(in, out);
    best = std::min(best, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return best;
}

// `made_for` is made_for_text() of a plan file whose target is not named here.
template <class T>
void explain_plan(const nn::Model& model, CpuTarget target, const std::string& made_for) {
  constexpr std::size_t kBatch = 1024;
  const auto plan = nn::NetPlan<T>::compile(model, target);
  print_line("plan", made_for + plan.description());
  print_line("predicted", "about " + seconds_text(evaluation_seconds(plan, 1)) + " for one sample alone, " +
                              seconds_text(evaluation_seconds(plan, kBatch) / kBatch) + " a sample in batches of " +
                              count_text(kBatch) + ", on one thread");
}

void require_no_other(const ProblemOverrides& overrides) {
  const auto refuse = [](bool given, const char* flag) {
    if (!given) return;
    throw Error(ErrorKind::invalid_argument, {flag, "a flag of problems", "--precision or --cpu-target with a net",
                                              "leave it out, or name a problem file"});
  };
  refuse(overrides.trajectories.has_value(), "--trajectories");
  refuse(overrides.seed.has_value(), "--seed");
  refuse(overrides.method.has_value(), "--method");
  refuse(overrides.rtol.has_value(), "--rtol");
  refuse(!overrides.atol.empty(), "--atol");
  refuse(overrides.dt.has_value(), "--dt");
  refuse(overrides.matrix_precision.has_value(), "--matrix-precision");
  refuse(overrides.threads.has_value(), "--threads");
  refuse(overrides.device.has_value(), "--device");
  refuse(overrides.engine.has_value(), "--engine");
  refuse(overrides.guard.has_value(), "--guard");
}

}  // namespace

bool holds_a_net(const std::filesystem::path& path) { return nn::detect_format(path) != nn::ModelFormat::unknown; }

void explain_model(const std::filesystem::path& path, const ProblemOverrides& overrides,
                   const std::optional<std::string>& activations) {
  require_no_other(overrides);
  const bool is_plan = nn::detect_format(path) == nn::ModelFormat::plan;
  if (is_plan && activations) {
    throw Error(ErrorKind::invalid_argument, {"--activations", '"' + *activations + '"', "none for a plan file",
                                              "leave them out; it has those it was compiled with"});
  }
  nn::PlanFile file =
      is_plan ? nn::read_plan(path) : nn::PlanFile{load_model(path, activations), Precision::f32, best_cpu_target()};
  if (overrides.precision) file.precision = *overrides.precision == "f64" ? Precision::f64 : Precision::f32;
  if (overrides.cpu_target) {
    const auto target = parse_cpu_target(*overrides.cpu_target);
    if (!target) {
      throw Error(ErrorKind::invalid_argument,
                  {"--cpu-target", '"' + *overrides.cpu_target + '"', "avx512, avx2, neon or scalar", {}});
    }
    file.target = *target;
  }
  const nn::Model& model = file.model;
  print_line("net", path.string() + (is_plan ? ", a plan file" : "") + ", " + count_text(model.parameter_count()) +
                        " parameters");
  print_line("ports", ports_text(model.inputs) + " -> " + ports_text(model.outputs));
  std::string made_for;
  if (is_plan && !overrides.cpu_target) {
    made_for = made_for_text(file);
    if (!is_available(file.target)) file.target = best_cpu_target();
  }
  in_model_file(path, [&] {
    return file.precision == Precision::f64 ? explain_plan<double>(model, file.target, made_for)
                                            : explain_plan<float>(model, file.target, made_for);
  });
  for (const std::string& note : model.provenance.notes)
    std::printf("- %s\n", printable(note, LineBreaks::escape).c_str());
  for (const std::string& output : model.provenance.left_out)
    std::printf("- left out: %s\n", printable(output, LineBreaks::escape).c_str());
}

}  // namespace lockstep::cli
