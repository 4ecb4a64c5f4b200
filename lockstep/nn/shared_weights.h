// Which of a net's numbers a training moves: weights that it has several times go as one, and a bias that it has not
// stays away.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep::nn {

// Of a DenseLayer or Dense that came without a bias and was given none since.
template <class Layer>
bool lacks_bias(const Layer& layer) {
  return !layer.has_bias && std::all_of(layer.bias.begin(), layer.bias.end(), [](double b) { return b == 0; });
}

// Files hold a layer that is called several times once for each call. Two layers are taken for one where their weights
// are the same bit for bit, as they stand or one the transpose of the other: numbers that were drawn or trained apart
// never are. Biases go together where, besides, the weights stand alike and the biases are the same. Layers whose
// numbers are all one number, such as the zeros of layers that were not trained yet, say nothing: they stay apart.
class SharedWeights {
 public:
  SharedWeights() = default;
  explicit SharedWeights(const Model& model) { append(model); }
  // Behind those that are there: the numbers of gather_weights(to_graph(model)), which share with no model before; or
  // as many that are trained each by itself.
  void append(const Model& model);
  void append(std::size_t numbers);

  std::size_t all() const { return of_.size(); }
  std::size_t trained() const { return trained_; }
  bool is_none() const { return trained_ == all(); }
  // "layers.1, layers.2, layers.3": the layers that go as one, each a line.
  const std::vector<std::string>& groups() const { return groups_; }

  // all[trained] of trained[number], and zeros where nothing is trained.
  template <class T>
  std::vector<T> spread(std::span<const T> trained) const {
    std::vector<T> all(of_.size());
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = of_[i] == kNone ? T(0) : trained[of_[i]];
    return all;
  }
  // What is trained of all: where numbers go together, the first of them.
  template <class T>
  std::vector<T> gather(std::span<const T> all) const {
    std::vector<T> trained(trained_);
    for (std::size_t i = all.size(); i-- > 0;) {
      if (of_[i] != kNone) trained[of_[i]] = all[i];
    }
    return trained;
  }
  // The gradient by what is trained: sums, in the order of the numbers, over those that go together.
  template <class T>
  void add_up(std::span<const T> all, std::span<T> trained) const {
    std::fill(trained.begin(), trained.end(), T(0));
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (of_[i] != kNone) trained[of_[i]] += all[i];
    }
  }

 private:
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> of_;  // [number] its place among those that are trained
  std::size_t trained_ = 0;
  std::vector<std::string> groups_;
};

}  // namespace lockstep::nn
