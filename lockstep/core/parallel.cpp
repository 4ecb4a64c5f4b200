#include "lockstep/core/parallel.h"

#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <deque>
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

// How long threads look out for what comes before they sleep.
constexpr std::chrono::microseconds kPatience{100};

// Whether it came.
template <class HasCome>
bool comes_within(std::chrono::nanoseconds patience, const HasCome& has_come) {
  using Clock = std::chrono::steady_clock;
  for (const auto end = Clock::now() + patience; Clock::now() < end;) {
    for (int i = 0; i < 16; ++i, pause()) {
      if (has_come()) return true;
    }
  }
  return false;
}

// One call's bodies: who comes takes the next one. Who comes when all are taken leaves again, and nobody waits for
// that.
struct Bodies {
  Bodies(const std::function<void(int thread)>& called, int number) : body(&called), count(number) {}

  // The first one is the caller's.
  void take_from_first() {
    exception.run(*body, 0);
    take_all();
  }
  void take_all() {
    for (int i = next++; i < count; i = next++) {
      exception.run(*body, i);
      if (++ended == count - 1) ended.notify_all();
    }
  }
  // Those that others have taken.
  void await_end() const {
    if (comes_within(kPatience, [this] { return ended == count - 1; })) return;
    for (int seen = ended; seen != count - 1; seen = ended) ended.wait(seen);
  }

  const std::function<void(int thread)>* body;  // the caller's: looked at by who has taken one
  int count;
  FirstException exception;
  std::atomic<int> next{1}, ended{0};  // of bodies 1 .. count - 1
};

// All that OpenMP's threads may run on; none where it binds none.
cpu_set_t processors_of_places() {
  cpu_set_t processors;
  CPU_ZERO(&processors);
  for (int place = 0; place < omp_get_num_places(); ++place) {
    std::vector<int> ids(static_cast<std::size_t>(omp_get_place_num_procs(place)));
    omp_get_place_proc_ids(place, ids.data());
    for (const int id : ids) {
      if (id >= 0 && id < CPU_SETSIZE) CPU_SET(id, &processors);
    }
  }
  return processors;
}

// Of the calling thread and those that it starts, but for faults of its own.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) sigdelset(&all, fault);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_;
};

// A thread that takes no signals, which are for the host's own threads, and is not bound: a bound first thread
// (OMP_PROC_BIND) has one processor, which a thread that it starts would share. All that throws comes before it runs.
template <class F>
std::thread started(F body) {
  const cpu_set_t processors = processors_of_places();
  const BlockedSignals blocked;
  std::thread thread(std::move(body));
  // Where they cannot be had the thread stays where it is.
  if (CPU_COUNT(&processors) > 0) pthread_setaffinity_np(thread.native_handle(), sizeof processors, &processors);
  return thread;
}

// The process's threads for calls: started as they are wanted, asleep between. An OpenMP region waits at its end for
// every thread, which on a busy machine takes milliseconds where there is nothing left to do for it.
class Crew {
 public:
  static Crew& of_this_process() {
    static const int watches_forks = pthread_atfork(nullptr, nullptr, [] { present_ = nullptr; });
    static_cast<void>(watches_forks);
    Crew* crew = present_;
    if (crew == nullptr) {
      auto made = std::make_unique<Crew>();
      if (present_.compare_exchange_strong(crew, made.get())) crew = made.release();
    }
    return *crew;
  }

  void call(const std::shared_ptr<Bodies>& bodies) {
    const auto others = static_cast<std::size_t>(bodies->count - 1);
    {
      const std::lock_guard lock(mutex_);
      waiting_.insert(waiting_.end(), others, bodies);
      wanted_ += others;
      start_threads();
      ++calls_;
    }
    // No more than it takes: all others that sleep would find nothing.
    for (std::size_t i = 0; i < others; ++i) come_.notify_one();
    bodies->take_from_first();
    {
      const std::lock_guard lock(mutex_);
      std::erase(waiting_, bodies);
    }
    bodies->await_end();
    wanted_ -= others;
    bodies->exception.rethrow();
  }

 private:
  // The caller does alone what no thread can be had for.
  void start_threads() {
    try {
      for (; threads_ < wanted_; ++threads_) started([this] { work(); }).detach();
    } catch (...) {
    }
  }
  void work() {
    for (std::unique_lock lock(mutex_);;) {
      come_.wait(lock, [this] { return !waiting_.empty(); });
      std::shared_ptr<Bodies> bodies = std::move(waiting_.front());
      waiting_.pop_front();
      lock.unlock();
      bodies->take_all();
      bodies.reset();
      lock.lock();
      if (!waiting_.empty()) continue;
      // Calls that follow closely need not wake it.
      const std::uint32_t seen = calls_;
      lock.unlock();
      comes_within(kPatience, [&] { return calls_ != seen; });
      lock.lock();
    }
  }

  // Never destroyed: its threads look at it until the process ends. Null before the first call, and in a forked process
  // (Python's multiprocessing), which threads do not follow.
  inline static std::atomic<Crew*> present_{nullptr};

  std::mutex mutex_;
  std::condition_variable come_;
  std::deque<std::shared_ptr<Bodies>> waiting_;  // once for each thread that a call wants
  std::size_t threads_ = 0;
  std::atomic<std::size_t> wanted_{0};  // threads, by the calls of this moment
  std::atomic<std::uint32_t> calls_{0};
};

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
  const auto bodies = std::make_shared<Bodies>(body, threads);
  if (!omp_in_parallel()) return Crew::of_this_process().call(bodies);
  bodies->take_from_first();  // the host's threads have the processors
  bodies->exception.rethrow();
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
  for (int i = 0; i < kEager; ++i) {
    if (number() != old) return;
  }
  if (comes_within(patience, [&] { return number() != old; })) return;
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
  state.patience = threads > omp_get_num_procs() ? std::chrono::microseconds(0) : kPatience;
  state.others = std::make_unique<State::Member[]>(static_cast<std::size_t>(threads - 1));
  try {
    for (int thread = 1; thread < threads; ++thread, ++state.size) {
      State::Member& member = state.others[state.size];
      member.thread = started([&state, &member, thread] { state.take_part(member.ended, thread); });
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
