// An ensemble solved in parts: one file made of the parts, or a small index file that shows them as one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/pending_file.h"
#include "lockstep/core/run_control.h"
#include "lockstep/ode/result_file.h"

namespace lockstep::ode {

// A result file that holds trajectories [first, first + count) of an ensemble of `total`.
struct EnsemblePart {
  std::filesystem::path path;
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t total = 0;
  std::size_t unfinished = 0;  // trajectories that were cancelled
};

enum class Unfinished { refuse, accept };

struct MergeOptions {
  Existing existing = Existing::refuse;
  Unfinished unfinished = Unfinished::refuse;  // cancelled trajectories in a part
  Attributes attributes;                       // replace the parts' attributes of these names
};

// The parts in the order of their trajectories; an index stands for its parts. Throws Error (file), naming the file:
// what is no result file, or of another format; trajectories that two files hold, or none; files of different runs,
// with the attributes or datasets that differ.
std::vector<EnsemblePart> arrange_parts(std::span<const std::filesystem::path> paths,
                                        Unfinished unfinished = Unfinished::refuse);

// One file with the same bits in every dataset as the whole ensemble's own run. Needs some 16 MB, whatever the sizes;
// progress counts bytes. Appears under its name when it is complete. Throws as arrange_parts() does, and
// Error (cancelled) at the caller's request. Returns the file's size in bytes.
std::uintmax_t merge_parts(std::span<const std::filesystem::path> paths, const std::filesystem::path& target,
                           const MergeOptions& options = {}, const RunControl& control = {});

// A file of virtual datasets that show the parts as one. They stay where they are and are named relative to the index's
// folder, so that all can be moved together. Returns the index's size in bytes.
std::uintmax_t index_parts(std::span<const std::filesystem::path> paths, const std::filesystem::path& target,
                           const MergeOptions& options = {});

}  // namespace lockstep::ode
