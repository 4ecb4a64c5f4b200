// A Keras model on its way to a Model: nodes with names of their own, and how wide each value is.
#pragma once

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "lockstep/nn/detail/keras_activation.h"
#include "lockstep/nn/detail/keras_compositions.h"
#include "lockstep/nn/detail/keras_config.h"
#include "lockstep/nn/detail/keras_weights.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

using KerasValues = std::vector<std::string>;  // by name

// Of a layer's config; `otherwise` where it says nothing.
double config_number(const Json& config, const char* key, double otherwise, const std::string& where);
bool config_flag(const Json& config, const char* key, bool otherwise);
// A variable of so many numbers.
std::vector<double> variable_of(const KerasWeights& weights, const std::string& variable, std::size_t position,
                                std::size_t width);

class KerasGraph {
 public:
  // `where` is what messages call the file; it must stay.
  explicit KerasGraph(const std::string& where) : where_(where) {}

  Model model;  // so far

  std::string where(const KerasLayer& layer) const { return where_ + ": layer " + layer.name; }
  // Throws Error (unsupported) naming the layer.
  [[noreturn]] void cannot(const KerasLayer& layer, const std::string& found, const std::string& expected,
                           const std::string& remedy = "") const;
  // The axis must be -1, 1, [1] or none: the features of [batch, features].
  void check_axis(const KerasLayer& layer, bool none_allowed) const;

  // `wanted`, with a number where it is taken.
  std::string new_name(const std::string& wanted);
  // The width of a value is learnt from what reads it where the file did not say.
  std::size_t width_of(const std::string& value, std::size_t wanted, const KerasLayer& layer);
  std::size_t known_width(const std::string& value) const;  // 0 where it is not

  // Each gives the name of the value that it appends. Of several operations the last gets `name`, those before it that
  // and a number.
  std::string append(const std::string& wanted, Operation operation, const KerasValues& reads, std::size_t width);
  std::string activate(const KerasLayer& layer, const std::string& x, KerasActivation steps, const std::string& name);
  std::string compose(KerasSteps steps, const KerasValues& inputs, const std::string& name);

 private:
  const std::string& where_;
  std::map<std::string, std::size_t> widths_;
  std::set<std::string> names_;
};

}  // namespace lockstep::nn::detail
