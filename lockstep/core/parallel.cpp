#include "lockstep/core/parallel.h"

#include <omp.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace lockstep {
namespace {

// Keeps the first of the exceptions that bodies throw.
class FirstException {
 public:
  template <class Body>
  void run(const Body& body, int thread) {
    try {
      body(thread);
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!first_) first_ = std::current_exception();
    }
  }
  void rethrow() {
    if (const std::exception_ptr first = std::exchange(first_, nullptr)) std::rethrow_exception(first);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr first_;
};

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Returns once `word` is no longer `old`: looks out for that during `patience`, then sleeps until it is notified.
using Word = std::atomic<std::uint32_t>;
void await_change(const Word& word, std::uint32_t old, std::chrono::nanoseconds patience) {
  using Clock = std::chrono::steady_clock;
  if (word.load() != old) return;
  for (const auto end = Clock::now() + patience; Clock::now() < end;) {
    for (int i = 0; i < 16; ++i, pause()) {
      if (word.load() != old) return;
    }
  }
  while (word.load() == old) word.wait(old);
}

}  // namespace

// omp_get_max_threads() is what OMP_NUM_THREADS says.
int available_threads() { return std::max(1, std::min(omp_get_num_procs(), omp_get_max_threads())); }

void run_on_threads(int threads, const std::function<void(int thread)>& body) {
  if (threads == 1) return body(0);
  FirstException exception;
  // One iteration a thread, whatever number of threads OpenMP grants: the bodies draw from a queue of their own.
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) exception.run(body, thread);
  exception.rethrow();
}

// Each word, and what is read after it, has cache lines of its own: a call costs little more than their way from one
// core to another and back.
struct Team::State {
  struct alignas(128) Member {
    Word ended{0};  // of the calls
    std::thread thread;
  };
  std::chrono::nanoseconds patience{0};
  std::unique_ptr<Member[]> others;
  std::size_t size = 0;  // of others
  FirstException exception;
  alignas(128) Word calls{0};
  Call latest{};

  void begin(const Call& call) {
    latest = call;
    ++calls;
    calls.notify_all();
  }
  void end() {
    begin({});
    for (std::size_t i = 0; i < size; ++i) others[i].thread.join();
  }
  void take_part(Word& ended, int thread) {
    for (std::uint32_t seen = 0;;) {
      await_change(calls, seen, patience);
      if (latest.body == nullptr) return;
      if (thread < latest.count) exception.run([this](int i) { latest.body(latest.object, i); }, thread);
      ended = ++seen;
      ended.notify_one();
    }
  }
};

Team::Team(int threads) : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.patience = std::chrono::microseconds(threads > omp_get_num_procs() ? 0 : 100);
  state.others = std::make_unique<State::Member[]>(static_cast<std::size_t>(threads - 1));
  try {
    for (int thread = 1; thread < threads; ++thread, ++state.size) {
      State::Member& member = state.others[state.size];
      member.thread = std::thread([&state, &member, thread] { state.take_part(member.ended, thread); });
    }
  } catch (...) {  // no thread to be had
    state.end();
    throw;
  }
}

Team::~Team() { state_->end(); }

int Team::threads() const noexcept { return static_cast<int>(state_->size) + 1; }

void Team::call(const Call& call) {
  State& state = *state_;
  const std::uint32_t before = state.calls;
  state.begin(call);
  state.exception.run([&call](int thread) { call.body(call.object, thread); }, 0);
  for (std::size_t i = 0; i < state.size; ++i) await_change(state.others[i].ended, before, state.patience);
  state.exception.rethrow();
}

}  // namespace lockstep
