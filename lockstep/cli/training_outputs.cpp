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

namespace {

struct Read {
  std::filesystem::path path;
  std::string what;
};

// What a training reads. The net that it goes on from may be replaced by what it becomes.
std::vector<Read> files_read(const TrainingFile& file) {
  std::vector<Read> files{{file.path, "the training file"}, {file.data.file.value, "the file of the data"}};
  if (file.data.validation_file) files.push_back({file.data.validation_file->value, "the file of the validation data"});
  for (const std::filesystem::path& path : files_of(file.impulses)) files.push_back({path, "a file of impulses"});
  if (!file.ode || !file.ode->equations) return files;
  for (const auto& [name, path] : files_of(*file.ode->equations)) files.push_back({path, "the file of " + name});
  return files;
}

}  // namespace

void require_output_name(const TrainingFile& file) {
  const std::filesystem::path name = file.output.stem.filename(), folder = file.output.stem.parent_path();
  std::error_code ignored;
  if (!folder.empty() && !std::filesystem::is_directory(folder, ignored)) {
    throw Error(ErrorKind::file, {file.output.where, "no folder " + folder.string(), "an existing folder",
                                  "create it first, or choose another name"});
  }
  if (!name.empty() && name != "." && name != "..") return;
  throw Error(ErrorKind::invalid_argument,
              {file.output.where, '"' + file.output.stem.string() + "\", a folder", "how the names of the files begin",
               "put a name behind it: \"" + (file.output.stem / "net").string() + '"'});
}

void refuse_existing_outputs(const TrainingFile& file, const RunFlags& flags) {
  const TrainingOutputs outputs = outputs_of(file);
  const std::vector<Read> read = files_read(file);
  std::error_code ignored;  // of a file that is not there
  // Without a checkpoint --resume begins, and replaces no more than any beginning.
  const bool goes_on = flags.resume && std::filesystem::exists(outputs.checkpoint, ignored);
  for (const std::filesystem::path& path : outputs.all()) {
    for (const Read& each : read) {
      if (!std::filesystem::equivalent(path, each.path, ignored)) continue;
      throw Error(ErrorKind::invalid_argument, {file.output.where, '"' + path.string() + "\", " + each.what,
                                                "names that leave what is read as it is", "choose another name"});
    }
    if (file.output.overwrite || goes_on || !std::filesystem::exists(path)) continue;
    refuse_existing(path, std::filesystem::exists(outputs.checkpoint, ignored)
                              ? "choose another name, go on with --resume, or replace it with --overwrite"
                              : "choose another name, or replace it with --overwrite");
  }
}

}  // namespace lockstep::cli
