#include "lockstep/nn/detail/keras_operations.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/nn/detail/keras_activation.h"
#include "lockstep/nn/detail/keras_compositions.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

constexpr const char* kKnownOperations =
    "slices x[:, a:b], add, subtract, multiply, divide, power, mod, maximum, minimum, comparisons, where, tanh, exp, "
    "log, sqrt, square, absolute, sin, cos, erf and the like, activations, clip, sum, mean, max and min over features, "
    "concatenate, stack, split, take, flip";
constexpr const char* kKeepFeatures = "keep the features' axis: x[:, 2:3] instead of x[:, 2], keepdims=True in sums";

constexpr std::array<std::pair<std::string_view, UnaryKind>, 9> kUnary = {{{"Exp", UnaryKind::exp},
                                                                           {"Log", UnaryKind::log},
                                                                           {"Sqrt", UnaryKind::square_root},
                                                                           {"Absolute", UnaryKind::absolute},
                                                                           {"Negative", UnaryKind::negate},
                                                                           {"Reciprocal", UnaryKind::reciprocal},
                                                                           {"Erf", UnaryKind::erf},
                                                                           {"Cos", UnaryKind::cosine},
                                                                           {"Floor", UnaryKind::floor}}};
// The second operand first where `turned`.
struct TwoOperands {
  std::string_view name;
  BinaryKind kind;
  bool turned = false;
};
constexpr std::array<TwoOperands, 16> kBinary = {{{"Add", BinaryKind::add},
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
                                                  {"Greater", BinaryKind::less, true},
                                                  {"GreaterEqual", BinaryKind::less_or_equal, true},
                                                  {"Equal", BinaryKind::equal},
                                                  {"NotEqual", BinaryKind::equal}}};
constexpr std::array<std::pair<std::string_view, ReduceKind>, 4> kReductions = {
    {{"Sum", ReduceKind::sum}, {"Mean", ReduceKind::mean}, {"Max", ReduceKind::maximum}, {"Min", ReduceKind::minimum}}};

template <class Table>
const typename Table::value_type* row_of(const Table& table, std::string_view name) {
  for (const auto& row : table) {
    if constexpr (requires { row.name; }) {
      if (row.name == name) return &row;
    } else {
      if (row.first == name) return &row;
    }
  }
  return nullptr;
}

bool is_word(const Json& json, const char* class_name) {
  return json.is_object() && json.contains("class_name") && json["class_name"] == class_name;
}

class Reader {
 public:
  Reader(KerasGraph& graph, const KerasLayer& layer, const KerasCall& call, const KerasValues& reads,
         const std::string& name)
      : graph_(graph), layer_(layer), call_(call), reads_(reads), name_(name), kind_(layer.class_name) {}

  KerasValues read() {
    if (call_.named) cannot("arguments by name", "arguments in their order");
    require_ranks();
    if (const auto* two = row_of(kBinary, kind_)) return {binary(*two)};
    if (kind_ == "Concatenate" || kind_ == "Hstack") return {concatenate()};
    if (kind_ == "Stack") return {stack()};
    if (kind_ == "Where") return {where()};
    if (kind_ == "LogicalAnd" || kind_ == "LogicalOr") return {logical()};
    if (reads_.size() > 1) cannot("the operation " + kind_ + " of several values", kKnownOperations);
    x_ = reads_.front();
    if (kind_ == "GetItem") return {get_item()};
    if (kind_ == "Take") return {take()};
    if (kind_ == "Split") return split();
    if (call_.constants) cannot("numbers among what it reads", "values of other layers");
    return {of_one_value()};
  }

 private:
  [[noreturn]] void cannot(const std::string& found, const std::string& expected,
                           const std::string& remedy = {}) const {
    graph_.cannot(layer_, found, expected, remedy);
  }
  std::string part() { return name_ + "/" + std::to_string(parts_++); }

  std::string make(const std::string& name, Operation operation, const KerasValues& reads) {
    std::vector<std::size_t> widths;
    for (const std::string& read : reads) widths.push_back(graph_.width_of(read, 0, layer_));
    const std::size_t width = graph::output_width(operation, widths, graph_.where(layer_));
    return graph_.append(name, std::move(operation), reads, width);
  }
  std::string number(std::vector<double> values) { return make(part(), Constant{std::move(values)}, {}); }
  std::string not_of(const std::string& name, const std::string& x) {
    return make(name, Binary{BinaryKind::equal}, {x, number({0})});
  }

  // Values [batch], which x[:, 2] makes, and [batch, features] broadcast to each other over the batch: never both.
  void require_ranks() {
    for (const KerasTensor& tensor : call_.reads) {
      if (tensor.rank > 2) cannot("a value of " + std::to_string(tensor.rank) + " dimensions", "[batch, features]");
      if (rank_ != 0 && tensor.rank != 0 && tensor.rank != rank_) {
        cannot("values [batch] and [batch, features] together", "values of one rank", kKeepFeatures);
      }
      if (tensor.rank != 0) rank_ = tensor.rank;
    }
  }
  void require_features() const {
    if (rank_ == 1) cannot("a value [batch]", "[batch, features]", kKeepFeatures);
  }

  // Argument i: the name of a value, or numbers that meet its features.
  struct Operand {
    std::string value;
    std::vector<double> numbers;
  };
  Operand operand(std::size_t i) {
    if (i >= call_.arguments.size()) cannot("fewer arguments than it takes", "a call as Keras writes it");
    std::size_t before = 0;
    for (std::size_t j = 0; j < i; ++j) before += is_word(call_.arguments[j], "__keras_tensor__") ? 1 : 0;
    const Json& json = call_.arguments[i];
    if (is_word(json, "__keras_tensor__")) return {reads_.at(before), {}};
    std::vector<double> numbers = numbers_of(json);
    if (rank_ == 1 && numbers.size() > 1) cannot("a value [batch] and several numbers", "one number", kKeepFeatures);
    return {{}, std::move(numbers)};
  }

  // 2.0, [1.0, 2.0], or an array of NumPy's or of Keras' backend; [features] or [1, features].
  std::vector<double> numbers_of(const Json& json) const {
    if (json.is_number()) return {json.get<double>()};
    const bool array = is_word(json, "__numpy__") || is_word(json, "__tensor__");
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
  std::string as_value(Operand operand) {
    return operand.numbers.empty() ? operand.value : number(std::move(operand.numbers));
  }

  std::string binary(const TwoOperands& two) {
    Operand a = operand(0), b = operand(1);
    if (two.turned) std::swap(a, b);
    if (auto scaled = with_numbers(two.kind, a, b)) return *scaled;
    const bool more = kind_ == "FloorDivide" || kind_ == "NotEqual";
    const std::string first = as_value(std::move(a)), second = as_value(std::move(b));
    const std::string result = make(more ? part() : name_, Binary{two.kind}, {first, second});
    if (kind_ == "FloorDivide") return make(name_, Unary{UnaryKind::floor}, {result});
    return more ? not_of(name_, result) : result;
  }

  // A factor or a term, which may go into a layer beside it; a square and a root.
  std::optional<std::string> with_numbers(BinaryKind kind, const Operand& a, const Operand& b) {
    if (kind_ == "FloorDivide" || a.numbers.empty() == b.numbers.empty()) return {};
    const bool number_first = !a.numbers.empty();
    const std::string& x = number_first ? b.value : a.value;
    std::vector<double> numbers = number_first ? a.numbers : b.numbers;
    const std::size_t width = graph_.width_of(x, 0, layer_);
    if (kind == BinaryKind::power && !number_first && numbers.size() == 1) {
      if (numbers[0] == 2) return make(name_, Activate{{ActivationKind::square}}, {x});
      if (numbers[0] == 0.5) return make(name_, Unary{UnaryKind::square_root}, {x});
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

  std::string where() {
    const std::string condition = as_value(operand(0)), first = as_value(operand(1)), second = as_value(operand(2));
    return make(name_, Select{}, {condition, first, second});
  }

  // Of truths and of numbers, which are true unless 0.
  std::string logical() {
    std::array<std::string, 2> not_true;
    for (std::size_t i = 0; i < 2; ++i) not_true[i] = not_of(part(), as_value(operand(i)));
    const BinaryKind neither = kind_ == "LogicalAnd" ? BinaryKind::maximum : BinaryKind::minimum;
    return not_of(name_, make(part(), Binary{neither}, {not_true[0], not_true[1]}));
  }

  std::string concatenate() {
    require_features();
    if (kind_ == "Concatenate") graph_.check_axis(layer_, false);
    if (call_.constants) cannot("numbers among what it joins", "values of other layers");
    return make(name_, Concatenate{}, reads_);
  }

  // Of values [batch], side by side.
  std::string stack() {
    graph_.check_axis(layer_, false);
    if (rank_ != 1 || call_.constants) cannot("a stack of [batch, features]", "values [batch], or concatenate()");
    return make(name_, Concatenate{}, reads_);
  }

  static bool is_whole(const Json& slice) {
    if (!is_word(slice, "__slice__") || !slice.contains("config") || !slice["config"].is_object()) return false;
    const auto is = [&](const char* key, int otherwise) {
      const auto found = slice["config"].find(key);
      return found == slice["config"].end() || found->is_null() || (otherwise >= 0 && *found == otherwise);
    };
    return is("start", 0) && is("stop", -1) && is("step", 1);
  }

  std::string columns(std::vector<std::size_t> indices, const std::string& name) {
    if (indices.empty()) cannot("a choice of no features", "at least one");
    bool all = indices.size() == graph_.width_of(x_, 0, layer_);
    for (std::size_t i = 0; all && i < indices.size(); ++i) all = indices[i] == i;
    return all ? x_ : make(name, Columns{std::move(indices)}, {x_});
  }

  // x[:, 2], x[:, :2], x[..., ::-1], and of x[:, 2] again x[:, None].
  std::string get_item() {
    constexpr const char* kSlices = "x[:, a:b] or x[:, i], of all samples";
    const Json key = call_.arguments.size() > 1 ? call_.arguments[1] : Json();
    std::vector<Json> axes;
    if (key.is_array()) {
      axes.assign(key.begin(), key.end());
    } else {
      axes.push_back(key);
    }
    if (!axes.empty() && is_word(axes[0], "__ellipsis__")) {  // all samples where the features are named after it
      if (axes.size() == 1) return x_;
      if (rank_ == 1 && !axes[1].is_null()) cannot("a choice of samples", kSlices);
      axes[0] = Json{{"class_name", "__slice__"}, {"config", Json::object()}};
    }
    if (axes.empty() || !is_whole(axes[0])) cannot("a choice of samples, " + key.dump().substr(0, 60), kSlices);
    if (axes.size() == 1) return x_;
    if (rank_ == 1 && axes.size() == 2 && axes[1].is_null()) return x_;
    if (rank_ == 1 || axes.size() > 2) cannot("more dimensions, " + key.dump().substr(0, 60), kSlices);
    const auto width = static_cast<std::int64_t>(graph_.width_of(x_, 0, layer_));
    if (axes[1].is_number_integer()) return columns({index_of(axes[1], width)}, name_);
    if (!is_word(axes[1], "__slice__") || !axes[1].contains("config") || !axes[1]["config"].is_object()) {
      cannot("the index " + axes[1].dump().substr(0, 60), kSlices);
    }
    return columns(sliced(axes[1]["config"], width), name_);
  }

  std::size_t index_of(const Json& json, std::int64_t width) const {
    if (!json.is_number_integer()) cannot("the index " + json.dump().substr(0, 60), "a whole number");
    const auto index = json.get<std::int64_t>();
    if (index < -width || index >= width) {
      refuse(graph_.where(layer_), "feature " + std::to_string(index), "one of " + std::to_string(width));
    }
    return static_cast<std::size_t>(index < 0 ? index + width : index);
  }

  // As Python's slice.indices().
  std::vector<std::size_t> sliced(const Json& slice, std::int64_t width) const {
    const auto bound = [&](const char* key) -> std::optional<std::int64_t> {
      const auto found = slice.find(key);
      if (found == slice.end() || found->is_null()) return {};
      if (!found->is_number_integer()) cannot("a slice by " + found->dump().substr(0, 60), "whole numbers");
      return std::clamp<std::int64_t>(found->get<std::int64_t>(), -(std::int64_t{1} << 40), std::int64_t{1} << 40);
    };
    const std::int64_t step = bound("step").value_or(1);
    if (step == 0) refuse(graph_.where(layer_), "a slice of step 0", "another step");
    const std::int64_t least = step > 0 ? 0 : -1, most = step > 0 ? width : width - 1;
    const auto within = [&](std::optional<std::int64_t> given, std::int64_t otherwise) {
      if (!given) return otherwise;
      return std::clamp(*given < 0 ? *given + width : *given, least, most);
    };
    const std::int64_t start = within(bound("start"), step > 0 ? 0 : width - 1);
    const std::int64_t stop = within(bound("stop"), step > 0 ? width : -1);
    std::vector<std::size_t> indices;
    for (std::int64_t i = start; step > 0 ? i < stop : i > stop; i += step) {
      indices.push_back(static_cast<std::size_t>(i));
    }
    return indices;
  }

  std::string take() {
    require_features();
    require_axis();
    const auto width = static_cast<std::int64_t>(graph_.width_of(x_, 0, layer_));
    Json wanted = call_.arguments.size() > 1 ? call_.arguments[1] : Json();
    if (wanted.is_object() && wanted.contains("config") && wanted["config"].is_object() &&
        wanted["config"].contains("value")) {
      wanted = Json(wanted["config"]["value"]);
    }
    if (wanted.is_number_integer()) return columns({index_of(wanted, width)}, name_);
    if (!wanted.is_array()) cannot("the indices " + wanted.dump().substr(0, 60), "a list of whole numbers");
    std::vector<std::size_t> indices;
    for (const Json& one : wanted) indices.push_back(index_of(one, width));
    return columns(std::move(indices), name_);
  }

  KerasValues split() {
    require_features();
    require_axis();
    const std::size_t width = graph_.width_of(x_, 0, layer_);
    const auto given = layer_.config.find("indices_or_sections");
    std::vector<std::size_t> ends;
    if (given != layer_.config.end() && given->is_number_unsigned()) {
      const auto sections = given->get<std::size_t>();
      if (sections == 0 || width % sections != 0) {
        refuse(graph_.where(layer_), std::to_string(sections) + " sections of " + std::to_string(width) + " features",
               "sections of one width");
      }
      for (std::size_t i = 1; i <= sections; ++i) ends.push_back(i * (width / sections));
    } else if (given != layer_.config.end() && given->is_array()) {
      for (const Json& one : *given) {
        const std::size_t end = index_of(one, static_cast<std::int64_t>(width));
        if (end <= (ends.empty() ? 0 : ends.back())) cannot("an empty section", "ascending indices");
        ends.push_back(end);
      }
      ends.push_back(width);
    } else {
      cannot("sections that are no numbers", "how many, or where each begins");
    }
    KerasValues parts;
    std::size_t first = 0;
    for (const std::size_t end : ends) {
      std::vector<std::size_t> indices;
      for (; first < end; ++first) indices.push_back(first);
      parts.push_back(columns(std::move(indices), part()));
    }
    return parts;
  }

  // check_axis() takes a missing one for the features; here it would be all elements.
  void require_axis() const {
    if (!layer_.config.contains("axis")) cannot("no axis", "axis=-1, the features");
    graph_.check_axis(layer_, false);
  }

  double setting(const char* key, double otherwise) const {
    return config_number(layer_.config, key, otherwise, graph_.where(layer_));
  }

  std::string of_one_value() {
    const auto unary = [&](UnaryKind kind, const std::string& name) { return make(name, Unary{kind}, {x_}); };
    if (const auto* row = row_of(kUnary, kind_)) return unary(row->second, name_);
    if (const auto* row = row_of(kReductions, kind_)) return reduce(row->second);
    if (kind_ == "Square") return make(name_, Activate{{ActivationKind::square}}, {x_});
    if (kind_ == "Rsqrt") {
      return make(name_, Unary{UnaryKind::reciprocal}, {unary(UnaryKind::square_root, part())});
    }
    if (kind_ == "Log2" || kind_ == "Log10") {
      const std::string logarithm = unary(UnaryKind::log, part());
      const double factor = 1 / std::log(kind_ == "Log2" ? 2.0 : 10.0);
      return make(name_, Binary{BinaryKind::multiply}, {logarithm, number({factor})});
    }
    if (kind_ == "Ceil") {
      const std::string below = make(part(), Unary{UnaryKind::floor}, {unary(UnaryKind::negate, part())});
      return make(name_, Unary{UnaryKind::negate}, {below});
    }
    if (kind_ == "Round") {
      if (setting("decimals", 0) != 0) cannot("a rounding to decimals", "decimals=0");
      return unary(UnaryKind::round, name_);
    }
    if (kind_ == "LogicalNot") return not_of(name_, x_);
    if (kind_ == "Clip") {
      return make(name_,
                  Clip{setting("x_min", -std::numeric_limits<double>::infinity()),
                       setting("x_max", std::numeric_limits<double>::infinity())},
                  {x_});
    }
    if (kind_ == "Norm") return norm();
    if (kind_ == "Flip") {
      require_features();
      require_axis();
      std::vector<std::size_t> indices(graph_.width_of(x_, 0, layer_));
      for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = indices.size() - 1 - i;
      return columns(std::move(indices), name_);
    }
    if (kind_ == "Cast") return cast();
    if (kind_ == "StopGradient" || kind_ == "Identity") return x_;
    if (kind_ == "ExpandDims" || kind_ == "Squeeze" || kind_ == "Reshape") return reshape();
    return activation();
  }

  std::string reduce(ReduceKind kind) {
    require_features();
    require_axis();
    const auto initial = layer_.config.find("initial");
    if (initial != layer_.config.end() && !initial->is_null()) cannot("an initial value", "none");
    return make(name_, Reduce{kind}, {x_});
  }

  std::string norm() {
    require_features();
    require_axis();
    if (setting("ord", 2) != 2) cannot("a norm of another order", "ord=2");
    const std::string square = make(part(), Activate{{ActivationKind::square}}, {x_});
    return make(name_, Unary{UnaryKind::square_root}, {make(part(), Reduce{ReduceKind::sum}, {square})});
  }

  std::string cast() {
    const auto type = layer_.config.find("dtype");
    const std::string name = type != layer_.config.end() && type->is_string() ? type->get<std::string>() : "";
    if (name == "bool") return not_of(name_, not_of(part(), x_));
    if (name != "float32" && name != "float64") cannot("a rounding to " + name, "float32 or float64");
    return x_;
  }

  // Between [batch] and [batch, 1], and what leaves [batch, features] as it is.
  std::string reshape() {
    const std::size_t width = graph_.width_of(x_, 0, layer_);
    if (kind_ == "Reshape") {
      const auto shape = layer_.config.find("newshape");
      const bool listed = shape != layer_.config.end() && shape->is_array() && !shape->empty() && (*shape)[0] == -1;
      if (listed && ((shape->size() == 1 && width == 1) || (shape->size() == 2 && (*shape)[1] == width))) return x_;
      cannot("a reshaping", "one that keeps [batch, features]");
    }
    require_axis();
    if (width != 1 || (kind_ == "ExpandDims" && rank_ == 2)) cannot("more dimensions", "[batch] and [batch, 1]");
    return x_;
  }

  std::string activation() {
    const auto one = [&](Operation operation) { return make(name_, std::move(operation), {x_}); };
    if (kind_ == "Softmax" || kind_ == "LogSoftmax") {
      require_features();
      require_axis();
    }
    if (kind_ == "LeakyRelu") return one(Activate{{ActivationKind::leaky_relu, setting("negative_slope", 0.2)}});
    if (kind_ == "Elu") return one(Activate{{ActivationKind::elu, setting("alpha", 1)}});
    if (kind_ == "Celu") return one(Activate{{ActivationKind::celu, setting("alpha", 1)}});
    if (kind_ == "Gelu" && config_flag(layer_.config, "approximate", true)) {
      return one(Activate{{ActivationKind::gelu_tanh}});
    }
    if (kind_ == "HardShrink" || kind_ == "SoftShrink") {
      const double edge = setting("threshold", 0.5);
      return one(DeadZone{-edge, edge, kind_ == "SoftShrink" ? edge : 0});
    }
    if (kind_ == "Squareplus" && setting("b", 4) != 4) cannot("squareplus of another b", "b=4");
    const std::string word = snake_case(kind_);
    if (auto steps = composed_activation(word)) {
      graph_.width_of(x_, 0, layer_);
      return graph_.compose(std::move(*steps), x_, name_);
    }
    if (const auto steps = keras_activation_of(word)) return graph_.activate(layer_, x_, *steps, name_);
    if (const auto steps = keras_activation_layer(kind_, layer_.config)) {  // keras.activations.relu(x, max_value=6)
      return graph_.activate(layer_, x_, *steps, name_);
    }
    cannot("the operation " + kind_, kKnownOperations);
  }

  KerasGraph& graph_;
  const KerasLayer& layer_;
  const KerasCall& call_;
  const KerasValues& reads_;
  const std::string& name_;
  const std::string& kind_;
  std::string x_;         // of one value, that
  std::size_t rank_ = 0;  // of what it reads; 0 where the file does not say
  std::size_t parts_ = 0;
};

}  // namespace

bool is_keras_operation(const KerasLayer& layer) {
  if (!layer.module.empty()) return layer.module.starts_with("keras.src.ops.") || layer.module.starts_with("keras.ops");
  // HDF5 files name no modules. Every layer says whether it is trained, and in which type it computes.
  const auto by_keras3 = [](const KerasCall& call) { return call.arguments.is_array(); };
  return !layer.model && !layer.calls.empty() && std::ranges::all_of(layer.calls, by_keras3) &&
         !layer.config.contains("trainable") && !layer.config.contains("dtype");
}

KerasValues keras_operation(KerasGraph& graph, const KerasLayer& layer, const KerasCall& call, const KerasValues& reads,
                            const std::string& name) {
  return Reader(graph, layer, call, reads, name).read();
}

}  // namespace lockstep::nn::detail
