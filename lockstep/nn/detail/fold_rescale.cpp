#include "lockstep/nn/detail/fold_rescale.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "lockstep/nn/detail/input_scaling.h"

namespace lockstep::nn::detail {
namespace {

class Folder {
 public:
  explicit Folder(Model& model) : model_(model) {}

  std::vector<std::string> run() {
    for (Node& node : model_.nodes) soften(node);
    while (fold_one()) {
    }
    return std::move(notes_);
  }

 private:
  Node* maker(const std::string& value) {
    const auto found = std::ranges::find(model_.nodes, value, &Node::name);
    return found == model_.nodes.end() ? nullptr : &*found;
  }
  // The only node that reads the value, if that is all that becomes of it.
  Node* only_reader(const std::string& value) {
    if (std::ranges::any_of(model_.outputs, [&](const Port& port) { return port.value == value; })) return nullptr;
    Node* reader = nullptr;
    for (Node& node : model_.nodes) {
      const auto times = std::ranges::count(node.inputs, value);
      if (times == 0) continue;
      if (reader != nullptr || times > 1) return nullptr;
      reader = &node;
    }
    return reader;
  }

  void soften(Node& node) {
    const auto* standardise = std::get_if<Standardise>(&node.operation);
    if (standardise == nullptr || maker(node.inputs.front()) == nullptr) return;
    Rescale rescale;
    for (std::size_t i = 0; i < standardise->scale.size(); ++i) {
      rescale.scale.push_back(1 / standardise->scale[i]);
      rescale.shift.push_back(-standardise->shift[i] / standardise->scale[i]);
    }
    node.operation = std::move(rescale);
  }

  // Of an input port, before the one layer that reads it.
  bool scales_inputs(Node& node, const Rescale& rescale, Dense& next) {
    std::vector<double> scale;
    for (const double factor : rescale.scale) scale.push_back(1 / factor);
    auto made = as_input_scaling(std::move(scale), rescale.shift, next.weights, next.bias);
    if (!made) return false;
    node.operation = Standardise{std::move(made->shift), std::move(made->scale)};
    notes_.push_back(node.name + " went into the scaling of the inputs");
    return true;
  }

  bool fold_one() {
    for (Node& node : model_.nodes) {
      const auto* rescale = std::get_if<Rescale>(&node.operation);
      if (rescale == nullptr) continue;
      Node* const before = maker(node.inputs.front());
      Node* const after = only_reader(node.name);
      Dense* const next = after == nullptr ? nullptr : std::get_if<Dense>(&after->operation);
      const bool alone = before != nullptr && only_reader(before->name) == &node;
      if (auto* earlier = alone ? std::get_if<Rescale>(&before->operation) : nullptr) {
        for (std::size_t i = 0; i < earlier->scale.size(); ++i) {
          earlier->scale[i] *= rescale->scale[i];
          earlier->shift[i] = earlier->shift[i] * rescale->scale[i] + rescale->shift[i];
        }
        remove(node, before->name);
        return true;
      }
      if (next != nullptr && before == nullptr && scales_inputs(node, *rescale, *next)) return true;
      if (next != nullptr) {
        for (std::size_t j = 0; j < next->outputs; ++j) {
          for (std::size_t k = 0; k < next->inputs; ++k) {
            double& weight = next->weights[j * next->inputs + k];
            next->bias[j] += weight * rescale->shift[k];
            weight *= rescale->scale[k];
          }
        }
        remove(node, after->name);
        return true;
      }
      if (!alone) continue;
      Dense* const last = std::get_if<Dense>(&before->operation);
      if (last == nullptr || after == nullptr) continue;
      for (std::size_t j = 0; j < last->outputs; ++j) {
        for (std::size_t k = 0; k < last->inputs; ++k) last->weights[j * last->inputs + k] *= rescale->scale[j];
        last->bias[j] = last->bias[j] * rescale->scale[j] + rescale->shift[j];
      }
      remove(node, before->name);
      return true;
    }
    return false;
  }

  void remove(Node& node, const std::string& into) {
    notes_.push_back(node.name + " went into " + into);
    const std::string name = node.name, source = node.inputs.front();
    for (Node& other : model_.nodes) std::ranges::replace(other.inputs, name, source);
    for (Port& port : model_.outputs) {
      if (port.value == name) port.value = source;
    }
    std::erase_if(model_.nodes, [&](const Node& other) { return other.name == name; });
  }

  Model& model_;
  std::vector<std::string> notes_;
};

}  // namespace

std::vector<std::string> fold_rescale(Model& model) { return Folder(model).run(); }

}  // namespace lockstep::nn::detail
