// The processes that an MPI launcher has started together: each solves its share, and all end alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace lockstep::mpi {
struct Interface;
}

namespace lockstep::cli {

// As the launcher's environment tells (Open MPI, MPICH, Intel MPI, MVAPICH, Slurm's srun): how many processes were
// started together, 1 without a launcher, and which of them this one is, from 0.
struct Launch {
  std::size_t count = 1;
  std::size_t rank = 0;
};
Launch launch();

// How many threads this process should take where nobody says: launchers do not bind every rank to processors of its
// own, and those of one machine share it.
int threads_of_a_rank();

// Opens the library with MPI and joins the other ranks; leaves them at the end of its life. One at a time in a program.
// Every function below is called by all ranks together.
class Ranks {
 public:
  // Throws Error (unsupported) when this build has no MPI or it does not start.
  Ranks();
  ~Ranks();
  Ranks(const Ranks&) = delete;

  std::size_t rank() const { return rank_; }
  std::size_t count() const { return count_; }

  // Adds up over the ranks, in place.
  void sum(std::span<std::int64_t> values) const;
  // The lowest rank for which `mine` is true; count() when there is none.
  std::size_t first(bool mine) const;

 private:
  void* library_ = nullptr;
  const mpi::Interface* mpi_ = nullptr;
  std::size_t rank_ = 0;
  std::size_t count_ = 1;
};

}  // namespace lockstep::cli
