// Every method's coefficients satisfy the conditions that define its order: Butcher's, one a rooted tree
// (Hairer, Norsett & Wanner I, II.2, theorem 2.13), evaluated in long double.
#include "lockstep/ode/methods.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/methods/dop853.h"
#include "lockstep/ode/methods/rk4.h"
#include "lockstep/ode/methods/tsit5.h"

namespace lockstep::ode {
namespace {

using Number = long double;
constexpr Number kHalfUlp = 0x1p-53L;  // relative error of a number rounded to double

// A rooted tree is the list of subtrees hanging from its root, by index into `all`.
struct Tree {
  std::vector<std::size_t> subtrees;
  int order = 1;       // number of nodes
  Number density = 1;  // gamma(t) = order * product of the subtrees' densities
};

// All rooted trees with up to `order` nodes, by ascending order: 1, 1, 2, 4, 9, 20, 48, 115 of orders 1 to 8.
std::vector<Tree> rooted_trees(int order) {
  std::vector<Tree> all{Tree{}};
  for (int n = 2; n <= order; ++n) {
    // Multisets of trees with n - 1 nodes altogether: indices in descending order.
    std::vector<Tree> found;
    const auto extend = [&](auto&& self, Tree tree, std::size_t largest, int nodes_left) -> void {
      if (nodes_left == 0) {
        tree.order = n;
        tree.density *= n;
        found.push_back(tree);
        return;
      }
      for (std::size_t i = 0; i <= largest; ++i) {
        if (all[i].order > nodes_left) continue;
        Tree next = tree;
        next.subtrees.push_back(i);
        next.density *= all[i].density;
        self(self, next, i, nodes_left - all[i].order);
      }
    };
    extend(extend, Tree{}, all.size() - 1, n - 1);
    all.insert(all.end(), found.begin(), found.end());
  }
  return all;
}

// Phi_j(t), the product over subtrees u of sum_k a_jk Phi_k(u), and the same with |a_jk|: [tree][stage].
struct StageWeights {
  std::vector<std::vector<Number>> value;
  std::vector<std::vector<Number>> magnitude;
};

StageWeights stage_weights(const Tableau& m, const std::vector<Tree>& trees) {
  const int stages = m.stages + m.interpolant_stages;
  StageWeights w;
  for (const Tree& tree : trees) {
    std::vector<Number> value(std::size_t(stages), 1), magnitude(std::size_t(stages), 1);
    for (const std::size_t u : tree.subtrees) {
      for (int j = 0; j < stages; ++j) {
        Number sum = 0, size = 0;
        for (int k = 0; k < j; ++k) {
          sum += Number(m.a_at(j, k)) * w.value[u][std::size_t(k)];
          size += std::abs(Number(m.a_at(j, k))) * w.magnitude[u][std::size_t(k)];
        }
        value[std::size_t(j)] *= sum;
        magnitude[std::size_t(j)] *= size;
      }
    }
    w.value.push_back(value);
    w.magnitude.push_back(magnitude);
  }
  return w;
}

// sum_j weight_j Phi_j(t) - expected for one tree, and how far the rounding of the coefficients alone can take it: a
// tree of order n multiplies n of them, each off by half an ulp (`roundings` more for the outermost one).
struct Residual {
  Number value = 0;
  Number bound = 0;
};

Residual residual(const StageWeights& w, std::size_t tree, int order, const std::vector<double>& weights,
                  Number expected, Number roundings = 0, Number least_operand = 0) {
  Residual r{-expected, 0};
  for (std::size_t j = 0; j < weights.size(); ++j) {
    if (weights[j] == 0) continue;
    r.value += Number(weights[j]) * w.value[tree][j];
    r.bound += std::max(std::abs(Number(weights[j])), least_operand) * w.magnitude[tree][j];
  }
  // 1 %: second-order terms, and long double's own rounding (2^-64, a few hundred operations).
  r.bound *= (Number(order) + roundings) * kHalfUlp * 1.01L;
  return r;
}

std::vector<double> weights_of(const Tableau& m) {
  std::vector<double> b;
  for (int j = 0; j < m.stages; ++j) b.push_back(m.a_at(m.stages - 1, j));
  return b;
}

class EveryMethod : public testing::TestWithParam<std::string> {
 protected:
  const Tableau& m = method(GetParam());
};

INSTANTIATE_TEST_SUITE_P(Methods, EveryMethod, testing::ValuesIn([] {
                           std::vector<std::string> names;
                           for (const auto name : explicit_method_names()) names.emplace_back(name);
                           return names;
                         }()),
                         [](const auto& info) { return info.param; });

TEST(RootedTrees, are_as_many_as_cayley_counted) {
  const auto trees = rooted_trees(8);
  std::map<int, int> count;
  for (const Tree& tree : trees) ++count[tree.order];
  EXPECT_THAT(count, testing::ElementsAre(testing::Pair(1, 1), testing::Pair(2, 1), testing::Pair(3, 2),
                                          testing::Pair(4, 4), testing::Pair(5, 9), testing::Pair(6, 20),
                                          testing::Pair(7, 48), testing::Pair(8, 115)));
}

TEST_P(EveryMethod, weights_satisfy_every_condition_of_the_order_and_not_of_the_next) {
  const auto trees = rooted_trees(m.order + 1);
  const auto w = stage_weights(m, trees);
  Number next = 0;
  for (std::size_t i = 0; i < trees.size(); ++i) {
    const Residual r = residual(w, i, trees[i].order, weights_of(m), 1 / trees[i].density);
    if (trees[i].order <= m.order) {
      EXPECT_LE(std::abs(r.value), r.bound) << "tree " << i << " of order " << trees[i].order;
    } else {
      next = std::max(next, std::abs(r.value) - r.bound);
    }
  }
  EXPECT_GT(next, 0);
}

TEST_P(EveryMethod, error_weights_vanish_up_to_the_embedded_order_and_not_beyond) {
  if (m.error_order == 0) {
    EXPECT_TRUE(m.error.empty());
    return;
  }
  ASSERT_EQ(m.error.size(), std::size_t(m.stages));
  const auto trees = rooted_trees(m.error_order + 1);
  const auto w = stage_weights(m, trees);
  // DOP853's estimates stand for orders 5 and 3 (the second one damps the first: Hairer, Norsett & Wanner I, II.10).
  const auto check = [&](std::span<const double> e, int order) {
    Number next = 0;
    for (std::size_t i = 0; i < trees.size(); ++i) {
      const Residual r = residual(w, i, trees[i].order, {e.begin(), e.end()}, 0);
      if (trees[i].order <= order) {
        EXPECT_LE(std::abs(r.value), r.bound) << "tree " << i << " of order " << trees[i].order;
      } else if (trees[i].order == order + 1) {
        next = std::max(next, std::abs(r.value) - r.bound);
      }
    }
    EXPECT_GT(next, 1e-6);
  };
  check(m.error, m.error_order);
  if (!m.error3.empty()) {
    ASSERT_EQ(m.error3.size(), std::size_t(m.stages));
    check(m.error3, 3);
  }
}

TEST_P(EveryMethod, rows_sum_to_the_nodes) {
  for (int i = 0; i < m.stages + m.interpolant_stages; ++i) {
    Number sum = 0, size = std::abs(Number(m.c[std::size_t(i)]));
    for (int j = 0; j < i; ++j) {
      sum += Number(m.a_at(i, j));
      size += std::abs(Number(m.a_at(i, j)));
    }
    EXPECT_LE(std::abs(sum - Number(m.c[std::size_t(i)])), size * kHalfUlp) << "row " << i;
  }
}

TEST_P(EveryMethod, is_explicit_and_its_last_stage_is_the_step_s_end) {
  const int stages = m.stages + m.interpolant_stages;
  EXPECT_EQ(m.c[0], 0);
  EXPECT_EQ(m.c[std::size_t(m.stages) - 1], 1);
  EXPECT_EQ(m.a.size(), std::size_t(stages * stages));
  EXPECT_EQ(m.c.size(), std::size_t(stages));
  EXPECT_EQ(m.interpolant.size(), std::size_t(stages * m.interpolant_degree));
  for (int i = 0; i < stages; ++i) {
    for (int j = i; j < stages; ++j) EXPECT_EQ(m.a_at(i, j), 0) << i << "," << j;
  }
}

// p_jm is either an exact number rounded once, or computed from b by at most three operations on numbers not above 3.
constexpr Number kInterpolantRoundings = 3;
constexpr Number kInterpolantOperand = 3;

TEST_P(EveryMethod, interpolant_satisfies_the_conditions_of_its_order) {
  const auto trees = rooted_trees(m.interpolant_order);
  const auto w = stage_weights(m, trees);
  const auto stages = std::size_t(m.stages + m.interpolant_stages);
  const auto degree = std::size_t(m.interpolant_degree);
  for (std::size_t i = 0; i < trees.size(); ++i) {
    // sum_j p_jm Phi_j(t) is theta^order / gamma(t), power by power.
    for (std::size_t power = 1; power <= degree; ++power) {
      std::vector<double> p(stages);
      for (std::size_t j = 0; j < stages; ++j) p[j] = m.interpolant[j * degree + power - 1];
      const Number expected = trees[i].order == int(power) ? 1 / trees[i].density : 0;
      const Residual r = residual(w, i, trees[i].order, p, expected, kInterpolantRoundings, kInterpolantOperand);
      EXPECT_LE(std::abs(r.value), r.bound) << "tree " << i << " of order " << trees[i].order << ", theta^" << power;
    }
  }
}

// Every one of our interpolants joins steps with a continuous derivative: y' is k_1 at 0 and k_s at 1.
TEST_P(EveryMethod, interpolant_ends_in_y1_and_its_derivative_meets_k_1_and_k_s) {
  const auto stages = std::size_t(m.stages + m.interpolant_stages);
  const auto degree = std::size_t(m.interpolant_degree);
  for (std::size_t j = 0; j < stages; ++j) {
    const double* p = m.interpolant.data() + j * degree;
    Number end = 0, slope = 0, size = 0;
    for (std::size_t power = 1; power <= degree; ++power) {
      end += Number(p[power - 1]);
      slope += Number(power) * Number(p[power - 1]);
      if (p[power - 1] != 0) {
        size += Number(power) * std::max(std::abs(Number(p[power - 1])), kInterpolantOperand);
      }
    }
    const double b = j < std::size_t(m.stages) ? m.a_at(m.stages - 1, int(j)) : 0;
    const Number bound = (size + std::abs(Number(b))) * (1 + kInterpolantRoundings) * kHalfUlp;
    EXPECT_LE(std::abs(end - Number(b)), bound) << "stage " << j;
    EXPECT_LE(std::abs(slope - (j + 1 == std::size_t(m.stages) ? 1 : 0)), bound) << "stage " << j;
    EXPECT_EQ(p[0], j == 0 ? 1 : 0) << "stage " << j;
  }
}

// |R(z)| <= 1 for u' = lambda u, z = h lambda real, down to where the paper has it: beta = 2/3 (s^2 - 1)(1 - 2/15 eps),
// eps = 2/13 (Sommeijer, Shampine & Verwer 1998, section 2); beyond it R grows.
TEST(Methods, those_made_for_decay_are_stable_as_far_as_their_paper_says) {
  const auto growth = [](const Tableau& m, Number z) {
    std::vector<Number> k;
    Number y = 1;
    for (int i = 0; i < m.stages; ++i) {
      y = 1;
      for (int j = 0; j < i; ++j) y += Number(m.a_at(i, j)) * k[std::size_t(j)];
      k.push_back(z * y);
    }
    return std::abs(y);
  };
  for (const int s : {8, 20}) {
    const Tableau& m = method("rkc" + std::to_string(s));
    EXPECT_EQ(m.stages, s + 1);
    const Number beta = 2 / Number(3) * (s * s - 1) * (1 - 2 / Number(15) * 2 / 13);
    for (int i = 0; i <= 1000; ++i) EXPECT_LE(growth(m, -beta * i / 1000), 1) << "z = " << -beta * i / 1000;
    EXPECT_GT(growth(m, -1.02L * beta), 1);
    EXPECT_LT(growth(m, -beta / 2), 0.97L);  // damped
  }
}

TEST(Methods, are_the_documented_ones) {
  EXPECT_THAT(method_names(), testing::ElementsAre("euler", "midpoint", "heun", "rk4", "bs3", "dopri5", "tsit5",
                                                   "vern7", "dop853", "vern9", "rkc8", "rkc20", "rodas5p"));
}

TEST(Methods, an_unknown_name_is_answered_with_the_nearest) {
  try {
    method("tsit");
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::invalid_argument);
    EXPECT_THAT(error.what(), testing::HasSubstr("found \"tsit\""));
    EXPECT_THAT(error.what(), testing::HasSubstr("did you mean \"tsit5\""));
  }
}

TEST(Methods, names_of_other_programs_are_answered_with_ours) {
  const auto answer = [](std::string_view name) { return message_of([&] { method(name); }); };
  EXPECT_THAT(answer("RK45"), testing::EndsWith("; did you mean \"dopri5\"?"));
  EXPECT_THAT(answer("ode23"), testing::EndsWith("; did you mean \"bs3\"?"));
  for (const char* implicit : {"BDF", "Radau", "LSODA", "Kvaerno5"}) {
    EXPECT_THAT(answer(implicit), testing::EndsWith("for stiff problems take \"rodas5p\"")) << implicit;
  }
  EXPECT_THAT(answer("nonsense"), testing::EndsWith("rodas5p"));
}

TEST(Methods, numbers_are_the_same_at_compile_time_and_at_run_time) {
  constexpr auto tsit5 = Tsit5::coefficients();
  static_assert(tsit5.kStages == 7 && tsit5.a[6][1] == 0.01);
  constexpr auto rk4 = Rk4::coefficients();
  static_assert(rk4.kStages == 5 && rk4.a[4][0] == 1.0 / 6 && rk4.interpolant[4][2] == 1.0);
  constexpr auto dop853 = Dop853::coefficients();
  static_assert(dop853.kStages == 13 && dop853.kAllStages == 16);
  for (int i = 0; i < 16; ++i) {
    for (int j = 0; j < 16; ++j) EXPECT_EQ(dop853.a[i][j], method("dop853").a_at(i, j));
  }
}

}  // namespace
}  // namespace lockstep::ode
