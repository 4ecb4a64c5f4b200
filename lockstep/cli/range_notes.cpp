#include "lockstep/cli/range_notes.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "lockstep/cli/text.h"
#include "lockstep/core/resolved_text.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kMostTold = 3;

std::string known(double low, double high) {
  if (!std::isfinite(low)) return "known to " + rounded_text(high, 6);
  if (!std::isfinite(high)) return "known from " + rounded_text(low, 6);
  const double hundredth = (high - low) / 100;
  return "known from " + resolved_text(low, hundredth) + " to " + resolved_text(high, hundredth);
}

// The digits that tell it from the bound it lies beyond.
std::string beyond(double value, double low, double high) {
  constexpr int kFewest = 3, kMost = 17;
  const double bound = value > high ? high : low;
  int digits = kFewest;
  while (digits < kMost && rounded_text(value, digits) == rounded_text(bound, digits)) ++digits;
  return rounded_text(value, digits);
}

}  // namespace

std::string text_of_excursions(std::vector<ode::Excursion> excursions, const ProblemSetup& setup) {
  if (excursions.empty()) return {};
  const bool stopped = setup.guard == ode::GuardAction::stop;
  if (stopped) {  // all on bounds: what ended most says more
    std::stable_sort(excursions.begin(), excursions.end(),
                     [](const auto& a, const auto& b) { return a.trajectories > b.trajectories; });
  }
  std::string text =
      stopped ? "ended at the bounds of" : "outside the training range, where a net's answers mean nothing:";
  const std::size_t components = setup.component_names.size(), told = std::min(kMostTold, excursions.size());
  for (std::size_t i = 0; i < told; ++i) {
    const ode::Excursion& one = excursions[i];
    const std::string& name =
        one.input < components ? setup.component_names[one.input] : setup.parameter_names.at(one.input - components);
    text += (i == 0 ? " " : "; ") + name + ", " + known(setup.range.minimum[one.input], setup.range.maximum[one.input]);
    text += ", in " + counted_text(one.trajectories, "trajectory");
    // A trajectory that stop ends lies on the bound, to rounding.
    if (!stopped || one.widths > 1e-3) {
      text += ", as far as " + beyond(one.value, setup.range.minimum[one.input], setup.range.maximum[one.input]);
    }
  }
  if (excursions.size() > told) text += "; and " + std::to_string(excursions.size() - told) + " more";
  return text;
}

}  // namespace lockstep::cli
