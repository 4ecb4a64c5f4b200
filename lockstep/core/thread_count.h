// How many threads a caller asks for, one rule for every call that takes a number of them.
#pragma once

namespace lockstep {

inline constexpr int kMostThreads = 4096;

// Throws Error (invalid_argument) naming the field for less than 0 and for more than kMostThreads; 0 asks for all.
void require_thread_count(int threads, const char* field = "threads");
// The same, and 0 is available_threads().
int chosen_threads(int threads, const char* field = "threads");

}  // namespace lockstep
