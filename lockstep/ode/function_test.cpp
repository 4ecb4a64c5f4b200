// User code as right-hand side: the same bits on every instruction set, place and tile size; failures stay in their
// lane.
#include "lockstep/ode/function.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <stdexcept>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/kernels/math/math.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/test_tile.h"

namespace lockstep::ode {
namespace {

const auto lorenz = [](auto, const auto& u, const auto& p, auto& du) {
  du[0] = p[0] * (u[1] - u[0]);
  du[1] = u[0] * (p[1] - u[2]) - u[1];
  du[2] = u[0] * u[1] - p[2] * u[2];
};

template <class T>
void expect_lorenz_bits(CpuTarget target, int lanes) {
  const Rhs f = function<3, 3>("lorenz", lorenz);
  Tile<T> tile(*f);
  tile.evaluate(*f, target, lanes);
  for (int lane = 0; lane < lanes; ++lane) {
    T u[3], p[3];
    for (int c = 0; c < 3; ++c) {
      u[c] = tile.in[std::size_t(c * kTileLanes + lane)];
      p[c] = tile.parameters[std::size_t(c * kTileLanes + lane)];
    }
    // Volatile products: nothing can be contracted here.
    volatile T a = u[0] * (p[1] - u[2]), b = u[0] * u[1], c = p[2] * u[2];
    EXPECT_TRUE(same_bits<T>(tile.output(0, lane), p[0] * (u[1] - u[0]))) << lane;
    EXPECT_TRUE(same_bits<T>(tile.output(1, lane), a - u[1])) << lane;
    EXPECT_TRUE(same_bits<T>(tile.output(2, lane), b - c)) << lane;
  }
}

TEST(Function, products_and_sums_are_rounded_one_by_one_on_every_target) {
  for (const CpuTarget target : available_cpu_targets()) {
    for (const int lanes : {1, 7, 8, 31, 32}) {
      SCOPED_TRACE(std::string(to_string(target)) + " " + std::to_string(lanes));
      expect_lorenz_bits<float>(target, lanes);
      expect_lorenz_bits<double>(target, lanes);
    }
  }
}

TEST(Function, branches_roots_and_fma_keep_their_bits) {
  const Rhs f = function<2, 1>("branchy", [](auto t, const auto& u, const auto& p, auto& du) {
    du[0] = u[1] > 0 ? std::sqrt(std::abs(u[0])) : std::fma(u[0], u[1], p[0]);
    if (t > 0.5) {
      du[1] = u[0] / u[1];
    } else {
      du[1] = u[0] * u[1] + p[0] * p[0];
    }
  });
  expect_same_bits_everywhere<float>(*f);
  expect_same_bits_everywhere<double>(*f);
}

TEST(Function, the_library_s_elementary_functions_keep_their_bits) {
  const Rhs f = function<2, 1>("elementary", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = math::tanh(u[1]) + math::sin(p[0]);
    du[1] = math::exp(u[0]);
  });
  expect_same_bits_everywhere<float>(*f);
  expect_same_bits_everywhere<double>(*f);
}

TEST(Function, long_states_are_read_in_place) {
  const Rhs f = function<40, 1>("lorenz 96", [](auto, const auto& u, const auto& p, auto& du) {
    for (int i = 0; i < 40; ++i) du[i] = (u[(i + 1) % 40] - u[(i + 38) % 40]) * u[(i + 39) % 40] - u[i] + p[0];
  });
  expect_same_bits_everywhere<float>(*f);
  expect_same_bits_everywhere<double>(*f);
}

TEST(Function, a_component_left_unset_is_zero) {
  const Rhs f = function<2>("half", [](auto, const auto& u, const auto&, auto& du) { du[0] = u[1]; });
  Tile<double> tile(*f);
  tile.evaluate(*f, best_cpu_target());
  for (int lane = 0; lane < kTileLanes; ++lane) EXPECT_EQ(tile.output(1, lane), 0);
}

TEST(Function, lanes_that_are_not_wanted_are_left_alone) {
  const Rhs f = function<3, 3>("lorenz", lorenz);
  Tile<float> tile(*f);
  tile.evaluate(*f, best_cpu_target(), 5);
  EXPECT_NE(tile.output(0, 4), -77);
  EXPECT_EQ(tile.output(0, 5), -77);
}

TEST(Function, a_lane_that_throws_becomes_nan_and_the_others_keep_their_bits) {
  const auto body = [](bool may_throw) {
    return [may_throw](auto, const auto& u, const auto& p, auto& du) {
      if (may_throw && u[0] < -2) throw std::runtime_error("outside");
      lorenz(0.0, u, p, du);
    };
  };
  const Rhs careful = function<3, 3>("careful", body(true));
  const Rhs careless = function<3, 3>("careless", body(false));
  for (const CpuTarget target : available_cpu_targets()) {
    for (const int lanes : {9, 32}) {
      Tile<double> tile(*careful), expected(*careless);
      tile.evaluate(*careful, target, lanes);
      expected.evaluate(*careless, target, lanes);
      int thrown = 0;
      for (int lane = 0; lane < lanes; ++lane) {
        const bool throws = tile.in[std::size_t(lane)] < -2;
        thrown += throws;
        for (std::size_t c = 0; c < 3; ++c) {
          if (throws) {
            EXPECT_TRUE(std::isnan(tile.output(c, lane)));
          } else {
            EXPECT_TRUE(same_bits(tile.output(c, lane), expected.output(c, lane)));
          }
        }
      }
      EXPECT_GT(thrown, 0);
      EXPECT_LT(thrown, lanes);
    }
  }
}

TEST(Function, an_event_has_one_output) {
  const Rhs f = event_function<2, 1>("height", [](auto t, const auto& u, const auto& p) { return u[0] - p[0] * t; });
  EXPECT_EQ(f->outputs(), 1u);
  expect_same_bits_everywhere<float>(*f);
  expect_same_bits_everywhere<double>(*f);
}

TEST(Function, code_for_double_only_is_refused_in_float32) {
  const Rhs f = function<2>(
      "doubles", [](double, const std::array<double, 2>& u, const auto&, std::array<double, 2>& du) { du[0] = -u[1]; });
  EXPECT_NE(f->lower_f64(best_cpu_target()), nullptr);
  try {
    f->lower_f32(best_cpu_target());
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("function doubles: found a float32 solve of code that takes double"));
  }
}

// A user's class for float64 alone.
class InDoubleAlone final : public StateFunction {
 public:
  std::size_t components() const override { return 2; }
  std::size_t parameters() const override { return 0; }
  std::string description() const override { return "decay"; }
  std::string digest() const override { return "decay"; }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget) const override { return nullptr; }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return function<2>("decay",
                       [](auto, const auto& u, const auto&, auto& du) {
                         for (std::size_t c = 0; c < 2; ++c) du[c] = -u[c];
                       })
        ->lower_f64(target);
  }
};

TEST(Function, a_class_without_float32_is_refused_where_that_is_asked_for) {
  Problem problem{.rhs = std::make_shared<InDoubleAlone>()};
  problem.initial_states = {1, 2};
  problem.end_times = {1};
  EXPECT_EQ(solve(problem, {.precision = Precision::f64}).record(0).status, Status::success);
  try {
    solve(problem, {.precision = Precision::f32});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::unsupported);
    EXPECT_THAT(error.what(), testing::HasSubstr("decay: found nothing lowered for float32"));
  }
}

TEST(Function, says_where_it_was_compiled_without_optimisation) {
  const auto tile = function<3, 3>("lorenz", lorenz)->lower_f64(CpuTarget::scalar);
#ifdef __OPTIMIZE__
  EXPECT_EQ(tile->description(), "one function call a trajectory, compiled for scalar");
#else
  EXPECT_EQ(tile->description(),
            "one function call a trajectory, compiled for scalar without optimisation, which -O2 "
            "(CMAKE_BUILD_TYPE=Release) turns on");
#endif
}

TEST(Function, digest_names_kind_name_and_version) {
  const Rhs f = function<3, 3>("lorenz", lorenz, "1");
  EXPECT_EQ(f->digest(), (function<3, 3>("lorenz", lorenz, "1")->digest()));
  EXPECT_NE(f->digest(), (function<3, 3>("lorenz", lorenz, "2")->digest()));
  EXPECT_NE(f->digest(), (function<3, 3>("lorentz", lorenz, "1")->digest()));
  EXPECT_EQ(f->description(), "function lorenz");
}

TEST(FunctionWithNet, hands_the_net_s_outputs_to_the_physics) {
  const Mlp mlp = small_net(3, 2);
  const Rhs f =
      function_with_net<3, 1>("closure", mlp, [](auto, const auto& u, const auto& p, const auto& net, auto& du) {
        du[0] = p[0] * u[1];
        du[1] = net[0] - u[1];
        du[2] = net[1] * u[2];
      });
  expect_same_bits_everywhere<float>(*f);
  expect_same_bits_everywhere<double>(*f);
  Tile<double> tile(*f);
  tile.evaluate(*f, best_cpu_target());
  const auto plan = Plan<double>::compile(mlp, CpuTarget::scalar);
  for (int lane = 0; lane < kTileLanes; ++lane) {
    double u[3], net[2];
    for (int c = 0; c < 3; ++c) u[c] = tile.in[std::size_t(c * kTileLanes + lane)];
    plan.evaluate(MatrixView<const double>::row_major(u, 1, 3), MatrixView<double>::row_major(net, 1, 2));
    EXPECT_EQ(tile.output(1, lane), net[0] - u[1]);
    EXPECT_EQ(tile.output(2, lane), net[1] * u[2]);
  }
}

TEST(FunctionWithNet, inputs_may_be_prepared) {
  const Mlp mlp = small_net(2, 2);
  const Rhs f = function_with_net<3, 1>(
      "closure", mlp,
      [](auto t, const auto& u, const auto& p, const auto& in) {
        in[0] = u[2] * p[0];
        in[1] = t;
      },
      [](auto, const auto&, const auto&, const auto& net, auto& du) { du[0] = net[0]; });
  expect_same_bits_everywhere<float>(*f);
  expect_same_bits_everywhere<double>(*f);
  Tile<double> tile(*f);
  tile.evaluate(*f, best_cpu_target());
  const double in[2] = {tile.in[2 * kTileLanes] * tile.parameters[0], tile.t[0]};
  double net[2];
  Plan<double>::compile(mlp, CpuTarget::scalar)
      .evaluate(MatrixView<const double>::row_major(in, 1, 2), MatrixView<double>::row_major(net, 1, 2));
  EXPECT_EQ(tile.output(0, 0), net[0]);
}

TEST(FunctionWithNet, a_net_of_another_width_is_refused) {
  try {
    function_with_net<3, 1>("closure", small_net(2, 2), [](auto, const auto&, const auto&, const auto&, auto&) {});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("function closure: found a net with 2 inputs (2-5-2), expected 3"));
  }
}

TEST(FunctionWithNet, digest_counts_the_weights) {
  const auto f = [](auto, const auto&, const auto&, const auto& net, auto& du) { du[0] = net[0]; };
  Mlp other = small_net(3, 2);
  other.layers[0].weights[4] += 1e-9;
  EXPECT_EQ((function_with_net<3>("a", small_net(3, 2), f)->digest()),
            (function_with_net<3>("a", small_net(3, 2), f)->digest()));
  EXPECT_NE((function_with_net<3>("a", small_net(3, 2), f)->digest()), (function_with_net<3>("a", other, f)->digest()));
}

TEST(TileFunction, loops_over_the_tile_itself) {
  const Rhs f = tile_function(2, 0, "oscillator", [](const auto& tile) {
    for (int lane = 0; lane < kTileLanes; ++lane) {
      tile.out[lane] = tile.in[kTileLanes + lane];
      tile.out[kTileLanes + lane] = -tile.in[lane];
    }
  });
  expect_same_bits_everywhere<float>(*f);
  expect_same_bits_everywhere<double>(*f);
}

}  // namespace
}  // namespace lockstep::ode
