// Errors about the text that the Python package writes for the user, in terms of what the user wrote: arguments. And
// notes, as Python's warnings.
#pragma once

#include <string>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep::python {

// The name such text has instead of a file's.
inline constexpr const char* kArguments = "arguments";

// What the user wrote: arguments alone, or a file with arguments beside it, whose remedies are to be written there.
enum class Source { arguments, file };

// "arguments:7: method.rtol" and "--rtol" become "rtol"; of arguments, "add [time] with span = [0, 1]" becomes
// "give t_span=(0, 1)".
Error in_users_words(const Error& error, Source source = Source::arguments);

// The same of a note.
std::string in_users_words(std::string note, Source source);

// work(), its errors in the user's words.
template <class Work>
auto tell_in_users_words(const Work& work, Source source = Source::arguments) {
  try {
    return work();
  } catch (const Error& error) {
    throw in_users_words(error, source);
  }
}

// What is to be said to people, as Python warnings `stack_level` frames above.
void warn_of(const std::vector<std::string>& notes, int stack_level);

}  // namespace lockstep::python
