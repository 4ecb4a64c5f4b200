// What counts as large: the extent of the solution's states, component by component.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/agreement/ensemble.h"

namespace lockstep::agreement {

struct Scale {
  // Standard deviation of each component over trajectories and times: the attractor's size where there is one. A
  // component that never changes has its magnitude, or 1 if that is zero.
  std::vector<double> size;  // [component]
  // Root mean square over trajectories, for what an ulp is there.
  std::vector<double> magnitude;  // [time][component]
  // The largest of these up to each save point. An error made at one is carried along from there: where all
  // trajectories pass through zero together, a solution is off by roundings of what it was before.
  std::vector<double> largest_so_far;  // [time][component]

  std::size_t components() const { return size.size(); }
  // The largest of the components' magnitudes in units of their sizes.
  double relative_magnitude(std::size_t time) const;
  double typical_magnitude() const;  // its median over times
};

// From at most 1,024 evenly spaced trajectories. Numbers that are not finite are left out.
Scale measure_scale(const Ensemble& ensemble);

}  // namespace lockstep::agreement
