// The linearly implicit method in the kernels that are compiled for it: the same source run by the host has the bits
// and counts of the CPU engine and of the plain reference, of built-in systems, of equations and nets whose Jacobian
// comes as text, and beside events, resets, impulses and stops; NVRTC, where it is installed, compiles the texts. With
// LOCKSTEP_TEST_DEVICE=cuda on this machine's first GPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <iterator>
#include <string>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/ode/cuda/gemm/gemm_program.h"
#include "lockstep/ode/cuda/nvrtc.h"
#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/cuda/program_derivative.h"
#include "lockstep/ode/cuda/testing/impulses.h"
#include "lockstep/ode/cuda/testing/on_both.h"
#include "lockstep/ode/cuda/testing/on_every_engine.h"
#include "lockstep/ode/cuda/testing/reset_bodies.h"
#include "lockstep/ode/cuda/testing/texts.h"
#include "lockstep/ode/methods/rodas5p.h"
#include "lockstep/ode/testing/graph_maker.h"

namespace lockstep::ode::cuda {
namespace {

using graph::BinaryKind, graph::UnaryKind;
using testing::GraphMaker;
using ::testing::HasSubstr;

// --- Right-hand sides, and what their texts compile to ---

// A reaction in the light of a day: a is split by light, b meets itself fast, c comes back slowly; all of it cools.
Rhs reaction() {
  GraphMaker g({{"u", 0, 4}, {"p", 1, 3}, {"t", 2, 1}});
  const auto times = [&](std::size_t a, std::size_t b) { return g.binary(BinaryKind::multiply, a, b); };
  const auto less = [&](std::size_t a, std::size_t b) { return g.binary(BinaryKind::subtract, a, b); };
  const auto a = g.column(0, 0), b = g.column(0, 1), c = g.column(0, 2), heat = g.column(0, 3);
  const auto slow = g.column(1, 0), fast = g.column(1, 1), light = g.column(1, 2);
  const auto cosine = g.node(graph::Unary{UnaryKind::cosine}, {2});
  const auto split = times(times(light, g.node(graph::Rescale{{0.5}, {0.5}}, {cosine})), a);
  const auto meets = times(fast, times(b, b));
  const auto hot = g.node(graph::Unary{UnaryKind::exp}, {g.node(graph::Rescale{{-0.25}, {0}}, {heat})});
  const auto back = times(times(slow, hot), c);
  const auto du = g.node(graph::Concatenate{}, {less(back, split), less(split, meets), less(meets, back),
                                                less(meets, g.node(graph::Rescale{{64}, {0}}, {heat}))});
  g.outputs = {{"du", du, 4}};
  return net(std::move(g));
}

// Heat that moves along a rod and grows where it is; its cells lie in an order that has nothing to do with the rod.
constexpr std::size_t kCells = 14;
constexpr std::size_t cell_at(std::size_t place) { return place * 5 % kCells; }
Rhs rod() {
  GraphMaker g({{"u", 0, kCells}, {"p", 1, 1}});
  std::array<std::size_t, kCells> at{}, slope{};
  for (std::size_t i = 0; i < kCells; ++i) at[i] = g.column(0, cell_at(i));
  for (std::size_t i = 0; i < kCells; ++i) {
    const auto left = at[i == 0 ? i : i - 1], right = at[i + 1 == kCells ? i : i + 1];
    const auto twice = g.node(graph::Rescale{{2}, {0}}, {at[i]});
    const auto moved = g.binary(BinaryKind::subtract, g.binary(BinaryKind::add, left, right), twice);
    const auto grown = g.binary(BinaryKind::multiply, at[i], g.node(graph::Rescale{{-1}, {1}}, {at[i]}));
    slope[cell_at(i)] = g.binary(BinaryKind::add, g.binary(BinaryKind::multiply, 1, moved), grown);
  }
  g.outputs = {{"du", g.node(graph::Concatenate{}, {slope.begin(), slope.end()}), kCells}};
  return net(std::move(g));
}

// A net beside fast decay.
Rhs net_with_decay() {
  const auto numbers = [](std::size_t count, double factor) {
    std::vector<double> of;
    for (std::size_t i = 0; i < count; ++i) of.push_back(factor * (static_cast<double>(i * 7 % 13) - 6) / 16);
    return of;
  };
  GraphMaker g({{"u", 0, 3}});
  const auto hidden = g.node(graph::Dense{3, 8, numbers(24, 1), numbers(8, 0.5)}, {0});
  const auto units = g.node(graph::Activate{{ActivationKind::tanh}}, {hidden});
  const auto made = g.node(graph::Dense{8, 3, numbers(24, 2), numbers(3, 1)}, {units});
  const auto decay = g.node(graph::Rescale{{-1, -1024, -32}, {0, 0, 0}}, {0});
  g.outputs = {{"du", g.binary(BinaryKind::add, made, decay), 3}};
  return net(std::move(g));
}

struct ReactionInKernel {
  using Matrix = WholeMatrix<4>;
  template <class T>
  static void evaluate(double t, const T* u, const T* p, T* du) {
#include "lockstep/ode/cuda/testing/reaction_body.inc"
  }
  template <class T>
  static void jacobian(double t, const T* u, const T* p, T* by_state, T* by_time) {
#include "lockstep/ode/cuda/testing/reaction_jacobian.inc"
  }
};
struct RodInKernel {
  struct Places {
    static constexpr int component(int place) { return static_cast<int>(cell_at(kCells - 1 - std::size_t(place))); }
  };
  using Matrix = MatrixShape<kCells, 1, 2, 3, 1, Places>;
  template <class T>
  static void evaluate(double, const T* u, const T* p, T* du) {
#include "lockstep/ode/cuda/testing/rod_body.inc"
  }
  template <class T>
  static void jacobian(double, const T* u, const T* p, T* by_state, T* by_time) {
#include "lockstep/ode/cuda/testing/rod_jacobian.inc"
  }
};
struct NetInKernel {
  using Matrix = WholeMatrix<3>;
  template <class T>
  static void evaluate(double, const T* u, const T*, T* du) {
#include "lockstep/ode/cuda/testing/net_with_decay_body.inc"
  }
  template <class T>
  static void jacobian(double, const T* u, const T*, T* by_state, T* by_time) {
#include "lockstep/ode/cuda/testing/net_with_decay_jacobian.inc"
  }
};

// --- Comparison ---

Options options_for(Precision precision) {
  Options options;
  options.method = "rodas5p";
  options.precision = precision;
  options.threads = 1;
  options.rtol = precision == Precision::f32 ? 1e-4 : 1e-7;
  options.atol = options.rtol / 100;
  options.max_steps = 2000;
  return options;
}

class ImplicitOnDevice : public OnEveryEngine {
 protected:
  template <template <class> class Derivative>
  void expect_same_bits(const Problem& problem, Options f64 = options_for(Precision::f64)) {
    Options f32 = f64;
    f32.precision = Precision::f32;
    f32.rtol = std::max(f64.rtol, 1e-4);
    f32.atol = std::max(f64.atol, 1e-6);
    expect_same_everywhere<double, Derivative<double>, CompiledScheme<Rodas5p>>(problem, f64);
    expect_same_everywhere<float, Derivative<float>, CompiledScheme<Rodas5p>>(problem, f32);
    if (!problem.resets.empty() || !problem.impulses.empty() || !f64.stops.empty()) return;
    f64.control = f32.control = StepControl::fixed;
    f64.dt = f32.dt = 0.0123;
    expect_same_everywhere<double, Derivative<double>, CompiledScheme<Rodas5p>>(problem, f64);
    expect_same_everywhere<float, Derivative<float>, CompiledScheme<Rodas5p>>(problem, f32);
  }
};

template <class T>
using Reaction = SourceDerivative<ReactionInKernel, 4, 3, T>;
template <class T>
using Rod = SourceDerivative<RodInKernel, kCells, 1, T>;
template <class T>
using Net = SourceDerivative<NetInKernel, 3, 0, T>;

Problem reactions(std::size_t count) { return uneven(reaction(), {1, 0.2, 0.5, 0.3}, {0.5, 400, 6}, count, 0.4); }
Problem rods(std::size_t count) {
  std::vector<double> heat;
  for (std::size_t i = 0; i < kCells; ++i) heat.push_back(0.05 * static_cast<double>(i * i % 11));
  return uneven(rod(), heat, {400}, count, 0.2);
}
Problem nets(std::size_t count) { return uneven(net_with_decay(), {0.5, -0.5, 1}, {}, count, 0.5); }

// --- Tests ---

TEST_F(ImplicitOnDevice, the_texts_are_those_compiled_here) {
  const auto expect_text = [](const std::string& name, const std::string& text) {
    const std::string compiled = text_of(name);
    if (text != compiled) std::ofstream(::testing::TempDir() + name) << text;
    EXPECT_TRUE(text == compiled) << "the new one is in " << ::testing::TempDir() << name;
  };
  const auto expect_texts = [&]<class Shape>(const Rhs& rhs, const std::string& name, Shape) {
    const auto parts = rhs->parts();
    expect_text(name + "_body.inc", *std::get<SourcePart>(parts.at(0).what).text);
    for (const Precision precision : {Precision::f32, Precision::f64}) {
      const auto jacobian = rhs->jacobian_source(precision);
      ASSERT_NE(jacobian, nullptr);
      expect_text(name + "_jacobian.inc", jacobian->text);
      const LinearLayout& layout = jacobian->layout;
      ASSERT_EQ(layout.size(), std::size_t(Shape::kSize));
      EXPECT_EQ(layout.entries(), std::size_t(Shape::kEntries));
      for (std::size_t i = 0; i < layout.size(); ++i) {
        const int row = static_cast<int>(i);
        EXPECT_EQ(layout.order()[i], std::size_t(Shape::component(row)));
        EXPECT_EQ(layout.rows_end(i), std::size_t(Shape::rows_end(row)));
        EXPECT_EQ(layout.columns_begin(i), std::size_t(Shape::columns_begin(row)));
        EXPECT_EQ(layout.columns_end(i), std::size_t(Shape::columns_end(row)));
        for (std::size_t j = layout.columns_begin(i); j < layout.columns_end(i); ++j)
          EXPECT_EQ(layout.at(i, j), std::size_t(Shape::at(row, static_cast<int>(j))));
      }
    }
  };
  expect_texts(reaction(), "reaction", ReactionInKernel::Matrix());
  expect_texts(rod(), "rod", RodInKernel::Matrix());
  expect_texts(net_with_decay(), "net_with_decay", NetInKernel::Matrix());
}

TEST_F(ImplicitOnDevice, equations_have_the_cpus_bits) {
  for (const std::size_t count : {0, 1, 31, 33, 101}) expect_same_bits<Reaction>(reactions(count));
  EXPECT_THAT(kernel_, HasSubstr("source net "));
  EXPECT_THAT(kernel_, HasSubstr(", rodas5p, f32"));
  EXPECT_GT(ended_[Status::success], 500);
  EXPECT_GT(rejected_, 0);
}

TEST_F(ImplicitOnDevice, a_band_in_an_order_of_its_own_has_the_cpus_bits) {
  for (const std::size_t count : {1, 33}) expect_same_bits<Rod>(rods(count));
  EXPECT_GT(ended_[Status::success], 4 * 30);
}

TEST_F(ImplicitOnDevice, a_net_has_the_cpus_bits) {
  expect_same_bits<Net>(nets(40));
  EXPECT_GT(ended_[Status::success], 4 * 30);
}

template <class System>
struct Of {
  template <class T>
  using Derivative = SystemDerivative<System, T>;
};

TEST_F(ImplicitOnDevice, built_in_systems_have_the_cpus_bits) {
  expect_same_bits<Of<systems::VanDerPol>::Derivative>(uneven(system("van_der_pol"), {2, 0}, {1000}, 37, 0.8));
  EXPECT_THAT(kernel_, HasSubstr("van_der_pol, rodas5p"));
  expect_same_bits<Of<systems::Robertson>::Derivative>(
      uneven(system("robertson"), {1, 0, 0}, {0.04, 3e7, 1e4}, 37, 40));
  expect_same_bits<Of<systems::Oregonator>::Derivative>(
      uneven(system("oregonator"), {1, 2, 3}, {77.27, 8.375e-6, 0.161}, 17, 0.5));
  expect_same_bits<Of<systems::Duffing>::Derivative>(uneven(system("duffing"), {1, 0}, {0.3, -1, 1, 0.5, 1.2}, 17, 2));
  expect_same_bits<Of<systems::Pendulum>::Derivative>(
      uneven(system("pendulum"), {1, 0}, system_info("pendulum").default_parameters, 17, 2));
  expect_same_bits<Of<systems::Lorenz96>::Derivative>(
      uneven(system("lorenz96"), system_info("lorenz96").default_initial_state, {8}, 5, 0.05));
  EXPECT_GT(rejected_, 0);
}

TEST_F(ImplicitOnDevice, impulses_stops_and_few_steps_are_as_on_the_cpu) {
  expect_same_bits<Reaction>(with_impulses(reactions(33)));
  expect_same_bits<Reaction>(with_own_impulses(reactions(33)));
  expect_same_bits<Reaction>(reactions(33), with_stops(options_for(Precision::f64)));
  Options few = options_for(Precision::f64);
  few.max_steps = 9;
  expect_same_bits<Reaction>(reactions(33), few);
  EXPECT_GT(ended_[Status::too_many_steps], 30);
}

LOCKSTEP_RETURNS(LittleLeft, return u[0] - 0.75;);
LOCKSTEP_RETURNS(MuchMade, return u[2] - 0.75;);
LOCKSTEP_SETS(Refill, du[0] = u[0] + 0.25; du[1] = u[1]; du[2] = u[2]; du[3] = 0.5 * u[3];);
using Refills = ResetInKernel<LittleLeft, Refill, EventDirection::falling>;
template <class T>
using EndedReaction = WithEvent<Reaction<T>, MuchMade, T>;
template <class T>
using FilledReaction = WithResets<Reaction<T>, ResetList<Refills>>;

TEST_F(ImplicitOnDevice, events_and_resets_are_as_on_the_cpu) {
  Problem ended = reactions(33);
  ended.event = {event_of<MuchMade, 4, 3>("much made")};
  expect_same_bits<EndedReaction>(ended);
  EXPECT_GT(ended_[Status::terminated], 20);
  Problem filled = reactions(33);
  filled.resets = {Refills::reset<4, 3>()};
  expect_same_bits<FilledReaction>(filled);
}

TEST_F(ImplicitOnDevice, trouble_stays_with_its_own_trajectory) {
  Problem problem = reactions(33);
  // of reactions: b runs away, or meets itself at once
  problem.parameters[3 * 7 + 1] = -1e300;
  problem.parameters[3 * 9 + 1] = 1e300;
  expect_same_bits<Reaction>(problem);
  EXPECT_GT(ended_[Status::not_finite], 0);
  EXPECT_GT(ended_[Status::success], 4 * 20);
}

TEST_F(ImplicitOnDevice, what_has_no_kernel_says_why) {
  const auto refused = [](Rhs rhs, EngineChoice engine = EngineChoice::automatic) {
    Problem problem;
    problem.rhs = std::move(rhs);
    const Options options = options_for(Precision::f64);
    const auto found = engine == EngineChoice::cuda_gemm ? gemm_obstacle(problem, options) : obstacle(problem, options);
    return found ? found->field + ": " + found->found + "; " + found->expected + "; " + found->remedy : "";
  };
  EXPECT_EQ(refused(reaction()), "");
  EXPECT_EQ(refused(system("lorenz96")), "");
  EXPECT_THAT(refused(force()), HasSubstr("which has no Jacobian as text; equations, whose derivatives take"));
  EXPECT_THAT(refused(sum(system("lorenz"), system("lorenz"))),
              HasSubstr("equations, which may call nets, or a built-in system for a linearly"));
  EXPECT_THAT(refused(system("lorenz"), EngineChoice::cuda_gemm), HasSubstr("an explicit method for cuda_gemm"));
  GraphMaker all({{"u", 0, 50}});
  const auto total = all.node(graph::Reduce{graph::ReduceKind::sum}, {0});
  all.outputs = {{"du", all.binary(BinaryKind::multiply, 0, total), 50}};
  EXPECT_THAT(refused(net(std::move(all))),
              HasSubstr("whose linear equations take 2500 numbers; at most 2304, of 48 components"));
}

TEST_F(ImplicitOnDevice, the_texts_are_compiled_by_nvrtc) {
  if (!load_nvrtc().missing.empty()) GTEST_SKIP() << load_nvrtc().missing;
  for (const Rhs& rhs : {reaction(), rod()}) {
    Problem problem;
    problem.rhs = rhs;
    const Lowered<double> lowered = lower_problem<double>(problem, options_for(Precision::f64));
    EXPECT_GT(load_nvrtc().compile(*lowered.source, 90).size(), 1000u);
  }
}

}  // namespace
}  // namespace lockstep::ode::cuda
