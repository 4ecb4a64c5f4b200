// Version 2 of Lockstep's model files: any graph, node by node.
#pragma once

#include "lockstep/core/hdf5.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn::detail {

// Nodes and ports; throws Error as read_hdf5_model() does. The model is not yet validated.
Model read_graph(const hdf5::File& file);
void write_graph(hdf5::File& file, const Model& model);

}  // namespace lockstep::nn::detail
