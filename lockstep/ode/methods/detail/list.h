// The tableaus, one a file of this folder. Private: users ask method(name), see methods.h.
#pragma once

#include "lockstep/ode/tableau.h"

namespace lockstep::ode {

const Tableau& euler();
const Tableau& midpoint();
const Tableau& heun();
const Tableau& rk4();
const Tableau& bs3();
const Tableau& dopri5();
const Tableau& tsit5();
const Tableau& vern7();
const Tableau& dop853();
const Tableau& vern9();
const Tableau& rkc8();
const Tableau& rkc20();
const Tableau& rodas5p();

}  // namespace lockstep::ode
