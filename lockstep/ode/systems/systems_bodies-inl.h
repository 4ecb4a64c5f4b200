// Every built-in system, and their list. Adding one: a file NAME-inl.h in this folder and its two lines here.
// Included inside a namespace, with LOCKSTEP_LANE_FN defined; reach it through systems_hwy-inl.h or systems.h.
//
// A system is a struct with kComponents, kParameters, info() and
//   evaluate<L>(u, p, du): du[component] from u[component] and p[parameter], each a register L::V of lanes, or
//   evaluate<L>(t, u, p, du) where it depends on time, which is rounded to the state's precision.
// The order of operations is part of the same-bits contract.

// Sine and cosine of lanes that bring their own (those that carry derivatives), or by the elementary functions.
template <class L>
LOCKSTEP_LANE_FN typename L::V lane_sin(typename L::V x) {
  if constexpr (requires { L::sin(x); }) {
    return L::sin(x);
  } else {
    return sin<L>(x);
  }
}
template <class L>
LOCKSTEP_LANE_FN typename L::V lane_cos(typename L::V x) {
  if constexpr (requires { L::cos(x); }) {
    return L::cos(x);
  } else {
    return cos<L>(x);
  }
}

#include "lockstep/ode/systems/arenstorf-inl.h"
#include "lockstep/ode/systems/brusselator-inl.h"
#include "lockstep/ode/systems/duffing-inl.h"
#include "lockstep/ode/systems/fitzhugh_nagumo-inl.h"
#include "lockstep/ode/systems/harmonic_oscillator-inl.h"
#include "lockstep/ode/systems/henon_heiles-inl.h"
#include "lockstep/ode/systems/kepler-inl.h"
#include "lockstep/ode/systems/lorenz-inl.h"
#include "lockstep/ode/systems/lorenz96-inl.h"
#include "lockstep/ode/systems/lotka_volterra-inl.h"
#include "lockstep/ode/systems/oregonator-inl.h"
#include "lockstep/ode/systems/pendulum-inl.h"
#include "lockstep/ode/systems/pleiades-inl.h"
#include "lockstep/ode/systems/robertson-inl.h"
#include "lockstep/ode/systems/rossler-inl.h"
#include "lockstep/ode/systems/van_der_pol-inl.h"

template <class... System>
struct SystemList {};

// The order is for people; files know systems by name.
using AllSystems =
    SystemList<Arenstorf, Brusselator, Duffing, FitzhughNagumo, HarmonicOscillator, HenonHeiles, Kepler, Lorenz,
               Lorenz96, LotkaVolterra, Oregonator, Pendulum, Pleiades, Robertson, Rossler, VanDerPol>;

template <class System>
inline constexpr bool kDependsOnTime = requires(float* x) {
  System::template evaluate<ScalarLane<float>>(*x, x, x, x);
};

// System's derivatives, t read only where it depends on it.
template <class System, class L>
LOCKSTEP_LANE_FN void evaluate_at(typename L::V t, const typename L::V* u, const typename L::V* p, typename L::V* du) {
  if constexpr (kDependsOnTime<System>) {
    System::template evaluate<L>(t, u, p, du);
  } else {
    System::template evaluate<L>(u, p, du);
  }
}
