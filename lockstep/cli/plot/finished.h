// Trajectories that a file has the numbers of: while a solve is under way, or was stopped, others are without.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ode/result_file.h"

namespace lockstep::cli {

// The numbers of cancelled ones mean nothing, whatever is stored: their space may not have been written yet.
inline bool is_finished(const ode::TrajectoryRecord& record) { return record.status != ode::Status::cancelled; }

// Those of a file, or of two files that have as many trajectories, by their indices, ascending.
class FinishedTrajectories {
 public:
  explicit FinishedTrajectories(const ode::ResultFile& file);
  FinishedTrajectories(const ode::ResultFile& file, const ode::ResultFile& other);

  std::size_t size() const { return some_ ? some_->size() : all_; }
  bool empty() const { return size() == 0; }
  std::size_t operator[](std::size_t i) const { return some_ ? (*some_)[i] : i; }

 private:
  void keep(const ode::ResultFile& file);  // of those that there are, what is finished in it

  std::size_t all_;
  std::optional<std::vector<std::size_t>> some_;  // where some are not
};

// "60 of 100 trajectories left out: not finished in a.h5.part"; "" where all are finished.
std::string left_out_text(const ode::ResultFile& file);

}  // namespace lockstep::cli
