// Versions 2 and 3 of Lockstep's model files: any graph, node by node; 3 with guarded calls.
#pragma once

#include "lockstep/core/hdf5.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

inline constexpr int kVersionWithCalls = 3;

// Nodes, ports and calls; throws Error as read_hdf5_model() does. The model is not yet validated.
Model read_graph(const hdf5::File& file);
void write_graph(hdf5::File& file, const Model& model);

}  // namespace lockstep::nn::detail
