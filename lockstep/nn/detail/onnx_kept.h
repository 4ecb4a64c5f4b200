// What a model knows and ONNX has no place for, in the metadata of the file: names and units of features, training
// ranges, where the net comes from, and how its nodes are called here. docs/model_format.md lists the keys.
#pragma once

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <optional>

#include "lockstep/nn/detail/onnx_writer.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

// `writer` has written the graph. Throws Error (model) for texts that are not UTF-8.
void keep_in_metadata(onnx::ModelProto& file, const Model& model, OnnxWriter& writer);

// The nodes and ports that the graph was written from, calls among them: nothing where the file does not say, or says
// of another graph, another tool having changed it. For that these nodes are written once more and compared.
std::optional<Model> as_written(const onnx::ModelProto& file, const std::filesystem::path& path);

// What the metadata say beside that, whoever wrote the graph: of ports of the same name and width the features;
// producer, licence, attribution. All other entries become the model's metadata.
void take_from_metadata(const onnx::ModelProto& file, Model& model);

}  // namespace lockstep::nn::detail
