// What the tool needs of MPI, behind a plain C struct: the tool opens the library that is linked with MPI when a
// launcher has started it on several ranks, and runs without MPI everywhere else.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::mpi {

inline constexpr int kInterfaceVersion = 1;
inline constexpr const char* kLibrary = "liblockstep_mpi.so";
inline constexpr const char* kEntry = "lockstep_mpi";

// Every function is called by all ranks together, from the thread that called start(), and returns 0 or MPI's error.
struct Interface {
  int version;
  int (*start)(int* rank, int* count);
  int (*sum)(std::int64_t* values, std::size_t count);  // in place, over ranks
  int (*minimum)(std::int64_t* value);                  // in place
  int (*stop)();
};

using Entry = const Interface* (*)();

}  // namespace lockstep::mpi
