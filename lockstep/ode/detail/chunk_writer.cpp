#include "lockstep/ode/detail/chunk_writer.h"

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstring>
#include <limits>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"

namespace lockstep::ode {
namespace {

// Of state: large enough that a write costs only its bytes.
constexpr std::size_t kChunkBytes = std::size_t{4} << 20;
constexpr std::size_t kLeastChunkRows = 64;  // two tiles
constexpr std::size_t kMostChunkRows = std::size_t{1} << 16;
// Of memory between the engine and the disk: a disk that pauses for a tenth of a second holds up nobody.
constexpr std::size_t kUnwrittenBytes = std::size_t{128} << 20;
constexpr std::size_t kLeastUnwrittenChunks = 2;
constexpr std::chrono::milliseconds kGatheringInterval{250};

// A power of two, so that an engine's blocks of a power of two of trajectories lie within one chunk.
std::size_t rows_per_chunk(std::size_t row_bytes) {
  const std::size_t rows = std::bit_floor(std::max<std::size_t>(kChunkBytes / std::max<std::size_t>(row_bytes, 1), 1));
  return std::clamp(rows, kLeastChunkRows, kMostChunkRows);
}

}  // namespace

ChunkWriter::ChunkWriter(PendingFile pending, const Problem& problem, Precision precision,
                         const ResultMetadata& metadata)
    : problem_(problem),
      file_(std::move(pending), problem, precision, metadata),
      element_bytes_(precision == Precision::f32 ? 4 : 8),
      components_(file_.components()),
      row_elements_(problem.save_points() * components_),
      chunk_rows_(rows_per_chunk(row_elements_ * element_bytes_)),
      unwritten_chunks_(
          std::max(kUnwrittenBytes / std::max<std::size_t>(chunk_rows_ * row_bytes(), 1), kLeastUnwrittenChunks)),
      stored_(file_.stored_before()),
      thread_(start_thread([this] { write_chunks(); }, "one that writes the results")) {}

ChunkWriter::~ChunkWriter() {
  stop();
  if (failure_ || finished_) return;
  try {
    store_rest();
  } catch (...) {
    file_.abandon();
  }
}

SolutionBlock ChunkWriter::acquire(std::size_t first, std::size_t count) {
  std::unique_lock lock(mutex_);
  written_.wait(lock, [&] { return failure_ || queue_.size() < unwritten_chunks_; });
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

void ChunkWriter::commit(const SolutionBlock& block) {
  std::unique_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  if (block.handed_in == nullptr) {
    settle(block, 0, block.count);
  } else {
    for (std::size_t row = 0; row < block.count;) {
      std::size_t end = row;
      while (end < block.count && block.handed_in[end] == 0) ++end;
      if (end > row) settle(block, row, end - row);
      row = end + 1;
    }
  }
  loose_.erase(block.token);
}

void ChunkWriter::hand_in(const SolutionBlock& block, std::span<const std::size_t> rows) {
  std::unique_lock lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  for (std::size_t i = 0; i < rows.size();) {
    std::size_t end = i + 1;
    while (end < rows.size() && rows[end] == rows[end - 1] + 1) ++end;
    settle(block, rows[i], end - i);
    i = end;
  }
}

std::vector<std::size_t> ChunkWriter::open_rows() {
  const std::lock_guard lock(mutex_);
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < stored_.size(); ++i) {
    if (!stored_[i]) rows.push_back(i);
  }
  return rows;
}

template <class Body>
auto ChunkWriter::guarded(Body body) {
  stop();
  if (failure_) std::rethrow_exception(failure_);
  finished_ = true;
  try {
    return body();
  } catch (const Error& error) {
    file_.abandon();
    throw file_.explain(error);
  }
}

std::uintmax_t ChunkWriter::finish(const Attributes& attributes) {
  return guarded([&] {
    store_done();
    if (file_.is_shown()) file_.commit();
    fill_open_rows();
    return file_.publish(attributes);
  });
}

std::filesystem::path ChunkWriter::leave(const Attributes& attributes, bool fill) {
  return guarded([&] {
    store_rest();
    if (fill) fill_open_rows();
    return file_.leave(attributes);
  });
}

ResultChunk ChunkWriter::new_chunk(std::size_t first, std::size_t count) {
  ResultChunk chunk;
  if (!pool_.empty()) {
    chunk = std::move(pool_.back());
    pool_.pop_back();
  }
  chunk.first = first;
  chunk.count = count;
  chunk.rows.assign(count, Row::open);
  chunk.settled = 0;
  chunk.waited = false;
  chunk.records.assign(count, TrajectoryRecord{});
  if (problem_.keep_events) chunk.events.assign(count, {});
  chunk.state.fit(count * row_bytes(), file_.state_phase(first));
  chunk.end_state.resize(count * components_ * element_bytes_);
  return chunk;
}

ResultChunk& ChunkWriter::chunk_of(std::size_t trajectory) {
  const std::size_t index = chunk_index(trajectory);
  const auto found = chunks_.find(index);
  if (found != chunks_.end()) return found->second;
  const std::size_t first = index * chunk_rows_;
  ResultChunk& chunk =
      chunks_.emplace(index, new_chunk(first, std::min(chunk_rows_, problem_.trajectories() - first))).first->second;
  for (std::size_t row = 0; row < chunk.count; ++row) {
    if (!stored_[first + row]) continue;
    chunk.rows[row] = Row::stored;
    ++chunk.settled;
  }
  return chunk;
}

void ChunkWriter::point_into(SolutionBlock& block, ResultChunk& chunk, std::size_t first) const {
  const std::size_t row = first - chunk.first;
  block.state = chunk.state.data() + row * row_elements_ * element_bytes_;
  block.end_state = chunk.end_state.data() + row * components_ * element_bytes_;
  block.records = chunk.records.data() + row;
  if (problem_.keep_events) block.events = chunk.events.data() + row;
}

void ChunkWriter::copy_rows(const ResultChunk& from, ResultChunk& to, std::size_t first, std::size_t count) const {
  const auto copy = [&](const auto& source, auto& target, std::size_t bytes) {
    std::memcpy(target.data() + (first - to.first) * bytes, source.data() + (first - from.first) * bytes,
                count * bytes);
  };
  copy(from.state, to.state, row_elements_ * element_bytes_);
  copy(from.end_state, to.end_state, components_ * element_bytes_);
  std::copy_n(from.records.begin() + static_cast<std::ptrdiff_t>(first - from.first), count,
              to.records.begin() + static_cast<std::ptrdiff_t>(first - to.first));
  for (std::size_t i = first; !from.events.empty() && i < first + count; ++i)
    to.events[i - to.first] = from.events[i - from.first];
}

void ChunkWriter::settle(const SolutionBlock& block, std::size_t row, std::size_t count) {
  const auto loose = loose_.find(block.token);
  for (std::size_t done = 0; done < count;) {
    const std::size_t first = block.first + row + done;
    const std::size_t here = std::min(count - done, chunk_rows_ - first % chunk_rows_);
    if (loose != loose_.end()) copy_rows(loose->second, chunk_of(first), first, here);
    mark_done(first, here);
    done += here;
  }
}

void ChunkWriter::mark_done(std::size_t first, std::size_t count) {
  ResultChunk& chunk = chunk_of(first);
  std::fill_n(chunk.rows.begin() + static_cast<std::ptrdiff_t>(first - chunk.first), count, Row::done);
  chunk.settled += count;
  if (chunk.settled < chunk.count) return;
  queue_.push_back(chunk_index(first));
  ready_.notify_one();
}

std::vector<ChunkWriter::Run> ChunkWriter::done_runs(ResultChunk& chunk) {
  std::vector<Run> runs;
  for (std::size_t row = 0; row < chunk.count;) {
    std::size_t end = row;
    while (end < chunk.count && chunk.rows[end] == Row::done) ++end;
    if (end > row) runs.push_back({&chunk, row, end - row});
    row = std::max(end, row + 1);
  }
  return runs;
}

void ChunkWriter::mark_stored(const Run& run) {
  const std::size_t first = run.chunk->first + run.row;
  for (std::size_t i = 0; i < run.count; ++i) {
    run.chunk->rows[run.row + i] = Row::stored;
    stored_[first + i] = true;
  }
}

void ChunkWriter::retire(std::size_t index) {
  const auto chunk = chunks_.find(index);
  if (pool_.size() < unwritten_chunks_) pool_.push_back(std::move(chunk->second));
  chunks_.erase(chunk);
}

void ChunkWriter::write_chunks() {
  std::exception_ptr failure = attempt([&] { file_.begin(problem_); });
  std::unique_lock lock(mutex_);
  if (failure) {
    failure_ = failure;
    written_.notify_all();
    return;
  }
  auto next_gathering = std::chrono::steady_clock::now() + kGatheringInterval;
  while (true) {
    ready_.wait_until(lock, next_gathering, [&] { return stopping_ || !queue_.empty(); });
    if (failure_ || (stopping_ && queue_.empty())) return;
    std::vector<Run> runs;
    const bool whole = !queue_.empty();
    if (whole) runs = done_runs(chunks_.at(queue_.front()));
    if (std::chrono::steady_clock::now() >= next_gathering) {
      for (auto& [index, chunk] : chunks_) {
        if (whole && index == queue_.front()) continue;
        // Most chunks are whole before it is their turn; parts of pages cost a disk far more.
        if (!std::exchange(chunk.waited, true)) continue;
        const std::vector<Run> more = done_runs(chunk);
        runs.insert(runs.end(), more.begin(), more.end());
      }
      next_gathering = std::chrono::steady_clock::now() + kGatheringInterval;
      wishes_.fetch_add(1, std::memory_order_relaxed);  // for the next time
    }
    lock.unlock();
    failure = store(runs);
    lock.lock();
    if (failure) {
      failure_ = failure;
      queue_.clear();
      written_.notify_all();
      return;
    }
    for (const Run& run : runs) mark_stored(run);
    if (whole) {
      const std::size_t index = queue_.front();
      queue_.pop_front();
      retire(index);
    }
    written_.notify_all();
  }
}

std::exception_ptr ChunkWriter::store(const std::vector<Run>& runs) {
  return attempt([&] {
    for (const Run& run : runs) file_.store(*run.chunk, run.row, run.count);
    if (file_.commit_is_due()) {
      file_.commit();
    } else if (file_.show_is_due()) {
      file_.show();
    }
  });
}

template <class Work>
std::exception_ptr ChunkWriter::attempt(Work work) {
  try {
    work();
  } catch (const Error& error) {
    file_.abandon();
    return std::make_exception_ptr(file_.explain(error));
  } catch (...) {
    file_.abandon();
    return std::current_exception();
  }
  return nullptr;
}

void ChunkWriter::stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  ready_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void ChunkWriter::store_rest() {
  store_done();
  file_.commit();
}

void ChunkWriter::store_done() {
  for (auto& [index, chunk] : chunks_) {
    for (const Run& run : done_runs(chunk)) {
      file_.store(chunk, run.row, run.count);
      mark_stored(run);
    }
  }
  chunks_.clear();
}

void ChunkWriter::fill_open_rows() {
  if (std::ranges::find(stored_, false) == stored_.end()) return;
  ResultChunk empty = new_chunk(0, std::min(chunk_rows_, problem_.trajectories()));
  fill_with_nan(empty.state);
  fill_with_nan(empty.end_state);
  for (std::size_t first = 0; first < stored_.size(); ++first) {
    if (stored_[first]) continue;
    std::size_t count = 0;
    while (count < empty.count && first + count < stored_.size() && !stored_[first + count]) {
      empty.records[count] = TrajectoryRecord{};
      empty.records[count].end_time = problem_.start_time(first + count);
      ++count;
    }
    empty.first = first;
    file_.store(empty, 0, count);
    first += count - 1;
  }
}

void ChunkWriter::fill_with_nan(auto& bytes) const {
  const auto fill = [&]<class T>(T nan) {
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(T)) std::memcpy(bytes.data() + i, &nan, sizeof(T));
  };
  if (element_bytes_ == 4) {
    fill(std::numeric_limits<float>::quiet_NaN());
  } else {
    fill(std::numeric_limits<double>::quiet_NaN());
  }
}

}  // namespace lockstep::ode
