// `lockstep import`: a net from another tool's file into one of Lockstep's, saying what was understood.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/safetensors.h"

namespace lockstep::cli {
namespace {

struct ImportOptions {
  std::filesystem::path model;
  std::filesystem::path output;
  std::optional<std::filesystem::path> check;
  std::optional<std::string> activations;
  double tolerance = 1e-5;
  bool overwrite = false;
};

constexpr const char* kExamples = R"(
Examples:
  lockstep import net.onnx -o net.h5
  lockstep import net.onnx -o net.safetensors --check samples.h5

--check FILE compares with answers of the tool that trained the net: datasets input[sample, feature] and
output[sample, feature]. Beyond the tolerance nothing is written and the exit code is 1.)";

std::string describe(const nn::Node& node) {
  struct {
    std::string operator()(const nn::Dense& dense) const {
      const bool biased = std::any_of(dense.bias.begin(), dense.bias.end(), [](double b) { return b != 0; });
      return "dense, " + std::to_string(dense.inputs) + " -> " + std::to_string(dense.outputs) +
             (biased ? "" : ", no bias");
    }
    std::string operator()(const nn::Activate& activate) const { return to_string(activate.activation); }
    std::string operator()(const nn::Standardise&) const { return "(x - shift) / scale"; }
    std::string operator()(const nn::Rescale&) const { return "x * scale + shift"; }
  } text;
  return std::visit(text, node.operation);
}

void print_model(const nn::Model& model) {
  std::printf("%s: %s%s%s\n", model.provenance.source.c_str(), model.provenance.format.c_str(),
              model.provenance.producer.empty() ? "" : ", made by ", model.provenance.producer.c_str());
  for (const nn::Node& node : model.nodes) std::printf("  %-24s %s\n", node.name.c_str(), describe(node).c_str());
  for (const std::string& note : model.provenance.notes) std::printf("  note: %s\n", note.c_str());
  std::printf("  %s parameters, %s\n", count_text(static_cast<std::int64_t>(model.parameter_count())).c_str(),
              to_string(model.weight_type).c_str());
}

// The largest difference of an output over the samples, as a share of that output's own range (1 where it has none).
double largest_difference(const nn::Model& model, const std::filesystem::path& path) {
  const hdf5::File file = hdf5::File::open(path);
  const auto plan = nn::compile<double>(model);
  const hdf5::Dataset input = file.dataset("input"), output = file.dataset("output");
  const auto require_columns = [](const hdf5::Dataset& dataset, std::size_t columns) {
    if (dataset.shape().size() == 2 && dataset.shape()[1] == columns) return;
    throw Error(ErrorKind::invalid_argument,
                {dataset.name(), "another shape", "[sample, " + std::to_string(columns) + "], as the net has", ""});
  };
  require_columns(input, plan.inputs());
  require_columns(output, plan.outputs());
  const std::size_t samples = input.shape()[0];
  if (output.shape()[0] != samples || samples == 0) {
    throw Error(ErrorKind::invalid_argument,
                {output.name(), std::to_string(output.shape()[0]) + " samples",
                 std::to_string(samples) + ", as many as input has, and at least one", ""});
  }
  const auto x = input.read<double>(), expected = output.read<double>();
  std::vector<double> y(expected.size());
  plan.evaluate(
      MatrixView<const double>{x.data(), samples, plan.inputs(), static_cast<std::ptrdiff_t>(plan.inputs()), 1},
      MatrixView<double>::row_major(y.data(), samples, plan.outputs()));
  double largest = 0;
  for (std::size_t j = 0; j < plan.outputs(); ++j) {
    double low = expected[j], high = expected[j], difference = 0;
    for (std::size_t i = j; i < y.size(); i += plan.outputs()) {
      low = std::min(low, expected[i]);
      high = std::max(high, expected[i]);
      const double here = std::fabs(y[i] - expected[i]);
      difference = here <= difference ? difference : here;  // NaN stays
    }
    const double share = difference / (high > low ? high - low : 1);
    largest = share <= largest ? largest : share;
  }
  return largest;
}

int import_model(const ImportOptions& options) {
  const std::string extension = options.output.extension().string();
  if (extension != ".h5" && extension != ".hdf5" && extension != ".safetensors") {
    throw Error(ErrorKind::invalid_argument, {"--output", '"' + options.output.string() + '"',
                                              "a name that ends in .h5 or .safetensors", "the ending says the format"});
  }
  nn::ReadOptions read;
  if (options.activations) read.activations = *options.activations;
  const nn::Model model = nn::load(options.model, read);
  nn::to_mlp(model);
  print_model(model);
  if (options.check) {
    const double difference = largest_difference(model, *options.check);
    std::printf("  check: at most %.2g of an output's range from the answers in %s\n", difference,
                options.check->string().c_str());
    if (!(difference <= options.tolerance)) {
      std::fprintf(stderr, "lockstep: the net does not give those answers to within %.2g: nothing was written\n",
                   options.tolerance);
      return kDifferent;
    }
  }
  const Existing existing = options.overwrite ? Existing::replace : Existing::refuse;
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
  CLI::App* command = app.add_subcommand("import", "turn a net of another tool (ONNX, safetensors) into Lockstep's");
  command->add_option("MODEL", options->model, "a model file")->required();
  command->add_option("-o,--output", options->output, "file to write: NAME.h5 or NAME.safetensors")->required();
  command->add_option("--check", options->check, "HDF5 file with samples and the answers to them");
  command->add_option("--tolerance", options->tolerance, "for --check: share of an output's range")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  command->add_option("--activations", options->activations,
                      "one for each layer, where the file does not say: tanh,identity");
  command->add_flag("--overwrite", options->overwrite, "replace an existing output");
  command->footer(std::string(kExamples) + "\n");
  command->callback([&chosen, options] { chosen.run = [options] { return import_model(*options); }; });
}

}  // namespace lockstep::cli
