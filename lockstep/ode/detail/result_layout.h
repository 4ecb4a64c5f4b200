// A result file being written: its datasets, the order in which rows become committed, and its name.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {

// Consecutive trajectories [first, first + count) on their way to the file.
struct ResultChunk {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t committed = 0;              // rows that are whole
  std::vector<bool> done;                 // [row]
  std::vector<std::byte> state;           // T [row][time][component]
  std::vector<std::byte> end_state;       // T [row][component]
  std::vector<TrajectoryRecord> records;  // [row]
};

class ResultLayout {
 public:
  // Creates the file under a temporary name, everything known before the solve in it, all space taken, every status
  // "cancelled" and the committed counter 0.
  ResultLayout(const std::filesystem::path& path, const Problem& problem, Precision precision,
               const ResultMetadata& metadata, Existing existing);

  // The one place that decides the order of writes: rows, flush, status and counter, flush. A reader of an unfinished
  // file may trust rows whose status is not "cancelled". Flushes come once a second, not with every chunk.
  void store(const ResultChunk& chunk);

  // Gives the file its name. Returns its size in bytes.
  std::uintmax_t publish(const Attributes& attributes);

 private:
  struct Pending {  // rows written whose status is not yet
    std::size_t first = 0;
    std::vector<std::uint8_t> status;
  };
  void commit_pending();

  std::filesystem::path path_;
  Precision precision_;
  std::size_t save_points_;
  std::size_t components_;
  hdf5::File file_;
  struct Datasets {
    hdf5::Dataset state, end_state, status, accepted, rejected, evaluations, end_time, committed;
  };
  std::optional<Datasets> data_;
  std::vector<Pending> pending_;
  std::size_t committed_ = 0;
  std::chrono::steady_clock::time_point last_flush_ = std::chrono::steady_clock::now();
};

}  // namespace lockstep::ode
