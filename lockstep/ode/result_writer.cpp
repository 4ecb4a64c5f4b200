#include "lockstep/ode/result_writer.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <exception>
#include <limits>
#include <map>
#include <mutex>
#include <numeric>
#include <thread>

#include "lockstep/core/error.h"
#include "lockstep/ode/detail/result_layout.h"

namespace lockstep::ode {
namespace {

constexpr std::size_t kChunkBytes = std::size_t{4} << 20;  // of state: large enough that a write costs only its bytes
constexpr std::size_t kLeastChunkRows = 64;                // two tiles
constexpr std::size_t kMostChunkRows = std::size_t{1} << 16;
constexpr std::size_t kUnwrittenChunks = 8;  // of memory between the engine and the disk

// A power of two, so that an engine's blocks of a power of two of trajectories lie within one chunk.
std::size_t rows_per_chunk(std::size_t row_bytes) {
  const std::size_t rows = std::bit_floor(std::max<std::size_t>(kChunkBytes / std::max<std::size_t>(row_bytes, 1), 1));
  return std::clamp(rows, kLeastChunkRows, kMostChunkRows);
}

}  // namespace

// Mutex: guards chunks, queue, pool and failure. Numbers inside a chunk are written by the engine without it, each row
// by its block's owner, and read by the writing thread after the commit of the last row.
class ResultWriter::Implementation {
 public:
  Implementation(const std::filesystem::path& path, const Problem& problem, Precision precision,
                 ResultMetadata metadata, Existing existing)
      : problem_(problem),
        file_(path, problem, precision, metadata, existing),
        element_bytes_(precision == Precision::f32 ? 4 : 8),
        components_(problem.rhs->components()),
        row_elements_(problem.save_points() * components_),
        chunk_rows_(rows_per_chunk(row_elements_ * element_bytes_)),
        thread_([this] { write_chunks(); }) {}

  ~Implementation() { stop(); }

  SolutionBlock acquire(std::size_t first, std::size_t count) {
    std::unique_lock lock(mutex_);
    written_.wait(lock, [&] { return failure_ || queue_.size() < kUnwrittenChunks; });
    if (failure_) std::rethrow_exception(failure_);
    SolutionBlock block{first, count};
    if (chunk_index(first) == chunk_index(first + std::max<std::size_t>(count, 1) - 1)) {
      point_into(block, chunk_of(first), first);
    } else {
      // Across chunks: a chunk of its own, copied on commit.
      block.token = ++last_token_;
      point_into(block, loose_.emplace(block.token, new_chunk(first, count)).first->second, first);
    }
    return block;
  }

  void commit(const SolutionBlock& block) {
    std::unique_lock lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
    if (block.token == 0) {
      mark_done(block.first, block.count);
      return;
    }
    const auto loose = loose_.find(block.token);
    for (std::size_t done = 0; done < block.count;) {
      const std::size_t first = block.first + done;
      const std::size_t count = std::min(block.count - done, chunk_rows_ - first % chunk_rows_);
      copy_rows(loose->second, chunk_of(first), first, count);
      mark_done(first, count);
      done += count;
    }
    loose_.erase(loose);
  }

  std::uintmax_t finish(const Attributes& attributes) {
    stop();
    if (failure_) std::rethrow_exception(failure_);
    const std::size_t total = problem_.trajectories();
    for (std::size_t first = 0; first < total; first += chunk_rows_) {
      const std::size_t index = chunk_index(first);
      if (stored_.size() > index && stored_[index]) continue;
      ResultChunk& chunk = chunk_of(first);
      for (std::size_t row = 0; row < chunk.count; ++row) {
        if (!chunk.done[row]) mark_cancelled(chunk, row);
      }
      file_.store(chunk);
      retire(index);
    }
    return file_.publish(attributes);
  }

 private:
  std::size_t chunk_index(std::size_t trajectory) const { return trajectory / chunk_rows_; }

  ResultChunk new_chunk(std::size_t first, std::size_t count) {
    ResultChunk chunk;
    if (!pool_.empty()) {
      chunk = std::move(pool_.back());
      pool_.pop_back();
    }
    chunk.first = first;
    chunk.count = count;
    chunk.committed = 0;
    chunk.done.assign(count, false);
    chunk.records.assign(count, TrajectoryRecord{});
    chunk.state.resize(count * row_elements_ * element_bytes_);
    chunk.end_state.resize(count * components_ * element_bytes_);
    return chunk;
  }

  ResultChunk& chunk_of(std::size_t trajectory) {
    const std::size_t index = chunk_index(trajectory);
    const auto found = chunks_.find(index);
    if (found != chunks_.end()) return found->second;
    const std::size_t first = index * chunk_rows_;
    return chunks_.emplace(index, new_chunk(first, std::min(chunk_rows_, problem_.trajectories() - first)))
        .first->second;
  }

  void point_into(SolutionBlock& block, ResultChunk& chunk, std::size_t first) const {
    const std::size_t row = first - chunk.first;
    block.state = chunk.state.data() + row * row_elements_ * element_bytes_;
    block.end_state = chunk.end_state.data() + row * components_ * element_bytes_;
    block.records = chunk.records.data() + row;
  }

  void copy_rows(const ResultChunk& from, ResultChunk& to, std::size_t first, std::size_t count) const {
    const auto copy = [&](const auto& source, auto& target, std::size_t bytes) {
      std::memcpy(target.data() + (first - to.first) * bytes, source.data() + (first - from.first) * bytes,
                  count * bytes);
    };
    copy(from.state, to.state, row_elements_ * element_bytes_);
    copy(from.end_state, to.end_state, components_ * element_bytes_);
    std::copy_n(from.records.begin() + static_cast<std::ptrdiff_t>(first - from.first), count,
                to.records.begin() + static_cast<std::ptrdiff_t>(first - to.first));
  }

  void mark_done(std::size_t first, std::size_t count) {
    ResultChunk& chunk = chunk_of(first);
    std::fill_n(chunk.done.begin() + static_cast<std::ptrdiff_t>(first - chunk.first), count, true);
    chunk.committed += count;
    if (chunk.committed < chunk.count) return;
    queue_.push_back(chunk_index(first));
    ready_.notify_one();
  }

  void mark_cancelled(ResultChunk& chunk, std::size_t row) const {
    const auto fill = [&](std::vector<std::byte>& bytes, std::size_t width) {
      for (std::size_t i = row * width; i < (row + 1) * width; ++i) {
        if (element_bytes_ == 4) {
          const float nan = std::numeric_limits<float>::quiet_NaN();
          std::memcpy(bytes.data() + i * 4, &nan, 4);
        } else {
          const double nan = std::numeric_limits<double>::quiet_NaN();
          std::memcpy(bytes.data() + i * 8, &nan, 8);
        }
      }
    };
    fill(chunk.state, row_elements_);
    fill(chunk.end_state, components_);
    chunk.records[row] = TrajectoryRecord{};
    chunk.records[row].end_time = problem_.start_time(chunk.first + row);
  }

  // The chunk is in the file: its memory serves another.
  void retire(std::size_t index) {
    const auto chunk = chunks_.find(index);
    if (pool_.size() < kUnwrittenChunks) pool_.push_back(std::move(chunk->second));
    chunks_.erase(chunk);
    if (stored_.size() <= index) stored_.resize(index + 1, false);
    stored_[index] = true;
  }

  void write_chunks() {
    std::unique_lock lock(mutex_);
    while (true) {
      ready_.wait(lock, [&] { return stopping_ || !queue_.empty(); });
      if (queue_.empty() || failure_) return;
      const std::size_t index = queue_.front();
      const ResultChunk& chunk = chunks_.at(index);
      lock.unlock();
      std::exception_ptr failure;
      try {
        file_.store(chunk);
      } catch (...) {
        failure = std::current_exception();
      }
      lock.lock();
      failure_ = failure;
      queue_.pop_front();
      if (!failure) retire(index);
      written_.notify_all();
    }
  }

  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    ready_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  const Problem& problem_;
  ResultLayout file_;
  std::size_t element_bytes_;
  std::size_t components_;
  std::size_t row_elements_;  // of state
  std::size_t chunk_rows_;

  std::mutex mutex_;
  std::condition_variable ready_;              // a chunk is complete, or the end has come
  std::condition_variable written_;            // a chunk was stored
  std::map<std::size_t, ResultChunk> chunks_;  // open or queued, by index
  std::map<std::size_t, ResultChunk> loose_;   // blocks across chunks, by token
  std::vector<ResultChunk> pool_;
  std::deque<std::size_t> queue_;
  std::vector<bool> stored_;  // [chunk]
  std::size_t last_token_ = 0;
  std::exception_ptr failure_;
  bool stopping_ = false;
  std::thread thread_;
};

ResultWriter::ResultWriter(const std::filesystem::path& path, const Problem& problem, Precision precision,
                           ResultMetadata metadata, Existing existing)
    : implementation_(std::make_unique<Implementation>(path, problem, precision, std::move(metadata), existing)) {}

ResultWriter::~ResultWriter() = default;

SolutionBlock ResultWriter::acquire(std::size_t first, std::size_t count) {
  return implementation_->acquire(first, count);
}

void ResultWriter::commit(const SolutionBlock& block) { implementation_->commit(block); }

std::uintmax_t ResultWriter::finish(const Attributes& attributes) { return implementation_->finish(attributes); }

}  // namespace lockstep::ode
