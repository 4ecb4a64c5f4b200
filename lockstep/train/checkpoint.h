// A training's state in an HDF5 file: what it needs to continue with the same bits, and what it must not be confused
// with.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/train/training.h"

namespace lockstep::train {

// Digests of what a training depends on ("data", "options", "net"), by names that people understand. A checkpoint
// continues a training only where all of them agree.
// What a digest is made of may stand beside it as lines of text ("options in full"): not compared, but where the
// digests differ, lines that differ are named.
using Identity = std::map<std::string, std::string>;
inline constexpr std::string_view kInFull = " in full";

// One iteration of the curve kept with the checkpoint.
struct CurvePoint {
  std::int64_t iteration = 0;  // over all phases
  double loss = 0;
  double watched = 0;
  double gradient_norm = 0;
  double learning_rate = 0;
  std::int64_t phase = 0;  // counted from 0
};

template <class T>
struct Checkpoint {
  TrainingState<T> state;
  std::vector<CurvePoint> curve;
  Identity identity;
};

// Replaces `path` in one step: a program that is killed meanwhile leaves the old file whole. Throws Error (file).
template <class T>
void write_checkpoint(const std::filesystem::path& path, const Checkpoint<T>& checkpoint);

// Throws Error (file) when the file is missing, damaged, no checkpoint, or of the other number type; and when a digest
// differs from `identity`, naming it.
template <class T>
Checkpoint<T> read_checkpoint(const std::filesystem::path& path, const Identity& identity);

extern template void write_checkpoint<float>(const std::filesystem::path&, const Checkpoint<float>&);
extern template void write_checkpoint<double>(const std::filesystem::path&, const Checkpoint<double>&);
extern template Checkpoint<float> read_checkpoint<float>(const std::filesystem::path&, const Identity&);
extern template Checkpoint<double> read_checkpoint<double>(const std::filesystem::path&, const Identity&);

}  // namespace lockstep::train
