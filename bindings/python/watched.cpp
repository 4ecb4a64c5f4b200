#include "bindings/python/watched.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

constexpr std::chrono::milliseconds kLook(50);  // how long Ctrl-C may wait to be seen

// What both threads know.
struct Shared {
  CancelToken cancel;
  std::atomic<std::size_t> done{0}, total{0};
  std::mutex mutex;
  std::condition_variable changed;
  bool finished = false;
  std::exception_ptr failure;
};

// Looks at Python's signals, and tells of progress. Throws nb::python_error.
void look(const Shared& shared, nb::handle progress, std::size_t& told) {
  if (PyErr_CheckSignals() != 0) throw nb::python_error();
  const std::size_t done = shared.done.load();
  if (progress.is_none() || done == told) return;
  told = done;
  progress(done, shared.total.load());
}

}  // namespace

nb::object run_watched(nb::handle progress, const std::function<void(const RunControl& control)>& work) {
  Shared shared;
  const auto run = [&] {
    try {
      work({&shared.cancel, [&shared](std::size_t done, std::size_t total) {
              shared.total.store(total);
              shared.done.store(done);
            }});
    } catch (...) {
      shared.failure = std::current_exception();
    }
    const std::lock_guard lock(shared.mutex);
    shared.finished = true;
    shared.changed.notify_one();
  };
  std::thread worker = start_thread(run, "one beside Python's own");
  nb::object stopped = nb::none();
  std::size_t told = 0;
  for (bool finished = false; !finished;) {
    {
      const nb::gil_scoped_release others_may_run;
      std::unique_lock lock(shared.mutex);
      finished = shared.changed.wait_for(lock, kLook, [&] { return shared.finished; });
    }
    if (!stopped.is_none()) continue;
    try {
      look(shared, progress, told);
    } catch (const nb::python_error& error) {
      stopped = nb::borrow(error.value());
      shared.cancel.request();
    }
  }
  worker.join();
  if (!shared.failure) return stopped;
  try {
    std::rethrow_exception(shared.failure);
  } catch (const Error& error) {
    if (stopped.is_none() || error.kind() != ErrorKind::cancelled) throw;
  }
  return stopped;
}

nb::object run_here(const std::function<void(const RunControl& control)>& work) {
  {
    const nb::gil_scoped_release others_may_run;
    work({});
  }
  if (PyErr_CheckSignals() == 0) return nb::none();
  const nb::python_error error;
  return nb::borrow(error.value());
}

}  // namespace lockstep::python
