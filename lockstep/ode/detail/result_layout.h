// A result file being written: its datasets, the order in which rows become committed, and its name.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/direct_file.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/pending_file.h"
#include "lockstep/ode/detail/event_journal.h"
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
  bool waited = false;                    // the writer has seen it once when it looked for what is done
  std::vector<Row> rows;                  // [row]
  PageBuffer state;                       // T [row][time][component], in phase with the file: see state_phase()
  std::vector<std::byte> end_state;       // T [row][component]
  std::vector<TrajectoryRecord> records;  // [row]
  std::vector<TrajectoryEvents> events;   // [row], or empty where they are not kept
};

class ResultLayout {
 public:
  // With a new pending file: makes its datasets and takes all space. With a resumed one: opens it; the caller knows
  // that it is of this problem.
  ResultLayout(PendingFile pending, const Problem& problem, Precision precision, const ResultMetadata& metadata);
  ~ResultLayout();  // the unfinished file stays where trajectories are committed in it

  // What is known before the solve goes into a new file, every status "cancelled", the committed counter 0. Before the
  // first store(), once; nothing for a resumed file. Apart from the constructor so that the thread that stores can do
  // it, while the solve has begun.
  void begin(const Problem& problem);
  // A new file then gets its visible name, once the disk has it: at the latest with the first commit(). A solve that is
  // over sooner needs no file that outlives it, and waits for the disk in publish() alone. Files with events beside
  // them are shown from the beginning.
  void show();
  bool is_shown() const { return !file_.hidden(); }
  bool show_is_due() const { return !is_shown() && std::chrono::steady_clock::now() >= next_commit_; }

  std::size_t components() const { return components_; }  // that are stored
  // The PageBuffer::phase() of a chunk that begins with trajectory `first`.
  std::size_t state_phase(std::size_t first) const;
  // [trajectory]: committed by an earlier run, with any status but "cancelled".
  const std::vector<bool>& stored_before() const { return stored_before_; }
  const StoredBefore& earlier() const { return earlier_; }

  // Hands rows [row, row + count) of a chunk to the file; commit() makes them count. The one place that decides the
  // order of writes: rows, flush, disk, status and counter, flush. A reader of an unfinished file may trust rows whose
  // status is not "cancelled", and be it after a failure of power.
  void store(const ResultChunk& chunk, std::size_t row, std::size_t count);
  void commit();
  // Waiting for the disk takes no more than a fifth of the time.
  bool commit_is_due() const { return !nothing_to_commit() && std::chrono::steady_clock::now() >= next_commit_; }

  // Nothing more reaches the file: what is committed stays as it is.
  void abandon() noexcept;
  // What a failure to write means to a person.
  Error explain(const Error& cause) const;

  // Adds the attributes and gives the file its name. Returns its size in bytes.
  std::uintmax_t publish(const Attributes& attributes);
  // Adds the attributes and leaves the file unfinished, to be resumed. Returns its name.
  std::filesystem::path leave(const Attributes& attributes);

 private:
  struct Rows {  // whose states are written, but for these
    std::size_t first = 0;
    std::vector<TrajectoryRecord> records;
    std::vector<std::byte> end_state;
  };
  struct Pending {  // rows written whose status is not yet
    std::size_t first = 0;
    std::vector<std::uint8_t> status;
  };
  struct Datasets {
    hdf5::Dataset state, end_state, status, accepted, rejected, evaluations, end_time, committed;
  };
  static constexpr const char* kResumed = "resumed";  // an attribute: how often the file was

  void create(const Problem& problem, const ResultMetadata& metadata);  // with begin(), in result_datasets.cpp
  void reopen();
  void open_journal(const Problem& problem);
  void add_events();
  void open_direct();
  void write_state(const ResultChunk& chunk, std::size_t row, std::size_t count);
  void write_columns();
  void write_run(std::span<const Rows> run, std::size_t count);
  void write_statuses();
  std::size_t kept_trajectories() const { return is_shown() ? committed_ : 0; }  // where the writer ends now
  bool nothing_to_commit() const { return rows_.empty() && pending_.empty(); }
  std::size_t row_bytes() const;
  void add_attributes(const Attributes& attributes);

  std::filesystem::path unfinished_;
  Precision precision_;
  std::size_t trajectories_;
  std::size_t save_points_;
  std::size_t components_;
  std::vector<std::size_t> chosen_;  // components; empty: all
  std::size_t first_trajectory_;
  std::vector<std::string> reset_texts_;
  bool begun_ = true;  // a new file is not
  hdf5::File file_;
  std::optional<Datasets> data_;
  // Nearly all bytes are states: these go to the disk by the side of HDF5, at state_offset_, and of the page cache.
  std::unique_ptr<DirectFile> direct_;  // null where HDF5 has to write them
  std::uint64_t state_offset_ = 0;
  bool direct_offered_ = false;
  std::optional<EventJournal> journal_;  // where events are kept
  std::vector<bool> stored_before_;
  StoredBefore earlier_;
  std::vector<Rows> rows_;
  std::size_t rows_bytes_ = 0;
  PageBuffer piece_;  // of a column, on its way
  std::vector<Pending> pending_;
  std::size_t committed_ = 0;
  bool abandoned_ = false;
  std::chrono::steady_clock::time_point next_commit_;
};

}  // namespace lockstep::ode
