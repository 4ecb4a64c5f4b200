#include "lockstep/kernels/mlp/detail/shared_steps.h"

#include <algorithm>

namespace lockstep::mlp {
namespace {

// A share is one stretch of the leaves of a tree of six levels: at most two branches of each level cover it.
constexpr std::size_t kMostPublished = 12;

template <class T>
void add(const T* a, const T* b, std::size_t count, T* to) {
  for (std::size_t i = 0; i < count; ++i) to[i] = a[i] + b[i];
}

}  // namespace

template <class T>
SharedSteps<T>::SharedSteps(const Mlp& mlp, CpuTarget target, const RegressionCost<T>& cost, std::size_t workspace,
                            Team& team, int threads)
    : mlp_(mlp),
      target_(target),
      cost_(cost),
      team_(team),
      workspace_(workspace),
      threads_(static_cast<std::size_t>(threads)),
      parameters_(mlp.parameter_count()),
      stride_(padded<T>(parameters_)),
      followers_(threads_),
      parts_(std::make_unique<Part[]>(threads_)) {
  for (std::size_t thread = 0; thread < threads_; ++thread) {
    for (AlignedBuffer<T>& rows : parts_[thread].rows)
      rows = AlignedBuffer<T>(kMostPublished * stride_ + kApart / sizeof(T));
  }
}

template <class T>
void SharedSteps<T>::make_room(Own& own) const {
  if (!own.rows.empty()) return;
  own.workspace = AlignedBuffer<T>(workspace_ + kApart / sizeof(T));
  own.rows = AlignedBuffer<T>(kMostGroups * stride_ + kApart / sizeof(T));
}

template <class T>
const SumTree& SharedSteps<T>::tree_of(const RegressionBatch<T>& batch) {
  const auto [found, fresh] = trees_.try_emplace(batch.samples);
  if (fresh) {
    const std::size_t chunks = batch.chunks(), groups = batch.groups();
    std::vector<std::size_t> sizes(groups);
    for (std::size_t g = 0; g < groups; ++g) {
      const std::size_t first = g * chunks / groups, end = (g + 1) * chunks / groups;
      sizes[g] = std::min(end * batch.chunk_tiles, batch.tiles()) - first * batch.chunk_tiles;
    }
    found->second = make_sum_tree(sizes, threads_);
  }
  return found->second;
}

template <class T>
void SharedSteps<T>::contribute(std::size_t thread, std::uint32_t step, const ReverseNet<T>& net,
                                const RegressionBatch<T>& batch, const SumTree& tree, Own& own) {
  const SumTree::Share& share = tree.shares[thread];
  Part& part = parts_[thread];
  Box& box = part.boxes[step % 2];
  T* const published = part.rows[step % 2].data();
  bring<Use::write>(published, share.published.size() * stride_);
  bring<Use::write>(box.losses.data(), share.published.size());
  part.step.bring();
  if (share.groups.size() == 1) {  // nothing to add before it is published
    box.losses[0] = sum_group(net, cost_, batch, share.groups[0], published, own.workspace.data());
    return part.step.set(step);
  }
  T* const rows = own.rows.data();
  for (std::size_t i = 0; i < share.groups.size(); ++i) {
    own.losses[i] = sum_group(net, cost_, batch, share.groups[i], rows + i * stride_, own.workspace.data());
  }
  for (const auto& [to, from] : share.additions) {
    own.losses[to] += own.losses[from];
    add(rows + to * stride_, rows + from * stride_, parameters_, rows + to * stride_);
  }
  for (std::size_t i = 0; i < share.published.size(); ++i) {
    box.losses[i] = own.losses[share.published[i]];
    std::copy_n(rows + share.published[i] * stride_, parameters_, published + i * stride_);
  }
  part.step.set(step);
}

template <class T>
std::optional<double> SharedSteps<T>::complete(std::size_t thread, std::uint32_t step, const SumTree& tree, Own& own,
                                               T* gradient) {
  bool failed = false;
  for (std::size_t other = 0; other < threads_; ++other) {
    if (other == thread) continue;
    Part& part = parts_[other];
    part.step.await_change(step - 1, team_.patience());
    const Box& box = part.boxes[step % 2];
    bring<Use::read>(part.rows[step % 2].data(), tree.shares[other].published.size() * stride_);
    failed = failed || box.failed;
  }
  if (failed) return std::nullopt;
  const T* row[kMostGroups];
  for (std::size_t t = 0; t < threads_; ++t) {
    const SumTree::Share& share = tree.shares[t];
    const Box& box = parts_[t].boxes[step % 2];
    for (std::size_t i = 0; i < share.published.size(); ++i) {
      const std::uint32_t group = share.groups[share.published[i]];
      row[group] = parts_[t].rows[step % 2].data() + i * stride_;
      own.losses[group] = box.losses[i];
    }
  }
  for (const SumTree::Addition& addition : tree.common) {
    const auto [to, from] = addition;
    own.losses[to] += own.losses[from];
    T* const sum = &addition == &tree.common.back() ? gradient : own.rows.data() + to * stride_;
    add(row[to], row[from], parameters_, sum);
    row[to] = sum;
  }
  if (tree.common.empty()) std::copy_n(row[0], parameters_, gradient);
  return own.losses[0];
}

template <class T>
std::optional<double> SharedSteps<T>::take(ReverseNet<T>& net, std::span<const T> parameters,
                                           const RegressionBatch<T>& batch, std::span<T> gradient,
                                           const StepAhead<T>& ahead) {
  if (team_.left_behind()) {
    stop();
    for (auto& follower : followers_) static_cast<void>(follower.release());
  }
  make_room(caller_);
  const SumTree& tree = tree_of(batch);
  const std::uint32_t before = ordered_.number(), step = before + 1;
  order_ = {batch, &tree, ahead.rate};
  if (!started_) {
    start_ = parameters.data();
    stepper_ = ahead.stepper;
    begun_ = before;
    for (std::size_t t = 0; t < threads_; ++t) {
      parts_[t].step.set(before);
      for (Box& box : parts_[t].boxes) box.failed = false;
    }
  }
  ordered_.set(step);
  if (started_) {
    // The others are at their parts while the caller catches up with them.
    repack_tiles(net, parameters.data());
    parts_[0].step.wake();  // of the step before
    ordered_.wake();
  } else {
    started_ = true;
    team_.start(static_cast<int>(threads_), body_);
    repack_tiles(net, parameters.data());
  }
  contribute(0, step, net, batch, tree, caller_);
  const std::optional<double> loss = complete(0, step, tree, caller_, gradient.data());
  if (!loss) stop();
  ordered_.bring();
  return loss;
}

template <class T>
void SharedSteps<T>::stop() {
  if (!started_) return;
  started_ = false;
  order_.tree = nullptr;
  ordered_.set(ordered_.number() + 1);
  ordered_.wake();
  parts_[0].step.wake();
  try {
    team_.join();
  } catch (...) {  // a thread had no memory for its part, or its step threw: the caller's own says so to the caller
  }
}

template <class T>
void SharedSteps<T>::follow(std::size_t thread) {
  std::uint32_t step = begun_;
  try {
    if (!followers_[thread]) {
      auto fresh = std::make_unique<Follower>();
      fresh->net = prepare_reverse<T>(mlp_, target_);
      fresh->parameters.resize(parameters_);
      fresh->gradient.resize(parameters_);
      make_room(*fresh);
      followers_[thread] = std::move(fresh);
    }
    Follower& own = *followers_[thread];
    std::copy_n(start_, parameters_, own.parameters.begin());
    own.stepper = stepper_->copy();
    for (;;) {
      repack_tiles(own.net, own.parameters.data());
      ordered_.await_change(step, team_.patience());
      ++step;
      const Order order = order_;
      if (order.tree == nullptr) return;
      contribute(thread, step, own.net, order.batch, *order.tree, own);
      const bool whole = complete(thread, step, *order.tree, own, own.gradient.data()).has_value();
      if (whole) own.stepper->step(own.parameters, own.gradient, order.rate);
      // Late, which costs the others nothing: nobody's part of the step waits for that.
      parts_[thread].step.wake();
      if (!whole) return;
    }
  } catch (...) {
    Part& part = parts_[thread];
    const std::uint32_t next = part.step.number() + 1;
    part.boxes[next % 2].failed = true;
    part.step.set(next);
    part.step.wake();
    throw;
  }
}

template class SharedSteps<float>;
template class SharedSteps<double>;

}  // namespace lockstep::mlp
