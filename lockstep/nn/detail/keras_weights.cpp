#include "lockstep/nn/detail/keras_weights.h"

#include <algorithm>
#include <optional>
#include <variant>

#include "lockstep/nn/detail/activation_list.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

using hdf5::Dataset;
using hdf5::Group;

constexpr const char* kSaveAgain = "save the model again";

std::vector<std::string> components(const std::string& path) {
  std::vector<std::string> result;
  for (std::size_t at = 0; at <= path.size();) {
    const std::size_t end = std::min(path.find('/', at), path.size());
    if (end > at) result.push_back(path.substr(at, end - at));
    at = end + 1;
  }
  return result;
}

// The dataset at the end of a path, each step of which must exist.
Dataset dataset_at(const Group& start, const std::vector<std::string>& path) {
  std::optional<Group> group;
  const auto here = [&]() -> const Group& { return group ? *group : start; };
  for (std::size_t i = 0; i + 1 < path.size(); ++i) {
    if (!here().has(path[i])) refuse(here().name(), "no group \"" + path[i] + '"', "one", kSaveAgain);
    group = here().group(path[i]);
  }
  if (path.empty() || !here().has(path.back())) {
    refuse(here().name(), "no dataset \"" + (path.empty() ? std::string() : path.back()) + '"', "the layer's weights",
           "save the model after it was built and trained");
  }
  return here().dataset(path.back());
}

// Long lists of names are cut into attributes NAME0, NAME1, ...; an empty list has no type of its own.
std::vector<std::string> names_in(const Group& group, const std::string& attribute) {
  const auto list = [&](const std::string& name) -> std::vector<std::string> {
    const auto value = group.attribute(name);
    if (value && std::holds_alternative<std::vector<double>>(*value)) return {};
    return group.string_list_attribute(name);
  };
  if (group.has_attribute(attribute)) return list(attribute);
  std::vector<std::string> result;
  for (int i = 0; group.has_attribute(attribute + std::to_string(i)); ++i) {
    const std::vector<std::string> part = list(attribute + std::to_string(i));
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

}  // namespace

struct KerasWeights::Shared {
  hdf5::File file;
  bool positions;
  std::size_t budget;  // bytes that may still be read
  WeightType widest = WeightType::f16;
};

KerasWeights KerasWeights::by_name(hdf5::File file, std::size_t file_bytes) {
  KerasWeights weights;
  // Any number of layers may share a dataset: what they read together stays within reach of the file's size.
  weights.shared_ = std::make_shared<Shared>(Shared{std::move(file), false, (std::size_t{64} << 20) + 64 * file_bytes});
  return weights;
}

KerasWeights KerasWeights::by_position(hdf5::File file, std::size_t file_bytes) {
  KerasWeights weights = by_name(std::move(file), file_bytes);
  weights.shared_->positions = true;
  return weights;
}

KerasWeights KerasWeights::layer(const std::string& name, const std::string& slot) const {
  KerasWeights result = *this;
  result.path_.push_back(shared_->positions ? slot : name);
  return result;
}

std::string KerasWeights::where() const {
  std::string text = shared_->file.name();
  for (const std::string& part : path_) text += (text.back() == '/' ? "" : "/") + part;
  return text;
}

WeightType KerasWeights::weight_type() const { return shared_->widest; }

Dataset KerasWeights::find_by_name(const std::string& variable) const {
  const hdf5::File& file = shared_->file;
  if (!file.has("model_weights")) refuse(file.name(), "no group \"model_weights\"", "one", "save the whole model");
  const Group all = file.group("model_weights");
  if (!all.has(path_.front())) refuse(all.name(), "no group \"" + path_.front() + '"', "one", kSaveAgain);
  const Group group = all.group(path_.front());
  // "dense/kernel:0", "sequential/dense/kernel"; those of a model used as a layer are all in the model's list.
  std::vector<std::vector<std::string>> found;
  for (const std::string& name : names_in(group, "weight_names")) {
    std::vector<std::string> parts = components(name);
    if (parts.empty() || parts.back().substr(0, parts.back().find(':')) != variable) continue;
    const bool inner = path_.size() > 1;
    if (!inner || (parts.size() > 1 && parts[parts.size() - 2] == path_.back())) found.push_back(std::move(parts));
  }
  if (found.size() != 1) {
    refuse(where(), (found.empty() ? "no weight \"" : "several weights \"") + variable + '"', "one",
           "save the model after it was built and trained");
  }
  return dataset_at(group, found.front());
}

Dataset KerasWeights::find_by_position(std::size_t position) const {
  const hdf5::File& file = shared_->file;
  // The first version of the format called the group of layers by another name.
  const char* const layers =
      file.has("layers") || !file.has("_layer_checkpoint_dependencies") ? "layers" : "_layer_checkpoint_dependencies";
  std::vector<std::string> path;
  for (const std::string& slot : path_) {
    path.push_back(layers);
    path.push_back(slot);
  }
  path.push_back("vars");
  path.push_back(std::to_string(position));
  return dataset_at(file, path);
}

KerasArray KerasWeights::read(const std::string& variable, std::size_t position) const {
  const Dataset dataset = shared_->positions ? find_by_position(position) : find_by_name(variable);
  const hdf5::ElementType type = dataset.type();
  if (type.kind != hdf5::Kind::real) {
    refuse(dataset.name(), to_string(type), "float16, float32 or float64",
           "cast the model to float32 before saving it; quantised models cannot be read");
  }
  if (!shared_->file.holds(dataset)) {
    refuse(dataset.name(), "numbers kept in another file", "numbers in this one", kSaveAgain);
  }
  const std::size_t bytes = dataset.size() * sizeof(double);
  if (bytes > shared_->budget) refuse(dataset.name(), "more numbers than such a file holds", "fewer", kSaveAgain);
  shared_->budget -= bytes;
  if (type.bytes > sizeof(float)) {
    shared_->widest = WeightType::f64;
  } else if (type.bytes == sizeof(float) && shared_->widest == WeightType::f16) {
    shared_->widest = WeightType::f32;
  }
  return {dataset.shape(), dataset.read<double>()};
}

}  // namespace lockstep::nn::detail
