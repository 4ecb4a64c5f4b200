// Some trajectories of an ensemble solved as a problem of their own, their results stored where they belong.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/core/precision.h"
#include "lockstep/ode/detail/open_blocks.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {

// The sink for a solve of Problem::selection(): hands trajectory i on as rows[i]. Neighbours pass without a copy.
class RowSink : public SolutionSink {
 public:
  // `rows` ascending; `whole` takes the whole problem's trajectories and must outlive this sink.
  RowSink(SolutionSink& whole, const Problem& problem, Precision precision, std::vector<std::size_t> rows);

  SolutionBlock acquire(std::size_t first, std::size_t count) override;
  void commit(const SolutionBlock& block) override;
  const std::atomic<std::uint32_t>* wishes() const override { return whole_.wishes(); }
  void hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) override;

 private:
  struct Open {
    SolutionBlock inner;  // of neighbours
    std::vector<std::byte> state, end_state;
    std::vector<TrajectoryRecord> records;
    std::vector<TrajectoryEvents> events;
  };
  void copy(const SolutionBlock& from, std::span<const std::size_t> rows);

  SolutionSink& whole_;
  std::vector<std::size_t> rows_;
  std::size_t row_bytes_;
  std::size_t end_bytes_;
  bool keeps_events_;
  detail::OpenBlocks<Open> open_;
};

}  // namespace lockstep::ode
