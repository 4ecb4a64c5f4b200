// A model from whatever file holds it, without linking HDF5 or protobuf.
#pragma once

#include <filesystem>

#include "lockstep/nn/model.h"
#include "lockstep/nn/safetensors.h"

namespace lockstep::c {

// As nn::load(); ONNX, Keras and HDF5 go through liblockstep_c_readers, opened when it is needed. Throws Error
// (unsupported) when that library is not there.
nn::Model load_model(const std::filesystem::path& path, const nn::ReadOptions& options);

}  // namespace lockstep::c
