#include "lockstep/ode/differentiable_tile.h"

#include "lockstep/core/error.h"

namespace lockstep::ode {

template <class T>
std::shared_ptr<DifferentiableTile<T>> lower_differentiable(const StateFunction& function, CpuTarget target) {
  std::shared_ptr<DifferentiableTile<T>> tile;
  if constexpr (sizeof(T) == 4) {
    tile = function.differentiable_f32(target);
  } else {
    tile = function.differentiable_f64(target);
  }
  if (tile) return tile;
  throw Error(ErrorKind::unsupported, {.field = "problem.rhs",
                                       .found = function.description() + ", which has no derivative",
                                       .expected = "a right-hand side that can be differentiated",
                                       .remedy = "use ode::net, ode::system, ode::differentiable_function or sums of "
                                                 "them"});
}

template <class T>
std::shared_ptr<DifferentiableTile<T>> lower_directional(const StateFunction& function, CpuTarget target) {
  std::shared_ptr<DifferentiableTile<T>> tile;
  if constexpr (sizeof(T) == 4) {
    tile = function.directional_f32(target);
  } else {
    tile = function.directional_f64(target);
  }
  if (tile) return tile;
  throw Error(
      ErrorKind::unsupported,
      {.field = "problem.rhs",
       .found = function.description() + ", which has no second derivatives",
       .expected = "a right-hand side that can be differentiated twice, for derivatives of a solve by a linearly "
                   "implicit method",
       .remedy = "use equations, ode::net, ode::system or sums of them, or an explicit method: rkc20 where the "
                 "problem is stiff"});
}

template std::shared_ptr<DifferentiableTile<float>> lower_differentiable(const StateFunction&, CpuTarget);
template std::shared_ptr<DifferentiableTile<double>> lower_differentiable(const StateFunction&, CpuTarget);
template std::shared_ptr<DifferentiableTile<float>> lower_directional(const StateFunction&, CpuTarget);
template std::shared_ptr<DifferentiableTile<double>> lower_directional(const StateFunction&, CpuTarget);

}  // namespace lockstep::ode
