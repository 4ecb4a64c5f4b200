// The verdict tried on solvers that are right in another way and on solvers that are wrong: Lorenz' chaos, and the
// closed orbits of prey and predators.
#include "lockstep/agreement/verdict.h"

#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "lockstep/agreement/testing/compiled_solver.h"
#include "lockstep/agreement/testing/ensembles.h"
#include "lockstep/agreement/testing/foreign_solver.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/ode/function.h"

namespace lockstep::agreement {
namespace {

using testing::adaptive;
using ::testing::AnyOf;
using ::testing::Contains;
using testing::fixed_rk4;
using testing::ForeignLorenz;
using testing::ForeignLotkaVolterra;
using ::testing::HasSubstr;
using testing::kStep;
using testing::Mistakes;
using testing::Rounding;
using ::testing::SizeIs;
using testing::solve_rk4;

std::string explain(const Verdict& verdict) {
  std::string text = verdict.sentence;
  for (const std::string& reason : verdict.reasons) text += "\n  " + reason;
  return text;
}

#define EXPECT_OUTCOME(verdict, expected) EXPECT_EQ((verdict).outcome, Outcome::expected) << explain(verdict)

constexpr const char* kSlow = "slow under the sanitizers, where the tests beside run the same code";
constexpr std::size_t kTrajectories = 150;
constexpr double kLorenzEnd = 45;  // double precision parts at about 37

// Solved once for all tests of this program.
const HeldEnsemble& lorenz_f64() {
  static const HeldEnsemble ensemble = testing::solved(testing::lorenz(kTrajectories, kLorenzEnd), fixed_rk4());
  return ensemble;
}
const HeldEnsemble& lorenz_f32() {
  static const HeldEnsemble ensemble = testing::solved(testing::lorenz(kTrajectories, 25), fixed_rk4(Precision::f32));
  return ensemble;
}
const HeldEnsemble& orbits_f64() {
  static const HeldEnsemble ensemble = testing::solved(testing::lotka_volterra(kTrajectories, 20), fixed_rk4());
  return ensemble;
}

template <class T, Rounding rounding>
HeldEnsemble foreign_lorenz(double end, const Mistakes& mistakes = {}) {
  const ode::Problem problem = testing::lorenz(kTrajectories, end);
  return {problem, solve_rk4<T, rounding, ForeignLorenz>(problem, kStep, mistakes)};
}
template <Rounding rounding>
HeldEnsemble foreign_orbits(const Mistakes& mistakes = {}) {
  const ode::Problem problem = testing::lotka_volterra(kTrajectories, 20);
  return {problem, solve_rk4<double, rounding, ForeignLotkaVolterra>(problem, kStep, mistakes)};
}

TEST(verdict, says_same_bits_and_stops) {
  const Verdict verdict = judge(lorenz_f64(), lorenz_f64());
  EXPECT_OUTCOME(verdict, agree);
  EXPECT_TRUE(verdict.same_bits);
  EXPECT_THAT(verdict.sentence, HasSubstr("the same bits"));
}

TEST(verdict, accepts_plain_contracted_and_reordered_arithmetic) {
  const auto check = [](const HeldEnsemble& ours, const HeldEnsemble& port) {
    const Verdict verdict = judge(ours, port);
    EXPECT_OUTCOME(verdict, agree);
    EXPECT_FALSE(verdict.same_bits);
    EXPECT_THAT(verdict.reasons, SizeIs(::testing::Le(5u)));
  };
  check(lorenz_f64(), foreign_lorenz<double, Rounding::plain>(kLorenzEnd));
  check(lorenz_f64(), foreign_lorenz<double, Rounding::contracted>(kLorenzEnd));
  check(lorenz_f64(), foreign_lorenz<double, Rounding::reversed>(kLorenzEnd));
  check(lorenz_f32(), foreign_lorenz<float, Rounding::plain>(25));
  check(lorenz_f32(), foreign_lorenz<float, Rounding::contracted>(25));
  check(lorenz_f32(), foreign_lorenz<float, Rounding::reversed>(25));
  check(orbits_f64(), foreign_orbits<Rounding::plain>());
  check(orbits_f64(), foreign_orbits<Rounding::contracted>());
}

// Machine code of other instruction sets, by other compiler settings: vectors of 2, 4 and 8, fused or not, sums in any
// order, 80-bit registers.
TEST(verdict, accepts_a_solver_compiled_for_another_instruction_set) {
  const ode::Problem problem = testing::lorenz(kTrajectories, kLorenzEnd);
  const ode::Problem short_problem = testing::lorenz(kTrajectories, 25);
  std::set<std::vector<double>> solutions;
  for (const testing::CompiledSolver& solver : testing::compiled_solvers()) {
    SCOPED_TRACE(solver.name);
    const Numbers wide = solver.solve_f64(problem, kStep);
    solutions.insert(wide.states);
    EXPECT_OUTCOME(judge(lorenz_f64(), HeldEnsemble(problem, wide)), agree);
    EXPECT_OUTCOME(judge(lorenz_f32(), HeldEnsemble(short_problem, solver.solve_f32(short_problem, kStep))), agree);
    ode::Problem wrong = problem;
    wrong.parameters[1] += 1e-12;
    EXPECT_OUTCOME(judge(lorenz_f64(), HeldEnsemble(problem, solver.solve_f64(wrong, kStep))), disagree);
  }
  // Each rounds in its own way, else this shows nothing.
  EXPECT_EQ(solutions.size(), testing::compiled_solvers().size());
}

TEST(verdict, rejects_a_weight_off_by_a_thousandth) {
  EXPECT_OUTCOME(judge(lorenz_f64(), foreign_lorenz<double, Rounding::plain>(kLorenzEnd, {.weight = 1e-3})), disagree);
  EXPECT_OUTCOME(judge(lorenz_f32(), foreign_lorenz<float, Rounding::plain>(25, {.weight = 1e-3})), disagree);
  EXPECT_OUTCOME(judge(orbits_f64(), foreign_orbits<Rounding::plain>({.weight = 1e-3})), disagree);
}

TEST(verdict, rejects_rho_off_by_1e_12) {
  EXPECT_OUTCOME(judge(lorenz_f64(), foreign_lorenz<double, Rounding::plain>(kLorenzEnd, {.parameter = 1e-12})),
                 disagree);
  EXPECT_OUTCOME(judge(lorenz_f64(), foreign_lorenz<double, Rounding::contracted>(kLorenzEnd, {.parameter = -1e-12})),
                 disagree);
  EXPECT_OUTCOME(judge(orbits_f64(), foreign_orbits<Rounding::plain>({.parameter = 1e-12})), disagree);
}

TEST(verdict, rejects_float32_passed_for_float64_and_says_so) {
  const auto pass_off = [](const ode::Problem& problem) {
    Numbers numbers = numbers_of(ode::solve(problem, fixed_rk4(Precision::f32)));
    numbers.precision = Precision::f64;
    return HeldEnsemble(problem, std::move(numbers));
  };
  for (const auto& [ours, problem] : {std::pair(&lorenz_f64(), testing::lorenz(kTrajectories, kLorenzEnd)),
                                      std::pair(&orbits_f64(), testing::lotka_volterra(kTrajectories, 20))}) {
    const Verdict verdict = judge(*ours, pass_off(problem));
    EXPECT_OUTCOME(verdict, disagree);
    EXPECT_THAT(verdict.reasons, Contains(HasSubstr("is a float32, though it claims float64")));
    EXPECT_THAT(verdict.reasons, Contains(HasSubstr("In units of the solution's size, the median trajectory")));
  }
}

TEST(verdict, rejects_one_trajectory_swapped_with_its_neighbour_and_names_it) {
  const auto check = [](const HeldEnsemble& ours, const HeldEnsemble& port, const ode::Problem& problem) {
    Numbers numbers;
    numbers.precision = port.precision();
    numbers.states = port.states(0, port.trajectories());
    const std::size_t row = port.save_points() * port.components();
    const auto at = numbers.states.begin() + static_cast<std::ptrdiff_t>(17 * row);
    std::swap_ranges(at, at + static_cast<std::ptrdiff_t>(row), at + static_cast<std::ptrdiff_t>(row));
    const Verdict verdict = judge(ours, HeldEnsemble(problem, std::move(numbers)));
    EXPECT_OUTCOME(verdict, disagree);
    EXPECT_THAT(verdict.reasons, Contains(AnyOf(HasSubstr("is trajectory 18 of"), HasSubstr("is trajectory 17 of"))));
  };
  check(lorenz_f64(), foreign_lorenz<double, Rounding::contracted>(kLorenzEnd),
        testing::lorenz(kTrajectories, kLorenzEnd));
  check(lorenz_f32(), foreign_lorenz<float, Rounding::contracted>(25), testing::lorenz(kTrajectories, 25));
  check(orbits_f64(), foreign_orbits<Rounding::contracted>(), testing::lotka_volterra(kTrajectories, 20));
}

// Trajectories that start at one state and differ by their parameters, or that all come to one state, are like their
// neighbours anyway: a mistake in the equation takes one no nearer to being another.
TEST(verdict, calls_no_trajectory_another_where_all_are_alike) {
  const auto names_another = [](const ode::Problem& problem, const HeldEnsemble& port) {
    const Verdict verdict = judge(testing::solved(problem, fixed_rk4()), port);
    EXPECT_OUTCOME(verdict, disagree);
    return ::testing::Matches(Contains(AnyOf(HasSubstr("is trajectory"), HasSubstr("has at save point"))))(
        verdict.reasons);
  };
  ode::Problem one_state = testing::lorenz(40, 5);
  one_state.parameters.clear();
  for (std::size_t i = 0; i < 40; ++i) {
    for (std::size_t c = 0; c < 3; ++c) one_state.initial_states[3 * i + c] = one_state.initial_states[c];
    one_state.parameters.insert(one_state.parameters.end(), {10, 28 + 1e-12 * static_cast<double>(i), 8.0 / 3});
  }
  EXPECT_FALSE(names_another(one_state, {one_state, solve_rk4<double, Rounding::plain, ForeignLorenz>(
                                                        one_state, kStep, {.parameter = 1.03e-12})}));
  // rho = 10: every trajectory spirals into one of two fixed points.
  ode::Problem one_end = testing::lorenz(40, 20);
  one_end.parameters = {10, 10, 8.0 / 3};
  Numbers numbers = solve_rk4<double, Rounding::plain, ForeignLorenz>(one_end, kStep);
  const std::size_t row = one_end.save_points() * 3;
  // At rest at another place than the others by what three of them have left of their way.
  for (std::size_t j = row - 3; j < row; ++j) numbers.states[10 * row + j] = numbers.states[9 * row + j];
  EXPECT_FALSE(names_another(one_end, {one_end, std::move(numbers)}));
}

TEST(verdict, rejects_one_swapped_pair_among_many_trajectories) {
  if (kSanitized) GTEST_SKIP() << kSlow;
  // Two of 3,000: far fewer than the one in a thousand that quantiles leave out.
  const ode::Problem problem = testing::lorenz(3000, 10);
  const HeldEnsemble ours = testing::solved(problem, fixed_rk4());
  Numbers numbers = solve_rk4<double, Rounding::contracted, ForeignLorenz>(problem, kStep);
  const auto row = static_cast<std::ptrdiff_t>(ours.save_points() * 3);
  EXPECT_OUTCOME(judge(ours, HeldEnsemble(problem, numbers)), agree);
  const auto at = numbers.states.begin() + 2345 * row;
  std::swap_ranges(at, at + row, at + row);
  const Verdict verdict = judge(ours, HeldEnsemble(problem, std::move(numbers)));
  EXPECT_OUTCOME(verdict, disagree);
  ASSERT_TRUE(verdict.evidence->spread_tier.outlier);
  EXPECT_THAT(verdict.evidence->spread_tier.outlier->trajectory, AnyOf(2345u, 2346u));
}

// One trajectory of 3,000 that is wrong at two save points, by a thousandth of what the ensemble's bound leaves to any:
// members of its own, solved anew, tell. The right port next to it passes the same look.
TEST(verdict, rejects_a_single_trajectory_that_is_wrong_at_two_times) {
  const ode::Problem problem = testing::lorenz(3000, 5);
  const HeldEnsemble ours = testing::solved(problem, fixed_rk4());
  Settings settings;
  std::size_t asked = 0;
  settings.examine = [&](const std::vector<std::size_t>& trajectories) {
    asked = trajectories.size();
    return make_certificate(problem, fixed_rk4(), {.chosen = trajectories, .seed = 3});
  };
  Numbers numbers = solve_rk4<double, Rounding::contracted, ForeignLorenz>(problem, kStep);
  const Verdict right = judge(ours, HeldEnsemble(problem, numbers), settings);
  EXPECT_OUTCOME(right, agree);
  EXPECT_EQ(right.evidence->spread_tier.examined, asked);
  EXPECT_GE(asked, 16u);
  EXPECT_LE(asked, 32u);
  for (const std::size_t k : {2, 5}) {
    for (std::size_t c = 0; c < 3; ++c) numbers.states[(1234 * ours.save_points() + k) * 3 + c] *= 1 + 1e-11;
  }
  const HeldEnsemble touched(problem, std::move(numbers));
  // By the ensemble's spread alone it is not found, and the verdict says what was left out and why.
  Settings unable = settings;
  unable.examine = [](const std::vector<std::size_t>&) -> Certificate {
    throw Error(ErrorKind::unsupported, {"ours.h5", "no equation", "one", "solve again"});
  };
  const Verdict without = judge(ours, touched, unable);
  EXPECT_OUTCOME(without, agree);
  EXPECT_THAT(without.sentence, HasSubstr("(the farthest trajectories were not examined singly)"));
  EXPECT_THAT(without.reasons, Contains(HasSubstr("not solved again (ours.h5: found no equation, expected one)")));
  EXPECT_THAT(judge(ours, touched).reasons, Contains(HasSubstr("not solved again (nothing here can solve them)")));
  const Verdict verdict = judge(ours, touched, settings);
  EXPECT_OUTCOME(verdict, disagree);
  ASSERT_TRUE(verdict.evidence->spread_tier.outlier);
  EXPECT_EQ(verdict.evidence->spread_tier.outlier->trajectory, 1234u);
  EXPECT_THAT(verdict.reasons, Contains(HasSubstr("times its own perturbed members")));
}

// Growth beyond what 64 certified trajectories lead to expect of any: its own members know.
TEST(verdict, lets_a_trajectory_go_where_its_own_members_go) {
  if (kSanitized) GTEST_SKIP() << kSlow;
  const ode::Problem problem = testing::lorenz(3000, 5);
  const HeldEnsemble ours = testing::solved(problem, fixed_rk4());
  Numbers numbers = solve_rk4<double, Rounding::contracted, ForeignLorenz>(problem, kStep);
  const std::size_t row = ours.save_points() * 3;
  for (std::size_t j = 6; j < row; ++j) numbers.states[1234 * row + j] *= 1 + 1e-6;
  const HeldEnsemble far(problem, std::move(numbers));
  Settings settings;
  double growth = 1e-7;
  settings.examine = [&](const std::vector<std::size_t>& trajectories) {
    Certificate own = make_certificate(problem, fixed_rk4(), {.chosen = trajectories, .members = kOwnMembers});
    const auto s = static_cast<std::size_t>(std::ranges::find(trajectories, 1234u) - trajectories.begin());
    EXPECT_LT(s, trajectories.size());
    for (std::size_t m = 0; m < own.members; ++m) {
      double* states = own.states.data() + (m * own.samples() + s) * row;
      for (std::size_t j = 6; j < row; ++j) states[j] *= 1 + growth * static_cast<double>(m + 1);
    }
    return own;
  };
  EXPECT_OUTCOME(judge(ours, far),
                 disagree);  // 1e-6 at t = 1 is more than 1e4 times any certified trajectory's members
  EXPECT_OUTCOME(judge(ours, far, settings), agree);
  growth = 1e-11;
  EXPECT_OUTCOME(judge(ours, far, settings), disagree);
}

TEST(verdict, rejects_save_points_shifted_by_one_and_says_so) {
  const Verdict chaotic = judge(lorenz_f64(), foreign_lorenz<double, Rounding::contracted>(kLorenzEnd, {.late_by = 1}));
  EXPECT_OUTCOME(chaotic, disagree);
  EXPECT_THAT(chaotic.reasons, Contains(HasSubstr("has at save point 1")));
  EXPECT_OUTCOME(judge(orbits_f64(), foreign_orbits<Rounding::contracted>({.late_by = 1})), disagree);
}

// A small net with fixed weights, so that the slope of its activation is all that differs.
ode::Rhs net_with_slope(double slope) {
  DenseLayer hidden{2, 6, {}, {}, {}};
  DenseLayer output{6, 2, {}, {}, {}};
  const Random random(5);
  for (std::uint32_t i = 0; i < 12; ++i) hidden.weights.push_back(random.normal(0, i));
  for (std::uint32_t i = 0; i < 6; ++i) hidden.bias.push_back(random.normal(1, i));
  for (std::uint32_t i = 0; i < 12; ++i) output.weights.push_back(0.3 * random.normal(2, i));
  output.bias = {0.1, -0.1};
  hidden.activation = Activation{ActivationKind::leaky_relu, slope};
  return ode::net({{hidden, output}, {}, {}});
}

TEST(verdict, rejects_an_activation_slope_off_by_1e_6) {
  ode::Problem problem;
  problem.rhs = net_with_slope(0.01);
  problem.end_times = {3};
  problem.save_times = {0, 0.5, 1, 1.5, 2, 2.5, 3};
  const Random random(9);
  for (std::uint64_t i = 0; i < 2 * kTrajectories; ++i) problem.initial_states.push_back(random.normal(i, 0));
  const HeldEnsemble ours = testing::solved(problem, fixed_rk4());
  ode::Problem wrong = problem;
  wrong.rhs = net_with_slope(0.01 + 1e-6);
  EXPECT_OUTCOME(judge(ours, HeldEnsemble(problem, numbers_of(ode::solve(wrong, fixed_rk4())))), disagree);
}

// The same equations rounded otherwise, advanced by the same adaptive engine: its steps answer to the rounding.
ode::Rhs another_lorenz(double rho_error = 0) {
  return ode::function<3, 3>("another lorenz", [rho_error](auto, const auto& u, const auto& p, auto& du) {
    using T = std::decay_t<decltype(du[0])>;
    du[0] = p[0] * u[1] - p[0] * u[0];
    du[1] = u[0] * (p[1] + static_cast<T>(rho_error)) - (u[0] * u[2] + u[1]);
    du[2] = u[1] * u[0] - u[2] * p[2];
  });
}

TEST(verdict, accepts_adaptive_steps_that_answer_to_rounding) {
  if (kSanitized) GTEST_SKIP() << kSlow;
  const auto check = [](const ode::Options& options) {
    const ode::Problem problem = testing::lorenz(kTrajectories, 20);
    ode::Problem other = problem;
    other.rhs = another_lorenz();
    const HeldEnsemble ours = testing::solved(problem, options);
    EXPECT_OUTCOME(judge(ours, HeldEnsemble(problem, numbers_of(ode::solve(other, options)))), agree);
  };
  check(adaptive(Precision::f64, 1e-6));
  check(adaptive(Precision::f64, 1e-10, "dopri5"));
  check(adaptive(Precision::f64, 1e-13, "dop853"));
  check(adaptive(Precision::f32, 1e-5));
  check(adaptive(Precision::f32, 1e-6));
  ode::Options common = adaptive(Precision::f64, 1e-8);
  common.control = ode::StepControl::common;
  check(common);
}

TEST(verdict, rejects_rho_off_by_1e_12_under_adaptive_steps) {
  const ode::Problem problem = testing::lorenz(kTrajectories, 20);
  ode::Problem wrong = problem;
  wrong.rhs = another_lorenz(1e-12);
  const ode::Options options = adaptive(Precision::f64, 1e-8);
  const HeldEnsemble ours = testing::solved(problem, options);
  EXPECT_OUTCOME(judge(ours, testing::stated_port(problem, wrong, options)), disagree);
}

TEST(verdict, compares_float32_with_float64_at_float32_spread) {
  const ode::Problem problem = testing::lorenz(kTrajectories, 20);
  const HeldEnsemble ours = testing::solved(problem, fixed_rk4());
  const Verdict verdict =
      judge(ours, HeldEnsemble(problem, numbers_of(ode::solve(problem, fixed_rk4(Precision::f32)))));
  EXPECT_OUTCOME(verdict, agree);
  EXPECT_EQ(verdict.evidence->spread.epsilon, 0x1p-23);
}

TEST(verdict, serves_with_a_stated_exponent_alone) {
  if (kSanitized) GTEST_SKIP() << kSlow;
  const auto without = [](const HeldEnsemble& with, const ode::Problem& problem) {
    Numbers numbers;
    numbers.states = with.states(0, with.trajectories());
    return HeldEnsemble(problem, std::move(numbers));
  };
  const HeldEnsemble ours = without(lorenz_f64(), testing::lorenz(kTrajectories, kLorenzEnd));
  const Settings settings{.lyapunov = 0.906};
  const Verdict right = judge(ours, foreign_lorenz<double, Rounding::contracted>(kLorenzEnd), settings);
  EXPECT_OUTCOME(right, agree);
  ASSERT_TRUE(right.evidence->divergence_tier.asked());
  // ln(0.1 / (2^-52 |y|)) / 0.906 with |y| about twice the attractor's size.
  EXPECT_NEAR(right.evidence->divergence_tier.predicted, 37, 1.5);
  EXPECT_OUTCOME(judge(ours, foreign_lorenz<double, Rounding::contracted>(kLorenzEnd, {.parameter = 1e-12}), settings),
                 disagree);
  EXPECT_OUTCOME(judge(ours, foreign_lorenz<double, Rounding::contracted>(kLorenzEnd, {.weight = 1e-3}), settings),
                 disagree);
  EXPECT_OUTCOME(judge(ours, foreign_lorenz<double, Rounding::contracted>(kLorenzEnd)), undecided);
}

TEST(verdict, rests_on_more_than_statistics) {
  // What statistics miss: they agree for a weight off by a thousandth and for float32, so that they decide nothing.
  const auto check = [](const Ensemble& port) {
    const Verdict verdict = judge(lorenz_f64(), port);
    ASSERT_TRUE(verdict.evidence->difference.statistics.asked());
    EXPECT_TRUE(verdict.evidence->difference.statistics.agree());
    EXPECT_FALSE(verdict.evidence->spread_tier.passed());
  };
  check(foreign_lorenz<double, Rounding::plain>(kLorenzEnd, {.weight = 1e-3}));
  const ode::Problem problem = testing::lorenz(kTrajectories, kLorenzEnd);
  Numbers narrow = numbers_of(ode::solve(problem, fixed_rk4(Precision::f32)));
  narrow.precision = Precision::f64;
  check(HeldEnsemble(problem, std::move(narrow)));
}

TEST(verdict, finds_another_attractor_by_statistics) {
  const Verdict verdict = judge(lorenz_f64(), foreign_lorenz<double, Rounding::plain>(kLorenzEnd, {.parameter = 2}));
  EXPECT_FALSE(verdict.evidence->difference.statistics.agree());
}

TEST(verdict, takes_no_bias_of_the_last_place_for_another_attractor) {
  // What passes through a program that always rounds up, long after trajectories of another solver would have parted.
  Numbers numbers;
  numbers.states = lorenz_f64().states(0, kTrajectories);
  for (double& x : numbers.states) x = std::nextafter(x, std::numeric_limits<double>::infinity());
  const Verdict verdict =
      judge(lorenz_f64(), HeldEnsemble(testing::lorenz(kTrajectories, kLorenzEnd), std::move(numbers)));
  ASSERT_TRUE(verdict.evidence->difference.statistics.asked());
  EXPECT_OUTCOME(verdict, agree);
}

TEST(verdict, refuses_solutions_of_different_problems_by_name) {
  ode::Problem other = testing::lorenz(kTrajectories, kLorenzEnd);
  other.initial_states[5] += 1;
  const Verdict verdict = judge(lorenz_f64(), HeldEnsemble(other, numbers_of(ode::solve(other, fixed_rk4()))));
  EXPECT_OUTCOME(verdict, undecided);
  EXPECT_THAT(verdict.sentence, HasSubstr("trajectory 1: initial state [2]"));
  EXPECT_EQ(exit_code(verdict.outcome), 2);

  Numbers numbers;
  numbers.states = lorenz_f64().states(0, kTrajectories);
  numbers.provenance = {{"method", "heun"}, {"threads", "4"}};
  Numbers stated = numbers;
  stated.provenance = {{"method", "rk4"}, {"threads", "2"}};
  const ode::Problem problem = testing::lorenz(kTrajectories, kLorenzEnd);
  const Verdict methods = judge(HeldEnsemble(problem, numbers), HeldEnsemble(problem, stated));
  EXPECT_OUTCOME(methods, undecided);
  EXPECT_THAT(methods.sentence, HasSubstr("method differs, heun and rk4"));
  EXPECT_THAT(methods.reasons, Contains(HasSubstr("All their states are the same, to the bit.")));
  ASSERT_THAT(methods.fields, SizeIs(2));
  EXPECT_FALSE(methods.fields[1].forbids);

  // Words go before digests of what they say.
  numbers.provenance = {{"problem_digest", "01"}, {"rhs_digest", "aa"}, {"rhs", "lorenz"}};
  stated.provenance = {{"problem_digest", "a9"}, {"rhs_digest", "c4"}, {"rhs", "net equations"}};
  const Verdict systems = judge(HeldEnsemble(problem, numbers), HeldEnsemble(problem, stated));
  EXPECT_THAT(systems.sentence, HasSubstr("rhs differs, lorenz and net equations"));
  // The same under two names: no reason against a comparison.
  stated.provenance = {{"rhs_digest", "aa"}, {"rhs", "net equations"}};
  numbers.provenance = {{"rhs_digest", "aa"}, {"rhs", "lorenz"}};
  EXPECT_THAT(judge(HeldEnsemble(problem, numbers), HeldEnsemble(problem, stated)).sentence,
              ::testing::Not(HasSubstr("rhs differs")));
}

TEST(verdict, compares_no_components_that_stand_in_another_order) {
  const ode::Problem problem = testing::lorenz(kTrajectories, 2);
  const auto named = [&](std::vector<std::string> names) {
    Numbers numbers = numbers_of(ode::solve(problem, fixed_rk4()));
    numbers.component_names = std::move(names);
    return HeldEnsemble(problem, std::move(numbers));
  };
  const HeldEnsemble ours = named({"x", "y", "z"});
  const Verdict other = judge(ours, named({"x", "z", "y"}));
  EXPECT_OUTCOME(other, undecided);
  EXPECT_THAT(other.sentence, HasSubstr("component 1's name differs, y and z"));
  // Another name, or none, is told or passed over.
  const Verdict renamed = judge(ours, named({"x", "height", "z"}));
  EXPECT_OUTCOME(renamed, agree);
  ASSERT_THAT(renamed.fields, SizeIs(1));
  EXPECT_EQ(renamed.fields[0].b, "height");
  EXPECT_THAT(judge(ours, named({})).fields, SizeIs(0));
}

TEST(verdict, compares_no_solutions_across_other_impulses) {
  const auto solved = [](ode::Problem problem) {
    Numbers numbers = numbers_of(ode::solve(problem, fixed_rk4()));
    return HeldEnsemble(std::move(problem), std::move(numbers));
  };
  ode::Problem dosed = testing::lorenz(kTrajectories, kLorenzEnd);
  dosed.impulses = {{1, 0, 0.5}, {2, 1, 0, 0.5}};
  ode::Problem other = dosed;
  other.impulses[1].factor = 0.25;
  const Verdict verdict = judge(solved(dosed), solved(other));
  EXPECT_OUTCOME(verdict, undecided);
  EXPECT_THAT(verdict.sentence, HasSubstr("impulse factors [1] differs, 0.5 and 0.25"));
  // Those of each trajectory's own, the same ones but for one.
  other = dosed;
  other.impulses.clear();
  other.first_impulse = {0};
  for (std::size_t i = 0; i < kTrajectories; ++i) {
    other.impulses.insert(other.impulses.end(), dosed.impulses.begin(), dosed.impulses.end());
    other.first_impulse.push_back(other.impulses.size());
  }
  EXPECT_EQ(judge(solved(dosed), solved(other)).outcome, Outcome::agree);
  // Another program's numbers of them, without a word of impulses.
  for (const ode::Problem& problem : {dosed, other}) {
    const HeldEnsemble silent(testing::lorenz(kTrajectories, kLorenzEnd), numbers_of(ode::solve(problem, fixed_rk4())));
    EXPECT_EQ(judge(solved(problem), silent).outcome, Outcome::agree);
    EXPECT_EQ(judge(silent, solved(problem)).outcome, Outcome::agree);
  }
  other.impulses[2 * 7].time = 1.5;
  EXPECT_THAT(judge(solved(dosed), solved(other)).sentence,
              HasSubstr("trajectory 7: impulse times [0] differs, 1 and 1.5"));
}

// One problem by other methods: no verdict, for a method's error is no rounding, but the distance is there.
TEST(verdict, measures_what_it_cannot_judge) {
  const ode::Problem problem = testing::lorenz(kTrajectories, 2);
  const auto by = [&](ode::Options options) {
    Numbers numbers = numbers_of(ode::solve(problem, options));
    numbers.name = options.method;
    numbers.provenance = {{"method", options.method}, {"rtol", number_text(options.rtol)}};
    return HeldEnsemble(problem, std::move(numbers));
  };
  const HeldEnsemble rough = by(adaptive(Precision::f64, 1e-4, "bs3"));
  const HeldEnsemble fine = by(adaptive(Precision::f64, 1e-10, "tsit5"));
  const Verdict verdict = judge(fine, rough);
  EXPECT_OUTCOME(verdict, undecided);
  EXPECT_THAT(verdict.sentence, HasSubstr("are of one problem, but not solved alike (method differs, tsit5 and bs3)"));
  EXPECT_THAT(verdict.reasons, Contains(HasSubstr("In units of the solution's size, the median trajectory")));
  ASSERT_TRUE(verdict.evidence);
  EXPECT_GT(verdict.evidence->difference.at.back().quantile[kMedian], 1e-6);
  EXPECT_TRUE(same_problem(verdict.fields));
  // A certificate is of rounding, and judges neither.
  EXPECT_OUTCOME(judge(testing::solved(problem, adaptive(Precision::f64, 1e-10)), rough), undecided);
  ode::Problem other = problem;
  other.initial_states[0] += 1;
  const Verdict none = judge(fine, HeldEnsemble(other, numbers_of(ode::solve(other, fixed_rk4()))));
  EXPECT_FALSE(same_problem(none.fields));
  EXPECT_FALSE(none.evidence);
}

TEST(verdict, calls_no_elapsed_time_a_time) {
  const auto judged = [](double start, double end) {
    ode::Problem problem = testing::lotka_volterra(2, 2);
    problem.start_times = {start};
    problem.end_times = {end};
    problem.save_times = {start, end};
    ode::Problem other = problem;
    other.initial_states[0] += 0.001;
    Numbers numbers = numbers_of(ode::solve(other, fixed_rk4()));
    numbers.provenance = {{"method", "another"}};
    return explain(judge(testing::solved(problem, fixed_rk4()), HeldEnsemble(problem, std::move(numbers))));
  };
  EXPECT_THAT(judged(0, 2), HasSubstr("(until t = 2)"));
  EXPECT_THAT(judged(3, 1), HasSubstr("(until 2 after the start)"));
  EXPECT_THAT(judged(1e9, 1e9 + 2), HasSubstr("(until 2 after the start)"));
}

TEST(verdict, gives_none_where_only_late_times_are_saved) {
  ode::Problem problem = testing::lorenz(kTrajectories, 60);
  problem.save_times = {55, 60};
  const HeldEnsemble ours = testing::solved(problem, fixed_rk4());
  ode::Problem other = problem;
  other.rhs = another_lorenz();
  const Verdict verdict = judge(ours, HeldEnsemble(problem, numbers_of(ode::solve(other, fixed_rk4()))));
  EXPECT_OUTCOME(verdict, undecided);
  EXPECT_THAT(verdict.sentence, HasSubstr("before the first save point"));
}

TEST(verdict, says_that_one_is_unfinished_and_judges_what_both_have) {
  ode::Problem problem = testing::lorenz(kTrajectories, 60);
  problem.save_times = {55, 60};  // where rounding has driven all apart
  const HeldEnsemble whole = testing::solved(problem, fixed_rk4());
  Numbers stopped;
  stopped.states = whole.states(0, kTrajectories);
  stopped.records = whole.records(0, kTrajectories);
  for (std::size_t i = 5; i < kTrajectories; ++i) {
    stopped.records[i].status = ode::Status::cancelled;
    std::fill_n(stopped.states.begin() + static_cast<std::ptrdiff_t>(i * 6), 6,
                std::numeric_limits<double>::quiet_NaN());
  }
  const std::string left_out = std::to_string(kTrajectories - 5) + " trajectories left out, not finished in solution";
  Verdict verdict = judge(whole, HeldEnsemble(problem, stopped));
  EXPECT_OUTCOME(verdict, undecided);
  EXPECT_FALSE(verdict.same_bits);
  EXPECT_THAT(verdict.sentence,
              AllOf(HasSubstr("No verdict on the whole: the 5 of "), HasSubstr("agree, to the bit.")));
  EXPECT_THAT(verdict.reasons, Contains(HasSubstr(left_out)));
  stopped.states[4] += 1e-9;
  verdict = judge(whole, HeldEnsemble(problem, stopped));
  EXPECT_OUTCOME(verdict, undecided);
  EXPECT_THAT(verdict.reasons, Contains(HasSubstr(left_out)));
}

TEST(verdict, counts_nan_and_rejects_it_where_only_one_solution_has_it) {
  const ode::Problem problem = testing::lorenz(kTrajectories, kLorenzEnd);
  Numbers numbers;
  numbers.states = lorenz_f64().states(0, kTrajectories);
  numbers.states[33] = std::numeric_limits<double>::quiet_NaN();
  const Verdict one = judge(lorenz_f64(), HeldEnsemble(problem, numbers));
  EXPECT_OUTCOME(one, disagree);
  EXPECT_THAT(one.reasons, Contains(HasSubstr("1 trajectory with NaN or infinite numbers (0 in ours, 1 in solution)")));
  // Late, too, where trajectories have parted; but not where the trajectory's end was another: that rounding decides.
  Numbers late;
  late.states = lorenz_f64().states(0, kTrajectories);
  late.states[7 * lorenz_f64().save_points() * 3 - 1] = std::numeric_limits<double>::infinity();
  const Verdict at_the_end = judge(lorenz_f64(), HeldEnsemble(problem, late));
  EXPECT_OUTCOME(at_the_end, disagree);
  EXPECT_THAT(at_the_end.reasons, Contains(HasSubstr("Trajectory 6 is finite in one solution and not in the other")));
  EXPECT_THAT(at_the_end.reasons, Contains(HasSubstr("and both say that it came to the same end.")));
  late.records = lorenz_f64().records(0, kTrajectories);
  late.records[6].status = ode::Status::not_finite;
  EXPECT_OUTCOME(judge(lorenz_f64(), HeldEnsemble(problem, late)), agree);
  Numbers ours = numbers;
  ours.certificate = lorenz_f64().certificate();
  const Verdict both = judge(HeldEnsemble(problem, ours), HeldEnsemble(problem, numbers));
  EXPECT_OUTCOME(both, agree);
  EXPECT_TRUE(both.same_bits);
  EXPECT_THAT(both.reasons, Contains(HasSubstr("1 trajectory with NaN or infinite numbers")));
}

}  // namespace
}  // namespace lockstep::agreement
