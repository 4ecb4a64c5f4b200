// Runs the source of a CUDA kernel on the CPU, for tests: each thread of a block is a fiber that runs until it waits at
// a barrier or a warp operation. Found are: barriers that not all threads reach (which, and where), and, in any build,
// writes past the end of shared memory. With AddressSanitizer every access outside it is found, too; with
// ThreadSanitizer every race that a missing barrier leaves, on one OS thread and each time. Without that a missing
// barrier shows as a wrong result: shared memory starts as NaN, and seeds change the order in which threads run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/detail/sanitizer.h"

// The simulator's own memory is no part of the kernel: races in it mean nothing.
#ifdef LOCKSTEP_THREAD_SANITIZER
#define LOCKSTEP_UNSEEN __attribute__((no_sanitize("thread"), noinline))
#else
#define LOCKSTEP_UNSEEN
#endif

namespace lockstep::cuda::testing {

struct SimulatedLaunch {
  unsigned blocks = 1;
  unsigned threads = 1;          // of a block
  std::size_t shared_bytes = 0;  // of dynamic shared memory, for each block
  unsigned seed = 0;             // of the order in which threads run; 0: ascending
};

// What is wrong with a kernel, with the thread and the source line where it is known.
class KernelFault : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Calls kernel(shared memory) in every thread of every block, block after block, on the calling thread; not from
// within a kernel. Throws KernelFault, and whatever a thread throws. Returns how often threads were switched.
std::uint64_t simulate(const SimulatedLaunch& launch, const std::function<void(unsigned char*)>& kernel);

// For needed_barriers.h: the barriers of blocks and warps that threads have met at since the last call, by source line;
// and one of them at which they still meet, but which orders nothing as far as ThreadSanitizer can tell.
std::vector<std::string> barriers_met();
void loosen_barrier(std::string_view where);

// For bank_counter.h: whether a kernel's thread runs now, in which of all launches, how many barriers of blocks and
// warps it has passed, where its block's shared memory is; and what to tell of copies there in the background and
// of rows that tensor cores load.
bool in_kernel();
std::uint64_t launches_made();
std::uint64_t barriers_passed();
bool lies_in_shared_memory(const void* place);
inline void (*on_shared_access)(const void* shared, std::size_t bytes) = nullptr;

// The rest is for cuda_words.h, called by a kernel's threads. `where` names the source line.
struct Place {
  unsigned x = 0, y = 0, z = 0;
};
inline Place thread_index, block_index, block_extent, grid_extent;  // of the thread that runs

void wait_for_block(const char* where);
// Waits, too; then the number of threads whose `value` is not zero.
int count_in_block(int value, const char* where);
// Gives `bits` to the warp, takes those of `source`. `mask` names the lanes that take part.
std::uint64_t exchange_in_warp(unsigned mask, std::uint64_t bits, unsigned source, const char* where);
// A bit for each lane of the mask: whether its `value` is true.
unsigned ballot_in_warp(unsigned mask, bool value, const char* where);
void wait_for_warp(unsigned mask, const char* where);
// All lanes of the warp take a step of one instruction together, which orders no memory of theirs.
void meet_lanes(const char* where);
unsigned lane_index();

// A copy to shared memory in the background: nothing arrives before the thread waits for its group.
void copy_later(void* shared, const void* global, std::size_t bytes);
void end_copy_group();
void wait_for_copies(unsigned groups_that_may_be_open);

}  // namespace lockstep::cuda::testing
