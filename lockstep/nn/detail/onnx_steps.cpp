#include "lockstep/nn/detail/onnx_steps.h"

#include <algorithm>
#include <cmath>

#include "lockstep/core/error.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

// Those that an operation holds beside a layer's weights.
std::size_t numbers_in(const Operation& operation) {
  if (const auto* columns = std::get_if<graph::Columns>(&operation)) return columns->indices.size();
  if (const auto* choose = std::get_if<graph::Choose>(&operation)) return choose->mask.size();
  if (const auto* normalise = std::get_if<graph::LayerNormalise>(&operation)) return 2 * normalise->scale.size();
  return 0;
}

bool is_scalar(const Step& step) { return step.constant.size() == 1 && step.kind != StepKind::constant; }

}  // namespace

bool is_float32_of(double found, double expected) {
  return std::fabs(found - expected) <= std::ldexp(1.0, std::ilogb(expected) - 23);
}

std::size_t StepBuilder::width_of(const Step& step) const {
  switch (step.kind) {
    case StepKind::input:
      return step.width;
    case StepKind::constant:
      return step.constant.size();
    case StepKind::dense:
      return step.dense.outputs;
    case StepKind::operation:
      break;
    default: {  // element by element: one width, or one of them 1
      std::size_t width = step.constant.empty() ? 1 : step.constant.size();
      bool open = false;
      for (const std::size_t from : step.from) {
        const std::size_t other = at(from).width;
        open = open || other == 0;
        if (other > 1 && width > 1 && other != width) {
          refuse(step.where, std::to_string(other) + " and " + std::to_string(width) + " features",
                 "one width, or a single number");
        }
        width = std::max(width, other);
      }
      return open && width <= 1 ? 0 : width;
    }
  }
  std::vector<std::size_t> widths;
  for (const std::size_t from : step.from) {
    if (at(from).width == 0) {
      throw Error(ErrorKind::unsupported,
                  {step.where, "an input whose number of features the file leaves open",
                   "[batch, features] with a number for the features", "export with an example input of that shape"});
    }
    widths.push_back(at(from).width);
  }
  return graph::output_width(step.operation, widths, step.where);
}

void StepBuilder::count(std::size_t numbers, const std::string& where) {
  constexpr std::size_t kMost = std::size_t{1} << 27;
  numbers_ += numbers;
  if (numbers_ > kMost) refuse(where, std::to_string(numbers_) + " numbers in all nodes together", "at most 2^27");
}

void StepBuilder::work(std::size_t numbers, const std::string& where) {
  constexpr std::size_t kMost = std::size_t{1} << 28;  // some seconds
  work_ += numbers;
  if (work_ <= kMost) return;
  throw Error(ErrorKind::unsupported,
              {where, std::to_string(work_) + " numbers selected or multiplied on reading, in all nodes together",
               "at most 2^28", "simplify the file first, with onnxsim or onnxruntime's offline optimisation"});
}

std::size_t StepBuilder::append(Step step) {
  count(step.constant.size() + step.dense.weights.size() + numbers_in(step.operation), step.where);
  step.width = width_of(step);
  if (step.constant.size() == 1) count(step.width, step.where);  // one number is given to every feature later
  if (step.kind == StepKind::dense) {
    const std::size_t read = at(step.from[0]).width;
    if (read != 0 && read != step.dense.inputs && at(step.from[0]).kind != StepKind::input) {
      refuse(step.where, std::to_string(step.dense.inputs) + " inputs",
             std::to_string(read) + ", the width of what it reads");
    }
  }
  graph_.steps.push_back(std::move(step));
  return graph_.steps.size() - 1;
}

std::size_t StepBuilder::activation(std::size_t x, Activation activation, const std::string& where) {
  if (activation.kind == ActivationKind::identity) return x;
  return append({.kind = StepKind::activation, .where = where, .from = {x}, .activation = activation});
}

std::size_t StepBuilder::piece(std::size_t x, StepKind kind, const std::string& where) {
  return append({.kind = kind, .where = where, .from = {x}});
}

std::size_t StepBuilder::constant(std::vector<double> values, const std::string& where) {
  return append({.kind = StepKind::constant, .where = where, .constant = std::move(values)});
}

std::size_t StepBuilder::truth(std::size_t x, const std::string& where) {
  const auto* const binary = at(x).kind == StepKind::operation ? std::get_if<Binary>(&at(x).operation) : nullptr;
  if (binary && (binary->kind == BinaryKind::less || binary->kind == BinaryKind::less_or_equal ||
                 binary->kind == BinaryKind::equal)) {
    return x;
  }
  const std::size_t zero = constant({0}, where);
  const std::size_t none = operation(Binary{BinaryKind::equal}, {x, zero}, where);
  return operation(Binary{BinaryKind::equal}, {none, zero}, where);
}

std::size_t StepBuilder::operation(Operation operation, std::vector<std::size_t> from, const std::string& where) {
  return append(
      {.kind = StepKind::operation, .where = where, .from = std::move(from), .operation = std::move(operation)});
}

std::size_t StepBuilder::with_constant(std::size_t x, StepKind kind, std::vector<double> constant,
                                       const std::string& where) {
  const Step& before = at(x);
  if (kind == StepKind::multiply && constant.size() == 1 && before.kind == StepKind::multiply && is_scalar(before)) {
    const double factor = before.constant[0] * constant[0];
    return factor == 1 ? before.from[0] : with_constant(before.from[0], kind, {factor}, where);
  }
  return append({.kind = kind, .where = where, .from = {x}, .constant = std::move(constant)});
}

bool StepBuilder::is_activation(std::size_t step, ActivationKind kind) const {
  return at(step).kind == StepKind::activation && at(step).activation.kind == kind;
}

std::pair<std::size_t, double> StepBuilder::without_factors(std::size_t step) const {
  double factor = 1;
  for (; is_scalar(at(step)); step = at(step).from[0]) {
    if (at(step).kind == StepKind::multiply) {
      factor *= at(step).constant[0];
    } else if (at(step).kind == StepKind::divide) {
      factor /= at(step).constant[0];
    } else {
      break;
    }
  }
  return {step, factor};
}

std::optional<std::size_t> StepBuilder::one_plus(std::size_t step, StepKind kind) const {
  if (at(step).kind != StepKind::add || !is_scalar(at(step)) || at(step).constant[0] != 1) return {};
  const std::size_t inner = at(step).from[0];
  const bool matches =
      kind == StepKind::activation ? is_activation(inner, ActivationKind::tanh) : at(inner).kind == kind;
  if (!matches) return {};
  return at(inner).from[0];
}

// 0.5 x (1 + erf(x / sqrt 2)), and 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), the half wherever it stands.
std::optional<std::size_t> StepBuilder::gelu(std::size_t a, std::size_t b, const std::string& where) {
  const auto [x, x_factor] = without_factors(a);
  const auto [bracket, bracket_factor] = without_factors(b);
  std::optional<Activation> found;
  if (const auto argument = one_plus(bracket, StepKind::erf)) {
    const auto [inner, factor] = without_factors(*argument);
    if (inner == x && is_float32_of(factor, 0.7071067811865476)) found = Activation{ActivationKind::gelu};
  } else if (const auto argument = one_plus(bracket, StepKind::activation)) {
    const auto [inner, factor] = without_factors(*argument);
    if (at(inner).kind == StepKind::gelu_inner && at(inner).from[0] == x && is_float32_of(factor, 0.7978845608028654)) {
      found = Activation{ActivationKind::gelu_tanh};
    }
  }
  if (!found) return {};
  const double twice = 2 * x_factor * bracket_factor;  // 1 where the half was already met
  const std::size_t step = activation(x, *found, where);
  return twice == 1 ? step : with_constant(step, StepKind::multiply, {twice}, where);
}

std::size_t StepBuilder::product(std::size_t a, std::size_t b, const std::string& where) {
  if (a == b) return activation(a, {ActivationKind::square}, where);
  for (const auto& [x, other] : {std::pair(a, b), std::pair(b, a)}) {
    // x^3 as x * x^2
    if (is_activation(other, ActivationKind::square) && at(other).from[0] == x) return piece(x, StepKind::cube, where);
    if (is_activation(other, ActivationKind::sigmoid) && at(other).from[0] == x) {
      return activation(x, {ActivationKind::silu}, where);
    }
    if (is_activation(other, ActivationKind::hard_sigmoid) && at(other).from[0] == x) {
      return activation(x, {ActivationKind::hard_swish}, where);
    }
    if (is_activation(other, ActivationKind::tanh)) {
      const std::size_t inner = at(other).from[0];
      if (is_activation(inner, ActivationKind::softplus) && at(inner).from[0] == x) {
        return activation(x, {ActivationKind::mish}, where);
      }
    }
    if (const auto found = gelu(x, other, where)) return *found;
  }
  return append({.kind = StepKind::product, .where = where, .from = {a, b}});
}

std::size_t StepBuilder::sum(std::size_t a, std::size_t b, const std::string& where) {
  for (const auto& [x, other] : {std::pair(a, b), std::pair(b, a)}) {
    const auto [cube, factor] = without_factors(other);
    if (at(cube).kind == StepKind::cube && at(cube).from[0] == x && is_float32_of(factor, 0.044715)) {
      return piece(x, StepKind::gelu_inner, where);
    }
  }
  return append({.kind = StepKind::sum, .where = where, .from = {a, b}});
}

}  // namespace lockstep::nn::detail
