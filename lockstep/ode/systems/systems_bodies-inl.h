// Every built-in system, and their list. Adding one: a file NAME-inl.h in this folder and its two lines here.
// Included inside a namespace, with LOCKSTEP_LANE_FN defined; reach it through systems_hwy-inl.h or systems.h.
//
// A system is a struct with kComponents, kParameters, info() and
//   evaluate<L>(u, p, du): du[component] from u[component] and p[parameter], each a register L::V of lanes.
// None of them depends on time. The order of operations is part of the same-bits contract.
#include "lockstep/ode/systems/arenstorf-inl.h"
#include "lockstep/ode/systems/brusselator-inl.h"
#include "lockstep/ode/systems/fitzhugh_nagumo-inl.h"
#include "lockstep/ode/systems/harmonic_oscillator-inl.h"
#include "lockstep/ode/systems/henon_heiles-inl.h"
#include "lockstep/ode/systems/kepler-inl.h"
#include "lockstep/ode/systems/lorenz-inl.h"
#include "lockstep/ode/systems/lorenz96-inl.h"
#include "lockstep/ode/systems/lotka_volterra-inl.h"
#include "lockstep/ode/systems/oregonator-inl.h"
#include "lockstep/ode/systems/pleiades-inl.h"
#include "lockstep/ode/systems/robertson-inl.h"
#include "lockstep/ode/systems/rossler-inl.h"
#include "lockstep/ode/systems/van_der_pol-inl.h"

template <class... System>
struct SystemList {};

using AllSystems = SystemList<Arenstorf, Brusselator, FitzhughNagumo, HarmonicOscillator, HenonHeiles, Kepler, Lorenz,
                              Lorenz96, LotkaVolterra, Oregonator, Pleiades, Robertson, Rossler, VanDerPol>;
