#include "lockstep/ode/cpu/adjoint_sample.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "lockstep/ode/methods.h"
#include "lockstep/ode/numerics.h"

namespace lockstep::ode::cpu {

template <class T>
SampleWork<T>::SampleWork(const Problem& problem, const Options& options, const DifferentiableSample<T>& function)
    : rhs(&function),
      tableau(method(options.method)),
      components(problem.rhs->components()),
      width((components + 15) / 16 * 16),
      stages(static_cast<std::size_t>(tableau.source->stages)),
      total(stages + static_cast<std::size_t>(tableau.source->interpolant_stages)),
      save_points(problem.save_points()),
      slot_bytes((total - 1) * (width * sizeof(T) + function.record_bytes())),
      rtol(static_cast<T>(options.rtol)),
      rtol_f64(options.rtol),
      max_step(options.max_step.value_or(std::numeric_limits<double>::infinity())),
      initial_step(options.initial_step.value_or(0)),
      dt(options.dt),
      max_steps(options.max_steps),
      beta1(scalar::control_exponents(scalar::error_power(tableau.source->error_order, !tableau.source->error3.empty()))
                .beta1),
      beta2(scalar::control_exponents(scalar::error_power(tableau.source->error_order, !tableau.source->error3.empty()))
                .beta2),
      fixed(options.control == StepControl::fixed),
      atol(width),
      parameters(problem.rhs->parameters()),
      y(width),
      y1(width),
      k(total * width),
      errors(width),
      states(save_points * components + width),
      theta(save_points + 8),
      weights(tableau.interpolant_stages.size() * (save_points + 8)),
      weights_stride(save_points + 8),
      start_record(function.record_bytes()),
      workspace(function.workspace_bytes()),
      initial(width),
      y_bar(width),
      k_first_bar(width),
      k_bar(total * width),
      argument_bar(width),
      input_bar(std::max(width, function.inputs())),
      parameter_bar(problem.rhs->parameters()),
      sum(function.sum_size()) {
  for (std::size_t c = 0; c < components; ++c) {
    atol_f64.push_back(options.atol_of(c));
    atol[c] = static_cast<T>(atol_f64[c]);
  }
  std::fill(atol.data() + components, atol.data() + width, T(1));  // what is divided there is not read
  constexpr std::size_t kPending = 12;  // evaluations whose weight gradients are summed at a time
  pending.reserve(kPending);
  cotangents = AlignedBuffer<std::byte>(pending.capacity() * function.cotangent_bytes());
}

template <class T>
bool SampleWork<T>::make_room() {
  const std::size_t chunk = steps.size() / kStepsAChunk;
  if (chunk < chunks.size()) return true;
  if ((chunk + 1) * kStepsAChunk * slot_bytes > kMostBytes) return false;
  chunks.emplace_back(kStepsAChunk * slot_bytes);
  return true;
}

template <class T>
bool AdjointSample<T>::suits(const Problem& problem, const Options& options, const DifferentiableTile<T>& rhs,
                             bool has_stops) {
  return rhs.sample() != nullptr && !method(options.method).is_linearly_implicit() &&
         problem.trajectories() <= kMostTrajectories && options.control != StepControl::common && !has_stops;
}

template <class T>
AdjointSample<T>::AdjointSample(const Problem& problem, const Options& options, const DifferentiableSample<T>& rhs,
                                CpuTarget target)
    : problem_(problem), work_(problem, options, rhs), sweeps_(sample_sweeps<T>(target)) {}

template <class T>
bool AdjointSample<T>::forward(std::size_t trajectory) {
  trajectory_ = trajectory;
  const double* u0 = &problem_.initial_states[trajectory * work_.components];
  for (std::size_t c = 0; c < work_.components; ++c) work_.y[c] = static_cast<T>(u0[c]);
  const double* p = problem_.parameters_of(trajectory);
  for (std::size_t i = 0; i < work_.parameters.size(); ++i) work_.parameters[i] = static_cast<T>(p[i]);
  work_.t_start = problem_.start_time(trajectory);
  work_.t_end = problem_.end_time(trajectory);
  work_.save_times = problem_.save_times_of(trajectory);
  return sweeps_.forward(work_);
}

template <class T>
std::vector<AcceptedStep> AdjointSample<T>::steps() const {
  std::vector<AcceptedStep> steps;
  for (const auto& step : work_.steps) steps.push_back({step.t, step.t_new, step.h});
  return steps;
}

// Their states are the arguments of the second stage, which are recorded.
template <class T>
std::array<LongStep<T>, LongStep<T>::kOfATrajectory> AdjointSample<T>::long_steps() {
  std::array<LongStep<T>, LongStep<T>::kOfATrajectory> found;
  found.fill({.trajectory = trajectory_});
  const auto& steps = work_.steps;
  if (steps.empty()) return found;
  const auto keep = [&](std::size_t i, LongStep<T>& to) {
    const T* const state = work_.argument(i, 1);
    to = {trajectory_, steps[i].t, steps[i].h, {state, state + work_.components}};
  };
  std::size_t longest = 0;
  for (std::size_t i = 1; i < steps.size(); ++i) {
    if (std::fabs(steps[i].h) > std::fabs(steps[longest].h)) longest = i;
  }
  keep(longest, found[0]);
  keep(3 * steps.size() / 4, found[1]);
  return found;
}

template <class T>
void AdjointSample<T>::backward(const T* states_bar, T* gradient) {
  sweeps_.backward(work_, states_bar);
  work_.rhs->add_gradient(work_.sum.data(), gradient);
}

template struct SampleWork<float>;
template struct SampleWork<double>;
template class AdjointSample<float>;
template class AdjointSample<double>;

}  // namespace lockstep::ode::cpu
