// What problems and training data ask alike of changes of states all at once.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lockstep/ode/problem.h"

namespace lockstep::ode::detail {

// `first` as Problem::first_impulse: empty where all trajectories share them.
inline std::span<const Impulse> impulses_of(std::size_t trajectory, std::span<const Impulse> impulses,
                                            std::span<const std::size_t> first) {
  if (first.empty()) return impulses;
  return impulses.subspan(first[trajectory], first[trajectory + 1] - first[trajectory]);
}

// Throws Error (invalid_argument), its field one of `owner`: numbers that are not finite, components that there are
// not, a division among trajectories that is none.
void require_impulses(const std::string& owner, std::span<const Impulse> impulses, std::span<const std::size_t> first,
                      std::size_t trajectories, std::size_t components);

}  // namespace lockstep::ode::detail
