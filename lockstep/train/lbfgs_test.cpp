#include "lockstep/train/lbfgs.h"

#include <gmock/gmock.h>

#include <cmath>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

// The extended Rosenbrock function (More, Garbow & Hillstrom, ACM TOMS 7, 1981, problem 21): minimum 0 at all ones.
template <class T>
double rosenbrock(std::span<const T> x, std::span<T> gradient) {
  double sum = 0;
  for (std::size_t i = 0; i + 1 < x.size(); i += 2) {
    const double a = static_cast<double>(x[i]), b = static_cast<double>(x[i + 1]);
    const double r = b - a * a, s = 1 - a;
    sum += 100 * r * r + s * s;
    gradient[i] = static_cast<T>(-400 * a * r - 2 * s);
    gradient[i + 1] = static_cast<T>(200 * r);
  }
  return sum;
}

template <class T>
std::vector<T> usual_start(std::size_t n) {
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = i % 2 == 0 ? T(-1.2) : T(1);
  return x;
}

TEST(Lbfgs, a_quadratic_in_n_dimensions_is_solved_in_few_iterations) {
  std::vector<double> x(10, 1.0);
  const Objective<double> objective = [](std::span<const double> p, std::span<double> g) {
    double sum = 0;
    for (std::size_t i = 0; i < p.size(); ++i) {
      const double weight = 1 + 3 * static_cast<double>(i);
      sum += 0.5 * weight * p[i] * p[i];
      g[i] = weight * p[i];
    }
    return sum;
  };
  Lbfgs<double> lbfgs;
  for (int i = 0; i < 40; ++i) lbfgs.step(x, objective);
  // Superlinear: 40 iterations in 10 dimensions reach rounding; 1e-20 is 17 digits below the start's 72.5.
  EXPECT_LT(lbfgs.state().loss, 1e-20);
}

TEST(Lbfgs, rosenbrock_is_solved_in_float64) {
  for (const std::size_t n : {2, 100}) {
    std::vector<double> x = usual_start<double>(n);
    Lbfgs<double> lbfgs;
    int evaluations = 0;
    for (int i = 0; i < 80; ++i) evaluations += lbfgs.step(x, rosenbrock<double>).evaluations;
    for (const double v : x) EXPECT_NEAR(v, 1, 1e-9) << n;  // at curvature >= 0.4 a loss below 1e-19
    EXPECT_LT(evaluations, 160) << n;  // about 1.3 an iteration is usual; two would mean a line search gone wrong
  }
}

TEST(Lbfgs, rosenbrock_in_float32_stalls_at_rounding_and_says_so) {
  std::vector<float> x = usual_start<float>(2);
  Lbfgs<float> lbfgs;
  LbfgsReport report;
  int iterations = 0;
  for (; iterations < 200; ++iterations) {
    report = lbfgs.step(x, rosenbrock<float>);
    if (report.status != LbfgsStatus::advanced) break;
  }
  EXPECT_LT(iterations, 200);
  // x and y next to 1 are rounded to 2^-24 relative: the residual 10 (y - x^2) to 10 (1 + 2) 2^-24 = 1.8e-6.
  EXPECT_LT(report.loss, 1e-11);
}

// What is left to win lies below the rounding of the sum that it is a part of.
template <class T>
double with_an_offset(std::span<const T> x, std::span<T> gradient) {
  const double distance = static_cast<double>(x[0]) - 3;
  gradient[0] = static_cast<T>(1e-7 * distance);
  return 47 + 0.5e-7 * distance * distance;
}

TEST(Lbfgs, what_float32_rounds_is_not_followed) {
  std::vector<float> x{1};
  Lbfgs<float> single;
  EXPECT_EQ(single.step(x, with_an_offset<float>).status, LbfgsStatus::stalled);
  EXPECT_EQ(x[0], 1);
  x[0] = 30;  // 7.8e-7 of the loss
  single.restart();
  EXPECT_EQ(single.step(x, with_an_offset<float>).status, LbfgsStatus::advanced);
  EXPECT_LT(x[0], 30);
  std::vector<double> y{1};
  Lbfgs<double> full;
  for (int i = 0; i < 20 && full.step(y, with_an_offset<double>).status == LbfgsStatus::advanced; ++i) {
  }
  EXPECT_NEAR(y[0], 3, 1e-3);  // half a unit in the last place of 47 is 3.6e-15: |x - 3| = 2.7e-4
}

// As a sum over adaptive solves, whose derivative takes the steps' sizes to be constants: what moves with them is not
// in the gradient.
double rough_bowl(std::span<const double> x, std::span<double> gradient) {
  double sum = 40;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double weight = std::pow(10.0, static_cast<double>(i)), distance = x[i] - 1;
    sum += 0.5 * weight * distance * distance;
    gradient[i] = weight * distance;
  }
  return sum * (1 + 1e-12 * std::sin(1e5 * x[0]));
}

TEST(Lbfgs, a_minimum_seen_from_all_sides_is_not_searched_for_roundings) {
  std::vector<double> x(4, 0.0);
  Lbfgs<double> lbfgs;
  int evaluations = 0, last = 0;
  for (int i = 0; i < 100; ++i) {
    const LbfgsReport report = lbfgs.step(x, rough_bowl);
    evaluations += last = report.evaluations;
    if (report.status != LbfgsStatus::advanced) break;
  }
  EXPECT_EQ(last, 0);
  EXPECT_LT(evaluations, 40);  // 62 where the search goes on along the gradient
  for (const double v : x) EXPECT_NEAR(v, 1, 1e-6);
}

TEST(Lbfgs, the_loss_never_rises_and_steps_satisfy_the_wolfe_conditions) {
  std::vector<double> x = usual_start<double>(6);
  Lbfgs<double> lbfgs;
  std::vector<double> g(6);
  double loss = rosenbrock<double>(x, g);
  for (int i = 0; i < 30; ++i) {
    const std::vector<double> before = x, gradient = g;
    const LbfgsReport report = lbfgs.step(x, rosenbrock<double>);
    if (report.status != LbfgsStatus::advanced) break;
    EXPECT_EQ(report.loss, rosenbrock<double>(x, g));
    double slope = 0, new_slope = 0;
    for (std::size_t k = 0; k < 6; ++k) {
      slope += gradient[k] * (x[k] - before[k]);
      new_slope += g[k] * (x[k] - before[k]);
    }
    EXPECT_LE(report.loss, loss + 1e-4 * slope * (1 - 1e-12));
    EXPECT_LE(std::fabs(new_slope), -0.9 * slope * (1 + 1e-12));
    loss = report.loss;
  }
}

TEST(Lbfgs, a_wall_of_infinite_loss_shortens_the_step) {
  const Objective<double> walled = [](std::span<const double> p, std::span<double> g) {
    g[0] = p[0] < 0 ? NAN : 1 - 0.01 / p[0];
    return p[0] < 0 ? NAN : p[0] - 0.01 * std::log(p[0]);
  };
  std::vector<double> x{0.5};
  Lbfgs<double> lbfgs;
  for (int i = 0; i < 40; ++i) lbfgs.step(x, walled);
  EXPECT_NEAR(x[0], 0.01, 1e-8);  // sqrt(2^-53 loss / curvature): loss 0.056, curvature 100
}

TEST(Lbfgs, a_restored_state_continues_with_the_same_bits) {
  std::vector<float> x = usual_start<float>(20), y;
  Lbfgs<float> a, b({.history = 20});
  for (int i = 0; i < 7; ++i) a.step(x, rosenbrock<float>);
  y = x;
  b.restore(a.state());
  for (int i = 0; i < 7; ++i) {
    a.step(x, rosenbrock<float>);
    b.step(y, rosenbrock<float>);
    ASSERT_EQ(x, y) << i;
  }
}

TEST(Lbfgs, a_start_without_a_finite_loss_is_refused) {
  std::vector<double> x{1};
  Lbfgs<double> lbfgs;
  const Objective<double> broken = [](auto, std::span<double> g) {
    g[0] = 0;
    return NAN;
  };
  EXPECT_THROW(lbfgs.step(x, broken), Error);
  EXPECT_THROW(Lbfgs<double>({.sufficient_decrease = 0.95}), Error);
}

// (x - 3)^2 / 2 in a unit in which it is tiny: a step of the gradient itself would vanish beside x.
TEST(Lbfgs, a_loss_in_small_units_is_no_rounding) {
  const Objective<float> parabola = [](std::span<const float> x, std::span<float> g) {
    constexpr double kUnit = 1e-12;
    g[0] = static_cast<float>(kUnit * (static_cast<double>(x[0]) - 3));
    return 0.5 * kUnit * std::pow(static_cast<double>(x[0]) - 3, 2);
  };
  std::vector<float> x{1};
  Lbfgs<float> lbfgs;
  for (int i = 0; i < 5 && lbfgs.step(x, parabola).status == LbfgsStatus::advanced; ++i) {
  }
  EXPECT_NEAR(x[0], 3, 1e-6);
}

}  // namespace
}  // namespace lockstep::train
