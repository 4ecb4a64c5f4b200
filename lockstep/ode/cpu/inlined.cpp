#include "lockstep/ode/cpu/inlined.h"

#include "lockstep/ode/methods/dop853.h"
#include "lockstep/ode/methods/rk4.h"
#include "lockstep/ode/methods/tsit5.h"

#include "lockstep/kernels/lane/targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "lockstep/ode/cpu/inlined.cpp"
#include <hwy/foreach_target.h>

#include "lockstep/ode/cpu/inlined-inl.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {
struct Lorenz {
  static constexpr int kComponents = 3, kParameters = 3;
  template <class L>
  static HWY_INLINE void evaluate(const typename L::V* u, const typename L::V* p, typename L::V* du) {
    du[0] = L::mul(p[0], L::sub(u[1], u[0]));
    du[1] = L::fma(u[0], L::sub(p[1], u[2]), L::neg(u[1]));
    du[2] = L::fma(u[0], u[1], L::neg(L::mul(p[2], u[2])));
  }
};

// The pairs worth their code: one of each kind of method for the smallest systems.
template <class T>
const ode::cpu::InlinedKernels<T>* find_inlined(std::string_view system, std::string_view method) {
  if (system == "lorenz") {
    if (method == "rk4") return inlined_table<Lorenz, ode::Rk4, T>();
    if (method == "tsit5") return inlined_table<Lorenz, ode::Tsit5, T>();
    if (method == "dop853") return inlined_table<Lorenz, ode::Dop853, T>();
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
