#include "lockstep/cli/ranks.h"

#include <dlfcn.h>

#include <array>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/mpi/interface.h"

namespace lockstep::cli {
namespace {

std::optional<std::size_t> number_from(const char* variable) {
  const char* text = std::getenv(variable);
  if (text == nullptr) return std::nullopt;
  std::size_t number = 0;
  const char* const end = text + std::strlen(text);
  const auto read = std::from_chars(text, end, number);
  return read.ec == std::errc() && read.ptr == end ? std::optional(number) : std::nullopt;
}

struct Variables {
  const char* count;
  const char* rank;
};
// Slurm sets the last pair for what srun starts, not for a batch script itself.
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
