// States that change at events, in the kernels that are compiled for them: the same source run by the host has the bits
// and counts of the CPU engine and of the plain reference, whatever meets at one time; NVRTC, where it is installed,
// compiles the texts. With LOCKSTEP_TEST_DEVICE=cuda on this machine's first GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/ode/cuda/gemm/gemm_program.h"
#include "lockstep/ode/cuda/nvrtc.h"
#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/cuda/program_derivative.h"
#include "lockstep/ode/cuda/testing/impulses.h"
#include "lockstep/ode/cuda/testing/on_every_engine.h"
#include "lockstep/ode/cuda/testing/reset_bodies.h"
#include "lockstep/ode/cuda/testing/texts.h"
#include "lockstep/ode/cuda/testing/threshold.h"
#include "lockstep/ode/methods/dop853.h"
#include "lockstep/ode/methods/tsit5.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/testing/bouncing_balls.h"

namespace lockstep::ode::cuda {
namespace {

using ::testing::HasSubstr;
constexpr EventDirection kEither = EventDirection::either, kRising = EventDirection::rising,
                         kFalling = EventDirection::falling;

Options options_for(std::string_view method, Precision precision) {
  Options options;
  options.method = method;
  options.precision = precision;
  options.threads = 1;
  options.rtol = options.atol = precision == Precision::f32 ? 1e-5 : 1e-8;
  options.max_steps = 3000;
  return options;
}

class ResetsOnDevice : public OnEveryEngine {
 protected:
  // In either precision, by methods whose interpolants have stages of their own and not, as constants and from a table.
  template <template <class> class Derivative>
  void expect_same_bits(const Problem& problem, std::int64_t max_steps = 3000) {
    const auto set_for = [&](const char* method, Precision precision) {
      Options options = options_for(method, precision);
      options.max_steps = max_steps;
      return options;
    };
    using F32 = Derivative<float>;
    using F64 = Derivative<double>;
    expect_same_everywhere<double, F64, CompiledScheme<Tsit5>>(problem, set_for("tsit5", Precision::f64));
    expect_same_everywhere<float, F32, CompiledScheme<Tsit5>>(problem, set_for("tsit5", Precision::f32));
    expect_same_everywhere<double, F64, CompiledScheme<Dop853>>(problem, set_for("dop853", Precision::f64));
    expect_same_everywhere<float, F32, TableScheme<float>>(problem, set_for("vern7", Precision::f32));
    Options coarse = set_for("bs3", Precision::f64);
    coarse.rtol = coarse.atol = 1e-5;
    expect_same_everywhere<double, F64, TableScheme<double>>(problem, coarse);
  }
};

// A ball: height, speed, bounces so far, time of the last one; p0: the share of speed that is left.
LOCKSTEP_SETS(Falls, du[0] = u[1]; du[1] = -9.81; du[2] = 0; du[3] = 0;);
LOCKSTEP_RETURNS(Height, return u[0];);
LOCKSTEP_RETURNS(UnderCeiling, return u[0] - 1.6;);
LOCKSTEP_RETURNS(OverStep, return u[0] - 0.3;);
LOCKSTEP_RETURNS(SecondBounce, return u[2] - 1.5;);
LOCKSTEP_SETS(Bounces, du[0] = 0; du[1] = -p[0] * u[1]; du[2] = u[2] + 1; du[3] = t;);
LOCKSTEP_SETS(Turns, du[0] = u[0]; du[1] = -p[0] * u[1]; du[2] = u[2] + 1; du[3] = t;);
LOCKSTEP_SETS(TurnsBack, du[0] = u[0]; du[1] = -u[1]; du[2] = u[2]; du[3] = u[3];);
LOCKSTEP_SETS(Counts, du[0] = u[0]; du[1] = u[1]; du[2] = u[2]; du[3] = u[3] + 1;);

using Floor = ResetInKernel<Height, Bounces, kFalling>;
using Ceiling = ResetInKernel<UnderCeiling, TurnsBack, kRising>;
template <class T>
using Ball = SourceDerivative<Falls, 4, 1, T>;
template <class T>
using BallOnFloor = WithResets<Ball<T>, ResetList<Floor>>;

Problem balls(std::size_t count) {
  Problem problem = ode::testing::balls(count);
  problem.rhs = rhs_of<Falls, 4, 1>("falls");
  problem.resets = {Floor::reset<4, 1>()};
  return problem;
}

TEST_F(ResetsOnDevice, balls_bounce_as_on_the_cpu) {
  for (const std::size_t count : {0, 1, 31, 33, 101}) {
    expect_same_bits<BallOnFloor>(balls(count));
    EXPECT_THAT(kernel_, HasSubstr("source falls, 1 reset, bs3, f64"));
  }
  EXPECT_EQ(ended_[Status::success], 5 * (1 + 31 + 33 + 101));
  expect_same_bits<BallOnFloor>(balls(31), 7);
  EXPECT_GT(ended_[Status::too_many_steps], 30);
}

TEST_F(ResetsOnDevice, each_trajectory_has_its_own_span_and_save_times) {
  Problem problem = balls(33);
  problem.start_times.clear();
  problem.end_times.clear();
  problem.save_times.clear();
  problem.save_times_per_trajectory = true;
  for (int i = 0; i < 33; ++i) {
    const double start = 0.25 * (i % 3), end = start + (i % 7 == 6 ? -0.4 : 1.5 + 0.1 * (i % 5));
    problem.start_times.push_back(start);
    problem.end_times.push_back(end);
    for (const double share : {0.0, 0.2, 0.21, 1.0})
      problem.save_times.push_back(share == 1 ? end : start + share * (end - start));
  }
  expect_same_bits<BallOnFloor>(problem);
}

// Between floor and ceiling, kicked and stopped at their second bounce: by an event compiled in, or by one of the
// launch.
template <class T>
using BusyBall =
    WithResets<WithEvent<Ball<T>, SecondBounce, T>, ResetList<Ceiling, ResetInKernel<Height, Turns, kFalling>>>;
template <class T>
using BusyBallOfLaunch = WithResets<Ball<T>, ResetList<Ceiling, ResetInKernel<Height, Turns, kFalling>>>;

Problem busy(std::size_t count) {
  Problem problem = balls(count);
  problem.resets = {Ceiling::reset<4, 1>(), ResetInKernel<Height, Turns, kFalling>::reset<4, 1>()};
  problem.impulses = {{0.4, 1, 2}, {0.9, 0, 1.5}, {1.1, 1, -1, 0.5}};
  problem.event = TerminalEvent{event_of<SecondBounce, 4, 1>("second"), kRising};
  return problem;
}

TEST_F(ResetsOnDevice, events_and_impulses_beside_resets_meet_as_on_the_cpu) {
  for (const std::size_t count : {31, 77}) {
    expect_same_bits<BusyBall>(busy(count));
    EXPECT_THAT(kernel_, HasSubstr("event second, 2 resets"));
  }
  EXPECT_GT(ended_[Status::terminated], 10);
  EXPECT_GT(ended_[Status::success], 10);
  for (std::int64_t most = 1; most < 16; most += 3) expect_same_bits<BusyBall>(busy(31), most);
  Problem problem = busy(77);
  problem.event = TerminalEvent{threshold(4, 1, 2, 1.5), kRising};
  expect_same_bits<BusyBallOfLaunch>(problem);
  problem.event = TerminalEvent{threshold(4, 1, 1, -1.75), kEither};  // met and turned from within steps
  expect_same_bits<BusyBallOfLaunch>(problem);
  problem = balls(40);
  problem.start_times.assign(40, 0);
  problem.end_times.assign(40, 2);
  expect_same_bits<BallOnFloor>(with_own_impulses(problem));
}

// The event is there first, where both share a threshold.
TEST_F(ResetsOnDevice, an_event_at_the_same_threshold_ends_the_trajectory) {
  Problem problem = balls(33);
  problem.event = TerminalEvent{threshold(4, 1, 0, 0), kFalling};
  expect_same_bits<BallOnFloor>(problem);
  EXPECT_EQ(ended_[Status::terminated], 5 * 33);
}

TEST_F(ResetsOnDevice, bounces_that_pile_up_end_where_they_do_on_the_cpu) {
  Problem problem = balls(33);
  problem.end_times = {50};
  problem.save_times = {0, 1, 50};
  expect_same_bits<BallOnFloor>(problem, 100'000);
  EXPECT_EQ(ended_[Status::step_too_small], 5 * 33);
}

// A floor at 0.3 from which roundings do not tell the ball: it bounces lower and lower, and rests.
template <class T>
using BallOnStep = WithResets<Ball<T>, ResetList<ResetInKernel<OverStep, Turns, kFalling>>>;
TEST_F(ResetsOnDevice, balls_rest_where_they_do_on_the_cpu) {
  for (const double restitution : {0.001, 0.3, 0.8}) {
    Problem problem = balls(40);
    problem.parameters.assign(40, restitution);
    problem.end_times = {20};
    problem.save_times = {20};
    problem.resets = {ResetInKernel<OverStep, Turns, kFalling>::reset<4, 1>()};
    expect_same_bits<BallOnStep>(problem, 20'000);
  }
  EXPECT_EQ(ended_[Status::step_too_small], 3 * 5 * 40);
}

// Landings and take-offs: of two resets of one function the second strikes where the first turns it back.
template <class T>
using CountedBall =
    WithResets<Ball<T>, ResetList<ResetInKernel<OverStep, Turns, kFalling>, ResetInKernel<OverStep, Counts, kRising>>>;
TEST_F(ResetsOnDevice, twins_strike_each_other_as_on_the_cpu) {
  Problem problem = balls(60);
  problem.resets = {ResetInKernel<OverStep, Turns, kFalling>::reset<4, 1>(),
                    ResetInKernel<OverStep, Counts, kRising>::reset<4, 1>()};
  expect_same_bits<CountedBall>(problem);
}

// Waves around 1000 and a level that moves with time, which is rounded less than they are: the crossings change nothing
// but a count, and each is met once.
LOCKSTEP_SETS(Waves, du[0] = u[1]; du[1] = -p[0] * p[0] * (u[0] - 1000); du[2] = 0;);
LOCKSTEP_RETURNS(OverMoving, return u[0] - 1000 + 0.002 * t;);
LOCKSTEP_SETS(CountsOne, du[0] = u[0]; du[1] = u[1]; du[2] = u[2] + 1;);
template <class T>
using ObservedWave =
    WithResets<SourceDerivative<Waves, 3, 1, T>, ResetList<ResetInKernel<OverMoving, CountsOne, kFalling>>>;
TEST_F(ResetsOnDevice, waves_are_observed_as_on_the_cpu) {
  constexpr double kEnd = 60;
  Problem problem;
  problem.rhs = rhs_of<Waves, 3, 1>("waves");
  for (int i = 0; i < 101; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), {1001, 0, 0});
    problem.parameters.push_back(0.2 + 0.017 * i);
  }
  problem.end_times = {kEnd};
  problem.save_times = {kEnd};
  problem.resets = {ResetInKernel<OverMoving, CountsOne, kFalling>::reset<3, 1>()};
  expect_same_bits<ObservedWave>(problem);
  EXPECT_EQ(ended_[Status::success], 5 * 101);
  const Solution solution = solve(problem, options_for("tsit5", Precision::f32));
  for (std::size_t i = 0; i < 101; ++i) {
    // Zeros of cos(w t) + t / 500, of which one lies in each half turn, falling ones first.
    const double turns = problem.parameters[i] * kEnd / M_PI, halves = std::floor(turns);
    const double sign = std::fmod(halves, 2) == 0 ? 1 : -1;
    const bool passed = sign * (std::cos(turns * M_PI) + kEnd / 500) < 0;
    EXPECT_EQ(solution.end_state(i, 2), std::floor((halves + (passed ? 2 : 1)) / 2)) << i;
  }
}

// A heater with a gap between its thresholds, which are components', and one without, which chatters.
LOCKSTEP_SETS(Room, du[0] = -0.1 * (u[0] - 10) + 3 * u[1]; du[1] = 0;);
LOCKSTEP_SETS(Heats, du[0] = u[0]; du[1] = 1;);
LOCKSTEP_SETS(Cools, du[0] = u[0]; du[1] = 0;);
template <class T, int on, int off>
using Thermostat =
    WithResets<SourceDerivative<Room, 2, 0, T>, ResetList<ResetInKernel<Reaches<0, on>, Heats, kFalling>,
                                                          ResetInKernel<Reaches<0, off>, Cools, kRising>>>;
template <class T>
using WithGap = Thermostat<T, 76, 84>;
template <class T>
using WithoutGap = Thermostat<T, 76, 76>;
Problem thermostat(double on, double off) {
  Problem problem;
  problem.rhs = rhs_of<Room, 2, 0>("room");
  for (int i = 0; i < 60; ++i) {
    for (const double u : {12 + 0.113 * i, static_cast<double>(i % 2)}) problem.initial_states.push_back(u);
  }
  problem.end_times = {30};
  problem.save_times = {0, 10, 30};
  problem.resets = {{threshold(2, 0, 0, on), rhs_of<Heats, 2, 0>("heats"), kFalling},
                    {threshold(2, 0, 0, off), rhs_of<Cools, 2, 0>("cools"), kRising}};
  return problem;
}
TEST_F(ResetsOnDevice, thermostats_switch_as_on_the_cpu) {
  expect_same_bits<WithGap>(thermostat(19, 21));
  EXPECT_EQ(ended_[Status::success], 5 * 60);
  expect_same_bits<WithoutGap>(thermostat(19, 19));
  EXPECT_GT(ended_[Status::step_too_small], 5 * 20);
}

// Leaky integrate and fire: p0 drives, p1 is the threshold; the second number counts spikes.
LOCKSTEP_SETS(Leaks, du[0] = (p[0] - u[0]) / 0.02; du[1] = 0;);
LOCKSTEP_RETURNS(Fires, return u[0] - p[1];);
LOCKSTEP_SETS(Spikes, du[0] = 0; du[1] = u[1] + 1;);
template <class T>
using Neuron = WithResets<SourceDerivative<Leaks, 2, 2, T>, ResetList<ResetInKernel<Fires, Spikes, kRising>>>;
TEST_F(ResetsOnDevice, neurons_fire_as_on_the_cpu) {
  Problem problem;
  problem.rhs = rhs_of<Leaks, 2, 2>("leaks");
  for (int i = 0; i < 101; ++i) {
    problem.initial_states.insert(problem.initial_states.end(), {0.01 * i, 0});
    problem.parameters.insert(problem.parameters.end(), {0.9 + 0.01 * i, 1});
  }
  problem.end_times = {0.5};
  problem.save_times = {0.1, 0.5};
  problem.resets = {ResetInKernel<Fires, Spikes, kRising>::reset<2, 2>()};
  expect_same_bits<Neuron>(problem);
}

// One reset carries the state over the next one's threshold, and that one over the first's, which has had its turn.
LOCKSTEP_SETS(Rises, du[0] = 1; du[1] = 0;);
LOCKSTEP_SETS(Back, du[0] = u[0] - 3; du[1] = u[1];);
LOCKSTEP_SETS(Up, du[0] = u[0]; du[1] = u[1] + 1;);
using OverHalf = ResetInKernel<Reaches<1, 2>, Back, kEither>;
using OverOne = ResetInKernel<Reaches<0, 4>, Up, kRising>;
template <class T>
using Chain = WithResets<SourceDerivative<Rises, 2, 0, T>, ResetList<OverHalf, OverOne>>;
TEST_F(ResetsOnDevice, one_strikes_another_at_the_same_time) {
  Problem problem;
  problem.rhs = rhs_of<Rises, 2, 0>("rises");
  for (int i = 0; i < 33; ++i) problem.initial_states.insert(problem.initial_states.end(), {0.05 * i, 0});
  problem.end_times = {2};
  problem.save_times = {1};
  problem.resets = {{threshold(2, 0, 1, 0.5), rhs_of<Back, 2, 0>("back"), kEither},
                    {threshold(2, 0, 0, 1), rhs_of<Up, 2, 0>("up"), kRising}};
  expect_same_bits<Chain>(problem);
  problem.impulses = {{0.5, 1, 1}};
  expect_same_bits<Chain>(problem);
  problem.event = TerminalEvent{threshold(2, 0, 0, -2.125), kEither};  // over which the first one carries some
  expect_same_bits<Chain>(problem);
  EXPECT_GT(ended_[Status::terminated], 10);
  EXPECT_GT(ended_[Status::success], 10);
}

TEST_F(ResetsOnDevice, a_bad_state_spoils_no_neighbour) {
  Problem problem = balls(40);
  for (std::size_t i = 0; i < 40; i += 3) problem.parameters[i] = 1.7e308;
  for (std::size_t i = 0; i < 40; i += 7) problem.initial_states[4 * i] = 1e305;
  expect_same_everywhere<double, BallOnFloor<double>, CompiledScheme<Tsit5>>(problem,
                                                                             options_for("tsit5", Precision::f64));
  EXPECT_GT(ended_[Status::success], 10);
  EXPECT_LT(ended_[Status::success], 40);
}

// Built-in systems and sums in which they stand, too.
LOCKSTEP_SETS(Mirrored, du[0] = -u[0]; du[1] = -u[1]; du[2] = u[2] - 1;);
using Mirror = ResetInKernel<Reaches<0, 20>, Mirrored, kRising>;
template <class T>
using LorenzMirrored = WithResets<SystemDerivative<systems::Lorenz, T>, ResetList<Mirror>>;
template <class T>
using SumMirrored = WithResets<ProgramDerivative<3, 20, T, ForceFirst<T>>, ResetList<Mirror>>;
TEST_F(ResetsOnDevice, change_systems_sums_and_folded_nets_as_on_the_cpu) {
  Problem problem;
  problem.rhs = system("lorenz");
  for (int i = 0; i < 33; ++i) problem.initial_states.insert(problem.initial_states.end(), {1 + 0.02 * i, 2, 20});
  problem.parameters = {10, 28, 8.0 / 3};
  problem.end_times = {3};
  problem.save_times = {1.5};
  problem.resets = {{threshold(3, 3, 0, 5), rhs_of<Mirrored, 3, 3>("mirrored"), kRising}};
  expect_same_bits<LorenzMirrored>(problem);
  EXPECT_THAT(kernel_, HasSubstr("lorenz, 1 reset"));
  problem.rhs = sum(force(), net(mlp::random_mlp({3, 20, 3}, {ActivationKind::tanh}, 7)));
  problem.parameters = {-3, 0.4};
  problem.resets = {{threshold(3, 2, 0, 5), rhs_of<Mirrored, 3, 2>("mirrored"), kRising}};
  expect_same_bits<SumMirrored>(problem);
  EXPECT_THAT(kernel_, HasSubstr("source force + net, 1 reset"));
  problem.rhs = net(mlp::random_mlp({3, 20, 3}, {ActivationKind::tanh}, 7));
  problem.parameters.clear();
  problem.resets = {{threshold(3, 0, 0, 1.25), rhs_of<Mirrored, 3, 0>("mirrored"), kEither}};
  using Folded = FoldedNetDerivative<3, ActivationKind::tanh, double>;
  using Low = ResetInKernel<Reaches<0, 5>, Mirrored, kEither>;
  expect_same_everywhere<double, WithResets<Folded, ResetList<Low>>, CompiledScheme<Tsit5>>(
      problem, options_for("tsit5", Precision::f64));
  EXPECT_THAT(kernel_, HasSubstr("net 3 tanh, 1 reset"));
}

// Oscillators of three numbers, each with three resets and an event of its own: of which number, what becomes of which,
// at which moving level, all among its parameters.
LOCKSTEP_SETS(Swings, du[0] = u[1]; du[1] = -p[0] * u[0] - u[1] / 8;
              du[2] = t > 1 ? u[0] * u[2] / 4 - u[2] : u[0] * u[2] / 4;);
constexpr std::size_t kOfEach = 7, kNumbers = 2 + 3 * kOfEach;  // of, to, form, level, factor, change, sway
template <int first, EventDirection direction>
struct Drawn {
  static constexpr EventDirection kDirection = direction;
  template <class T, class U, class P>
  static T of(double t, const U& u, const P& p) {
    return (p[first] == 0 ? u[0] : p[first] == 1 ? u[1] : u[2]) - p[first + 3] + T(t) * p[first + 6];
  }
  template <class T, class U, class P, class Next>
  static void next(const U& u, const P& p, Next& next) {
    for (int c = 0; c < 3; ++c) {
      T becomes = u[c];
      if (p[first + 2] != 0 && p[first + 1] == c) becomes = p[first + 4] * u[c] + p[first + 5];
      if (p[first + 2] == 2 && p[first] == c) becomes = p[first + 3];
      next[c] = becomes;
    }
  }
  template <class T>
  static T value(double t, const T* u, const T* p) {
    return of<T>(t, u, p);
  }
  template <class T>
  static void state(double, const T* u, const T* p, T* to) {
    next<T>(u, p, to);
  }
  static Reset reset() {
    // The kernel's texts are not these: a host plays the compiler, here as in all of this file.
    return {with_cuda_event_source(event_function<3, kNumbers>("of",
                                                               [](double t, const auto& u, const auto& p) {
                                                                 using T = std::decay_t<decltype(u[0])>;
                                                                 return of<T>(t, u, p);
                                                               }),
                                   "of", "return u[0];"),
            with_cuda_source(function<3, kNumbers>("next",
                                                   [](double, const auto& u, const auto& p, auto& to) {
                                                     using T = std::decay_t<decltype(u[0])>;
                                                     next<T>(u, p, to);
                                                   }),
                             "next", "du[0] = u[0];"),
            direction};
  }
};
using First = Drawn<2, kEither>;
using Second = Drawn<2 + kOfEach, kFalling>;
using Third = Drawn<2 + 2 * kOfEach, kRising>;
template <class T>
using Drawing = WithResets<SourceDerivative<Swings, 3, kNumbers, T>, ResetList<First, Second, Third>>;

TEST_F(ResetsOnDevice, random_ones_have_the_bits_of_the_cpu) {
  if (wanted_card() != nullptr) GTEST_SKIP() << "the texts are not what runs here";
  const unsigned first = ::testing::GTEST_FLAG(random_seed) == 0 ? 1 : ::testing::GTEST_FLAG(random_seed);
  for (unsigned seed = first; seed < first + (kSanitized ? 2 : 30); ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const auto uniform = [&](double low, double high) { return std::uniform_real_distribution(low, high)(random); };
    const auto pick = [&](int count) { return std::uniform_int_distribution(0, count - 1)(random); };
    Problem problem;
    problem.rhs = rhs_of<Swings, 3, kNumbers>("swings");
    const int count = 1 + pick(60);
    for (int i = 0; i < count; ++i) {
      for (int c = 0; c < 3; ++c) problem.initial_states.push_back(pick(4) == 0 ? 0.25 * pick(5) : uniform(-1.5, 1.5));
      problem.parameters.insert(problem.parameters.end(), {uniform(1, 9), 0});
      for (int k = 0; k < 3; ++k) {
        problem.parameters.insert(
            problem.parameters.end(),
            {static_cast<double>(pick(3)), static_cast<double>(pick(3)), static_cast<double>(pick(4)), 0.25 * pick(4),
             uniform(-1.2, 0.5), pick(2) == 0 ? 0 : uniform(-1, 1), pick(2) == 0 ? 0 : 0.25});
      }
    }
    problem.end_times = {3};
    problem.save_times = {0.5, 1, 2.75};
    problem.resets = {First::reset(), Second::reset(), Third::reset()};
    for (int k = pick(3); k > 0; --k)
      problem.impulses.push_back({0.25 * pick(12), static_cast<std::size_t>(pick(3)), uniform(-1, 1)});
    if (pick(2) == 0) problem.event = TerminalEvent{threshold(3, kNumbers, 2, 1), static_cast<EventDirection>(pick(3))};
    expect_same_bits<Drawing>(problem, 400);
  }
  const int least = kSanitized ? 10 : 100;  // of 2 problems or 30
  EXPECT_GT(ended_[Status::success], least);
  EXPECT_GT(ended_[Status::terminated], least);
}

// Graphs, as problem files bring them: their texts, of one component and of more.
graph::Graph becomes(std::size_t components) {
  graph::Graph graph;
  graph.inputs = {{"u", 0, components}};
  graph.nodes = {
      {"next", graph::Rescale{std::vector<double>(components, -0.5), std::vector<double>(components, 0.1)}, {0}}};
  graph.outputs = {{"next", 1, components}};
  return graph;
}
TEST_F(ResetsOnDevice, texts_are_compiled_by_nvrtc) {
  Problem problem = busy(3);
  const Lowered<float> lowered = lower_problem<float>(problem, options_for("tsit5", Precision::f32));
  EXPECT_THAT(lowered.source->text, HasSubstr("WithResets<ode::cuda::WithEvent<"));
  EXPECT_THAT(lowered.source->text, HasSubstr("ResetList<Reset0, Reset1>>"));
  EXPECT_THAT(lowered.source->text, HasSubstr("kDirection = ode::EventDirection::rising"));
  Problem one;
  one.rhs = cuda_source("grows", "du[0] = 1;", 1);
  one.resets = {{threshold(1, 0, 0, 0.1), graph_function(becomes(1), 0, "one"), kEither}};
  const Lowered<double> of_one = lower_problem<double>(one, options_for("dop853", Precision::f64));
  EXPECT_THAT(of_one.source->text, HasSubstr("return u[0] - R(0.10000000000000001);"));
  EXPECT_THAT(of_one.source->text, HasSubstr("next[0] = state(t, u, p);"));
  one.rhs = system("lorenz");
  one.resets = {{threshold(3, 3, 2, -0.1), graph_function(becomes(3), 3, "three"), kEither}};
  const Lowered<double> of_three = lower_problem<double>(one, options_for("vern9", Precision::f64));
  EXPECT_THAT(of_three.source->text, HasSubstr("return u[2] - R(-0.1"));
  if (kSanitized) GTEST_SKIP() << "NVRTC reads the same text without sanitizers";
  if (!load_nvrtc().missing.empty()) GTEST_SKIP() << load_nvrtc().missing;
  for (const KernelSource& source : {*lowered.source, *of_one.source, *of_three.source})
    EXPECT_GT(load_nvrtc().compile(source, 90).size(), 1000u) << source.name;
}

TEST(ResetObstacles, say_what_runs_on_the_cpu_alone) {
  const auto told = [](const Problem& problem, const Options& options = {}) {
    const auto found = obstacle(problem, options);
    return found ? found->field + ": " + found->found + ", expected " + found->expected : "none";
  };
  EXPECT_EQ(told(balls(1)), "none");
  EXPECT_EQ(told(busy(1)), "none");
  Problem problem = balls(1);
  problem.keep_events = true;
  EXPECT_THAT(told(problem), HasSubstr("problem.keep_events: true, expected false on a GPU"));
  problem = balls(1);
  problem.resets.assign(16, problem.resets[0]);
  EXPECT_EQ(told(problem), "none");
  problem.resets.assign(17, problem.resets[0]);
  EXPECT_EQ(told(problem), "problem.resets: 17, expected at most 16 on a GPU");
  problem = balls(1);
  const Rhs plain = function<4, 1>("plain", [](double, const auto& u, const auto&, auto& next) { next[0] = u[0]; });
  problem.resets.push_back({problem.resets[0].function, plain});
  EXPECT_THAT(told(problem), HasSubstr("problem.resets[1]: "));
  EXPECT_THAT(told(problem), HasSubstr("plain, expected a component that reaches a value"));
  problem.resets[1] = {plain, problem.resets[0].state};
  EXPECT_THAT(told(problem), HasSubstr("problem.resets[1]: "));
  problem = balls(1);
  problem.rhs = net(mlp::random_mlp({4, 33, 5, 4}, {ActivationKind::tanh}, 7));
  EXPECT_THAT(told(problem), HasSubstr("problem.resets: resets beside a net 33 wide"));
  problem.rhs = net(mlp::random_mlp({4, 31, 5, 4}, {ActivationKind::tanh}, 7));
  EXPECT_EQ(told(problem), "none");
  Options options;
  options.matrix_precision = MatrixPrecision::tf32;
  EXPECT_THAT(told(problem, options), HasSubstr("options.matrix_precision: tf32 with resets"));
  const auto gemm = gemm_obstacle(problem, Options{});
  ASSERT_TRUE(gemm);
  EXPECT_EQ(gemm->field, "problem.resets");
}

}  // namespace
}  // namespace lockstep::ode::cuda
