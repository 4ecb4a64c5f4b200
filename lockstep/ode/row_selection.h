// Some trajectories of an ensemble solved as a problem of their own, their results stored where they belong.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <vector>

#include "lockstep/core/precision.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {

// The problem of trajectories rows[0], rows[1], ... alone. With any step control but `common` they get the bits that
// they have in the whole ensemble.
Problem select_rows(const Problem& problem, const std::vector<std::size_t>& rows);

// The sink for a solve of select_rows(): hands trajectory i on as rows[i]. Neighbours pass without a copy.
class RowSink : public SolutionSink {
 public:
  // `rows` ascending; `whole` takes the whole problem's trajectories and must outlive this sink.
  RowSink(SolutionSink& whole, const Problem& problem, Precision precision, std::vector<std::size_t> rows);

  SolutionBlock acquire(std::size_t first, std::size_t count) override;
  void commit(const SolutionBlock& block) override;

 private:
  struct Open {
    SolutionBlock inner;  // of neighbours
    std::vector<std::byte> state, end_state;
    std::vector<TrajectoryRecord> records;
  };
  void copy(const SolutionBlock& from);

  SolutionSink& whole_;
  std::vector<std::size_t> rows_;
  std::size_t row_bytes_;
  std::size_t end_bytes_;
  std::mutex mutex_;
  std::map<std::size_t, Open> open_;  // by token
  std::size_t last_token_ = 0;
};

}  // namespace lockstep::ode
