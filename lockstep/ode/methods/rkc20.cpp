#include "lockstep/ode/methods/rkc20.h"

#include "lockstep/ode/methods/detail/list.h"
#include "lockstep/ode/methods/detail/make_tableau.h"

namespace lockstep::ode {

const Tableau& rkc20() { return make_tableau<Rkc20>(); }

}  // namespace lockstep::ode
