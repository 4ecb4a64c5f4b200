#include "lockstep/cli/ranks.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/mpi/interface.h"

namespace lockstep::cli {
namespace {

// The number a variable begins with.
std::optional<std::size_t> number_from(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  std::size_t number = 0;
  const auto read = std::from_chars(text, text + std::strlen(text), number);
  return read.ec == std::errc() ? std::optional(number) : std::nullopt;
}

struct Variables {
  const char* count;
  const char* rank;
};
// Slurm sets the last pair for what srun starts, not for a batch script itself.
// How many of them were started on this machine. Slurm writes "16(x2),8", by machine.
constexpr std::array<const char*, 4> kLocalCounts{"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                                                  "MV2_COMM_WORLD_LOCAL_SIZE", "SLURM_STEP_TASKS_PER_NODE"};
constexpr std::array<Variables, 4> kVariables{{{"OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                               {"PMI_SIZE", "PMI_RANK"},
                                               {"MV2_COMM_WORLD_SIZE", "MV2_COMM_WORLD_RANK"},
                                               {"SLURM_STEP_NUM_TASKS", "SLURM_PROCID"}}};

void check(int failed, const char* what) {
  if (failed == 0) return;
  throw Error(ErrorKind::unsupported,
              {"MPI", std::string(what) + " failing with code " + std::to_string(failed), {}, {}});
}

}  // namespace

Launch launch() {
  for (const auto& [count, rank] : kVariables) {
    const auto processes = number_from(count);
    if (processes && *processes > 1) return {*processes, number_from(rank).value_or(0)};
  }
  return {};
}

int threads_of_a_rank() {
  std::size_t here = 1;
  for (const char* variable : kLocalCounts) {
    if (const auto count = number_from(variable)) {
      here = *count;
      break;
    }
  }
  // A rank that is bound to processors of its own sees those alone; otherwise all ranks here see the same ones.
  const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
  const auto part = static_cast<int>(std::max(online, 1L) / static_cast<long>(std::max<std::size_t>(here, 1)));
  return std::min(available_threads(), std::max(part, 1));
}

Ranks::Ranks() {
  const auto unavailable = [](const std::string& found) {
    return Error(
        ErrorKind::unsupported,
        {"MPI", found, "a tool built with MPI, started by the launcher of the same MPI",
         "build where libopenmpi-dev is installed (-DLOCKSTEP_MPI=ON), or start single processes and give each "
         "its share with --shard"});
  };
  // Global: MPI's own plug-ins look for its symbols.
  library_ = ::dlopen(mpi::kLibrary, RTLD_NOW | RTLD_GLOBAL);
  if (library_ == nullptr) {
    const char* reason = ::dlerror();
    throw unavailable(std::to_string(launch().count) + " processes started together, but " +
                      (reason == nullptr ? mpi::kLibrary : reason));
  }
  const auto entry = reinterpret_cast<mpi::Entry>(::dlsym(library_, mpi::kEntry));
  mpi_ = entry == nullptr ? nullptr : entry();
  if (mpi_ == nullptr || mpi_->version != mpi::kInterfaceVersion) {
    throw unavailable(std::string(mpi::kLibrary) + " of another version");
  }
  int rank = 0, count = 1;
  check(mpi_->start(&rank, &count), "its start");
  rank_ = static_cast<std::size_t>(rank);
  count_ = static_cast<std::size_t>(count);
  if (count_ != launch().count) {
    // The launcher of one MPI and the library of another: every process would take itself for the only one.
    mpi_->stop();
    throw unavailable(std::to_string(launch().count) + " processes started together, of which MPI sees " +
                      std::to_string(count_));
  }
}

Ranks::~Ranks() { mpi_->stop(); }

void Ranks::sum(std::span<std::int64_t> values) const { check(mpi_->sum(values.data(), values.size()), "a sum"); }

std::size_t Ranks::first(bool mine) const {
  std::int64_t lowest = static_cast<std::int64_t>(mine ? rank_ : count_);
  check(mpi_->minimum(&lowest), "a minimum");
  return static_cast<std::size_t>(lowest);
}

}  // namespace lockstep::cli
