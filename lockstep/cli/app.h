// The command line as a whole: from arguments to an exit code, every failure one line on standard error.
#pragma once

namespace lockstep::cli {

int run_app(int argc, const char* const* argv);

}  // namespace lockstep::cli
