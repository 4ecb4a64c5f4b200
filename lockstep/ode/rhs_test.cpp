// Right-hand sides made by the library: the built-in systems, nets, sums.
#include "lockstep/ode/rhs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/kernels/mlp/plan.h"
#include "lockstep/ode/systems/systems.h"
#include "lockstep/ode/test_tile.h"

namespace lockstep::ode {
namespace {

class EverySystem : public testing::TestWithParam<std::string> {};
INSTANTIATE_TEST_SUITE_P(Systems, EverySystem, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto name : system_names()) names.emplace_back(name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

TEST_P(EverySystem, has_the_same_bits_on_every_target_lane_and_tile_size) {
  const Rhs f = system(GetParam());
  expect_same_bits_everywhere<float>(*f);
  expect_same_bits_everywhere<double>(*f);
}

TEST_P(EverySystem, is_described_completely) {
  const SystemInfo& info = system_info(GetParam());
  const Rhs f = system(GetParam());
  EXPECT_EQ(info.name, GetParam());
  EXPECT_FALSE(info.title.empty());
  EXPECT_FALSE(info.source.empty());
  EXPECT_EQ(info.components.size(), f->components());
  EXPECT_EQ(info.parameters.size(), f->parameters());
  EXPECT_EQ(info.default_parameters.size(), f->parameters());
  EXPECT_EQ(info.default_initial_state.size(), f->components());
  EXPECT_GT(info.default_end_time, 0);
  EXPECT_EQ(f->description(), info.name);
  EXPECT_EQ(f->inlined_name(), info.name);
  EXPECT_EQ(std::set<std::string>(info.components.begin(), info.components.end()).size(), info.components.size());
}

// du at the system's default state and parameters.
std::vector<double> derivative(const std::string& name, double t = 0) {
  const SystemInfo& info = system_info(name);
  const Rhs f = system(name);
  Tile<double> tile(*f);
  for (std::size_t c = 0; c < f->components(); ++c) tile.in[c * kTileLanes] = info.default_initial_state[c];
  for (std::size_t q = 0; q < f->parameters(); ++q) tile.parameters[q * kTileLanes] = info.default_parameters[q];
  tile.t[0] = t;
  tile.evaluate(*f, best_cpu_target(), 1);
  std::vector<double> du;
  for (std::size_t c = 0; c < f->components(); ++c) du.push_back(tile.output(c, 0));
  return du;
}

TEST_P(EverySystem, says_whether_it_reads_the_time) {
  EXPECT_EQ(derivative(GetParam(), 1.25) != derivative(GetParam()), system_info(GetParam()).reads_time);
}

// Worked by hand from the cited equations at the default states. A few operations on numbers of order one (up to
// 1e2 for the Arenstorf orbit, whose satellite starts 0.006 from the Moon): 1e-12 is thousands of roundings away.
TEST(Systems, agree_with_their_equations) {
  using testing::DoubleNear;
  using testing::ElementsAre;
  const auto near = [](double x) { return DoubleNear(x, 1e-12 * std::max(1.0, std::abs(x))); };
  EXPECT_THAT(derivative("lorenz"), ElementsAre(near(0), near(26), near(1 - 8.0 / 3)));
  EXPECT_THAT(derivative("rossler"), ElementsAre(near(-2), near(1.2), near(0.2 + (1 - 5.7))));
  EXPECT_THAT(derivative("van_der_pol"), ElementsAre(near(0), near(-2)));
  EXPECT_THAT(derivative("lotka_volterra"), ElementsAre(near(0.5), near(-2)));
  EXPECT_THAT(derivative("harmonic_oscillator"), ElementsAre(near(0), near(-1)));
  EXPECT_THAT(derivative("kepler"), ElementsAre(near(0), near(std::sqrt(3.0)), near(-4), near(0)));
  EXPECT_THAT(derivative("henon_heiles"), ElementsAre(near(0.5), near(0), near(0), near(-0.1 + 0.01)));
  EXPECT_THAT(derivative("brusselator"), ElementsAre(near(1 + 2.25 * 3 - 4 * 1.5), near(3 * 1.5 - 2.25 * 3)));
  EXPECT_THAT(derivative("fitzhugh_nagumo"), ElementsAre(near(-1 + 1.0 / 3 - 1 + 0.5), near((-1 + 0.7 - 0.8) / 12.5)));
  EXPECT_THAT(derivative("robertson"), ElementsAre(near(-0.04), near(0.04), near(0)));
  EXPECT_THAT(derivative("oregonator"), ElementsAre(near(77.27 * (2 + 1 * (1 - 8.375e-6 - 2))),
                                                    near((3 - 2 * 2) / 77.27), near(0.161 * (1 - 3))));
  const double mu = 0.012277471, earth = std::pow(0.994 + mu, 2), moon = std::pow(0.994 - (1 - mu), 2);
  const double vy = -2.00158510637908252240537862224;
  EXPECT_THAT(derivative("arenstorf"),
              ElementsAre(near(0), near(vy), near(0.994 + 2 * vy - (1 - mu) / earth - mu / moon), near(0)));
}

// Sine and cosine are within 2.5 ulp (docs/accuracy.md): far below the 1e-12.
TEST(Systems, driven_ones_follow_the_time) {
  for (const double t : {0.0, 0.75, -20.5}) {
    EXPECT_NEAR(derivative("duffing", t)[1], 0.3 * std::cos(t), 1e-12) << t;  // at x = 1 the springs cancel
    EXPECT_NEAR(derivative("pendulum", t)[1], 1.5 * std::cos(2.0 / 3 * t) - std::sin(0.2), 1e-12) << t;
  }
  EXPECT_EQ(derivative("duffing", 0.75)[0], 0);
}

TEST(Systems, lorenz96_is_a_ring) {
  const auto du = derivative("lorenz96");
  // All sites at 8 but u20 = 8.01 (index 19), forcing 8: only its neighbours and itself feel it.
  EXPECT_NEAR(du[18], (8.01 - 8) * 8 - 8 + 8, 1e-12);
  EXPECT_NEAR(du[19], -8.01 + 8, 1e-12);
  EXPECT_NEAR(du[20], 0, 1e-12);
  EXPECT_NEAR(du[21], (8 - 8.01) * 8 - 8 + 8, 1e-12);
  EXPECT_NEAR(du[0], 0, 1e-12);
  EXPECT_NEAR(du[39], 0, 1e-12);
}

TEST(Systems, pleiades_conserves_momentum_and_pulls_by_the_inverse_square) {
  const auto du = derivative("pleiades");
  double px = 0, py = 0;
  for (std::size_t i = 0; i < 7; ++i) {
    px += double(i + 1) * du[14 + i];
    py += double(i + 1) * du[21 + i];
  }
  // Sums of 14 terms below 10 that cancel: 14 * 10 * 2^-53 times a few roundings each.
  EXPECT_NEAR(px, 0, 1e-13);
  EXPECT_NEAR(py, 0, 1e-13);
  const auto& u = system_info("pleiades").default_initial_state;
  double ax = 0, ay = 0;
  for (std::size_t j = 1; j < 7; ++j) {
    const double r = std::hypot(u[j] - u[0], u[7 + j] - u[7]);
    ax += double(j + 1) * (u[j] - u[0]) / (r * r * r);
    ay += double(j + 1) * (u[7 + j] - u[7]) / (r * r * r);
  }
  EXPECT_NEAR(du[14], ax, 1e-14);
  EXPECT_NEAR(du[21], ay, 1e-14);
  EXPECT_EQ(du[5], 1.75);
  EXPECT_EQ(du[7 + 3], -1.25);
}

TEST(Systems, an_unknown_name_is_answered_with_the_nearest) {
  try {
    system("lorentz");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean \"lorenz\""));
  }
}

TEST(Systems, have_digests_of_their_own) {
  std::set<std::string> digests;
  for (const auto name : system_names()) digests.insert(system(name)->digest());
  EXPECT_EQ(digests.size(), system_names().size());
}

TEST(Systems, scalar_templates_have_the_bits_of_the_tiles) {
  const Rhs f = system("lorenz");
  Tile<float> tile(*f);
  tile.evaluate(*f, best_cpu_target());
  for (int lane = 0; lane < kTileLanes; ++lane) {
    float u[3], p[3], du[3];
    for (int c = 0; c < 3; ++c) {
      u[c] = tile.in[std::size_t(c * kTileLanes + lane)];
      p[c] = tile.parameters[std::size_t(c * kTileLanes + lane)];
    }
    systems::Lorenz::evaluate<ScalarLane<float>>(u, p, du);
    for (std::size_t c = 0; c < 3; ++c) EXPECT_TRUE(same_bits(tile.output(c, lane), du[c]));
  }
}

// What the plan gives for one sample.
std::vector<double> net_of(const Mlp& mlp, std::vector<double> in) {
  std::vector<double> out(mlp.outputs());
  Plan<double>::compile(mlp, CpuTarget::scalar)
      .evaluate(MatrixView<const double>::row_major(in.data(), 1, in.size()),
                MatrixView<double>::row_major(out.data(), 1, out.size()));
  return out;
}

TEST(Net, is_its_outputs_at_the_state) {
  const Mlp mlp = small_net(3, 3);
  const Rhs f = net(mlp, {.name = "closure"});
  EXPECT_EQ(f->components(), 3u);
  EXPECT_EQ(f->parameters(), 0u);
  EXPECT_EQ(f->description(), "net closure (3-5-3)");
  expect_same_bits_everywhere<float>(*f);
  expect_same_bits_everywhere<double>(*f);
  Tile<double> tile(*f);
  tile.evaluate(*f, best_cpu_target());
  const auto expected = net_of(mlp, {tile.in[4], tile.in[kTileLanes + 4], tile.in[2 * kTileLanes + 4]});
  for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(tile.output(c, 4), expected[c]);
}

TEST(Net, takes_parameters_then_time_after_the_state) {
  const Mlp mlp = small_net(5, 2);
  const Rhs f = net(mlp, {.with_time = true});
  EXPECT_EQ(f->components(), 2u);
  EXPECT_EQ(f->parameters(), 2u);
  expect_same_bits_everywhere<float>(*f);
  expect_same_bits_everywhere<double>(*f);
  Tile<double> tile(*f);
  tile.evaluate(*f, best_cpu_target());
  const auto expected = net_of(
      mlp, {tile.in[9], tile.in[kTileLanes + 9], tile.parameters[9], tile.parameters[kTileLanes + 9], tile.t[9]});
  for (std::size_t c = 0; c < 2; ++c) EXPECT_EQ(tile.output(c, 9), expected[c]);
  EXPECT_EQ(net(mlp)->parameters(), 3u);
}

TEST(Net, with_fewer_inputs_than_outputs_is_refused) {
  try {
    net(small_net(2, 3), {.name = "narrow"});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(), testing::HasSubstr("net narrow: found 2 inputs and 3 outputs, expected at least 3"));
  }
  EXPECT_THROW(net(small_net(3, 3), {.with_time = true}), Error);
}

TEST(Net, digest_counts_weights_and_not_the_name) {
  Mlp other = small_net(3, 3);
  other.layers[1].bias[0] += 1e-9;
  EXPECT_EQ(net(small_net(3, 3), {.name = "a"})->digest(), net(small_net(3, 3), {.name = "b"})->digest());
  EXPECT_NE(net(small_net(3, 3))->digest(), net(other)->digest());
  EXPECT_NE(net(small_net(5, 3))->digest(), net(small_net(5, 3), {.with_time = true})->digest());
}

TEST(Sum, adds_a_closure_to_the_physics_with_parameters_one_after_the_other) {
  const Mlp mlp = small_net(4, 3);
  const Rhs f = sum(system("lorenz"), net(mlp));
  EXPECT_EQ(f->components(), 3u);
  EXPECT_EQ(f->parameters(), 4u);
  expect_same_bits_everywhere<float>(*f);
  expect_same_bits_everywhere<double>(*f);
  Tile<double> tile(*f);
  tile.evaluate(*f, best_cpu_target());
  double u[3], p[4], du[3];
  for (std::size_t c = 0; c < 3; ++c) u[c] = tile.in[c * kTileLanes + 2];
  for (std::size_t q = 0; q < 4; ++q) p[q] = tile.parameters[q * kTileLanes + 2];
  systems::Lorenz::evaluate<ScalarLane<double>>(u, p, du);
  const auto closure = net_of(mlp, {u[0], u[1], u[2], p[3]});
  for (std::size_t c = 0; c < 3; ++c) EXPECT_EQ(tile.output(c, 2), du[c] + closure[c]);
}

TEST(Sum, of_different_states_is_refused) {
  EXPECT_THROW(sum(system("lorenz"), system("van_der_pol")), Error);
  EXPECT_THROW(sum(nullptr, system("van_der_pol")), Error);
  EXPECT_THROW(
      sum(system("van_der_pol"), event_function<2>("event", [](auto, const auto& u, const auto&) { return u[0]; })),
      Error);
}

TEST(Sum, digest_is_of_both_in_order) {
  const Rhs a = system("van_der_pol"), b = system("harmonic_oscillator");
  EXPECT_NE(sum(a, b)->digest(), sum(b, a)->digest());
  EXPECT_NE(sum(a, b)->digest(), sum(a, a)->digest());
}

}  // namespace
}  // namespace lockstep::ode
