// Threads for one call, and threads kept for a loop of short ones. No global state.
#pragma once

#include <functional>
#include <memory>

namespace lockstep {

// Hardware threads this process may use (its affinity mask and OMP_NUM_THREADS count), at least 1.
int available_threads();

// Runs body(0) .. body(threads - 1), each on a thread of its own (one of them the caller's), and waits for
// all. The first exception thrown is rethrown here after every body has ended. threads >= 1.
void run_on_threads(int threads, const std::function<void(int thread)>& body);

// Threads kept from call to call, for loops whose calls take microseconds. Between calls that follow each other closely
// they look out for the next one, which then costs a fraction of a microsecond; after 0.1 ms without one they sleep,
// and where the team outnumbers the processors at once.
class Team {
 public:
  // Starts threads - 1 of them; the caller of run() is the other. threads >= 1.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int threads() const noexcept;
  // body(0) .. body(count - 1) as run_on_threads, 1 <= count <= threads(); thread i runs body(i) in every call. One
  // call at a time, and none from within a body.
  template <class Body>
  void run(int count, const Body& body) {
    call({&body, [](const void* object, int thread) { (*static_cast<const Body*>(object))(thread); }, count});
  }

 private:
  struct Call {
    const void* object;
    void (*body)(const void* object, int thread);  // null: the team ends
    int count;
  };
  struct State;
  void call(const Call& call);
  std::unique_ptr<State> state_;
};

}  // namespace lockstep
