// Gathers the trajectories of a solve into chunks, which a thread of its own stores in a result file.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "lockstep/core/pending_file.h"
#include "lockstep/ode/detail/result_layout.h"
#include "lockstep/ode/problem.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/solution.h"

namespace lockstep::ode {

// What ResultWriter does where all components are stored; its functions are described there. The mutex guards chunks,
// queue, pool, stored rows and failure. Numbers inside a chunk are written by the engine without it, each row by its
// block's owner, and read by the writing thread after the row's commit.
class ChunkWriter : public SolutionSink {
 public:
  ChunkWriter(PendingFile pending, const Problem& problem, Precision precision, const ResultMetadata& metadata);
  // What is done is stored: a solve that ends by an exception can be continued.
  ~ChunkWriter() override;

  SolutionBlock acquire(std::size_t first, std::size_t count) override;
  void commit(const SolutionBlock& block) override;
  const std::atomic<std::uint32_t>* wishes() const override { return &wishes_; }
  void hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) override;
  std::vector<std::size_t> open_rows();
  const StoredBefore& stored_before() const { return file_.earlier(); }
  std::uintmax_t open_bytes() { return open_rows().size() * (row_elements_ + components_) * element_bytes_; }
  std::uintmax_t finish(const Attributes& attributes);
  std::filesystem::path leave(const Attributes& attributes, bool fill);

 private:
  using Row = ResultChunk::Row;
  struct Run {  // rows [row, row + count) of a chunk that are done and not stored
    ResultChunk* chunk;
    std::size_t row;
    std::size_t count;
  };

  std::size_t row_bytes() const { return row_elements_ * element_bytes_; }  // of state
  std::size_t chunk_index(std::size_t trajectory) const { return trajectory / chunk_rows_; }

  // ---- chunks: from the engine to the queue
  ResultChunk new_chunk(std::size_t first, std::size_t count);
  ResultChunk& chunk_of(std::size_t trajectory);
  void point_into(SolutionBlock& block, ResultChunk& chunk, std::size_t first) const;
  void copy_rows(const ResultChunk& from, ResultChunk& to, std::size_t first, std::size_t count) const;
  // Rows [row, row + count) of a block are final.
  void settle(const SolutionBlock& block, std::size_t row, std::size_t count);
  void mark_done(std::size_t first, std::size_t count);
  static std::vector<Run> done_runs(ResultChunk& chunk);
  void mark_stored(const Run& run);
  // All rows of the chunk are in the file: its memory serves another.
  void retire(std::size_t index);

  // ---- the writing thread
  // Whole chunks as they come; a few times a second also what is done of those that have been open for longer.
  void write_chunks();
  std::exception_ptr store(const std::vector<Run>& runs);
  // What fails ends all writing: the file stays as it is.
  template <class Work>
  std::exception_ptr attempt(Work work);
  void stop();

  // ---- the end, when that thread has ended
  // After a failure the file is left as it stands: every trajectory committed before stays readable.
  template <class Body>
  auto guarded(Body body);
  void store_rest();  // and commits it
  void store_done();
  void fill_open_rows();
  void fill_with_nan(auto& bytes) const;

  const Problem& problem_;
  ResultLayout file_;
  std::size_t element_bytes_;
  std::size_t components_;
  std::size_t row_elements_;  // of state
  std::size_t chunk_rows_;
  std::size_t unwritten_chunks_;  // at most

  std::mutex mutex_;
  std::condition_variable ready_;              // a chunk is complete, or the end has come
  std::condition_variable written_;            // a chunk was stored
  std::map<std::size_t, ResultChunk> chunks_;  // open or queued, by index
  std::map<std::size_t, ResultChunk> loose_;   // blocks across chunks, by token
  std::vector<ResultChunk> pool_;
  std::deque<std::size_t> queue_;
  std::vector<bool> stored_;  // [trajectory], by this run or one before
  std::atomic<std::uint32_t> wishes_{0};
  std::size_t last_token_ = 0;
  std::exception_ptr failure_;
  bool stopping_ = false;
  bool finished_ = false;  // or tried to
  std::thread thread_;
};

}  // namespace lockstep::ode
