// A solve by all ranks of an MPI launcher: each its shard into a file of its own, then an index of all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "lockstep/cli/shard.h"
#include "lockstep/core/pending_file.h"
#include "lockstep/ode/solve.h"

namespace lockstep::cli {

// What one rank is to solve, and what came of it.
struct RankShare {
  Shard shard;
  // To be called before the first trajectory, when all that can be wrong with problem and files has been looked at:
  // returns when every rank has come so far, and throws when one of them has failed.
  std::function<void()> ready;

  ode::Summary summary;     // of the share
  std::size_t earlier = 0;  // trajectories that were finished before
};

struct RanksRun {
  std::filesystem::path whole;  // name of the index; shard_path() of it are the shares
  Existing existing = Existing::refuse;
  bool resume = false;  // an index that is there may be replaced
  bool quiet = false;
  std::string continue_with = "--resume";  // the flags that do
  std::string command_line;
  std::function<int(RankShare&)> solve_share;  // returns an exit code, throws Error
  // Tells of the whole run; called on one rank.
  std::function<void(const ode::Summary& whole, std::size_t earlier, std::uintmax_t bytes)> report;
  // The exit code of a whole run that came to its end, called on every rank; one of them tells why.
  std::function<int(const ode::Summary& whole, bool tells)> code_of;
};

// Returns the exit code, the same on every rank. What fails is told once, on standard error, whichever ranks it struck.
// Throws Error (unsupported), on one of the processes, where MPI is not to be had.
int solve_on_ranks(const RanksRun& run);

}  // namespace lockstep::cli
