#include "lockstep/nn/load.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/nn/detail/activation_list.h"
#include "lockstep/nn/detail/read_bytes.h"
#include "lockstep/nn/plan_file.h"
#ifdef LOCKSTEP_ONNX
#include "lockstep/nn/onnx.h"
#endif
#ifdef LOCKSTEP_HDF5
#include "lockstep/core/hdf5.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/keras.h"
#endif

namespace lockstep::nn {
namespace {

// The C library's readers lie beside it.
constexpr const char* kReadable =
#if defined(LOCKSTEP_ONNX) || defined(LOCKSTEP_ONNX_BESIDE)
    "ONNX, "
#endif
#if defined(LOCKSTEP_HDF5) || defined(LOCKSTEP_HDF5_BESIDE)
    "Keras, "
#endif
    "safetensors or a Lockstep model in HDF5";

// A PyTorch user's way out; the metadata says what the tensors cannot.
constexpr const char* kFromTorch =
    "save it as safetensors where it was trained:\n"
    "  from safetensors.torch import save_file\n"
    "  save_file({k: v.contiguous() for k, v in net.state_dict().items()}, \"net.safetensors\",\n"
    "            metadata={\"activations\": \"tanh,tanh,linear\"})  # one for each layer";
constexpr const char* kFromPickle =
    "write it anew where it was made: scikit-learn's as ONNX (skl2onnx.to_onnx), PyTorch's tensors as safetensors "
    "(safetensors.torch.save_file)";
constexpr const char* kFromTensorFlow =
    "save it in Keras' format, model.save(\"net.keras\"), or turn the folder into ONNX: "
    "python -m tf2onnx.convert --saved-model FOLDER --output net.onnx";
#ifndef LOCKSTEP_HDF5
constexpr const char* kFromKeras =
    "turn it into safetensors with a Lockstep that reads HDF5: lockstep import net.keras -o net.safetensors";
#endif
#ifndef LOCKSTEP_ONNX
constexpr const char* kFromOnnx =
    "turn it into safetensors with a Lockstep that reads ONNX: lockstep import net.onnx -o net.safetensors";
#endif

bool begins_with(std::string_view bytes, std::string_view signature, std::size_t offset = 0) {
  return bytes.size() >= offset + signature.size() && bytes.substr(offset, signature.size()) == signature;
}

// Zip archives name their first members near the beginning, and all of them at the end.
ModelFormat inside_zip(std::string_view bytes) {
  const auto names = [&](std::string_view name) { return bytes.find(name) != std::string_view::npos; };
  if (names("data.pkl") || names("/version")) return ModelFormat::torch_archive;
  if (names("model.weights.h5") || names("metadata.json")) return ModelFormat::keras_archive;
  if (names(".npy")) return ModelFormat::numpy;
  return ModelFormat::unknown;
}

// An ONNX file is a protobuf message whose first field is the version of its representation, below 20 in 2026,
// followed by the producer's name, a string, an opset import or the graph.
bool looks_like_onnx(std::string_view bytes) {
  return bytes.size() > 4 && bytes[0] == 0x08 && bytes[1] > 0 && bytes[1] < 32 &&
         (bytes[2] == 0x12 || bytes[2] == 0x1a || bytes[2] == 0x22 || bytes[2] == 0x3a || bytes[2] == 0x42);
}

bool looks_like_safetensors(std::string_view bytes) {
  std::uint64_t length = 0;
  if (bytes.size() < sizeof length + 2) return false;
  std::memcpy(&length, bytes.data(), sizeof length);
  return length <= 100'000'000 && bytes[sizeof length] == '{';
}

// By its name: the file begins as an ONNX file may.
bool is_saved_model(const std::filesystem::path& path) {
  constexpr const char* kGraph = "saved_model.pb";
  std::error_code unreadable;
  const bool named = path.filename() == kGraph;
  return std::filesystem::is_regular_file(named ? path : path / kGraph, unreadable);
}

#ifdef LOCKSTEP_HDF5
ModelFormat format_of_hdf5(const std::filesystem::path& path) {
  const hdf5::File file = hdf5::File::open(path);
  if (file.has_attribute("lockstep_model")) return ModelFormat::lockstep_hdf5;
  if (file.has_attribute("model_config") || file.has_attribute("keras_version") || file.has("model_weights")) {
    return ModelFormat::keras_hdf5;
  }
  return ModelFormat::other_hdf5;
}
#endif

// Of endings by which other programs save nets.
const char* remedy_for(const std::filesystem::path& path) {
  const std::string ending = path.extension().string();
  if (ending == ".mat") return "docs/bringing_a_net.md has a recipe for nets of MATLAB";
  if (ending == ".bson" || ending == ".jld2") return "docs/bringing_a_net.md has a recipe for nets of Flux and Lux";
  if (ending == ".msgpack") return "docs/bringing_a_net.md has a recipe for nets of JAX: Equinox, Flax";
  return "check the path";
}

}  // namespace

ModelFormat detect_format(const std::filesystem::path& path) {
  const StandardReading arithmetic;
  if (is_saved_model(path)) return ModelFormat::saved_model;
#ifdef LOCKSTEP_HDF5
  if (hdf5::File::recognises(path)) return format_of_hdf5(path);
#endif
  constexpr std::size_t kEnough = 1 << 16;
  const std::vector<std::byte> content = detail::read_ends(path, kEnough);
  const std::string_view bytes(reinterpret_cast<const char*>(content.data()), content.size());
  const std::string extension = path.extension().string();
#ifndef LOCKSTEP_HDF5
  if (begins_with(bytes, "\x89HDF\r\n\x1a\n")) return ModelFormat::lockstep_hdf5;  // of which kind, only HDF5 can say
#endif
  if (begins_with(bytes, "PK\x03\x04")) return inside_zip(bytes);
  if (is_plan_file(content)) return ModelFormat::plan;
  if (begins_with(bytes, "\x93NUMPY")) return ModelFormat::numpy;
  if (looks_like_safetensors(bytes)) return ModelFormat::safetensors;
  if (bytes.size() > 2 && bytes[0] == '\x80' && bytes[1] >= 2 && bytes[1] <= 5) return ModelFormat::pickle;
  if (looks_like_onnx(bytes)) return ModelFormat::onnx;
  if (extension == ".safetensors") return ModelFormat::safetensors;  // damaged: its reader says how
  if (extension == ".onnx") return ModelFormat::onnx;
  return ModelFormat::unknown;
}

Model load(const std::filesystem::path& path, const ReadOptions& options) {
  const StandardReading arithmetic;
  const auto refuse = [&](const char* found, const char* remedy) -> Model {
    throw Error(ErrorKind::unsupported, {path.string(), found, kReadable, remedy});
  };
  // Of formats that say all activations themselves.
  [[maybe_unused]] const auto agreeing = [&](Model model) {
    detail::require_agreement(model, options, path.string());
    return model;
  };
  const ModelFormat format = detect_format(path);
  switch (format) {
    case ModelFormat::safetensors:
      return read_safetensors(path, options);
    case ModelFormat::lockstep_hdf5:
#ifdef LOCKSTEP_HDF5
      return agreeing(read_hdf5_model(path));
#else
      return refuse("an HDF5 file, in a build without HDF5",
                    "build Lockstep with LOCKSTEP_HDF5=ON, or use safetensors");
#endif
    case ModelFormat::other_hdf5:
      return refuse("an HDF5 file without a model (no attribute \"lockstep_model\")", remedy_for(path));
    case ModelFormat::keras_hdf5:
    case ModelFormat::keras_archive:
#ifdef LOCKSTEP_HDF5
      return agreeing(format == ModelFormat::keras_hdf5 ? read_keras_hdf5(path) : read_keras_archive(path));
#else
      return refuse("a Keras model, in a build without HDF5", kFromKeras);
#endif
    case ModelFormat::onnx:
#ifdef LOCKSTEP_ONNX
      return agreeing(read_onnx(path, options.unreadable_outputs));
#else
      return refuse("an ONNX model, in a build without ONNX", kFromOnnx);
#endif
    case ModelFormat::plan:
      return refuse(
          "a plan file, which is not for reading models from",
          "name the model it was compiled from; lockstep explain shows what it holds, and host programs load it by "
          "nn::read_plan or lockstep_plan_load");
    case ModelFormat::torch_archive:
      return refuse("a PyTorch file (torch.save or TorchScript), not readable without Python", kFromTorch);
    case ModelFormat::pickle:
      return refuse("a Python pickle, which cannot be read safely", kFromPickle);
    case ModelFormat::saved_model:
      return refuse("a TensorFlow SavedModel", kFromTensorFlow);
    case ModelFormat::numpy:
      return refuse("NumPy arrays",
                    "save them with safetensors.numpy.save_file as \"layers.0.weight\" [outputs, inputs], ...");
    case ModelFormat::unknown:
      break;
  }
  return refuse("a file of no known model format", remedy_for(path));
}

}  // namespace lockstep::nn
