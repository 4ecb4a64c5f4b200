#include "lockstep/ode/methods/vern7.h"

#include "lockstep/ode/methods/detail/list.h"
#include "lockstep/ode/methods/detail/make_tableau.h"

namespace lockstep::ode {

const Tableau& vern7() { return make_tableau<Vern7>(); }

}  // namespace lockstep::ode
