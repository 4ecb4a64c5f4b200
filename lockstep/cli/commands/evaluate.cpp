// `lockstep evaluate`: a net applied to every row of a dataset.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/evaluate_files.h"
#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/flag_checks.h"
#include "lockstep/cli/interrupt.h"
#include "lockstep/cli/model_text.h"
#include "lockstep/cli/progress.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/precision.h"
#include "lockstep/core/printable.h"
#include "lockstep/core/thread_count.h"
#include "lockstep/nn/guarded_calls.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/net_plan.h"

namespace lockstep::cli {
namespace {

struct EvaluateOptions {
  std::filesystem::path model;
  std::filesystem::path input;
  std::filesystem::path output;
  std::string input_dataset = "input";
  std::string output_dataset = "output";
  std::optional<std::string> activations;
  std::optional<std::string> precision;
  std::string cpu_target;
  std::string guard = "flag";
  int threads = 0;
  bool overwrite = false;
  bool quiet = false;
};

constexpr const char* kEvaluateExamples = R"(
Examples:
  lockstep evaluate net.safetensors --input x.h5 --output y.h5
  lockstep evaluate net.safetensors --input x.h5 --output y.h5 --precision f64 --activations tanh,identity
  lockstep evaluate net.h5 --input measured.csv --output answers.csv

Where the model says what it was trained on, outside_range tells which samples lie outside.
HDF5: reads dataset input[sample, feature], writes output[sample, feature]. A net of several input (or output) ports
reads (or writes) a dataset for each, named after the port; lockstep info shows them. Files may be larger than memory.
Numbers that netCDF's attributes call missing (_FillValue, missing_value) are NaN, packed ones are unpacked.
CSV: columns called as the net's inputs, in any order; others are passed over. A net that names none takes x0, x1.. or
else the columns in their order. Written where the output ends in .csv: a column for each output of the net, rows in
the order of the input's.)";

constexpr std::size_t kPieceBytes = std::size_t{32} << 20;  // of input and output together

// What the model was trained on, rounded to T as the inputs are.
template <class T>
struct TrainingRange {
  std::vector<T> minimum, maximum;  // [feature]; empty where the model does not say

  explicit TrainingRange(const nn::Port& port) {
    if (!nn::is_bounded(port)) return;
    for (const nn::Feature& feature : port.features) {
      minimum.push_back(static_cast<T>(feature.minimum));
      maximum.push_back(static_cast<T>(feature.maximum));
    }
  }
  bool known() const { return !minimum.empty(); }

  // Which rows [row][feature] lie outside, as 0 and 1; clamps them where `clamp` is set. NaN lies nowhere.
  std::vector<std::uint8_t> look(std::vector<T>& rows, bool clamp) {
    const std::size_t features = minimum.size();
    std::vector<std::uint8_t> flags(rows.size() / features);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      const T low = minimum[i % features], high = maximum[i % features];
      if (!(rows[i] < low) && !(rows[i] > high)) continue;
      flags[i / features] = 1;
      if (clamp) rows[i] = rows[i] < low ? low : high;
    }
    return flags;
  }
};

// What is too large for T would be computed with as infinity, without a word. Who gives an infinity means it; what a
// guard clamped is in its range. `rows` [row][feature], read from sample `first` on.
template <class T>
void require_room(SampleSource<T>& source, std::size_t port, std::size_t first, const nn::Port& of,
                  const std::vector<T>& rows) {
  const std::size_t width = of.features.size();
  if (std::ranges::none_of(rows, [](T x) { return std::isinf(x); })) return;
  const std::vector<double> exact = source.read_exactly(port, first, rows.size() / width);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!std::isinf(rows[i]) || !std::isfinite(exact[i])) continue;
    const std::string& name = of.features[i % width].name;
    throw Error(
        ErrorKind::invalid_argument,
        {source.place(port, first + i / width) + ", column " + (name.empty() ? std::to_string(i % width) : name),
         number_text(exact[i]), "a number that fits in float32", "evaluate with --precision f64"});
  }
}

// Samples with an input that is NaN or infinite.
struct NotFinite {
  std::size_t samples = 0;
  std::string first;  // where

  template <class T>
  void look(const SampleSource<T>& source, std::size_t first_sample, const std::vector<std::vector<T>>& ports,
            std::size_t count) {
    for (std::size_t row = 0; row < count; ++row) {
      for (std::size_t i = 0; i < ports.size(); ++i) {
        const std::size_t width = ports[i].size() / count;
        const T* const from = ports[i].data() + row * width;
        if (std::all_of(from, from + width, [](T x) { return std::isfinite(x); })) continue;
        if (samples++ == 0) first = source.place(i, first_sample + row);
        break;
      }
    }
  }
};

// What the inputs tell of the range: the model's own, and that of the nets that its equations call, of which notes say
// what is not told.
std::vector<nn::Port> watched_ports(const EvaluateOptions& options, const nn::Model& model) {
  nn::WatchedInputs watched = nn::watched_inputs(model, nn::Watch::all_inputs);
  if (!options.quiet && (options.guard == "flag" || options.guard == "stop")) {
    for (const std::string& other : watched.other) {
      std::fprintf(stderr, "lockstep: note: the %s is not watched: it is no input as it is\n",
                   printable(other, LineBreaks::escape).c_str());
    }
  }
  return std::move(watched.inputs);
}

// Inputs that lie too close together for float32 where the net was trained on them, as days since -4712 or a pressure
// to the millipascal: it was trained in float64, or should have been.
void note_coarse_inputs(const std::vector<nn::Port>& inputs) {
  constexpr double kFew = 200;  // steps: half of one is a quarter of a percent of the range, or 1 % of a deviation
  for (const nn::Port& port : inputs) {
    for (const nn::Feature& feature : port.features) {
      const double largest = std::max(std::fabs(feature.minimum), std::fabs(feature.maximum));
      if (!std::isfinite(largest) || !(feature.minimum < feature.maximum)) continue;
      const double steps = (feature.maximum - feature.minimum) / std::ldexp(largest, -23);
      if (steps >= kFew) continue;
      std::fprintf(stderr,
                   "lockstep: note: float32 has %.0f steps within what input %s was trained on: --precision f64\n",
                   std::ceil(steps), printable(feature.name, LineBreaks::escape).c_str());
    }
  }
}

// `model` as it was read; `plan` has its calls clamped where that was asked for.
template <class T>
int evaluate(const EvaluateOptions& options, const std::string& command_line, const nn::Model& model,
             const nn::NetPlan<T>& plan) {
  const std::unique_ptr<SampleSource<T>> source =
      open_samples<T>(options.input, options.input_dataset, model, options.model);
  if (!options.quiet && !source->note().empty()) {
    std::fprintf(stderr, "lockstep: note: %s\n", printable(source->note(), LineBreaks::escape).c_str());
  }
  const std::size_t samples = source->samples();
  const std::size_t in_width = total_width(model.inputs), out_width = total_width(model.outputs);
  const std::vector<nn::Port> watched = watched_ports(options, model);
  if (sizeof(T) == sizeof(float) && !options.quiet) note_coarse_inputs(watched);
  const bool clamps_inputs = options.guard == "clamp" && model.calls.empty();
  std::vector<TrainingRange<T>> ranges(watched.begin(), watched.end());
  const bool guarded = options.guard != "ignore" &&
                       std::any_of(ranges.begin(), ranges.end(), [](const auto& range) { return range.known(); });
  AnswerFile answers{.path = options.output,
                     .existing = existing_output(options.output, options.overwrite),
                     .dataset = options.output_dataset,
                     .samples = samples,
                     .has_flags = guarded,
                     .attributes = {{"source", "lockstep " LOCKSTEP_VERSION},
                                    {"command", command_line},
                                    {"model", options.model.filename().string()},
                                    {"model_digest", model.digest()},
                                    {"precision", std::string(to_string(kPrecisionOf<T>))},
                                    {"cpu_target", std::string(to_string(plan.cpu_target()))}}};
  if (guarded) answers.attributes.emplace_back("guard", options.guard);
  const std::unique_ptr<AnswerSink<T>> target = create_answers<T>(answers, model);
  std::size_t outside_count = 0;
  NotFinite not_finite;

  const int threads = chosen_threads(options.threads, "--threads");
  const std::size_t piece = std::max<std::size_t>(kPieceBytes / ((in_width + out_width) * sizeof(T)), 1);
  const Interrupt interrupt;
  double seconds = 0;
  {
    Progress progress("evaluating", "samples", options.quiet ? Verbosity::quiet : Verbosity::normal);
    for (std::size_t first = 0; first < samples; first += piece) {
      if (interrupt.token().requested()) {
        std::fprintf(stderr, "lockstep: stopped at sample %s of %s; nothing was written\n", count_text(first).c_str(),
                     count_text(samples).c_str());
        return interrupt.exit_code();
      }
      const std::size_t count = std::min(piece, samples - first);
      std::vector<std::uint8_t> flags(count, 0);
      std::size_t first_outside = count, outside_port = 0;  // the first row that leaves a range, by its first such port
      std::vector<std::vector<T>> given, made;
      std::vector<MatrixView<const T>> in;
      std::vector<MatrixView<T>> out;
      for (std::size_t i = 0; i < model.inputs.size(); ++i) {
        std::vector<T>& port = given.emplace_back(source->read(i, first, count));
        std::vector<std::uint8_t> outside;
        if (guarded && ranges[i].known()) outside = ranges[i].look(port, clamps_inputs);
        require_room(*source, i, first, model.inputs[i], port);
        for (std::size_t row = 0; row < outside.size(); ++row) {
          flags[row] = flags[row] | outside[row];
          if (outside[row] != 0 && row < first_outside) first_outside = row, outside_port = i;
        }
        in.push_back(MatrixView<const T>::row_major(port.data(), count, model.inputs[i].features.size()));
      }
      if (options.guard == "stop" && first_outside < count) {
        throw Error(ErrorKind::invalid_argument,
                    {source->place(outside_port, first + first_outside),
                     "an input outside the range " + options.model.string() + " was trained on",
                     "inputs within it (lockstep info shows the range)", "leave out the row, or use --guard flag"});
      }
      not_finite.look(*source, first, given, count);
      for (const nn::Port& port : model.outputs) {
        const std::size_t width = port.features.size();
        out.push_back(MatrixView<T>::row_major(made.emplace_back(count * width).data(), count, width));
      }
      if (guarded) outside_count += static_cast<std::size_t>(std::count(flags.begin(), flags.end(), 1));
      const auto start = std::chrono::steady_clock::now();
      plan.evaluate(in, out, threads);
      seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      target->write(made, flags);
      progress.update(first + count, samples);
    }
  }
  target->publish();
  if (!options.quiet) {
    const double each = samples == 0 ? 0 : seconds / static_cast<double>(samples);
    std::printf("%s of %zu -> %zu in %s (%s each) on %s, %d %s, %s\n", counted_text(samples, "sample").c_str(),
                in_width, out_width, seconds_text(seconds).c_str(), seconds_text(each).c_str(),
                std::string(to_string(plan.cpu_target())).c_str(), threads, threads == 1 ? "thread" : "threads",
                to_string(kPrecisionOf<T>).data());
    if (outside_count > 0) {
      std::printf("%s of them outside the training range%s: %s\n", count_text(outside_count).c_str(),
                  options.guard == "clamp" ? ", clamped" : "", kOutsideRange);
    }
    if (not_finite.samples > 0) {
      std::printf("%s of them with inputs that are not finite, first %s\n", count_text(not_finite.samples).c_str(),
                  printable(not_finite.first, LineBreaks::escape).c_str());
    }
    std::printf("%s\n", options.output.string().c_str());
  }
  return kSuccess;
}

CpuTarget choose_target(const std::string& name) {
  if (name.empty()) return best_cpu_target();
  const auto target = parse_cpu_target(name);
  if (!target) {
    throw Error(ErrorKind::invalid_argument, {"--cpu-target", "\"" + name + "\"", "scalar, avx2, avx512 or neon", {}});
  }
  return *target;
}

int evaluate(const EvaluateOptions& options, const std::string& command_line) {
  refuse_to_replace(options.output, {options.model, options.input});
  require_answers_name(options.output, "--output");
  const nn::Model model = load_model(options.model, options.activations);
  const CpuTarget target = choose_target(options.cpu_target);
  const bool clamps_calls = options.guard == "clamp" && !model.calls.empty();
  const nn::Model computed = clamps_calls ? nn::with_clamped_calls(model) : model;
  return chosen_precision(options.precision, options.model) == Precision::f64
             ? evaluate(options, command_line, model, nn::NetPlan<double>::compile(computed, target))
             : evaluate(options, command_line, model, nn::NetPlan<float>::compile(computed, target));
}

}  // namespace

void add_evaluate(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<EvaluateOptions>();
  CLI::App* command = app.add_subcommand("evaluate", "apply a net to every row of a dataset");
  command->add_option("MODEL", options->model, "a model file")->required();
  command
      ->add_option("-i,--input", options->input, "HDF5 file with input[sample, feature], or a CSV with named columns")
      ->required();
  command->add_option("-o,--output", options->output, "HDF5 or .csv file to write")->check(file_name())->required();
  command->add_option("--input-dataset", options->input_dataset,
                      "another name than \"input\", for nets of one input port");
  command->add_option("--output-dataset", options->output_dataset,
                      "another name than \"output\", for nets of one output port");
  command->add_option(
      "--activations", options->activations,
      "one for each layer (tanh,identity), or one for the hidden layers (tanh), where the file does not say");
  command->add_option("--precision", options->precision, kPrecisionHelp)->check(one_of({"f32", "f64"}));
  command->add_option("--threads", options->threads, "number of threads, 0 for all")
      ->transform(whole_number(0, kMostThreads));
  command->add_option("--cpu-target", options->cpu_target, "instruction set: avx512, avx2, neon or scalar");
  command->add_option("--guard", options->guard, "inputs outside the training range: flag, clamp, stop or ignore")
      ->check(one_of({"flag", "clamp", "stop", "ignore"}))
      ->capture_default_str();
  command->add_flag("--overwrite", options->overwrite, "replace an existing output");
  command->add_flag("-q,--quiet", options->quiet, "print errors only");
  command->footer(std::string(kEvaluateExamples) + "\n");
  command->callback(
      [&chosen, options] { chosen.run = [options, line = chosen.command_line] { return evaluate(*options, line); }; });
}

}  // namespace lockstep::cli
