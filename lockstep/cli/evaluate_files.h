// What `evaluate` reads and writes: datasets of an HDF5 file, or columns of a CSV.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/pending_file.h"
#include "lockstep/nn/model.h"

namespace lockstep::cli {

std::size_t total_width(const std::vector<nn::Port>& ports);  // features of all of them

// Samples for all input ports of a net. T is float or double.
template <class T>
class SampleSource {
 public:
  virtual ~SampleSource() = default;
  virtual std::size_t samples() const = 0;
  // [sample][feature]; infinity where a number is too large for T.
  virtual std::vector<T> read(std::size_t port, std::size_t first, std::size_t count) = 0;
  virtual std::vector<double> read_exactly(std::size_t port, std::size_t first, std::size_t count) = 0;
  virtual std::string place(std::size_t port, std::size_t sample) const = 0;  // for messages
  virtual std::string note() const { return {}; }                             // on what was taken for which input
};

// HDF5 by its content: `dataset` [sample, feature], of several ports one called as each; its columns by name where both
// the file (column_names.h) and the net name them, else in their order. Else a CSV, whose columns are
// called as the features; features without names are called x0, x1... or, where those are not there, take its columns
// in order, which note() tells. Throws Error naming what does not fit.
template <class T>
std::unique_ptr<SampleSource<T>> open_samples(const std::filesystem::path& path, const std::string& dataset,
                                              const nn::Model& model, const std::filesystem::path& model_path);

struct AnswerFile {
  std::filesystem::path path;  // a CSV where it ends in .csv, else HDF5
  Existing existing = Existing::refuse;
  std::string dataset;  // of HDF5, for a net of one output port
  std::size_t samples = 0;
  bool has_flags = false;                                       // which samples lie outside the training range
  std::vector<std::pair<std::string, std::string>> attributes;  // of HDF5
};

template <class T>
class AnswerSink {
 public:
  virtual ~AnswerSink() = default;
  // Samples one after another; ports [port][sample][feature], flags [sample].
  virtual void write(std::span<const std::vector<T>> ports, std::span<const std::uint8_t> flags) = 0;
  virtual void publish() = 0;  // until then there is no file
};
template <class T>
std::unique_ptr<AnswerSink<T>> create_answers(const AnswerFile& file, const nn::Model& model);

inline constexpr const char* kOutsideRange = "outside_range";  // what the flags are called

}  // namespace lockstep::cli
