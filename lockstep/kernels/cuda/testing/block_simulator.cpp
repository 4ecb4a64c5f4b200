#include "lockstep/kernels/cuda/testing/block_simulator.h"

#include <sys/mman.h>
#include <ucontext.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/cuda/testing/stack_switch.h"

#if defined(LOCKSTEP_THREAD_SANITIZER)
#include <sanitizer/tsan_interface.h>
#elif defined(LOCKSTEP_ADDRESS_SANITIZER)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace lockstep::cuda::testing {
namespace {

constexpr std::size_t kStackBytes = std::size_t{256} << 10;
constexpr std::size_t kCanaryBytes = 256;
constexpr unsigned char kCanary = 0xc5;
constexpr unsigned kWarp = 32;
#ifdef LOCKSTEP_THREAD_SANITIZER
// So many fibers of a block are told apart by ThreadSanitizer. Since GCC 13 its runtime has slots for 255 threads, and
// forgets what the longest idle one did when another needs a slot: in a block of 256, each would find the others
// forgotten, and no race. So threads this far apart share a fiber: a race between those two is not seen, between all
// others is. GCC 12's runtime knows more threads than a block has.
constexpr unsigned kFibersToldApart = __GNUC__ >= 13 ? 240 : 1024;
#endif

enum class State { ready, at_barrier, in_warp, done };

struct Continuation {
#ifdef LOCKSTEP_OWN_SWITCH
  void* stack_pointer = nullptr;
#else
  ucontext_t context;
#endif
};

struct Copy {
  void* to;
  const void* from;
  std::size_t bytes;
};

struct Fiber {
  Continuation at;
  State state = State::done;
  const char* where = "";
  unsigned barriers = 0, warp_waits = 0;
  int counted = 0;
  std::vector<Copy> open_copies;
  std::vector<std::vector<Copy>> copy_groups;
  void* sanitizer = nullptr;  // what the sanitizer knows this stack by
};

struct Warp {
  std::uint64_t slot[kWarp] = {};
  unsigned mask = 0, arrived = 0;
  char keys[2] = {};
};

struct Block {
  std::vector<Fiber> fibers;
  std::vector<Warp> warps;
  Continuation scheduler;
  void* scheduler_sanitizer = nullptr;
  const void* scheduler_stack = nullptr;
  std::size_t scheduler_stack_bytes = 0;
  unsigned current = 0;
  int count = 0;  // of the barrier that was passed last
  const std::function<void(unsigned char*)>* kernel = nullptr;
  unsigned char* shared = nullptr;
  std::size_t shared_bytes = 0;
  std::uint64_t launches = 0;
  bool in_kernel = false;
  unsigned char* stacks = nullptr;
  std::size_t stacks_made = 0;
  std::uint64_t switches = 0;
  bool failed = false;
  std::exception_ptr failure;
  char start_key = 0, keys[2] = {};
};

Block block;

// Barriers by where they are written; the same text may lie in several places.
struct Barrier {
  const char* where;
  bool met, loose;
};
constexpr std::size_t kMostBarriers = 256;
Barrier barriers[kMostBarriers];
std::size_t barrier_count = 0;

LOCKSTEP_UNSEEN bool meet_at(const char* where) {
  std::size_t i = 0;
  while (i < barrier_count && barriers[i].where != where) ++i;
  if (i == kMostBarriers) throw KernelFault("more barriers than the simulator counts, at " + std::string(where));
  if (i == barrier_count) barriers[barrier_count++] = {where, false, false};
  barriers[i].met = true;
  return barriers[i].loose;
}

// What orders one thread after another, told to ThreadSanitizer: these alone do.
void release([[maybe_unused]] void* key) {
#ifdef LOCKSTEP_THREAD_SANITIZER
  __tsan_release(key);
#endif
}
void acquire([[maybe_unused]] void* key) {
#ifdef LOCKSTEP_THREAD_SANITIZER
  __tsan_acquire(key);
#endif
}

LOCKSTEP_UNSEEN void switch_to(Continuation& from, Continuation& to) {
#ifdef LOCKSTEP_OWN_SWITCH
  lockstep_switch_stack(&from.stack_pointer, to.stack_pointer);
#else
  swapcontext(&from.context, &to.context);
#endif
}

LOCKSTEP_UNSEEN void leave_fiber(State state, const char* where) {
  Fiber& fiber = block.fibers[block.current];
  fiber.state = state;
  fiber.where = where;
  ++block.switches;
#if defined(LOCKSTEP_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(state == State::done ? nullptr : &fiber.sanitizer, block.scheduler_stack,
                                 block.scheduler_stack_bytes);
#elif defined(LOCKSTEP_THREAD_SANITIZER)
  __tsan_switch_to_fiber(block.scheduler_sanitizer, __tsan_switch_to_fiber_no_sync);
#endif
  switch_to(fiber.at, block.scheduler);
#if defined(LOCKSTEP_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(fiber.sanitizer, nullptr, nullptr);
#endif
}

LOCKSTEP_UNSEEN void resume(unsigned thread) {
  Fiber& fiber = block.fibers[thread];
  block.current = thread;
  block.in_kernel = true;
  thread_index = {thread, 0, 0};
#if defined(LOCKSTEP_ADDRESS_SANITIZER)
  __sanitizer_start_switch_fiber(&block.scheduler_sanitizer, block.stacks + thread * kStackBytes, kStackBytes);
#elif defined(LOCKSTEP_THREAD_SANITIZER)
  __tsan_switch_to_fiber(fiber.sanitizer, __tsan_switch_to_fiber_no_sync);
#endif
  switch_to(block.scheduler, fiber.at);
  block.in_kernel = false;
#if defined(LOCKSTEP_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(block.scheduler_sanitizer, nullptr, nullptr);
#endif
}

LOCKSTEP_UNSEEN void enter_fiber() {
#if defined(LOCKSTEP_ADDRESS_SANITIZER)
  __sanitizer_finish_switch_fiber(nullptr, &block.scheduler_stack, &block.scheduler_stack_bytes);
#endif
  acquire(&block.start_key);
  try {
    (*block.kernel)(block.shared);
  } catch (...) {
    block.failure = std::current_exception();
    block.failed = true;
  }
  leave_fiber(State::done, "its end");
  std::abort();  // nobody resumes it
}

void make_stacks(unsigned threads) {
  if (block.stacks_made >= threads) return;
  if (block.stacks != nullptr) munmap(block.stacks, block.stacks_made * kStackBytes);
  void* memory =
      mmap(nullptr, threads * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  block.stacks_made = memory == MAP_FAILED ? 0 : threads;
  block.stacks = memory == MAP_FAILED ? nullptr : static_cast<unsigned char*>(memory);
  if (memory == MAP_FAILED) throw std::bad_alloc();
}

LOCKSTEP_UNSEEN void prepare(unsigned thread) {
  Fiber& fiber = block.fibers[thread];
  fiber = {};
  fiber.state = State::ready;
  unsigned char* const stack = block.stacks + thread * kStackBytes;
#ifdef LOCKSTEP_ADDRESS_SANITIZER
  __asan_unpoison_memory_region(stack, kStackBytes);  // frames that a fault left there
#endif
#ifdef LOCKSTEP_OWN_SWITCH
  // As if enter_fiber had been called: six registers, the address to return to, and a caller that never is.
  auto** top = reinterpret_cast<void**>(stack + kStackBytes) - 1;
  *top = nullptr;
  *--top = reinterpret_cast<void*>(&enter_fiber);
  for (int i = 0; i < 6; ++i) *--top = nullptr;
  fiber.at.stack_pointer = top;
#else
  getcontext(&fiber.at.context);
  fiber.at.context.uc_stack.ss_sp = stack;
  fiber.at.context.uc_stack.ss_size = kStackBytes;
  fiber.at.context.uc_link = nullptr;
  makecontext(&fiber.at.context, enter_fiber, 0);
#endif
#ifdef LOCKSTEP_THREAD_SANITIZER
  fiber.sanitizer =
      thread < kFibersToldApart ? __tsan_create_fiber(0) : block.fibers[thread - kFibersToldApart].sanitizer;
#endif
}

std::string name_of(unsigned thread) { return "thread " + std::to_string(thread); }

// Opens the barrier when every thread waits there. True when it did.
bool open_barrier(unsigned threads, unsigned done) {
  unsigned waiting = 0;
  for (unsigned i = 0; i < threads; ++i) waiting += block.fibers[i].state == State::at_barrier;
  if (waiting == 0 || waiting != threads - done) return false;
  if (done != 0) {
    const auto at = std::find_if(block.fibers.begin(), block.fibers.begin() + threads,
                                 [](const Fiber& fiber) { return fiber.state == State::at_barrier; });
    throw KernelFault(std::to_string(done) + " threads of the block have returned, others wait at " + at->where);
  }
  block.count = 0;
  for (unsigned i = 0; i < threads; ++i) {
    Fiber& fiber = block.fibers[i];
    if (std::strcmp(fiber.where, block.fibers[0].where) != 0) {
      throw KernelFault("thread 0 waits at " + std::string(block.fibers[0].where) + ", " + name_of(i) + " at " +
                        fiber.where);
    }
    block.count += fiber.counted != 0;
    fiber.state = State::ready;
  }
  return true;
}

bool open_warps() {
  bool opened = false;
  for (std::size_t w = 0; w < block.warps.size(); ++w) {
    Warp& warp = block.warps[w];
    if (warp.arrived == 0 || warp.arrived != warp.mask) continue;
    for (unsigned lane = 0; lane < kWarp; ++lane) {
      if (warp.mask >> lane & 1) block.fibers[w * kWarp + lane].state = State::ready;
    }
    warp.arrived = warp.mask = 0;
    opened = true;
  }
  return opened;
}

void run_threads(unsigned threads, const std::vector<unsigned>& order) {
  for (unsigned done = 0; done < threads;) {
    bool moved = false;
    for (const unsigned i : order) {
      if (block.fibers[i].state != State::ready) continue;
      resume(i);
      if (block.failed) return;
      moved = true;
      if (block.fibers[i].state == State::done) ++done;
    }
    if (done == threads) break;
    moved = open_barrier(threads, done) || moved;
    moved = open_warps() || moved;
    if (moved) continue;
    for (unsigned i = 0; i < threads; ++i) {
      const Fiber& fiber = block.fibers[i];
      if (fiber.state != State::done) throw KernelFault("deadlock: " + name_of(i) + " waits at " + fiber.where);
    }
  }
}

// What the threads did lies before what the caller does next, also where a fault left them standing.
LOCKSTEP_UNSEEN void forget_fibers([[maybe_unused]] unsigned threads) {
#ifdef LOCKSTEP_THREAD_SANITIZER
  for (unsigned i = 0; i < std::min(threads, kFibersToldApart); ++i) {
    __tsan_switch_to_fiber(block.fibers[i].sanitizer, 0);
    __tsan_switch_to_fiber(block.scheduler_sanitizer, 0);
    __tsan_destroy_fiber(block.fibers[i].sanitizer);
  }
#endif
}

void run_block(unsigned threads, const std::vector<unsigned>& order) {
  block.warps.assign((threads + kWarp - 1) / kWarp, Warp{});
#ifdef LOCKSTEP_THREAD_SANITIZER
  block.scheduler_sanitizer = __tsan_get_current_fiber();
#endif
  for (unsigned i = 0; i < threads; ++i) prepare(i);
  release(&block.start_key);
  try {
    run_threads(threads, order);
  } catch (...) {
    forget_fibers(threads);
    throw;
  }
  forget_fibers(threads);
  block.failed = false;
  if (block.failure) std::rethrow_exception(std::exchange(block.failure, nullptr));
}

// Shared memory of one block: NaN at first, and watched behind its end. Under AddressSanitizer it ends exactly.
class SharedMemory {
 public:
  explicit SharedMemory(std::size_t bytes) : bytes_(bytes) {
    const std::size_t alignment = 128;
    if (posix_memalign(&memory_, alignment, std::max<std::size_t>(bytes + canary_bytes(), 1)) != 0)
      throw std::bad_alloc();
    std::memset(memory_, 0xff, bytes);
    std::memset(data() + bytes, kCanary, canary_bytes());
  }
  ~SharedMemory() { std::free(memory_); }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  unsigned char* data() const { return static_cast<unsigned char*>(memory_); }
  void check() const {
    for (std::size_t i = 0; i < canary_bytes(); ++i) {
      if (data()[bytes_ + i] != kCanary)
        throw KernelFault("a write " + std::to_string(i) + " bytes past the end of shared memory");
    }
  }

 private:
  static constexpr std::size_t canary_bytes() { return kSanitized ? 0 : kCanaryBytes; }
  std::size_t bytes_;
  void* memory_ = nullptr;
};

Fiber& current_fiber() { return block.fibers[block.current]; }

constexpr bool kLoose = true;
LOCKSTEP_UNSEEN void meet_in_warp(unsigned mask, const char* where, bool loose) {
  Warp& warp = block.warps[block.current / kWarp];
  const unsigned lane = lane_index();
  if ((mask >> lane & 1) == 0) throw KernelFault(name_of(block.current) + " is not in its own mask at " + where);
  if (warp.arrived != 0 && warp.mask != mask)
    throw KernelFault("threads of a warp disagree about the mask at " + std::string(where));
  warp.mask = mask;
  warp.arrived |= 1u << lane;
  char* const key = &warp.keys[current_fiber().warp_waits++ & 1];
  if (!loose) release(key);
  leave_fiber(State::in_warp, where);
  if (!loose) acquire(key);
}

}  // namespace

std::vector<std::string> barriers_met() {
  std::vector<std::string> met;
  for (std::size_t i = 0; i < barrier_count; ++i) {
    if (std::exchange(barriers[i].met, false) && std::find(met.begin(), met.end(), barriers[i].where) == met.end())
      met.emplace_back(barriers[i].where);
  }
  return met;
}

void loosen_barrier(std::string_view where) {
  for (std::size_t i = 0; i < barrier_count; ++i) barriers[i].loose = barriers[i].where == where;
}

std::uint64_t simulate(const SimulatedLaunch& launch, const std::function<void(unsigned char*)>& kernel) {
  block.kernel = &kernel;
  block.switches = 0;
  ++block.launches;
  block_extent = {launch.threads, 1, 1};
  grid_extent = {launch.blocks, 1, 1};
  if (block.fibers.size() < launch.threads) block.fibers.resize(launch.threads);
  make_stacks(launch.threads);
  std::vector<unsigned> order(launch.threads);
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937 random(launch.seed);
  for (unsigned i = 0; i < launch.blocks; ++i) {
    if (launch.seed != 0) std::shuffle(order.begin(), order.end(), random);
    block_index = {i, 0, 0};
    const SharedMemory shared(launch.shared_bytes);
    block.shared = shared.data();
    block.shared_bytes = launch.shared_bytes;
    run_block(launch.threads, order);
    shared.check();
  }
  return block.switches;
}

LOCKSTEP_UNSEEN bool in_kernel() { return block.in_kernel; }
LOCKSTEP_UNSEEN std::uint64_t launches_made() { return block.launches; }
LOCKSTEP_UNSEEN std::uint64_t barriers_passed() {
  return std::uint64_t{current_fiber().barriers} + current_fiber().warp_waits;
}
LOCKSTEP_UNSEEN bool lies_in_shared_memory(const void* place) {
  const auto* const byte = static_cast<const unsigned char*>(place);
  return block.in_kernel && byte >= block.shared && byte < block.shared + block.shared_bytes;
}

// Two keys in turn: a fast thread's next arrival must not order a slow one that is still leaving this barrier.
LOCKSTEP_UNSEEN void wait_for_block(const char* where) {
  const bool loose = meet_at(where);
  char* const key = &block.keys[current_fiber().barriers++ & 1];
  if (!loose) release(key);
  leave_fiber(State::at_barrier, where);
  if (!loose) acquire(key);
}

LOCKSTEP_UNSEEN int count_in_block(int value, const char* where) {
  current_fiber().counted = value;
  wait_for_block(where);
  return block.count;
}

LOCKSTEP_UNSEEN void wait_for_warp(unsigned mask, const char* where) { meet_in_warp(mask, where, meet_at(where)); }

LOCKSTEP_UNSEEN void meet_lanes(const char* where) { meet_in_warp(0xffffffffu, where, kLoose); }

LOCKSTEP_UNSEEN std::uint64_t exchange_in_warp(unsigned mask, std::uint64_t bits, unsigned source, const char* where) {
  Warp& warp = block.warps[block.current / kWarp];
  warp.slot[lane_index()] = bits;
  meet_in_warp(mask, where, kLoose);  // a shuffle is no fence
  if ((mask >> source & 1) == 0)
    throw KernelFault("a shuffle reads lane " + std::to_string(source) + ", outside its mask, at " + where);
  bits = warp.slot[source];
  meet_in_warp(mask, where, kLoose);
  return bits;
}

LOCKSTEP_UNSEEN unsigned ballot_in_warp(unsigned mask, bool value, const char* where) {
  Warp& warp = block.warps[block.current / kWarp];
  warp.slot[lane_index()] = value;
  meet_in_warp(mask, where, kLoose);
  unsigned bits = 0;
  for (unsigned lane = 0; lane < kWarp; ++lane) {
    if ((mask >> lane & 1) != 0 && warp.slot[lane] != 0) bits |= 1u << lane;
  }
  meet_in_warp(mask, where, kLoose);
  return bits;
}

LOCKSTEP_UNSEEN unsigned lane_index() { return block.current % kWarp; }

LOCKSTEP_UNSEEN void copy_later(void* shared, const void* global, std::size_t bytes) {
  if (on_shared_access != nullptr) on_shared_access(shared, bytes);
  current_fiber().open_copies.push_back({shared, global, bytes});
}

LOCKSTEP_UNSEEN void end_copy_group() {
  Fiber& fiber = current_fiber();
  fiber.copy_groups.push_back(std::move(fiber.open_copies));
  fiber.open_copies.clear();
}

void wait_for_copies(unsigned groups_that_may_be_open) {
  Fiber& fiber = current_fiber();
  while (fiber.copy_groups.size() > groups_that_may_be_open) {
    for (const Copy& copy : fiber.copy_groups.front()) std::memcpy(copy.to, copy.from, copy.bytes);
    fiber.copy_groups.erase(fiber.copy_groups.begin());
  }
}

}  // namespace lockstep::cuda::testing
