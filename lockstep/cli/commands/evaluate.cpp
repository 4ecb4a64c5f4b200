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
#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/flag_checks.h"
#include "lockstep/cli/interrupt.h"
#include "lockstep/cli/model_text.h"
#include "lockstep/cli/progress.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/parallel.h"
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
  std::string precision = "f32";
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

Where the model says what it was trained on, dataset outside_range[sample] tells which inputs lie outside.
Reads dataset input[sample, feature], writes output[sample, feature]. A net of several input (or output) ports reads
(or writes) a dataset for each, named after the port; lockstep info shows them. Files may be larger than memory.)";

constexpr const char* kOutside = "outside_range";  // dataset [sample]: 1 where an input lies outside

constexpr std::size_t kPieceBytes = std::size_t{32} << 20;  // of input and output together

std::vector<std::string> feature_names(const nn::Port& port) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < port.features.size(); ++i) {
    names.push_back(port.features[i].name.empty() ? "y" + std::to_string(i) : port.features[i].name);
  }
  return names;
}

// What the model was trained on, rounded to T as the inputs are.
template <class T>
struct TrainingRange {
  std::vector<T> minimum, maximum;  // [feature]; empty where the model does not say

  explicit TrainingRange(const nn::Port& port) {
    bool bounded = false;
    for (const nn::Feature& feature : port.features) {
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
    return flags;
  }
};

// HDF5 takes a slash in a name for a path.
std::string dataset_name(const std::string& port) {
  std::string name = port;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

// One port of the net and the dataset it reads or writes, a piece of samples at a time.
template <class T>
struct PortData {
  std::size_t width;
  hdf5::Dataset dataset;
  bool one_dimension = false;  // [sample], for ports of one feature
  std::vector<T> piece;
};

// The input ports' datasets; `samples` must be the same in all.
template <class T>
std::vector<PortData<T>> open_inputs(const hdf5::File& file, const EvaluateOptions& options, const nn::Model& model) {
  std::vector<PortData<T>> inputs;
  for (const nn::Port& port : model.inputs) {
    const bool several = model.inputs.size() > 1;
    const std::size_t features = port.features.size();
    hdf5::Dataset dataset = file.dataset(several ? dataset_name(port.name) : options.input_dataset);
    const hdf5::Shape shape = dataset.shape();
    const bool one_dimension = shape.size() == 1 && features == 1;
    if (!one_dimension && (shape.size() != 2 || shape[1] != features)) {
      std::string found = std::to_string(shape.size()) + (shape.size() == 1 ? " dimension" : " dimensions");
      if (shape.size() == 2) found = std::to_string(shape[1]) + (shape[1] == 1 ? " column" : " columns");
      const std::string what = several ? "port " + port.name : "the inputs";
      throw Error(ErrorKind::invalid_argument, {dataset.name(),
                                                found,
                                                "[sample, feature] with " + std::to_string(features) + " columns, " +
                                                    what + " of " + options.model.string(),
                                                {}});
    }
    if (!inputs.empty() && shape[0] != inputs[0].dataset.shape()[0]) {
      throw Error(ErrorKind::invalid_argument,
                  {dataset.name(),
                   std::to_string(shape[0]) + " samples",
                   std::to_string(inputs[0].dataset.shape()[0]) + ", as " + inputs[0].dataset.name() + " has",
                   {}});
    }
    inputs.push_back({features, std::move(dataset), one_dimension, {}});
  }
  return inputs;
}

template <class T>
std::vector<PortData<T>> create_outputs(hdf5::File& file, const EvaluateOptions& options, const nn::Model& model,
                                        std::size_t samples) {
  std::vector<PortData<T>> outputs;
  const bool several = model.outputs.size() > 1;
  for (const nn::Port& port : model.outputs) {
    const std::size_t width = port.features.size();
    const std::string name = several ? dataset_name(port.name) : options.output_dataset;
    hdf5::Dataset dataset = file.create_dataset<T>(name, {samples, width});
    if (!several || width > 1) {
      const std::string scale = several ? name + "_feature" : "feature";
      hdf5::Dataset features = file.create_strings(scale, feature_names(port));
      features.make_scale(scale);
      dataset.attach_scale(1, features);
    }
    outputs.push_back({width, std::move(dataset), false, {}});
  }
  return outputs;
}

std::size_t total_width(const std::vector<nn::Port>& ports) {
  std::size_t sum = 0;
  for (const nn::Port& port : ports) sum += port.features.size();
  return sum;
}

template <class T>
int evaluate(const EvaluateOptions& options, const std::string& command_line, const nn::Model& model,
             const nn::NetPlan<T>& plan) {
  const hdf5::File source = hdf5::File::open(options.input);
  std::vector<PortData<T>> inputs = open_inputs<T>(source, options, model);
  const std::size_t samples = inputs[0].dataset.shape()[0];
  const std::size_t in_width = total_width(model.inputs), out_width = total_width(model.outputs);
  hdf5::File target = hdf5::File::create(options.output, existing_output(options.output, options.overwrite),
                                         samples * out_width * sizeof(T) + (1 << 16));
  std::vector<PortData<T>> outputs = create_outputs<T>(target, options, model, samples);
  target.set_attribute("source", "lockstep " LOCKSTEP_VERSION);
  target.set_attribute("command", command_line);
  target.set_attribute("model", options.model.filename().string());
  target.set_attribute("model_digest", model.digest());
  target.set_attribute("precision", options.precision);
  target.set_attribute("cpu_target", std::string(to_string(plan.cpu_target())));
  std::vector<TrainingRange<T>> ranges(model.inputs.begin(), model.inputs.end());
  const bool guarded = options.guard != "ignore" &&
                       std::any_of(ranges.begin(), ranges.end(), [](const auto& range) { return range.known(); });
  std::size_t outside_count = 0;
  std::optional<hdf5::Dataset> outside;
  if (guarded) {
    outside = target.create_dataset<std::uint8_t>(kOutside, {samples});
    target.set_attribute("guard", options.guard);
  }
  target.reserve_space();

  const int threads = options.threads == 0 ? available_threads() : options.threads;
  const std::size_t piece = std::max<std::size_t>(kPieceBytes / ((in_width + out_width) * sizeof(T)), 1);
  const Interrupt interrupt;
  double seconds = 0;
  {
    Progress progress("evaluating", "samples", options.quiet ? Verbosity::quiet : Verbosity::normal);
    for (std::size_t first = 0; first < samples; first += piece) {
      if (interrupt.token().requested()) {
        std::fprintf(stderr, "lockstep: stopped at sample %s of %s; nothing was written\n",
                     count_text(static_cast<std::int64_t>(first)).c_str(),
                     count_text(static_cast<std::int64_t>(samples)).c_str());
        return interrupt.exit_code();
      }
      const std::size_t count = std::min(piece, samples - first);
      std::vector<std::uint8_t> flags(count, 0);
      std::vector<MatrixView<const T>> in;
      std::vector<MatrixView<T>> out;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        PortData<T>& port = inputs[i];
        port.piece = port.one_dimension ? port.dataset.template read<T>({first}, {count})
                                        : port.dataset.template read<T>({first, 0}, {count, port.width});
        if (guarded && ranges[i].known()) {
          const std::vector<std::uint8_t> found = ranges[i].look(port.piece, options.guard == "clamp");
          for (std::size_t row = 0; row < count; ++row) flags[row] = flags[row] | found[row];
        }
        in.push_back(MatrixView<const T>::row_major(port.piece.data(), count, port.width));
      }
      for (PortData<T>& port : outputs) {
        port.piece.resize(count * port.width);
        out.push_back(MatrixView<T>::row_major(port.piece.data(), count, port.width));
      }
      if (guarded) {
        outside_count += static_cast<std::size_t>(std::count(flags.begin(), flags.end(), 1));
        outside->write<std::uint8_t>(flags, {first}, {count});
        if (options.guard == "stop" && outside_count > 0) {
          const auto row = std::find(flags.begin(), flags.end(), 1) - flags.begin();
          throw Error(ErrorKind::invalid_argument,
                      {inputs[0].dataset.name() + ", row " + std::to_string(first + static_cast<std::size_t>(row)),
                       "an input outside the range " + options.model.string() + " was trained on",
                       "inputs within it (lockstep info shows the range)", "leave out the row, or use --guard flag"});
        }
      }
      const auto start = std::chrono::steady_clock::now();
      plan.evaluate(in, out, threads);
      seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      for (PortData<T>& port : outputs) port.dataset.template write<T>(port.piece, {first, 0}, {count, port.width});
      progress.update(first + count, samples);
    }
  }
  target.publish();
  if (!options.quiet) {
    const double each = samples == 0 ? 0 : seconds / static_cast<double>(samples);
    std::printf("%s samples of %zu -> %zu in %s (%s each) on %s, %d %s, %s\n",
                count_text(static_cast<std::int64_t>(samples)).c_str(), in_width, out_width,
                seconds_text(seconds).c_str(), seconds_text(each).c_str(),
                std::string(to_string(plan.cpu_target())).c_str(), threads, threads == 1 ? "thread" : "threads",
                options.precision.c_str());
    if (outside_count > 0) {
      std::printf("%s of them outside the training range%s: dataset %s\n",
                  count_text(static_cast<std::int64_t>(outside_count)).c_str(),
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
  refuse_to_replace(options.output, {options.model, options.input});
  const nn::Model model = load_model(options.model, options.activations);
  const CpuTarget target = choose_target(options.cpu_target);
  return options.precision == "f64"
             ? evaluate(options, command_line, model, nn::NetPlan<double>::compile(model, target))
             : evaluate(options, command_line, model, nn::NetPlan<float>::compile(model, target));
}

}  // namespace

void add_evaluate(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<EvaluateOptions>();
  CLI::App* command = app.add_subcommand("evaluate", "apply a net to every row of a dataset");
  command->add_option("MODEL", options->model, "a model file")->required();
  command->add_option("-i,--input", options->input, "HDF5 file with input[sample, feature]")->required();
  command->add_option("-o,--output", options->output, "HDF5 file to write")->required();
  command->add_option("--input-dataset", options->input_dataset,
                      "another name than \"input\", for nets of one input port");
  command->add_option("--output-dataset", options->output_dataset,
                      "another name than \"output\", for nets of one output port");
  command->add_option("--activations", options->activations,
                      "one for each layer, where the file does not say: tanh,identity");
  command->add_option("--precision", options->precision, "arithmetic: f32 or f64")
      ->check(one_of({"f32", "f64"}))
      ->capture_default_str();
  command->add_option("--threads", options->threads, "number of threads, 0 for all")->check(whole_number(0, 4096));
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
