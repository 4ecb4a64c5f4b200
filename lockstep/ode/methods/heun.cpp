#include "lockstep/ode/methods/heun.h"

#include "lockstep/ode/methods/detail/list.h"
#include "lockstep/ode/methods/detail/make_tableau.h"

namespace lockstep::ode {

const Tableau& heun() { return make_tableau<Heun>(); }

}  // namespace lockstep::ode
