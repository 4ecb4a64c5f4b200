#include "lockstep/ode/standstill.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/error.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/tile.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode {
namespace {

constexpr std::size_t kMost = kTileLanes;   // trajectories looked at
constexpr std::int32_t kFewestSteps = 128;  // fewer lose nothing that a tolerance would not
constexpr double kSmall = 10;               // absolute tolerances

double spacing_at(float state) {
  const float size = std::fabs(state);
  return static_cast<double>(std::nextafter(size, std::numeric_limits<float>::infinity())) - static_cast<double>(size);
}

// Rates of a tile of trajectories.
template <class T>
class Rates {
 public:
  // `function` is the right-hand side lowered.
  Rates(const StateFunction& rhs, std::shared_ptr<const TileFunction<T>> function)
      : function_(std::move(function)),
        t_(kTileLanes),
        state_(rhs.components() * kTileLanes),
        parameters_(std::max<std::size_t>(rhs.parameters(), 1) * kTileLanes),
        rates_(rhs.components() * kTileLanes),
        workspace_(function_->workspace_bytes()),
        parameter_count_(rhs.parameters()) {}

  void set(std::size_t lane, double t, const double* parameters) {
    t_[lane] = t;
    for (std::size_t i = 0; i < parameter_count_; ++i) {
      parameters_[i * kTileLanes + lane] = static_cast<T>(parameters[i]);
    }
  }
  T& state(std::size_t lane, std::size_t component) { return state_[component * kTileLanes + lane]; }
  void evaluate(std::size_t lanes) {
    function_->evaluate({t_.data(), state_.data(), parameters_.data(), rates_.data(), static_cast<int>(lanes)},
                        workspace_.data());
  }
  double rate(std::size_t lane, std::size_t component) const {
    return static_cast<double>(rates_[component * kTileLanes + lane]);
  }

 private:
  std::shared_ptr<const TileFunction<T>> function_;
  AlignedBuffer<double> t_;
  AlignedBuffer<T> state_, parameters_, rates_;
  AlignedBuffer<std::byte> workspace_;
  std::size_t parameter_count_;
};

bool ended_well(const TrajectoryRecord& record) {
  return record.status == Status::success || record.status == Status::terminated ||
         record.status == Status::outside_range || record.status == Status::too_many_steps;
}

}  // namespace

EndSample::EndSample(SolutionSink& inner, const Problem& problem, const Options& options)
    : inner_(inner),
      problem_(problem),
      options_(options),
      stride_(std::max<std::size_t>(1, (problem.trajectories() + kMost - 1) / kMost)) {
  if (options.control == StepControl::fixed) return;
  const std::size_t components = problem.rhs->components();
  for (std::size_t c = 0; c < components; ++c) small_.push_back({c, 0});
  look_at(small_, problem.initial_states.data(), problem.initial_states.size() / components);
  std::erase_if(small_, [&](const Small& of) { return of.largest >= bound(of.component); });
}

double EndSample::bound(std::size_t component) const { return kSmall * options_.atol_of(component); }

// `states` [count][component]; NaN where a trajectory ended before.
void EndSample::look_at(std::span<Small> small, const auto* states, std::size_t count) const {
  const std::size_t components = problem_.rhs->components();
  for (Small& of : small) {
    for (std::size_t i = 0; i < count; ++i) {
      const auto size = static_cast<double>(std::fabs(states[i * components + of.component]));
      if (size > of.largest) of.largest = size;
      if (of.largest >= bound(of.component)) break;
    }
  }
}

template <class T>
void EndSample::look_at(const SolutionBlock& block) {
  const std::size_t components = problem_.rhs->components();
  const auto* ends = static_cast<const T*>(block.end_state);
  std::vector<Small> small;
  {
    const std::lock_guard lock(mutex_);
    small = small_;
  }
  if (!small.empty()) {  // seldom
    look_at(small, ends, block.count);
    look_at(small, static_cast<const T*>(block.state), block.count * problem_.save_points());
    const std::lock_guard lock(mutex_);
    for (Small& of : small_) {
      const auto found = std::ranges::find(small, of.component, &Small::component);
      if (found != small.end()) of.largest = std::max(of.largest, found->largest);
    }
    std::erase_if(small_, [&](const Small& of) { return of.largest >= bound(of.component); });
  }
  for (std::size_t i = (block.first + stride_ - 1) / stride_ * stride_; i < block.first + block.count; i += stride_) {
    const std::size_t row = i - block.first;
    const TrajectoryRecord& record = block.records[row];
    if (record.status == Status::cancelled || record.accepted == 0) continue;
    const T* const state = ends + row * components;
    const std::lock_guard lock(mutex_);
    ends_.push_back({i, record, {state, state + components}});
  }
}

void EndSample::commit(const SolutionBlock& block) {
  options_.precision == Precision::f32 ? look_at<float>(block) : look_at<double>(block);
  inner_.commit(block);
}

bool EndSample::goes_far(std::size_t component) const {
  const std::size_t lanes = std::min(ends_.size(), kMost), components = problem_.rhs->components();
  if (lanes == 0) return false;
  try {
    Rates<double> rates(*problem_.rhs, lower<double>(*problem_.rhs, best_cpu_target()));
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const std::size_t trajectory = ends_[lane].trajectory;
      rates.set(lane, problem_.start_time(trajectory), problem_.parameters_of(trajectory));
      for (std::size_t c = 0; c < components; ++c) {
        rates.state(lane, c) = problem_.initial_states[trajectory * components + c];
      }
    }
    rates.evaluate(lanes);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const auto& [trajectory, record, state] = ends_[lane];
      const double step = std::fabs(record.end_time - problem_.start_time(trajectory)) / record.accepted;
      if (std::fabs(rates.rate(lane, component)) * step >= bound(component)) return true;
    }
    return false;
  } catch (const Error&) {
    return true;  // a right-hand side of a GPU alone: nobody knows
  }
}

std::vector<SmallComponent> EndSample::small_components() const {
  std::vector<SmallComponent> found;
  for (const Small& of : small_) {
    if (of.largest == 0 || ends_.empty() || goes_far(of.component)) continue;
    found.push_back({of.component, of.largest, options_.atol_of(of.component)});
  }
  return found;
}

std::vector<FadedComponent> EndSample::faded_components() const {
  constexpr double kRoundings = 0x1p-20;  // sixteen of them
  if (options_.precision != Precision::f32 || options_.control == StepControl::fixed) return {};
  if (!method(options_.method).is_linearly_implicit()) return {};
  const std::size_t components = problem_.rhs->components();
  std::vector<FadedComponent> found;
  for (std::size_t c = 0; c < components; ++c) {
    FadedComponent faded{c, 0, options_.atol_of(c)};
    for (const End& end : ends_) {
      if (!ended_well(end.record)) continue;
      const double start = std::fabs(problem_.initial_states[end.trajectory * components + c]);
      double beside = 0;
      for (const double state : end.state) beside = std::max(beside, std::fabs(state));
      const double size = std::fabs(end.state[c]);
      if (start >= bound(c) && size < std::min(faded.atol, kRoundings * beside)) faded.end = std::max(faded.end, size);
    }
    if (faded.end != 0) found.push_back(faded);
  }
  return found;
}

const EndSample::End* EndSample::longest() const {
  const auto attempts = [](const End& end) { return std::int64_t{end.record.accepted} + end.record.rejected; };
  const End* longest = nullptr;
  for (const End& end : ends_) {
    const bool well = end.record.status == Status::success || end.record.status == Status::terminated;
    if (well && (longest == nullptr || attempts(end) > attempts(*longest))) longest = &end;
  }
  return longest;
}

std::vector<Standstill> EndSample::standstills() const {
  if (options_.precision != Precision::f32) return {};
  std::vector<End> ends;
  for (const End& end : ends_) {
    if (ended_well(end.record) && end.record.accepted >= kFewestSteps && ends.size() < kMost) ends.push_back(end);
  }
  const std::size_t lanes = ends.size(), components = problem_.rhs->components();
  if (lanes == 0) return {};
  std::vector<Standstill> found;
  try {
    const auto function = lower<float>(*problem_.rhs, best_cpu_target());
    Rates<float> first(*problem_.rhs, function), last(*problem_.rhs, function);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const End& end = ends[lane];
      const double* const start = problem_.initial_states.data() + end.trajectory * components;
      first.set(lane, problem_.start_time(end.trajectory), problem_.parameters_of(end.trajectory));
      last.set(lane, end.record.end_time, problem_.parameters_of(end.trajectory));
      for (std::size_t c = 0; c < components; ++c) {
        first.state(lane, c) = static_cast<float>(start[c]);
        last.state(lane, c) = static_cast<float>(end.state[c]);
      }
    }
    first.evaluate(lanes);
    last.evaluate(lanes);
    for (std::size_t c = 0; c < components; ++c) {
      Standstill most{.component = c};
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const End& end = ends[lane];
        const double span = std::fabs(end.record.end_time - problem_.start_time(end.trajectory));
        const double step = span / end.record.accepted, state = end.state[c];
        const double spacing = spacing_at(last.state(lane, c)), rate = last.rate(lane, c);
        const bool lost = std::fabs(rate) * step < spacing / 2 &&
                          std::fabs(first.rate(lane, c)) * step < spacing_at(first.state(lane, c)) / 2;
        const double matters = options_.control == StepControl::fixed
                                   ? 64 * spacing
                                   : 10 * (options_.atol_of(c) + options_.rtol * std::fabs(state));
        if (!lost || !(std::fabs(rate) * span > std::max(matters, std::fabs(most.lost)))) continue;
        most = {c, state, rate, step, spacing, rate * span};
      }
      if (most.lost != 0) found.push_back(most);
    }
  } catch (const Error&) {
    return {};  // a right-hand side of a GPU alone
  }
  return found;
}

}  // namespace lockstep::ode
