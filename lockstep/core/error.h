// Errors a caller can act on: each names the field, what was found, what was expected and what to do.
#pragma once

#include <stdexcept>
#include <string>

#include "lockstep/core/cpp20.h"

namespace lockstep {

enum class ErrorKind {
  invalid_argument,  // a value the caller gave is unusable
  model,             // a model file or description cannot be used
  file,              // reading or writing a file failed
  unsupported,       // valid, but not available in this build or on this machine
  cancelled,         // stopped at the caller's request
};

// The message reads "FIELD: found FOUND, expected EXPECTED; REMEDY", parts that are empty left out, control
// characters in it as \xNN (the parts themselves stay as given).
// The library throws this type only (and std::bad_alloc); it never prints and never aborts.
class Error : public std::runtime_error {
 public:
  struct Parts {
    std::string field;     // what the value is called where the user wrote it: "options.rtol", "0.weight"
    std::string found;     // the offending value
    std::string expected;  // what would have been accepted
    std::string remedy;    // what to do, starting with a verb
  };

  Error(ErrorKind kind, Parts parts);

  ErrorKind kind() const noexcept { return kind_; }
  const std::string& field() const noexcept { return parts_.field; }
  const std::string& found() const noexcept { return parts_.found; }
  const std::string& expected() const noexcept { return parts_.expected; }
  const std::string& remedy() const noexcept { return parts_.remedy; }

 private:
  ErrorKind kind_;
  Parts parts_;
};

}  // namespace lockstep
