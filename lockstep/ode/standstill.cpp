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
#include "lockstep/ode/state_function.h"

namespace lockstep::ode {
namespace {

constexpr std::size_t kMost = kTileLanes;   // trajectories looked at
constexpr std::int32_t kFewestSteps = 128;  // fewer lose nothing that a tolerance would not

double spacing_at(float state) {
  const float size = std::fabs(state);
  return static_cast<double>(std::nextafter(size, std::numeric_limits<float>::infinity())) - static_cast<double>(size);
}

// Rates of a tile of trajectories.
class Rates {
 public:
  // `function` is the right-hand side lowered.
  Rates(const StateFunction& rhs, std::shared_ptr<const TileFunction<float>> function)
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
      parameters_[i * kTileLanes + lane] = static_cast<float>(parameters[i]);
    }
  }
  float& state(std::size_t lane, std::size_t component) { return state_[component * kTileLanes + lane]; }
  void evaluate(std::size_t lanes) {
    function_->evaluate({t_.data(), state_.data(), parameters_.data(), rates_.data(), static_cast<int>(lanes)},
                        workspace_.data());
  }
  double rate(std::size_t lane, std::size_t component) const {
    return static_cast<double>(rates_[component * kTileLanes + lane]);
  }

 private:
  std::shared_ptr<const TileFunction<float>> function_;
  AlignedBuffer<double> t_;
  AlignedBuffer<float> state_, parameters_, rates_;
  AlignedBuffer<std::byte> workspace_;
  std::size_t parameter_count_;
};

bool ended_well(const TrajectoryRecord& record) {
  return record.status == Status::success || record.status == Status::terminated ||
         record.status == Status::outside_range || record.status == Status::too_many_steps;
}

}  // namespace

EndSample::EndSample(SolutionSink& inner, const Problem& problem, Precision precision)
    : inner_(inner),
      problem_(problem),
      precision_(precision),
      stride_(std::max<std::size_t>(1, (problem.trajectories() + kMost - 1) / kMost)) {}

void EndSample::commit(const SolutionBlock& block) {
  if (precision_ == Precision::f32) {
    const std::size_t components = problem_.rhs->components();
    const auto* states = static_cast<const float*>(block.end_state);
    for (std::size_t i = (block.first + stride_ - 1) / stride_ * stride_; i < block.first + block.count; i += stride_) {
      const std::size_t row = i - block.first;
      const TrajectoryRecord& record = block.records[row];
      if (!ended_well(record) || record.accepted < kFewestSteps) continue;
      const float* const state = states + row * components;
      const std::lock_guard lock(mutex_);
      ends_.push_back({i, record, {state, state + components}});
    }
  }
  inner_.commit(block);
}

std::vector<Standstill> EndSample::standstills(const Options& options) const {
  const std::size_t lanes = std::min(ends_.size(), kMost), components = problem_.rhs->components();
  if (lanes == 0) return {};
  std::vector<Standstill> found;
  try {
    const auto function = lower<float>(*problem_.rhs, best_cpu_target());
    Rates first(*problem_.rhs, function), last(*problem_.rhs, function);
    for (std::size_t lane = 0; lane < lanes; ++lane) {
      const End& end = ends_[lane];
      const double* const start = problem_.initial_states.data() + end.trajectory * components;
      first.set(lane, problem_.start_time(end.trajectory), problem_.parameters_of(end.trajectory));
      last.set(lane, end.record.end_time, problem_.parameters_of(end.trajectory));
      for (std::size_t c = 0; c < components; ++c) {
        first.state(lane, c) = static_cast<float>(start[c]);
        last.state(lane, c) = end.state[c];
      }
    }
    first.evaluate(lanes);
    last.evaluate(lanes);
    for (std::size_t c = 0; c < components; ++c) {
      Standstill most{.component = c};
      for (std::size_t lane = 0; lane < lanes; ++lane) {
        const End& end = ends_[lane];
        const double span = std::fabs(end.record.end_time - problem_.start_time(end.trajectory));
        const double step = span / end.record.accepted, state = static_cast<double>(end.state[c]);
        const double spacing = spacing_at(end.state[c]), rate = last.rate(lane, c);
        const bool lost = std::fabs(rate) * step < spacing / 2 &&
                          std::fabs(first.rate(lane, c)) * step < spacing_at(first.state(lane, c)) / 2;
        const double matters = options.control == StepControl::fixed
                                   ? 64 * spacing
                                   : 10 * (options.atol_of(c) + options.rtol * std::fabs(state));
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
