#include "lockstep/cli/standstill_notes.h"

#include "lockstep/cli/text.h"

namespace lockstep::cli {

std::vector<std::string> standstill_notes(const ode::EndSample& ends, const ode::Options& options,
                                          const std::vector<std::string>& names) {
  std::vector<std::string> notes;
  for (const ode::Standstill& one : ends.standstills(options)) {
    notes.push_back("float32 holds " + names.at(one.component) + " still at " + rounded_text(one.state, 6) +
                    ": a step of " + rounded_text(one.step, 2) + " adds " + rounded_text(one.rate * one.step, 2) +
                    ", less than half the spacing of float32 there (" + rounded_text(one.spacing, 2) + "), and " +
                    rounded_text(one.lost, 2) +
                    " in all is lost: take precision f64, or let the component be the "
                    "deviation from what is large");
  }
  return notes;
}

}  // namespace lockstep::cli
