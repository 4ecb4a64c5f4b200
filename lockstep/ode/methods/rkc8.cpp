#include "lockstep/ode/methods/rkc8.h"

#include "lockstep/ode/methods/detail/list.h"
#include "lockstep/ode/methods/detail/make_tableau.h"

namespace lockstep::ode {

const Tableau& rkc8() { return make_tableau<Rkc8>(); }

}  // namespace lockstep::ode
