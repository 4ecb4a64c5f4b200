// Models in Lockstep's own HDF5 layout, docs/model_format.md: everything a Model knows.
#pragma once

#include <filesystem>

#include "lockstep/core/hdf5.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn {

// The latest version read: attribute `lockstep_model` of the root group. Plain stacks are written as version 1, all
// other graphs as version 2, models with guarded calls as version 3.
inline constexpr int kModelFormatVersion = 3;

// Throws Error (file) when HDF5 cannot read the file, (model) naming the object when what it holds is no model,
// has missing or unfitting parts or numbers that are not finite, or was changed since it was written (digest).
Model read_hdf5_model(const std::filesystem::path& path);
Model read_hdf5_model(const hdf5::File& file);

// Appears under its name whole or not at all. Numbers as float32 where that is exact, else float64. Throws Error
// (model) for an invalid model.
void write_hdf5_model(const std::filesystem::path& path, const Model& model, Existing existing = Existing::refuse);

}  // namespace lockstep::nn
