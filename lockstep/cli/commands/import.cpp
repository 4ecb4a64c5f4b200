// `lockstep import`: a net from another tool's file into one of Lockstep's, saying what was understood.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/data_numbers.h"
#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/flag_checks.h"
#include "lockstep/cli/given_ranges.h"
#include "lockstep/cli/model_text.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/printable.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/net_plan.h"
#include "lockstep/nn/safetensors.h"

namespace lockstep::cli {
namespace {

struct ImportOptions {
  std::filesystem::path model;
  std::filesystem::path output;
  std::optional<std::filesystem::path> check;
  std::optional<std::string> activations;
  double tolerance = 1e-5;
  GivenRanges given;
  bool overwrite = false;
};

constexpr const char* kImportExamples = R"(
Examples:
  lockstep import net.onnx -o net.h5
  lockstep import net.keras -o net.h5
  lockstep import net.onnx -o net.safetensors --check samples.h5
  lockstep import net.onnx -o net.h5 --inputs x,v --ranges train.csv
  lockstep import net.onnx -o net.h5 --range x=-1:1 --range v=0:2.5

--check FILE compares with answers of the tool that trained the net: datasets input[sample, feature] and
output[sample, feature], or one for each port under its name where there are several. Beyond the tolerance nothing is written and the exit code is 1.

--ranges FILE stores the range of each input in the data that the net was trained on, which solve and evaluate act on
(--guard): columns of a CSV that are called as the inputs (--inputs names them), or input[sample, feature] as for --check.)";

void print_model(const nn::Model& model) {
  const auto shown = [](const std::string& text) { return printable(text, LineBreaks::escape); };
  std::printf("%s: %s%s%s\n", shown(model.provenance.source).c_str(), shown(model.provenance.format).c_str(),
              model.provenance.producer.empty() ? "" : ", made by ", shown(model.provenance.producer).c_str());
  const auto lines = node_lines(model);
  int wide = 24;
  for (const auto& [name, text] : lines)
    wide = std::max(wide, static_cast<int>(std::min<std::size_t>(name.size(), 48)));
  for (const auto& [name, text] : lines) std::printf("  %-*s %s\n", wide, shown(name).c_str(), shown(text).c_str());
  for (const std::string& note : model.provenance.notes) std::printf("  note: %s\n", shown(note).c_str());
  for (const std::string& output : model.provenance.left_out) {
    std::printf("  left out: %s\n", shown(output).c_str());
  }
  std::printf("  %s\n", parameters_text(model).c_str());
}

// Infinite where one of the two alone is NaN, or infinite; two that are NaN agree.
double difference_of(double answer, double expected) {
  if (answer == expected || (std::isnan(answer) && std::isnan(expected))) return 0;
  const double difference = std::fabs(answer - expected);
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
}

// The largest difference of an output over the samples, as a share of that output's own finite range (1 where it has
// none).
double largest_difference(const nn::Model& model, const std::filesystem::path& path) {
  const hdf5::File file = hdf5::File::open(path);
  const auto plan = nn::NetPlan<double>::compile(model);
  std::size_t samples = 0;
  const auto read = [&](const std::vector<nn::Port>& ports, const char* only) {
    std::vector<std::vector<double>> numbers;
    for (const nn::Port& port : ports) {
      const hdf5::Dataset dataset = file.dataset(ports.size() > 1 ? port.name : only);
      const hdf5::Shape shape = dataset.shape();
      const std::size_t width = port.features.size();
      if (shape.size() != 2 || shape[1] != width) {
        throw Error(ErrorKind::invalid_argument, {dataset.name(), "the shape " + shape_text(shape),
                                                  "[sample, " + std::to_string(width) + "], as the net has",
                                                  shape.size() == 2 && shape[0] == width ? "transpose it" : ""});
      }
      if (samples == 0) samples = shape[0];
      if (shape[0] != samples || samples == 0) {
        throw Error(ErrorKind::invalid_argument,
                    {dataset.name(), std::to_string(shape[0]) + " samples",
                     std::to_string(samples) + ", as many as input has, and at least one", ""});
      }
      numbers.push_back(dataset.read<double>());
    }
    return numbers;
  };
  const auto x = read(model.inputs, "input"), expected = read(model.outputs, "output");
  auto y = expected;
  std::vector<MatrixView<const double>> in;
  std::vector<MatrixView<double>> out;
  for (std::size_t p = 0; p < x.size(); ++p) {
    in.push_back(MatrixView<const double>::row_major(x[p].data(), samples, model.inputs[p].features.size()));
  }
  for (std::size_t p = 0; p < y.size(); ++p) {
    out.push_back(MatrixView<double>::row_major(y[p].data(), samples, model.outputs[p].features.size()));
  }
  plan.evaluate(in, out);
  double largest = 0;
  for (std::size_t p = 0; p < y.size(); ++p) {
    const std::size_t width = model.outputs[p].features.size();
    for (std::size_t j = 0; j < width; ++j) {
      double low = std::numeric_limits<double>::infinity(), high = -low, difference = 0;
      for (std::size_t i = j; i < y[p].size(); i += width) {
        if (std::isfinite(expected[p][i])) {
          low = std::min(low, expected[p][i]);
          high = std::max(high, expected[p][i]);
        }
        difference = std::max(difference, difference_of(y[p][i], expected[p][i]));
      }
      largest = std::max(largest, difference / (high > low ? high - low : 1));
    }
  }
  return largest;
}

int import_model(const ImportOptions& options) {
  const std::string extension = options.output.extension().string();
  if (extension != ".h5" && extension != ".hdf5" && extension != ".safetensors") {
    throw Error(ErrorKind::invalid_argument, {"--output", '"' + options.output.string() + '"',
                                              "a name that ends in .h5 or .safetensors", "the ending says the format"});
  }
  const Existing existing = existing_output(options.output, options.overwrite);
  refuse_to_replace(options.output, {options.model});
  if (options.check) refuse_to_replace(options.output, {*options.check});
  if (options.given.data) refuse_to_replace(options.output, {*options.given.data});
  nn::Model model = load_model(options.model, options.activations, "--activations", nn::UnreadableOutputs::leave_out);
  std::vector<std::string> notes;
  const std::vector<std::string> ranges = take_ranges(model, options.given, notes);
  if (extension == ".safetensors" && !nn::is_stack(model)) {
    throw Error(ErrorKind::unsupported,
                {"--output", '"' + options.output.string() + '"',
                 "a name that ends in .h5: safetensors holds plain stacks of layers only", "write NAME.h5"});
  }
  for (const std::string& note : notes) {
    std::fprintf(stderr, "lockstep: note: %s\n", printable(note, LineBreaks::escape).c_str());
  }
  print_model(model);
  for (const std::string& line : ranges) {
    std::printf("  range %s\n", printable(line, LineBreaks::escape).c_str());
  }
  if (options.check) {
    const double difference = largest_difference(model, *options.check);
    std::printf("  check: at most %s of an output's range from the answers in %s\n",
                rounded_text(difference, 2).c_str(), options.check->string().c_str());
    if (!(difference <= options.tolerance)) {
      std::fprintf(stderr, "lockstep: the net does not give those answers to within %s: nothing was written\n",
                   rounded_text(options.tolerance, 2).c_str());
      return kDifferent;
    }
  }
  if (own_precision(options.model) == Precision::f64) {
    std::printf("  note: evaluate it with --precision f64, as [method] of %s says: a model's file does not\n",
                printable(options.model.string(), LineBreaks::escape).c_str());
  }
  if (extension == ".safetensors") {
    nn::write_safetensors(options.output, model, existing);
  } else {
    nn::write_hdf5_model(options.output, model, existing);
  }
  std::printf("%s\n", options.output.string().c_str());
  return kSuccess;
}

}  // namespace

void add_import(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<ImportOptions>();
  CLI::App* command =
      app.add_subcommand("import", "turn a net of another tool (ONNX, Keras, safetensors) into Lockstep's");
  command->add_option("MODEL", options->model, "a model file")->required();
  command->add_option("-o,--output", options->output, "file to write: NAME.h5 or NAME.safetensors")
      ->check(file_name())
      ->required();
  command->add_option("--check", options->check, "HDF5 file with samples and the answers to them");
  command->add_option("--tolerance", options->tolerance, "for --check: share of an output's range")
      ->check(positive_number())
      ->capture_default_str();
  command->add_option(
      "--activations", options->activations,
      "one for each layer (tanh,identity), or one for the hidden layers (tanh), where the file does not say");
  command->add_option("--ranges", options->given.data, "CSV or HDF5 file of the data that the net was trained on");
  command->add_option("--range", options->given.ranges, "NAME=LOW:HIGH, an input's training range; may be repeated");
  command->add_option("--inputs", options->given.inputs, "names of the inputs, in their order: x,v")->delimiter(',');
  command->add_option("--outputs", options->given.outputs, "names of the outputs, likewise")->delimiter(',');
  command->add_flag("--overwrite", options->overwrite, "replace an existing output");
  command->footer(std::string(kImportExamples) + "\n");
  command->callback([&chosen, options] { chosen.run = [options] { return import_model(*options); }; });
}

}  // namespace lockstep::cli
