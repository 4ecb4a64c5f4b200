// Lockstep for users of Boost.Odeint: right-hand sides as odeint Systems, and Lockstep's methods as odeint steppers in
// plain, controlled and dense-output form. Needs Boost's headers (1.74 or later) and nothing to link.
//
//   ode::OdeintSystem<> lorenz(ode::system("lorenz"), {10, 28, 8.0 / 3});
//   std::vector<double> u{1, 1, 1};
//   odeint::integrate_adaptive(odeint::make_controlled<ode::OdeintTsit5<std::vector<double>>>(1e-9, 1e-9), lorenz, u,
//   ...
#pragma once

#include <algorithm>
#include <boost/numeric/odeint/algebra/algebra_dispatcher.hpp>
#include <boost/numeric/odeint/algebra/default_operations.hpp>
#include <boost/numeric/odeint/algebra/operations_dispatcher.hpp>
#include <boost/numeric/odeint/stepper/base/explicit_error_stepper_fsal_base.hpp>
#include <boost/numeric/odeint/stepper/controlled_runge_kutta.hpp>
#include <boost/numeric/odeint/stepper/dense_output_runge_kutta.hpp>
#include <boost/numeric/odeint/stepper/generation/generation_controlled_runge_kutta.hpp>
#include <boost/numeric/odeint/stepper/generation/generation_dense_output_runge_kutta.hpp>
#include <boost/numeric/odeint/stepper/generation/make_controlled.hpp>
#include <boost/numeric/odeint/stepper/generation/make_dense_output.hpp>
#include <boost/numeric/odeint/util/copy.hpp>
#include <boost/numeric/odeint/util/is_resizeable.hpp>
#include <boost/numeric/odeint/util/resizer.hpp>
#include <boost/numeric/odeint/util/same_instance.hpp>
#include <boost/numeric/odeint/util/state_wrapper.hpp>
#include <boost/numeric/odeint/util/unwrap_reference.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/detail/odeint_sums.h"
#include "lockstep/ode/detail/require_rhs.h"
#include "lockstep/ode/methods/bs3.h"
#include "lockstep/ode/methods/dopri5.h"
#include "lockstep/ode/methods/tsit5.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode {

// A right-hand side as an odeint System over numbers of type T (float or double): called as system(u, du, t).
//
// The state is any indexed sequence of T: [component] of one trajectory, or [component][trajectory] of an ensemble,
// which odeint then advances with one common step. Each trajectory's du has the bits that ode::solve would see.
// Copies share one workspace: they cost next to nothing (odeint copies its systems), and one thread at a time may use
// them. Make another for another thread.
template <class T = double>
class OdeintSystem {
 public:
  // parameters: [trajectory][parameter], or [parameter] shared by all, as in Problem; rounded to T.
  // Throws Error (invalid_argument) when their number does not fit, (unsupported) for a target this machine lacks.
  explicit OdeintSystem(Rhs rhs, const std::vector<double>& parameters = {}, std::size_t trajectories = 1,
                        std::optional<CpuTarget> target = {})
      : work_(made(rhs, parameters, trajectories, target.value_or(best_cpu_target()))) {}

  std::size_t components() const { return work_->components; }
  std::size_t trajectories() const { return work_->trajectories; }

  // u and du have components() * trajectories() numbers; they may not overlap. Throws Error (invalid_argument)
  // otherwise. A trajectory whose evaluation failed has du = NaN.
  template <class State, class Derivative, class Time>
  void operator()(const State& u, Derivative& du, const Time& t) const {
    work_->require(u.size(), "state");
    work_->require(du.size(), "derivative");
    for (std::size_t first = 0; first < trajectories(); first += kLanes) {
      const std::size_t lanes = std::min(kLanes, trajectories() - first);
      for (std::size_t c = 0; c < components(); ++c) {
        for (std::size_t i = 0; i < lanes; ++i) work_->in[c * kLanes + i] = u[c * trajectories() + first + i];
      }
      work_->evaluate(static_cast<double>(t), first / kLanes, static_cast<int>(lanes));
      for (std::size_t c = 0; c < components(); ++c) {
        for (std::size_t i = 0; i < lanes; ++i) du[c * trajectories() + first + i] = work_->out[c * kLanes + i];
      }
    }
  }

 private:
  static constexpr std::size_t kLanes = kTileLanes;

  struct Work {
    Work(const StateFunction& rhs, const std::vector<double>& values, std::size_t count, CpuTarget target)
        : components(rhs.components()),
          parameters(rhs.parameters()),
          trajectories(count),
          function(lower<T>(rhs, target)),
          time(kLanes),
          in(components * kLanes),
          out(components * kLanes),
          tiles((count + kLanes - 1) / kLanes * parameters * kLanes),
          workspace(function->workspace_bytes()) {
      const bool shared = values.size() == parameters;
      if (!shared && values.size() != parameters * count) {
        throw Error(ErrorKind::invalid_argument, {"parameters", std::to_string(values.size()) + " numbers",
                                                  std::to_string(parameters) + " or, for each trajectory its own, " +
                                                      std::to_string(parameters * count),
                                                  "give the parameters of " + rhs.description()});
      }
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t q = 0; q < parameters; ++q) {
          tiles[((i / kLanes) * parameters + q) * kLanes + i % kLanes] =
              static_cast<T>(values[shared ? q : i * parameters + q]);
        }
      }
    }

    void require(std::size_t size, const char* field) const {
      if (size == components * trajectories) return;
      throw Error(ErrorKind::invalid_argument,
                  {field, std::to_string(size) + " numbers",
                   std::to_string(components) + " components of " + std::to_string(trajectories) + " trajectories",
                   "give the state as [component][trajectory]"});
    }

    void evaluate(double t, std::size_t tile, int lanes) {
      const StandardArithmetic arithmetic;
      for (double& lane : time.span()) lane = t;
      const T* p = parameters == 0 ? nullptr : tiles.data() + tile * parameters * kLanes;
      function->evaluate({time.data(), in.data(), p, out.data(), lanes}, workspace.data());
    }

    std::size_t components, parameters, trajectories;
    std::shared_ptr<const TileFunction<T>> function;
    AlignedBuffer<double> time;  // [lane]
    AlignedBuffer<T> in, out;    // [component][lane]
    AlignedBuffer<T> tiles;      // [tile][parameter][lane]
    AlignedBuffer<std::byte> workspace;
  };
  static std::shared_ptr<Work> made(const Rhs& rhs, const std::vector<double>& parameters, std::size_t trajectories,
                                    CpuTarget target) {
    const StandardArithmetic arithmetic;
    detail::require_rhs("OdeintSystem.rhs", rhs);
    return std::make_shared<Work>(*rhs, parameters, trajectories, target);
  }
  std::shared_ptr<Work> work_;
};

// A Runge-Kutta pair as an odeint error stepper with first-same-as-last: stages - 1 evaluations a step after the first.
// make_controlled and make_dense_output take it; dense output is the method's own interpolant and costs no evaluation.
//
// Method is a struct of ode/methods with an embedded formula whose interpolant needs no further stages. State is what
// odeint's algebras take: std::vector<T>, std::array<T, n>, double, ... Time may be double where T is float.
// With a constant step the results have the bits of ode::solve with fixed control where t0 + i dt and Lockstep's
// fma(i, dt, t0) agree, as for every right-hand side that does not depend on time. Step size control is odeint's: it
// bounds the largest component's error against eps_abs + eps_rel (|u| + dt |du|), over all trajectories of an ensemble.
template <class Method, class State, class Value = double, class Deriv = State, class Time = Value,
          class Algebra = typename boost::numeric::odeint::algebra_dispatcher<State>::algebra_type,
          class Operations = typename boost::numeric::odeint::operations_dispatcher<State>::operations_type,
          class Resizer = boost::numeric::odeint::initially_resizer>
class OdeintStepper
    : public boost::numeric::odeint::explicit_error_stepper_fsal_base<
          OdeintStepper<Method, State, Value, Deriv, Time, Algebra, Operations, Resizer>, Method::kOrder,
          Method::kOrder, Method::kErrorOrder, State, Value, Deriv, Time, Algebra, Operations, Resizer> {
  static constexpr int kStages = decltype(Method::coefficients())::kStages;
  static_assert(Method::kErrorOrder > 0 && !Method::kHasError3, "odeint controls steps by one embedded formula");
  static_assert(decltype(Method::coefficients())::kAllStages == kStages, "the interpolant must need no evaluation");

 public:
  using stepper_base_type =
      boost::numeric::odeint::explicit_error_stepper_fsal_base<OdeintStepper, Method::kOrder, Method::kOrder,
                                                               Method::kErrorOrder, State, Value, Deriv, Time, Algebra,
                                                               Operations, Resizer>;
  // Names that odeint asks for.
  using state_type = State;
  using value_type = Value;
  using deriv_type = Deriv;
  using time_type = Time;
  using algebra_type = Algebra;
  using operations_type = Operations;
  using resizer_type = Resizer;
  using stepper_type = OdeintStepper;
  using wrapped_state_type = typename stepper_base_type::wrapped_state_type;
  using wrapped_deriv_type = typename stepper_base_type::wrapped_deriv_type;

  explicit OdeintStepper(const Algebra& algebra = Algebra()) : stepper_base_type(algebra) {}

  // One step from `in` with its derivative k_first to `out` with k_last; in and out, k_first and k_last may be one.
  template <class System, class In, class DerivIn, class Out, class DerivOut>
  void do_step_impl(System system, const In& in, const DerivIn& k_first, Time t, Out& out, DerivOut& k_last, Time dt) {
    resizer_.adjust_size(in, [this](const auto& x) { return this->resize(x); });
    auto& f = static_cast<typename boost::numeric::odeint::unwrap_reference<System>::type&>(system);
    run_stages(f, in, k_first, t, dt, std::make_index_sequence<kStages - 2>());
    combine(std::make_index_sequence<kStages - 2>(), detail::StageSum<Method, kStages - 1, Time>{dt}, out, in, k_first);
    f(out, k_last, t + dt);
  }

  // The same with the embedded formula's error.
  template <class System, class In, class DerivIn, class Out, class DerivOut, class Err>
  void do_step_impl(System system, const In& in, const DerivIn& k_first, Time t, Out& out, DerivOut& k_last, Time dt,
                    Err& error) {
    namespace odeint = boost::numeric::odeint;
    const bool overwrites = odeint::same_instance(k_first, k_last);
    if (overwrites) {
      odeint::adjust_size_by_resizeability(kept_, k_first, typename odeint::is_resizeable<Deriv>::type());
      odeint::copy(k_first, kept_.m_v);
    }
    do_step_impl(system, in, k_first, t, out, k_last, dt);
    const detail::ErrorSum<Method, Time> sum{dt};
    const auto stages = std::make_index_sequence<kStages - 2>();
    if (overwrites) {
      combine_error(stages, sum, error, kept_.m_v, k_last);
    } else {
      combine_error(stages, sum, error, k_first, k_last);
    }
  }

  // The interpolant within the step just taken, from t_old to t_new; the new state itself at t_new.
  template <class Out, class In, class DerivIn, class New, class DerivNew>
  void calc_state(Time t, Out& x, const In& old, const DerivIn& k_first, Time t_old, const New& now,
                  const DerivNew& k_last, Time t_new) const {
    if (t == t_new) {
      boost::numeric::odeint::copy(now, x);
    } else {
      const Time dt = t_new - t_old;
      interpolate(std::make_index_sequence<kStages - 2>(), detail::InterpolantSum<Method, Time>(dt, (t - t_old) / dt),
                  x, old, k_first, k_last);
    }
  }

  template <class In>
  void adjust_size(const In& x) {
    resize(x);
    stepper_base_type::adjust_size(x);
  }

  template <class In>
  bool resize(const In& x) {
    namespace odeint = boost::numeric::odeint;
    bool resized = odeint::adjust_size_by_resizeability(inner_, x, typename odeint::is_resizeable<State>::type());
    for (auto& k : k_) {
      resized |= odeint::adjust_size_by_resizeability(k, x, typename odeint::is_resizeable<Deriv>::type());
    }
    return resized;
  }

 private:
  // k_2 .. k_{s-1}; k_[i] needs k_first and those before it.
  template <class F, class In, class DerivIn, std::size_t... i>
  void run_stages(F& f, const In& in, const DerivIn& k_first, Time t, Time dt, std::index_sequence<i...>) {
    constexpr auto m = Method::coefficients();
    ((combine(std::make_index_sequence<i>(), detail::StageSum<Method, int(i) + 1, Time>{dt}, inner_.m_v, in, k_first),
      f(inner_.m_v, k_[i].m_v, detail::multiply_add(static_cast<Time>(m.c[i + 1]), dt, t))),
     ...);
  }
  template <std::size_t... j, class Sum, class Out, class In, class DerivIn>
  void combine(std::index_sequence<j...>, Sum sum, Out& out, const In& in, const DerivIn& k_first) {
    detail::apply_algebra(this->m_algebra, sum, out, in, k_first, std::as_const(k_[j].m_v)...);
  }
  template <std::size_t... j, class Sum, class Out, class DerivIn, class DerivOut>
  void combine_error(std::index_sequence<j...>, Sum sum, Out& out, const DerivIn& k_first, const DerivOut& k_last) {
    detail::apply_algebra(this->m_algebra, sum, out, k_first, std::as_const(k_[j].m_v)..., k_last);
  }
  template <std::size_t... j, class Sum, class Out, class In, class DerivIn, class DerivNew>
  void interpolate(std::index_sequence<j...>, Sum sum, Out& out, const In& in, const DerivIn& k_first,
                   const DerivNew& k_last) const {
    detail::apply_algebra(this->m_algebra, sum, out, in, k_first, k_[j].m_v..., k_last);
  }

  wrapped_state_type inner_;           // Y_i
  wrapped_deriv_type k_[kStages - 2];  // k_2 .. k_{s-1}
  wrapped_deriv_type kept_;            // k_1 where the caller lets k_s overwrite it
  Resizer resizer_;
};

template <class State, class Value = double, class Deriv = State, class Time = Value>
using OdeintTsit5 = OdeintStepper<Tsit5, State, Value, Deriv, Time>;
template <class State, class Value = double, class Deriv = State, class Time = Value>
using OdeintDopri5 = OdeintStepper<Dopri5, State, Value, Deriv, Time>;
template <class State, class Value = double, class Deriv = State, class Time = Value>
using OdeintBs3 = OdeintStepper<Bs3, State, Value, Deriv, Time>;

}  // namespace lockstep::ode

namespace boost::numeric::odeint {

template <class... Arguments>
struct get_controller<lockstep::ode::OdeintStepper<Arguments...>> {
  using type = controlled_runge_kutta<lockstep::ode::OdeintStepper<Arguments...>>;
};
template <class... Arguments>
struct get_dense_output<lockstep::ode::OdeintStepper<Arguments...>> {
  using type = dense_output_runge_kutta<controlled_runge_kutta<lockstep::ode::OdeintStepper<Arguments...>>>;
};

}  // namespace boost::numeric::odeint
