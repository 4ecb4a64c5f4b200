#include "lockstep/ode/methods/dop853.h"

#include "lockstep/ode/methods/detail/list.h"
#include "lockstep/ode/methods/detail/make_tableau.h"

namespace lockstep::ode {

const Tableau& dop853() { return make_tableau<Dop853>(); }

}  // namespace lockstep::ode
