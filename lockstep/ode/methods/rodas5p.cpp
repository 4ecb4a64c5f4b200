#include "lockstep/ode/methods/rodas5p.h"

#include "lockstep/ode/methods/detail/list.h"
#include "lockstep/ode/methods/detail/make_tableau.h"

namespace lockstep::ode {

const Tableau& rodas5p() { return make_tableau<Rodas5p>(); }

}  // namespace lockstep::ode
