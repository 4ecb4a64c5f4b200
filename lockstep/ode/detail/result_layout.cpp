#include "lockstep/ode/detail/result_layout.h"

#include <algorithm>
#include <numeric>
#include <span>
#include <system_error>

#include "lockstep/core/error.h"

namespace lockstep::ode {
namespace {

namespace names = result_names;
constexpr std::chrono::seconds kFlushInterval{1};

// Writes of a long dataset go in pieces of this many rows: memory stays bounded whatever the ensemble's size.
constexpr std::size_t kPieceRows = std::size_t{1} << 16;

hdf5::Dataset create_numbers(hdf5::File& file, const char* name, Precision precision, const hdf5::Shape& shape) {
  return precision == Precision::f32 ? file.create_dataset<float>(name, shape)
                                     : file.create_dataset<double>(name, shape);
}

void describe(hdf5::Dataset& dataset, const char* long_name) { dataset.set_attribute("long_name", long_name); }

template <class T, class Function>
void write_column(hdf5::Dataset& dataset, std::size_t rows, const Function& value) {
  std::vector<T> piece;
  for (std::size_t first = 0; first < rows; first += kPieceRows) {
    piece.resize(std::min(kPieceRows, rows - first));
    for (std::size_t i = 0; i < piece.size(); ++i) piece[i] = value(first + i);
    dataset.write<T>(piece, {first}, {piece.size()});
  }
}

void write_bytes(hdf5::Dataset& dataset, Precision precision, const std::vector<std::byte>& bytes,
                 const hdf5::Shape& start, const hdf5::Shape& count) {
  const std::size_t elements =
      std::accumulate(count.begin(), count.end(), std::size_t{1}, [](auto a, auto b) { return a * b; });
  if (precision == Precision::f32) {
    dataset.write<float>(std::span(reinterpret_cast<const float*>(bytes.data()), elements), start, count);
  } else {
    dataset.write<double>(std::span(reinterpret_cast<const double*>(bytes.data()), elements), start, count);
  }
}

std::vector<std::string> status_meanings() {
  std::vector<std::string> meanings;
  for (int i = 0; i < kStatusCount; ++i) meanings.emplace_back(to_string(static_cast<Status>(i)));
  return meanings;
}

void describe_status(hdf5::Dataset& status) {
  describe(status, "how the trajectory ended");
  std::vector<std::int64_t> values(kStatusCount);
  std::iota(values.begin(), values.end(), 0);
  status.set_attribute("flag_values", values);
  std::string meanings;
  for (std::string meaning : status_meanings()) {
    std::ranges::replace(meaning, ' ', '_');  // CF: words separated by blanks
    meanings += (meanings.empty() ? "" : " ") + meaning;
  }
  status.set_attribute("flag_meanings", meanings);
}

// The numbers, and ample room for HDF5's own tables.
std::uintmax_t expected_bytes(const Problem& problem, Precision precision) {
  const std::uintmax_t rows = problem.trajectories();
  const std::uintmax_t components = problem.rhs->components();
  const std::uintmax_t element = precision == Precision::f32 ? 4 : 8;
  const std::uintmax_t states = rows * (problem.save_points() + 1) * components * element;
  const std::uintmax_t columns = rows * (1 + 3 * 4 + 3 * 8 + components * 8);  // status, counts, times, initial_state
  return states + columns + 8 * (problem.save_times.size() + problem.parameters.size()) + (std::uintmax_t{1} << 16);
}

}  // namespace

ResultLayout::ResultLayout(const std::filesystem::path& path, const Problem& problem, Precision precision,
                           const ResultMetadata& metadata, Existing existing)
    : path_(path),
      precision_(precision),
      save_points_(problem.save_points()),
      components_(problem.rhs->components()),
      file_(hdf5::File::create(path, existing, expected_bytes(problem, precision))) {
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
  data_.emplace(Datasets{create_numbers(file_, names::kState, precision, {rows, save_points_, components_}),
                         create_numbers(file_, names::kEndState, precision, {rows, components_}),
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
  file_.set_attribute("Conventions", "CF-1.10");
  file_.set_attribute("title", metadata.title);
  file_.set_attribute(names::kFormatAttribute, names::kFormat);
  for (const auto& [name, value] : metadata.attributes) file_.set_attribute(name, value);
  if (metadata.part_of) {
    file_.set_attribute(names::kFirstTrajectory, part_of.first_trajectory);
    file_.set_attribute(names::kEnsembleTrajectories, part_of.trajectories);
  }
  if (metadata.more) metadata.more(file_);

  file_.reserve_space();
  const auto index = [](std::size_t i) { return static_cast<std::int64_t>(i); };
  write_column<std::int64_t>(trajectory, rows, [&](std::size_t i) { return index(part_of.first_trajectory + i); });
  if (save_point) write_column<std::int64_t>(*save_point, save_points_, index);
  time.write<double>(problem.save_times);
  write_column<double>(start_time, rows, [&](std::size_t i) { return problem.start_time(i); });
  initial.write<double>(problem.initial_states);
  if (values) values->write<double>(problem.parameters);
  write_column<std::uint8_t>(data.status, rows,
                             [](std::size_t) { return static_cast<std::uint8_t>(Status::cancelled); });
  data.committed.write<std::int64_t>(std::vector<std::int64_t>{0});
  file_.flush();
}

void ResultLayout::store(const ResultChunk& chunk) {
  Datasets& data = *data_;
  const std::size_t first = chunk.first;
  const std::size_t count = chunk.count;
  write_bytes(data.state, precision_, chunk.state, {first, 0, 0}, {count, save_points_, components_});
  write_bytes(data.end_state, precision_, chunk.end_state, {first, 0}, {count, components_});
  const auto column = [&]<class T>(hdf5::Dataset& dataset, T TrajectoryRecord::*member) {
    std::vector<T> values(count);
    std::ranges::transform(chunk.records, values.begin(),
                           [&](const TrajectoryRecord& record) { return record.*member; });
    dataset.write<T>(values, {first}, {count});
  };
  column(data.accepted, &TrajectoryRecord::accepted);
  column(data.rejected, &TrajectoryRecord::rejected);
  column(data.evaluations, &TrajectoryRecord::evaluations);
  column(data.end_time, &TrajectoryRecord::end_time);

  Pending& pending = pending_.emplace_back(Pending{first, std::vector<std::uint8_t>(count)});
  std::ranges::transform(chunk.records, pending.status.begin(),
                         [](const TrajectoryRecord& record) { return static_cast<std::uint8_t>(record.status); });
  if (std::chrono::steady_clock::now() - last_flush_ >= kFlushInterval) commit_pending();
}

void ResultLayout::commit_pending() {
  file_.flush();
  for (const Pending& rows : pending_) {
    data_->status.write<std::uint8_t>(rows.status, {rows.first}, {rows.status.size()});
    committed_ += rows.status.size() - static_cast<std::size_t>(std::ranges::count(
                                           rows.status, static_cast<std::uint8_t>(Status::cancelled)));
  }
  pending_.clear();
  data_->committed.write<std::int64_t>(std::vector<std::int64_t>{static_cast<std::int64_t>(committed_)});
  file_.flush();
  last_flush_ = std::chrono::steady_clock::now();
}

std::uintmax_t ResultLayout::publish(const Attributes& attributes) {
  commit_pending();
  for (const auto& [name, value] : attributes) file_.set_attribute(name, value);
  data_.reset();
  file_.publish();
  file_.close();
  std::error_code ignored;
  const std::uintmax_t size = std::filesystem::file_size(path_, ignored);
  return ignored ? 0 : size;
}

}  // namespace lockstep::ode
