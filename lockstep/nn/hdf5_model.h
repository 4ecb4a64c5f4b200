// Models in Lockstep's own HDF5 layout, docs/model_format.md: everything a Model of the plain kind knows.
#pragma once

#include <filesystem>

#include "lockstep/core/hdf5.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn {

// The version written, and the latest one read: attribute `lockstep_model` of the root group.
inline constexpr int kModelFormatVersion = 1;

// Throws Error (file) when HDF5 cannot read the file, (model) naming the object when what it holds is no model,
// has missing or unfitting parts or numbers that are not finite, or was changed since it was written (digest).
Model read_hdf5_model(const std::filesystem::path& path);
Model read_hdf5_model(const hdf5::File& file);

// Appears under its name whole or not at all. Numbers as float32 where that is exact, else float64. Throws Error
// (unsupported) naming the node for models that are no plain stack.
void write_hdf5_model(const std::filesystem::path& path, const Model& model, Existing existing = Existing::refuse);

}  // namespace lockstep::nn
