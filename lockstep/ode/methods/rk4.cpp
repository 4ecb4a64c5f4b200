#include "lockstep/ode/methods/rk4.h"

#include "lockstep/ode/methods/detail/list.h"
#include "lockstep/ode/methods/detail/make_tableau.h"

namespace lockstep::ode {

const Tableau& rk4() { return make_tableau<Rk4>(); }

}  // namespace lockstep::ode
