#include "lockstep/ode/cpu/inlined.h"

#include "lockstep/ode/methods/dop853.h"
#include "lockstep/ode/methods/rk4.h"
#include "lockstep/ode/methods/tsit5.h"
#include "lockstep/ode/methods/vern7.h"
#include "lockstep/ode/methods/vern9.h"

#include "lockstep/kernels/lane/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/ode/cpu/inlined.cpp"
#include <hwy/foreach_target.h>

#include "lockstep/ode/cpu/inlined-inl.h"
#include "lockstep/ode/systems/systems_hwy-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

// The pairs worth their code: one of each kind of method for the smallest systems.
template <class T>
const ode::cpu::InlinedKernels<T>* find_inlined(std::string_view system, std::string_view method) {
  if (system == "lorenz") {
    if (method == "rk4") return inlined_table<systems::Lorenz, ode::Rk4, T>();
    if (method == "tsit5") return inlined_table<systems::Lorenz, ode::Tsit5, T>();
    if (method == "dop853") return inlined_table<systems::Lorenz, ode::Dop853, T>();
    if constexpr (sizeof(T) == 8) {  // their orders are of no use in float32
      if (method == "vern7") return inlined_table<systems::Lorenz, ode::Vern7, T>();
      if (method == "vern9") return inlined_table<systems::Lorenz, ode::Vern9, T>();
    }
  }
  return nullptr;
}

const ode::cpu::InlinedKernels<float>* find_inlined_f32(std::string_view system, std::string_view method) {
  return find_inlined<float>(system, method);
}
const ode::cpu::InlinedKernels<double>* find_inlined_f64(std::string_view system, std::string_view method) {
  return find_inlined<double>(system, method);
}

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "lockstep/kernels/lane/dispatch.h"

namespace lockstep {

template <>
const ode::cpu::InlinedKernels<float>* ode::cpu::inlined_kernels<float>(std::string_view system,
                                                                        std::string_view method, CpuTarget target) {
  return LOCKSTEP_CHOOSE(target, find_inlined_f32)(system, method);
}
template <>
const ode::cpu::InlinedKernels<double>* ode::cpu::inlined_kernels<double>(std::string_view system,
                                                                          std::string_view method, CpuTarget target) {
  return LOCKSTEP_CHOOSE(target, find_inlined_f64)(system, method);
}

}  // namespace lockstep
#endif
