// Steps that every thread takes for itself: the same bits as of one thread, whatever comes between them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/core/detail/sanitizer.h"
#include "lockstep/core/testing/forked.h"
#include "lockstep/core/testing/sanitized.h"
#include "lockstep/kernels/mlp/detail/sum_tree.h"
#include "lockstep/kernels/mlp/parameters.h"
#include "lockstep/kernels/mlp/regression.h"
#include "lockstep/kernels/mlp/testing/reference.h"

namespace lockstep {
namespace {

// What row 0 holds after the additions of the tree, written out.
std::string whole_tree(std::size_t groups) {
  std::vector<std::string> rows(groups);
  for (std::size_t i = 0; i < groups; ++i) rows[i] = std::to_string(i);
  for (std::size_t height = groups; height > 1;) {
    const std::size_t half = (height + 1) / 2;
    for (std::size_t i = 0; i + half < height; ++i) rows[i] = "(" + rows[i] + "+" + rows[i + half] + ")";
    height = half;
  }
  return rows[0];
}

TEST(SumTree, shares_and_common_additions_make_up_the_whole_tree) {
  for (std::size_t groups = 1; groups <= 64; ++groups) {
    for (const std::size_t threads : {1, 2, 3, 5, 16}) {
      const mlp::SumTree tree = mlp::make_sum_tree(std::vector<std::size_t>(groups, 16), threads);
      std::vector<std::string> rows(groups);
      for (const mlp::SumTree::Share& share : tree.shares) {
        std::vector<std::string> own;
        for (const std::uint32_t group : share.groups) own.push_back(std::to_string(group));
        for (const auto& [to, from] : share.additions) own[to] = "(" + own[to] + "+" + own[from] + ")";
        EXPECT_LE(share.published.size(), 12u);
        for (const std::uint32_t row : share.published) rows[share.groups[row]] = own[row];
      }
      for (const auto& [to, from] : tree.common) rows[to] = "(" + rows[to] + "+" + rows[from] + ")";
      EXPECT_EQ(rows[0], whole_tree(groups)) << groups << " groups, " << threads << " threads";
    }
  }
}

TEST(SumTree, two_threads_publish_one_row_each_where_the_tree_has_equal_halves) {
  for (const std::size_t groups : {2, 4, 8, 64}) {
    const mlp::SumTree tree = mlp::make_sum_tree(std::vector<std::size_t>(groups, 16), 2);
    EXPECT_EQ(tree.common.size(), 1u);
    for (const mlp::SumTree::Share& share : tree.shares) {
      EXPECT_EQ(share.groups.size(), groups / 2);
      EXPECT_EQ(share.published.size(), 1u);
    }
  }
}

// Heavy ball: what a step does depends on all steps before it.
template <class T>
struct Ball final : Stepper<T> {
  std::vector<T> speed;
  std::thread::id home = std::this_thread::get_id();
  int steps_until_failure_elsewhere = -1;

  explicit Ball(std::size_t count) : speed(count) {}
  void step(std::span<T> parameters, std::span<T> gradient, double rate) override {
    if (std::this_thread::get_id() != home && steps_until_failure_elsewhere-- == 0) throw std::runtime_error("failed");
    for (std::size_t i = 0; i < speed.size(); ++i) {
      speed[i] = T(0.5) * speed[i] - static_cast<T>(rate) * gradient[i];
      parameters[i] += speed[i];
    }
  }
  std::unique_ptr<Stepper<T>> copy() const override { return std::make_unique<Ball>(*this); }
};

template <class T>
struct Descent {
  const Mlp mlp =
      mlp::random_mlp(kSanitized ? std::vector<std::size_t>{2, 8, 1} : std::vector<std::size_t>{2, 20, 5, 1},
                      {ActivationKind::relu}, 4);
  RegressionPlan<T> plan = RegressionPlan<T>::compile(mlp);
  std::vector<T> parameters = gather_parameters<T>(mlp), gradient = std::vector<T>(parameters.size());
  Ball<T> ball{parameters.size()};
  std::uint64_t number = 0;
  std::vector<double> losses;

  TiledSamples<T> samples(std::size_t count) const {
    std::mt19937 random(static_cast<unsigned>(count));
    std::normal_distribution<double> normal;
    std::vector<T> x(2 * count), y(count);
    for (T& v : x) v = static_cast<T>(normal(random));
    for (T& v : y) v = static_cast<T>(normal(random));
    TiledSamples<T> tiles = plan.make_samples(count);
    plan.assign(tiles, MatrixView<const T>::row_major(x.data(), count, 2),
                MatrixView<const T>::row_major(y.data(), count, 1));
    return tiles;
  }
  void step(const TiledSamples<T>& batch, int threads) {
    const double rate = 0.01 / (1 + 0.1 * static_cast<double>(number));
    losses.push_back(plan.loss_and_gradient(parameters, batch, 1 / static_cast<double>(batch.samples), gradient,
                                            threads, {&ball, rate, number}));
    ball.step(parameters, gradient, rate);
    ++number;
  }
  // With the numbers of all steps' losses, all that training leaves behind.
  std::vector<double> all() const {
    std::vector<double> numbers = losses;
    numbers.insert(numbers.end(), parameters.begin(), parameters.end());
    return numbers;
  }
};

// Sizes: two whole chunks; chunks that no number of threads divides, the last a part; more chunks than groups.
template <class T>
void expect_same_steps() {
  for (const std::size_t size : {1024, 4777, 40'000}) {
    if (kSanitized && size > 10'000) continue;
    std::vector<double> expected;
    for (const int threads : {1, 2, 3, 5}) {
      Descent<T> descent;
      const TiledSamples<T> batch = descent.samples(size);
      for (int i = 0; i < 7; ++i) descent.step(batch, threads);
      if (threads == 1) expected = descent.all();
      EXPECT_TRUE(std::isfinite(descent.losses.back()));
      EXPECT_EQ(descent.all(), expected) << size << " samples, " << threads << " threads";
    }
  }
}
TEST(SharedSteps, give_the_same_bits_for_any_number_of_threads_f32) { expect_same_steps<float>(); }
TEST(SharedSteps, give_the_same_bits_for_any_number_of_threads_f64) { expect_same_steps<double>(); }

// Batches of other sizes, one too small for two threads; other numbers of threads; losses asked for, and parameters
// and stepper changed, between steps.
TEST(SharedSteps, give_the_same_bits_whatever_comes_between_them) {
  std::vector<double> expected;
  for (const bool on_threads : {false, true}) {
    Descent<double> descent;
    std::vector<TiledSamples<double>> batches;
    for (const std::size_t size : {2048, 2048, 1500, 33, 4777}) batches.push_back(descent.samples(size));
    std::size_t at = 0;
    const auto steps = [&](int count, int threads) {
      for (int i = 0; i < count; ++i) descent.step(batches[at++ % batches.size()], on_threads ? threads : 1);
    };
    steps(7, 3);
    descent.losses.push_back(descent.plan.loss(batches[0], 1, on_threads ? 2 : 1));
    steps(7, 3);
    steps(7, 5);
    descent.plan.set_parameters(descent.parameters);
    steps(6, 2);
    for (double& x : descent.parameters) x *= 0.75;
    for (double& v : descent.ball.speed) v = 0;
    descent.number += 2;
    steps(7, 2);
    std::vector<double> gradient(descent.parameters.size());
    descent.losses.push_back(descent.plan.loss_and_gradient(batches[4], 1, gradient, on_threads ? 3 : 1));
    steps(7, 3);
    if (!on_threads) expected = descent.all();
    EXPECT_EQ(descent.all(), expected);
  }
}

TEST(SharedSteps, may_pause_for_longer_than_threads_look_out) {
  std::vector<double> expected;
  for (const int threads : {1, 3}) {
    Descent<double> descent;
    const TiledSamples<double> batch = descent.samples(4777);
    for (int i = 0; i < 12; ++i) {
      descent.step(batch, threads);
      if (i % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    if (threads == 1) expected = descent.all();
    EXPECT_EQ(descent.all(), expected);
  }
}

TEST(SharedSteps, samples_may_go_after_a_step) {
  Descent<double> descent;
  for (int i = 0; i < 6; ++i) {
    const TiledSamples<double> batch = descent.samples(4777);
    descent.step(batch, 3);
  }
  EXPECT_TRUE(std::isfinite(descent.losses.back()));
}

TEST(SharedSteps, a_thread_that_fails_changes_no_bit) {
  std::vector<double> expected;
  for (const int failure : {-1, 0, 1, 3}) {
    Descent<double> descent;
    descent.ball.steps_until_failure_elsewhere = failure;
    const TiledSamples<double> batch = descent.samples(4777);
    for (int i = 0; i < 12; ++i) descent.step(batch, 3);
    if (failure < 0) expected = descent.all();
    EXPECT_EQ(descent.all(), expected) << "failure after " << failure;
  }
}

TEST(SharedSteps, more_threads_than_processors_still_get_through) {
  const int threads = static_cast<int>(std::thread::hardware_concurrency()) + 3;
  Descent<double> descent, alone;
  const TiledSamples<double> batch = descent.samples(kSanitized ? 5000 : 20'000);
  for (int i = 0; i < 8; ++i) {
    descent.step(batch, threads);
    alone.step(batch, 1);
  }
  EXPECT_EQ(descent.all(), alone.all());
}

// In the middle of a row of steps.
TEST(SharedSteps, go_on_in_a_forked_process) {
#ifdef LOCKSTEP_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked process";
#endif
  Descent<double> one, three;
  const TiledSamples<double> batch = one.samples(2048);
  for (int step = 0; step < 5; ++step) {
    one.step(batch, 1);
    three.step(batch, 3);
  }
  const auto goes_on = [&] {
    for (int step = 0; step < 5; ++step) {
      one.step(batch, 1);
      three.step(batch, 3);
    }
    return one.all() == three.all() ? 0 : 1;
  };
  EXPECT_EQ(status_of_fork(goes_on), 0);
  EXPECT_EQ(goes_on(), 0);
}

}  // namespace
}  // namespace lockstep
