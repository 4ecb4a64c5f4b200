// Models in ONNX files: what PyTorch, Keras, scikit-learn, MATLAB and others export.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>

#include "lockstep/nn/model.h"

namespace lockstep::nn {

// Reads a graph that computes a plain stack from one input [batch, features] to one output: Gemm with any attributes,
// MatMul with Add, elementwise Add, Sub, Mul, Div with constants, BatchNormalization, the activations Lockstep knows as
// operators or spelled out (x * Sigmoid(x), gelu and mish in their pieces), and what changes nothing (Identity,
// Dropout, Cast, Flatten and Reshape that keep the batch). A scaling before the first layer, first
// Sub or Add, then Div, stays as it is; one after the last layer becomes y * scale + shift; any other is multiplied
// into the layer beside it, in float64, and told in provenance.notes. Opsets 7 to 25; weights of float16, bfloat16,
// float32, float64, in the file or in one beside it.
//
// Throws Error: (file) when a file cannot be read; (unsupported) naming node, operator and opset for graphs that are no
// plain stack; (model) for files that are damaged, or point outside their own folder.
Model read_onnx(const std::filesystem::path& path);
// The same from memory; `path` is what messages call the file, and in whose folder weights outside it are looked for.
Model read_onnx(std::span<const std::byte> bytes, const std::filesystem::path& path);

}  // namespace lockstep::nn
