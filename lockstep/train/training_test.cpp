#include "lockstep/train/training.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/train/loss_unit.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;

// A valley around (1, 1): Rosenbrock's function.
double valley(const Place&, std::span<const double> x, std::span<double> g) {
  const double r = x[1] - x[0] * x[0], s = 1 - x[0];
  g[0] = -40 * x[0] * r - 2 * s;
  g[1] = 20 * r;
  return 10 * r * r + s * s;
}

std::vector<Phase> adam_then_lbfgs() {
  return {
      {.name = "adam", .iterations = 60, .learning_rate = {.schedule = Schedule::plateau, .rate = 0.1, .patience = 5}},
      {.name = "polish", .iterations = 40, .rule = LbfgsOptions{}}};
}

TEST(Training, phases_follow_each_other_and_end_below_where_they_began) {
  Training<double> training(adam_then_lbfgs(), {-1, 1});
  double first = 0, last = 0;
  std::size_t phase = 0;
  while (!training.finished()) {
    const IterationReport report = training.iterate(valley);
    if (report.place.total == 0) first = report.loss;
    EXPECT_GE(report.place.phase, phase);
    phase = report.place.phase;
    last = report.loss;
  }
  EXPECT_EQ(phase, 1u);
  EXPECT_EQ(first, 4);
  // L-BFGS converges superlinearly: what is left is rounding, (2^-53)^2 times a curvature of some tens, with room.
  EXPECT_LT(last, 1e-28);
  EXPECT_EQ(training.best_loss(), last);
  EXPECT_NEAR(training.best_parameters()[0], 1, 1e-13);
}

// What the loss is told beforehand is the step that is taken; the number goes up by one from step to step and jumps
// where something else moves the parameters.
TEST(Training, says_beforehand_which_step_follows) {
  std::vector<Phase> phases = adam_then_lbfgs();
  phases[0].clip.norm = 3;
  phases[0].iterations = 10;
  phases.insert(phases.begin() + 1, phases[0]);
  Training<double> training(phases, {-1, 1});
  std::unique_ptr<Stepper<double>> follower;
  std::vector<double> followed;
  std::uint64_t last = 0;
  int rows = 0, announced = 0;
  while (!training.finished()) {
    EXPECT_FALSE(training.ahead());
    const auto loss = [&](const Place& place, std::span<const double> x, std::span<double> g) {
      const double value = valley(place, x, g);
      EXPECT_EQ(training.ahead().has_value(), place.phase < 2);
      if (!training.ahead()) return value;
      const auto& [stepper, rate, number] = *training.ahead();
      if (rows == 0 || number != last + 1) {
        ++rows;
        follower = stepper->copy();
        followed.assign(x.begin(), x.end());
      }
      ++announced;
      EXPECT_EQ(followed, std::vector<double>(x.begin(), x.end()));
      std::vector<double> gradient(g.begin(), g.end());
      follower->step(followed, gradient, rate);
      last = number;
      return value;
    };
    training.iterate(loss);
    if (training.place().total == 5) training.restore(training.state());
  }
  EXPECT_EQ(announced, 20);
  EXPECT_EQ(rows, 3);  // from the start, from the restored state, from the second phase
}

TEST(Training, a_loss_that_throws_leaves_no_step_ahead) {
  Training<double> training(adam_then_lbfgs(), {-1, 1});
  const auto loss = [](const Place&, std::span<const double>, std::span<double>) -> double {
    throw std::runtime_error("no loss");
  };
  EXPECT_THROW(training.iterate(loss), std::runtime_error);
  EXPECT_FALSE(training.ahead());
}

// What ended with its phase is in no later state: checkpoints of one run have the same bytes, interrupted or not.
TEST(Training, nothing_of_an_earlier_phase_stays_in_a_restored_state) {
  for (const std::int64_t interrupted : {10, 70}) {
    Training<double> whole(adam_then_lbfgs(), {-1, 1}), rest(adam_then_lbfgs(), {-1, 1});
    while (!whole.finished()) {
      if (whole.place().total == interrupted) rest.restore(whole.state());
      whole.iterate(valley);
    }
    while (!rest.finished()) rest.iterate(valley);
    const TrainingState<double> one = whole.state(), two = rest.state();
    EXPECT_EQ(two.optimiser.first, one.optimiser.first) << interrupted;
    EXPECT_EQ(two.optimiser.steps, one.optimiser.steps);
    EXPECT_EQ(two.plateau.best, one.plateau.best);
    EXPECT_EQ(two.lbfgs.gradient, one.lbfgs.gradient);
    EXPECT_EQ(two.best, one.best);
  }
}

TEST(Training, a_state_restored_after_any_iteration_continues_with_the_same_bits) {
  Training<double> whole(adam_then_lbfgs(), {-1, 1});
  std::vector<TrainingState<double>> states{whole.state()};
  std::vector<double> losses;
  while (!whole.finished()) {
    losses.push_back(whole.iterate(valley).loss);
    states.push_back(whole.state());
  }
  for (std::size_t start = 0; start < states.size(); start += 7) {
    Training<double> rest(adam_then_lbfgs(), {0, 0});
    rest.restore(states[start]);
    std::vector<double> again(losses.begin(), losses.begin() + static_cast<std::ptrdiff_t>(start));
    while (!rest.finished()) again.push_back(rest.iterate(valley).loss);
    ASSERT_EQ(again, losses) << start;
    EXPECT_EQ(rest.state().best, whole.state().best);
  }
}

TEST(Training, the_best_parameters_are_those_of_the_lowest_loss) {
  // A rate this large jumps over the minimum at 0 and away from it.
  Training<double> training(
      {{.iterations = 5, .rule = OptimiserOptions{.rule = Rule::sgd, .momentum = 0}, .learning_rate = {.rate = 1.5}}},
      {2.0});
  const auto loss = [](const Place&, std::span<const double> x, std::span<double> g) {
    g[0] = 2 * x[0];
    return x[0] * x[0];
  };
  while (!training.finished()) training.iterate(loss);
  EXPECT_EQ(training.best_parameters()[0], 2);
  EXPECT_EQ(training.best_loss(), 4);
}

TEST(Training, a_validation_loss_decides_about_the_best_and_stops_early) {
  Training<double> training({{.iterations = 1000, .learning_rate = {.rate = 0.1}, .patience = 10}}, {3.0});
  training.validate_with([](const Place&, std::span<const double> x) { return std::fabs(x[0] - 1); }, 2);
  const auto loss = [](const Place&, std::span<const double> x, std::span<double> g) {
    g[0] = 2 * x[0];
    return x[0] * x[0];
  };
  IterationReport report;
  while (!training.finished()) report = training.iterate(loss);
  EXPECT_LT(report.place.total, 100);
  EXPECT_NEAR(training.best_parameters()[0], 1, 0.2);  // two steps of at most the rate around 1
}

// Asked every tenth iteration, the validation loss has had no chance to fall after three.
TEST(Training, the_best_of_all_phases_comes_out_where_validation_decides) {
  // The first phase finds what validation wants, x = 1; the second leaves it.
  const auto loss = [](const Place& place, std::span<const double> x, std::span<double> g) {
    const double aim = place.phase == 0 ? 1 : -5;
    g[0] = 2 * (x[0] - aim);
    return (x[0] - aim) * (x[0] - aim);
  };
  const std::vector<Phase> phases{{.iterations = 30, .rule = LbfgsOptions{}},
                                  {.iterations = 3, .rule = LbfgsOptions{}}};
  const auto validation = [](const Place&, std::span<const double> x) { return std::fabs(x[0] - 1) + 1; };
  Training<double> training(phases, {3.0});
  training.validate_with(validation);
  std::vector<TrainingState<double>> states{training.state()};
  while (!training.finished()) {
    training.iterate(loss);
    states.push_back(training.state());
  }
  EXPECT_NEAR(training.best_parameters()[0], 1, 1e-9);
  EXPECT_NEAR(training.best_loss(), 1, 1e-9);
  EXPECT_GT(std::fabs(training.state().best[0] - 1), 1e-6);  // that of the last phase alone
  for (const TrainingState<double>& state : states) {
    Training<double> rest(phases, {0.0});
    rest.validate_with(validation);
    rest.restore(state);
    while (!rest.finished()) rest.iterate(loss);
    EXPECT_EQ(rest.best_parameters()[0], training.best_parameters()[0]);
    EXPECT_EQ(rest.best_loss(), training.best_loss());
  }
  // Losses of phases are not compared where no validation decides.
  Training<double> alone(phases, {3.0});
  while (!alone.finished()) alone.iterate(loss);
  EXPECT_LT(alone.best_parameters()[0], 0.9);
}

// Calls of loss and validation throw now and then, as those that are asked to stop do; the iteration is made again, by
// a training that continues from the state.
TEST(Training, an_iteration_that_was_stopped_is_made_again_with_the_same_bits) {
  const std::vector<Phase> phases{
      {.iterations = 7, .learning_rate = {.schedule = Schedule::plateau, .rate = 0.3, .factor = 0.5, .patience = 1}},
      {.iterations = 5, .rule = LbfgsOptions{}},
      {.iterations = 9, .rule = OptimiserOptions{.rule = Rule::sgd}, .learning_rate = {.rate = 0.01}}};
  struct Stop {};
  int calls = 0, stops = 0;
  const auto course = [&](int period) {  // 0: without stops
    calls = stops = 0;
    const auto may_stop = [&] {
      if (++calls, period != 0 && calls % period == 0) {
        ++stops;
        throw Stop();
      }
    };
    const auto loss = [&](const Place&, std::span<const double> x, std::span<double> g) {
      may_stop();
      g[0] = 4 * x[0] * (x[0] * x[0] - 1);
      g[1] = 2 * (x[1] - x[0]);
      return (x[0] * x[0] - 1) * (x[0] * x[0] - 1) + (x[1] - x[0]) * (x[1] - x[0]);
    };
    const auto validation = [&](const Place&, std::span<const double> x) {
      may_stop();
      return std::fabs(x[0] - 0.9) + std::fabs(x[1]);
    };
    std::optional<Training<double>> training(std::in_place, phases, std::vector{3.0, -1.0});
    training->validate_with(validation, 2);
    std::vector<double> numbers;
    while (!training->finished()) {
      try {
        const IterationReport report = training->iterate(loss);
        numbers.insert(numbers.end(), {report.loss, report.watched, report.learning_rate, training->parameters()[0],
                                       training->parameters()[1], training->best_loss()});
      } catch (const Stop&) {
        const TrainingState<double> state = training->state();
        training.emplace(phases, std::vector{0.0, 0.0});
        training->validate_with(validation, 2);
        training->restore(state);
      }
    }
    return numbers;
  };
  const std::vector<double> expected = course(0);
  const int all = calls;
  for (int period = 8; period <= all; ++period) {  // each call is some run's first that throws
    EXPECT_EQ(course(period), expected) << "every " << period << " calls";
    EXPECT_GT(stops, 0);
  }
}

TEST(Training, neither_patience_nor_the_plateau_counts_a_validation_loss_that_was_not_asked_again) {
  Training<double> training(
      {{.iterations = 1000,
        .learning_rate = {.schedule = Schedule::plateau, .rate = 0.01, .factor = 0.5, .patience = 3},
        .patience = 3}},
      {3.0});
  int asked = 0;
  training.validate_with(
      [&](const Place&, std::span<const double> x) {
        ++asked;
        return std::fabs(x[0] - 2.5);
      },
      10);
  const auto loss = [](const Place&, std::span<const double> x, std::span<double> g) {
    g[0] = 2 * x[0];
    return x[0] * x[0];
  };
  IterationReport report;
  std::vector<double> rates;
  while (!training.finished()) {
    report = training.iterate(loss);
    rates.push_back(report.learning_rate);
  }
  // Adam's steps are of the rate's size: 50 lead from 3 to 2.5, and the loss of iteration 60 is the first that is no
  // better.
  EXPECT_EQ(report.place.total, 60);
  EXPECT_EQ(rates, std::vector<double>(61, 0.01));
  EXPECT_NEAR(training.best_parameters()[0], 2.5, 0.02);
  EXPECT_EQ(asked, 8);  // at 0, 10, ..., 60, and of the last step
}

TEST(Training, a_first_line_search_that_was_stopped_begins_with_its_start_again) {
  const std::vector<Phase> phases{{.iterations = 6, .rule = LbfgsOptions{}}};
  struct Stop {};
  int calls = 0;
  std::vector<double> first;
  const auto loss = [&](const Place&, std::span<const double> x, std::span<double> g) {
    if (calls++ == 0) first.assign(x.begin(), x.end());
    if (calls == 2) throw Stop();
    g[0] = 4 * x[0] * (x[0] * x[0] - 1);
    return (x[0] * x[0] - 1) * (x[0] * x[0] - 1);
  };
  Training<double> whole(phases, {3.0}), stopped(phases, {3.0}), resumed(phases, {3.0});
  calls = 2;
  while (!whole.finished()) whole.iterate(loss);
  calls = 0;
  EXPECT_THROW(stopped.iterate(loss), Stop);
  resumed.restore(stopped.state());
  calls = 0;
  EXPECT_THROW(resumed.iterate(loss), Stop);
  EXPECT_EQ(first, std::vector{3.0});
  calls = 2;
  while (!resumed.finished()) resumed.iterate(loss);
  EXPECT_EQ(resumed.best_parameters()[0], whole.best_parameters()[0]);
}

TEST(Training, the_last_step_is_looked_at_where_validation_decides) {
  Training<double> training({{.iterations = 5, .learning_rate = {.rate = 0.1}}}, {3.0});
  training.validate_with([](const Place&, std::span<const double> x) { return x[0]; }, 100);
  const auto loss = [](const Place&, std::span<const double> x, std::span<double> g) {
    g[0] = 1;
    return x[0];
  };
  while (!training.finished()) training.iterate(loss);
  EXPECT_NEAR(training.best_parameters()[0], 2.5, 1e-6);
  EXPECT_EQ(training.best_loss(), training.best_parameters()[0]);
}

// Past x = 1 half of the data is lost, and with it most of the loss.
struct Losing {
  std::int64_t left_out = 0;
  double operator()(const Place&, std::span<const double> x, std::span<double> g) {
    left_out = x[0] > 1 ? 2 : 0;
    g[0] = -1;
    return (x[0] > 1 ? 0 : 10) - x[0];
  }
};

TEST(Training, parameters_that_leave_out_less_are_better_whatever_the_loss) {
  Losing losing;
  Training<double> training({{.iterations = 8, .learning_rate = {.rate = 0.3}}}, {0.0});
  training.count_left_out([&] { return losing.left_out; });
  IterationReport report;
  while (!training.finished()) report = training.iterate(std::ref(losing));
  EXPECT_EQ(report.left_out, 2);
  EXPECT_NEAR(training.best_parameters()[0], 0.9, 1e-6);  // three of Adam's steps
  EXPECT_GT(training.best_loss(), report.loss);
}

TEST(Training, lbfgs_takes_no_step_that_leaves_out_more) {
  Losing losing;
  Training<double> training({{.iterations = 20, .rule = LbfgsOptions{}}}, {0.0});
  training.count_left_out([&] { return losing.left_out; });
  while (!training.finished()) EXPECT_EQ(training.iterate(std::ref(losing)).left_out, 0);
  EXPECT_LE(training.best_parameters()[0], 1);
  EXPECT_GT(training.best_parameters()[0], 0.4);  // bisection of the first step, 1 or more
}

TEST(Training, a_target_ends_the_phase) {
  Training<double> training({{.iterations = 1000, .rule = LbfgsOptions{}, .target = 1e-3}}, {-1, 1});
  IterationReport report;
  while (!training.finished()) report = training.iterate(valley);
  EXPECT_LE(report.loss, 1e-3);
  EXPECT_TRUE(report.phase_ended);
  EXPECT_LT(report.place.total, 40);
}

TEST(Training, a_phase_that_rounding_ends_says_so) {
  // What is left to win is 1e-9 of the loss, which float32 rounds by 6e-8 of it.
  const auto flat = []<class T>(const Place&, std::span<const T> x, std::span<T> g) {
    const double distance = static_cast<double>(x[0]) - 3;
    g[0] = static_cast<T>(1e-9 * distance);
    return 1 + 0.5e-9 * distance * distance;
  };
  Training<float> single({{.iterations = 10, .rule = LbfgsOptions{}}}, {1});
  const IterationReport stalled = single.iterate(flat);
  EXPECT_TRUE(stalled.stalled && stalled.phase_ended && single.finished());
  Training<double> full({{.iterations = 10, .rule = LbfgsOptions{}}}, {1});
  EXPECT_FALSE(full.iterate(flat).stalled);
  // A gradient of zero is an end, too, but none of rounding.
  Training<float> there({{.iterations = 10, .rule = LbfgsOptions{}}}, {3});
  const IterationReport converged = there.iterate(flat);
  EXPECT_TRUE(converged.phase_ended && !converged.stalled);
}

TEST(Training, a_loss_that_is_not_finite_names_the_iteration_and_leaves_the_parameters) {
  Training<double> training({{.name = "adam", .iterations = 10, .learning_rate = {.rate = 0.1}}}, {1.0});
  const auto loss = [](const Place& place, std::span<const double> x, std::span<double> g) {
    g[0] = 1;
    return place.iteration == 3 ? NAN : x[0];
  };
  for (int i = 0; i < 3; ++i) training.iterate(loss);
  const double before = training.parameters()[0];
  try {
    training.iterate(loss);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("iteration 3 (adam, 3): found a loss that is not finite"));
  }
  EXPECT_EQ(training.parameters()[0], before);
  EXPECT_EQ(training.place().total, 3);
}

TEST(Training, states_and_phases_that_do_not_fit_are_refused) {
  EXPECT_THROW(Training<double>({}, {1.0}), Error);
  EXPECT_THROW(Training<double>({{.iterations = 0}}, {1.0}), Error);
  Training<double> one({Phase{}}, {1.0}), two({Phase{}}, {1.0, 2.0});
  EXPECT_THROW(two.restore(one.state()), Error);
}

// A loss in another unit and the optimiser told of it: the same parameters, to the bit, in each iteration, while all
// that is reported, aimed at and clipped is in that unit.
TEST(Training, a_loss_in_another_unit_is_the_same_training) {
  constexpr double kUnit = 0x1p-40;
  std::vector<Phase> phases = adam_then_lbfgs();
  phases[0].clip = {.norm = 3, .value = 2};
  phases[1].target = 1e-10;
  std::vector<Phase> small = phases;
  small[0].clip = {.norm = 3 * kUnit, .value = 2 * kUnit};
  small[1].target = 1e-10 * kUnit;
  Training<double> plain(phases, {-1, 1}), measured(small, {-1, 1});
  measured.measure_in(kUnit);
  const auto in_unit = [](const Place& place, std::span<const double> x, std::span<double> g) {
    return kUnit * valley(place, x, g);
  };
  Training<double> resumed(small, {-1, 1});
  resumed.measure_in(kUnit);
  while (!plain.finished()) {
    ASSERT_FALSE(measured.finished());
    const IterationReport expected = plain.iterate(valley), found = measured.iterate(in_unit);
    EXPECT_EQ(found.loss, kUnit * expected.loss);
    EXPECT_EQ(found.gradient_norm, kUnit * expected.gradient_norm);
    EXPECT_EQ(found.phase_ended, expected.phase_ended);
    EXPECT_EQ(std::vector(measured.parameters().begin(), measured.parameters().end()),
              std::vector(plain.parameters().begin(), plain.parameters().end()));
    if (found.place.total % 7 == 3) resumed.restore(measured.state());
  }
  EXPECT_TRUE(measured.finished());
  EXPECT_EQ(measured.best_loss(), kUnit * plain.best_loss());
  while (!resumed.finished()) resumed.iterate(in_unit);
  EXPECT_EQ(resumed.best_parameters()[0], plain.best_parameters()[0]);
  EXPECT_THROW(measured.measure_in(0), Error);
}

TEST(Training, a_first_loss_that_is_not_finite_is_no_matter_of_the_rate) {
  Training<double> training({{.iterations = 2}}, {1, 1});
  try {
    training.iterate([](const Place&, std::span<const double>, std::span<double>) { return HUGE_VAL; });
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("no step has been taken yet"));
  }
}

// A sum of squares whose residuals differ in size by ten to the number of unknowns less one.
struct Ravine {
  static constexpr std::size_t kCount = 7;
  static double weight(std::size_t i) { return std::pow(10.0, static_cast<double>(i)); }
  // Linear but for a bend along the first unknown: the model is wrong far away.
  static double residual(std::span<const double> x, std::size_t i) {
    const double next = i + 1 < kCount ? x[i + 1] : 1;
    return weight(i) * (x[i] - next) + (i == 0 ? 0.1 * (x[0] - 1) * (x[0] - 1) : 0);
  }
  static double loss(const Place&, std::span<const double> x, std::span<double> g) {
    double sum = 1;  // that no unknown moves
    std::fill(g.begin(), g.end(), 0.0);
    for (std::size_t i = 0; i < kCount; ++i) {
      const double r = residual(x, i);
      sum += r * r;
      g[i] += 2 * r * weight(i) + (i == 0 ? 0.4 * r * (x[0] - 1) : 0);
      if (i + 1 < kCount) g[i + 1] -= 2 * r * weight(i);
    }
    return sum;
  }
  // All residuals but the constant one are made zero, from the last on.
  static SquaresModel squares(std::span<const double> x) {
    double met = 0;
    std::vector<double> step(kCount);
    for (std::size_t i = kCount; i-- > 0;) {
      const double r = residual(x, i), slope = weight(i) + (i == 0 ? 0.2 * (x[0] - 1) : 0);
      met += r * r;
      step[i] = ((i + 1 < kCount ? weight(i) * step[i + 1] : 0) - r) / slope;
    }
    return {.freedom = 100, .step = [step, fall = met / (met + 1)](double damping) {
              SquaresStep result{step, fall / (1 + damping)};
              for (double& each : result.step) each /= 1 + damping;
              return result;
            }};
  }
};

std::vector<Phase> one_pair(std::int64_t iterations) {
  return {{.name = "first", .iterations = 60, .rule = LbfgsOptions{.history = 1}},
          {.name = "last", .iterations = iterations, .rule = LbfgsOptions{.history = 1}}};
}
std::vector<double> far_away() { return std::vector<double>(Ravine::kCount, 3); }

TEST(Training, the_last_phase_of_lbfgs_is_finished_by_squares) {
  Training<double> plain(one_pair(1000), far_away()), finished(one_pair(1000), far_away());
  std::vector<std::size_t> asked;
  finished.finish_by([&](const Place& place, std::span<const double> x) {
    asked.push_back(place.phase);
    return std::optional(Ravine::squares(x));
  });
  while (!plain.finished()) plain.iterate(Ravine::loss);
  double last = HUGE_VAL;
  while (!finished.finished()) {
    const double loss = finished.iterate(Ravine::loss).loss;
    EXPECT_LE(loss, last);
    last = loss;
  }
  EXPECT_GT(plain.best_loss(), 1.01);
  EXPECT_LT(finished.best_loss(), 1 + 1e-6);  // a hundredth of a standard error, squared, of 100 degrees of freedom
  EXPECT_LE(finished.place().total, 60 + 50 + 10);
  EXPECT_THAT(asked, testing::Each(1u));
  EXPECT_GE(asked.size(), 2u);
}

// It foretells that half of the loss will fall and leads away.
TEST(Training, steps_by_squares_that_do_not_lower_the_loss_change_nothing) {
  Training<double> plain(one_pair(160), far_away()), misled(one_pair(160), far_away());
  int asked = 0;
  misled.finish_by([&](const Place&, std::span<const double> x) {
    ++asked;
    SquaresModel model{.freedom = 100};
    model.step = [size = x.size()](double) { return SquaresStep{std::vector<double>(size, 1e3), 0.5}; };
    return std::optional(model);
  });
  while (!plain.finished()) plain.iterate(Ravine::loss);
  while (!misled.finished()) misled.iterate(Ravine::loss);
  EXPECT_GE(asked, 2);
  EXPECT_EQ(misled.state().best, plain.state().best);
  EXPECT_EQ(misled.place().total, plain.place().total);
}

// As of a parameter that the data would have beyond its bound: all that the model foretells lies behind.
TEST(Training, steps_by_squares_that_win_next_to_nothing_are_not_taken) {
  Training<double> training({{.iterations = 200, .rule = LbfgsOptions{}}}, {0.0});
  training.finish_by([](const Place&, std::span<const double>) {
    return std::optional(SquaresModel{100, [](double) { return SquaresStep{{1.0}, 0.5}; }});
  });
  while (!training.finished()) {
    training.iterate([](const Place&, std::span<const double> x, std::span<double> g) {
      g[0] = -1e-9 * std::exp(-x[0]);
      return 1 - g[0];
    });
    ASSERT_EQ(training.state().by_squares, 0);
  }
}

TEST(Training, a_loss_near_its_least_is_not_finished_by_squares) {
  std::vector<double> near(Ravine::kCount, 1);
  near[0] += 0.009;  // 0.09 standard errors, as the loss rises by 0.0001 of what would be 0.01
  Training<double> training({{.iterations = 100, .rule = LbfgsOptions{.history = 1}}}, near);
  std::int64_t most = 0;
  training.finish_by([&](const Place&, std::span<const double> x) { return std::optional(Ravine::squares(x)); });
  while (!training.finished()) {
    training.iterate(Ravine::loss);
    most = std::max(most, training.state().by_squares);
  }
  EXPECT_EQ(most, 0);
}

TEST(LossUnit, is_exact_and_1_around_1) {
  for (const double size : {0.0, 1.0, 1.0 / 16, 16.0, HUGE_VAL, std::nan("")}) EXPECT_EQ(unit_of(size), 1) << size;
  EXPECT_EQ(unit_of(17), 256);
  EXPECT_EQ(unit_of(0.06), 1.0 / 256);
  for (const double size : {1e-300, 1e-25, 1e-6, 1e6, 1e20, 1e300}) {
    const double unit = unit_of(size);
    EXPECT_EQ(std::ldexp(0.5, std::ilogb(unit) + 1), unit) << size;
    EXPECT_LE(size / unit, 16);
    EXPECT_GE(size / unit, 1.0 / 16);
  }
}

}  // namespace
}  // namespace lockstep::train
