// Turns one call of an operation of keras.ops into nodes. The operations are read in a file for each kind: arithmetic
// between values, choices of features, functions of one value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/nn/detail/keras_compositions.h"
#include "lockstep/nn/detail/keras_config.h"
#include "lockstep/nn/detail/keras_graph.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

inline constexpr const char* kKeepFeatures =
    "keep the features' axis: x[:, 2:3] instead of x[:, 2], keepdims=True in sums";

class KerasOperationReader {
 public:
  // What it is given must stay. What the operation makes is called `name`.
  KerasOperationReader(KerasGraph& graph, const KerasLayer& layer, const KerasCall& call, const KerasValues& reads,
                       const std::string& name)
      : graph_(graph), layer_(layer), call_(call), reads_(reads), name_(name), kind_(layer.class_name) {}

  KerasValues read();

 private:
  // Argument i of a call: the name of a value, or numbers that meet its features.
  struct Operand {
    std::string value;
    std::vector<double> numbers;
  };

  // ---- keras_operations.cpp
  [[noreturn]] void cannot(const std::string& found, const std::string& expected, const std::string& remedy = {}) const;
  [[noreturn]] void unknown(const std::string& operation) const;
  std::string part() { return name_ + "/" + std::to_string(parts_++); }
  std::string make(const std::string& name, Operation operation, const KerasValues& reads);
  std::string number(std::vector<double> values) { return make(part(), Constant{std::move(values)}, {}); }
  std::string not_of(const std::string& name, const std::string& x);
  void require_ranks();
  void require_features() const;
  void require_axis() const;
  double setting(const char* key, double otherwise) const;

  // ---- keras_arithmetic.cpp: nullopt for operations of other kinds
  std::optional<std::string> arithmetic();
  std::string binary(BinaryKind kind);
  std::optional<std::string> with_numbers(BinaryKind kind, const Operand& a, const Operand& b);
  std::string where();
  std::string logical();
  Operand operand(std::size_t i);
  std::vector<double> numbers_of(const Json& json) const;
  std::string as_value(Operand operand);

  // ---- keras_columns.cpp
  std::string concatenate();
  std::string stack();
  std::string get_item();
  std::string take();
  KerasValues split();
  std::string flip();
  std::string columns(std::vector<std::size_t> indices, const std::string& name);
  std::size_t index_of(const Json& json, std::int64_t width) const;
  std::vector<std::size_t> sliced(const Json& slice, std::int64_t width) const;

  // ---- keras_functions.cpp
  std::string function();
  std::string composed(KerasSteps steps, const KerasValues& inputs);
  std::string activation();
  std::string reduce(ReduceKind kind);
  std::string norm();
  std::string cast();
  std::string reshape();

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

}  // namespace lockstep::nn::detail
