// Errors about the text that the Python package writes for the user, in terms of what the user wrote: arguments.
#pragma once

#include <string>

#include "lockstep/core/error.h"

namespace lockstep::python {

// The name such text has instead of a file's.
inline constexpr const char* kArguments = "arguments";

// "arguments:7: method.rtol" and "--rtol" become "rtol".
Error in_users_words(const Error& error);

// work(), its errors in the user's words.
template <class Work>
auto tell_in_users_words(const Work& work) {
  try {
    return work();
  } catch (const Error& error) {
    throw in_users_words(error);
  }
}

}  // namespace lockstep::python
