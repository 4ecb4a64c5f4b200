// Where Keras keeps the numbers of a layer: in whole-model HDF5 files by name, in .keras archives by position.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

struct KerasArray {
  hdf5::Shape shape;
  std::vector<double> values;  // row-major
};

// The weights of a model or, after layer(), of one layer in it. Copies share the open file.
class KerasWeights {
 public:
  // Group model_weights of a whole-model file (.h5, Keras 1 to 3): each layer's group lists the paths of its weights.
  static KerasWeights by_name(hdf5::File file, std::size_t file_bytes);
  // The model.weights.h5 of a .keras archive: layers/SLOT/vars/POSITION, where the slot is the layer's class in snake
  // case with a number for all but the first of a class.
  static KerasWeights by_position(hdf5::File file, std::size_t file_bytes);

  KerasWeights layer(const std::string& name, const std::string& slot) const;
  std::string where() const;  // for messages

  // Throws Error (model) when there is none, or one that holds no numbers; (file) when the file is damaged.
  KerasArray read(const std::string& variable, std::size_t position) const;
  // Widest number read so far.
  WeightType weight_type() const;

 private:
  struct Shared;
  hdf5::Dataset find_by_name(const std::string& variable) const;
  hdf5::Dataset find_by_position(std::size_t position) const;

  std::shared_ptr<Shared> shared_;
  std::vector<std::string> path_;  // layer within layer: names, or slots
};

}  // namespace lockstep::nn::detail
