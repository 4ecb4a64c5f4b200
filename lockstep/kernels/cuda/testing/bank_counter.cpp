#include "lockstep/kernels/cuda/testing/bank_counter.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <set>
#include <sstream>
#include <unordered_map>

namespace lockstep::cuda::testing {
namespace {

constexpr unsigned kWarp = 32, kBanks = 32;

struct WarpAccess {
  const void* place = nullptr;
  unsigned bytes = 0;
  std::array<std::uintptr_t, kWarp> at{};
  std::array<bool, kWarp> takes_part{};
};

struct Thread {
  std::vector<const void*> calls;
  std::uint64_t barriers = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> times;  // since the last barrier, by place and calls
};

struct Place {
  std::int64_t accesses = 0, conflicts = 0;
};

struct Counter {
  bool active = false;
  std::vector<Thread> threads;
  unsigned block = 0;
  std::uint64_t launch = 0;
  std::unordered_map<std::uint64_t, WarpAccess> open;
  BankCount count;
  std::map<std::pair<const void*, unsigned>, Place> places;
};
Counter counter;

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15ull;
  return hash ^ hash >> 29;
}

void count(const WarpAccess& access) {
  const unsigned lanes = access.bytes <= 4 ? kWarp : access.bytes <= 8 ? kWarp / 2 : kWarp / 4;
  Place& place = counter.places[{access.place, access.bytes}];
  ++counter.count.accesses;
  ++place.accesses;
  for (unsigned first = 0; first < kWarp; first += lanes) {
    std::array<std::vector<std::uintptr_t>, kBanks> words;
    std::size_t most = 0;
    for (unsigned lane = first; lane < first + lanes; ++lane) {
      if (!access.takes_part[lane]) continue;
      for (std::uintptr_t word = access.at[lane] / 4; word <= (access.at[lane] + access.bytes - 1) / 4; ++word) {
        auto& bank = words[word % kBanks];
        if (std::find(bank.begin(), bank.end(), word) == bank.end()) bank.push_back(word);
        most = std::max(most, bank.size());
      }
    }
    if (most == 0) continue;
    ++counter.count.phases;
    counter.count.conflicts += static_cast<std::int64_t>(most) - 1;
    place.conflicts += static_cast<std::int64_t>(most) - 1;
  }
}

void end_block() {
  for (const auto& [key, access] : counter.open) count(access);
  counter.open.clear();
  counter.threads.clear();
}

Thread& current_thread() {
  if (launches_made() != counter.launch || block_index.x != counter.block) end_block();
  counter.launch = launches_made();
  counter.block = block_index.x;
  if (counter.threads.size() <= thread_index.x) counter.threads.resize(thread_index.x + 1);
  return counter.threads[thread_index.x];
}

void access(const void* at, unsigned bytes, const void* place) {
  if (!counter.active || !lies_in_shared_memory(at)) return;
  Thread& thread = current_thread();
  if (const std::uint64_t barriers = barriers_passed(); thread.barriers != barriers) {
    thread.barriers = barriers;
    thread.times.clear();
  }
  std::uint64_t key = mix(reinterpret_cast<std::uintptr_t>(place), bytes);
  for (const void* call : thread.calls) key = mix(key, reinterpret_cast<std::uintptr_t>(call));
  const std::uint32_t time = thread.times[key]++;
  const unsigned lane = thread_index.x % kWarp;
  WarpAccess& mine = counter.open[mix(mix(mix(key, time), thread.barriers), thread_index.x / kWarp)];
  mine.place = place;
  mine.bytes = bytes;
  mine.at[lane] = reinterpret_cast<std::uintptr_t>(at);
  mine.takes_part[lane] = true;
}

void enter(const void* call) {
  if (counter.active && in_kernel()) current_thread().calls.push_back(call);
}
void leave() {
  if (!counter.active || !in_kernel()) return;
  Thread& thread = current_thread();
  if (!thread.calls.empty()) thread.calls.pop_back();
}

}  // namespace

BankCount count_banks(const std::function<void()>& run) {
  counter = {};
  counter.active = true;
  on_shared_access = [](const void* to, std::size_t bytes) { access(to, static_cast<unsigned>(bytes), nullptr); };
  run();
  end_block();
  counter.active = false;
  on_shared_access = nullptr;
  return counter.count;
}

std::vector<std::string> worst_places() {
  std::vector<std::pair<std::int64_t, std::string>> found;
  for (const auto& [key, place] : counter.places) {
    if (place.conflicts == 0) continue;
    std::ostringstream text;
    Dl_info where{};
    dladdr(key.first, &where);
    text << place.conflicts << " in " << place.accesses << " accesses of " << key.second << " bytes at +0x" << std::hex
         << static_cast<const char*>(key.first) - static_cast<const char*>(where.dli_fbase);
    found.emplace_back(place.conflicts, text.str());
  }
  std::sort(found.rbegin(), found.rend());
  std::vector<std::string> result;
  for (auto& [conflicts, text] : found) result.push_back(std::move(text));
  return result;
}

}  // namespace lockstep::cuda::testing

using lockstep::cuda::testing::access;
using lockstep::cuda::testing::enter;
using lockstep::cuda::testing::leave;

// What the compiler calls, by the names of ThreadSanitizer's interface.
#define LOCKSTEP_PLACE __builtin_return_address(0)
extern "C" {
void __tsan_init() {}
void __tsan_func_entry(void* call) { enter(call); }
void __tsan_func_exit() { leave(); }
void __tsan_read1(void* at) { access(at, 1, LOCKSTEP_PLACE); }
void __tsan_read2(void* at) { access(at, 2, LOCKSTEP_PLACE); }
void __tsan_read4(void* at) { access(at, 4, LOCKSTEP_PLACE); }
void __tsan_read8(void* at) { access(at, 8, LOCKSTEP_PLACE); }
void __tsan_read16(void* at) { access(at, 16, LOCKSTEP_PLACE); }
void __tsan_write1(void* at) { access(at, 1, LOCKSTEP_PLACE); }
void __tsan_write2(void* at) { access(at, 2, LOCKSTEP_PLACE); }
void __tsan_write4(void* at) { access(at, 4, LOCKSTEP_PLACE); }
void __tsan_write8(void* at) { access(at, 8, LOCKSTEP_PLACE); }
void __tsan_write16(void* at) { access(at, 16, LOCKSTEP_PLACE); }
void __tsan_read_range(void* at, unsigned long bytes) { access(at, static_cast<unsigned>(bytes), LOCKSTEP_PLACE); }
void __tsan_write_range(void* at, unsigned long bytes) { access(at, static_cast<unsigned>(bytes), LOCKSTEP_PLACE); }
void __tsan_vptr_update(void**, void*) {}
void __tsan_vptr_read(void**) {}
// Atomic operations, of kernels on global memory and of the standard library.
std::uint64_t __tsan_atomic64_load(const volatile std::uint64_t* at, int) {
  return __atomic_load_n(at, __ATOMIC_SEQ_CST);
}
std::uint64_t __tsan_atomic64_fetch_add(volatile std::uint64_t* at, std::uint64_t value, int) {
  return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}
std::uint32_t __tsan_atomic32_fetch_add(volatile std::uint32_t* at, std::uint32_t value, int) {
  return __atomic_fetch_add(at, value, __ATOMIC_SEQ_CST);
}
std::uint32_t __tsan_atomic32_exchange(volatile std::uint32_t* at, std::uint32_t value, int) {
  return __atomic_exchange_n(at, value, __ATOMIC_SEQ_CST);
}
int __tsan_atomic32_compare_exchange_strong(volatile std::uint32_t* at, std::uint32_t* expected, std::uint32_t value,
                                            int, int) {
  return __atomic_compare_exchange_n(at, expected, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
}
}
