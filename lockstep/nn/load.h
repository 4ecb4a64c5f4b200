// A trained net from whatever file holds it.
#pragma once

#include <filesystem>
#include <string>

#include "lockstep/nn/model.h"
#include "lockstep/nn/safetensors.h"

namespace lockstep::nn {

enum class ModelFormat {
  safetensors,
  lockstep_hdf5,
  other_hdf5,  // no model of ours inside
  keras_hdf5,
  keras_archive,
  onnx,
  plan,           // compiled by Lockstep: see plan_file.h
  torch_archive,  // torch.save and TorchScript
  pickle,         // Python's pickle, older torch.save
  saved_model,    // TensorFlow's folder, or saved_model.pb in it
  numpy,          // .npy, .npz
  unknown,
};

// By the content, and by the extension only where the content leaves it open. Throws Error (file) when the path is
// missing or not readable.
ModelFormat detect_format(const std::filesystem::path& path);

// Reads safetensors and, where built with them, ONNX, Keras and Lockstep's own format in HDF5. `options` are for
// safetensors that do not say their activations: of files that do they must agree. Other formats throw Error
// (unsupported) that names the format and says how to turn the file into safetensors.
Model load(const std::filesystem::path& path, const ReadOptions& options = {});

}  // namespace lockstep::nn
