// Training data as measurements come: trajectories of unequal length, with numbers missing.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/train/initialise.h"

namespace lockstep::ode {
namespace {

using testing::HasSubstr;

Mlp small_net() {
  Mlp mlp;
  mlp.layers.push_back({2, 5, std::vector<double>(10), std::vector<double>(5), {ActivationKind::tanh}});
  mlp.layers.push_back({5, 2, std::vector<double>(10), std::vector<double>(2), {ActivationKind::identity}});
  train::initialise(mlp, train::Initialisation::glorot_uniform, 1);
  return mlp;
}

// Noisy spirals of these lengths, each with times of its own.
TrajectoryData spirals(const std::vector<std::size_t>& lengths) {
  TrajectoryData data{.trajectories = lengths.size(), .lengths = lengths};
  const Random random(7);
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    for (std::size_t point = 0; point < lengths[i]; ++point) {
      const double t = 0.1 * static_cast<double>(point) * (1 + 0.1 * static_cast<double>(i));
      data.times.push_back(t);
      data.states.push_back(std::exp(-0.1 * t) * std::cos(2 * t) + 0.1 * random.normal(data.states.size(), 0));
      data.states.push_back(-std::exp(-0.1 * t) * std::sin(2 * t) + 0.1 * random.normal(data.states.size(), 0));
    }
  }
  return data;
}

TrajectoryData alone(const TrajectoryData& data, std::size_t trajectory) {
  const auto first = std::accumulate(data.lengths.begin(),
                                     data.lengths.begin() + static_cast<std::ptrdiff_t>(trajectory), std::ptrdiff_t{0});
  const auto points = static_cast<std::ptrdiff_t>(data.lengths[trajectory]);
  return {.times = {data.times.begin() + first, data.times.begin() + first + points},
          .states = {data.states.begin() + 2 * first, data.states.begin() + 2 * (first + points)}};
}

FitOptions f64_options(FitPhase phase = {}) {
  FitOptions options{.phases = {phase}};
  options.solve.precision = Precision::f64;
  options.solve.threads = 1;
  return options;
}

struct Slope {
  double loss = 0;
  std::vector<double> gradient;
};
Slope slope_of(const TrajectoryData& data, const FitOptions& options, std::vector<double> at = {},
               std::int64_t iteration = 0) {
  FitLoss<double> loss(net(small_net()), data, options);
  if (at.empty()) at = net(small_net())->weights();
  at.resize(loss.parameters());
  Slope slope{.gradient = std::vector<double>(at.size())};
  slope.loss = loss(train::Place{.iteration = iteration, .total = iteration}, at, slope.gradient);
  return slope;
}

FitPhase with_segments(std::size_t segment, std::optional<double> continuity = {}, std::size_t horizon = 0) {
  return {.segment = segment, .continuity = continuity, .horizon = horizon};
}

// What proves the gradients of equal lengths (gradient_test, shooting_test) proves these: the sums differ in their
// order alone, over some hundred terms. One by one and as a tile, which budgets of memory decide.
TEST(UnevenData, trajectories_add_what_they_add_alone) {
  const TrajectoryData data = spirals({9, 2, 14, 5});
  for (const std::size_t budget : {std::size_t{1} << 30, std::size_t{1} << 20}) {
    for (const FitPhase& phase : {FitPhase{}, with_segments(3), with_segments(6), with_segments(0, {}, 7),
                                  with_segments(0, 2.0), with_segments(4, 2.0), with_segments(4, 2.0, 9)}) {
      FitOptions options = f64_options(phase);
      options.memory_bytes = budget;
      const Slope all = slope_of(data, options);
      const std::size_t weights = net(small_net())->weights().size();
      Slope sum{.gradient = std::vector<double>(weights)};
      std::vector<double> by_states;
      FitOptions of_one = options;
      for (std::size_t i = 0; i < 4; ++i) {
        const Slope one = slope_of(alone(data, i), of_one);
        sum.loss += one.loss / 4;
        for (std::size_t w = 0; w < weights; ++w) sum.gradient[w] += one.gradient[w] / 4;
        by_states.insert(by_states.end(), one.gradient.begin() + static_cast<std::ptrdiff_t>(weights),
                         one.gradient.end());
      }
      EXPECT_NEAR(all.loss, sum.loss, 1e-14 * sum.loss);
      for (std::size_t w = 0; w < weights; ++w) EXPECT_NEAR(all.gradient[w], sum.gradient[w], 1e-12) << w;
      // Units of free states are deviations over all data, so only zeros are the same: where no segment starts.
      ASSERT_EQ(all.gradient.size(), weights + by_states.size());
      for (std::size_t i = 0; i < by_states.size(); ++i)
        EXPECT_EQ(all.gradient[weights + i] == 0, by_states[i] == 0) << i;
    }
  }
}

TEST(UnevenData, lengths_that_are_all_the_same_change_no_bit) {
  const TrajectoryData with_lengths = spirals({8, 8, 8, 8, 8});
  TrajectoryData without = with_lengths;
  without.lengths.clear();
  FitPhase batches = with_segments(3);
  batches.batch = 2;
  for (const FitPhase& phase : {FitPhase{}, with_segments(3), batches, with_segments(4, 2.0)}) {
    const Slope a = slope_of(with_lengths, f64_options(phase)), b = slope_of(without, f64_options(phase));
    EXPECT_EQ(a.loss, b.loss);
    EXPECT_EQ(a.gradient, b.gradient);
  }
}

TEST(UnevenData, longer_neighbours_change_no_bit_of_a_trajectory) {
  FitOptions options = f64_options(with_segments(4));
  options.phases[0].batch = 1;
  const TrajectoryData data = spirals({5, 40, 11});
  for (std::int64_t step = 0; step < 3; ++step) {
    const Slope batch = slope_of(data, options, {}, step);
    int same = 0;
    for (std::size_t i = 0; i < 3; ++i) {
      const Slope one = slope_of(alone(data, i), f64_options(with_segments(4)));
      same += one.loss == batch.loss && one.gradient == batch.gradient;
    }
    EXPECT_EQ(same, 1) << "of step " << step;
  }
}

TEST(UnevenData, mini_batches_of_other_lengths_follow_each_other) {
  FitOptions options = f64_options(with_segments(3));
  options.phases[0].batch = 2;
  const TrajectoryData data = spirals({4, 30, 9, 2, 17});
  FitLoss<double> loss(net(small_net()), data, options);
  const std::vector<double> at = net(small_net())->weights();
  std::vector<double> gradient(at.size());
  for (std::int64_t step = 0; step < 9; ++step) {
    const double value = loss(train::Place{.iteration = step, .total = step}, at, gradient);
    const Slope fresh = slope_of(data, options, {}, step);
    EXPECT_EQ(value, fresh.loss);
    EXPECT_EQ(gradient, fresh.gradient);
    loss.loss(at);  // of whole trajectories, between batches
  }
}

TEST(UnevenData, training_has_the_same_bits_for_any_threads) {
  std::vector<std::size_t> lengths(70);
  for (std::size_t i = 0; i < lengths.size(); ++i) lengths[i] = 2 + 7 * i % 13;
  TrajectoryData data = spirals(lengths);
  for (std::size_t i = 7; i < data.states.size(); i += 11) data.states[i] = std::nan("");
  for (std::size_t i = 0, row = 0; i < lengths.size(); row += 2 * lengths[i++])
    data.states[row] = data.states[row + 1] = 1;
  FitOptions options;
  options.phases = {with_segments(0, {}, 5), with_segments(5, 1.0)};
  for (FitPhase& phase : options.phases) phase.training.iterations = 3;
  options.phases[0].batch = 33;
  options.validation = spirals({3, 12});
  options.solve.threads = 1;
  const FitResult one = fit(net(small_net()), data, options);
  options.solve.threads = 3;
  const FitResult three = fit(net(small_net()), data, options);
  EXPECT_EQ(one.weights, three.weights);
  EXPECT_EQ(one.states, three.states);
  EXPECT_EQ(one.validation_loss, three.validation_loss);
}

// Times may be shared: those of the longest.
TEST(UnevenData, shared_times_are_those_of_the_longest) {
  TrajectoryData data = spirals({6, 9}), shared = data;
  for (std::size_t point = 0; point < 9; ++point) data.times[6 + point] = 0.2 * static_cast<double>(point);
  for (std::size_t point = 0; point < 6; ++point) data.times[point] = 0.2 * static_cast<double>(point);
  shared.times.assign(data.times.begin() + 6, data.times.end());
  EXPECT_EQ(slope_of(data, f64_options()).gradient, slope_of(shared, f64_options()).gradient);
}

// A point of which nothing was measured is as none: its place on the interpolant moves no step.
TEST(UnevenData, points_without_a_measurement_count_as_none) {
  TrajectoryData data = alone(spirals({12}), 0), fewer = data;
  for (const std::size_t point : {4, 5, 11}) data.states[2 * point] = data.states[2 * point + 1] = std::nan("");
  for (const std::ptrdiff_t point : {11, 5, 4}) {
    if (point != 11) fewer.times.erase(fewer.times.begin() + point);
    if (point != 11) fewer.states.erase(fewer.states.begin() + 2 * point, fewer.states.begin() + 2 * point + 2);
  }
  fewer.states[2 * 9] = fewer.states[2 * 9 + 1] = std::nan("");  // the end is where it was
  for (const std::size_t budget : {std::size_t{1} << 30, std::size_t{1} << 20}) {
    FitOptions options = f64_options();
    options.memory_bytes = budget;
    const Slope with = slope_of(data, options), without = slope_of(fewer, options);
    EXPECT_NEAR(with.loss, without.loss, 1e-14 * with.loss);
    for (std::size_t i = 0; i < with.gradient.size(); ++i) EXPECT_NEAR(with.gradient[i], without.gradient[i], 1e-12);
  }
}

// Central differences of a function whose third derivatives are of size 10 err by 1e-5 squared times that, 1e-9, and by
// roundings of a loss of size 10 over 1e-5.
TEST(UnevenData, the_gradient_with_free_states_is_that_of_what_was_measured) {
  TrajectoryData data = spirals({9, 2, 14});
  for (const std::size_t i : {6, 7, 9, 16, 25, 40, 48}) data.states[i] = std::nan("");
  const FitOptions options = f64_options(with_segments(3, 2.0));
  std::vector<double> at = net(small_net())->weights();
  at.resize(at.size() + data.states.size());
  const Random random(3);
  std::vector<double> direction(at.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    direction[i] = random.normal(i, 0);
    if (i >= 27) at[i] = 0.1 * random.normal(i, 1);
  }
  const Slope here = slope_of(data, options, at);
  const double along = std::inner_product(direction.begin(), direction.end(), here.gradient.begin(), 0.0);
  const auto moved = [&](double by) {
    std::vector<double> there = at;
    for (std::size_t i = 0; i < at.size(); ++i) there[i] += by * direction[i];
    return slope_of(data, options, there).loss;
  };
  EXPECT_NEAR(along, (moved(1e-5) - moved(-1e-5)) / 2e-5, 1e-6 * std::fabs(along));
  ASSERT_TRUE(std::isfinite(here.loss));
}

// Of one size for each component they are its weight, up to the rounding of 1 / sigma^2; whole, in segments and with
// free states.
TEST(UnevenData, errors_of_one_size_are_the_components_weight) {
  TrajectoryData data = spirals({9, 2, 14}), with = data;
  for (std::size_t i = 0; i < data.states.size(); ++i) with.sigma.push_back(i % 2 == 0 ? 0.5 : 3);
  for (const FitPhase& phase : {with_segments(0), with_segments(3), with_segments(3, 2.0)}) {
    FitOptions options = f64_options(phase);
    const Slope found = slope_of(with, options);
    options.component_weights = {4, 1.0 / 9};
    const Slope expected = slope_of(data, options);
    EXPECT_NEAR(found.loss, expected.loss, 1e-14 * expected.loss);
    ASSERT_EQ(found.gradient.size(), expected.gradient.size());
    for (std::size_t i = 0; i < found.gradient.size(); ++i) {
      EXPECT_NEAR(found.gradient[i], expected.gradient[i], 1e-12 * (1 + std::fabs(expected.gradient[i]))) << i;
    }
  }
}

// Each measurement in units of its own: what it adds, 1 / sigma^2 of what it adds alone. Mini-batches take theirs
// along.
TEST(UnevenData, each_measurement_counts_in_units_of_its_own_error) {
  const TrajectoryData data = spirals({9, 2, 14});
  const auto alone = [&](std::size_t i) {
    TrajectoryData one = data;
    for (std::size_t at = 0; at < one.states.size(); ++at) {
      const bool first = at < 2 || (at >= 18 && at < 20) || (at >= 22 && at < 24);
      if (at != i && !first) one.states[at] = std::nan("");
    }
    return slope_of(one, f64_options()).loss;
  };
  TrajectoryData with = data;
  double expected = 0;
  for (std::size_t i = 0; i < data.states.size(); ++i) {
    with.sigma.push_back(0.1 + 0.01 * static_cast<double>(i));
    const bool first = i < 2 || (i >= 18 && i < 20) || (i >= 22 && i < 24);
    if (!first) expected += alone(i) / (with.sigma[i] * with.sigma[i]);
  }
  EXPECT_NEAR(slope_of(with, f64_options()).loss, expected, 1e-12 * expected);

  FitOptions batches = f64_options();
  batches.phases[0].batch = 1;
  double sum = 0;
  FitLoss<double> loss(net(small_net()), with, batches);
  std::vector<double> at = net(small_net())->weights(), gradient(at.size());
  for (std::int64_t i = 0; i < 3; ++i) sum += loss(train::Place{.iteration = i, .total = i}, at, gradient);
  EXPECT_NEAR(sum / 3, expected, 1e-12 * expected);
}

TEST(UnevenData, the_gradient_with_errors_of_measurements_is_that_of_differences) {
  TrajectoryData data = spirals({9, 2, 14});
  for (std::size_t i = 0; i < data.states.size(); ++i) data.sigma.push_back(0.5 + 0.03 * static_cast<double>(i % 17));
  for (const std::size_t i : {6, 7, 9, 40}) data.states[i] = data.sigma[i] = std::nan("");
  const FitOptions options = f64_options(with_segments(3, 2.0));
  std::vector<double> at = net(small_net())->weights(), direction(at.size() + data.states.size());
  at.resize(direction.size());
  for (std::size_t i = 0; i < at.size(); ++i) {
    direction[i] = Random(3).normal(i, 0);
    if (i >= 27) at[i] = 0.1 * Random(3).normal(i, 1);
  }
  const Slope here = slope_of(data, options, at);
  const double along = std::inner_product(direction.begin(), direction.end(), here.gradient.begin(), 0.0);
  const auto moved = [&](double by) {
    std::vector<double> there = at;
    for (std::size_t i = 0; i < at.size(); ++i) there[i] += by * direction[i];
    return slope_of(data, options, there).loss;
  };
  EXPECT_NEAR(along, (moved(1e-5) - moved(-1e-5)) / 2e-5, 1e-6 * std::fabs(along));
}

TEST(UnevenData, missing_starts_begin_on_the_line_between_measurements) {
  TrajectoryData data{.times = {0, 1, 2, 4, 5}, .states = {1, 10, NAN, 11, NAN, NAN, 5, NAN, 6, NAN}};
  FitLoss<double> loss(net(small_net()), data, f64_options(with_segments(1, 1.0)));
  std::vector<double> at(loss.parameters());
  EXPECT_THAT(loss.states(at), testing::ElementsAre(1, 10, 2, 11, 3, 11, 5, 11, 6, 11));
}

TEST(UnevenData, scaling_comes_from_what_was_measured) {
  Mlp with = small_net(), without = small_net();
  const TrajectoryData gaps{.times = {0, 1, 2, 4}, .states = {1, 5, NAN, 6, 5, 7, 9, 9}};
  const TrajectoryData line{.times = {0, 2, 4}, .states = {1, 5, 5, 7, 9, 9}};
  fit_scaling(with, gaps);
  fit_scaling(without, line);
  EXPECT_EQ(with.input_scaling.shift[0], without.input_scaling.shift[0]);
  EXPECT_EQ(with.output_scaling.shift[0], 2);
  EXPECT_EQ(with.output_scaling.shift[1], 1);
  EXPECT_EQ(with.input_scaling.shift[1], 6.75);
}

TEST(UnevenData, what_does_not_fit_is_refused_by_name) {
  const auto message = [&](const TrajectoryData& data, const FitPhase& phase = {}) -> std::string {
    try {
      slope_of(data, f64_options(phase));
    } catch (const Error& error) {
      return error.what();
    }
    return "accepted";
  };
  TrajectoryData data = spirals({3, 5});
  data.lengths = {3, 4};
  EXPECT_THAT(message(data), HasSubstr("data.states: found 16 numbers, expected 14: 7 points, as data.lengths adds"));
  data.lengths = {7, 1};
  EXPECT_THAT(message(data), HasSubstr("data.lengths: found 1 points of trajectory 1, expected at least two"));
  data.lengths = {8};
  EXPECT_THAT(message(data), HasSubstr("data.lengths: found 1 numbers, expected 2, one for each trajectory"));
  data = spirals({3, 5});
  data.sigma.assign(15, 1.0);
  EXPECT_THAT(message(data), HasSubstr("data.sigma: found 15 numbers, expected 16, one for each state"));
  for (const double bad : {0.0, -0.5, static_cast<double>(NAN), static_cast<double>(INFINITY)}) {
    data.sigma.assign(16, 1.0);
    data.sigma[11] = bad;
    EXPECT_THAT(message(data),
                HasSubstr("in trajectory 1, row 2, component 1, expected a finite number greater than 0"));
    data.states[11] = NAN;
    EXPECT_EQ(message(data), "accepted");
    data.states[11] = 1;
  }
  data = spirals({3, 5});
  data.times.pop_back();
  EXPECT_THAT(message(data), HasSubstr("data.times: found 7 numbers, expected 5 shared by all, or 8"));
  data = spirals({3, 5});
  data.times[6] = data.times[5];
  EXPECT_THAT(message(data), HasSubstr("in trajectory 1, row 3"));
  data = spirals({3, 5});
  data.states[6] = std::nan("");
  EXPECT_THAT(message(data), HasSubstr("trajectory 1, row 0, component 0, expected a complete state"));
  data = spirals({3, 5});
  data.states[11] = std::nan("");
  EXPECT_EQ(message(data), "accepted");
  EXPECT_EQ(message(data, with_segments(2, 1.0)), "accepted");
  EXPECT_THAT(message(data, with_segments(2)),
              HasSubstr("NaN in trajectory 1, row 2, component 1, where a segment of phase 1 starts"));
  data.states[11] = INFINITY;
  EXPECT_THAT(message(data), HasSubstr("trajectory 1, row 2, component 1, expected finite states, or NaN"));
}

TEST(UnevenData, a_segment_that_fails_is_named_by_its_trajectory) {
  Mlp mlp;  // u' = 40 u^2: not finite where u0 is large
  mlp.layers.push_back({1, 1, {40}, {0}, {ActivationKind::square}});
  TrajectoryData data{.trajectories = 2, .times = {0, 1, 2, 0, 1, 2, 3, 4}, .states = {0, 0, 0, 0, 0, 0, 9, 0}};
  data.lengths = {3, 5};
  try {
    fit(net(mlp), data, f64_options(with_segments(1)));
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.field(), HasSubstr("trajectory 1, segment 3"));
  }
}

// Problems whose rows of save times end early, for the gradient alone.
TEST(UnevenData, rows_of_save_times_end_in_infinities_only) {
  const double never = std::numeric_limits<double>::infinity();
  const auto accepts = [&](std::vector<double> times, double end) {
    Problem problem{.rhs = net(small_net()), .initial_states = {1, 0, 0, 1}, .end_times = {end}};
    problem.save_times = std::move(times);
    problem.save_times_per_trajectory = true;
    const SquaredError loss{.targets = std::vector<double>(problem.save_times.size() * 2, NAN)};
    try {
      return solve_with_gradients(problem, {}, loss).loss == 0;
    } catch (const Error& error) {
      EXPECT_THAT(error.field(), HasSubstr("save_times"));
      return false;
    }
  };
  EXPECT_TRUE(accepts({0, 1, 0.5, never}, 1));
  EXPECT_TRUE(accepts({0, -1, -0.5, -never}, -1));
  EXPECT_TRUE(accepts({never, never, 0.5, 1}, 1));
  EXPECT_FALSE(accepts({0, 1, never, 0.5}, 1));
  EXPECT_FALSE(accepts({0, 1, 0.5, -never}, 1));
  EXPECT_FALSE(accepts({0, 1, 0.5, NAN}, 1));
}

// The whole trajectories start from the data, whose noise at the start a damped spiral carries on, at most as large, to
// every point: twice the noise's own squares are expected of the true law, three times leave room for chance.
TEST(UnevenData, recommended_phases_fit_trajectories_with_gaps_to_their_noise) {
  TrajectoryData data = spirals({61, 45});
  double noise = 0;
  for (std::size_t i = 0, at = 0; i < 2; ++i) {
    for (std::size_t point = 0; point < data.lengths[i]; ++point, at += 2) {
      const double t = data.times[at / 2];
      if (point % 5 == 0 && point > 0) {  // where segments start
        data.states[at] = std::nan("");
      } else {
        noise += std::pow(data.states[at] - std::exp(-0.1 * t) * std::cos(2 * t), 2) / 2;
      }
      noise += std::pow(data.states[at + 1] + std::exp(-0.1 * t) * std::sin(2 * t), 2) / 2;
    }
  }
  FitOptions options = f64_options();
  options.phases = recommended_phases(61, 3 * noise, true);
  const FitResult result = fit(net(small_net()), data, options);
  EXPECT_LT(result.loss, 3 * noise);
  options.phases = recommended_phases(61, 3 * noise);
  EXPECT_THROW(fit(net(small_net()), data, options), Error);
}

}  // namespace
}  // namespace lockstep::ode
