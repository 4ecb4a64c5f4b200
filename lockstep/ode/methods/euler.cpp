#include "lockstep/ode/methods/euler.h"

#include "lockstep/ode/methods/detail/list.h"
#include "lockstep/ode/methods/detail/make_tableau.h"

namespace lockstep::ode {

const Tableau& euler() { return make_tableau<Euler>(); }

}  // namespace lockstep::ode
