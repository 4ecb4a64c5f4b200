// Steps as the nodes of a model.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/nn/detail/onnx_graph.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

bool has_infinity(const Step& step) {
  return std::ranges::any_of(step.constant, [](double value) { return std::isinf(value); });
}

class ModelBuilder {
 public:
  explicit ModelBuilder(const StepGraph& graph) : graph_(graph), readers_(graph.steps.size(), 0), reader_(readers_) {}

  Model build() {
    for (const StepPort& port : graph_.inputs) {
      const std::size_t width = graph_.steps[port.step].width;
      if (width == 0) {
        throw Error(ErrorKind::unsupported,
                    {graph_.steps[port.step].where, "a number of features that the file leaves open",
                     "[batch, features] with a number for the features", "export with an example input of that shape"});
      }
      model_.inputs.push_back({port.name, "", std::vector<Feature>(width)});
      names_[port.step] = port.name;
      taken_.insert(port.name);
    }
    count_readers();
    for (std::size_t i = 0; i < graph_.steps.size(); ++i) {
      if (readers_[i] > 0) append(i);
    }
    for (const StepPort& port : graph_.outputs) {
      const std::size_t width = graph_.steps[port.step].width;
      model_.outputs.push_back({port.name, names_[port.step], std::vector<Feature>(width)});
    }
    return std::move(model_);
  }

 private:
  const Step& at(std::size_t step) const { return graph_.steps[step]; }

  void count_readers() {
    for (const StepPort& port : graph_.outputs) ++readers_[port.step];
    for (std::size_t i = graph_.steps.size(); i-- > 0;) {
      if (readers_[i] == 0) continue;
      for (const std::size_t from : at(i).from) {
        ++readers_[from];
        reader_[from] = i;
      }
    }
  }

  // The node's own name out of `FILE: node "NAME" (OPERATOR, opset N)`, made different from all others.
  std::string name_of(const Step& step) {
    std::string name = step.where;
    const std::size_t open = name.find("node \""), close = name.rfind("\" (");
    if (open != std::string::npos && close != std::string::npos && close > open + 6) {
      name = name.substr(open + 6, close - open - 6);
    }
    if (name.empty()) name = "node";
    std::string unique = name;
    for (std::size_t& next = suffixes_[name]; !taken_.insert(unique).second;) {
      next = std::max<std::size_t>(next, 1) + 1;
      unique = name + "." + std::to_string(next);
    }
    return unique;
  }

  const std::string& add(const Step& step, Operation operation, std::vector<std::string> inputs) {
    model_.nodes.push_back({name_of(step), std::move(operation), std::move(inputs)});
    return model_.nodes.back().name;
  }

  // One layer at each place of [batch, place, feature] is a product for each, joined, and then a bias that repeats: a
  // constant here, which training leaves alone, so that what moves is the layer's own bias.
  bool has_bias_behind(std::size_t i) const {
    const std::size_t joined = reader_[i];
    if (readers_[i] != 1 || joined == 0 || readers_[joined] != 1 || reader_[joined] == 0) return false;
    const Step& bias = at(reader_[joined]);
    if (!std::holds_alternative<Concatenate>(at(joined).operation) || at(joined).kind != StepKind::operation)
      return false;
    if (bias.kind != StepKind::add || bias.constant.size() % at(i).width != 0) return false;
    for (std::size_t k = at(i).width; k < bias.constant.size(); ++k) {
      if (bias.constant[k] != bias.constant[k - at(i).width]) return false;
    }
    return true;
  }

  static Dense with_flag(Dense dense, bool has_bias) {
    dense.has_bias = has_bias;
    return dense;
  }

  // The only reader's predecessor, where `step` may swallow it.
  bool alone(std::size_t step, StepKind kind) const { return at(step).kind == kind && readers_[step] == 1; }

  static std::vector<double> filled(std::vector<double> values, std::size_t width) {
    if (values.size() == 1) values.assign(width, values[0]);
    return values;
  }

  void append(std::size_t i) {
    const Step& step = at(i);
    if (names_.contains(i)) return;  // an input port
    std::vector<std::string> from;
    if (swallowed(i)) return;
    for (const std::size_t one : step.from) from.push_back(names_[one]);
    switch (step.kind) {
      case StepKind::input:
        return;
      case StepKind::constant:
        names_[i] = add(step, Constant{step.constant}, {});
        return;
      case StepKind::dense:
        names_[i] = add(step, with_flag(step.dense, step.has_bias || has_bias_behind(i)), from);
        return;
      case StepKind::activation:
        names_[i] = add(step, Activate{step.activation}, from);
        return;
      case StepKind::erf:
        names_[i] = add(step, Unary{UnaryKind::erf}, from);
        return;
      case StepKind::cube:
        names_[i] = cube(step, from[0]);
        return;
      case StepKind::gelu_inner: {
        const std::string third = with_number(step, BinaryKind::multiply, cube(step, from[0]), {0.044715});
        names_[i] = add(step, Binary{BinaryKind::add}, {from[0], third});
        return;
      }
      case StepKind::product:
        names_[i] = add(step, Binary{BinaryKind::multiply}, from);
        return;
      case StepKind::sum:
        names_[i] = add(step, Binary{BinaryKind::add}, from);
        return;
      case StepKind::operation:
        names_[i] = add(step, step.operation, from);
        return;
      default:
        arithmetic(i);
    }
  }

  std::string cube(const Step& step, const std::string& x) {
    const std::string square = add(step, Activate{{ActivationKind::square}}, {x});
    return add(step, Binary{BinaryKind::multiply}, {x, square});
  }

  std::string with_number(const Step& step, BinaryKind kind, const std::string& x, std::vector<double> numbers) {
    const std::string constant = add(step, Constant{std::move(numbers)}, {});
    return add(step, Binary{kind}, {x, constant});
  }

  // Is the step a part of its only reader's node? A missing bias; the product before a term; the term before a divisor.
  bool swallowed(std::size_t i) const { return readers_[i] == 1 && reader_[i] != 0 && united(reader_[i]); }

  // Does the step become one node with what it reads?
  bool united(std::size_t i) const {
    const Step& step = at(i);
    if (step.from.size() != 1) return false;
    const std::size_t before = step.from[0];
    if (has_infinity(step) || has_infinity(at(before))) return false;  // scalings and layers have none
    const bool same_width = step.width == at(before).width;
    if (step.kind == StepKind::add && same_width) {
      if (alone(before, StepKind::dense)) return !at(before).has_bias;
      return alone(before, StepKind::multiply) && !swallowing_negation(before);
    }
    if (step.kind != StepKind::divide || !alone(before, StepKind::add) || !same_width) return false;
    return !united(before) && at(at(before).from[0]).width == step.width;
  }

  // c - x is written x * -1 + c: a product of two numbers stays one, this is a difference.
  bool swallowing_negation(std::size_t i) const { return at(i).constant == std::vector<double>{-1}; }

  void arithmetic(std::size_t i) {
    const Step& step = at(i);
    const std::size_t before = step.from[0];
    const Step& previous = at(before);
    if (united(i) && step.kind == StepKind::divide) {
      std::vector<double> shift = filled(previous.constant, step.width);
      for (double& value : shift) value = -value;
      names_[i] = add(step, Standardise{shift, filled(step.constant, step.width)}, {names_[previous.from[0]]});
    } else if (united(i) && previous.kind == StepKind::dense) {
      Dense dense = with_flag(previous.dense, true);
      dense.bias = filled(step.constant, step.width);
      names_[i] = add(previous, std::move(dense), {names_[previous.from[0]]});
    } else if (united(i) && at(previous.from[0]).width == step.width) {
      names_[i] = add(step, Rescale{filled(previous.constant, step.width), filled(step.constant, step.width)},
                      {names_[previous.from[0]]});
    } else if (united(i)) {  // one feature times many numbers
      const std::string product =
          with_number(previous, BinaryKind::multiply, names_[previous.from[0]], previous.constant);
      names_[i] = with_number(step, BinaryKind::add, product, step.constant);
    } else if (step.kind == StepKind::multiply && swallowing_negation(i)) {
      names_[i] = add(step, Unary{UnaryKind::negate}, {names_[before]});
    } else {
      const BinaryKind kind = step.kind == StepKind::add        ? BinaryKind::add
                              : step.kind == StepKind::multiply ? BinaryKind::multiply
                                                                : BinaryKind::divide;
      names_[i] = with_number(step, kind, names_[before], step.constant);
    }
  }

  const StepGraph& graph_;
  Model model_;
  std::vector<std::size_t> readers_;          // how many, output ports included
  std::vector<std::size_t> reader_;           // a step that reads it, 0 where only ports do
  std::map<std::size_t, std::string> names_;  // of the values that steps have become
  std::set<std::string> taken_;
  std::map<std::string, std::size_t> suffixes_;  // the last given to a name
};

}  // namespace

bool may_stand_in_stack(const Step& step) {
  if (has_infinity(step)) return false;
  return step.kind == StepKind::dense || step.kind == StepKind::add || step.kind == StepKind::multiply ||
         step.kind == StepKind::divide || step.kind == StepKind::activation;
}

Model model_of(const StepGraph& graph) { return ModelBuilder(graph).build(); }

}  // namespace lockstep::nn::detail
