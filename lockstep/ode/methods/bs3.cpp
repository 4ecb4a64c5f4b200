#include "lockstep/ode/methods/bs3.h"

#include "lockstep/ode/methods/detail/list.h"
#include "lockstep/ode/methods/detail/make_tableau.h"

namespace lockstep::ode {

const Tableau& bs3() { return make_tableau<Bs3>(); }

}  // namespace lockstep::ode
