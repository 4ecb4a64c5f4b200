#include "lockstep/cli/interrupt.h"

#include <signal.h>
#include <sys/time.h>
#include <time.h>

#include <array>
#include <atomic>
#include <charconv>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/temporary_names.h"

namespace lockstep::cli {
namespace {

constexpr std::array<int, 7> kSignals{SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGXCPU, SIGALRM};
constexpr int kTimeLimitExitCode = 124;
// Launchers pass a Ctrl-C on to processes that the terminal has sent it to as well.
constexpr std::int64_t kSecondIsMeantAfter = 500'000'000;  // ns

// A handler reaches globals alone, and of them only lock-free atomics.
CancelToken token_of_process;
std::atomic<int> received{0};
std::atomic<std::int64_t> received_at{0};
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<std::int64_t>::is_always_lock_free);
std::array<struct sigaction, kSignals.size()> previous;
struct sigaction previous_file_size;

std::int64_t now() {
  timespec time{};
  ::clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void end_by(int signal) {
  remove_temporary_names();
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

void handle(int signal) {
  int none = 0;
  if (received.compare_exchange_strong(none, signal)) {
    received_at = now();
    token_of_process.request();
  } else if (signal == SIGINT && now() - received_at > kSecondIsMeantAfter) {
    end_by(signal);
  }
}

[[noreturn]] void refuse_time_limit(const std::string& text) {
  throw Error(ErrorKind::invalid_argument,
              {"--time-limit", "\"" + text + "\"", "whole seconds, or MM:SS, HH:MM:SS, D-HH:MM:SS, more than 0", {}});
}

}  // namespace

Interrupt::Interrupt(std::optional<std::chrono::seconds> time_limit) {
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;  // writes in progress go on
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) {
    ::sigaction(kSignals[i], &action, &previous[i]);
    // nohup stays in force.
    if (kSignals[i] == SIGHUP && previous[i].sa_handler == SIG_IGN) ::sigaction(SIGHUP, &previous[i], nullptr);
  }
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &action, &previous_file_size);
  if (time_limit) {
    itimerval timer{};
    timer.it_value.tv_sec = time_limit->count();
    ::setitimer(ITIMER_REAL, &timer, nullptr);
  }
}

Interrupt::~Interrupt() {
  const itimerval none{};
  ::setitimer(ITIMER_REAL, &none, nullptr);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &previous[i], nullptr);
  ::sigaction(SIGXFSZ, &previous_file_size, nullptr);
}

void remove_temporary_files_when_killed() {
  struct sigaction action {};
  action.sa_handler = end_by;
  sigemptyset(&action.sa_mask);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction before {};
    if (::sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL)
      ::sigaction(signal, &action, nullptr);
  }
}

const CancelToken& Interrupt::token() const { return token_of_process; }

int Interrupt::exit_code() const {
  const int signal = received.load();
  if (signal == SIGALRM) return kTimeLimitExitCode;
  return signal == 0 ? 0 : 128 + signal;
}

std::chrono::seconds parse_time_limit(const std::string& text) {
  std::vector<std::int64_t> parts;
  bool days = false;
  for (const char* at = text.data(); at < text.data() + text.size();) {
    std::int64_t part = 0;
    const auto [next, error] = std::from_chars(at, text.data() + text.size(), part);
    if (error != std::errc() || part < 0 || part > 100'000'000) refuse_time_limit(text);
    parts.push_back(part);
    at = next;
    if (at == text.data() + text.size()) break;
    if (*at == '-' && parts.size() == 1) {
      days = true;
    } else if (*at != ':') {
      refuse_time_limit(text);
    }
    if (++at == text.data() + text.size()) refuse_time_limit(text);
  }
  if (parts.empty() || parts.size() > (days ? 4U : 3U) || (days && parts.size() != 4)) refuse_time_limit(text);
  std::int64_t seconds = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) seconds = seconds * 60 + parts[i];
  if (days) seconds = ((parts[0] * 24 + parts[1]) * 60 + parts[2]) * 60 + parts[3];
  if (seconds == 0) refuse_time_limit(text);
  return std::chrono::seconds(seconds);
}

}  // namespace lockstep::cli
