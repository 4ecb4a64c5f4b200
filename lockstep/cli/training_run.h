// One run of `train`: iterations with progress, checkpoints, and what is written at the end.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lockstep/cli/training_file.h"

namespace lockstep::cli {

struct RunFlags {
  bool resume = false;
  bool quiet = false;
  std::string command_line;  // as typed, for provenance
};

// The files a training writes.
struct TrainingOutputs {
  struct Net {
    std::filesystem::path model, safetensors;
  };
  std::vector<Net> nets;            // as the training file has them
  std::filesystem::path equations;  // empty without
  std::filesystem::path problem;    // the beginning of a problem file, likewise
  std::filesystem::path checkpoint, curve, picture, fit;  // picture: of the loss; fit: of data and results
  std::filesystem::path states;                           // of trajectories, where the fit has them; empty without

  // The first of what holds the result.
  const std::filesystem::path& first() const {
    return !nets.empty() ? nets[0].model : equations.empty() ? problem : equations;
  }
  std::vector<std::filesystem::path> all() const;
};
TrainingOutputs outputs_of(const TrainingFile& file);
// Throws Error of the name of a folder, in which all that is written would be called after its ending alone.
void require_output_name(const TrainingFile& file);
// Throws Error where one of them is the file of the data, or is there already and may not be replaced.
void refuse_existing_outputs(const TrainingFile& file, const RunFlags& flags);

// Trains, writes the outputs, reports. Returns the exit code; throws Error, after what was reached is in the checkpoint
// and the best model in its files.
int run_training(const TrainingFile& file, const RunFlags& flags);

// Prints instead what would be trained, phase by phase, and how its gradients come about; nothing is written.
int explain_training(const TrainingFile& file);

}  // namespace lockstep::cli
