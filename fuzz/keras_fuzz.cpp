// Models in Keras' files. The first byte says what the others are: a configuration beside sound weights, a zip archive,
// or damage done to a whole-model file through HDF5. Archives that change the HDF5 file within them are not tried:
// their checksums would have to be guessed, and bytes changed there are the HDF5 library's affair.
#include <array>
#include <filesystem>
#include <span>
#include <string>

#include "fuzz/damage_hdf5.h"
#include "fuzz/fuzz.h"
#include "lockstep/nn/detail/keras_layers.h"
#include "lockstep/nn/detail/zip.h"
#include "lockstep/nn/keras.h"

namespace {

constexpr const char* kSound = "../../testdata/keras/keras3_nested.h5";

void read_configuration(const std::string& text) {
  using namespace lockstep;
  using nn::detail::KerasWeights;
  const std::filesystem::path path = std::string(LOCKSTEP_FUZZ_SOUND) + "/" + kSound;
  const nn::detail::KerasModel keras = nn::detail::parse_keras_config(text, "config.json");
  const KerasWeights weights = KerasWeights::by_name(hdf5::File::open(path), std::filesystem::file_size(path));
  nn::detail::build_keras_model(keras, weights, text.size() % 2 == 0 ? 2 : 3, "config.json").validate();
}

void read_archive(std::span<const std::byte> bytes) {
  const lockstep::nn::detail::ZipArchive archive(bytes, "bytes.keras");
  for (const char* member : {"config.json", "metadata.json", "model.weights.h5"}) {
    if (archive.has(member)) archive.read(member);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace lockstep;
  if (size == 0) return 0;
  const auto rest = std::as_bytes(std::span(data + 1, size - 1));
  return fuzz::expect_result_or_error([&] {
    if (data[0] == 'c') return read_configuration({reinterpret_cast<const char*>(rest.data()), rest.size()});
    if (data[0] == 'z') return read_archive(rest);
    nn::read_keras_hdf5(fuzz::damaged(std::array{kSound}, data + 1, size - 1)).validate();
  });
}
