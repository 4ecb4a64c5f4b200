// Training from data of systems whose states change at given times: patients who get doses at times of their own.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>
#include <vector>

#include "lockstep/core/random.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/kernels/graph/graph.h"
#include "lockstep/ode/differentiable_function.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/fit_errors.h"
#include "lockstep/ode/parameter_uncertainty.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/jumps.h"
#include "lockstep/train/initialise.h"

namespace lockstep::ode {
namespace {

using ::testing::HasSubstr;
using Numbers = std::vector<double>;

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
const Options kTight{.method = "dop853", .rtol = 1e-11, .atol = 1e-11, .precision = Precision::f64, .threads = 1};
const Options kUsual{.rtol = 1e-7, .atol = 1e-7, .precision = Precision::f64, .threads = 1};  // of fits to noise
constexpr double kAbsorbed = 1.2, kGone = 0.25;

// A drug in the gut and in the blood: absorbed at the rate p0, gone at p1.
Rhs absorbed() {
  return differentiable_function<2, 2>("absorbed", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = -p[0] * u[0];
    du[1] = p[0] * u[0] - p[1] * u[1];
  });
}
const std::vector<TrainedParameter> kRates{{.parameter = 0, .start = 0.5, .law = ParameterLaw::positive},
                                           {.parameter = 1, .start = 0.6, .law = ParameterLaw::positive}};

Mlp small_net() {
  Mlp mlp;
  mlp.layers.push_back({2, 4, Numbers(8), Numbers(4), {ActivationKind::tanh}});
  mlp.layers.push_back({4, 2, Numbers(8), Numbers(2), {ActivationKind::identity}});
  train::initialise(mlp, train::Initialisation::glorot_uniform, 1);
  return mlp;
}
// The same with a net beside it.
Rhs absorbed_and_learned() { return train_parameters(sum(absorbed(), net(small_net())), kRates); }

// What they are to be measured at, and what they get: doses at their start, between measurements, and at some.
TrajectoryData patients(std::size_t count) {
  TrajectoryData data{.trajectories = count};
  const Random random(11);
  data.first_impulse = {0};
  for (std::size_t i = 0; i < count; ++i) {
    const double start = 0.5 * static_cast<double>(i % 4);
    const std::size_t points = 7 + i % 3;
    for (std::size_t point = 0; point < points; ++point) {
      data.times.push_back(start + 1.5 * static_cast<double>(point) + (point == 0 ? 0 : random.uniform(point, i)));
    }
    data.lengths.push_back(points);
    const double* times = data.times.data() + data.times.size() - points;
    if (i % 2 == 0) data.impulses.push_back({start, 0, 4});
    if (i % 5 != 0) data.impulses.push_back({times[2] + 0.3, 0, 3 + random.uniform(i, 100)});
    data.impulses.push_back({times[4], 0, 5});
    if (i % 3 == 0) data.impulses.push_back({times[4], 1, 0.25, 0.5});  // and half of the blood is exchanged
    data.impulses.push_back({times[points - 1], 0, 100});               // behind the last one
    data.first_impulse.push_back(data.impulses.size());
  }
  return data;
}

// Their exact states, from 0.2 and 0.4.
TrajectoryData measured(const Rhs& rhs, const Numbers& parameters, TrajectoryData data) {
  for (std::size_t i = 0, row = 0; i < data.trajectories; row += data.lengths[i++]) {
    Problem problem{.rhs = rhs, .initial_states = {0.2, 0.4}, .parameters = parameters};
    const auto first = data.times.begin() + static_cast<std::ptrdiff_t>(row);
    problem.save_times.assign(first, first + static_cast<std::ptrdiff_t>(data.lengths[i]));
    problem.start_times = {problem.save_times.front()};
    problem.end_times = {problem.save_times.back()};
    problem.impulses.assign(data.impulses_of(i).begin(), data.impulses_of(i).end());
    const Solution solution = solve(problem, kTight);
    data.states.insert(data.states.end(), solution.states<double>().begin(), solution.states<double>().end());
  }
  return data;
}
TrajectoryData exact_patients(std::size_t count) { return measured(absorbed(), {kAbsorbed, kGone}, patients(count)); }
// With errors, and nobody looks into the gut.
constexpr double kNoise = 0.05;
TrajectoryData noisy_patients(std::size_t count) {
  TrajectoryData data = exact_patients(count);
  for (std::size_t i = 0, row = 0; i < count; row += data.lengths[i++]) {
    for (std::size_t point = 1; point < data.lengths[i]; ++point) {
      const std::size_t at = 2 * (row + point);
      data.states[at] = kNone;
      data.states[at + 1] += kNoise * Random(5).normal(at, 0);
    }
  }
  return data;
}

FitPhase lbfgs(std::size_t segment = 0, std::optional<double> continuity = {}) {
  FitPhase phase{.segment = segment, .continuity = continuity};
  phase.training.iterations = 60;
  phase.training.rule = train::LbfgsOptions{};
  return phase;
}
FitOptions with_phase(const FitPhase& phase, const Options& solve = kTight) {
  return {.solve = solve, .phases = {phase}};
}

TrajectoryData without_doses(TrajectoryData data) {
  data.impulses.clear();
  data.first_impulse.clear();
  return data;
}

// Of the true parameters whatever solves are made of: each impulse is met once, by the segment that it lies in, and
// none by a measurement at its time. Solves err by some 1e-10 at most.
TEST(DosedData, the_truth_has_no_loss) {
  const TrajectoryData data = exact_patients(40);
  const Rhs rhs = train_parameters(
      absorbed(), {{.parameter = 0, .start = kAbsorbed, .scale = 1.0}, {.parameter = 1, .start = kGone, .scale = 1.0}});
  for (FitPhase phase :
       {FitPhase{}, FitPhase{.segment = 1}, FitPhase{.segment = 2}, FitPhase{.segment = 4}, FitPhase{.continuity = 2},
        FitPhase{.segment = 1, .continuity = 2}, FitPhase{.segment = 3, .continuity = 2}, FitPhase{.horizon = 5},
        FitPhase{.batch = 7}, FitPhase{.segment = 2, .batch = 7}}) {
    FitOptions options = with_phase(phase);
    options.validation = data;
    const auto loss_of = [&](const TrajectoryData& of) {
      FitLoss<double> loss(rhs, of, options);
      Numbers at(loss.parameters()), gradient(at.size());
      at[0] = kAbsorbed;
      at[1] = kGone;
      double sum = loss.loss(at) + loss.validation_loss(at);
      for (std::int64_t step = 0; step < 6; ++step)
        sum += loss(train::Place{.iteration = step, .total = step}, at, gradient);
      return sum;
    };
    EXPECT_LT(loss_of(data), 1e-16) << phase.segment << ' ' << phase.batch;
    EXPECT_GT(loss_of(without_doses(data)), 1) << phase.segment << ' ' << phase.batch;
  }
  const Numbers fitted = fitted_states(rhs, Numbers{kAbsorbed, kGone}, data, kTight);
  for (std::size_t at = 0; at < fitted.size(); ++at) EXPECT_NEAR(fitted[at], data.states[at], 1e-9) << at;
}

// Doses that all get are given once, or to each.
TEST(DosedData, shared_impulses_are_those_of_each) {
  TrajectoryData shared = exact_patients(9);
  shared.impulses = {{3, 0, 2}, {4.5, 1, 1, 0.5}, {2, 0, 1}};
  shared.first_impulse.clear();
  TrajectoryData each = shared;
  each.impulses.clear();
  each.first_impulse = {0};
  for (std::size_t i = 0; i < 9; ++i) {
    each.impulses.insert(each.impulses.end(), shared.impulses.begin(), shared.impulses.end());
    each.first_impulse.push_back(each.impulses.size());
  }
  for (const FitPhase& phase : {lbfgs(), lbfgs(2), lbfgs(2, 1.0)}) {
    const auto slope_of = [&](const TrajectoryData& data) {
      FitLoss<double> loss(absorbed_and_learned(), data, with_phase(phase));
      Numbers at = absorbed_and_learned()->weights(), gradient(loss.parameters());
      at.resize(gradient.size());
      gradient.push_back(loss({}, at, std::span(gradient)));
      return gradient;
    };
    EXPECT_EQ(slope_of(shared), slope_of(each));
  }
}

// Central differences of losses of some hundred, whose third derivatives are about as large as they are: 1e-10 of
// these, and roundings and tolerances of 1e-11 over 1e-5.
TEST(DosedData, the_gradient_is_that_of_differences) {
  for (const FitPhase& phase : {lbfgs(), lbfgs(1), lbfgs(3), lbfgs(0, 2.0), lbfgs(2, 2.0)}) {
    const bool has_gaps = phase.continuity.has_value();
    FitLoss<double> loss(absorbed_and_learned(), has_gaps ? noisy_patients(6) : exact_patients(6), with_phase(phase));
    Numbers at = absorbed_and_learned()->weights();
    const std::size_t weights = at.size();
    at.resize(loss.parameters());
    Numbers gradient(at.size()), direction(at.size());
    for (std::size_t i = 0; i < at.size(); ++i) {
      direction[i] = Random(3).normal(i, 0);
      if (i >= weights) at[i] = 0.1 * Random(3).normal(i, 1);
    }
    ASSERT_TRUE(std::isfinite(loss({}, at, gradient)));
    const double along = std::inner_product(direction.begin(), direction.end(), gradient.begin(), 0.0);
    const auto moved = [&](double by) {
      Numbers there = at, unused(at.size());
      for (std::size_t i = 0; i < at.size(); ++i) there[i] += by * direction[i];
      return loss({}, there, unused);
    };
    EXPECT_NEAR(along, (moved(1e-5) - moved(-1e-5)) / 2e-5, 1e-5 * std::fabs(along)) << phase.segment;
  }
}

// Patients of a batch differ in what they get, and some get nothing within their span.
TEST(DosedData, mini_batches_take_their_impulses_along) {
  TrajectoryData data = exact_patients(5);
  data.trajectories = 8;
  for (std::size_t i = 5; i < 8; ++i) {  // three untreated ones
    for (std::size_t point = 0; point < 8; ++point) {
      data.times.push_back(static_cast<double>(point));
      data.states.insert(data.states.end(), {1, 0.5});
    }
    data.lengths.push_back(8);
    data.first_impulse.push_back(data.impulses.size());
  }
  FitOptions options = with_phase({.batch = 2});
  FitLoss<double> loss(absorbed_and_learned(), data, options);
  const Numbers at = absorbed_and_learned()->weights();
  Numbers gradient(at.size()), expected(at.size());
  for (std::int64_t step = 0; step < 12; ++step) {
    const train::Place place{.iteration = step, .total = step};
    FitLoss<double> fresh(absorbed_and_learned(), data, options);
    EXPECT_EQ(loss(place, at, gradient), fresh(place, at, expected)) << step;
    EXPECT_EQ(gradient, expected) << step;
  }
}

// So they do the times at which parameters of their own make the right-hand side jump.
TEST(DosedData, mini_batches_take_their_jumps_along) {
  graph::Graph g;
  g.inputs = {{"u", 0, 1}, {"p", 1, 1}, {"t", 2, 1}};
  g.nodes = {{"since", graph::Binary{graph::BinaryKind::subtract}, {2, 1}},
             {"du", testing::table(testing::kKnots, testing::kValues, true), {3}}};
  g.outputs = {{"du", 4, 1}};
  Mlp decay;
  decay.layers.push_back({1, 1, {-0.5}, {0}, {ActivationKind::identity}});
  const Rhs rhs = sum(net(g), net(decay));
  const TrajectoryData data{
      .trajectories = 4, .times = {0, 1, 3}, .states = Numbers(12, 1.0), .parameters = {0, 0.17, -0.4, 1.3}};
  const FitOptions options = with_phase({.batch = 1});
  FitLoss<double> loss(rhs, data, options);
  for (std::int64_t step = 0; step < 8; ++step) {
    const train::Place place{.iteration = step, .total = step};
    FitLoss<double> fresh(rhs, data, options);
    Numbers gradient(2), expected(2);
    EXPECT_EQ(loss(place, rhs->weights(), gradient), fresh(place, rhs->weights(), expected)) << step;
    EXPECT_EQ(gradient, expected) << step;
  }
}

// Steps of one size end at them, and steps that all trajectories share: with doses and times that all share, the truth
// has no loss but that of the method, of order 8.
TEST(DosedData, fixed_and_common_steps_meet_them) {
  TrajectoryData data{.trajectories = 3, .lengths = {9, 9, 9}};
  for (std::size_t row = 0; row < 27; ++row) data.times.push_back(0.5 * static_cast<double>(row % 9));
  data.impulses = {{0, 0, 2}, {1.25, 0, 3}, {2, 1, 1, 0.5}, {3.5, 0, 1}};
  data = measured(absorbed(), {kAbsorbed, kGone}, data);
  data.lengths.clear();
  data.times.resize(9);
  const Rhs rhs = train_parameters(
      absorbed(), {{.parameter = 0, .start = kAbsorbed, .scale = 1.0}, {.parameter = 1, .start = kGone, .scale = 1.0}});
  for (const StepControl control : {StepControl::fixed, StepControl::common}) {
    for (const std::size_t segment : {0, 2}) {
      if (control == StepControl::common && segment != 0) continue;  // of one span alone
      FitOptions options = with_phase({.segment = segment});
      options.solve.control = control;
      options.solve.dt = control == StepControl::fixed ? 0.125 : 0;
      FitLoss<double> loss(rhs, data, options);
      Numbers at{kAbsorbed, kGone}, gradient(2);
      EXPECT_LT(loss({}, at, gradient), 1e-16);
      at[0] += 0.1;
      EXPECT_GT(loss({}, at, gradient), 1e-3);
    }
  }
}

// The truth within four standard errors, which are those of J^T J by differences. Without the doses nobody's blood is
// explained; without their times neither.
TEST(DosedData, rates_are_found_from_the_blood_of_patients) {
  const TrajectoryData data = noisy_patients(24);
  const Rhs rhs = train_parameters(absorbed(), kRates);
  const FitResult result = fit(rhs, data, with_phase(lbfgs(), kUsual));
  const ParameterUncertainty known = parameter_uncertainty(absorbed(), kRates, result.weights, data, kUsual);
  EXPECT_NEAR(known.values[0], kAbsorbed, 4 * known.standard_errors[0]);
  EXPECT_NEAR(known.values[1], kGone, 4 * known.standard_errors[1]);
  EXPECT_LT(known.standard_errors[0], 0.1);
  EXPECT_LT(known.standard_errors[1], 0.01);
  EXPECT_LT(known.distance, 0.01);
  const double numbers = static_cast<double>(known.numbers);
  EXPECT_NEAR(known.deviation, kNoise, 4 * kNoise / std::sqrt(2 * numbers));

  double jj[3] = {0, 0, 0};
  const auto states = [&](double ka, double ke) {
    TrajectoryData moved = patients(24);
    return measured(absorbed(), {ka, ke}, moved).states;
  };
  constexpr double h = 1e-4;
  const double ka = known.values[0], ke = known.values[1];
  const Numbers a = states(ka + h, ke), b = states(ka - h, ke), c = states(ka, ke + h), d = states(ka, ke - h);
  for (std::size_t at = 0, left = 0, trajectory = 0; at < a.size(); at += 2, --left) {
    if (left == 0) {
      left = data.lengths[trajectory++];
      continue;
    }
    const double by_ka = (a[at + 1] - b[at + 1]) / (2 * h), by_ke = (c[at + 1] - d[at + 1]) / (2 * h);
    jj[0] += by_ka * by_ka;
    jj[1] += by_ka * by_ke;
    jj[2] += by_ke * by_ke;
  }
  const double determinant = jj[0] * jj[2] - jj[1] * jj[1];
  EXPECT_NEAR(known.standard_errors[0], known.deviation * std::sqrt(jj[2] / determinant), 1e-5);
  EXPECT_NEAR(known.standard_errors[1], known.deviation * std::sqrt(jj[0] / determinant), 1e-5);

  EXPECT_GT(fit(rhs, without_doses(data), with_phase(lbfgs(), kUsual)).loss, 100 * result.loss);
  TrajectoryData late = data;
  for (Impulse& impulse : late.impulses) impulse.time += 0.5;
  EXPECT_GT(fit(rhs, late, with_phase(lbfgs(), kUsual)).loss, 10 * result.loss);
}

// Noise at the start is not carried along, and what is in the gut then comes out. The phases that noisy data get.
TEST(DosedData, free_starts_find_them_too) {
  TrajectoryData data = noisy_patients(24);
  for (std::size_t i = 0, row = 0; i < 24; row += data.lengths[i++]) {
    data.states[2 * row] = 0.2 + kNoise * Random(6).normal(i, 0);
    data.states[2 * row + 1] = 0.4 + kNoise * Random(6).normal(i, 1);
  }
  FitOptions options = with_phase({}, kUsual);
  options.phases = noisy_phases(9);
  options.phases.insert(options.phases.begin(), lbfgs(2, 1.0));
  const FitResult result = fit(train_parameters(absorbed(), kRates), data, options);
  Numbers starts;
  for (std::size_t i = 0, row = 0; i < 24; row += data.lengths[i++])
    starts.insert(starts.end(), {result.states[2 * row], result.states[2 * row + 1]});
  const ParameterUncertainty known =
      parameter_uncertainty(absorbed(), kRates, result.weights, data, kUsual, {.initial_states = starts});
  EXPECT_NEAR(known.values[0], kAbsorbed, 4 * known.standard_errors[0]);
  EXPECT_NEAR(known.values[1], kGone, 4 * known.standard_errors[1]);
  EXPECT_LT(known.standard_errors[0], 0.1);
  EXPECT_LT(known.distance, 0.05);
}

// Elimination saturates, v u / (k + u), and a net learns that from 24 patients beside the absorption's rate: to the
// noise of those that it has not seen. 200 numbers have it to 5 %, of which three, and the net's own error, are
// allowed.
TEST(DosedData, a_net_learns_how_patients_clear_a_drug) {
  const auto law = differentiable_function<2, 2>("saturating", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = -p[0] * u[0];
    du[1] = p[0] * u[0] - p[1] * u[1] / (1.0 + u[1]);
  });
  const auto noisy = [&](std::uint64_t seed, double stretch) {
    TrajectoryData data = patients(24);
    for (Impulse& impulse : data.impulses) impulse.change *= stretch;
    data = measured(law, {kAbsorbed, 1}, data);
    for (std::size_t at = 0; at < data.states.size(); ++at) data.states[at] += kNoise * Random(seed).normal(at, 0);
    for (std::size_t i = 0, row = 0; i < 24; row += data.lengths[i++]) {
      data.states[2 * row] = 0.2;
      data.states[2 * row + 1] = 0.4;
      for (std::size_t point = 1; point < data.lengths[i]; ++point) data.states[2 * (row + point)] = kNone;
    }
    return data;
  };
  Mlp mlp;
  mlp.layers.push_back({1, 5, Numbers(5), Numbers(5), {ActivationKind::tanh}});
  mlp.layers.push_back({5, 1, Numbers(5), Numbers(1), {ActivationKind::identity}});
  train::initialise(mlp, train::Initialisation::glorot_uniform, 4);
  const Rhs learned =
      train_parameters(differentiable_function_with_net<2, 1>(
                           "learned", mlp, [](auto, const auto& u, const auto&, auto& in) { in[0] = u[1]; },
                           [](auto, const auto& u, const auto& p, const auto& net, auto& du) {
                             du[0] = -p[0] * u[0];
                             du[1] = p[0] * u[0] - u[1] * net[0];
                           }),
                       {{.parameter = 0, .start = 0.7, .law = ParameterLaw::positive}});
  FitOptions options = with_phase(lbfgs(), kUsual);
  options.phases[0].training.iterations = 150;
  options.validation = noisy(8, 0.8);
  const FitResult result = fit(learned, noisy(5, 1), options);
  const TrajectoryData& kept = *options.validation;
  const double numbers = static_cast<double>(kept.states.size() / 2 - 24) / 24;
  EXPECT_LT(*result.validation_loss, 1.3 * kNoise * kNoise * numbers);
  options.validation = without_doses(kept);
  FitLoss<double> loss(learned, kept, options);
  EXPECT_GT(loss.validation_loss(result.weights), 10 * *result.validation_loss);
}

// Quotients across a dose say nothing of the derivative, unless there are no others.
TEST(DosedData, scaling_leaves_jumps_out) {
  TrajectoryData data{.times = {0, 1, 2, 4}, .states = {1, 5, 0.5, 6, 9, 7, 8, 9}, .impulses = {{1, 0, 10}}};
  Mlp mlp = small_net();
  fit_scaling(mlp, data);
  EXPECT_EQ(mlp.output_scaling.shift[0], -0.5);
  EXPECT_EQ(mlp.output_scaling.shift[1], 1);
  data.impulses = {{0, 0, 10}, {1.5, 0, 10}, {2, 0, 10}};
  fit_scaling(mlp, data);
  EXPECT_EQ(mlp.output_scaling.shift[0], (-0.5 + 8.5 - 0.5) / 3);
}

TEST(DosedData, what_does_not_fit_is_refused_by_name) {
  const auto refusal = [](const auto& spoil) {
    TrajectoryData data = exact_patients(9);
    FitOptions options = with_phase(lbfgs(2));
    spoil(data, options);
    return message_of([&] { FitLoss<double>(absorbed_and_learned(), data, options); });
  };
  EXPECT_THAT(refusal([](TrajectoryData& data, FitOptions&) { data.impulses[1].component = 2; }),
              HasSubstr("data.impulses[1].component: found 2, expected a component below 2"));
  EXPECT_THAT(refusal([](TrajectoryData& data, FitOptions&) { data.impulses[2].factor = INFINITY; }),
              HasSubstr("data.impulses[2].factor: found inf, expected a finite number"));
  EXPECT_THAT(refusal([](TrajectoryData& data, FitOptions&) { data.first_impulse.pop_back(); }),
              HasSubstr("data.first_impulse: found 9 numbers, expected 10, one more than trajectories"));
  EXPECT_THAT(refusal([](TrajectoryData& data, FitOptions&) { data.first_impulse[3] = 99; }),
              HasSubstr("data.first_impulse: found numbers from 0 to"));
  EXPECT_THAT(refusal([](TrajectoryData& data, FitOptions&) {
                for (std::size_t row = 7; row < 15; ++row) data.times[row] = 17 - static_cast<double>(row);
                data.names = {"a", "b", "c", "d", "e", "f", "g", "h", "i"};
              }),
              HasSubstr("data.impulses: found some, and times that descend in trajectory b, expected times that"));
  EXPECT_THAT(refusal([](TrajectoryData& data, FitOptions& options) {
                data.lengths.clear();
                data.times = {0, 1, 2};
                data.states.assign(9 * 3 * 2, 1);
                options.phases[0].segment = 0;
                options.solve.control = StepControl::common;
              }),
              HasSubstr("options.control: found common with impulses of each trajectory's own"));
  EXPECT_THAT(
      refusal([](TrajectoryData& data, FitOptions& options) {
        data.lengths.clear();
        data.times = {0, 1, 2};
        data.states.assign(9 * 3 * 2, 1);
        data.first_impulse.assign(10, 1);
        data.first_impulse[0] = 0;
        data.impulses = {{1.3, 0, 1}};
        data.numbers = {12, 1, 2, 3, 4, 5, 6, 7, 8};
        options.solve.control = StepControl::fixed;
        options.solve.dt = 0.25;
      }),
      HasSubstr("data.impulses: found 1.3 within a step of trajectory 12, expected times at which fixed steps"));
}

}  // namespace
}  // namespace lockstep::ode
