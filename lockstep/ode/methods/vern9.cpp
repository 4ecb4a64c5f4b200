#include "lockstep/ode/methods/vern9.h"

#include "lockstep/ode/methods/detail/list.h"
#include "lockstep/ode/methods/detail/make_tableau.h"

namespace lockstep::ode {

const Tableau& vern9() { return make_tableau<Vern9>(); }

}  // namespace lockstep::ode
