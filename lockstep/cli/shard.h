// A share of an ensemble, for runs split over machines: which trajectories, and the name of their file.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>

#include "lockstep/cli/problem_setup.h"

namespace lockstep::cli {

// Number `index` of `count`, from 1.
struct Shard {
  std::size_t index = 1;
  std::size_t count = 1;

  std::string text() const;  // "3/16"
};

// Reads "3/16". Throws Error (invalid_argument) naming --shard.
Shard parse_shard(const std::string& text);

// results.h5 becomes results.shard-03-of-16.h5.
std::filesystem::path shard_path(const std::filesystem::path& whole, const Shard& shard);

// Keeps the shard's trajectories of a problem that was set up whole: consecutive ones, the shards' sizes equal up to
// one. Sets setup.part_of, shard and whole_digest. Throws Error (invalid_argument) where there are fewer trajectories
// than shards, or where all share one adaptive step: the bits of each then depend on the others.
void keep_shard(ProblemSetup& setup, const Shard& shard);

}  // namespace lockstep::cli
