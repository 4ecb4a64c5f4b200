// The constants of an ONNX graph as plain numbers.
#pragma once

#include <onnx/onnx_pb.h>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

// Stands for the size of the batch in shapes that are computed while the net runs: no file means it, as -1 may.
inline constexpr double kBatchExtent = -0x1p56;
// Stands for the number of each sample within the batch: 0, 1, ..., as torch.arange(x.shape[0]) counts them.
inline constexpr double kSampleNumber = -0x1p57;
inline constexpr double kOfSampleNumber = -0x1p58;  // computed from it: of known shape alone
inline bool is_of_sample(double value) { return value == kSampleNumber || value == kOfSampleNumber; }
inline bool is_of_batch(double value) { return value == kBatchExtent || is_of_sample(value); }

struct OnnxTensor {
  std::vector<std::int64_t> shape;
  std::vector<double> values;  // row-major; integers are held exactly up to 2^53, beyond which only "to the end" lies
  WeightType type = WeightType::f32;
  // A shape in which kBatchExtent stands for the size of the batch, or indices with the numbers of the samples; not to
  // be computed with.
  bool holds_batch = false;
  bool whole = false;  // integers or truth values by type: quotients of them are truncated
  // Expanded to the size of the batch, for which a 1 stands in its shape: not to be summed or counted.
  bool each_sample = false;

  std::optional<std::size_t> first_nan() const;
  bool is_scalar() const { return values.size() == 1; }
};

// `model_path` is the file the message came from: external data is looked for in its folder only. `name` is what
// messages call the tensor. Throws Error (model) for types other than floats and integers, for sizes that do not fit
// the data, and for data outside the folder; (file) when it cannot be read. NaN is left to its readers.
OnnxTensor read_tensor(const onnx::TensorProto& tensor, const std::string& name,
                       const std::filesystem::path& model_path);

}  // namespace lockstep::nn::detail
