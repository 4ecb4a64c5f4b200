#include "lockstep/ode/detail/impulses.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "lockstep/core/text.h"
#include "lockstep/ode/detail/refuse.h"

namespace lockstep::ode::detail {

void require_impulses(const std::string& owner, std::span<const Impulse> impulses, std::span<const std::size_t> first,
                      std::size_t trajectories, std::size_t components) {
  if (!first.empty()) {
    if (first.size() != trajectories + 1)
      refuse(owner + ".first_impulse", count_of(first.size()),
             std::to_string(trajectories + 1) + ", one more than trajectories");
    if (first.front() != 0 || first.back() != impulses.size() || !std::ranges::is_sorted(first))
      refuse(owner + ".first_impulse",
             "numbers from " + std::to_string(first.front()) + " to " + std::to_string(first.back()),
             "ascending numbers from 0 to " + std::to_string(impulses.size()) + ", how many impulses there are");
  }
  for (std::size_t i = 0; i < impulses.size(); ++i) {
    const std::string field = owner + ".impulses[" + std::to_string(i) + "]";
    const Impulse& impulse = impulses[i];
    for (const auto& [name, number] :
         {std::pair{".time", impulse.time}, {".change", impulse.change}, {".factor", impulse.factor}}) {
      if (!std::isfinite(number)) refuse(field + name, number_text(number), "a finite number");
    }
    if (impulse.component >= components)
      refuse(field + ".component", std::to_string(impulse.component),
             "a component below " + std::to_string(components) + ", how many there are");
  }
}

}  // namespace lockstep::ode::detail
