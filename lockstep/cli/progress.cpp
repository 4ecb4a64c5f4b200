#include "lockstep/cli/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

constexpr std::chrono::milliseconds kTerminalInterval{100};
constexpr std::chrono::seconds kLineInterval{5};
constexpr std::size_t kLongestBar = 30, kShortestBar = 4;
constexpr const char* kClearLine = "\r\033[K";

// Of UTF-8.
std::size_t characters(const std::string& text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (c & 0xc0) != 0x80; }));
}

bool is_terminal() {
  const char* kind = std::getenv("TERM");
  return ::isatty(STDERR_FILENO) == 1 && (kind == nullptr || std::string_view(kind) != "dumb");
}

}  // namespace

std::size_t terminal_columns() {
  winsize size{};
  if (::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  constexpr std::size_t kUsual = 80;
  const char* const given = std::getenv("COLUMNS");
  if (given == nullptr) return kUsual;
  const std::string_view text(given);
  std::size_t columns = 0;
  const auto [end, error] = std::from_chars(text.begin(), text.end(), columns);
  return error == std::errc() && end == text.end() && columns > 0 ? columns : kUsual;
}

std::string fitted_line(std::size_t columns, const std::function<std::string(std::size_t bar_width)>& text) {
  constexpr std::size_t kFrame = 3;                                // " [" and "]"
  const std::size_t room = std::max<std::size_t>(columns, 2) - 1;  // a line of all columns may wrap
  std::string bare = text(0);
  const std::size_t taken = characters(bare) + kFrame;
  if (room >= taken + kShortestBar) return text(std::min(room - taken, kLongestBar));
  return shortened(bare, room);
}

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
  const std::string added = note ? ", " + note() : "";
  const auto with_bar = [&](std::size_t bar_width) {
    return progress_text(what_, unit_, std::min(done, total), total, seconds, bar_width, before_) + added;
  };
  const std::string text = terminal_ ? fitted_line(terminal_columns(), with_bar) : with_bar(0);
  std::fputs((terminal_ ? kClearLine + text : text + "\n").c_str(), stderr);
  std::fflush(stderr);
  line_open_ = terminal_;
}

}  // namespace lockstep::cli
