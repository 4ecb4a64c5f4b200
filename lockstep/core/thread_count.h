// How many threads a caller asks for, one rule for every call that takes a number of them.
#pragma once

namespace lockstep {

// 0: available_threads(). Throws Error (invalid_argument) naming the field for less than 0 and for more than 4096.
int chosen_threads(int threads, const char* field = "threads");

}  // namespace lockstep
