#include "lockstep/ode/reference.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <vector>

#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/detail/reference_trajectory.h"
#include "lockstep/ode/detail/stops.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/numerics.h"

namespace lockstep::ode {
namespace {

template <class T>
using Trajectory = detail::ReferenceTrajectory<T>;
using D = ScalarLane<double>;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One step for all: the smallest of their first ones, then controlled by the largest error of any.
template <class T>
void run_in_common_steps(std::deque<Trajectory<T>>& trajectories, const Problem& problem, const Options& options,
                         const detail::StopTimes& stops) {
  constexpr int kMostFailures = 10;
  double t = problem.start_time(0), h = kInfinity;
  const double t_end = problem.end_time(0);
  std::vector<Trajectory<T>*> open;
  for (Trajectory<T>& trajectory : trajectories) {
    const bool is_finite = trajectory.start();
    const double first = std::fabs(trajectory.first_step());
    if (!is_finite) {
      trajectory.end(Status::not_finite);
      continue;
    }
    open.push_back(&trajectory);
    h = std::min(h, first);
  }
  const auto end_all = [&](Status status) {
    for (Trajectory<T>* trajectory : open) trajectory->end(status);
  };
  if (t == t_end) return end_all(Status::success);
  h = std::copysign(h, t_end - t);
  const Tableau& tableau = method(options.method);
  const auto [beta1, beta2] =
      scalar::control_exponents(scalar::error_power(tableau.error_order, !tableau.error3.empty()));
  double log_error = scalar::kFirstLogError;
  bool after_rejection = false;
  int failures_in_a_row = 0;
  const auto is_number = [](double error) { return error <= std::numeric_limits<double>::max(); };
  for (std::int64_t attempts = 0; !open.empty(); ++attempts) {
    if (attempts >= options.max_steps) return end_all(Status::too_many_steps);
    const auto [limit, before] = detail::limit_at(stops, t, t_end);
    const auto step =
        scalar::propose_adaptive_step<D>(stops.count > 0, t, limit, h, options.max_step.value_or(kInfinity));
    std::vector<double> errors;
    double largest = 0;
    for (Trajectory<T>* trajectory : open) {
      errors.push_back(trajectory->attempt(step.h, step.last ? before : step.t_new));
      largest = is_number(errors.back()) ? std::max(largest, errors.back()) : kInfinity;
    }
    const auto decision = scalar::decide_step<D>(largest, step.h, log_error, after_rejection, beta1, beta2);
    h = decision.h_next;
    after_rejection = !decision.accept;
    if (decision.accept) {
      failures_in_a_row = 0;
      log_error = decision.log_error;
      t = step.t_new;
      std::erase_if(open, [&](Trajectory<T>* trajectory) {
        if (!trajectory->accept(step)) return false;
        trajectory->end(Status::terminated);
        return true;
      });
      if (t == t_end) return end_all(Status::success);
      continue;
    }
    for (Trajectory<T>* trajectory : open) trajectory->reject();
    // Left behind: who stays without a number however small the step, and whose own error asks for steps below time's
    // spacing.
    const auto leave_behind = [&](const auto& hopeless) {
      std::vector<Trajectory<T>*> left;
      for (std::size_t i = 0; i < open.size(); ++i) {
        if (hopeless(errors[i])) {
          open[i]->end(is_number(errors[i]) ? Status::step_too_small : Status::not_finite);
        } else {
          left.push_back(open[i]);
        }
      }
      open = left;
    };
    failures_in_a_row = is_number(largest) ? 0 : failures_in_a_row + 1;
    const double smallest = scalar::smallest_shared_step<D>(t, limit);
    if (std::fabs(h) <= smallest) {
      leave_behind([](double own) { return !(own <= 1); });
      failures_in_a_row = 0;
      h = std::copysign(smallest, h);
    } else if (failures_in_a_row == kMostFailures) {
      leave_behind([&](double own) { return !is_number(own); });
      failures_in_a_row = 0;
    }
  }
}

template <class T>
Solution solve_as(const Problem& problem, const Options& options) {
  const std::size_t n = problem.rhs->components();
  Solution solution(options.precision, problem.trajectories(), n, problem.save_times,
                    problem.save_times_per_trajectory);
  if (problem.keep_events) solution.keep_events();
  const detail::Stops stops(problem, options);
  std::deque<Trajectory<T>> trajectories;
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    trajectories.emplace_back(problem, options, stops, i, solution.block(i, 1));
  }
  if (options.control == StepControl::common) {
    run_in_common_steps(trajectories, problem, options, stops.times(0));
  } else {
    for (Trajectory<T>& trajectory : trajectories) trajectory.run();
  }
  return solution;
}

}  // namespace

Solution solve_reference(const Problem& problem, const Options& options) {
  const StandardArithmetic arithmetic;
  validate(problem, options);
  return options.precision == Precision::f32 ? solve_as<float>(problem, options) : solve_as<double>(problem, options);
}

}  // namespace lockstep::ode
