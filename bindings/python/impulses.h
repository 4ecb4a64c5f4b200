// Changes of states all at once, as lockstep/_impulses.py makes rows of what Python code says of them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lockstep/ode/impulse_form.h"

namespace lockstep::python {

// `rows` [impulse][time, component, change, factor, trajectory]: a component below 0 is `names[-1 - component]`, and
// trajectory -1 all of them, whose impulses each has where others have some of their own. Ordered by
// cli::order_impulses(); `starts`: of spans, one for all or [trajectory]. Throws Error for components and trajectories
// that there are not.
ode::Impulses read_impulses(std::span<const double> rows, const std::vector<std::string>& names,
                            const std::vector<std::string>& components, std::size_t trajectories,
                            std::span<const double> starts);

}  // namespace lockstep::python
