#include "lockstep/cli/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

constexpr std::chrono::milliseconds kTerminalInterval{100};
constexpr std::chrono::seconds kLineInterval{5};
constexpr std::size_t kBarWidth = 30;
constexpr const char* kClearLine = "\r\033[K";

bool is_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

}  // namespace

std::string progress_text(const std::string& what, const std::string& unit, std::size_t done, std::size_t total,
                          double seconds, std::size_t bar_width, std::size_t before) {
  const double part = total == 0 ? 1 : static_cast<double>(done) / static_cast<double>(total);
  std::string text = what;
  if (bar_width > 0) {
    const auto filled = static_cast<std::size_t>(part * static_cast<double>(bar_width));
    text += " [" + std::string(filled, '#') + std::string(bar_width - filled, '.') + "]";
  }
  text += " " + std::to_string(static_cast<int>(100 * part)) + " %, " + count_text(done) + " of " + count_text(total) +
          " " + unit;
  if (done > before && seconds > 0) {
    const double rate = static_cast<double>(done - before) / seconds;
    text += ", " + rate_text(rate) + "/s";
    if (done < total) text += ", " + seconds_text(static_cast<double>(total - done) / rate) + " left";
  }
  return text;
}

Progress::Progress(std::string what, std::string unit, Verbosity verbosity)
    : what_(std::move(what)),
      unit_(std::move(unit)),
      verbosity_(verbosity),
      terminal_(is_terminal()),
      next_(start_ + (terminal_ ? Clock::duration(kTerminalInterval) : Clock::duration(kLineInterval))) {}

Progress::~Progress() { clear(); }

void Progress::clear() {
  if (line_open_) std::fputs(kClearLine, stderr);
  line_open_ = false;
}

void Progress::update(std::size_t done, std::size_t total) { update(done, total, {}); }

void Progress::update(std::size_t done, std::size_t total, const std::function<std::string()>& note) {
  const Clock::time_point now = Clock::now();
  if (verbosity_ == Verbosity::quiet || now < next_) return;
  next_ = now + (terminal_ ? Clock::duration(kTerminalInterval) : Clock::duration(kLineInterval));
  const double seconds = std::chrono::duration<double>(now - start_).count();
  std::string text =
      progress_text(what_, unit_, std::min(done, total), total, seconds, terminal_ ? kBarWidth : 0, before_);
  if (note) text += ", " + note();
  std::fputs((terminal_ ? kClearLine + text : text + "\n").c_str(), stderr);
  std::fflush(stderr);
  line_open_ = terminal_;
}

}  // namespace lockstep::cli
