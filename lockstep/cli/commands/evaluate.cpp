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
#include <vector>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/interrupt.h"
#include "lockstep/cli/progress.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/parallel.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/model.h"

namespace lockstep::cli {
namespace {

struct EvaluateOptions {
  std::filesystem::path model;
  std::filesystem::path input;
  std::filesystem::path output;
  std::string input_dataset = "input";
  std::string output_dataset = "output";
  std::optional<std::string> activations;
  std::string precision = "f32";
  std::string cpu_target;
  std::string guard = "flag";
  int threads = 0;
  bool overwrite = false;
  bool quiet = false;
};

constexpr const char* kExamples = R"(
Examples:
  lockstep evaluate net.safetensors --input x.h5 --output y.h5
  lockstep evaluate net.safetensors --input x.h5 --output y.h5 --precision f64 --activations tanh,identity

Where the model says what it was trained on, dataset outside_range[sample] tells which inputs lie outside.
Reads dataset input[sample, feature], writes output[sample, feature]. Files may be larger than memory.)";

constexpr const char* kOutside = "outside_range";  // dataset [sample]: 1 where an input lies outside

constexpr std::size_t kPieceBytes = std::size_t{32} << 20;  // of input and output together

std::vector<std::string> feature_names(const std::vector<nn::Port>& ports, std::size_t count, const char* prefix) {
  std::vector<std::string> names(count);
  for (std::size_t i = 0; i < count; ++i) {
    const bool named = ports.size() == 1 && i < ports[0].features.size() && !ports[0].features[i].name.empty();
    names[i] = named ? ports[0].features[i].name : prefix + std::to_string(i);
  }
  return names;
}

// What the model was trained on, rounded to T as the inputs are.
template <class T>
struct TrainingRange {
  std::vector<T> minimum, maximum;  // [feature]; empty where the model does not say
  std::size_t outside = 0;          // samples found there

  explicit TrainingRange(const nn::Model& model) {
    bool bounded = false;
    for (const nn::Feature& feature : model.inputs.at(0).features) {
      minimum.push_back(static_cast<T>(feature.minimum));
      maximum.push_back(static_cast<T>(feature.maximum));
      bounded = bounded || std::isfinite(feature.minimum) || std::isfinite(feature.maximum);
    }
    if (!bounded) minimum.clear();
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
    outside += static_cast<std::size_t>(std::count(flags.begin(), flags.end(), 1));
    return flags;
  }
};

hdf5::Dataset open_input(const hdf5::File& file, const EvaluateOptions& options, std::size_t features) {
  hdf5::Dataset input = file.dataset(options.input_dataset);
  const hdf5::Shape shape = input.shape();
  if (shape.size() != 2 || shape[1] != features) {
    std::string found = std::to_string(shape.size()) + (shape.size() == 1 ? " dimension" : " dimensions");
    if (shape.size() == 2) found = std::to_string(shape[1]) + (shape[1] == 1 ? " column" : " columns");
    throw Error(ErrorKind::invalid_argument, {input.name(),
                                              found,
                                              "[sample, feature] with " + std::to_string(features) +
                                                  " columns, the inputs of " + options.model.string(),
                                              {}});
  }
  return input;
}

template <class T>
int evaluate(const EvaluateOptions& options, const std::string& command_line, const nn::Model& model,
             const Plan<T>& plan) {
  const hdf5::File source = hdf5::File::open(options.input);
  const hdf5::Dataset input = open_input(source, options, plan.inputs());
  const std::size_t samples = input.shape()[0];
  hdf5::File target = hdf5::File::create(options.output, options.overwrite ? Existing::replace : Existing::refuse,
                                         samples * plan.outputs() * sizeof(T) + (1 << 16));
  hdf5::Dataset output = target.create_dataset<T>(options.output_dataset, {samples, plan.outputs()});
  hdf5::Dataset features = target.create_strings("feature", feature_names(model.outputs, plan.outputs(), "y"));
  features.make_scale("feature");
  output.attach_scale(1, features);
  target.set_attribute("source", "lockstep " LOCKSTEP_VERSION);
  target.set_attribute("command", command_line);
  target.set_attribute("model", options.model.filename().string());
  target.set_attribute("model_digest", model.digest());
  target.set_attribute("precision", options.precision);
  target.set_attribute("cpu_target", std::string(to_string(plan.cpu_target())));
  TrainingRange<T> range(model);
  const bool guarded = range.known() && options.guard != "ignore";
  std::optional<hdf5::Dataset> outside;
  if (guarded) {
    outside = target.create_dataset<std::uint8_t>(kOutside, {samples});
    target.set_attribute("guard", options.guard);
  }
  target.reserve_space();

  const int threads = options.threads == 0 ? available_threads() : options.threads;
  const std::size_t row_bytes = (plan.inputs() + plan.outputs()) * sizeof(T);
  const std::size_t piece = std::max<std::size_t>(kPieceBytes / row_bytes, 1);
  const Interrupt interrupt;
  double seconds = 0;
  {
    Progress progress("evaluating", "samples", options.quiet ? Verbosity::quiet : Verbosity::normal);
    std::vector<T> results;
    for (std::size_t first = 0; first < samples; first += piece) {
      if (interrupt.token().requested()) {
        std::fprintf(stderr, "lockstep: stopped at sample %s of %s; nothing was written\n",
                     count_text(static_cast<std::int64_t>(first)).c_str(),
                     count_text(static_cast<std::int64_t>(samples)).c_str());
        return interrupt.exit_code();
      }
      const std::size_t count = std::min(piece, samples - first);
      std::vector<T> rows = input.read<T>({first, 0}, {count, plan.inputs()});
      results.resize(count * plan.outputs());
      if (guarded) {
        const std::vector<std::uint8_t> flags = range.look(rows, options.guard == "clamp");
        outside->write<std::uint8_t>(flags, {first}, {count});
        if (options.guard == "stop" && range.outside > 0) {
          const auto row = std::find(flags.begin(), flags.end(), 1) - flags.begin();
          throw Error(ErrorKind::invalid_argument,
                      {input.name() + ", row " + std::to_string(first + static_cast<std::size_t>(row)),
                       "an input outside the range " + options.model.string() + " was trained on",
                       "inputs within it (lockstep info shows the range)", "leave out the row, or use --guard flag"});
        }
      }
      const auto start = std::chrono::steady_clock::now();
      plan.evaluate(MatrixView<const T>::row_major(rows.data(), count, plan.inputs()),
                    MatrixView<T>::row_major(results.data(), count, plan.outputs()), threads);
      seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      output.write<T>(results, {first, 0}, {count, plan.outputs()});
      progress.update(first + count, samples);
    }
  }
  target.publish();
  if (!options.quiet) {
    const double each = samples == 0 ? 0 : seconds / static_cast<double>(samples);
    std::printf("%s samples of %zu -> %zu in %s (%s each) on %s, %d %s, %s\n",
                count_text(static_cast<std::int64_t>(samples)).c_str(), plan.inputs(), plan.outputs(),
                seconds_text(seconds).c_str(), seconds_text(each).c_str(),
                std::string(to_string(plan.cpu_target())).c_str(), threads, threads == 1 ? "thread" : "threads",
                options.precision.c_str());
    if (range.outside > 0) {
      std::printf("%s of them outside the training range%s: dataset %s\n",
                  count_text(static_cast<std::int64_t>(range.outside)).c_str(),
                  options.guard == "clamp" ? ", clamped" : "", kOutside);
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
  nn::ReadOptions load;
  if (options.activations) load.activations = *options.activations;
  const nn::Model model = nn::load(options.model, load);
  const Mlp mlp = nn::to_mlp(model);
  const CpuTarget target = choose_target(options.cpu_target);
  return options.precision == "f64" ? evaluate(options, command_line, model, Plan<double>::compile(mlp, target))
                                    : evaluate(options, command_line, model, Plan<float>::compile(mlp, target));
}

}  // namespace

void add_evaluate(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<EvaluateOptions>();
  CLI::App* command = app.add_subcommand("evaluate", "apply a net to every row of a dataset");
  command->add_option("MODEL", options->model, "a model file")->required();
  command->add_option("-i,--input", options->input, "HDF5 file with input[sample, feature]")->required();
  command->add_option("-o,--output", options->output, "HDF5 file to write")->required();
  command->add_option("--input-dataset", options->input_dataset, "another name than \"input\"");
  command->add_option("--output-dataset", options->output_dataset, "another name than \"output\"");
  command->add_option("--activations", options->activations,
                      "one for each layer, where the file does not say: tanh,identity");
  command->add_option("--precision", options->precision, "arithmetic: f32 or f64")
      ->check(CLI::IsMember({"f32", "f64"}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "number of threads, 0 for all")->check(CLI::Range(0, 4096));
  command->add_option("--cpu-target", options->cpu_target, "instruction set: avx512, avx2, neon or scalar");
  command->add_option("--guard", options->guard, "inputs outside the training range: flag, clamp, stop or ignore")
      ->check(CLI::IsMember({"flag", "clamp", "stop", "ignore"}))
      ->capture_default_str();
  command->add_flag("--overwrite", options->overwrite, "replace an existing output");
  command->add_flag("-q,--quiet", options->quiet, "print errors only");
  command->footer(std::string(kExamples) + "\n");
  command->callback(
      [&chosen, options] { chosen.run = [options, line = chosen.command_line] { return evaluate(*options, line); }; });
}

}  // namespace lockstep::cli
