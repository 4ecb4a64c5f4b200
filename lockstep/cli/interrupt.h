// Ctrl-C: the first asks the work to stop and keep what is finished, the second ends the program.
#pragma once

#include "lockstep/core/run_control.h"

namespace lockstep::cli {

// While it lives, SIGINT and SIGTERM request cancellation; a second one of either acts as it would have without us.
// One at a time in a program.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;

  const CancelToken& token() const;
  // What a shell reports for a program ended by the signal that came: 130 for SIGINT, 143 for SIGTERM; 0 for none.
  int exit_code() const;
};

}  // namespace lockstep::cli
