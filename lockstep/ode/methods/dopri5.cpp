#include "lockstep/ode/methods/dopri5.h"

#include "lockstep/ode/methods/detail/list.h"
#include "lockstep/ode/methods/detail/make_tableau.h"

namespace lockstep::ode {

const Tableau& dopri5() { return make_tableau<Dopri5>(); }

}  // namespace lockstep::ode
