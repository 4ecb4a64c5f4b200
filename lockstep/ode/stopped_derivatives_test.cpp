// Work that is asked to stop in the middle of a solve, of its transpose or of derivatives carried along it.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/fit_errors.h"
#include "lockstep/ode/gradient.h"
#include "lockstep/ode/parameter_uncertainty.h"
#include "lockstep/ode/sensitivity.h"
#include "lockstep/ode/testing/gradient_cases.h"

namespace lockstep::ode {
namespace {

using testing::f64;

// Counts evaluations, its derivatives' among them, and asks to stop at one of them.
struct Watch {
  CancelToken token;
  std::atomic<std::int64_t> evaluations{0}, last{std::numeric_limits<std::int64_t>::max()};

  void note() {
    if (++evaluations == last) token.request();
  }
};

Rhs watched_decay(Watch& watch) {
  return differentiable_function<1, 1>("watched decay", [&watch](auto, const auto& u, const auto& p, auto& du) {
    watch.note();
    du[0] = -p[0] * u[0];
  });
}

constexpr int kSteps = 2000;

Options steps() {
  Options options = f64("rk4", StepControl::fixed);
  options.dt = 1.0 / kSteps;
  return options;
}

TrajectoryData data_of_decay() {
  TrajectoryData data;
  data.times = {0, 0.5, 1};
  data.states = {1, 0.6, 0.4};
  return data;
}

// `work`, asked to stop at several shares of the evaluations that all of it takes, makes no more of them than some
// steps of one tile do: a hundredth of all.
void expect_stops_soon(const std::string& what,
                       const std::function<void(const Rhs& rhs, const RunControl& control)>& work) {
  Watch whole;
  work(watched_decay(whole), {&whole.token, {}});
  const std::int64_t all = whole.evaluations;
  ASSERT_GT(all, kSteps) << what;
  for (const std::int64_t percent : {5, 35, 65, 95}) {
    Watch watch;
    watch.last = all * percent / 100;
    try {
      work(watched_decay(watch), {&watch.token, {}});
      ADD_FAILURE() << what << ": went on after " << percent << " %";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::cancelled) << what << ": " << error.what();
    }
    EXPECT_LT(watch.evaluations, watch.last + all / 100) << what << " after " << percent << " %";
  }
}

Problem decay(const Rhs& rhs) {
  Problem problem;
  problem.rhs = rhs;
  problem.initial_states = {1};
  problem.parameters = {0.9};
  problem.end_times = {1};
  problem.save_times = {0.5, 1};
  return problem;
}

TEST(StoppedDerivatives, gradients_stop_on_their_way_forth_and_back) {
  for (const std::size_t bytes : {std::size_t{1} << 30, std::size_t{1} << 17}) {  // and where steps are computed again
    expect_stops_soon("gradients", [&](const Rhs& rhs, const RunControl& control) {
      solve_with_gradients(decay(rhs), steps(), SquaredError{.targets = {0.6, 0.4}}, {.memory_bytes = bytes}, control);
    });
  }
}

TEST(StoppedDerivatives, sensitivities_stop) {
  expect_stops_soon("sensitivities", [](const Rhs& rhs, const RunControl& control) {
    solve_with_sensitivities(decay(rhs), steps(), control);
  });
  expect_stops_soon("standard errors", [](const Rhs& rhs, const RunControl& control) {
    const std::vector<TrainedParameter> trained{{.parameter = 0, .start = 0.9}};
    parameter_uncertainty(rhs, trained, std::vector{1.0}, data_of_decay(), steps(), {}, control);
  });
}

TEST(StoppedDerivatives, states_of_a_fit_stop) {
  expect_stops_soon("fitted states", [](const Rhs& rhs, const RunControl& control) {
    TrajectoryData data = data_of_decay();
    data.parameters = {0.9};
    fitted_states(rhs, {}, data, steps(), {}, {}, control);
  });
}

TEST(StoppedDerivatives, losses_of_a_fit_stop_and_can_be_asked_again) {
  Watch watch;
  FitOptions options;
  options.solve = steps();
  FitLoss<double> loss(train_parameters(watched_decay(watch), {{.parameter = 0, .start = 0.9}}), data_of_decay(),
                       options);
  const std::vector<double> at{0.9};
  std::vector<double> gradient(1), expected(1);
  const double value = loss({}, at, expected), whole = loss.loss(at);
  loss.stop_when(&watch.token);
  watch.last = watch.evaluations + kSteps;
  EXPECT_THROW(loss({}, at, gradient), Error);
  EXPECT_THROW(loss.loss(at), Error);
  loss.stop_when(nullptr);
  EXPECT_EQ(loss({}, at, gradient), value);
  EXPECT_EQ(gradient, expected);
  EXPECT_EQ(loss.loss(at), whole);
}

TEST(StoppedDerivatives, a_fit_returns_the_best_before_the_iteration_that_was_stopped) {
  Watch watch;
  FitOptions options;
  options.solve = steps();
  options.phases[0].training.iterations = 1000;
  FitControl control{&watch.token, [&](const train::IterationReport& report) {
                       if (report.place.total == 2) watch.last = watch.evaluations + kSteps;
                     }};
  const FitResult result =
      fit(train_parameters(watched_decay(watch), {{.parameter = 0, .start = 0.5}}), data_of_decay(), options, control);
  EXPECT_TRUE(result.cancelled);
  EXPECT_EQ(result.iterations, 3);
  EXPECT_GT(result.loss, 0);
}

}  // namespace
}  // namespace lockstep::ode
