#include "lockstep/ode/cpu/long_steps.h"

#include <algorithm>
#include <array>
#include <numbers>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/ode/cpu/adjoint_tile.h"
#include "lockstep/ode/methods.h"

namespace lockstep::ode::cpu {
namespace {

using LaneNumbers = std::array<double, kTileLanes>;

// The linear maps by which steps of a method carry derivatives, at one state for each lane. Of their transposes, which
// have the same eigenvalues.
template <class T>
class StepMaps {
 public:
  StepMaps(const Problem& problem, const Tableau& tableau, const DifferentiableTile<T>& rhs,
           const std::vector<LongStep<T>>& steps)
      : tableau_(tableau),
        rhs_(rhs),
        n_(problem.rhs->components()),
        lanes_(static_cast<int>(std::min(steps.size(), std::size_t{kTileLanes}))),
        t_(kTileLanes),
        state_(n_ * kTileLanes),
        parameters_(problem.rhs->parameters() * kTileLanes),
        parameter_bar_(parameters_.size()),
        vector_(state_.size()),
        argument_(state_.size()),
        k_(static_cast<std::size_t>(tableau.stages) * state_.size()),
        recorded_(rhs.record_bytes()),
        cotangents_(rhs.cotangent_bytes()),
        workspace_(std::max(rhs.workspace_bytes(), rhs.reverse_workspace_bytes())) {
    for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
      const LongStep<T>& step = steps[std::min(lane, steps.size() - 1)];
      t_[lane] = step.t;
      for (std::size_t c = 0; c < n_; ++c) state_[c * kTileLanes + lane] = step.state[c];
      const double* const p = problem.parameters_of(step.trajectory);
      for (std::size_t i = 0; i < problem.rhs->parameters(); ++i) {
        parameters_[i * kTileLanes + lane] = static_cast<T>(p[i]);
      }
      // Neither uniform nor of one sign over the components: modes of a symmetric system are in it.
      for (std::size_t c = 0; c < n_; ++c) {
        const double golden = static_cast<double>(c + 1) * 0.6180339887498949;
        const double part = golden - std::floor(golden);
        vector_[c * kTileLanes + lane] = static_cast<T>(part < 0.5 ? -0.5 - part : part);
      }
    }
    rhs_.evaluate_recording({t_.data(), state_.data(), parameters(), argument_.data(), lanes_}, recorded_.data(),
                            workspace_.data());
    normalise(vector_.data());
    start_ = AlignedBuffer<T>(vector_.size());
    std::copy_n(vector_.data(), vector_.size(), start_.data());
  }

  // The largest eigenvalue of the Jacobian, in magnitude.
  LaneNumbers rates() {
    AlignedBuffer<T> v(vector_.size());
    std::copy_n(vector_.data(), vector_.size(), v.data());
    LaneNumbers rates;
    rates.fill(1);
    for (int i = 0; i < kWarmUps + kMeasured; ++i) {
      transpose(v.data(), argument_.data());
      std::copy_n(argument_.data(), v.size(), v.data());
      take(normalise(v.data()), i, rates);
    }
    return mean(rates);
  }

  // By how much steps of h [lane] multiply what they multiply most.
  LaneNumbers growth(const LaneNumbers& h) {
    LaneNumbers growth;
    growth.fill(1);
    for (int i = 0; i < kWarmUps + kMeasured; ++i) {
      step(h);
      take(normalise(vector_.data()), i, growth);
    }
    for (std::size_t at = 0; at < vector_.size(); ++at) {
      const double all = growth[at % kTileLanes];
      if (!(all > 0) || !std::isfinite(all)) vector_[at] = start_[at];  // shorter steps begin anew
    }
    return mean(growth);
  }
  // By how much two halves of the steps for which growth() was asked last multiply the same.
  LaneNumbers growth_in_halves(const LaneNumbers& h) {
    AlignedBuffer<T> kept(vector_.size());
    std::copy_n(vector_.data(), vector_.size(), kept.data());
    LaneNumbers half = h;
    for (double& each : half) each /= 2;
    LaneNumbers growth;
    growth.fill(1);
    for (int i = 0; i < 2; ++i) {
      step(half);
      const LaneNumbers norms = normalise(vector_.data());
      for (std::size_t lane = 0; lane < kTileLanes; ++lane) growth[lane] *= norms[lane];
    }
    std::copy_n(kept.data(), kept.size(), vector_.data());
    return growth;
  }

 private:
  static constexpr int kWarmUps = 2, kMeasured = 2;  // two: of a complex pair one alone would say little

  static void take(const LaneNumbers& norms, int iteration, LaneNumbers& product) {
    if (iteration < kWarmUps) return;
    for (std::size_t lane = 0; lane < kTileLanes; ++lane) product[lane] *= norms[lane];
  }
  static LaneNumbers mean(LaneNumbers product) {
    for (double& each : product) each = std::pow(each, 1.0 / kMeasured);
    return product;
  }
  const T* parameters() const { return parameters_.size() == 0 ? nullptr : parameters_.data(); }

  void transpose(const T* out_bar, T* in_bar) {
    std::fill_n(in_bar, state_.size(), T(0));
    std::fill_n(parameter_bar_.data(), parameter_bar_.size(), T(0));
    ReverseTileView<T> view{};
    view.t = t_.data();
    view.in = state_.data();
    view.parameters = parameters();
    view.out_bar = out_bar;
    view.in_bar = in_bar;
    view.parameter_bar = parameter_bar_.size() == 0 ? nullptr : parameter_bar_.data();
    view.record = recorded_.data();
    view.cotangents = cotangents_.data();
    view.lanes = lanes_;
    rhs_.reverse(view, workspace_.data());
  }

  // vector_ = R(h J^T) vector_, the method's stability function: y1 is the last stage's argument.
  void step(const LaneNumbers& h) {
    const auto stages = static_cast<std::size_t>(tableau_.stages);
    for (std::size_t i = 0; i < stages; ++i) {
      std::copy_n(vector_.data(), vector_.size(), argument_.data());
      for (std::size_t j = 0; j < i; ++j) {
        const double a = tableau_.a_at(static_cast<int>(i), static_cast<int>(j));
        if (a == 0) continue;
        const T* const k = k_.data() + j * state_.size();
        for (std::size_t at = 0; at < state_.size(); ++at) {
          argument_[at] += static_cast<T>(a * h[at % kTileLanes]) * k[at];
        }
      }
      if (i + 1 < stages) transpose(argument_.data(), k_.data() + i * state_.size());
    }
    std::copy_n(argument_.data(), vector_.size(), vector_.data());
  }

  // Each lane's column to length 1, and what it was; what has none, or is not finite, stays.
  LaneNumbers normalise(T* v) const {
    LaneNumbers squares{};
    for (std::size_t at = 0; at < state_.size(); ++at) {
      squares[at % kTileLanes] += static_cast<double>(v[at]) * static_cast<double>(v[at]);
    }
    LaneNumbers norms;
    for (std::size_t lane = 0; lane < kTileLanes; ++lane) {
      norms[lane] = std::sqrt(squares[lane]);
      if (!(norms[lane] > 0) || !std::isfinite(norms[lane])) continue;
      for (std::size_t c = 0; c < n_; ++c) {
        T& each = v[c * kTileLanes + lane];
        each = static_cast<T>(static_cast<double>(each) / norms[lane]);
      }
    }
    return norms;
  }

  const Tableau& tableau_;
  const DifferentiableTile<T>& rhs_;
  std::size_t n_;
  int lanes_;  // those behind hold the last step's numbers, and nothing is made of them
  AlignedBuffer<double> t_;
  AlignedBuffer<T> state_, parameters_, parameter_bar_, vector_, start_, argument_, k_;
  AlignedBuffer<std::byte> recorded_, cotangents_, workspace_;
};

// Whether a step multiplies by more than `most`. Two halves of it do as it does where it is the system that grows.
bool is_unstable(double growth, double in_halves, double most = 1.1) {
  constexpr double kSame = 1.1;
  const double ratio = std::max(growth / in_halves, in_halves / growth);
  return growth > most && !(ratio < kSame);
}

// Of each step whether it is unstable. Those that are much longer than the fastest rate tells count as shorter ones,
// which say as much in numbers that float32 has.
template <class T>
std::optional<std::size_t> find_unstable(StepMaps<T>& maps, const std::vector<LongStep<T>>& steps) {
  constexpr double kResolved = 1, kFar = 24;  // of h times the fastest rate
  const LaneNumbers rates = maps.rates();
  LaneNumbers h{};
  bool any = false;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double turns = std::fabs(steps[i].h) * rates[i];
    if (!(turns > kResolved) || !std::isfinite(turns)) continue;
    h[i] = steps[i].h * std::min(1.0, kFar / turns);
    any = true;
  }
  if (!any) return {};
  const LaneNumbers growth = maps.growth(h), in_halves = maps.growth_in_halves(h);
  std::optional<std::size_t> worst;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (h[i] == 0 || !is_unstable(growth[i], in_halves[i])) continue;
    const auto turns = [&](std::size_t of) { return std::fabs(steps[of].h) * rates[of]; };
    if (!worst || turns(i) > turns(*worst)) worst = i;
  }
  return worst;
}

// Steps that are stable at all of these states, some 0.5 to 0.7 of the longest; 0 where none is found.
template <class T>
double stable_step(StepMaps<T>& maps, const std::vector<LongStep<T>>& steps) {
  constexpr double kFarthest = 512;  // of h times the fastest rate: what methods made for stiff problems reach
  constexpr int kTries = 24;
  constexpr double kOfBound = 0.7;
  const LaneNumbers rates = maps.rates();
  LaneNumbers h{}, stable{};
  for (std::size_t i = 0; i < kTileLanes; ++i) {
    const bool moves = rates[i] > 0 && std::isfinite(rates[i]);
    h[i] = moves ? std::copysign(kFarthest / rates[i], steps[std::min(i, steps.size() - 1)].h) : 0;
  }
  for (int attempt = 0; attempt < kTries; ++attempt) {
    const LaneNumbers growth = maps.growth(h), halves = maps.growth_in_halves(h);
    for (std::size_t i = 0; i < kTileLanes; ++i) {
      const bool holds = std::isfinite(growth[i]) && !is_unstable(growth[i], halves[i], 1);
      // Beyond the bound there are steps that happen to multiply by little.
      if (!holds) stable[i] = 0;
      if (holds && stable[i] == 0) stable[i] = kOfBound * std::fabs(h[i]);
      h[i] /= std::numbers::sqrt2;
    }
  }
  double least = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (stable[i] != 0 && (least == 0 || stable[i] < least)) least = stable[i];
  }
  return least;
}

// A trajectory solved once more, with samples of its steps.
template <class T>
class Along {
 public:
  Along(const Problem& problem, const Options& options, const DifferentiableRhs<T>& rhs, CpuTarget target,
        const detail::CommonSteps& common, std::size_t trajectory, const RunControl& control)
      : components_(problem.rhs->components()),
        row_(problem.save_points() * components_),
        trajectory_(trajectory),
        tile_(problem, options, rhs, target, kMemoryBytes) {
    tile_.stop_when(control.cancel);
    tile_.sample_steps();
    tile_.carry_forward_only();
    tile_.forward(trajectory, 1, common.steps, common.ends_of(trajectory, 1));
  }

  const std::vector<LongStep<T>>& sample() const { return tile_.sampled_steps(); }
  // Of derivatives along a change of the initial state.
  LocalError error() {
    Directions all;
    all.parameters = {Directions::kNoParameter};
    for (std::size_t c = 0; c < components_; ++c) all.initial_states.push_back(c % 2 == 0 ? 1 : -1);
    std::vector<T> saved(row_);
    std::vector<double> ends(1 + components_);
    tile_.sensitivities(all, trajectory_, saved, ends);
    return tile_.local_error(0);
  }

 private:
  static constexpr std::size_t kMemoryBytes = std::size_t{1} << 26;
  std::size_t components_, row_, trajectory_;
  AdjointTile<T> tile_;
};

template <class T>
UnresolvedDerivatives described(const Problem& problem, const Options& options, const DifferentiableRhs<T>& rhs,
                                std::size_t trajectory, const LocalError& error,
                                const std::vector<LongStep<T>>& sample) {
  UnresolvedDerivatives found{trajectory, error.t, error.h, error.error, std::fabs(error.h) / 4};
  if (sample.empty()) return found;
  StepMaps<T> maps(problem, method(options.method), *rhs.function, sample);
  // Else they are stable, and too long all the same.
  if (const double h = stable_step(maps, sample); h > 0 && h < std::fabs(error.h)) found.stable_step = h;
  return found;
}

}  // namespace

template <class T>
void LongSteps<T>::offer(const LongStep<T>* steps) {
  constexpr auto kEach = static_cast<std::ptrdiff_t>(LongStep<T>::kOfATrajectory);
  if (steps[0].h == 0) return;
  const auto before = [](const LongStep<T>& a, const LongStep<T>& b) {
    return std::fabs(a.h) != std::fabs(b.h) ? std::fabs(a.h) > std::fabs(b.h) : a.trajectory < b.trajectory;
  };
  const std::lock_guard lock(mutex_);
  auto place = steps_.begin();
  while (place != steps_.end() && before(*place, steps[0])) place += kEach;
  if (place == steps_.end() && steps_.size() == kMost * LongStep<T>::kOfATrajectory) return;
  steps_.insert(place, steps, steps + kEach);
  if (steps_.size() > kMost * LongStep<T>::kOfATrajectory) steps_.erase(steps_.end() - kEach, steps_.end());
}

template <class T>
std::optional<UnresolvedDerivatives> find_unresolved(const Problem& problem, const Options& options,
                                                     const DifferentiableRhs<T>& rhs, CpuTarget target,
                                                     const detail::CommonSteps& common, const LongSteps<T>& longest,
                                                     const RunControl& control) {
  const Tableau& tableau = method(options.method);
  const std::vector<LongStep<T>>& steps = longest.steps();
  if (steps.empty() || tableau.is_linearly_implicit() || tableau.error.empty()) return {};
  StepMaps<T> maps(problem, tableau, *rhs.function, steps);
  const std::optional<std::size_t> unstable = find_unstable(maps, steps);
  if (!unstable) return {};
  rhs.prepare_forward(problem.rhs->components());
  // A transpose for each component and stage takes longer than the solve.
  if (problem.rhs->components() >= kManyComponents && !rhs.function->pushes_forward()) return {};
  const std::size_t trajectory = steps[*unstable].trajectory;
  Along<T> along(problem, options, rhs, target, common, trajectory, control);
  const LocalError error = along.error();
  if (!(error.error > UnresolvedDerivatives::kMostError)) return {};
  return described(problem, options, rhs, trajectory, error, along.sample());
}

template <class T>
UnresolvedDerivatives describe_unresolved(const Problem& problem, const Options& options,
                                          const DifferentiableRhs<T>& rhs, CpuTarget target,
                                          const detail::CommonSteps& common, std::size_t trajectory,
                                          const LocalError& error, const RunControl& control) {
  const Along<T> along(problem, options, rhs, target, common, trajectory, control);
  return described(problem, options, rhs, trajectory, error, along.sample());
}

template class LongSteps<float>;
template std::optional<UnresolvedDerivatives> find_unresolved(const Problem&, const Options&,
                                                              const DifferentiableRhs<float>&, CpuTarget,
                                                              const detail::CommonSteps&, const LongSteps<float>&,
                                                              const RunControl&);
template UnresolvedDerivatives describe_unresolved(const Problem&, const Options&, const DifferentiableRhs<float>&,
                                                   CpuTarget, const detail::CommonSteps&, std::size_t,
                                                   const LocalError&, const RunControl&);
template class LongSteps<double>;
template std::optional<UnresolvedDerivatives> find_unresolved(const Problem&, const Options&,
                                                              const DifferentiableRhs<double>&, CpuTarget,
                                                              const detail::CommonSteps&, const LongSteps<double>&,
                                                              const RunControl&);
template UnresolvedDerivatives describe_unresolved(const Problem&, const Options&, const DifferentiableRhs<double>&,
                                                   CpuTarget, const detail::CommonSteps&, std::size_t,
                                                   const LocalError&, const RunControl&);

}  // namespace lockstep::ode::cpu
