// Operations of keras.ops between values and numbers: arithmetic, comparisons, truths.
#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "lockstep/nn/detail/keras_operation_reader.h"

namespace lockstep::nn::detail {
namespace {

// Of Greater and GreaterEqual the second operand comes first.
constexpr std::array<std::pair<std::string_view, BinaryKind>, 16> kBetweenTwo = {
    {{"Add", BinaryKind::add},
     {"Subtract", BinaryKind::subtract},
     {"Multiply", BinaryKind::multiply},
     {"Divide", BinaryKind::divide},
     {"TrueDivide", BinaryKind::divide},
     {"FloorDivide", BinaryKind::divide},
     {"Power", BinaryKind::power},
     {"Mod", BinaryKind::modulo},
     {"Maximum", BinaryKind::maximum},
     {"Minimum", BinaryKind::minimum},
     {"Less", BinaryKind::less},
     {"LessEqual", BinaryKind::less_or_equal},
     {"Greater", BinaryKind::less},
     {"GreaterEqual", BinaryKind::less_or_equal},
     {"Equal", BinaryKind::equal},
     {"NotEqual", BinaryKind::equal}}};

}  // namespace

std::optional<std::string> KerasOperationReader::arithmetic() {
  for (const auto& [name, kind] : kBetweenTwo) {
    if (kind_ == name) return binary(kind);
  }
  if (kind_ == "Where") return where();
  if (kind_ == "Arctan2") return composed(*composed_operation(kind_), {as_value(operand(0)), as_value(operand(1))});
  if (kind_ == "LogicalAnd" || kind_ == "LogicalOr") return logical();
  return {};
}

std::string KerasOperationReader::binary(BinaryKind kind) {
  Operand a = operand(0), b = operand(1);
  if (kind_.starts_with("Greater")) std::swap(a, b);
  if (auto scaled = with_numbers(kind, a, b)) return *scaled;
  const bool more = kind_ == "FloorDivide" || kind_ == "NotEqual";
  const std::string first = as_value(std::move(a)), second = as_value(std::move(b));
  const std::string result = make(more ? part() : name_, Binary{kind}, {first, second});
  if (kind_ == "FloorDivide") return make(name_, Unary{UnaryKind::floor}, {result});
  return more ? not_of(name_, result) : result;
}

// A factor or a term, which may go into a layer beside it; a square.
std::optional<std::string> KerasOperationReader::with_numbers(BinaryKind kind, const Operand& a, const Operand& b) {
  if (kind_ == "FloorDivide" || a.numbers.empty() == b.numbers.empty()) return {};
  const bool number_first = !a.numbers.empty();
  const std::string& x = number_first ? b.value : a.value;
  std::vector<double> numbers = number_first ? a.numbers : b.numbers;
  const std::size_t width = graph_.width_of(x, 0, layer_);
  if (kind == BinaryKind::power && !number_first && numbers.size() == 1) {
    if (numbers[0] == 2) return make(name_, Activate{{ActivationKind::square}}, {x});
  }
  if (numbers.size() == 1) numbers.assign(width, numbers[0]);
  if (numbers.size() != width) return {};
  const std::vector<double> ones(width, 1.0), zeros(width, 0.0);
  const bool nonzero = std::ranges::none_of(numbers, [](double value) { return value == 0; });
  if (kind == BinaryKind::multiply && nonzero) return make(name_, Rescale{numbers, zeros}, {x});
  if (kind == BinaryKind::divide && !number_first && nonzero) return make(name_, Standardise{zeros, numbers}, {x});
  if (kind == BinaryKind::add) return make(name_, Rescale{ones, numbers}, {x});
  if (kind == BinaryKind::subtract && number_first) {
    return make(name_, Rescale{std::vector<double>(width, -1.0), numbers}, {x});
  }
  if (kind == BinaryKind::subtract) {
    for (double& value : numbers) value = -value;
    return make(name_, Rescale{ones, numbers}, {x});
  }
  return {};
}

std::string KerasOperationReader::where() {
  const std::string condition = as_value(operand(0)), first = as_value(operand(1)), second = as_value(operand(2));
  return make(name_, Select{}, {condition, first, second});
}

// Of truths and of numbers, which are true unless 0.
std::string KerasOperationReader::logical() {
  std::array<std::string, 2> not_true;
  for (std::size_t i = 0; i < 2; ++i) not_true[i] = not_of(part(), as_value(operand(i)));
  const BinaryKind neither = kind_ == "LogicalAnd" ? BinaryKind::maximum : BinaryKind::minimum;
  return not_of(name_, make(part(), Binary{neither}, {not_true[0], not_true[1]}));
}

KerasOperationReader::Operand KerasOperationReader::operand(std::size_t i) {
  if (i >= call_.arguments.size()) cannot("fewer arguments than it takes", "a call as Keras writes it");
  std::size_t before = 0;
  for (std::size_t j = 0; j < i; ++j) before += is_of_class(call_.arguments[j], "__keras_tensor__") ? 1 : 0;
  const Json& json = call_.arguments[i];
  if (is_of_class(json, "__keras_tensor__")) return {reads_.at(before), {}};
  std::vector<double> numbers = numbers_of(json);
  if (rank_ == 1 && numbers.size() > 1) cannot("a value [batch] and several numbers", "one number", kKeepFeatures);
  return {{}, std::move(numbers)};
}

// 2.0, [1.0, 2.0], or an array of NumPy's or of Keras' backend; [features] or [1, features].
std::vector<double> KerasOperationReader::numbers_of(const Json& json) const {
  if (json.is_number()) return {json.get<double>()};
  const bool array = is_of_class(json, "__numpy__") || is_of_class(json, "__tensor__");
  if (array && json.contains("config") && json["config"].is_object() && json["config"].contains("value")) {
    return numbers_of(json["config"]["value"]);
  }
  if (json.is_array() && json.size() == 1 && json[0].is_array()) return numbers_of(json[0]);
  std::vector<double> numbers;
  if (json.is_array()) {
    for (const Json& one : json) {
      if (one.is_number()) numbers.push_back(one.get<double>());
    }
  }
  if (numbers.empty() || numbers.size() != json.size()) {
    cannot("the argument " + json.dump().substr(0, 60), "a value, a number, or one for each feature");
  }
  return numbers;
}

std::string KerasOperationReader::as_value(Operand operand) {
  return operand.numbers.empty() ? operand.value : number(std::move(operand.numbers));
}

}  // namespace lockstep::nn::detail
