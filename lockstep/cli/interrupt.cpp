#include "lockstep/cli/interrupt.h"

#include <signal.h>

#include <array>
#include <atomic>

namespace lockstep::cli {
namespace {

constexpr std::array<int, 2> kSignals{SIGINT, SIGTERM};

// A handler reaches globals alone, and of them only lock-free atomics.
CancelToken token_of_process;
std::atomic<int> received{0};
std::array<struct sigaction, kSignals.size()> previous;

void handle(int signal) {
  if (received.exchange(signal) == 0) {
    token_of_process.request();
    return;
  }
  ::signal(signal, SIG_DFL);
  ::raise(signal);
}

}  // namespace

Interrupt::Interrupt() {
  struct sigaction action {};
  action.sa_handler = handle;
  action.sa_flags = SA_RESTART;  // writes in progress go on
  sigemptyset(&action.sa_mask);
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &action, &previous[i]);
}

Interrupt::~Interrupt() {
  for (std::size_t i = 0; i < kSignals.size(); ++i) ::sigaction(kSignals[i], &previous[i], nullptr);
}

const CancelToken& Interrupt::token() const { return token_of_process; }

int Interrupt::exit_code() const {
  const int signal = received.load();
  return signal == 0 ? 0 : 128 + signal;
}

}  // namespace lockstep::cli
