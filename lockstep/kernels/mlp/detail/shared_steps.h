// Steps of gradient descent that several threads take in step, each with a copy of the parameters: one exchange of sums
// a step, and no waiting for the outcome.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/parallel.h"
#include "lockstep/kernels/mlp/detail/regression_batch.h"
#include "lockstep/kernels/mlp/detail/sum_tree.h"
#include "lockstep/kernels/step_ahead.h"

namespace lockstep::mlp {

template <class T>
class SharedSteps {
 public:
  // `cost` stays where it is, and changes between steps alone. `threads` of the team. workspace: numbers that a chunk
  // takes.
  SharedSteps(const Mlp& mlp, CpuTarget target, const RegressionCost<T>& cost, std::size_t workspace, Team& team,
              int threads);
  ~SharedSteps() { stop(); }
  SharedSteps(const SharedSteps&) = delete;
  SharedSteps& operator=(const SharedSteps&) = delete;

  // The caller's part of a step: its loss without the batch's scale, and its gradient. The first call, and the first
  // after stop(), gives the other threads parameters and stepper; at each later one they have made the step announced
  // by the call before. `net` is the caller's and becomes one of these parameters. Nothing, and stopped, where a thread
  // could not go on; the gradient is then none.
  std::optional<double> take(ReverseNet<T>& net, std::span<const T> parameters, const RegressionBatch<T>& batch,
                             std::span<T> gradient, const StepAhead<T>& ahead);
  int threads() const { return static_cast<int>(threads_); }
  // The team is free for other work.
  void stop();

 private:
  // What one thread works with.
  struct alignas(128) Own {
    AlignedBuffer<T> workspace;
    AlignedBuffer<T> rows;  // [group of its share], later those of the additions in common
    alignas(128) std::array<double, kMostGroups> losses;  // likewise
  };
  struct Follower : Own {
    ReverseNet<T> net;
    std::vector<T> parameters, gradient;
    std::unique_ptr<Stepper<T>> stepper;
  };
  // What the others read of a thread. Of two such boxes one is filled while the other may still be read: who fills it
  // again has seen that all have come a step further.
  struct alignas(128) Box {
    bool failed = false;
    std::array<double, kMostGroups> losses;  // of the rows published
  };
  struct alignas(128) Part {
    Signal step;  // whose box is filled
    alignas(128) std::array<Box, 2> boxes;
    std::array<AlignedBuffer<T>, 2> rows;  // of the boxes, whose lines others write
  };
  // To the others. They have read it before they publish.
  struct Order {
    RegressionBatch<T> batch;
    const SumTree* tree;  // null: stop
    double rate;
  };

  struct Body {
    SharedSteps* steps;
    void operator()(int thread) const { steps->follow(static_cast<std::size_t>(thread)); }
  };

  void follow(std::size_t thread);
  void make_room(Own& own) const;
  const SumTree& tree_of(const RegressionBatch<T>& batch);
  void contribute(std::size_t thread, std::uint32_t step, const ReverseNet<T>& net, const RegressionBatch<T>& batch,
                  const SumTree& tree, Own& own);
  std::optional<double> complete(std::size_t thread, std::uint32_t step, const SumTree& tree, Own& own, T* gradient);

  const Mlp mlp_;
  const CpuTarget target_;
  const RegressionCost<T>& cost_;
  Team& team_;
  const std::size_t workspace_, threads_, parameters_, stride_;
  std::map<std::size_t, SumTree> trees_;  // by samples
  Own caller_;
  std::vector<std::unique_ptr<Follower>> followers_;  // [thread], each made by its thread
  std::unique_ptr<Part[]> parts_;                     // [thread]
  const Body body_{this};
  bool started_ = false;
  const T* start_ = nullptr;  // parameters for a start, and the stepper
  const Stepper<T>* stepper_ = nullptr;
  std::uint32_t begun_ = 0;  // step number at the start
  alignas(128) Signal ordered_;
  Order order_{};
};

}  // namespace lockstep::mlp
