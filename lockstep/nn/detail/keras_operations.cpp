// Which operations of keras.ops there are, and what every one of them asks of its call.
#include "lockstep/nn/detail/keras_operations.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "lockstep/nn/detail/keras_operation_reader.h"

namespace lockstep::nn::detail {
namespace {

constexpr const char* kKnownOperations =
    "slices x[:, a:b], add, subtract, multiply, divide, power, mod, maximum, minimum, comparisons, where, tanh, exp, "
    "log, sqrt, square, absolute, sin, cos, erf and the like, activations, clip, sum, mean, max and min over features, "
    "concatenate, stack, split, take, flip";

}  // namespace

bool is_keras_operation(const KerasLayer& layer) {
  if (!layer.module.empty()) return layer.module.starts_with("keras.src.ops.") || layer.module.starts_with("keras.ops");
  // HDF5 files name no modules. Every layer says whether it is trained, and in which type it computes; a cast says the
  // latter alone.
  const auto by_keras3 = [](const KerasCall& call) { return call.arguments.is_array(); };
  return !layer.model && !layer.calls.empty() && std::ranges::all_of(layer.calls, by_keras3) &&
         !layer.config.contains("trainable") && (layer.class_name == "Cast" || !layer.config.contains("dtype"));
}

KerasValues keras_operation(KerasGraph& graph, const KerasLayer& layer, const KerasCall& call, const KerasValues& reads,
                            const std::string& name) {
  return KerasOperationReader(graph, layer, call, reads, name).read();
}

KerasValues KerasOperationReader::read() {
  if (call_.named) cannot("arguments by name", "arguments in their order");
  require_ranks();
  if (const auto made = arithmetic()) return {*made};
  if (kind_ == "Concatenate" || kind_ == "Hstack") return {concatenate()};
  if (kind_ == "Stack") return {stack()};
  if (reads_.size() > 1) unknown(kind_ + " of several values");
  x_ = reads_.front();
  if (kind_ == "GetItem") return {get_item()};
  if (kind_ == "Take") return {take()};
  if (kind_ == "Split") return split();
  if (call_.constants) cannot("numbers among what it reads", "values of other layers");
  if (kind_ == "Flip") return {flip()};
  return {function()};
}

void KerasOperationReader::cannot(const std::string& found, const std::string& expected,
                                  const std::string& remedy) const {
  graph_.cannot(layer_, found, expected, remedy);
}

void KerasOperationReader::unknown(const std::string& operation) const {
  cannot("the operation " + operation, kKnownOperations);
}

std::string KerasOperationReader::make(const std::string& name, Operation operation, const KerasValues& reads) {
  std::vector<std::size_t> widths;
  for (const std::string& read : reads) widths.push_back(graph_.width_of(read, 0, layer_));
  const std::size_t width = graph::output_width(operation, widths, graph_.where(layer_));
  return graph_.append(name, std::move(operation), reads, width);
}

std::string KerasOperationReader::not_of(const std::string& name, const std::string& x) {
  return make(name, Binary{BinaryKind::equal}, {x, number({0})});
}

// Values [batch], which x[:, 2] makes, and [batch, features] broadcast to each other over the batch: never both.
void KerasOperationReader::require_ranks() {
  for (const KerasTensor& tensor : call_.reads) {
    if (tensor.rank > 2) cannot("a value of " + std::to_string(tensor.rank) + " dimensions", "[batch, features]");
    if (rank_ != 0 && tensor.rank != 0 && tensor.rank != rank_) {
      cannot("values [batch] and [batch, features] together", "values of one rank", kKeepFeatures);
    }
    if (tensor.rank != 0) rank_ = tensor.rank;
  }
}

void KerasOperationReader::require_features() const {
  if (rank_ == 1) cannot("a value [batch]", "[batch, features]", kKeepFeatures);
}

// check_axis() takes a missing one for the features; here it would be all elements.
void KerasOperationReader::require_axis() const {
  if (!layer_.config.contains("axis")) cannot("no axis", "axis=-1, the features");
  graph_.check_axis(layer_, false);
}

double KerasOperationReader::setting(const char* key, double otherwise) const {
  return config_number(layer_.config, key, otherwise, graph_.where(layer_));
}

}  // namespace lockstep::nn::detail
