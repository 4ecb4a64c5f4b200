#include "lockstep/ode/detail/result_layout.h"

#include <algorithm>
#include <cstring>
#include <functional>
#include <numeric>
#include <span>
#include <string_view>
#include <system_error>

#include "lockstep/core/error.h"

namespace lockstep::ode {
namespace {

namespace names = result_names;
constexpr std::chrono::milliseconds kCommitInterval{250};
constexpr int kCommitShare = 4;  // as many times as long as a commit took until the next
constexpr const char* kResumed = "resumed";

// Long datasets go in pieces of this many rows or numbers: memory stays bounded whatever the ensemble's size.
constexpr std::size_t kLayoutRows = std::size_t{1} << 16;
constexpr std::size_t kPieceElements = std::size_t{1} << 18;
// Of end states and records in memory until the next commit, at most.
constexpr std::size_t kColumnBytes = std::size_t{4} << 20;

hdf5::Dataset create_numbers(hdf5::File& file, const char* name, Precision precision, const hdf5::Shape& shape) {
  return precision == Precision::f32 ? file.create_dataset<float>(name, shape)
                                     : file.create_dataset<double>(name, shape);
}

void describe(hdf5::Dataset& dataset, const char* long_name) { dataset.set_attribute("long_name", long_name); }

// The numbers next() of a part of a dataset, in order: past the page cache where that is possible. What waits for the
// disk before a file is shown holds up the solve once its buffers are full.
template <class T, class Next>
void write_in_order(hdf5::Dataset& dataset, DirectFile* direct, PageBuffer& piece, const hdf5::Shape& start,
                    const hdf5::Shape& count, Next next) {
  const std::size_t row = std::accumulate(count.begin() + 1, count.end(), std::size_t{1}, std::multiplies<>{});
  const std::size_t elements = count[0] * row;
  const auto offset = direct == nullptr ? std::nullopt : dataset.offset_in_file<T>();
  if (!offset) {
    std::vector<T> numbers(elements);
    std::ranges::generate(numbers, std::ref(next));
    return dataset.write<T>(numbers, start, count);
  }
  for (std::size_t done = 0; done < elements; done += kPieceElements) {
    const std::size_t here = std::min(kPieceElements, elements - done);
    const std::uint64_t to = *offset + (start[0] * row + done) * sizeof(T);
    piece.fit(here * sizeof(T), to);
    for (std::size_t i = 0; i < here; ++i) {
      const T number = next();
      std::memcpy(piece.data() + i * sizeof(T), &number, sizeof(T));
    }
    direct->write({piece.data(), piece.size()}, to);
  }
}

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

std::vector<std::string> status_meanings() {
  std::vector<std::string> meanings;
  for (int i = 0; i < kStatusCount; ++i) meanings.emplace_back(to_string(static_cast<Status>(i)));
  return meanings;
}

void describe_status(hdf5::Dataset& status) {
  describe(status, "how the trajectory ended");
  std::vector<std::uint8_t> values(kStatusCount);  // CF: of the type of the dataset
  std::iota(values.begin(), values.end(), std::uint8_t{0});
  status.set_attribute("flag_values", values);
  std::string meanings;
  for (std::string meaning : status_meanings()) {
    std::ranges::replace(meaning, ' ', '_');  // CF: words separated by blanks
    meanings += (meanings.empty() ? "" : " ") + meaning;
  }
  status.set_attribute("flag_meanings", meanings);
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

// Of their form in the whole ensemble, so that parts of it can be merged.
void create_impulses(hdf5::File& file, const Problem& problem, const ImpulseForm& form,
                     const hdf5::Dataset& trajectory) {
  if (form.none()) return;
  const char* const dimension = form.uneven ? names::kImpulseTrajectory : names::kImpulse;
  const std::size_t size = form.uneven ? problem.impulses.size() : form.each;
  hdf5::Dataset impulse = file.create_dataset<std::int64_t>(dimension, {size});
  impulse.make_scale(dimension);
  if (form.uneven) describe(impulse, "trajectory whose state changes");
  const auto create = [&]<class T>(const char* name, bool own, const char* long_name, T) {
    const hdf5::Shape shape = own ? hdf5::Shape{problem.trajectories(), size} : hdf5::Shape{size};
    hdf5::Dataset dataset = file.create_dataset<T>(name, shape);
    if (own) dataset.attach_scale(0, trajectory);
    dataset.attach_scale(own ? 1 : 0, impulse);
    describe(dataset, long_name);
  };
  create(names::kImpulseTime, form.own_times, "time at which the state changes at once", double{});
  create(names::kImpulseComponent, form.own_components, "index of the component that changes", std::int32_t{});
  create(names::kImpulseChange, form.own_changes, "added to the component", double{});
  create(names::kImpulseFactor, form.own_factors, "multiplies the component before", double{});
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
      file_(create_or_resume(std::move(pending), expected_bytes(problem, precision, components_))) {
  try {
    if (file_.has(names::kCommitted)) {
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
  if (committed_ > 0) file_.keep();
}

void ResultLayout::create(const Problem& problem, const ResultMetadata& metadata) {
  const std::size_t rows = problem.trajectories();
  const bool own_times = problem.save_times_per_trajectory;
  const std::size_t parameters = problem.rhs->parameters();
  const ResultMetadata::PartOf part_of = metadata.part_of.value_or(ResultMetadata::PartOf{});
  const bool own_parameters =
      parameters > 0 && (problem.parameters.size() != parameters || part_of.parameters_per_trajectory);

  // Dimensions and their coordinates.
  hdf5::Dataset trajectory = file_.create_dataset<std::int64_t>(names::kTrajectory, {rows});
  trajectory.make_scale(names::kTrajectory);
  hdf5::Dataset component = file_.create_strings(names::kComponent, metadata.component_names);
  component.make_scale(names::kComponent);
  hdf5::Dataset time = own_times ? file_.create_dataset<double>(names::kTime, {rows, save_points_})
                                 : file_.create_dataset<double>(names::kTime, {save_points_});
  describe(time, "time");
  std::optional<hdf5::Dataset> save_point;
  if (own_times) {
    save_point = file_.create_dataset<std::int64_t>(names::kSavePoint, {save_points_});
    save_point->make_scale(names::kSavePoint);
    time.attach_scale(0, trajectory);
    time.attach_scale(1, *save_point);
  } else {
    time.make_scale(names::kTime);
  }
  hdf5::Dataset& time_scale = save_point ? *save_point : time;

  // What the solve fills.
  data_.emplace(Datasets{create_numbers(file_, names::kState, precision_, {rows, save_points_, components_}),
                         create_numbers(file_, names::kEndState, precision_, {rows, components_}),
                         file_.create_dataset<std::uint8_t>(names::kStatus, {rows}),
                         file_.create_dataset<std::int32_t>(names::kAccepted, {rows}),
                         file_.create_dataset<std::int32_t>(names::kRejected, {rows}),
                         file_.create_dataset<std::int32_t>(names::kEvaluations, {rows}),
                         file_.create_dataset<double>(names::kEndTime, {rows}),
                         file_.create_dataset<std::int64_t>(names::kCommitted, {})});
  Datasets& data = *data_;
  data.state.attach_scale(0, trajectory);
  data.state.attach_scale(1, time_scale);
  data.state.attach_scale(2, component);
  data.end_state.attach_scale(0, trajectory);
  data.end_state.attach_scale(1, component);
  for (hdf5::Dataset* column : {&data.status, &data.accepted, &data.rejected, &data.evaluations, &data.end_time}) {
    column->attach_scale(0, trajectory);
  }
  describe(data.state, "state at the save points; NaN after the trajectory's end");
  if (own_times) data.state.set_attribute("coordinates", names::kTime);
  describe(data.end_state, "state where the trajectory stopped");
  describe_status(data.status);
  describe(data.accepted, "accepted steps");
  describe(data.rejected, "rejected steps");
  describe(data.evaluations, "evaluations of the right-hand side");
  describe(data.end_time, "time where the trajectory stopped");
  describe(data.committed, "trajectories stored");

  // What was given.
  hdf5::Dataset start_time = file_.create_dataset<double>(names::kStartTime, {rows});
  start_time.attach_scale(0, trajectory);
  describe(start_time, "time where the trajectory started");
  hdf5::Dataset initial = file_.create_dataset<double>(names::kInitialState, {rows, components_});
  initial.attach_scale(0, trajectory);
  initial.attach_scale(1, component);
  describe(initial, "initial state");
  std::optional<hdf5::Dataset> values;
  if (parameters > 0) {
    hdf5::Dataset parameter = file_.create_strings(names::kParameter, metadata.parameter_names);
    parameter.make_scale(names::kParameter);
    values = file_.create_dataset<double>(names::kParameters,
                                          own_parameters ? hdf5::Shape{rows, parameters} : hdf5::Shape{parameters});
    if (own_parameters) values->attach_scale(0, trajectory);
    values->attach_scale(own_parameters ? 1 : 0, parameter);
    describe(*values, "parameters of the right-hand side");
  }
  create_impulses(file_, problem, part_of.impulses.value_or(impulse_form(problem)), trajectory);
  file_.set_attribute("Conventions", "CF-1.10");
  file_.set_attribute("title", metadata.title);
  file_.set_attribute(names::kFormatAttribute, names::kFormat);
  for (const auto& [name, value] : metadata.attributes) file_.set_attribute(name, value);
  if (metadata.part_of) {
    file_.set_attribute(names::kFirstTrajectory, part_of.first_trajectory);
    file_.set_attribute(names::kEnsembleTrajectories, part_of.trajectories);
  }
  file_.set_attribute(kResumed, 0);
  if (metadata.more) metadata.more(file_);

  file_.reserve_space();
  stored_before_.assign(rows, false);
  chosen_ = metadata.components;
  first_trajectory_ = part_of.first_trajectory;
  begun_ = false;
}

void ResultLayout::begin(const Problem& problem) {
  if (begun_) return;
  begun_ = true;
  const std::size_t rows = trajectories_;
  open_direct();
  const auto fill = [&]<class T>(const char* name, std::size_t elements, const auto& value) {
    hdf5::Dataset dataset = file_.dataset(name);
    const hdf5::Shape shape = dataset.shape();
    if (elements == 0) return;
    write_in_order<T>(dataset, direct_.get(), piece_, hdf5::Shape(shape.size()), shape,
                      [&, i = std::size_t{0}]() mutable -> T { return value(i++); });
  };
  const auto index = [](std::size_t i) { return static_cast<std::int64_t>(i); };
  fill.operator()<std::int64_t>(names::kTrajectory, rows, [&](std::size_t i) { return index(first_trajectory_ + i); });
  fill.operator()<double>(names::kStartTime, rows, [&](std::size_t i) { return problem.start_time(i); });
  if (problem.save_times_per_trajectory) fill.operator()<std::int64_t>(names::kSavePoint, save_points_, index);
  const auto given = [](const std::vector<double>& numbers) {
    return [at = numbers.data()](std::size_t i) { return at[i]; };
  };
  fill.operator()<double>(names::kTime, problem.save_times.size(), given(problem.save_times));
  if (chosen_.empty()) {
    fill.operator()<double>(names::kInitialState, rows * components_, given(problem.initial_states));
  } else {
    const std::size_t all = problem.rhs->components();
    fill.operator()<double>(names::kInitialState, rows * components_, [&](std::size_t i) {
      return problem.initial_states[i / components_ * all + chosen_[i % components_]];
    });
  }
  if (problem.rhs->parameters() > 0) {
    fill.operator()<double>(names::kParameters, problem.parameters.size(), given(problem.parameters));
  }
  if (file_.has(names::kImpulseTime)) {
    // Where a column is shared it is that of the first trajectory, whose impulses come first.
    const auto impulses = [&]<class T>(const char* name, auto member, T) {
      fill.operator()<T>(name, file_.dataset(name).size(),
                         [&](std::size_t i) { return static_cast<T>(problem.impulses[i].*member); });
    };
    impulses(names::kImpulseTime, &Impulse::time, double{});
    impulses(names::kImpulseComponent, &Impulse::component, std::int32_t{});
    impulses(names::kImpulseChange, &Impulse::change, double{});
    impulses(names::kImpulseFactor, &Impulse::factor, double{});
    if (file_.has(names::kImpulse))
      fill.operator()<std::int64_t>(names::kImpulse, file_.dataset(names::kImpulse).size(), index);
    if (file_.has(names::kImpulseTrajectory)) {
      fill.operator()<std::int64_t>(names::kImpulseTrajectory, problem.impulses.size(), [&](std::size_t i) {
        const auto next = std::ranges::upper_bound(problem.first_impulse, i);
        return index(first_trajectory_ + static_cast<std::size_t>(next - problem.first_impulse.begin()) - 1);
      });
    }
  }
  fill.operator()<std::uint8_t>(names::kStatus, rows,
                                [](std::size_t) { return static_cast<std::uint8_t>(Status::cancelled); });
  data_->committed.write<std::int64_t>(std::vector<std::int64_t>{0});
  file_.sync();
  // From here on no table of the file changes any more: whenever the writer is killed, the file can be opened.
  file_.reveal();
  open_direct();  // now, for errors name the file as it is called
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
  for (std::size_t first = 0; first < trajectories_; first += kLayoutRows) {
    const std::size_t count = std::min(kLayoutRows, trajectories_ - first);
    for (const std::uint8_t status : data_->status.read<std::uint8_t>({first}, {count})) {
      stored_before_.push_back(status != static_cast<std::uint8_t>(Status::cancelled));
    }
  }
  committed_ = static_cast<std::size_t>(std::ranges::count(stored_before_, true));
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
    write_in_order<T>(data.end_state, direct_.get(), piece_, {first, 0}, {count, components_},
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
    write_in_order<T>(dataset, direct_.get(), piece_, {first}, {count},
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
  file_.sync();
  for (const Pending& rows : pending_) {
    data_->status.write<std::uint8_t>(rows.status, {rows.first}, {rows.status.size()});
    committed_ += rows.status.size() - static_cast<std::size_t>(std::ranges::count(
                                           rows.status, static_cast<std::uint8_t>(Status::cancelled)));
  }
  pending_.clear();
  data_->committed.write<std::int64_t>(std::vector<std::int64_t>{static_cast<std::int64_t>(committed_)});
  file_.flush();
  const auto end = std::chrono::steady_clock::now();
  next_commit_ = end + std::max<std::chrono::steady_clock::duration>(kCommitInterval, kCommitShare * (end - begin));
}

void ResultLayout::abandon() noexcept {
  direct_.reset();
  if (!abandoned_) file_.abandon();
  abandoned_ = true;
}

Error ResultLayout::explain(const Error& cause) const {
  if (cause.kind() != ErrorKind::file) return cause;
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
                "to write " + std::to_string((trajectories_ - committed_) * row_bytes) + " more bytes",
                committed_ > 0 ? "the " + std::to_string(committed_) + " trajectories stored so far stay in " +
                                     unfinished_.string() + ": make room there and continue with --resume"
                               : "make room, choose another disk, or save less"});
}

void ResultLayout::add_attributes(const Attributes& attributes) {
  for (const auto& [name, value] : attributes) file_.set_attribute(name, value);
}

std::uintmax_t ResultLayout::publish(const Attributes& attributes) {
  commit();
  add_attributes(attributes);
  data_.reset();
  file_.publish();
  file_.close();
  std::error_code ignored;
  const std::uintmax_t size = std::filesystem::file_size(file_.path(), ignored);
  return ignored ? 0 : size;
}

std::filesystem::path ResultLayout::leave(const Attributes& attributes) {
  commit();
  add_attributes(attributes);
  data_.reset();
  file_.keep();
  file_.sync();
  file_.close();
  return unfinished_;
}

}  // namespace lockstep::ode
