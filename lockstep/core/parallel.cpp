#include "lockstep/core/parallel.h"

#include <dlfcn.h>
#include <omp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

#include "lockstep/core/cpu_quota.h"
#include "lockstep/core/detail/sanitizer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/static_program.h"
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

// One call's bodies, which lie with its caller: threads come to them under the crew's lock, and with a body that they
// have taken there. Whoever has ended one takes the next before it says so. When all have ended nobody looks here.
struct Bodies {
  Bodies(const std::function<void(int thread)>& called, int number) : body(called), count(number), seats(number - 1) {}

  // The next one; `count` or more where all are taken.
  int take() { return next++; }
  // This one and those that can be taken after it. Whether they were the last to end.
  bool run_from(int taken) {
    for (const int all = count;;) {
      exception.run(body, taken);
      taken = take();
      const bool last = ++ended == all;
      if (taken >= all) return last;
    }
  }
  bool have_ended() const { return ended == count; }

  const std::function<void(int thread)>& body;
  const int count;
  FirstException exception;
  std::atomic<int> next{1}, ended{0};  // the first one is the caller's
  // The crew's, under its lock.
  int seats;  // threads that may still come
  Bodies* following = nullptr;
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

// How many forks lie between the first process and this one. Threads do not follow into a forked one (of Python's
// multiprocessing).
std::uint32_t generation() {
  static std::atomic<std::uint32_t> forks{0};
  static const int watches = pthread_atfork(nullptr, nullptr, [] { ++forks; });
  static_cast<void>(watches);
  return forks;
}

// Threads that run this code until the process ends keep in memory what it lies in, a host's plug-in perhaps, which
// closes it (dlclose).
void keep_this_code() {
  Dl_info self{};
  if (program_is_static() || dladdr(reinterpret_cast<void*>(&keep_this_code), &self) == 0) return;
  dlopen(self.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE);  // refused where it is the program itself
  dlerror();
}

// The process's threads for calls: started as they are wanted, asleep between. An OpenMP region waits at its end for
// every thread, which on a busy machine takes milliseconds where there is nothing left to do for it.
class Crew {
 public:
  static Crew& of_this_process() {
    const std::uint32_t now = generation();
    Crew* crew = present_;
    if (crew == nullptr || crew->generation_ != now) {
      keep_this_code();
      auto made = std::make_unique<Crew>();
      if (present_.compare_exchange_strong(crew, made.get())) crew = made.release();
    }
    return *crew;
  }

  void call(Bodies& bodies) {
    const int others = bodies.count - 1;
    {
      const std::lock_guard lock(mutex_);
      Bodies** last = &waiting_;
      while (*last != nullptr) last = &(*last)->following;
      *last = &bodies;
      wanted_ += static_cast<std::size_t>(others);
      start_threads();
      ++calls_;
    }
    // No more than it takes: all others that sleep would find nothing.
    for (int i = 0; i < others; ++i) come_.notify_one();
    bodies.run_from(0);
    {
      const std::lock_guard lock(mutex_);
      for (Bodies** at = &waiting_; *at != nullptr; at = &(*at)->following) {
        if (*at != &bodies) continue;
        *at = bodies.following;
        break;
      }
    }
    if (!comes_within(kPatience, [&] { return bodies.have_ended(); })) {
      std::unique_lock lock(mutex_);
      ended_.wait(lock, [&] { return bodies.have_ended(); });
    }
    wanted_ -= static_cast<std::size_t>(others);
    bodies.exception.rethrow();
  }

 private:
  // The caller does alone what no thread can be had for.
  void start_threads() {
    try {
      for (; threads_ < wanted_; ++threads_) start_thread([this] { work(); }, "one for a call").detach();
    } catch (const std::exception&) {
    }
  }
  void work() {
    for (std::unique_lock lock(mutex_);;) {
      come_.wait(lock, [this] { return waiting_ != nullptr; });
      Bodies& bodies = *waiting_;
      const int taken = bodies.take();
      if (--bodies.seats == 0 || taken >= bodies.count) waiting_ = bodies.following;
      if (taken >= bodies.count) continue;
      lock.unlock();
      const bool last = bodies.run_from(taken);
      lock.lock();
      if (last) ended_.notify_all();
      if (waiting_ != nullptr) continue;
      // Calls that follow closely need not wake it.
      const std::uint32_t seen = calls_;
      lock.unlock();
      comes_within(kPatience, [&] { return calls_ != seen; });
      lock.lock();
    }
  }

  // Never destroyed: its threads look at it until the process ends. A forked process has one of its own.
  inline static std::atomic<Crew*> present_{nullptr};

  const std::uint32_t generation_ = generation();
  std::mutex mutex_;
  std::condition_variable come_, ended_;
  Bodies* waiting_ = nullptr;  // the first of those that want threads, each with the one that came after it
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
  Bodies bodies(body, threads);
  if (!omp_in_parallel()) return Crew::of_this_process().call(bodies);
  bodies.run_from(0);  // the host's threads have the processors
  bodies.exception.rethrow();
}

// A bound first thread (OMP_PROC_BIND) has one processor, which a thread that it starts would share.
std::thread start_thread(std::function<void()> body, const std::string& expected) {
  const cpu_set_t processors = processors_of_places();
  const BlockedSignals blocked;
  try {
    std::thread thread(std::move(body));
    // Where they cannot be had the thread stays where it is.
    if (CPU_COUNT(&processors) > 0) pthread_setaffinity_np(thread.native_handle(), sizeof processors, &processors);
    return thread;
  } catch (const std::system_error& none) {
    throw Error(ErrorKind::unsupported,
                {"threads", "no other one to be had (" + none.code().message() + ")", expected,
                 "ask for fewer, or raise what limits them (ulimit -u, ulimit -v, a container's pids)"});
  }
}

void Signal::wake() noexcept {
  // A sleeper sees the number that was set, or is seen here.
#ifdef LOCKSTEP_THREAD_SANITIZER  // which knows no fences
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
  const std::chrono::nanoseconds patience;
  const std::uint32_t made_in = generation();
  std::unique_ptr<Member[]> others;
  std::size_t size = 0;  // of others
  FirstException exception;
  alignas(128) Signal calls;
  Call latest{};

  explicit State(int threads)
      : patience(threads > omp_get_num_procs() ? std::chrono::microseconds(0) : kPatience),
        others(std::make_unique<Member[]>(static_cast<std::size_t>(threads - 1))) {
    try {
      for (int thread = 1; thread < threads; ++thread, ++size) {
        Member& member = others[size];
        member.thread =
            start_thread([this, &member, thread] { take_part(member.ended, thread); }, std::to_string(threads));
      }
    } catch (...) {
      end();
      throw;
    }
  }
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

Team::Team(int threads) : state_(std::make_unique<State>(threads)) {}

Team::~Team() { left_behind() ? static_cast<void>(state_.release()) : state_->end(); }

bool Team::left_behind() const noexcept { return state_->made_in != generation(); }

int Team::threads() const noexcept { return static_cast<int>(state_->size) + 1; }

std::chrono::nanoseconds Team::patience() const noexcept { return state_->patience; }

void Team::begin(const Call& call) {
  if (left_behind()) {  // what belongs to threads that are not here stays as it is
    auto fresh = std::make_unique<State>(threads());
    static_cast<void>(state_.release());
    state_ = std::move(fresh);
  }
  state_->begin(call);
}

void Team::join() {
  if (left_behind()) return;
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
