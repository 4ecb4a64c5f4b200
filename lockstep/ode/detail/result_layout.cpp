#include "lockstep/ode/detail/result_layout.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <string_view>
#include <system_error>

#include "lockstep/core/error.h"
#include "lockstep/ode/detail/event_datasets.h"
#include "lockstep/ode/detail/write_in_order.h"

namespace lockstep::ode {
namespace {

namespace names = result_names;
constexpr std::chrono::milliseconds kCommitInterval{250};
constexpr int kCommitShare = 4;  // as many times as long as a commit took until the next
constexpr std::size_t kStatusesAtOnce = std::size_t{1} << 16;  // read where a file is resumed
// Of end states and records in memory until the next commit, at most.
constexpr std::size_t kColumnBytes = std::size_t{4} << 20;

void write_bytes(hdf5::Dataset& dataset, Precision precision, const std::byte* bytes, const hdf5::Shape& start,
                 const hdf5::Shape& count) {
  const std::size_t elements =
      std::accumulate(count.begin(), count.end(), std::size_t{1}, [](auto a, auto b) { return a * b; });
  if (precision == Precision::f32) {
    dataset.write<float>(std::span(reinterpret_cast<const float*>(bytes), elements), start, count);
  } else {
    dataset.write<double>(std::span(reinterpret_cast<const double*>(bytes), elements), start, count);
  }
}

std::size_t stored_components(const Problem& problem, const ResultMetadata& metadata) {
  return metadata.components.empty() ? problem.rhs->components() : metadata.components.size();
}

// The numbers, and ample room for HDF5's own tables.
std::uintmax_t expected_bytes(const Problem& problem, Precision precision, std::uintmax_t components) {
  const std::uintmax_t rows = problem.trajectories();
  const std::uintmax_t element = precision == Precision::f32 ? 4 : 8;
  const std::uintmax_t states = rows * (problem.save_points() + 1) * components * element;
  const std::uintmax_t columns = rows * (1 + 3 * 4 + 3 * 8 + components * 8);  // status, counts, times, initial_state
  const std::uintmax_t impulses = problem.impulses.size() * (4 * 8 + 4);
  return states + columns + impulses + 8 * (problem.save_times.size() + problem.parameters.size()) +
         (std::uintmax_t{1} << 16);
}

hdf5::File create_or_resume(PendingFile pending, std::uintmax_t expected_bytes) {
  return pending.resumed() ? hdf5::File::resume(std::move(pending))
                           : hdf5::File::create(std::move(pending), expected_bytes);
}

}  // namespace

ResultLayout::ResultLayout(PendingFile pending, const Problem& problem, Precision precision,
                           const ResultMetadata& metadata)
    : unfinished_(PendingFile::unfinished_name(pending.target())),
      precision_(precision),
      trajectories_(problem.trajectories()),
      save_points_(problem.save_points()),
      components_(stored_components(problem, metadata)),
      first_trajectory_(metadata.part_of.value_or(ResultMetadata::PartOf{}).first_trajectory),
      reset_texts_(metadata.reset_texts),
      file_(create_or_resume(std::move(pending), expected_bytes(problem, precision, components_))) {
  const bool resumed = file_.has(names::kCommitted);
  try {
    open_journal(problem);
    if (resumed) {
      reopen();
    } else {
      create(problem, metadata);
    }
    const auto offset =
        precision_ == Precision::f32 ? data_->state.offset_in_file<float>() : data_->state.offset_in_file<double>();
    direct_offered_ = offset.has_value();
    state_offset_ = offset.value_or(0);
    if (begun_) open_direct();
  } catch (const Error& error) {
    abandon();
    if (journal_ && !resumed) journal_->remove();
    throw explain(error);
  }
  next_commit_ = std::chrono::steady_clock::now() + kCommitInterval;
}

ResultLayout::~ResultLayout() {
  try {
    if (data_ && !abandoned_) commit();
  } catch (const Error&) {
    abandon();
  }
  if (kept_trajectories() > 0) {
    file_.keep();
  } else if (journal_) {
    journal_->remove();
  }
}

// One that another run left is of a file that this one discards.
void ResultLayout::open_journal(const Problem& problem) {
  using Begin = EventJournal::Begin;
  const std::filesystem::path path = EventJournal::name_beside(unfinished_);
  const bool anew = !file_.has(names::kCommitted);
  std::error_code ignored;
  if (anew) std::filesystem::remove(path, ignored);
  if (!problem.keep_events) return;
  journal_.emplace(path, trajectories_, anew ? Begin::anew : Begin::resume);
  if (!anew) append_event_datasets(file_, first_trajectory_, *journal_);
}

void ResultLayout::open_direct() {
  if (direct_offered_) direct_ = std::make_unique<DirectFile>(file_.current_path());
}

void ResultLayout::reopen() {
  data_.emplace(Datasets{file_.dataset(names::kState), file_.dataset(names::kEndState), file_.dataset(names::kStatus),
                         file_.dataset(names::kAccepted), file_.dataset(names::kRejected),
                         file_.dataset(names::kEvaluations), file_.dataset(names::kEndTime),
                         file_.dataset(names::kCommitted)});
  stored_before_.reserve(trajectories_);
  for (std::size_t first = 0; first < trajectories_; first += kStatusesAtOnce) {
    const std::size_t count = std::min(kStatusesAtOnce, trajectories_ - first);
    const auto status = data_->status.read<std::uint8_t>({first}, {count});
    const auto accepted = data_->accepted.read<std::int32_t>({first}, {count});
    const auto rejected = data_->rejected.read<std::int32_t>({first}, {count});
    const auto evaluations = data_->evaluations.read<std::int32_t>({first}, {count});
    for (std::size_t i = 0; i < count; ++i) {
      // One whose events were lost is solved again.
      const bool is_stored = static_cast<Status>(status[i]) != Status::cancelled;
      const bool is_whole = !journal_ || journal_->holds(first + i);
      stored_before_.push_back(is_whole && is_stored);
      if (is_stored && !is_whole) ++earlier_.without_events;
      if (!stored_before_.back()) continue;
      TrajectoryRecord record;
      record.status = static_cast<Status>(status[i]);
      record.accepted = accepted[i];
      record.rejected = rejected[i];
      record.evaluations = evaluations[i];
      earlier_.totals.add(record);
      ++earlier_.trajectories;
    }
  }
  committed_ = earlier_.trajectories;
  const std::int64_t resumed = file_.has_attribute(kResumed) ? file_.integer_attribute(kResumed) : 0;
  file_.set_attribute(kResumed, resumed + 1);
}

std::size_t ResultLayout::row_bytes() const {
  return save_points_ * components_ * (precision_ == Precision::f32 ? 4 : 8);
}

std::size_t ResultLayout::state_phase(std::size_t first) const {
  return (state_offset_ + first * row_bytes()) % PageBuffer::kPage;
}

void ResultLayout::write_state(const ResultChunk& chunk, std::size_t row, std::size_t count) {
  const std::size_t first = chunk.first + row;
  const std::byte* bytes = chunk.state.data() + row * row_bytes();
  if (direct_) {
    direct_->write({bytes, count * row_bytes()}, state_offset_ + first * row_bytes());
  } else {
    write_bytes(data_->state, precision_, bytes, {first, 0, 0}, {count, save_points_, components_});
  }
}

void ResultLayout::store(const ResultChunk& chunk, std::size_t row, std::size_t count) {
  write_state(chunk, row, count);
  const std::size_t bytes = components_ * (precision_ == Precision::f32 ? 4 : 8);
  const std::span records = std::span(chunk.records).subspan(row, count);
  const std::span end_state = std::span(chunk.end_state).subspan(row * bytes, count * bytes);
  rows_.push_back({chunk.first + row, {records.begin(), records.end()}, {end_state.begin(), end_state.end()}});
  rows_bytes_ += count * (sizeof(TrajectoryRecord) + bytes);
  if (journal_) journal_->append(chunk.first + row, std::span(chunk.events).subspan(row, count));
  if (rows_bytes_ >= kColumnBytes) write_columns();
}

// In runs of rows as long as they can be: a few large requests, past the page cache, in place of five small ones for
// each chunk, whose pages the commit would wait for.
void ResultLayout::write_columns() {
  std::ranges::sort(rows_, {}, &Rows::first);
  for (auto begin = rows_.begin(); begin != rows_.end();) {
    auto end = begin;
    std::size_t count = 0;
    for (; end != rows_.end() && end->first == begin->first + count; ++end) count += end->records.size();
    write_run({begin, end}, count);
    begin = end;
  }
  rows_.clear();
  rows_bytes_ = 0;
}

void ResultLayout::write_run(std::span<const Rows> run, std::size_t count) {
  Datasets& data = *data_;
  const std::size_t first = run.front().first;
  const auto end_states = [&]<class T>(T) {
    detail::write_in_order<T>(data.end_state, direct_.get(), piece_, {first, 0}, {count, components_},
                              [rows = run.begin(), at = std::size_t{0}]() mutable {
                                if (at == rows->end_state.size()) ++rows, at = 0;
                                T number;
                                std::memcpy(&number, rows->end_state.data() + at, sizeof(T));
                                at += sizeof(T);
                                return number;
                              });
  };
  precision_ == Precision::f32 ? end_states(float{}) : end_states(double{});
  const auto records = [&] {
    return [rows = run.begin(), at = std::size_t{0}]() mutable -> const TrajectoryRecord& {
      if (at == rows->records.size()) ++rows, at = 0;
      return rows->records[at++];
    };
  };
  const auto column = [&]<class T>(hdf5::Dataset& dataset, T TrajectoryRecord::*member) {
    detail::write_in_order<T>(dataset, direct_.get(), piece_, {first}, {count},
                              [next = records(), member]() mutable { return next().*member; });
  };
  column(data.accepted, &TrajectoryRecord::accepted);
  column(data.rejected, &TrajectoryRecord::rejected);
  column(data.evaluations, &TrajectoryRecord::evaluations);
  column(data.end_time, &TrajectoryRecord::end_time);
  Pending& pending = pending_.emplace_back(Pending{first, std::vector<std::uint8_t>(count)});
  std::ranges::generate(pending.status,
                        [next = records()]() mutable { return static_cast<std::uint8_t>(next().status); });
}

void ResultLayout::commit() {
  if (nothing_to_commit()) return;
  const auto begin = std::chrono::steady_clock::now();
  write_columns();
  if (journal_) journal_->sync();
  if (is_shown()) {
    file_.sync();
  } else {
    show();
  }
  write_statuses();
  file_.flush();
  const auto end = std::chrono::steady_clock::now();
  next_commit_ = end + std::max<std::chrono::steady_clock::duration>(kCommitInterval, kCommitShare * (end - begin));
}

void ResultLayout::write_statuses() {
  for (const Pending& rows : pending_) {
    data_->status.write<std::uint8_t>(rows.status, {rows.first}, {rows.status.size()});
    committed_ += rows.status.size() - static_cast<std::size_t>(std::ranges::count(
                                           rows.status, static_cast<std::uint8_t>(Status::cancelled)));
  }
  pending_.clear();
  data_->committed.write<std::int64_t>(std::vector<std::int64_t>{static_cast<std::int64_t>(committed_)});
}

void ResultLayout::show() {
  file_.sync();
  file_.reveal();
  open_direct();  // anew, for errors name the file as it is called
}

void ResultLayout::abandon() noexcept {
  direct_.reset();
  if (!abandoned_) file_.abandon();
  abandoned_ = true;
}

Error ResultLayout::explain(const Error& cause) const {
  if (cause.kind() != ErrorKind::file) return cause;
  // Where nothing is stored both files are removed.
  const std::size_t kept = kept_trajectories();
  const std::string remedy = kept > 0 ? "the " + std::to_string(kept) + " trajectories stored so far stay in " +
                                            unfinished_.string() + ": make room there and continue with --resume"
                                      : "make room, choose another disk, or save less";
  if (journal_ && cause.field() == EventJournal::name_beside(unfinished_).string()) {
    return Error(ErrorKind::file,
                 {cause.field(), cause.found(), cause.expected(),
                  kept > 0 ? remedy : "no trajectory was stored yet, so that nothing is kept: " + remedy});
  }
  // HDF5 tells a failed write at length, the system's own words among it; from beside HDF5 they come alone.
  std::string found = cause.found();
  constexpr std::string_view kMark = "error message = '";
  const std::size_t mark = found.find(kMark);
  if (mark != std::string::npos) {
    found = found.substr(mark + kMark.size());
    found = found.substr(0, found.find('\''));
  } else if (cause.field() != file_.current_path()) {
    return cause;
  }
  const std::uintmax_t row_bytes = (save_points_ + 1) * components_ * (precision_ == Precision::f32 ? 4 : 8);
  std::error_code ignored;
  const std::uintmax_t available = std::filesystem::space(unfinished_, ignored).available;
  return Error(ErrorKind::file,
               {file_.path().string(),
                found + ", with " + (ignored ? "an unknown number of" : std::to_string(available)) +
                    " bytes available on the disk",
                "to write " + std::to_string((trajectories_ - committed_) * row_bytes) + " more bytes", remedy});
}

void ResultLayout::add_attributes(const Attributes& attributes) {
  for (const auto& [name, value] : attributes) file_.set_attribute(name, value);
}

std::uintmax_t ResultLayout::publish(const Attributes& attributes) {
  if (is_shown()) {
    commit();
  } else if (!nothing_to_commit()) {  // nobody sees it before the disk has everything
    write_columns();
    write_statuses();
  }
  add_attributes(attributes);
  data_.reset();
  if (journal_) add_events();
  file_.publish();
  file_.close();
  if (journal_) journal_->remove();
  std::error_code ignored;
  const std::uintmax_t size = std::filesystem::file_size(file_.path(), ignored);
  return ignored ? 0 : size;
}

// Here alone do tables change behind begin(). The states are on the disk, and the journal until the file has its name.
void ResultLayout::add_events() {
  try {
    write_event_datasets(file_, *journal_, first_trajectory_, reset_texts_);
  } catch (const Error& error) {
    throw Error(error.kind(), {error.field(), error.found(), "to add the events to the file",
                               "all is kept in " + unfinished_.string() + " and " +
                                   EventJournal::name_beside(unfinished_).filename().string() +
                                   ": make room there and continue with --resume"});
  }
}

std::filesystem::path ResultLayout::leave(const Attributes& attributes) {
  commit();
  add_attributes(attributes);
  data_.reset();
  file_.keep();
  if (is_shown()) {
    file_.sync();
  } else {
    show();
  }
  file_.close();
  return unfinished_;
}

}  // namespace lockstep::ode
