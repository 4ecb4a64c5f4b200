#include "lockstep/ode/methods/midpoint.h"

#include "lockstep/ode/methods/detail/list.h"
#include "lockstep/ode/methods/detail/make_tableau.h"

namespace lockstep::ode {

const Tableau& midpoint() { return make_tableau<Midpoint>(); }

}  // namespace lockstep::ode
