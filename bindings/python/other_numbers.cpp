#include "bindings/python/other_numbers.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/ports.h"
#include "bindings/python/solution.h"
#include "lockstep/core/all_finite.h"
#include "lockstep/core/text.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/nn/fit.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

nb::object weights_of(const Net& net) {
  std::vector<double> weights = graph::gather_weights(nn::to_graph(net.model()));
  const std::size_t count = weights.size();
  return to_numpy(std::move(weights), {count});
}

Net with_weights(const Net& net, nb::handle given) {
  const nb::object numbers = nb::module_::import_("lockstep._arrays").attr("real_numbers")("weights", given);
  const auto weights = nb::cast<nb::ndarray<const double, nb::c_contig, nb::device::cpu>>(numbers);
  nn::Model model = net.model();
  const std::size_t expected = model.weight_count();
  if (weights.ndim() != 1 || weights.size() != expected) {
    refuse_shape("weights", numbers, std::to_string(expected) + " numbers in one dimension");
  }
  const bool finite = all_finite({weights.data(), expected});
  for (std::size_t i = 0; !finite && i < expected; ++i) {
    if (std::isfinite(weights.data()[i])) continue;
    throw Error(ErrorKind::invalid_argument, {"weights[" + std::to_string(i) + "]", number_text(weights.data()[i]),
                                              "finite numbers", "an optimiser that diverged needs smaller steps"});
  }
  nn::set_parameters<double>(model, {weights.data(), weights.size()});
  model.weight_type = nn::WeightType::f64;
  // What a training said of how good it is was said of other weights.
  std::erase_if(model.metadata, [](const auto& entry) { return entry.first.starts_with("training_"); });
  return Net(std::move(model));
}

// `change` gets the features of all ports, counted through.
template <class Change>
void each_feature(std::vector<nn::Port>& ports, const Change& change) {
  std::size_t i = 0;
  for (nn::Port& port : ports) {
    for (nn::Feature& feature : port.features) change(feature, i++);
  }
}

// lockstep/_features.py makes numbers for each input feature of what is given.
Net with_ranges(const nb::object& self, nb::handle minimum, nb::handle maximum, nb::handle data) {
  const nb::object given = nb::module_::import_("lockstep._features").attr("ranges")(self, minimum, maximum, data);
  const auto both = nb::cast<std::pair<std::vector<double>, std::vector<double>>>(given);
  nn::Model model = nb::cast<const Net&>(self).model();
  each_feature(model.inputs, [&](nn::Feature& feature, std::size_t i) {
    feature.minimum = both.first.at(i);
    feature.maximum = both.second.at(i);
  });
  model.validate();
  return Net(std::move(model));
}

Net with_names(const nb::object& self, nb::handle inputs, nb::handle outputs) {
  const nb::object features = nb::module_::import_("lockstep._features");
  nn::Model model = nb::cast<const Net&>(self).model();
  const auto name = [&](const char* which, std::vector<nn::Port>& ports, nb::handle given) {
    if (given.is_none()) return;
    const auto names = nb::cast<std::vector<std::string>>(features.attr("names")(which, self.attr(which), given));
    each_feature(ports, [&](nn::Feature& feature, std::size_t i) { feature.name = names.at(i); });
  };
  name("inputs", model.inputs, inputs);
  name("outputs", model.outputs, outputs);
  return Net(std::move(model));
}

}  // namespace

void bind_other_numbers(nb::class_<Net>& model) {
  model
      .def_prop_ro(
          "weights", &weights_of,
          "A copy of its trainable numbers, float64 [weight]: dense layers in the order of computing, each its "
          "weights [output, input] row by row, then its bias. The order of "
          "``torch.nn.utils.parameters_to_vector`` for a stack of Linear layers.")
      .def("with_weights", &with_weights, nb::arg("weights"),
           nb::sig("def with_weights(self, weights: typing.Any) -> Model"),
           R"(The same net with other numbers, in the order of ``weights``: a step of an optimiser of your own. Raises InvalidArgument
where one is not finite.

>>> import lockstep
>>> net = lockstep.mlp([[[2.0, 3.0]]])
>>> net.weights
array([2., 3., 0.])
>>> net.with_weights(net.weights + 1).weights
array([3., 4., 1.]))")
      .def("with_ranges", &with_ranges, nb::arg("minimum") = nb::none(), nb::arg("maximum") = nb::none(), nb::kw_only(),
           nb::arg("data") = nb::none(),
           nb::sig("def with_ranges(self, minimum: typing.Any = None, maximum: typing.Any = None, *, "
                   "data: typing.Any = None) -> Model"),
           R"(The same net with the range of its training data, on which ``solve(guard=...)`` acts.

For a net that another tool trained: ``lockstep.train`` stores it. The arithmetic does not change, and ``save`` keeps
the ranges.

Parameters
----------
minimum, maximum : arrays
    [input] each, over the features of all input ports in their order, or a number for all; infinite where there is no
    bound.
minimum : dict
    Instead of both, ``{name: (minimum, maximum)}``: by input port, numbers or arrays of its features, or by feature.
    What is not named keeps its range. Two numbers under a name that a port and a feature share are the feature's.
data : array, or a dict of them by input port
    Instead of both, what the net was trained on, [..., input]: the range of each feature is from its least number to
    its largest, NaNs passed over. Of a DataFrame the columns called as the features, where these have names.

Raises
------
InvalidArgument, WrongType, ModelError

>>> import lockstep, numpy as np
>>> net = lockstep.mlp([[[2.0, 3.0]]]).with_names(inputs=["a", "b"])
>>> net = net.with_ranges(data=np.array([[0.0, -1.0], [2.0, 5.0], [1.0, 1.0]]))
>>> [(feature["minimum"], feature["maximum"]) for feature in net.inputs[0]["features"]]
[(0.0, 2.0), (-1.0, 5.0)]
>>> net.with_ranges({"b": (0, 1)}).inputs[0]["features"][1]["maximum"]
1.0)")
      .def("with_names", &with_names, nb::arg("inputs") = nb::none(), nb::arg("outputs") = nb::none(),
           nb::sig("def with_names(self, inputs: typing.Any = None, outputs: typing.Any = None) -> Model"),
           R"(The same net with other names of its features: a list over those of all ports in their order, or a dict of
lists by port. They are what a solve calls components and parameters. Raises InvalidArgument.)");
}

}  // namespace lockstep::python
