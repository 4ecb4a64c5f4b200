// Models in ONNX files: what PyTorch, Keras, scikit-learn, MATLAB and others export, and what they and ONNX Runtime
// read.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/core/pending_file.h"
#include "lockstep/core/precision.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/safetensors.h"

namespace lockstep::nn {

// Reads a graph of any named inputs and outputs [batch, features] (or outputs [batch]) made of: Gemm with any
// attributes, MatMul and Einsum with weights and of two branches; Add, Sub, Mul, Div, Pow, Min, Max, Sum, Mean with
// constants and between branches; every activation operator with its attributes, also spelled out (x * Sigmoid(x), gelu
// and mish in their pieces); Sqrt, Exp, Log, Abs, Neg, Reciprocal, Erf, Sin, Cos, Tan, Asin, Acos, Atan, Sinh, Cosh,
// Asinh, Acosh, Atanh, Sign, Floor, Ceil, Round, Mod, Clip; Softmax, LogSoftmax, Hardmax, and the Batch, Layer, RMS,
// Instance, Group and Lp normalisations; every reduction, and CumSum, over features; Concat, Split, Slice, Gather,
// GatherND, ScatterND, ScatterElements, Tile, Pad, Expand, Transpose; comparisons and Where; Identity, Dropout, Cast,
// CastLike, Flatten, Reshape, Squeeze, Unsqueeze that keep the batch; constants computed from constants; of ai.onnx.ml
// Scaler, Normalizer, LinearRegressor, LinearClassifier, Imputer, Binarizer, ArrayFeatureExtractor, FeatureVectorizer
// and ZipMap. In between, values may have any dimensions, the batch any of them. Opsets 7 to 28; weights of float16,
// bfloat16, float32, float64, in the file or in one beside it.
//
// A plain stack becomes Model::from_mlp(): a scaling before the first layer, first Sub or Add, then Div, stays as it
// is, and any other with a term becomes (x - shift) / scale, in float64; one after the last layer becomes y * scale +
// shift; all else is multiplied into the layer beside it, in float64. What changed is told in provenance.notes. Every
// other graph keeps its nodes; only a layer's bias, x * factor + term and (x - mean) / deviation become one node each.
// Ports keep their names.
//
// A file of write_onnx() that no other tool has changed becomes the model it was written from: the same nodes, calls,
// names, units and ranges. Of a changed one the ports keep what is known of their features.
//
// Outputs that are labels (integers, text) and made by operators outside the list, as classifiers have them beside
// their probabilities, are left out where another output can be read: provenance.left_out names them. So are other
// outputs where `unreadable` says it.
//
// Throws Error: (file) when a file cannot be read; (unsupported) naming node, operator and opset for what is not in the
// list; (model) for files that are damaged, or point outside their own folder.
Model read_onnx(const std::filesystem::path& path, UnreadableOutputs unreadable = UnreadableOutputs::refuse);
// The same from memory; `path` is what messages call the file, and in whose folder weights outside it are looked for.
Model read_onnx(std::span<const std::byte> bytes, const std::filesystem::path& path,
                UnreadableOutputs unreadable = UnreadableOutputs::refuse);

struct OnnxOptions {
  std::optional<Precision> precision;  // of all numbers, inputs and outputs; onnx_precision() where it is left out
};

// float32 where it holds every weight and bias exactly; of a model that has none, every number.
Precision onnx_precision(const Model& model);

// Any model in opset 17 (docs/model_format.md says how each operation), inputs and outputs [batch, features] under the
// names of the ports, `batch` symbolic. Numbers are rounded to the precision as Plan<T> rounds them, so that in it a
// file read again gives the same bits. Features, ranges, provenance, calls and metadata go into metadata_props. Throws
// Error: (model) when the model is invalid, a number does not fit in float32, or a name is not UTF-8; (unsupported)
// beyond 2 GiB, and in a build without ONNX; (file) when the file cannot be written, which appears whole or not at all.
std::vector<std::byte> to_onnx(const Model& model, const OnnxOptions& options = {});
void write_onnx(const std::filesystem::path& path, const Model& model, Existing existing = Existing::refuse,
                const OnnxOptions& options = {});

}  // namespace lockstep::nn
