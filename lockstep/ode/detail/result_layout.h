// A result file being written: its datasets, the order in which rows become committed, and its name.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/pending_file.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {

// Consecutive trajectories [first, first + count) on their way to the file.
struct ResultChunk {
  enum class Row : std::uint8_t { open, done, stored };
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t settled = 0;                // rows that are not open
  std::vector<Row> rows;                  // [row]
  std::vector<std::byte> state;           // T [row][time][component]
  std::vector<std::byte> end_state;       // T [row][component]
  std::vector<TrajectoryRecord> records;  // [row]
};

class ResultLayout {
 public:
  // With a new pending file: makes its datasets, everything known before the solve in it, all space taken, every status
  // "cancelled" and the committed counter 0. With a resumed one: opens it; the caller knows that it is of this problem.
  ResultLayout(PendingFile pending, const Problem& problem, Precision precision, const ResultMetadata& metadata);
  ~ResultLayout();  // the unfinished file stays where trajectories are committed in it

  std::size_t components() const { return components_; }  // that are stored
  // [trajectory]: committed by an earlier run, with any status but "cancelled".
  const std::vector<bool>& stored_before() const { return stored_before_; }

  // Hands rows [row, row + count) of a chunk to the file; commit() makes them count. The one place that decides the
  // order of writes: rows, flush, disk, status and counter, flush. A reader of an unfinished file may trust rows whose
  // status is not "cancelled", and be it after a failure of power.
  void store(const ResultChunk& chunk, std::size_t row, std::size_t count);
  void commit();
  // Waiting for the disk takes no more than a fifth of the time.
  bool commit_is_due() const { return !pending_.empty() && std::chrono::steady_clock::now() >= next_commit_; }

  // Nothing more reaches the file: what is committed stays as it is.
  void abandon() noexcept;
  // What a failure to write means to a person.
  Error explain(const Error& cause) const;

  // Adds the attributes and gives the file its name. Returns its size in bytes.
  std::uintmax_t publish(const Attributes& attributes);
  // Adds the attributes and leaves the file unfinished, to be resumed. Returns its name.
  std::filesystem::path leave(const Attributes& attributes);

 private:
  struct Pending {  // rows written whose status is not yet
    std::size_t first = 0;
    std::vector<std::uint8_t> status;
  };
  struct Datasets {
    hdf5::Dataset state, end_state, status, accepted, rejected, evaluations, end_time, committed;
  };
  void create(const Problem& problem, const ResultMetadata& metadata);
  void reopen();
  void add_attributes(const Attributes& attributes);

  std::filesystem::path unfinished_;
  Precision precision_;
  std::size_t trajectories_;
  std::size_t save_points_;
  std::size_t components_;
  hdf5::File file_;
  std::optional<Datasets> data_;
  std::vector<bool> stored_before_;
  std::vector<Pending> pending_;
  std::size_t committed_ = 0;
  bool abandoned_ = false;
  std::chrono::steady_clock::time_point next_commit_;
};

}  // namespace lockstep::ode
