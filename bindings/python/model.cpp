#include "bindings/python/model.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <filesystem>
#include <string>
#include <vector>

#include "bindings/python/array_view.h"
#include "bindings/python/derivatives.h"
#include "bindings/python/device.h"
#include "bindings/python/errors.h"
#include "bindings/python/other_numbers.h"
#include "bindings/python/ports.h"
#include "bindings/python/users_words.h"
#include "lockstep/cli/model_text.h"
#include "lockstep/core/thread_count.h"
#include "lockstep/nn/detail/activation_list.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/load.h"
#include "lockstep/nn/onnx.h"
#include "lockstep/nn/safetensors.h"
#include "lockstep/nn/table_model.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

// Below so many multiplications the lock is kept: giving it back and taking it again costs more than others gain.
constexpr std::size_t kLongCall = 200'000;

std::string activation_text(const nn::Model& model) {
  std::vector<std::string> names;
  for (const nn::Node& node : model.nodes) {
    if (const auto* activate = std::get_if<nn::Activate>(&node.operation)) {
      const std::string name = to_string(activate->activation);
      if (names.empty() || names.back() != name) names.push_back(name);
    }
  }
  std::string text;
  for (const std::string& name : names) text += (text.empty() ? " " : ", ") + name;
  return text;
}

// "3-100-3 tanh" of a plain stack, else how many operations it has.
std::string shape_text(const nn::Model& model) {
  if (nn::is_table(model)) return graph::describe(model.nodes[0].operation);
  std::string text = model.inputs.empty() ? "" : std::to_string(model.inputs.front().features.size());
  bool stack = model.inputs.size() == 1 && model.outputs.size() == 1;
  for (const nn::Node& node : model.nodes) {
    stack = stack && node.inputs.size() == 1;
    if (const auto* dense = std::get_if<nn::Dense>(&node.operation)) text += "-" + std::to_string(dense->outputs);
  }
  if (!stack) return std::to_string(model.nodes.size()) + " operations";
  return text + activation_text(model);
}

std::string port_text(const char* direction, const nn::Port& port) {
  constexpr std::size_t kShown = 8;
  std::string text =
      "\n  " + std::string(direction) + " " + port.name + "[" + std::to_string(port.features.size()) + "]";
  bool named = false;
  for (const nn::Feature& feature : port.features) named = named || !feature.name.empty() || !feature.unit.empty();
  if (!named) return text;
  text += ":";
  for (std::size_t i = 0; i < port.features.size(); ++i) {
    if (i == kShown) return text + ", ...";
    const nn::Feature& feature = port.features[i];
    text += (i == 0 ? " " : ", ") + (feature.name.empty() ? "?" : feature.name) +
            (feature.unit.empty() ? "" : " [" + feature.unit + "]");
  }
  return text;
}

// "9 parameters, float64"; "weights" of what may have parameters beside them, as equations and tables.
std::string parameters_text(const nn::Model& model) {
  const std::size_t count = model.parameter_count();
  if (count == 0) return "no weights";
  const bool of_equations = model.metadata.contains("equations");
  return std::to_string(count) + (of_equations ? " weights, " : " parameters, ") + to_string(model.weight_type);
}

std::string repr(const Net& net) {
  const nn::Model& model = net.model();
  std::string text = "<lockstep.Model" + (model.name.empty() ? "" : " " + model.name) + ": " + shape_text(model) +
                     ", " + parameters_text(model);
  for (const nn::Port& port : model.inputs) text += port_text("in ", port);
  for (const nn::Port& port : model.outputs) text += port_text("out", port);
  return text + ">";
}

nb::list ports(const std::vector<nn::Port>& all) {
  nb::list result;
  for (const nn::Port& port : all) {
    nb::list features;
    for (const nn::Feature& feature : port.features) {
      nb::dict one;
      one["name"] = feature.name;
      one["unit"] = feature.unit;
      one["minimum"] = feature.minimum;
      one["maximum"] = feature.maximum;
      features.append(one);
    }
    nb::dict one;
    one["name"] = port.name;
    one["features"] = features;
    result.append(one);
  }
  return result;
}

nb::list calls(const Net& net) {
  nb::list result;
  for (const nn::GuardedCall& call : net.model().calls) {
    nb::dict one;
    one["net"] = call.net;
    one["name"] = call.name;
    one["inputs"] = ports(call.inputs);
    result.append(one);
  }
  return result;
}

Net load(const std::filesystem::path& path, const std::string& activations) {
  nn::ReadOptions options;
  options.activations = activations;
  nn::Model model;
  try {
    const nb::gil_scoped_release others_may_run;
    model = nn::load(path, options);
  } catch (const Error& error) {
    constexpr std::string_view kOptions = "options.";
    if (!error.field().starts_with(kOptions)) throw;
    throw Error(error.kind(), {error.field().substr(kOptions.size()), error.found(), error.expected(), error.remedy()});
  }
  std::vector<std::string> left_out = model.provenance.left_out;
  for (std::string& output : left_out) output = path.filename().string() + " is read without " + output;
  warn_of(left_out, 3);  // below this are load() of lockstep/_model.py and what answers other programs' words
  return Net(std::move(model));
}

void save(const Net& net, const std::filesystem::path& path, bool overwrite,
          const std::optional<std::string>& precision) {
  const Existing existing = overwrite ? Existing::replace : Existing::refuse;
  const std::string ending = path.extension().string();
  if (precision && *precision != "f32" && *precision != "f64") {
    throw Error(ErrorKind::invalid_argument, {"precision", "\"" + *precision + "\"", "\"f32\" or \"f64\"", {}});
  }
  if (precision && ending != ".onnx") {
    throw Error(ErrorKind::invalid_argument,
                {"precision", "\"" + *precision + "\" for \"" + path.filename().string() + "\"", "it left out",
                 "it is for .onnx; other files keep every digit"});
  }
  if (ending == ".onnx") {
    nn::OnnxOptions options;
    if (precision) options.precision = *precision == "f32" ? Precision::f32 : Precision::f64;
    return nn::write_onnx(path, net.model(), existing, options);
  }
  if (ending == ".safetensors") return nn::write_safetensors(path, net.model(), existing);
  if (ending == ".h5" || ending == ".hdf5") return nn::write_hdf5_model(path, net.model(), existing);
  throw Error(ErrorKind::invalid_argument,
              {"path", "\"" + path.filename().string() + "\"", "a name that ends in .h5, .safetensors or .onnx", {}});
}

Net derivative(Net& net, const std::string& kind) {
  const std::optional<nn::Derivative> known = nn::parse_derivative(kind);
  if (!known) {
    throw Error(ErrorKind::invalid_argument, {"kind", '"' + kind + '"', "\"jvp\", \"vjp\" or \"jacobian\"", {}});
  }
  return net.derivative(*known);  // a copy, which shares the model
}

// Arrays are float64, C-contiguous: _mlp() in lockstep/_model.py sees to it.
using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

Net mlp(const std::vector<Numbers>& weights, const std::vector<std::optional<Numbers>>& biases,
        const std::vector<std::string>& activations, const std::string& name, const std::string& weight_type) {
  Mlp net;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const Activation activation = nn::detail::known_activation(activations[i], "activations[" + std::to_string(i) + "]",
                                                               ErrorKind::invalid_argument);
    DenseLayer layer{.inputs = weights[i].shape(1), .outputs = weights[i].shape(0), .activation = activation};
    layer.weights.assign(weights[i].data(), weights[i].data() + weights[i].size());
    layer.has_bias = biases[i].has_value();
    if (layer.has_bias) layer.bias.assign(biases[i]->data(), biases[i]->data() + biases[i]->size());
    if (!layer.has_bias) layer.bias.resize(layer.outputs);
    net.layers.push_back(std::move(layer));
  }
  net.validate();
  nn::Model model = nn::Model::from_mlp(net);
  model.name = name;
  model.weight_type = weight_type == "f32" ? nn::WeightType::f32 : nn::WeightType::f64;
  return Net(std::move(model));
}

// What a method does with arguments that its own signature does not take: says what is wrong with them, or takes them.
auto answering(const char* what, std::vector<const char*> known) {
  return [what, known = std::move(known)](nb::handle net, const nb::args& positional, const nb::kwargs& given) {
    nb::list names;
    for (const char* name : known) names.append(name);
    const nb::object answer = nb::module_::import_("lockstep._unknown").attr("answer_call");
    return answer(net, what, nb::tuple(names), positional, given);
  };
}
const nb::sig kAnsweringCall("def __call__(self, *args: typing.Any, **others: typing.Any) -> typing.Any");
const nb::sig kAnsweringJvp("def jvp(self, *args: typing.Any, **others: typing.Any) -> typing.Any");
const nb::sig kAnsweringJacobian("def jacobian(self, *args: typing.Any, **others: typing.Any) -> typing.Any");
const nb::sig kAnsweringVjp("def vjp(self, *args: typing.Any, **others: typing.Any) -> typing.Any");

template <class T, class Pointers>
std::vector<MatrixView<T>> views_of(const Pointers& arrays) {
  std::vector<MatrixView<T>> views;
  for (const auto& array : arrays) views.push_back(array->template view<T>());
  return views;
}

}  // namespace

template <class T>
const nn::NetPlan<T>& Net::plan() {
  auto& plan = [this]() -> std::optional<nn::NetPlan<T>>& {
    if constexpr (sizeof(T) == 4) {
      return plan_f32_;
    } else {
      return plan_f64_;
    }
  }();
  if (!plan) plan.emplace(nn::NetPlan<T>::compile(*model_));
  return *plan;
}

template <class T>
const nn::NetDerivatives<T>& Net::derivatives() {
  auto& derivatives = [this]() -> std::optional<nn::NetDerivatives<T>>& {
    if constexpr (sizeof(T) == 4) {
      return derivatives_f32_;
    } else {
      return derivatives_f64_;
    }
  }();
  if (!derivatives) derivatives.emplace(nn::NetDerivatives<T>::compile(*model_));
  return *derivatives;
}
template const nn::NetDerivatives<float>& Net::derivatives<float>();
template const nn::NetDerivatives<double>& Net::derivatives<double>();

Net& Net::derivative(nn::Derivative kind) {
  const auto found = derivative_nets_.find(kind);
  if (found != derivative_nets_.end()) return found->second;
  return derivative_nets_.emplace(kind, Net(nn::derivative_model(*model_, kind))).first->second;
}

template <class T>
nn::DeviceNetPlan<T> Net::device_plan(int device) {
  if (!device_plans_) device_plans_ = DevicePlans::make();
  return device_plans_->get<T>(*model_, device);
}
template nn::DeviceNetPlan<float> Net::device_plan<float>(int);
template nn::DeviceNetPlan<double> Net::device_plan<double>(int);

template <class T>
nb::object Net::evaluate(const ArrayView& in, nb::handle x, nb::handle out, int threads) {
  const std::size_t inputs = model_->inputs[0].features.size(), outputs = model_->outputs[0].features.size();
  if (in.columns() != inputs) refuse_shape("x", x, std::to_string(inputs) + " features in the last dimension");
  if (in.cuda()) return evaluate_ports<T>(std::array{&in}, out, threads).front();
  const nn::NetPlan<T> plan = this->plan<T>();  // a share of it: others may use the net while the lock is away
  nb::object result = out.is_none() ? new_array(in.precision(), in.leading(), outputs) : nb::borrow(out);
  const ArrayView to(result, Access::write, "out");
  if (!out.is_none()) require_room(to, out, in, outputs, "out");
  if (in.rows() * model_->parameter_count() < kLongCall) {
    plan.evaluate(in.view<const T>(), to.view<T>(), threads);
  } else {
    const nb::gil_scoped_release others_may_run;
    plan.evaluate(in.view<const T>(), to.view<T>(), threads);
  }
  return result;
}

template <class T>
std::vector<nb::object> Net::evaluate_ports(std::span<const ArrayView* const> in, nb::handle out, int threads) {
  const std::vector<MatrixView<const T>> from = views_of<const T>(in);
  if (const std::optional<CudaPlace>& cuda = in.front()->cuda()) {
    const nn::DeviceNetPlan<T> plan = device_plan<T>(cuda->device);
    PortResults results = take_results(in, model_->outputs, out);
    enqueue<T>(plan, *cuda, from, views_of<T>(results.views));
    return std::move(results.objects);
  }
  const nn::NetPlan<T> plan = this->plan<T>();
  PortResults results = take_results(in, model_->outputs, out);
  const std::vector<MatrixView<T>> to = views_of<T>(results.views);
  {
    const nb::gil_scoped_release others_may_run;
    plan.evaluate(std::span<const MatrixView<const T>>(from), std::span<const MatrixView<T>>(to), threads);
  }
  return std::move(results.objects);
}

// Equations without their parameters, where each has a default: with these, as many as there are samples of `u`.
nb::object Net::with_defaults(nb::handle x) const {
  constexpr const char* kParameters = "p";  // their port
  if (!PyDict_Check(x.ptr()) || model_->inputs.size() < 2 || model_->inputs[1].name != kParameters)
    return nb::borrow(x);
  const nb::str state(model_->inputs[0].name.c_str());
  if (PyDict_Contains(x.ptr(), nb::str(kParameters).ptr()) != 0 || PyDict_Contains(x.ptr(), state.ptr()) != 1) {
    return nb::borrow(x);
  }
  std::vector<double> values;
  for (const std::optional<double>& value : nn::parameter_defaults(*model_)) {
    if (!value) return nb::borrow(x);
    values.push_back(*value);
  }
  if (values.empty()) return nb::borrow(x);
  const nb::object completed = nb::steal(PyDict_Copy(x.ptr()));
  completed[kParameters] = nb::module_::import_("lockstep._arrays").attr("rows_like")(values, nb::object(x[state]));
  return completed;
}

nb::object Net::call_ports(nb::handle given, nb::handle out, int threads) {
  const nb::object x = with_defaults(given);
  const PortArrays in = read_ports(x, model_->inputs, "x", "input port", nullptr, Memory::host_or_cuda);
  if (!out.is_none() && model_->outputs.size() != 1) require_names(out, model_->outputs, "out");
  std::vector<const ArrayView*> views;
  for (const auto& view : in.views) views.push_back(view.get());
  const std::vector<nb::object> results = views.front()->precision() == Precision::f32
                                              ? evaluate_ports<float>(views, out, threads)
                                              : evaluate_ports<double>(views, out, threads);
  if (!out.is_none()) return nb::borrow(out);
  return like_example(results, model_->outputs, in.example);
}

nb::object Net::call(nb::handle x, nb::handle out, int threads) {
  threads = chosen_threads(threads);
  if (model_->inputs.size() != 1 || model_->outputs.size() != 1 || PyDict_Check(x.ptr())) {
    return call_ports(x, out, threads);
  }
  const ArrayView in(x, Access::read, "x", Memory::host_or_cuda);
  nb::object result =
      in.precision() == Precision::f32 ? evaluate<float>(in, x, out, threads) : evaluate<double>(in, x, out, threads);
  if (!out.is_none() || is_numpy(x)) return result;
  return nb::module_::import_("lockstep._arrays").attr("like")(result, x);
}

void bind_model(nb::module_& module) {
  nb::class_<Net> model(module, "Model", nb::is_weak_referenceable(),  // as jax.jit() needs it
                        "A trained net: call it on arrays. Made by load(), train() and mlp().");
  model
      .def("__call__", &Net::call, nb::arg("x").none(), nb::arg("out") = nb::none(), nb::arg("threads") = 1,
           nb::sig("def __call__(self, x: typing.Any, out: typing.Any = None, threads: int = 1) -> typing.Any"),
           R"(The net of each sample, in the precision of `x`.

Parameters
----------
x : array, float32 or float64, or a dict of them by input port where the net has several
    [input]: one sample, or [..., input], whose other dimensions count samples: one of any stride, or up to seven with
    one stride from each sample to the next. NumPy arrays, and what speaks DLPack from the CPU's memory or from an
    NVIDIA GPU (PyTorch, JAX, CuPy), are read where they lie.
out : array, optional
    Where the result goes: of the same dtype, in the same place, [output] or [..., output] with the other dimensions of
    `x`; a dict by output port where there are several. It may be `x` itself, and may not overlap it otherwise.
threads : int
    Of the CPU; 0 for all that this process may use. The bits do not depend on it.

Returns
-------
array
    `out`, or a new array of the framework that `x` is of, where `x` lies; a dict by output port where there are
    several.

On a GPU
--------
The library of the first input port's array decides. PyTorch and CuPy: the evaluation is queued on the stream that the
library works on just now (``torch.cuda.current_stream()``, ``cupy.cuda.get_current_stream()``) on the arrays' device.
The call returns at once, and what is queued on that stream afterwards finds the results. Any other library, JAX among
them: it is queued on the legacy default stream, and the results are there when the call returns. Either way each array
is asked for with that stream, so that what its owner queued before comes first. Where the library is not known the
result is a `DeviceArray`, which any library takes by DLPack. Without `out` each call allocates the results' memory, and
the device is waited for when it is freed: in loops give `out`. The first call for a device and dtype compiles the net
for it. Raises Unsupported where there is no CUDA component, driver or such device.)")
      .def("__call__", answering("a net", {"x", "out", "threads"}), kAnsweringCall)
      .def("jvp", &jvp, nb::arg("x"), nb::arg("v"), kJvpSignature, kJvpText)
      .def("jvp", answering("jvp()", {"x", "v"}), kAnsweringJvp)
      .def("vjp", &vjp, nb::arg("x"), nb::arg("w"), kVjpSignature, kVjpText)
      .def("vjp", answering("vjp()", {"x", "w"}), kAnsweringVjp)
      .def("jacobian", &jacobian, nb::arg("x"), kJacobianSignature, kJacobianText)
      .def("jacobian", answering("jacobian()", {"x"}), kAnsweringJacobian)
      .def("derivative", &derivative, nb::arg("kind"),
           R"(The derivative as a model again, for a GPU's arrays, an exported header, an ONNX file.

J is the Jacobian of all outputs by all inputs. Of a net x -> y, with ports of these names:

- ``"jvp"``: takes x and x_dot, and gives y and ``y_dot`` = J x_dot,
- ``"vjp"``: takes x and y_bar, and gives y and ``x_bar`` = J^T y_bar,
- ``"jacobian"``: takes x, and gives y and ``jacobian``, J by rows, [output * input].

Its numbers have the bits of ``jvp()`` and ``vjp()`` on every engine. Raises Unsupported of a derivative.

>>> import lockstep, numpy as np
>>> net = lockstep.mlp([[[2.0, 3.0]]], activations=["square"])
>>> net.derivative("jvp")({"x": np.array([1.0, 1.0]), "x_dot": np.array([1.0, 0.0])})["y_dot"]
array([20.]))")
      .def("__repr__", &repr)
      .def("save", &save, nb::arg("path"), nb::arg("overwrite") = false, nb::arg("precision") = nb::none(),
           R"(Writes the net to a file whose name ends in .h5, .safetensors or .onnx. Raises FileError where one exists.

Parameters
----------
path : path
    ``.h5`` holds all that a net knows; ``.safetensors`` plain stacks of layers; ``.onnx`` any net, for ONNX Runtime
    and other tools: its inputs and outputs are [batch, features], called as the ports.
overwrite : bool
    Replace a file that exists.
precision : "f32" or "f64", optional
    Of an ONNX file's numbers, inputs and outputs: float32 where that holds every weight, if not given.)")
      .def_prop_ro("name", [](const Net& net) { return net.model().name; })
      .def_prop_ro(
          "inputs", [](const Net& net) { return ports(net.model().inputs); },
          "Input ports: dicts of `name` and `features`, each a dict of name, unit, minimum and maximum (the "
          "range of the training data). with_ranges() and with_names() make a model of others.")
      .def_prop_ro(
          "outputs", [](const Net& net) { return ports(net.model().outputs); }, "Output ports, as `inputs`.")
      .def_prop_ro(
          "left_out", [](const Net& net) { return net.model().provenance.left_out; },
          "Outputs of the file that could not be read, and why: a classifier's labels beside its probabilities.")
      .def_prop_ro(
          "calls", &calls,
          "Of equations, the calls of nets with training ranges: dicts of `net` and `name` (\"drag#2\" is the second "
          "call of drag) and `inputs`, the net's input ports, as `Model.inputs`, with features named after the "
          "arguments. Solves act on these ranges as `guard` says.")
      .def_prop_ro(
          "layers",
          [](const Net& net) {
            std::vector<std::string> lines;
            for (const auto& [name, text] : cli::node_lines(net.model())) lines.push_back(name + ": " + text);
            return lines;
          },
          "What it computes, one line for each operation.")
      .def_prop_ro(
          "parameter_count", [](const Net& net) { return net.model().parameter_count(); },
          "How many ``weights`` there are, with the scales and shifts of layer normalisations.")
      .def_prop_ro(
          "digest", [](const Net& net) { return net.model().digest(); },
          "32 hexadecimal digits over all that decides the outputs.")
      .def_prop_ro(
          "metadata", [](const Net& net) { return net.model().metadata; }, "What else the file said: text by name.")
      .def_prop_ro(
          "source", [](const Net& net) { return net.model().provenance.source; }, "The file it was read from.");
  bind_other_numbers(model);
  module.def("load", &load, nb::arg("path"), nb::arg("activations"));  // lockstep/_model.py says what it is
  module.def("mlp", &mlp);
}

}  // namespace lockstep::python
