#include "lockstep/ode/methods/tsit5.h"

#include "lockstep/ode/methods/detail/list.h"
#include "lockstep/ode/methods/detail/make_tableau.h"

namespace lockstep::ode {

const Tableau& tsit5() { return make_tableau<Tsit5>(); }

}  // namespace lockstep::ode
