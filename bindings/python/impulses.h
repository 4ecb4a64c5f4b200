// Changes of states all at once, as lockstep/_impulses.py makes rows of what Python code says of them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lockstep/ode/problem.h"

namespace lockstep::python {

// As Problem has them.
struct GivenImpulses {
  std::vector<ode::Impulse> impulses;
  std::vector<std::size_t> first;

  std::span<const ode::Impulse> of(std::size_t trajectory) const {
    if (first.empty()) return impulses;
    return std::span(impulses).subspan(first[trajectory], first[trajectory + 1] - first[trajectory]);
  }
};

// `rows` [impulse][time, component, change, factor, trajectory]: a component below 0 is `names[-1 - component]`, and
// trajectory -1 all of them, whose impulses each has where others have some of their own. Throws Error for components
// and trajectories that there are not.
GivenImpulses read_impulses(std::span<const double> rows, const std::vector<std::string>& names,
                            const std::vector<std::string>& components, std::size_t trajectories);

}  // namespace lockstep::python
