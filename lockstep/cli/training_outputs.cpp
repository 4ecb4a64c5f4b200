// The files that a training writes: what they are called, and that none takes the place of another.
#include <system_error>

#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/training_run.h"
#include "lockstep/core/error.h"

namespace lockstep::cli {

TrainingOutputs outputs_of(const TrainingFile& file) {
  const auto with = [&](const std::string& ending) {
    return std::filesystem::path(file.output.stem.string() + ending);
  };
  TrainingOutputs outputs;
  for (const NetSection& net : file.nets) {
    const std::string name = file.nets.size() == 1 ? "" : "_" + net.called;
    outputs.nets.push_back({with(name + ".h5"), with(name + ".safetensors")});
  }
  if (file.ode && file.ode->equations) outputs.equations = with("_rhs.h5");
  if (file.ode && (!file.ode->trained.empty() || !file.resets.empty())) outputs.problem = with("_rhs.toml");
  if (file.ode) outputs.states = with("_states.csv");
  outputs.checkpoint = with("_checkpoint.h5");
  outputs.curve = with("_loss.csv");
  outputs.picture = with("_loss.png");
  outputs.fit = with("_fit.png");
  return outputs;
}

std::vector<std::filesystem::path> TrainingOutputs::all() const {
  std::vector<std::filesystem::path> paths;
  for (const auto& [model, safetensors] : nets) paths.insert(paths.end(), {model, safetensors});
  if (!equations.empty()) paths.push_back(equations);
  if (!problem.empty()) paths.push_back(problem);
  if (!states.empty()) paths.push_back(states);
  paths.insert(paths.end(), {checkpoint, curve, picture, fit});
  return paths;
}

void refuse_existing_outputs(const TrainingFile& file, const RunFlags& flags) {
  for (const std::filesystem::path& path : outputs_of(file).all()) {
    std::error_code ignored;  // of a file that is not there
    const auto& own = file.data.validation_file;
    if (std::filesystem::equivalent(path, file.data.file.value, ignored) ||
        (own && std::filesystem::equivalent(path, own->value, ignored))) {
      throw Error(ErrorKind::invalid_argument, {file.output.where, '"' + path.string() + "\", the file of the data",
                                                "names that leave the data as they are", "choose another name"});
    }
    if (file.output.overwrite || flags.resume || !std::filesystem::exists(path)) continue;
    refuse_existing(path, "choose another name, go on with --resume, or replace it with --overwrite");
  }
}

}  // namespace lockstep::cli
