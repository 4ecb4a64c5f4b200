// ONNX operators that compute element by element with constants or between branches, and sums over features.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/nn/detail/composed.h"
#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_reader.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

std::vector<double> negated(std::vector<double> numbers) {
  for (double& number : numbers) number = -number;
  return numbers;
}

constexpr const char* kDivisorsSign = "write x - y * Floor(x / y) for a remainder of the divisor's sign";

// What the functions of composed.h build on.
struct StepFunctions {
  StepBuilder& builder;
  std::string where;

  std::size_t number(double value) { return builder.constant({value}, where); }
  std::size_t unary(UnaryKind kind, std::size_t x) { return builder.operation(Unary{kind}, {x}, where); }
  std::size_t binary(BinaryKind kind, std::size_t a, std::size_t b) {
    return builder.operation(Binary{kind}, {a, b}, where);
  }
  std::size_t select(std::size_t condition, std::size_t a, std::size_t b) {
    return builder.operation(Select{}, {condition, a, b}, where);
  }
  std::size_t activate(const Activation& activation, std::size_t x) { return builder.activation(x, activation, where); }
};

std::optional<BinaryKind> kind_of(const std::string& op) {
  static const std::map<std::string_view, BinaryKind> kinds{
      {"Add", BinaryKind::add},    {"Sub", BinaryKind::subtract}, {"Mul", BinaryKind::multiply},
      {"Div", BinaryKind::divide}, {"Min", BinaryKind::minimum},  {"Max", BinaryKind::maximum},
      {"Pow", BinaryKind::power},  {"Sum", BinaryKind::add},      {"Mean", BinaryKind::add}};
  const auto found = kinds.find(op);
  if (found == kinds.end()) return {};
  return found->second;
}

}  // namespace

std::optional<GraphReader::Value> GraphReader::arithmetic(const Node& node) {
  const std::string& op = node.op_type();
  if (kind_of(op)) return op == "Pow" && !constant(node, 0) ? power(node) : fold_operands(node);
  if (const OnnxTensor* tensor = constant(node, 0)) {
    if (op == "Clip") return clipped(node, *tensor);
    if (auto folded = apply_to_constant(node, *tensor, place(node))) return std::move(*folded);
  }
  if (op == "Clip") return clip(node);
  if (op == "Where") return choose(node);
  if (op == "Greater" || op == "GreaterOrEqual" || op == "Less" || op == "LessOrEqual" || op == "Equal" ||
      op == "Not" || op == "And" || op == "Or" || op == "Xor") {
    return compare(node);
  }
  if (op == "IsNaN" || op == "IsInf") return no_number(node);
  if (op.starts_with("Reduce")) return reduce(node);
  if (auto made = of_several_functions(node)) return *made;
  if (op == "Mod") return modulo(node);
  static const std::map<std::string_view, UnaryKind> functions{
      {"Sqrt", UnaryKind::square_root}, {"Exp", UnaryKind::exp},    {"Log", UnaryKind::log},
      {"Abs", UnaryKind::absolute},     {"Neg", UnaryKind::negate}, {"Reciprocal", UnaryKind::reciprocal},
      {"Atan", UnaryKind::arctangent},  {"Cos", UnaryKind::cosine}, {"Floor", UnaryKind::floor},
      {"Round", UnaryKind::round}};
  const auto function = functions.find(op);
  if (function == functions.end()) return {};
  const Data x = data(node, 0);
  if (function->second == UnaryKind::negate) {
    return Data{builder_.with_constant(x.step, StepKind::multiply, {-1}, place(node)), x.rank};
  }
  return Data{builder_.operation(Unary{function->second}, {x.step}, place(node)), x.rank};
}

// Two operands, or as many as Min, Max, Sum and Mean have.
GraphReader::Value GraphReader::fold_operands(const Node& node) {
  const std::string& op = node.op_type();
  const BinaryKind kind = *kind_of(op);
  const bool any = op == "Min" || op == "Max" || op == "Sum" || op == "Mean";
  if (!any && node.input_size() != 2) refuse(place(node), std::to_string(node.input_size()) + " operands", "2");
  Value value = required(node, 0);
  for (int i = 1; i < node.input_size(); ++i) value = fold(node, value, required(node, i), kind);
  if (op != "Mean") return value;
  const OnnxTensor count{{}, {static_cast<double>(node.input_size())}, WeightType::f16, false};
  return fold(node, value, count, BinaryKind::divide);
}

GraphReader::Value GraphReader::fold(const Node& node, const Value& a, const Value& b, BinaryKind kind) {
  const auto *constant_a = std::get_if<OnnxTensor>(&a), *constant_b = std::get_if<OnnxTensor>(&b);
  if (constant_a && constant_b) return combine_constants(kind, *constant_a, *constant_b, place(node));
  if (constant_a || constant_b) {
    const Data x = std::get<Data>(constant_a ? b : a);
    const std::vector<double> c = per_feature(node, constant_a ? *constant_a : *constant_b, x.rank);
    const auto with = [&](std::size_t from, StepKind step, std::vector<double> numbers) {
      return builder_.with_constant(from, step, std::move(numbers), place(node));
    };
    switch (kind) {
      case BinaryKind::add:
        return Data{with(x.step, StepKind::add, c), x.rank};
      case BinaryKind::multiply:
        return Data{with(x.step, StepKind::multiply, c), x.rank};
      case BinaryKind::subtract:
        if (constant_b) return Data{with(x.step, StepKind::add, negated(c)), x.rank};
        return Data{with(with(x.step, StepKind::multiply, {-1}), StepKind::add, c), x.rank};
      case BinaryKind::divide:
        if (constant_b) {
          if (std::count(c.begin(), c.end(), 0.0) > 0) refuse(place(node), "a division by 0", "numbers other than 0");
          return Data{with(x.step, StepKind::divide, c), x.rank};
        }
        if (c == std::vector<double>{1}) {
          return Data{builder_.operation(Unary{UnaryKind::reciprocal}, {x.step}, place(node)), x.rank};
        }
        break;
      case BinaryKind::maximum:
        if (c == std::vector<double>{0}) {
          return Data{builder_.activation(x.step, {ActivationKind::relu}, place(node)), x.rank};
        }
        break;
      default:
        break;
    }
    const std::size_t numbers = builder_.constant(c, place(node));
    const std::size_t first = constant_a ? numbers : x.step, second = constant_a ? x.step : numbers;
    return Data{builder_.operation(Binary{kind}, {first, second}, place(node)), x.rank};
  }
  const Data x = std::get<Data>(a), y = std::get<Data>(b);
  if (x.rank != y.rank) {
    unsupported(node, "[batch] and [batch, features]", "operands of one rank", "give both two dimensions (Unsqueeze)");
  }
  if (kind == BinaryKind::multiply) return Data{builder_.product(x.step, y.step, place(node)), x.rank};
  if (kind == BinaryKind::add) return Data{builder_.sum(x.step, y.step, place(node)), x.rank};
  return Data{builder_.operation(Binary{kind}, {x.step, y.step}, place(node)), x.rank};
}

GraphReader::Data GraphReader::power(const Node& node) {
  const Data x = data(node, 0);
  const OnnxTensor* exponent = constant(node, 1);
  if (exponent && exponent->is_scalar()) {
    const double n = per_feature(node, *exponent, x.rank)[0];
    if (n == 1) return x;
    if (n == 2) return {builder_.activation(x.step, {ActivationKind::square}, place(node)), x.rank};
    if (n == 3) return {builder_.piece(x.step, StepKind::cube, place(node)), x.rank};
    if (n == -1) return {builder_.operation(Unary{UnaryKind::reciprocal}, {x.step}, place(node)), x.rank};
  }
  return std::get<Data>(fold(node, x, required(node, 1), BinaryKind::power));
}

// From opset 11 the bounds are operands. As attributes, float32's largest numbers are the defaults: no bounds.
std::pair<double, double> GraphReader::bounds(const Node& node) const {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto bound = [&](const char* name, int i, double otherwise) {
    if (operand(node, i) != nullptr) return single_number(node, constant_operand(node, i));
    const auto* given = attribute(node, name);
    if (given == nullptr) return otherwise;
    const bool none = std::fabs(given->f()) >= std::numeric_limits<float>::max();
    return none ? std::copysign(kInfinity, given->f()) : number(node, name, otherwise);
  };
  return {bound("min", 1, -kInfinity), bound("max", 2, kInfinity)};
}

GraphReader::Data GraphReader::clip(const Node& node) {
  const Data x = data(node, 0);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto [low, high] = bounds(node);
  if (low == 0 && high == kInfinity) return {builder_.activation(x.step, {ActivationKind::relu}, place(node)), x.rank};
  if (low == -kInfinity && high == kInfinity) return x;
  if (low == kInfinity || high == -kInfinity) refuse(place(node), "bounds that no finite number lies in", "others");
  return {builder_.operation(Clip{low, high}, {x.step}, place(node)), x.rank};
}

OnnxTensor GraphReader::clipped(const Node& node, OnnxTensor tensor) const {
  const auto [low, high] = bounds(node);
  if (tensor.holds_batch) unsupported(node, "the size of the batch as a number", "fixed numbers");
  for (double& value : tensor.values) value = std::min(std::max(value, low), high);
  return tensor;
}

// Nullopt for other operators.
std::optional<GraphReader::Data> GraphReader::of_several_functions(const Node& node) {
  using Composition = std::size_t (*)(StepFunctions&, const std::size_t&);
  static const std::map<std::string_view, Composition> compositions{
      {"Sinh", &sinh_of},   {"Cosh", &cosh_of},   {"Tan", &tan_of},     {"Asin", &asin_of}, {"Acos", &acos_of},
      {"Asinh", &asinh_of}, {"Acosh", &acosh_of}, {"Atanh", &atanh_of}, {"Ceil", &ceil_of}, {"Sign", &sign_of}};
  const auto found = compositions.find(node.op_type());
  if (found == compositions.end()) return {};
  StepFunctions functions{builder_, place(node)};
  const Data x = data(node, 0);
  return Data{found->second(functions, x.step), x.rank};
}

// With fmod = 1, which floats take, of the sign of the dividend; otherwise, which integers may take, of the divisor's.
GraphReader::Value GraphReader::modulo(const Node& node) {
  const bool of_dividend = integer(node, "fmod", 0) == 1;
  if (constant(node, 0) && constant(node, 1)) {
    const OnnxTensor &a = constant_operand(node, 0), &b = constant_operand(node, 1);
    if (!of_dividend) {
      if (!a.whole)
        unsupported(node, "numbers other than integers with fmod = 0", "integers, or fmod = 1", kDivisorsSign);
      return combine_constants(BinaryKind::modulo, a, b, place(node));
    }
    OnnxTensor size = a, sign = a, divisor = b;
    for (double& value : size.values) value = std::fabs(value);
    for (double& value : sign.values) value = std::copysign(1, value);
    for (double& value : divisor.values) value = std::fabs(value);
    const OnnxTensor rest = combine_constants(BinaryKind::modulo, size, divisor, place(node));
    return combine_constants(BinaryKind::multiply, rest, sign, place(node));
  }
  if (!of_dividend) unsupported(node, "fmod = 0 of floats", "fmod = 1", kDivisorsSign);
  const auto [a, b] = operands_of_one_rank(node, "a remainder");
  StepFunctions functions{builder_, place(node)};
  const auto size = [&](std::size_t x) { return functions.unary(UnaryKind::absolute, x); };
  const std::size_t rest = functions.binary(BinaryKind::modulo, size(a.step), size(b.step));
  const std::size_t negative = functions.binary(BinaryKind::less, a.step, functions.number(0));
  return Data{functions.select(negative, functions.unary(UnaryKind::negate, rest), rest), a.rank};
}

GraphReader::Data GraphReader::reduce(const Node& node) {
  const std::string& op = node.op_type();
  const auto kind = reductions().find(op);
  if (kind == reductions().end())
    unsupported(node, "this reduction", "sum, mean, minimum, maximum, L1, L2 or sum of squares");
  const Data x = data(node, 0);
  const auto axes = whole_numbers(node, "axes", 1);
  if (!axes || axes->size() != 1) unsupported(node, "a reduction over several axes", "over features, axis 1 or -1");
  require_feature_axis(node, (*axes)[0], x.rank);
  std::size_t step = x.step;
  if (op == "ReduceSumSquare" || op == "ReduceL2") {
    step = builder_.activation(step, {ActivationKind::square}, place(node));
  } else if (op == "ReduceL1") {
    step = builder_.operation(Unary{UnaryKind::absolute}, {step}, place(node));
  }
  step = builder_.operation(Reduce{kind->second}, {step}, place(node));
  if (op == "ReduceL2") step = builder_.operation(Unary{UnaryKind::square_root}, {step}, place(node));
  return {step, integer(node, "keepdims", 1) != 0 ? 2 : 1};
}

GraphReader::Data GraphReader::choose(const Node& node) {
  // [batch], or [batch, features]: numbers beside them have no rank of their own
  std::optional<int> rank;
  for (int i = 0; i < 3; ++i) {
    const auto* const x = std::get_if<Data>(&required(node, i));
    if (x && rank && *rank != x->rank) unsupported(node, "[batch] and [batch, features]", "operands of one rank");
    if (x) rank = x->rank;
  }
  const OnnxTensor* mask = constant(node, 0);
  const std::vector<double> chosen = mask ? per_feature(node, *mask, *rank) : std::vector<double>{};
  const auto part = [&](int i) {
    const OnnxTensor* tensor = constant(node, i);
    if (!tensor) return data(node, i).step;
    std::vector<double> numbers = per_feature(node, *tensor, *rank);
    if (!tensor->first_nan()) return builder_.constant(std::move(numbers), place(node));
    // NaN is no number, but may stand where the other is taken.
    const auto takes_it = [&](std::size_t at) {
      if (chosen.size() == 1) at = 0;
      return at >= chosen.size() || (chosen[at] != 0) == (i == 1);
    };
    const auto refuse_it = [&] {
      const auto from = not_numbers_.find(node.input(i));
      refuse(from == not_numbers_.end() ? place(node) : from->second, "nan", "a number, where the net takes it",
             "train or export the net again");
    };
    for (std::size_t at = 0; at < numbers.size(); ++at) {
      if (!std::isnan(numbers[at])) continue;
      const std::size_t meets = numbers.size() == 1 ? std::max<std::size_t>(chosen.size(), 1) : 1;
      for (std::size_t k = 0; k < meets; ++k) {
        if (takes_it(at + k)) refuse_it();
      }
      numbers[at] = 0;
    }
    return builder_.constant(std::move(numbers), place(node));
  };
  const std::size_t a = part(1), b = part(2);
  if (!mask) return {builder_.operation(Select{}, {data(node, 0).step, a, b}, place(node)), *rank};
  Choose choose;
  for (const double one : chosen) choose.mask.push_back(one != 0);
  const std::size_t wide = std::max({width(node, {a}), width(node, {b}), choose.mask.size()});
  const bool one = std::ranges::all_of(choose.mask, [&](bool first) { return first == choose.mask[0]; });
  const std::size_t only = choose.mask[0] ? a : b;
  if (one && width(node, {only}) == wide && !constant(node, choose.mask[0] ? 1 : 2)) return {only, *rank};
  if (choose.mask.size() == 1) choose.mask.assign(wide, choose.mask[0]);
  return {builder_.operation(std::move(choose), {a, b}, place(node)), *rank};
}

// IsNaN: x != x. IsInf: its absolute value is infinite, or it itself, where one sign is asked for.
GraphReader::Data GraphReader::no_number(const Node& node) {
  const std::string here = place(node);
  const Data x = data(node, 0);
  const auto equal = [&](std::size_t a, std::size_t b) {
    return builder_.operation(Binary{BinaryKind::equal}, {a, b}, here);
  };
  if (node.op_type() == "IsNaN") return {equal(equal(x.step, x.step), builder_.constant({0}, here)), x.rank};
  const bool negative = integer(node, "detect_negative", 1) != 0, positive = integer(node, "detect_positive", 1) != 0;
  if (!negative && !positive) unsupported(node, "IsInf of neither sign", "detect_negative or detect_positive");
  const double infinity = std::numeric_limits<double>::infinity();
  const std::size_t of = negative && positive ? builder_.operation(Unary{UnaryKind::absolute}, {x.step}, here) : x.step;
  return {equal(of, builder_.constant({positive ? infinity : -infinity}, here)), x.rank};
}

// Two values of one rank, at least one of which depends on the input; `what` is made of them.
std::pair<GraphReader::Data, GraphReader::Data> GraphReader::operands_of_one_rank(const Node& node,
                                                                                  const std::string& what) {
  const auto rank_of = [&](int i) {  // of what numbers stand beside
    const auto* const x = operand(node, i) ? std::get_if<Data>(operand(node, i)) : nullptr;
    return x ? x->rank : 2;
  };
  Data a = data_or_numbers(node, 0, rank_of(1)), b = data_or_numbers(node, 1, rank_of(0));
  const bool constant_a = constant(node, 0) != nullptr, constant_b = constant(node, 1) != nullptr;
  if (constant_a && constant_b) unsupported(node, what + " of constants", "values that depend on the input");
  if (a.rank != b.rank && !constant_a && !constant_b) unsupported(node, "[batch]", "operands of one rank");
  if (constant_a) a.rank = b.rank;
  if (constant_b) b.rank = a.rank;
  return {a, b};
}

// Truth values are 1 and 0.
GraphReader::Data GraphReader::compare(const Node& node) {
  const std::string& op = node.op_type();
  if (op == "Not") {
    const Data a = data_or_numbers(node, 0, 2);
    return {builder_.operation(Binary{BinaryKind::equal}, {a.step, builder_.constant({0}, place(node))}, place(node)),
            a.rank};
  }
  const auto [a, b] = operands_of_one_rank(node, "a comparison");
  const bool swapped = op == "Greater" || op == "GreaterOrEqual";
  const BinaryKind kind = op == "And"                       ? BinaryKind::multiply
                          : op == "Or"                      ? BinaryKind::maximum
                          : op == "Equal"                   ? BinaryKind::equal
                          : op == "Less" || op == "Greater" ? BinaryKind::less
                                                            : BinaryKind::less_or_equal;
  const std::size_t first = swapped ? b.step : a.step, second = swapped ? a.step : b.step;
  if (op == "Xor") {  // they are not the same
    const std::size_t same = builder_.operation(Binary{BinaryKind::equal}, {first, second}, place(node));
    return {builder_.operation(Binary{BinaryKind::equal}, {same, builder_.constant({0}, place(node))}, place(node)),
            a.rank};
  }
  return {builder_.operation(Binary{kind}, {first, second}, place(node)), a.rank};
}

}  // namespace lockstep::nn::detail
