// Long work, while somebody looks at Python's signals and tells how far it has come.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>

#include "lockstep/core/run_control.h"

namespace lockstep::python {

// Runs work(control) on a thread of its own. `progress` is None or is called as progress(done, total), a few times a
// second, from this thread. When a signal handler raises (Ctrl-C's KeyboardInterrupt) or `progress` does, the work is
// asked to stop and waited for; the exception is returned, else None. What the work throws is thrown here, but Error
// (cancelled) after such an exception.
nanobind::object run_watched(nanobind::handle progress, const std::function<void(const RunControl& control)>& work);

// The same on this thread, for work that ends soon: a thread takes 50 us to start, and more to wait for. What a signal
// handler raised meanwhile is returned when the work has ended; it tells of no progress.
nanobind::object run_here(const std::function<void(const RunControl& control)>& work);

}  // namespace lockstep::python
