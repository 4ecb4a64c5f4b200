// For tests: what a call that must fail says.
#pragma once

#include <string>

#include "lockstep/core/error.h"

namespace lockstep {

// The message of the Error that `work` throws; "no error" where it throws none.
template <class Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

// The same of an Error that must be of this kind.
template <class Work>
std::string message_of(const Work& work, ErrorKind kind) {
  try {
    work();
  } catch (const Error& error) {
    return error.kind() == kind ? error.what() : std::string("an error of another kind: ") + error.what();
  }
  return "no error";
}

}  // namespace lockstep
