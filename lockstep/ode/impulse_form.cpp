#include "lockstep/ode/impulse_form.h"

#include <bit>
#include <cstdint>

namespace lockstep::ode {
namespace {

// By their bits: a change of -0 is not one of 0.
bool same(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

}  // namespace

std::string ImpulseForm::text() const {
  if (none()) return "none";
  if (uneven) return "each trajectory's own";
  return std::to_string(each) + (differ() ? " of each trajectory's own" : " shared");
}

ImpulseForm impulse_form(const Problem& problem) {
  ImpulseForm form;
  if (problem.impulses.empty()) return form;
  form.each = problem.impulses_of(0).size();
  if (!problem.impulses_differ()) return form;
  for (std::size_t i = 1; i < problem.trajectories(); ++i) {
    if (problem.impulses_of(i).size() != form.each) return {.uneven = true};
  }
  for (std::size_t i = form.each; i < problem.impulses.size(); ++i) {
    const Impulse &first = problem.impulses[i % form.each], &own = problem.impulses[i];
    form.own_times = form.own_times || !same(own.time, first.time);
    form.own_components = form.own_components || own.component != first.component;
    form.own_changes = form.own_changes || !same(own.change, first.change);
    form.own_factors = form.own_factors || !same(own.factor, first.factor);
  }
  return form;
}

}  // namespace lockstep::ode
