// `lockstep export`: a net for programs without Lockstep, as one header of C or CUDA or as an ONNX file.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/derivative_flag.h"
#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/flag_checks.h"
#include "lockstep/cli/model_text.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/pending_file.h"
#include "lockstep/core/printable.h"
#include "lockstep/nn/export.h"
#include "lockstep/nn/onnx.h"

namespace lockstep::cli {
namespace {

struct ExportCommand {
  std::filesystem::path model;
  std::optional<std::filesystem::path> c_header, cuda_header, onnx, weights;
  std::optional<std::string> name, precision, activations, derivative;
  bool overwrite = false;
};

constexpr const char* kExportExamples = R"(
Examples:
  lockstep export net.h5 --c-header closure.h         C99 and C++, weights inside
  lockstep export net.h5 --cuda-header closure.cuh    functions for the kernels of your own
  lockstep export net.h5 --c-header closure.h --weights closure.weights
  lockstep export net.h5 --derivative jacobian --cuda-header closure_jacobian.cuh
  lockstep export net.h5 --onnx net.onnx              for ONNX Runtime, MATLAB, Netron, other frameworks

A header's functions give the same bits as Lockstep, for float and for double (with --precision f64 for double alone:
of tables in seconds since 1970, say), and closure_check() in it tells whether a compiler kept them. Names begin with
the header's own (closure_evaluate_f32) or with --name. With --weights they take a pointer to the content of that file
(raw numbers of this machine's byte order) as their first argument.
docs/embedding.md shows how to call them.

With --derivative the file holds, beside the net's outputs, J x_dot (jvp), J^T y_bar (vjp) or J by rows (jacobian), J the
Jacobian of all outputs by all inputs, as ports of their own: of a net x -> y, jvp makes y and y_dot of x and x_dot.

The ONNX file has opset 17, inputs and outputs [batch, features] called as the net's ports, normalisation inside. Its numbers
are float32 where that holds every weight, else float64 (of a problem file in f64 always), or as --precision says. Names,
units and training ranges lie in its metadata, where Lockstep finds them again. docs/bringing_a_net.md shows how others
read it.)";

// "path/my-net.v2.h" names my_net_v2.
std::string name_from(const std::filesystem::path& header) {
  std::string name = header.stem().string();
  for (char& c : name) {
    const bool allowed = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
    if (!allowed) c = '_';
  }
  if (name.empty() || (name[0] >= '0' && name[0] <= '9')) name.insert(0, "net_");
  return name;
}

// The one output of the command. Flags of another are refused.
std::filesystem::path output_of(const ExportCommand& command) {
  const int outputs =
      int{command.c_header.has_value()} + int{command.cuda_header.has_value()} + int{command.onnx.has_value()};
  if (outputs != 1) {
    throw Error(ErrorKind::invalid_argument,
                {"export", outputs == 0 ? "nothing to write" : std::to_string(outputs) + " files to write",
                 "one of --c-header FILE, --cuda-header FILE and --onnx FILE", "run once for each"});
  }
  const auto refuse_beside = [](const char* flag, const char* output, const char* remedy) {
    throw Error(ErrorKind::invalid_argument, {flag, std::string("it beside ") + output, "it left out", remedy});
  };
  if (command.onnx) {
    if (command.weights) refuse_beside("--weights", "--onnx", "the file holds its weights");
    if (command.name) refuse_beside("--name", "--onnx", "it is for what a header's functions are called");
    return *command.onnx;
  }
  if (command.weights && command.derivative == "jacobian") {
    refuse_beside("--weights", "--derivative jacobian",
                  "columns of weights are in the header itself; jvp and vjp have none");
  }
  if (command.precision == "f32") {
    refuse_beside("--precision f32", "a header",
                  "its functions are for float and for double, or by f64 for double alone");
  }
  return command.c_header ? *command.c_header : *command.cuda_header;
}

// "in x[3], t[1], out y[2]", printable
std::string ports_text(const nn::Model& model) {
  const auto listed = [](const std::vector<nn::Port>& ports) {
    std::string text;
    for (const nn::Port& port : ports) {
      text += (text.empty() ? "" : ", ") + port.name + "[" + std::to_string(port.features.size()) + "]";
    }
    return text;
  };
  return printable("in " + listed(model.inputs) + ", out " + listed(model.outputs), LineBreaks::escape);
}

nn::Model model_of(const ExportCommand& command) {
  return load_with_derivative(command.model, command.activations, command.derivative);
}

void write_onnx(const ExportCommand& command, const std::filesystem::path& path, Existing existing) {
  in_model_file(command.model, [&] {
    const nn::Model model = model_of(command);
    nn::OnnxOptions options;
    const Precision asked = chosen_precision(command.precision, command.model);
    const bool is_chosen = command.precision || asked == Precision::f64;
    options.precision = is_chosen ? asked : nn::onnx_precision(model);
    nn::write_onnx(path, model, existing, options);
    std::printf("%s: ONNX in %s, %s\n", path.string().c_str(),
                options.precision == Precision::f32 ? "float32" : "float64", ports_text(model).c_str());
  });
}

// What float does not hold may well be told to double.
nn::ExportedHeader exported(const nn::Model& model, nn::HeaderOptions options) {
  try {
    return nn::export_header(model, options);
  } catch (const Error& error) {
    if (options.numbers == nn::HeaderNumbers::double_alone) throw;
    options.numbers = nn::HeaderNumbers::double_alone;
    try {
      nn::export_header(model, options);
    } catch (const Error&) {
      throw error;
    }
    throw Error(error.kind(), {error.field(), error.found(), error.expected(),
                               "take --precision f64, for functions of double alone, which hold it"});
  }
}

void write_header(const ExportCommand& command, const std::filesystem::path& path, Existing existing) {
  const nn::HeaderOptions options{
      .language = command.c_header ? nn::HeaderLanguage::c : nn::HeaderLanguage::cuda,
      .weights_in = command.weights ? nn::WeightsIn::argument : nn::WeightsIn::header,
      .numbers = command.precision ? nn::HeaderNumbers::double_alone : nn::HeaderNumbers::float_and_double,
      .name = command.name.value_or(name_from(path)),
  };
  std::string ports;
  const nn::ExportedHeader header = in_model_file(command.model, [&] {
    const nn::Model model = model_of(command);
    ports = ports_text(model);
    return exported(model, options);
  });
  if (command.weights) {
    write_file(*command.weights, header.weights, existing);
    std::printf("%s: %s numbers, %s\n", command.weights->string().c_str(), count_text(header.weight_count).c_str(),
                header.single_weights ? "float" : "double");
  }
  write_file(path, std::as_bytes(std::span(header.text)), existing);
  const char* const n = options.name.c_str();
  if (command.c_header && command.precision) {
    std::printf("%s: %s_evaluate_f64, %s_evaluate_batch_f64, %s_check\n", path.string().c_str(), n, n, n);
  } else if (command.c_header) {
    std::printf("%s: %s_evaluate_f32, %s_evaluate_batch_f32, the same with _f64, %s_check\n", path.string().c_str(), n,
                n, n);
  } else {
    std::printf("%s: %s_evaluate by one thread, %s_evaluate_group by many, %s_check%s\n", path.string().c_str(), n, n,
                n, command.precision ? ", of double alone" : "");
  }
  std::printf("%s\n", ports.c_str());
}

int export_model(const ExportCommand& command) {
  const std::filesystem::path path = output_of(command);
  refuse_to_replace(path, {command.model});
  if (command.weights) refuse_to_replace(*command.weights, {command.model});
  const Existing existing = existing_output(path, command.overwrite);
  if (command.weights) existing_output(*command.weights, command.overwrite);
  if (command.onnx) {
    write_onnx(command, path, existing);
  } else {
    write_header(command, path, existing);
  }
  return kSuccess;
}

}  // namespace

void add_export(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<ExportCommand>();
  CLI::App* command =
      app.add_subcommand("export", "turn a net into a header for C, C++ or CUDA that needs nothing else, or into ONNX");
  command->add_option("MODEL", options->model, "a model file")->required();
  command->add_option("--c-header", options->c_header, "file to write: functions in C99, for C++ too")
      ->check(file_name());
  command
      ->add_option("--cuda-header", options->cuda_header,
                   "file to write: __host__ __device__ functions of a thread, a warp or a block")
      ->check(file_name());
  command->add_option("--onnx", options->onnx, "file to write: ONNX, for other tools and frameworks")
      ->check(file_name());
  add_derivative(*command, options->derivative);
  command
      ->add_option("--precision", options->precision,
                   "of an ONNX file's numbers: f32 or f64; f64 of a header: functions of double alone")
      ->check(one_of({"f32", "f64"}));
  command->add_option("--weights", options->weights, "write the weights to this file, not into the header")
      ->check(file_name());
  command->add_option("--name", options->name, "what all names begin with; default: the header's file name");
  command->add_option(
      "--activations", options->activations,
      "one for each layer (tanh,identity), or one for the hidden layers (tanh), where the file does not say");
  command->add_flag("--overwrite", options->overwrite, "replace existing files");
  command->footer(std::string(kExportExamples) + "\n");
  command->callback([&chosen, options] { chosen.run = [options] { return export_model(*options); }; });
}

}  // namespace lockstep::cli
