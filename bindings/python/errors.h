// lockstep::Error as Python exceptions: see lockstep/errors.py.
#pragma once

#include <nanobind/nanobind.h>

#include <string>

#include "lockstep/core/error.h"

namespace lockstep::python {

// An array of a kind that cannot be taken as it is: Python's WrongType, a TypeError.
class WrongType : public Error {
 public:
  explicit WrongType(Parts parts) : Error(ErrorKind::invalid_argument, std::move(parts)) {}
};

// Python's own, for what does not fit into memory.
[[noreturn]] void raise_memory_error(const std::string& text);

// The exception of lockstep.errors that an Error becomes.
nanobind::object exception_of(const Error& error);

// From then on every Error thrown through a bound function becomes lockstep.errors' exception of its kind.
void translate_errors();

}  // namespace lockstep::python
