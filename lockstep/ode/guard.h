// What a solve does where a trajectory leaves the range that its net was trained on: outside it the net's answer means
// nothing.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <mutex>
#include <optional>
#include <string_view>
#include <vector>

#include "lockstep/core/precision.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode {

enum class GuardAction {
  ignore,  // nothing
  flag,    // trajectories go on, with Status::outside_range where a saved state or the end state lay outside
  clamp,   // the net is evaluated at the nearest point of its range; trajectories go on
  stop,    // trajectories end where they leave, with Status::outside_range
};
std::string_view to_string(GuardAction action);
std::optional<GuardAction> parse_guard_action(std::string_view name);

// Bounds belong to the range; they are rounded to the solve's precision as states are. Infinite: no bound.
struct Range {
  std::vector<double> minimum;  // [component], then perhaps [parameter]
  std::vector<double> maximum;  // as many

  bool bounded() const;
};

// `net` evaluated at states and parameters brought into the range, element by element; NaN stays NaN. The range names
// all components and as many parameters as it likes. Has the net's derivatives where that has some, 0 by an input that
// is clamped. Throws Error (invalid_argument) for other sizes.
Rhs clamp_to_range(Rhs net, Range range);

// The event that ends a trajectory where its state leaves the range's components. A trajectory that starts outside is
// not seen by it: GuardedSink is.
TerminalEvent leaves_range(const Rhs& rhs, const Range& range);

// How far an input of the net lay outside, over the trajectories with Status::outside_range.
struct Excursion {
  std::size_t input = 0;         // of the range: components, then parameters
  std::size_t trajectories = 0;  // how many lay outside by it
  double value = 0;              // farthest from its range; of stop, where trajectories ended
  double widths = 0;             // how far beyond the nearer bound, in widths of the range; of one bound, in its size
};

// Hands everything on to another sink, with statuses as flag and stop ask. Of stop it expects that the problem's event
// is leaves_range(). A trajectory that starts outside, or whose parameters lie outside, is outside from its start: with
// stop its states after the start become NaN.
class GuardedSink : public SolutionSink {
 public:
  // `action` is flag or stop. `inner` and `problem` must outlive this sink.
  GuardedSink(SolutionSink& inner, const Problem& problem, Precision precision, Range range, GuardAction action);

  SolutionBlock acquire(std::size_t first, std::size_t count) override { return inner_.acquire(first, count); }
  void commit(const SolutionBlock& block) override;
  const std::atomic<std::uint32_t>* wishes() const override { return inner_.wishes(); }
  void hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) override;

  // Of a solve into this sink: counts of statuses as they were handed on.
  void correct(Summary& summary) const;

  // After the solve: the inputs that lay outside at a saved state, the start or the end, farthest first. The same for
  // any number of threads.
  std::vector<Excursion> excursions() const;

 private:
  void judge_row(const SolutionBlock& block, std::size_t row);
  template <class T>
  void judge(const SolutionBlock& block, std::size_t row);
  template <class T>
  bool inside(const T* values, std::size_t first, std::size_t count) const;
  template <class T>
  double widths_outside(std::size_t input, T value) const;
  template <class T>
  void keep_excursions(const SolutionBlock& block, std::size_t row, const std::vector<T>& start,
                       const std::vector<T>& parameters);

  SolutionSink& inner_;
  const Problem& problem_;
  Precision precision_;
  Range range_;
  GuardAction action_;
  std::array<std::atomic<std::size_t>, kStatusCount> changed_{};  // by the status that became outside_range
  mutable std::mutex mutex_;
  std::vector<Excursion> excursions_;  // [input of the range]
};

}  // namespace lockstep::ode
