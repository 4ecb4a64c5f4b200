// Asked to stop, by Ctrl-C, a queue or a time limit: the work ends early and keeps what is finished.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lockstep/core/run_control.h"

namespace lockstep::cli {

// While it lives, SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU request cancellation (what terminals and
// batch queues send before they kill), and so does the end of the time limit. A second SIGINT, half a second later or
// more, ends the program. A file that outgrows its limit is an error of the write, not a signal (SIGXFSZ). One at a
// time in a program.
class Interrupt {
 public:
  explicit Interrupt(std::optional<std::chrono::seconds> time_limit = {});
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;

  const CancelToken& token() const;
  // What a shell reports for a program ended by the signal that came: 130 for SIGINT, 143 for SIGTERM; 124 for the time
  // limit, as timeout(1) does; 0 for none.
  int exit_code() const;
};

// Where nobody asks an Interrupt, SIGINT, SIGTERM and SIGHUP end the program, and its temporary files go first.
void remove_temporary_files_when_killed();

// "90", "45:00", "12:30:00", "2-00:00:00": seconds, minutes, hours, days. Throws Error (invalid_argument).
std::chrono::seconds parse_time_limit(const std::string& text);

}  // namespace lockstep::cli
