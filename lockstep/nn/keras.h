// Models in Keras' own files: whole-model HDF5 (.h5, Keras 1 to 3) and .keras archives.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "lockstep/core/hdf5.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn {

// Read are Sequential and functional models, also used as layers of one another, over inputs [batch, features], of
// these layers: Dense; Activation with the functions of docs/model_format.md, LeakyReLU, ELU, ReLU, PReLU, Softmax;
// Normalization, BatchNormalization, LayerNormalization, Rescaling; Concatenate, Add, Subtract, Multiply, Average,
// Maximum, Minimum; what does nothing at inference (Dropout, noise, Flatten, Identity); and of Keras 3 slices
// x[:, a:b], arithmetic and the operations of keras.ops that docs/model_format.md lists. Kernels are transposed. A
// Normalization that reads the input stays as it is; what else has a term and stands before the first layer becomes
// (x - shift) / scale; all else that scales is multiplied into the layer beside it, in float64. Both are told in
// provenance.notes. Ports and nodes are named after the layers.
//
// Throws Error: (file) when a file cannot be read; (unsupported) naming the layer and what of it is not read, or saying
// that a model's structure is Python code; (model) for files that are damaged or lack weights. Weights that a file
// claims to keep elsewhere are refused.
Model read_keras_hdf5(const std::filesystem::path& path);
Model read_keras_archive(const std::filesystem::path& path);
// The same from memory; `path` is what messages call the file.
Model read_keras_archive(std::span<const std::byte> bytes, const std::filesystem::path& path);

}  // namespace lockstep::nn
