// What a call that must fail says.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "lockstep/core/error.h"

namespace lockstep::cuda {

// The message of the Error that `work` throws, which must be of this kind; empty where it throws none.
template <class Work>
std::string message_of(const Work& work, ErrorKind kind) {
  try {
    work();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind);
    return error.what();
  }
  return {};
}

}  // namespace lockstep::cuda
