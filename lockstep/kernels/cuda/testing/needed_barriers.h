// Whether each barrier of a kernel is needed, and its absence seen: for programs built with ThreadSanitizer, which end
// at the first race with exit code 66.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>

#include "lockstep/kernels/cuda/testing/block_simulator.h"

namespace lockstep::cuda::testing {

// `run` simulates a kernel, perhaps on several inputs. With all of its barriers there is no race; each of them that
// orders nothing leaves one.
template <class Run>
void expect_every_barrier_to_be_needed(const Run& run) {
  barriers_met();
  run();
  const std::vector<std::string> barriers = barriers_met();
  EXPECT_FALSE(barriers.empty());
  for (const std::string& where : barriers) {
    SCOPED_TRACE(where);
    EXPECT_EXIT((loosen_barrier(where), run(), std::exit(0)), ::testing::ExitedWithCode(66), "data race");
  }
}

}  // namespace lockstep::cuda::testing
