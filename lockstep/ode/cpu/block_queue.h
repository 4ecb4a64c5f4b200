// Hands out runs of trajectories to threads and tells the caller how far the solve is.
#pragma once

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>

#include "lockstep/core/run_control.h"
#include "lockstep/kernels/tile.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode::cpu {

class BlockQueue {
 public:
  // bytes_per_trajectory: of a block's memory; blocks are kept near a megabyte so that a sink can pool them, and are a
  // power of two of trajectories, so that they lie within the chunks of a sink to a file.
  // lanes: of a register; one that is filled in part takes as long as a full one.
  BlockQueue(std::size_t trajectories, std::size_t bytes_per_trajectory, std::size_t lanes, int threads,
             SolutionSink& sink, const RunControl& control)
      : total_(trajectories), sink_(sink), control_(control) {
    const std::size_t shares = static_cast<std::size_t>(threads) * 8;
    const std::size_t by_memory = (std::size_t{1} << 20) / std::max<std::size_t>(bytes_per_trajectory, 1);
    const std::size_t wanted = std::min({(trajectories + shares - 1) / shares, by_memory, std::size_t{4096}});
    size_ = std::max<std::size_t>(kTileLanes, std::bit_floor(wanted));
    const std::size_t even = (trajectories + static_cast<std::size_t>(threads) - 1) / static_cast<std::size_t>(threads);
    if (threads == 1 || even > kTileLanes) return;
    // One tile a thread: 33 trajectories of float64 on two threads are 24 and 9, sooner done than 32 and 1. Few
    // blocks, of which a sink may copy one that does not lie within a chunk.
    size_ = (std::max<std::size_t>(even, 1) + lanes - 1) / lanes * lanes;
    lanes_ = static_cast<int>(size_);
  }

  // The most trajectories that a thread shall advance side by side, at most a tile.
  int lanes() const { return lanes_; }

  // The next block, count 0 when none is left or the solve was cancelled or has failed.
  SolutionBlock claim() {
    if (control_.cancelled() || failed_.load(std::memory_order_relaxed)) return {};
    const std::size_t first = next_.fetch_add(size_, std::memory_order_relaxed);
    if (first >= total_) return {};
    return sink_.acquire(first, std::min(size_, total_ - first));
  }

  void commit(const SolutionBlock& block) {
    sink_.commit(block);
    if (!control_.progress) return;
    const std::lock_guard lock(mutex_);
    done_ += block.count;
    control_.progress(done_, total_);
  }

  const std::atomic<std::uint32_t>* wishes() const { return sink_.wishes(); }
  void hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) { sink_.hand_in(block, rows); }

  // Another thread threw: the others stop at their next block.
  void fail() noexcept { failed_.store(true, std::memory_order_relaxed); }
  bool stopped() const noexcept { return control_.cancelled() || failed_.load(std::memory_order_relaxed); }

 private:
  std::size_t total_;
  std::size_t size_;
  int lanes_ = kTileLanes;
  SolutionSink& sink_;
  const RunControl& control_;
  std::atomic<std::size_t> next_{0};
  std::atomic<bool> failed_{false};
  std::mutex mutex_;
  std::size_t done_ = 0;
};

}  // namespace lockstep::ode::cpu
