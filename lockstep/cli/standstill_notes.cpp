#include "lockstep/cli/standstill_notes.h"

#include <algorithm>
#include <utility>

#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

std::string small_text(const std::vector<ode::SmallComponent>& components, const std::vector<std::string>& names) {
  constexpr std::size_t kMostNamed = 3;
  if (components.empty()) return {};
  std::string of, atol;
  for (std::size_t i = 0; i < std::min(kMostNamed, components.size()); ++i) {
    const ode::SmallComponent& one = components[i];
    of += (i == 0 ? "" : "; ") + names.at(one.component) + ", never above " + rounded_text(one.largest, 2) +
          ", has an absolute tolerance of " + rounded_text(one.atol, 2);
    atol += (i == 0 ? "" : ", ") + rounded_text(1e-6 * one.largest, 1) + " for " + names.at(one.component);
  }
  if (components.size() > kMostNamed) of += "; and " + std::to_string(components.size() - kMostNamed) + " more";
  return "steps mind no error that is smaller than atol, and what is smaller itself comes out as anything: " + of +
         "; take a smaller atol (a list has one for each component), say " + atol;
}

}  // namespace

std::vector<std::string> standstill_notes(const ode::EndSample& ends, const std::vector<std::string>& names) {
  std::vector<std::string> notes;
  for (const ode::Standstill& one : ends.standstills()) {
    notes.push_back("float32 holds " + names.at(one.component) + " still at " + rounded_text(one.state, 6) +
                    ": a step of " + rounded_text(one.step, 2) + " adds " + rounded_text(one.rate * one.step, 2) +
                    ", less than half the spacing of float32 there (" + rounded_text(one.spacing, 2) + "), and " +
                    rounded_text(one.lost, 2) +
                    " in all is lost: take precision f64, or let the component be the "
                    "deviation from what is large");
  }
  if (std::string small = small_text(ends.small_components(), names); !small.empty()) notes.push_back(std::move(small));
  return notes;
}

}  // namespace lockstep::cli
