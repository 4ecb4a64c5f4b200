// How far long work has come: a bar with rate and time left on a terminal, a line now and then elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <string>

#include "lockstep/core/run_control.h"

namespace lockstep::cli {

enum class Verbosity { normal, quiet };

inline constexpr std::size_t kMegabyte = 1'000'000;  // bytes

// Writes to standard error, so that results on standard output stay clean.
class Progress {
 public:
  // "solving", "trajectories"
  Progress(std::string what, std::string unit, Verbosity verbosity);
  ~Progress();  // leaves the terminal's line clean
  Progress(const Progress&) = delete;

  // Cheap: most calls return after a look at the clock. One call at a time.
  void update(std::size_t done, std::size_t total);
  // The same with words added at the end, which are asked for only when they are shown.
  void update(std::size_t done, std::size_t total, const std::function<std::string()>& note);
  // Wipes the bar off a terminal, so that a line can be printed there.
  void clear();
  // Work that was done before this program began: not counted in the rate.
  void resume_from(std::size_t done) { before_ = done; }
  // For work that is counted in smaller pieces than the unit shown: `pieces` make one.
  ProgressFunction function(std::size_t pieces = 1) {
    return [this, pieces](std::size_t done, std::size_t total) { update(done / pieces, total / pieces); };
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::string what_;
  std::string unit_;
  Verbosity verbosity_;
  bool terminal_;
  bool line_open_ = false;
  std::size_t before_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point next_;
};

// Of the terminal behind standard error: as it says, else as COLUMNS does, else 80.
std::size_t terminal_columns();
// A line that fits into so many columns: `text` of the longest bar that does, which may be none. What is too long
// without a bar is cut.
std::string fitted_line(std::size_t columns, const std::function<std::string(std::size_t bar_width)>& text);

// The text of one report: "solving [#####.....] 50 %, 5,000 of 10,000 trajectories, 48,000/s, 1.2 s left".
std::string progress_text(const std::string& what, const std::string& unit, std::size_t done, std::size_t total,
                          double seconds, std::size_t bar_width, std::size_t before = 0);

}  // namespace lockstep::cli
