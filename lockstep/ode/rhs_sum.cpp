// The sum of two right-hand sides.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/ode/detail/evaluation_cost.h"
#include "lockstep/ode/detail/knot_bounds.h"
#include "lockstep/ode/detail/require_rhs.h"
#include "lockstep/ode/differentiable_tile.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode {
namespace {

template <class T>
class SumTile final : public TileFunction<T> {
 public:
  using Part = std::shared_ptr<const TileFunction<T>>;
  SumTile(Part first, Part second, std::size_t components, std::size_t first_parameters, std::size_t second_parameters)
      : first_(std::move(first)),
        second_(std::move(second)),
        components_(components),
        first_parameters_(first_parameters),
        second_parameters_(second_parameters) {}

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override {
    T* const addend = reinterpret_cast<T*>(workspace);
    std::byte* const rest = workspace + components_ * kTileLanes * sizeof(T);
    const T* const theirs = second_parameters_ == 0 ? nullptr : tile.parameters + first_parameters_ * kTileLanes;
    first_->evaluate({tile.t, tile.in, first_parameters_ == 0 ? nullptr : tile.parameters, tile.out, tile.lanes}, rest);
    second_->evaluate({tile.t, tile.in, theirs, addend, tile.lanes}, rest);
    for (std::size_t c = 0; c < components_; ++c) {
      T* const out = tile.out + c * kTileLanes;
      const T* const add = addend + c * kTileLanes;
      for (int lane = 0; lane < tile.lanes; ++lane) out[lane] += add[lane];
    }
  }

  std::size_t workspace_bytes() const override {
    return components_ * kTileLanes * sizeof(T) + std::max(first_->workspace_bytes(), second_->workspace_bytes());
  }
  std::string description() const override { return first_->description() + " + " + second_->description(); }

 private:
  Part first_;
  Part second_;
  std::size_t components_;
  std::size_t first_parameters_;
  std::size_t second_parameters_;
};

// The derivative of a sum; weights are the first one's followed by the second one's.
template <class T>
class ReverseSum final : public DifferentiableTile<T> {
 public:
  using Part = std::shared_ptr<DifferentiableTile<T>>;
  ReverseSum(Part first, Part second, std::size_t components, std::size_t first_parameters,
             std::size_t second_parameters)
      : first_(first),
        second_(second),
        sum_(first, second, components, first_parameters, second_parameters),
        components_(components),
        first_parameters_(first_parameters),
        second_parameters_(second_parameters) {}

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override { sum_.evaluate(tile, workspace); }
  std::size_t workspace_bytes() const override { return sum_.workspace_bytes(); }
  std::string description() const override { return sum_.description(); }

  void evaluate_recording(const TileView<T>& tile, std::byte* record, std::byte* workspace) const override {
    T* const addend = reinterpret_cast<T*>(workspace);
    std::byte* const rest = workspace + components_ * kTileLanes * sizeof(T);
    TileView<T> part = tile;
    if (first_parameters_ == 0) part.parameters = nullptr;
    first_->evaluate_recording(part, record, rest);
    part.parameters = second_parameters_ == 0 ? nullptr : tile.parameters + first_parameters_ * kTileLanes;
    part.out = addend;
    second_->evaluate_recording(part, record + first_->record_bytes(), rest);
    for (std::size_t i = 0; i < components_ * kTileLanes; ++i) tile.out[i] += addend[i];
  }
  std::size_t record_bytes() const override { return first_->record_bytes() + second_->record_bytes(); }
  std::size_t cotangent_bytes() const override { return first_->cotangent_bytes() + second_->cotangent_bytes(); }

  void reverse(const ReverseTileView<T>& tile, std::byte* workspace) const override {
    ReverseTileView<T> part = tile;
    if (first_parameters_ == 0) part.parameters = part.parameter_bar = nullptr;
    first_->reverse(part, workspace);
    const bool more = second_parameters_ != 0;
    part.parameters = more ? tile.parameters + first_parameters_ * kTileLanes : nullptr;
    part.parameter_bar = more ? tile.parameter_bar + first_parameters_ * kTileLanes : nullptr;
    part.record = tile.record + first_->record_bytes();
    part.cotangents = tile.cotangents + first_->cotangent_bytes();
    second_->reverse(part, workspace);
  }
  std::size_t reverse_workspace_bytes() const override {
    return std::max(first_->reverse_workspace_bytes(), second_->reverse_workspace_bytes());
  }
  bool knows_time() const override { return first_->knows_time() && second_->knows_time(); }
  std::size_t weights() const override { return first_->weights() + second_->weights(); }
  bool begins_with_own_weights() const override {
    return first_->begins_with_own_weights() && second_->begins_with_own_weights();
  }
  void set_weights(std::span<const T> weights) override {
    first_->set_weights(weights.first(first_->weights()));
    second_->set_weights(weights.subspan(first_->weights()));
  }
  void accumulate(std::span<const RecordedEvaluation> evaluations, T* gradient) const override {
    first_->accumulate(evaluations, gradient);
    std::vector<RecordedEvaluation> theirs(evaluations.begin(), evaluations.end());
    for (RecordedEvaluation& evaluation : theirs) {
      evaluation.record += first_->record_bytes();
      evaluation.cotangents += first_->cotangent_bytes();
    }
    second_->accumulate(theirs, gradient + first_->weights());
  }

 private:
  Part first_;
  Part second_;
  SumTile<T> sum_;
  std::size_t components_;
  std::size_t first_parameters_;
  std::size_t second_parameters_;
};

class Sum final : public StateFunction {
 public:
  Sum(Rhs first, Rhs second) : first_(std::move(first)), second_(std::move(second)) {}

  std::size_t components() const override { return first_->components(); }
  std::size_t parameters() const override { return first_->parameters() + second_->parameters(); }
  std::string description() const override { return first_->description() + " + " + second_->description(); }
  std::string digest() const override {
    return ContentHash().add("sum").add(first_->digest()).add(second_->digest()).hex();
  }
  bool moves_knots() const override { return first_->moves_knots() || second_->moves_knots(); }
  bool hides_knots() const override { return first_->hides_knots() || second_->hides_knots(); }
  bool hides_knots_of_states() const override {
    return first_->hides_knots_of_states() || second_->hides_knots_of_states();
  }
  bool jumps_at_states() const override { return first_->jumps_at_states() || second_->jumps_at_states(); }
  bool repeats_knots() const override { return first_->repeats_knots() || second_->repeats_knots(); }
  std::vector<TimeKnot> time_knots(const TimeSpan& span, std::span<const double> parameters) const override {
    const std::size_t of_first = parameters.empty() ? 0 : first_->parameters();
    const auto of_one = parameters.first(of_first), of_other = parameters.subspan(of_first);
    std::vector<TimeKnot> knots = detail::knots_beside(*first_, of_one, repeats_knots(), span);
    const std::vector<TimeKnot> more = detail::knots_beside(*second_, of_other, repeats_knots(), span);
    knots.insert(knots.end(), more.begin(), more.end());
    return knots;
  }
  bool has_many_knots() const override { return first_->has_many_knots() || second_->has_many_knots(); }
  KnotBounds knot_bounds(std::span<const double> parameters) const override {
    const std::size_t of_first = parameters.empty() ? 0 : first_->parameters();
    const KnotBounds one = detail::knot_bounds(*first_, parameters.first(of_first));
    const KnotBounds other = detail::knot_bounds(*second_, parameters.subspan(of_first));
    return detail::bounds_of_both(one, other);
  }
  // A sum in the second place is added up first: not from left to right.
  std::vector<FunctionPart> parts() const override {
    std::vector<FunctionPart> all = first_->parts();
    const std::vector<FunctionPart> rest = second_->parts();
    if (all.empty() || rest.size() != 1) return {};
    all.push_back(rest.front());
    return all;
  }
  std::optional<EvaluationCost> evaluation_cost() const override {
    EvaluationCost both = detail::cost_of(*first_);
    return both += detail::cost_of(*second_);
  }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override { return lower<float>(target); }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return lower<double>(target);
  }
  std::vector<double> weights() const override {
    std::vector<double> weights = first_->weights();
    const std::vector<double> more = second_->weights();
    weights.insert(weights.end(), more.begin(), more.end());
    return weights;
  }
  std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget target) const override {
    return differentiable<float>(first_->differentiable_f32(target), second_->differentiable_f32(target));
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return differentiable<double>(first_->differentiable_f64(target), second_->differentiable_f64(target));
  }
  std::shared_ptr<DifferentiableTile<float>> directional_f32(CpuTarget target) const override {
    return differentiable<float>(first_->directional_f32(target), second_->directional_f32(target));
  }
  std::shared_ptr<DifferentiableTile<double>> directional_f64(CpuTarget target) const override {
    return differentiable<double>(first_->directional_f64(target), second_->directional_f64(target));
  }

 private:
  template <class T>
  std::shared_ptr<DifferentiableTile<T>> differentiable(std::shared_ptr<DifferentiableTile<T>> first,
                                                        std::shared_ptr<DifferentiableTile<T>> second) const {
    if (!first || !second) return nullptr;
    return std::make_shared<ReverseSum<T>>(std::move(first), std::move(second), components(), first_->parameters(),
                                           second_->parameters());
  }
  template <class T>
  std::shared_ptr<const TileFunction<T>> lower(CpuTarget target) const {
    return std::make_shared<SumTile<T>>(ode::lower<T>(*first_, target), ode::lower<T>(*second_, target), components(),
                                        first_->parameters(), second_->parameters());
  }

  Rhs first_;
  Rhs second_;
};

}  // namespace

Rhs sum(Rhs physics, Rhs closure) {
  detail::require_rhs("sum.physics", physics);
  detail::require_rhs("sum.closure", closure);
  if (physics->components() != closure->components()) {
    throw Error(ErrorKind::invalid_argument,
                {.field = "sum.closure",
                 .found = closure->description() + " with " + std::to_string(closure->components()) + " components",
                 .expected = std::to_string(physics->components()) + ", as " + physics->description() + " has",
                 .remedy = "add right-hand sides over the same state"});
  }
  return std::make_shared<Sum>(std::move(physics), std::move(closure));
}

}  // namespace lockstep::ode
