// Counts how a kernel in the simulator of blocks meets the banks of shared memory. The kernel's source says nothing of
// it: compiled with -fsanitize=thread and -O0, each of its accesses calls a function, here one of ours in place of
// ThreadSanitizer's. For a program that is not linked with that.
//
// An access of a warp is what its lanes do at one place of the code, reached by the same calls, the same number of
// times since their last barrier. Shared memory has 32 banks of 4 bytes. Numbers of up to 4 bytes take one phase, of 8
// bytes two, each of 16 lanes, of 16 bytes four, each of 8 lanes (compute capability 8.0 and later). In a phase a bank
// gives one word at a time, to all lanes that want that word: the phase lasts as many clocks as any bank has words to
// give, and all but the first are conflicts.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lockstep/kernels/cuda/testing/block_simulator.h"

namespace lockstep::cuda::testing {

struct BankCount {
  std::int64_t accesses = 0;   // of warps
  std::int64_t phases = 0;     // that these take at the least
  std::int64_t conflicts = 0;  // clocks beyond one a phase
};

// What run() does in simulate(), blocks of all launches together.
BankCount count_banks(const std::function<void()>& run);

// Where the last count found its conflicts, most first: "12 in 3 accesses of 16 bytes at bin+0x1234", for addr2line.
std::vector<std::string> worst_places();

}  // namespace lockstep::cuda::testing
