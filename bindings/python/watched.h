// Long work on a thread of its own, while this one, which holds Python's lock now and then, looks at signals and tells
// how far the work has come.
#pragma once

#include <nanobind/nanobind.h>

#include <functional>

#include "lockstep/core/run_control.h"

namespace lockstep::python {

// Runs work(control). `progress` is None or is called as progress(done, total), a few times a second, from this thread.
// When a signal handler raises (Ctrl-C's KeyboardInterrupt) or `progress` does, the work is asked to stop and waited
// for; the exception is returned, else None. What the work throws is thrown here, but Error (cancelled) after such an
// exception.
nanobind::object run_watched(nanobind::handle progress, const std::function<void(const RunControl& control)>& work);

}  // namespace lockstep::python
