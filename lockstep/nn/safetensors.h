// Models in safetensors files: dense layers by PyTorch's names, what the names cannot say in the metadata.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/pending_file.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn {

// An ONNX file's outputs of floating point numbers that cannot be read while others can. Labels, integers and text, are
// left out in any case. Provenance::left_out has what was.
enum class UnreadableOutputs { refuse, leave_out };

// What a file may leave unsaid. Activations given here must be those in the file, where it names them; spellings as in
// parse_activation().
struct ReadOptions {
  std::string activations;        // one for each layer, "tanh,tanh,linear"; or one name for all layers but the last
  std::string hidden_activation;  // the latter, in a field of its own
  UnreadableOutputs unreadable_outputs = UnreadableOutputs::refuse;
};

// Tensors PREFIX N.weight [output][input] and PREFIX N.bias [output], N ascending in any steps and PREFIX the same
// for all: "layers.0.weight", "0.weight" (torch.nn.Sequential), "model.net.2.weight". A missing bias is zero.
// Optional: input_mean with input_stddev, output_mean with output_stddev; input_min, input_max (training range).
// Metadata read: activations; inputs, outputs, input_units, output_units (a name for each feature, separated by
// commas); name, producer, licence, attribution. The rest is kept as the model's metadata.
// Types F16, BF16, F32, F64. Nothing is skipped silently: a tensor that is none of these is an Error (model), as is
// everything that damages the file. `source` is what messages and provenance call the bytes.
Model read_safetensors(std::span<const std::byte> bytes, const std::string& source, const ReadOptions& options = {});
Model read_safetensors(const std::filesystem::path& path, const ReadOptions& options = {});

// The same layout, as "layers.N.weight"; numbers as F32 where that is exact, else F64. Throws Error (unsupported)
// for models that are no plain stack, Error (model) for feature names with commas.
std::vector<std::byte> to_safetensors(const Model& model);
void write_safetensors(const std::filesystem::path& path, const Model& model, Existing existing = Existing::refuse);

}  // namespace lockstep::nn
