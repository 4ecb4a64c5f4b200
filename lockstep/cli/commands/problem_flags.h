// The flags that override fields of a problem file, shared by `solve` and `explain`.
#pragma once

#include "lockstep/cli/problem_file.h"

namespace CLI {
class App;
}

namespace lockstep::cli {

// The overrides must outlive the parsing.
void add_problem_flags(CLI::App& command, ProblemOverrides& overrides);

}  // namespace lockstep::cli
