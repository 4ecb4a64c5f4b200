#include "lockstep/cli/standstill_notes.h"

#include <algorithm>
#include <utility>

#include "lockstep/cli/out_of_steps.h"
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

std::string faded_text(const std::vector<ode::FadedComponent>& components, const std::vector<std::string>& names) {
  if (components.empty()) return {};
  std::string of;
  for (const ode::FadedComponent& one : components) {
    of += (of.empty() ? "" : "; ") + names.at(one.component) + " ends at " + rounded_text(one.end, 2) +
          ", with an absolute tolerance of " + rounded_text(one.atol, 2);
  }
  return "what ends below atol and below the roundings of float32 beside it may have any sign, and over many decades "
         "of "
         "time the wrong one may run away while the status is success: " +
         of + "; take precision f64, or a smaller atol";
}

// Of a trajectory that got to its end.
std::string coarse_text(const ode::EndSample& ends) {
  constexpr std::int64_t kMany = 2'000;
  const auto* const longest = ends.longest();
  if (longest == nullptr || ends.options().control == ode::StepControl::fixed) return {};
  const ode::TrajectoryRecord& record = longest->record;
  const std::int64_t attempts = std::int64_t{record.accepted} + record.rejected;
  if (attempts < kMany || !float32_is_too_coarse(ends.problem(), ends.options(), longest->trajectory, record))
    return {};
  return kTooCoarse +
         ("trajectory " + count_text(longest->trajectory) + " took " + count_text(attempts) + " steps, " +
          count_text(record.rejected) +
          " of them rejected, and float64 less than a third of them; take precision f64, or loosen the tolerances");
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
  if (std::string faded = faded_text(ends.faded_components(), names); !faded.empty()) notes.push_back(std::move(faded));
  if (std::string coarse = coarse_text(ends); !coarse.empty()) notes.push_back(std::move(coarse));
  return notes;
}

void drop_what_is_told(const std::string& reason, std::vector<std::string>& notes) {
  if (!reason.starts_with(kTooCoarse)) return;
  std::erase_if(notes, [](const std::string& note) { return note.starts_with(kTooCoarse); });
}

}  // namespace lockstep::cli
