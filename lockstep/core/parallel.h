// Threads for one call, and threads kept for a loop of short ones.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>

namespace lockstep {

// Hardware threads this process may use (its affinity mask, its container's limit and OMP_NUM_THREADS count), at
// least 1.
int available_threads();

// Runs body(0) .. body(threads - 1), each once, and waits for all: body(0) on the caller's thread, the others on
// threads that the process keeps, or on the caller's where those have not begun when it has ended its own. Bodies draw
// from a common queue, then, and do not wait for one another. The first exception thrown is rethrown here after every
// body has ended. threads >= 1. From within an OpenMP region of the host the caller runs all. After a fork() it goes on
// in the child. Allocates nothing but for threads that it starts, which then keep the library that holds this in memory
// (dlclose leaves it there).
void run_on_threads(int threads, const std::function<void(int thread)>& body);

// A thread that takes no signals, which are for the host's own, and runs on every processor that OpenMP's may. Error
// (unsupported) where the system has none left, saying what was `expected`: "one that writes the file".
std::thread start_thread(std::function<void()> body, const std::string& expected);

// Begins to bring a cache line here that will be written, away from other cores that have read it.
inline void bring_to_write(const void* line) noexcept {
#if defined(__x86_64__)
  // The compiler's own only fetches a copy unless told of processors that know this; to those that do not it is
  // nothing.
  asm volatile("prefetchw %0" : : "m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}

// A number that one thread sets and others wait for. It wants a cache line that no other thread writes; what is read
// together with it may lie beside it.
class Signal {
 public:
  std::uint32_t number() const noexcept { return number_.load(); }
  // Who sees the number sees all that was written before. Those asleep do not, until wake().
  void set(std::uint32_t number) noexcept { number_.store(number, std::memory_order_release); }
  // Waits for what was set to have left this core: some other work before it makes that cheap.
  void wake() noexcept;
  // Returns once the number is no longer `old`: looks out for that during `patience`, then sleeps.
  void await_change(std::uint32_t old, std::chrono::nanoseconds patience) const;
  // Begins to bring the number here, to be set.
  void bring() const noexcept { bring_to_write(&number_); }

 private:
  std::atomic<std::uint32_t> number_{0};
  mutable std::atomic<std::uint32_t> sleepers_{0};
};

// Threads kept from call to call, for loops whose calls take microseconds. Between calls that follow each other closely
// they look out for the next one, which then costs a fraction of a microsecond; after 0.1 ms without one they sleep,
// and where the team outnumbers the processors at once.
class Team {
 public:
  // Starts threads - 1 of them; the caller of run() is the other. threads >= 1. Error (unsupported) where the system
  // has none left.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int threads() const noexcept;
  std::chrono::nanoseconds patience() const noexcept;  // as long as its threads look out before they sleep
  // This process was forked from the one that has the team's threads: the next call starts them anew. What they were at
  // there may be half done here, and join() waits for nobody.
  bool left_behind() const noexcept;
  // body(0) .. body(count - 1) as run_on_threads, 1 <= count <= threads(); thread i runs body(i) in every call. One
  // call at a time, and none from within a body.
  template <class Body>
  void run(int count, const Body& body) {
    call(call_of(count, body));
  }
  // The same in two parts: body(1) .. body(count - 1) begin, and the caller goes on with what it likes until join(),
  // which waits for them. `body` lives that long; no other call comes between.
  template <class Body>
  void start(int count, const Body& body) {
    begin(call_of(count, body));
  }
  void join();

 private:
  struct Call {
    const void* object;
    void (*body)(const void* object, int thread);  // null: the team ends
    int count;
  };
  template <class Body>
  static Call call_of(int count, const Body& body) {
    return {&body, [](const void* object, int thread) { (*static_cast<const Body*>(object))(thread); }, count};
  }
  struct State;
  void call(const Call& call);
  void begin(const Call& call);
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
