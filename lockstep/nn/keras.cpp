#include "lockstep/nn/keras.h"

#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/nn/detail/fold_rescale.h"
#include "lockstep/nn/detail/keras_config.h"
#include "lockstep/nn/detail/keras_layers.h"
#include "lockstep/nn/detail/keras_weights.h"
#include "lockstep/nn/detail/read_bytes.h"
#include "lockstep/nn/detail/refuse.h"
#include "lockstep/nn/detail/zip.h"

namespace lockstep::nn {
namespace {

using detail::refuse;

Model build(const detail::KerasModel& keras, const detail::KerasWeights& weights, const std::string& version,
            const std::string& source) {
  // Keras 1 and 2 share their meanings; files that do not say are older than the first that did.
  const int major = std::atoi(version.c_str());
  Model model = detail::build_keras_model(keras, weights, major == 0 ? 2 : major, source);
  for (std::string& note : detail::fold_rescale(model)) model.provenance.notes.push_back(std::move(note));
  model.name = keras.name;
  model.weight_type = weights.weight_type();
  model.provenance.source = source;
  model.provenance.producer = version.empty() ? "Keras" : "Keras " + version;
  model.validate();
  return model;
}

}  // namespace

Model read_keras_hdf5(const std::filesystem::path& path) {
  const StandardReading arithmetic;
  const std::vector<std::byte> bytes = detail::read_bytes(path);
  hdf5::File file = hdf5::File::open(path);
  const std::string source = path.string();
  if (!file.has_attribute("model_config")) {
    refuse(source, "weights without a model (no attribute \"model_config\")", "a whole model",
           "save it by model.save(), not model.save_weights()");
  }
  const detail::KerasModel keras = detail::parse_keras_config(file.string_attribute("model_config"), source);
  const std::string version = file.has_attribute("keras_version") ? file.string_attribute("keras_version") : "";
  Model model = build(keras, detail::KerasWeights::by_name(std::move(file), bytes.size()), version, source);
  model.provenance.format = "Keras HDF5";
  model.provenance.digest = content_digest(bytes);
  return model;
}

Model read_keras_archive(const std::filesystem::path& path) {
  return read_keras_archive(detail::read_bytes(path), path);
}

Model read_keras_archive(std::span<const std::byte> bytes, const std::filesystem::path& path) {
  const StandardReading arithmetic;
  const std::string source = path.string();
  const detail::ZipArchive archive(bytes, source);
  const auto text = [&](const char* member) {
    const std::vector<std::byte> content = archive.read(member);
    return std::string(reinterpret_cast<const char*>(content.data()), content.size());
  };
  // The version decides what some words of the configuration mean.
  const detail::Json metadata = detail::Json::parse(text("metadata.json"), nullptr, false);
  if (!metadata.is_object() || !metadata.contains("keras_version") || !metadata["keras_version"].is_string()) {
    refuse(source + ": metadata.json", "no \"keras_version\"", "one", "save the model again");
  }
  const auto version = metadata["keras_version"].get<std::string>();
  const detail::KerasModel keras = detail::parse_keras_config(text("config.json"), source + ": config.json");
  constexpr const char* kWeights = "model.weights.h5";
  if (!archive.has(kWeights)) {
    throw Error(ErrorKind::unsupported, {source, "an archive without model.weights.h5", "weights in one HDF5 file",
                                         "save the model without sharding, by model.save(\"net.keras\")"});
  }
  const std::vector<std::byte> weights = archive.read(kWeights);
  hdf5::File file = hdf5::File::open_image(weights, source + ": " + kWeights);
  Model model = build(keras, detail::KerasWeights::by_position(std::move(file), weights.size()), version, source);
  model.provenance.format = "Keras archive";
  model.provenance.digest = content_digest(bytes);
  return model;
}

}  // namespace lockstep::nn
