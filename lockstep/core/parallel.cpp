#include "lockstep/core/parallel.h"

#include <omp.h>
#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/core/cpu_quota.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/thread_count.h"

namespace lockstep {
namespace {

// Keeps the first of the exceptions that bodies throw.
class FirstException {
 public:
  template <class Body>
  void run(const Body& body, int thread) {
    const StandardArithmetic arithmetic;  // a thread has an environment of its own
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

// A pause takes tens of nanoseconds, more than a change that is on its way: the first looks go without.
constexpr int kEager = 1000;
void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// OpenMP's threads do not follow a process through fork() (Python's multiprocessing), but it waits for them there.
std::atomic<bool> is_forked{false};
[[maybe_unused]] const int watches_forks = pthread_atfork(nullptr, nullptr, [] { is_forked = true; });

void run_on_new_threads(int threads, const std::function<void(int thread)>& body) {
  FirstException exception;
  {
    std::vector<std::jthread> others;
    others.reserve(static_cast<std::size_t>(threads - 1));
    for (int thread = 1; thread < threads; ++thread) {
      others.emplace_back([&exception, &body, thread] { exception.run(body, thread); });
    }
    exception.run(body, 0);
  }
  exception.rethrow();
}

}  // namespace

// omp_get_max_threads() is what OMP_NUM_THREADS says.
int available_threads() {
  static const double quota = std::ceil(cpu_quota().value_or(omp_get_num_procs()));
  return std::max(1, std::min({omp_get_num_procs(), omp_get_max_threads(), static_cast<int>(std::min(quota, 1e6))}));
}

int chosen_threads(int threads, const char* field) {
  require_thread_count(threads, field);
  return threads == 0 ? available_threads() : threads;
}

void run_on_threads(int threads, const std::function<void(int thread)>& body) {
  const StandardArithmetic arithmetic;
  if (threads == 1) return body(0);
  if (is_forked) return run_on_new_threads(threads, body);
  FirstException exception;
  // One iteration a thread, whatever number of threads OpenMP grants: the bodies draw from a queue of their own.
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) exception.run(body, thread);
  exception.rethrow();
}

void Signal::wake() noexcept {
  // A sleeper sees the number that was set, or is seen here.
#if defined(__SANITIZE_THREAD__)  // which knows no fences
  number_.fetch_add(0);
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
  if (sleepers_.load(std::memory_order_relaxed) != 0) number_.notify_all();
}

void Signal::await_change(std::uint32_t old, std::chrono::nanoseconds patience) const {
  using Clock = std::chrono::steady_clock;
  for (int i = 0; i < kEager; ++i) {
    if (number() != old) return;
  }
  for (const auto end = Clock::now() + patience; Clock::now() < end;) {
    for (int i = 0; i < 16; ++i, pause()) {
      if (number() != old) return;
    }
  }
  ++sleepers_;
  while (number() == old) number_.wait(old);
  --sleepers_;
}

// Each signal, and what is read after it, has cache lines of its own: a call costs little more than their way from one
// core to another and back.
struct Team::State {
  struct alignas(128) Member {
    Signal ended;  // calls
    std::thread thread;
  };
  std::chrono::nanoseconds patience{0};
  std::unique_ptr<Member[]> others;
  std::size_t size = 0;  // of others
  FirstException exception;
  alignas(128) Signal calls;
  Call latest{};

  void begin(const Call& call) {
    latest = call;
    calls.set(calls.number() + 1);
    calls.wake();
  }
  void end() {
    begin({});
    for (std::size_t i = 0; i < size; ++i) others[i].thread.join();
  }
  void take_part(Signal& ended, int thread) {
    for (std::uint32_t seen = 0;;) {
      calls.await_change(seen, patience);
      if (latest.body == nullptr) return;
      if (thread < latest.count) exception.run([this](int i) { latest.body(latest.object, i); }, thread);
      ended.set(++seen);
      ended.wake();
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

std::chrono::nanoseconds Team::patience() const noexcept { return state_->patience; }

void Team::begin(const Call& call) { state_->begin(call); }

void Team::join() {
  State& state = *state_;
  const std::uint32_t before = state.calls.number() - 1;
  for (std::size_t i = 0; i < state.size; ++i) state.others[i].ended.await_change(before, state.patience);
  state.exception.rethrow();
}

void Team::call(const Call& call) {
  if (call.count == 1) {
    const StandardArithmetic arithmetic;
    return call.body(call.object, 0);
  }
  begin(call);
  state_->exception.run([&call](int thread) { call.body(call.object, thread); }, 0);
  join();
}

}  // namespace lockstep
