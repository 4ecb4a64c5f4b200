#include "lockstep/ode/guard.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/detail/evaluation_cost.h"
#include "lockstep/ode/detail/knots_of_inner.h"
#include "lockstep/ode/detail/require_rhs.h"
#include "lockstep/ode/differentiable_tile.h"

namespace lockstep::ode {
namespace {

constexpr std::array<std::string_view, 4> kNames{"ignore", "flag", "clamp", "stop"};

std::string digest_of(const char* what, const Range& range, const std::string& more) {
  ContentHash hash;
  hash.add(what).add(more);
  hash.add(std::span<const double>(range.minimum)).add(std::span<const double>(range.maximum));
  return hash.hex();
}

template <class T>
std::vector<T> rounded(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

// What a net reads behind its state: nothing, or a direction of state and time.
enum class Behind { nothing, direction };

template <class T>
class ClampedTile final : public TileFunction<T> {
 public:
  ClampedTile(std::shared_ptr<const TileFunction<T>> net, std::size_t components, std::size_t parameters,
              const Range& range, Behind behind = Behind::nothing)
      : net_(std::move(net)),
        components_(components),
        rows_(behind == Behind::direction ? 2 * components + 1 : components),
        parameters_(parameters),
        minimum_(rounded<T>(range.minimum)),
        maximum_(rounded<T>(range.maximum)) {}

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override {
    net_->evaluate(clamped(tile, workspace), workspace + own_bytes());
  }
  std::size_t workspace_bytes() const override { return own_bytes() + net_->workspace_bytes(); }
  std::string description() const override { return net_->description() + ", inputs clamped"; }

  // The tile with its inputs brought into the range, which lie in own_bytes() of the workspace.
  TileView<T> clamped(const TileView<T>& tile, std::byte* workspace) const {
    T* const in = reinterpret_cast<T*>(workspace);
    T* const parameters = in + rows_ * kTileLanes;
    for (std::size_t i = 0; i < components_; ++i) clamp(tile.in + i * kTileLanes, in + i * kTileLanes, i);
    if (rows_ > components_) {
      const std::size_t size = components_ * kTileLanes;
      std::fill_n(in + size, size, T(0));
      for (std::size_t i = 0; i < components_; ++i) {
        const T* const row = tile.in + i * kTileLanes;
        add_unclamped(row, i, row + size, in + size + i * kTileLanes);
      }
      std::copy_n(tile.in + 2 * size, kTileLanes, in + 2 * size);
    }
    for (std::size_t i = 0; i < parameters_; ++i) {
      clamp(tile.parameters + i * kTileLanes, parameters + i * kTileLanes, components_ + i);
    }
    return {tile.t, in, parameters_ == 0 ? nullptr : parameters, tile.out, tile.lanes};
  }
  std::size_t own_bytes() const { return (rows_ + parameters_) * kTileLanes * sizeof(T); }
  // bar += the net's own, where input i of the range is not clamped: elsewhere nothing depends on it.
  void add_unclamped(const T* in, std::size_t i, const T* own, T* bar) const {
    for (int lane = 0; lane < kTileLanes; ++lane) {
      bar[lane] += in[lane] < low(i) || in[lane] > high(i) ? T(0) : own[lane];
    }
  }

 private:
  T low(std::size_t i) const { return i < minimum_.size() ? minimum_[i] : -std::numeric_limits<T>::infinity(); }
  T high(std::size_t i) const { return i < maximum_.size() ? maximum_[i] : std::numeric_limits<T>::infinity(); }
  // Comparisons with NaN are false: it passes.
  void clamp(const T* from, T* to, std::size_t i) const {
    for (int lane = 0; lane < kTileLanes; ++lane) {
      const T value = from[lane] < low(i) ? low(i) : from[lane];
      to[lane] = value > high(i) ? high(i) : value;
    }
  }

  std::shared_ptr<const TileFunction<T>> net_;
  std::size_t components_, rows_, parameters_;  // rows_: of `in`
  std::vector<T> minimum_, maximum_;
};

// The derivative by a clamped input is 0.
template <class T>
class ReverseClamped final : public DifferentiableTile<T> {
 public:
  ReverseClamped(std::shared_ptr<DifferentiableTile<T>> net, std::size_t components, std::size_t parameters,
                 const Range& range, Behind behind)
      : net_(net),
        clamped_(net, components, parameters, range, behind),
        components_(components),
        parameters_(parameters) {}

  void evaluate(const TileView<T>& tile, std::byte* workspace) const override { clamped_.evaluate(tile, workspace); }
  std::size_t workspace_bytes() const override { return clamped_.workspace_bytes(); }
  std::string description() const override { return clamped_.description(); }

  void evaluate_recording(const TileView<T>& tile, std::byte* record, std::byte* workspace) const override {
    net_->evaluate_recording(clamped_.clamped(tile, workspace), record, workspace + clamped_.own_bytes());
  }
  std::size_t record_bytes() const override { return net_->record_bytes(); }
  std::size_t cotangent_bytes() const override { return net_->cotangent_bytes(); }

  void reverse(const ReverseTileView<T>& tile, std::byte* workspace) const override {
    std::byte* const bars = workspace + clamped_.own_bytes();
    T* const in_bar = reinterpret_cast<T*>(bars);
    T* const parameter_bar = in_bar + components_ * kTileLanes;
    std::fill_n(in_bar, (components_ + parameters_) * kTileLanes, T(0));
    const TileView<T> inside = clamped_.clamped({tile.t, tile.in, tile.parameters, nullptr, kTileLanes}, workspace);
    ReverseTileView<T> of_net = tile;
    of_net.in = inside.in;
    of_net.parameters = inside.parameters;
    of_net.in_bar = in_bar;
    of_net.parameter_bar = parameters_ == 0 ? nullptr : parameter_bar;
    net_->reverse(of_net, bars + clamped_.own_bytes());
    for (std::size_t i = 0; i < components_; ++i) {
      const std::size_t row = i * kTileLanes;
      clamped_.add_unclamped(tile.in + row, i, in_bar + row, tile.in_bar + row);
    }
    for (std::size_t i = 0; i < parameters_; ++i) {
      const std::size_t row = i * kTileLanes;
      clamped_.add_unclamped(tile.parameters + row, components_ + i, parameter_bar + row, tile.parameter_bar + row);
    }
  }
  std::size_t reverse_workspace_bytes() const override {
    return 2 * clamped_.own_bytes() + net_->reverse_workspace_bytes();
  }
  bool knows_time() const override { return net_->knows_time(); }
  std::size_t weights() const override { return net_->weights(); }
  bool begins_with_own_weights() const override { return net_->begins_with_own_weights(); }
  void set_weights(std::span<const T> weights) override { net_->set_weights(weights); }
  void accumulate(std::span<const RecordedEvaluation> evaluations, T* gradient) const override {
    net_->accumulate(evaluations, gradient);
  }

 private:
  std::shared_ptr<DifferentiableTile<T>> net_;
  ClampedTile<T> clamped_;
  std::size_t components_, parameters_;
};

class Clamped final : public detail::KnotsOfInner {
 public:
  Clamped(Rhs net, Range range) : KnotsOfInner(std::move(net)), range_(std::move(range)) {}

  std::size_t components() const override { return inner_->components(); }
  std::size_t parameters() const override { return inner_->parameters(); }
  std::string description() const override { return inner_->description() + ", inputs clamped to the training range"; }
  std::string digest() const override { return digest_of("clamped", range_, inner_->digest()); }
  // Of a net; what else is within takes its inputs from places that only it knows.
  std::vector<FunctionPart> parts() const override {
    std::vector<FunctionPart> parts = inner_->parts();
    NetPart* const net = parts.size() == 1 ? std::get_if<NetPart>(&parts.front().what) : nullptr;
    if (net == nullptr || net->range.minimum != nullptr) return {};
    net->range = {&range_.minimum, &range_.maximum};
    return parts;
  }
  std::optional<EvaluationCost> evaluation_cost() const override { return detail::cost_of(*inner_); }
  std::vector<double> weights() const override { return inner_->weights(); }
  std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget target) const override {
    return differentiable(inner_->differentiable_f32(target), Behind::nothing);
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return differentiable(inner_->differentiable_f64(target), Behind::nothing);
  }
  std::shared_ptr<DifferentiableTile<float>> directional_f32(CpuTarget target) const override {
    return differentiable(inner_->directional_f32(target), Behind::direction);
  }
  std::shared_ptr<DifferentiableTile<double>> directional_f64(CpuTarget target) const override {
    return differentiable(inner_->directional_f64(target), Behind::direction);
  }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override { return make<float>(target); }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return make<double>(target);
  }

 private:
  template <class T>
  std::shared_ptr<DifferentiableTile<T>> differentiable(std::shared_ptr<DifferentiableTile<T>> net,
                                                        Behind behind) const {
    if (!net) return nullptr;
    return std::make_shared<ReverseClamped<T>>(std::move(net), components(), parameters(), range_, behind);
  }
  template <class T>
  std::shared_ptr<const TileFunction<T>> make(CpuTarget target) const {
    return std::make_shared<ClampedTile<T>>(lower<T>(*inner_, target), components(), parameters(), range_);
  }
  Range range_;
};

// 1 inside, -1 outside: events are located by the sign alone, and a bound itself is inside.
template <class T>
class InsideTile final : public TileFunction<T> {
 public:
  InsideTile(std::size_t components, const Range& range)
      : components_(components), minimum_(rounded<T>(range.minimum)), maximum_(rounded<T>(range.maximum)) {}

  void evaluate(const TileView<T>& tile, std::byte*) const override {
    for (int lane = 0; lane < kTileLanes; ++lane) tile.out[lane] = 1;
    for (std::size_t i = 0; i < components_; ++i) {
      const T* row = tile.in + i * kTileLanes;
      for (int lane = 0; lane < kTileLanes; ++lane) {
        const bool inside = row[lane] >= minimum_[i] && row[lane] <= maximum_[i];
        tile.out[lane] = inside ? tile.out[lane] : T(-1);
      }
    }
  }

 private:
  std::size_t components_;
  std::vector<T> minimum_, maximum_;
};

class Inside final : public StateFunction {
 public:
  Inside(const Rhs& rhs, Range range)
      : components_(rhs->components()), parameters_(rhs->parameters()), range_(std::move(range)) {}

  std::size_t components() const override { return components_; }
  std::size_t parameters() const override { return parameters_; }
  std::size_t outputs() const override { return 1; }
  std::string description() const override { return "leaves the training range"; }
  std::string digest() const override { return digest_of("inside", range_, std::to_string(components_)); }
  std::vector<FunctionPart> parts() const override {
    return {{RangePart{&range_.minimum, &range_.maximum}, parameters_}};
  }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget) const override {
    return std::make_shared<InsideTile<float>>(components_, range_);
  }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget) const override {
    return std::make_shared<InsideTile<double>>(components_, range_);
  }

 private:
  std::size_t components_, parameters_;
  Range range_;
};

void require_fitting(const StateFunction& rhs, const Range& range) {
  const std::size_t n = rhs.components();
  if (range.minimum.size() == range.maximum.size() && range.minimum.size() >= n &&
      range.minimum.size() <= n + rhs.parameters()) {
    return;
  }
  throw Error(ErrorKind::invalid_argument,
              {"range",
               std::to_string(range.minimum.size()) + " minima, " + std::to_string(range.maximum.size()) + " maxima",
               "one of each for " + std::to_string(n) + " components, then perhaps for parameters",
               {}});
}

}  // namespace

std::string_view to_string(GuardAction action) { return kNames[static_cast<std::size_t>(action)]; }

std::optional<GuardAction> parse_guard_action(std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<GuardAction>(found - kNames.begin());
}

bool Range::bounded() const {
  const auto finite = [](double x) { return std::isfinite(x); };
  return std::any_of(minimum.begin(), minimum.end(), finite) || std::any_of(maximum.begin(), maximum.end(), finite);
}

Rhs clamp_to_range(Rhs net, Range range) {
  const StandardArithmetic arithmetic;
  detail::require_rhs("clamp_to_range", net);
  require_fitting(*net, range);
  return std::make_shared<Clamped>(std::move(net), std::move(range));
}

TerminalEvent leaves_range(const Rhs& rhs, const Range& range) {
  const StandardArithmetic arithmetic;
  detail::require_rhs("leaves_range", rhs);
  require_fitting(*rhs, range);
  return {std::make_shared<Inside>(rhs, range), TerminalEvent::Direction::falling};
}

GuardedSink::GuardedSink(SolutionSink& inner, const Problem& problem, Precision precision, Range range,
                         GuardAction action)
    : inner_(inner), problem_(problem), precision_(precision), range_(std::move(range)), action_(action) {
  require_fitting(*problem.rhs, range_);
  excursions_.resize(range_.minimum.size());
  for (std::size_t i = 0; i < excursions_.size(); ++i) excursions_[i].input = i;
}

template <class T>
bool GuardedSink::inside(const T* values, std::size_t first, std::size_t count) const {
  for (std::size_t i = 0; i < count; ++i) {
    // NaN, where a trajectory had ended, is nowhere.
    if (values[i] < static_cast<T>(range_.minimum[first + i]) ||
        values[i] > static_cast<T>(range_.maximum[first + i])) {
      return false;
    }
  }
  return true;
}

// Positive outside; NaN, and what has no bound, is minus infinity.
template <class T>
double GuardedSink::widths_outside(std::size_t input, T number) const {
  const double value = static_cast<double>(number);
  const double low = static_cast<double>(static_cast<T>(range_.minimum[input]));  // as inside() sees it
  const double high = static_cast<double>(static_cast<T>(range_.maximum[input]));
  const double bound = std::isfinite(low) && (!std::isfinite(high) || value - low < high - value) ? low : high;
  if (!std::isfinite(bound) || std::isnan(value)) return -std::numeric_limits<double>::infinity();
  const double width = std::isfinite(high - low) ? high - low : std::fabs(bound);
  const double beyond = bound == low ? low - value : value - high;
  return beyond / (width > 0 ? width : 1);
}

template <class T>
void GuardedSink::keep_excursions(const SolutionBlock& block, std::size_t row, const std::vector<T>& start,
                                  const std::vector<T>& parameters) {
  const std::size_t n = start.size(), points = problem_.save_points();
  std::vector<Excursion> farthest(excursions_.size());
  for (Excursion& one : farthest) one.widths = -std::numeric_limits<double>::infinity();
  const auto look = [&](std::size_t input, T number) {
    const double widths = widths_outside(input, number);
    if (widths > farthest[input].widths) farthest[input] = {input, 1, static_cast<double>(number), widths};
  };
  const T* const end = static_cast<const T*>(block.end_state) + row * n;
  const T* const states = static_cast<const T*>(block.state) + row * points * n;
  for (std::size_t i = 0; i < n; ++i) {
    look(i, start[i]);
    look(i, end[i]);
    for (std::size_t time = 0; time < points; ++time) look(i, states[time * n + i]);
  }
  for (std::size_t i = 0; i < parameters.size(); ++i) look(n + i, parameters[i]);
  // Where stop ends a trajectory its state lies on a bound, to rounding on either side of it.
  const auto most = std::max_element(farthest.begin(), farthest.end(),
                                     [](const Excursion& a, const Excursion& b) { return a.widths < b.widths; });
  const std::lock_guard lock(mutex_);
  for (auto one = farthest.begin(); one != farthest.end(); ++one) {
    if (!(one->widths > 0) && !(one == most && action_ == GuardAction::stop)) continue;
    Excursion& kept = excursions_[static_cast<std::size_t>(one - farthest.begin())];
    const bool farther =
        kept.trajectories == 0 || one->widths > kept.widths || (one->widths == kept.widths && one->value < kept.value);
    if (farther) {
      kept.value = one->value;
      kept.widths = one->widths;
    }
    ++kept.trajectories;
  }
}

std::vector<Excursion> GuardedSink::excursions() const {
  const StandardArithmetic arithmetic;
  std::vector<Excursion> found;
  const std::lock_guard lock(mutex_);
  std::copy_if(excursions_.begin(), excursions_.end(), std::back_inserter(found),
               [](const Excursion& one) { return one.trajectories > 0; });
  std::stable_sort(found.begin(), found.end(),
                   [](const Excursion& a, const Excursion& b) { return a.widths > b.widths; });
  return found;
}

template <class T>
void GuardedSink::judge(const SolutionBlock& block, std::size_t row) {
  const std::size_t n = problem_.rhs->components(), points = problem_.save_points(), trajectory = block.first + row;
  TrajectoryRecord& record = block.records[row];
  if (record.status == Status::cancelled) return;
  T* const states = static_cast<T*>(block.state) + row * points * n;
  T* const end = static_cast<T*>(block.end_state) + row * n;
  std::vector<T> start(n), parameters(range_.minimum.size() - n);
  for (std::size_t i = 0; i < n; ++i) start[i] = static_cast<T>(problem_.initial_states[trajectory * n + i]);
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    parameters[i] = static_cast<T>(problem_.parameters_of(trajectory)[i]);
  }
  const bool starts_inside = inside(start.data(), 0, n) && inside(parameters.data(), n, parameters.size());
  bool outside = !starts_inside;
  if (action_ == GuardAction::stop) {
    outside = outside || record.status == Status::terminated;
    if (!starts_inside) {
      const double* times = problem_.save_times_of(trajectory);
      const double begin = problem_.start_time(trajectory);
      for (std::size_t time = 0; time < points; ++time) {
        if (times[time] == begin) continue;
        std::fill_n(states + time * n, n, std::numeric_limits<T>::quiet_NaN());
      }
      std::copy(start.begin(), start.end(), end);
      record.end_time = begin;
      if (block.events != nullptr) block.events[row].clear();
    }
  } else {
    outside = outside || !inside(end, 0, n);
    for (std::size_t time = 0; !outside && time < points; ++time) outside = !inside(states + time * n, 0, n);
    // What went wrong otherwise says more.
    if (record.status != Status::success && record.status != Status::terminated) return;
  }
  if (!outside) return;
  changed_[static_cast<std::size_t>(record.status)].fetch_add(1, std::memory_order_relaxed);
  keep_excursions(block, row, start, parameters);
  record.status = Status::outside_range;
}

void GuardedSink::judge_row(const SolutionBlock& block, std::size_t row) {
  if (precision_ == Precision::f32) {
    judge<float>(block, row);
  } else {
    judge<double>(block, row);
  }
}

void GuardedSink::commit(const SolutionBlock& block) {
  const StandardArithmetic arithmetic;
  for (std::size_t row = 0; row < block.count; ++row) {
    if (!block.was_handed_in(row)) judge_row(block, row);
  }
  inner_.commit(block);
}

void GuardedSink::hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) {
  const StandardArithmetic arithmetic;
  for (const std::size_t row : rows) judge_row(block, row);
  inner_.hand_in(block, rows);
}

void GuardedSink::correct(Summary& summary) const {
  const StandardArithmetic arithmetic;
  for (std::size_t i = 0; i < changed_.size(); ++i) {
    const std::size_t count = changed_[i].load();
    summary.count_of[i] -= count;
    summary.count_of[static_cast<std::size_t>(Status::outside_range)] += count;
  }
}

}  // namespace lockstep::ode
