// The only file that is compiled and linked with MPI.
#define OMPI_SKIP_MPICXX 1
#define MPICH_SKIP_MPICXX 1
#include <mpi.h>

#include "lockstep/mpi/interface.h"

namespace lockstep::mpi {
namespace {

int start(int* rank, int* count) {
  // Threads solve and write; MPI is called by one of them alone.
  int provided = 0;
  int failed = MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
  if (failed == MPI_SUCCESS) failed = MPI_Comm_rank(MPI_COMM_WORLD, rank);
  if (failed == MPI_SUCCESS) failed = MPI_Comm_size(MPI_COMM_WORLD, count);
  return failed;
}

int sum(std::int64_t* values, std::size_t count) {
  return MPI_Allreduce(MPI_IN_PLACE, values, static_cast<int>(count), MPI_INT64_T, MPI_SUM, MPI_COMM_WORLD);
}

int minimum(std::int64_t* value) { return MPI_Allreduce(MPI_IN_PLACE, value, 1, MPI_INT64_T, MPI_MIN, MPI_COMM_WORLD); }

int stop() { return MPI_Finalize(); }

constexpr Interface kInterface{kInterfaceVersion, start, sum, minimum, stop};

}  // namespace
}  // namespace lockstep::mpi

extern "C" __attribute__((visibility("default"))) const lockstep::mpi::Interface* lockstep_mpi() {
  return &lockstep::mpi::kInterface;
}
