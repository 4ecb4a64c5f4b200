// Boost.Odeint on Thrust vectors with Lockstep's methods and systems: odeint.h's steppers over states that lie on a
// GPU, or, where Thrust's device is the host, in its memory. Needs Thrust (CCCL 3) and Boost's headers; nothing else of
// Lockstep includes it.
//
//   using State = thrust::device_vector<double>;  // [component][trajectory]
//   ode::OdeintThrustSystem<ode::systems::Lorenz, double> lorenz(parameters, trajectories);
//   auto stepper = odeint::make_controlled<ode::OdeintThrustTsit5<State>>(1e-6, 1e-6);
//   odeint::integrate_adaptive(stepper, lorenz, state, 0.0, 1.0, 1e-3);
//
// odeint advances all trajectories with one common step; ode::solve gives each its own, and on a GPU runs whole solves
// in one kernel. This is for programs that are written around odeint.
#pragma once

// Thrust first: odeint includes some of it inside a namespace of its own.
#include <thrust/device_vector.h>
#include <thrust/fill.h>
#include <thrust/for_each.h>
#include <thrust/functional.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/system/cpp/vector.h>
#include <thrust/transform_reduce.h>
#include <thrust/tuple.h>

// Since CCCL 3 the vectors of all of Thrust's systems are one template, and odeint's specialisations for the second and
// third of them would define it again: these macros choose them.
#pragma push_macro("__CUDACC__")
#pragma push_macro("_OPENMP")
#pragma push_macro("TBB_VERSION_MAJOR")
#undef __CUDACC__
#undef _OPENMP
#undef TBB_VERSION_MAJOR
#include <boost/numeric/odeint/external/thrust/thrust.hpp>
#pragma pop_macro("TBB_VERSION_MAJOR")
#pragma pop_macro("_OPENMP")
#pragma pop_macro("__CUDACC__")

#include <cstddef>

#include "lockstep/ode/odeint.h"
#include "lockstep/ode/systems/systems.h"

namespace lockstep::ode {

namespace detail {

// An operation on one number of each array, for the tuples that a zip iterator gives.
template <class Operation>
struct OnTuple {
  Operation operation;
  template <class Tuple, std::size_t... i>
  LOCKSTEP_HOST_DEVICE void apply(Tuple& tuple, std::index_sequence<i...>) const {
    operation(thrust::get<i>(tuple)...);
  }
  template <class Tuple>
  LOCKSTEP_HOST_DEVICE void operator()(Tuple tuple) const {
    apply(tuple, std::make_index_sequence<thrust::tuple_size<Tuple>::value>());
  }
};

template <class T>
struct Magnitude {
  LOCKSTEP_HOST_DEVICE T operator()(const T& x) const { return x < 0 ? -x : x; }
};
// The larger; NaN where either is.
template <class T>
struct LargerOrNan {
  LOCKSTEP_HOST_DEVICE T operator()(const T& a, const T& b) const { return a != a || a > b ? a : b; }
};

// One trajectory's derivatives, as nvcc wants a kernel's argument: a type that it may name.
template <class System, class T>
struct EvaluateSystem {
  const T* u;
  const T* parameters;
  T* du;
  std::size_t stride;
  T t;
  LOCKSTEP_HOST_DEVICE void operator()(std::size_t i) const {
    T in[System::kComponents], p[System::kParameters + 1], out[System::kComponents];
    for (int c = 0; c < System::kComponents; ++c) in[c] = u[static_cast<std::size_t>(c) * stride + i];
    for (int k = 0; k < System::kParameters; ++k) p[k] = parameters[static_cast<std::size_t>(k) * stride + i];
    systems::evaluate_at<System, ScalarLane<T>>(t, in, p, out);
    for (int c = 0; c < System::kComponents; ++c) du[static_cast<std::size_t>(c) * stride + i] = out[c];
  }
};

}  // namespace detail

// odeint's algebra over Thrust vectors, for up to nine of them. Unlike thrust_algebra it keeps a NaN in norm_inf, so
// that a step with one is rejected.
struct ThrustAlgebra {
  template <class Operation, class First, class... Rest>
  static void for_each(Operation operation, First& first, Rest&... rest) {
    auto begin = thrust::make_zip_iterator(thrust::make_tuple(first.begin(), rest.begin()...));
    thrust::for_each(begin, begin + first.size(), detail::OnTuple<Operation>{operation});
  }
  template <class S0, class S1, class S2, class Operation>
  static void for_each3(S0& s0, S1& s1, S2& s2, Operation operation) {
    for_each(operation, s0, s1, s2);
  }
  template <class S0, class S1, class S2, class S3, class Operation>
  static void for_each4(S0& s0, S1& s1, S2& s2, S3& s3, Operation operation) {
    for_each(operation, s0, s1, s2, s3);
  }
  template <class S0, class S1, class S2, class S3, class S4, class Operation>
  static void for_each5(S0& s0, S1& s1, S2& s2, S3& s3, S4& s4, Operation operation) {
    for_each(operation, s0, s1, s2, s3, s4);
  }
  template <class S0, class S1, class S2, class S3, class S4, class S5, class Operation>
  static void for_each6(S0& s0, S1& s1, S2& s2, S3& s3, S4& s4, S5& s5, Operation operation) {
    for_each(operation, s0, s1, s2, s3, s4, s5);
  }
  template <class S0, class S1, class S2, class S3, class S4, class S5, class S6, class Operation>
  static void for_each7(S0& s0, S1& s1, S2& s2, S3& s3, S4& s4, S5& s5, S6& s6, Operation operation) {
    for_each(operation, s0, s1, s2, s3, s4, s5, s6);
  }
  template <class S0, class S1, class S2, class S3, class S4, class S5, class S6, class S7, class Operation>
  static void for_each8(S0& s0, S1& s1, S2& s2, S3& s3, S4& s4, S5& s5, S6& s6, S7& s7, Operation operation) {
    for_each(operation, s0, s1, s2, s3, s4, s5, s6, s7);
  }
  template <class S0, class S1, class S2, class S3, class S4, class S5, class S6, class S7, class S8, class Operation>
  static void for_each9(S0& s0, S1& s1, S2& s2, S3& s3, S4& s4, S5& s5, S6& s6, S7& s7, S8& s8, Operation operation) {
    for_each(operation, s0, s1, s2, s3, s4, s5, s6, s7, s8);
  }
  template <class S>
  static typename S::value_type norm_inf(const S& s) {
    using T = typename S::value_type;
    return thrust::transform_reduce(s.begin(), s.end(), detail::Magnitude<T>(), T(0), detail::LargerOrNan<T>());
  }
};

// The one operation of odeint's own that its step control uses here: |error| / (eps_abs + eps_rel (a_x |x| + a_dxdt
// |dx|)), as on the host. thrust_operations has a parenthesis elsewhere, so that its steps differ.
struct ThrustOperations {
  template <class T = double>
  struct rel_error {
    T eps_abs, eps_rel, a_x, a_dxdt;
    rel_error(T absolute, T relative, T x, T dxdt) : eps_abs(absolute), eps_rel(relative), a_x(x), a_dxdt(dxdt) {}
    template <class N>
    LOCKSTEP_HOST_DEVICE void operator()(N& error, const N& x, const N& dxdt) const {
      const detail::Magnitude<N> magnitude;
      error = magnitude(error) / (eps_abs + eps_rel * (a_x * magnitude(x) + a_dxdt * magnitude(dxdt)));
    }
  };
};

template <class Method, class State>
using OdeintThrustStepper = OdeintStepper<Method, State, typename State::value_type, State, typename State::value_type,
                                          ThrustAlgebra, ThrustOperations, boost::numeric::odeint::initially_resizer>;
template <class State>
using OdeintThrustTsit5 = OdeintThrustStepper<Tsit5, State>;
template <class State>
using OdeintThrustDopri5 = OdeintThrustStepper<Dopri5, State>;
template <class State>
using OdeintThrustBs3 = OdeintThrustStepper<Bs3, State>;

// A built-in system, or a struct of yours with kComponents, kParameters and
//   template <class L> static void evaluate(const T* u, const T* p, T* du)  // __host__ __device__
// as an odeint System over [component][trajectory] of T. Each trajectory's du has the bits that ode::solve would see.
template <class System, class T>
class OdeintThrustSystem {
 public:
  // parameters: [parameter][trajectory], on the device; must outlive the system and its copies.
  OdeintThrustSystem(const thrust::device_vector<T>& parameters, std::size_t trajectories)
      : parameters_(&parameters), trajectories_(trajectories) {
    if (parameters.size() == System::kParameters * trajectories) return;
    throw Error(ErrorKind::invalid_argument,
                {"parameters", std::to_string(parameters.size()) + " numbers",
                 std::to_string(System::kParameters) + " for each of " + std::to_string(trajectories) + " trajectories",
                 "give them as [parameter][trajectory]"});
  }

  template <class State, class Derivative, class Time>
  void operator()(const State& u, Derivative& du, const Time& t) const {
    if (u.size() != System::kComponents * trajectories_ || du.size() != u.size()) {
      throw Error(ErrorKind::invalid_argument,
                  {"state", std::to_string(u.size()) + " numbers", std::to_string(System::kComponents * trajectories_),
                   "give it as [component][trajectory]"});
    }
    thrust::for_each_n(thrust::counting_iterator<std::size_t>(0), trajectories_,
                       detail::EvaluateSystem<System, T>{
                           thrust::raw_pointer_cast(u.data()), thrust::raw_pointer_cast(parameters_->data()),
                           thrust::raw_pointer_cast(du.data()), trajectories_, static_cast<T>(t)});
  }

 private:
  const thrust::device_vector<T>* parameters_;
  std::size_t trajectories_;
};

}  // namespace lockstep::ode
