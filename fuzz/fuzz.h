// What the fuzz targets share: bytes come in, a reader runs, and nothing but lockstep::Error may come out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "lockstep/core/error.h"

namespace lockstep::fuzz {

// Calls read(); an Error with a message is the reader's right answer to damaged bytes, any other exception a finding.
template <class Read>
int expect_result_or_error(const Read& read) {
  try {
    read();
  } catch (const Error& error) {
    if (std::string(error.what()).empty()) std::abort();
  }
  return 0;
}

}  // namespace lockstep::fuzz
