// How a result file holds impulses: what all trajectories share once, what is each trajectory's own for each.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lockstep/ode/detail/impulses.h"
#include "lockstep/ode/problem.h"

namespace lockstep::ode {

struct ImpulseForm {
  std::size_t each = 0;  // how many, where every trajectory has as many as the others
  bool uneven = false;   // otherwise one trajectory's follow the other's, and `each` is 0
  // What differs between trajectories, where all have as many.
  bool own_times = false, own_components = false, own_changes = false, own_factors = false;

  bool none() const { return each == 0 && !uneven; }
  // Whether impulses are each trajectory's own.
  bool differ() const { return uneven || own_times || own_components || own_changes || own_factors; }
  std::string text() const;  // "none", "3 shared", "3 of each trajectory's own": for people
};

// Of a whole ensemble: a part of it may look as if its trajectories shared what others have otherwise.
ImpulseForm impulse_form(const Problem& problem);

// Impulses as Problem has them: of all, or with `first` of one trajectory after the other.
struct Impulses {
  std::vector<Impulse> impulses;
  std::vector<std::size_t> first;

  std::span<const Impulse> of(std::size_t trajectory) const { return detail::impulses_of(trajectory, impulses, first); }
};

}  // namespace lockstep::ode
