// What an integrator evaluates: a function of time, state and parameters, one tile of trajectories a call.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/precision.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/tile.h"
#include "lockstep/ode/function_part.h"
#include "lockstep/ode/time_knot.h"

namespace lockstep::ode {

// A state function lowered for one number type and instruction set. Immutable, shared between threads.
template <class T>
class TileFunction {
 public:
  virtual ~TileFunction() = default;

  // tile.out[o][lane] = f(tile.t[lane], tile.in[.][lane], tile.parameters[.][lane]). Each lane depends on itself
  // alone: its bits may not change with its neighbours, its place, or tile.lanes. Never throws: a lane whose
  // evaluation failed is NaN. The workspace holds workspace_bytes(), 64-byte aligned, for this call alone.
  virtual void evaluate(const TileView<T>& tile, std::byte* workspace) const = 0;
  virtual std::size_t workspace_bytes() const { return 0; }
  // What was chosen (kernel, blocking), for `explain`.
  virtual std::string description() const { return {}; }
};

template <class T>
class DifferentiableTile;  // differentiable_tile.h
template <class T>
class JacobianTile;  // jacobian_tile.h
struct JacobianSource;  // jacobian_source.h

// A right-hand side du/dt = f(t, u, p) where outputs() == components(), or an event function with one output.
class StateFunction {
 public:
  virtual ~StateFunction() = default;

  virtual std::size_t components() const = 0;  // of the state u
  virtual std::size_t parameters() const = 0;  // of each trajectory
  virtual std::size_t outputs() const { return components(); }

  // For people and for a file's provenance: "lorenz", "net lorenz_tanh_3_100_3 (3-100-3)".
  virtual std::string description() const = 0;
  // Identifies the mathematics: equal digests mean equal results. Weights and constants count, names do not.
  virtual std::string digest() const = 0;

  // Null, or an Error of the function's own, where it is not to be had in that number type: a solve in it is refused.
  virtual std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const = 0;
  virtual std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const = 0;

  // Its numbers that training may change, in a flat order of its own (a net's: layer by layer, weights [output][input]
  // before bias).
  virtual std::vector<double> weights() const { return {}; }
  // A new tile function that can be differentiated, with these weights; null when there is no derivative.
  virtual std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget) const { return nullptr; }
  virtual std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget) const { return nullptr; }

  // Its derivative along a direction of state and time, f_u v + f_t s, as a function that can be differentiated again:
  // of the state and, behind it, v and s, [2 components + 1]; time, parameters and weights as its own. Its reverse()
  // is of the state alone, in_bar [component], and needs no record. Null where there is none.
  virtual std::shared_ptr<DifferentiableTile<float>> directional_f32(CpuTarget) const { return nullptr; }
  virtual std::shared_ptr<DifferentiableTile<double>> directional_f64(CpuTarget) const { return nullptr; }

  // Its Jacobian where that is to be had for less than by the transpose; null: not.
  virtual std::shared_ptr<const JacobianTile<float>> jacobian_f32(CpuTarget) const { return nullptr; }
  virtual std::shared_ptr<const JacobianTile<double>> jacobian_f64(CpuTarget) const { return nullptr; }

  // The same as text, of a function whose only part is a SourcePart; null: there is none, or it would be too long.
  virtual std::shared_ptr<const JacobianSource> jacobian_source(Precision) const { return nullptr; }

  // Times at which it bends or jumps, in any order, where it knows of them: knots of tables of the time, the hours of
  // t % 24. Adaptive steps end there. Of a trajectory with these parameters; with none, those that no parameter moves.
  // At least those within the span; of an infinite one, of those that repeat one for all. Where some repeat a solve
  // asks for a little more than its span, so that a longer one makes no difference to a trajectory of a shorter one.
  virtual std::vector<TimeKnot> time_knots(const TimeSpan& /*span*/, std::span<const double> /*parameters*/) const {
    return {};
  }
  // Whether there are so many that a solve asks for those about its own spans alone: time_knots() then costs by how
  // many those are. What holds for all is told besides; where there are few, that is found from those of an infinite
  // span.
  virtual bool has_many_knots() const { return false; }
  virtual KnotBounds knot_bounds(std::span<const double> /*parameters*/) const { return {}; }
  // Whether parameters move some: doses at a time of each patient's own.
  virtual bool moves_knots() const { return false; }
  // Whether some repeat without an end, so that the span decides which there are.
  virtual bool repeats_knots() const { return false; }
  // Whether it jumps at times that it cannot tell: where sin(t) > 0.9.
  virtual bool hides_knots() const { return false; }
  // Whether it jumps where the time comes to what a state tells: where t < c, of c a component.
  virtual bool hides_knots_of_states() const { return false; }
  // Whether its value jumps where a state passes one, as in if(x < 1, ..), where that can be told: of equations and
  // nets, not of compiled functions. Derivatives do not see that trajectories come there earlier or later.
  virtual bool jumps_at_states() const { return false; }

  // A built-in system whose integrator is compiled in one piece with it ("lorenz"), or empty. See ode/cpu.
  virtual std::string inlined_name() const { return {}; }

  // The parts it is the sum of, from left to right, or none where only lower_f32() and lower_f64() know.
  virtual std::vector<FunctionPart> parts() const { return {}; }

  // For the choice of a device, where the function knows better than its parts tell: equations and nets that are no
  // stack are text to an engine.
  virtual std::optional<EvaluationCost> evaluation_cost() const { return std::nullopt; }
};

namespace detail {
[[noreturn]] void refuse_lowering(const StateFunction& function, const char* number_type);
}

// Throws Error (unsupported) where there is none.
template <class T>
std::shared_ptr<const TileFunction<T>> lower(const StateFunction& function, CpuTarget target) {
  std::shared_ptr<const TileFunction<T>> lowered;
  if constexpr (sizeof(T) == 4) {
    lowered = function.lower_f32(target);
  } else {
    lowered = function.lower_f64(target);
  }
  if (!lowered) detail::refuse_lowering(function, sizeof(T) == 4 ? "float32" : "float64");
  return lowered;
}

using Rhs = std::shared_ptr<const StateFunction>;

}  // namespace lockstep::ode
