#include "lockstep/ode/result_file.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

#include "lockstep/core/error.h"
#include "lockstep/core/hdf5_text.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/detail/event_journal.h"
#include "lockstep/ode/detail/index_check.h"

namespace lockstep::ode {
namespace {

namespace names = result_names;

[[noreturn]] void wrong_shape(const std::string& name, const hdf5::Shape& found, const std::string& expected) {
  std::string text;
  for (const std::size_t size : found) text += (text.empty() ? "" : " x ") + std::to_string(size);
  throw Error(
      ErrorKind::file,
      {name, "shape " + (text.empty() ? "of a scalar" : text), expected,
       "check that the file is whole, and of another program's that its state is [trajectory, time, component]"});
}

[[noreturn]] void missing(const hdf5::File& file, const char* name, const std::string& expected) {
  throw Error(ErrorKind::file, {file.name() + name, "nothing of that name", expected,
                                "an extract of a result keeps all its tables, or state, time and initial_state "
                                "without the attribute version (docs/files.md)"});
}

hdf5::Dataset dataset_of_shape(const hdf5::File& file, const char* name, const hdf5::Shape& expected) {
  if (!file.has(name)) missing(file, name, "a dataset");
  hdf5::Dataset dataset = file.dataset(name);
  const hdf5::Shape shape = dataset.shape();
  if (shape != expected) {
    std::string text;
    for (const std::size_t size : expected) text += (text.empty() ? "" : " x ") + std::to_string(size);
    wrong_shape(dataset.name(), shape, text);
  }
  return dataset;
}

// Files of ours hold every table; those of other programs may leave out what they do not know.
bool may_leave_out(const hdf5::File& file, const char* name) {
  return !file.has_attribute("version") && !file.has(name);
}

// Tables that a file of ours has where it tells of them elsewhere.
void require_promised_tables(const hdf5::File& file) {
  if (!file.has_attribute("version")) return;
  if (file.has(names::kParameter) && !file.has(names::kParameters))
    missing(file, names::kParameters, "the numbers that the dataset parameter names");
  if (file.has_attribute("impulses") && !file.has(names::kImpulseTime))
    missing(file, names::kImpulseTime, "the impulses that attribute impulses tells of");
  // Until their last moment unfinished files have none.
  if (file.has_attribute("events") && !file.has(names::kEventTime) && file.path().extension() != ".part")
    missing(file, names::kEventTime, "the events that attribute events tells of");
}

// Results are numbers as they are: those that netCDF's attributes would turn into others are no results. (xarray gives
// states the _FillValue NaN, which changes nothing.)
void refuse_packed_numbers(const hdf5::Dataset& state) {
  const auto check = [&](const char* name, double without) {
    const auto value = state.has_attribute(name) ? state.attribute(name) : std::nullopt;
    if (!value) return;
    const auto* number = std::get_if<double>(&*value);
    const auto* integer = std::get_if<std::int64_t>(&*value);
    const auto* numbers = std::get_if<std::vector<double>>(&*value);  // netCDF's are lists of one
    const double is = number != nullptr                         ? *number
                      : integer != nullptr                      ? static_cast<double>(*integer)
                      : numbers != nullptr && !numbers->empty() ? numbers->front()
                                                                : without;
    if (is == without || (std::isnan(is) && std::isnan(without))) return;
    throw Error(ErrorKind::file, {state.name() + ": attribute " + name, hdf5::to_text(*value), "none",
                                  "store the states themselves, and NaN where there is none"});
  };
  check("scale_factor", 1);
  check("add_offset", 0);
  for (const char* name : {"_FillValue", "missing_value"}) check(name, std::numeric_limits<double>::quiet_NaN());
}

template <class T>
std::vector<T> rows_or(const hdf5::File& file, const char* name, std::size_t first, std::size_t count, T otherwise) {
  if (may_leave_out(file, name)) return std::vector<T>(count, otherwise);
  return file.dataset(name).read<T>({first}, {count});
}

}  // namespace

std::size_t count_cancelled(const hdf5::File& file) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  if (!file.has(names::kStatus)) return 0;
  const hdf5::Dataset status = file.dataset(names::kStatus);
  const std::size_t size = status.size();
  std::size_t open = 0;
  for (std::size_t first = 0; first < size; first += kPiece) {
    const auto piece = status.read<std::uint8_t>({first}, {std::min(kPiece, size - first)});
    open += static_cast<std::size_t>(std::ranges::count(piece, static_cast<std::uint8_t>(Status::cancelled)));
  }
  return open;
}

bool ResultFile::recognises(const std::filesystem::path& path) {
  try {
    if (!hdf5::File::recognises(path)) return false;
    const hdf5::File file = hdf5::File::open(path);
    return file.has_attribute(names::kFormatAttribute) && file.has(names::kState);
  } catch (const Error&) {
    return false;
  }
}

ResultFile::ResultFile(const std::filesystem::path& path) : file_(hdf5::File::open(path)) {
  const StandardReading arithmetic;
  if (!file_.has_attribute(names::kFormatAttribute) || !file_.has(names::kState)) {
    throw Error(
        ErrorKind::file,
        {path.string(), "an HDF5 file without results of an ensemble", "a file as `lockstep solve` writes it",
         "another program's has the attribute lockstep_format = \"ensemble 1\" and the datasets state, time and "
         "initial_state (docs/files.md)"});
  }
  const std::string format = text_attribute(names::kFormatAttribute);
  if (format != names::kFormat) {
    const std::string version = text_attribute("version");
    throw Error(ErrorKind::file,
                {path.string(), "format \"" + format + "\"" + (version.empty() ? "" : " of version " + version),
                 "\"" + std::string(names::kFormat) + "\"", "read it with the version that wrote it"});
  }
  index_files_ = check_index(file_);
  if (file_.has_attribute(names::kFirstTrajectory)) {
    first_trajectory_ = static_cast<std::size_t>(file_.integer_attribute(names::kFirstTrajectory));
  }
  const hdf5::Dataset state = file_.dataset(names::kState);
  const hdf5::Shape shape = state.shape();
  const hdf5::ElementType type = state.type();
  refuse_packed_numbers(state);
  if (shape.size() != 3) wrong_shape(state.name(), shape, "three dimensions: trajectory, time, component");
  if (type.kind != hdf5::Kind::real || (type.bytes != 4 && type.bytes != 8)) {
    throw Error(ErrorKind::file, {state.name(), to_string(type), "float32 or float64", {}});
  }
  precision_ = type.bytes == 4 ? Precision::f32 : Precision::f64;
  trajectories_ = shape[0];
  save_points_ = shape[1];
  if (may_leave_out(file_, names::kComponent)) {
    for (std::size_t c = 0; c < shape[2]; ++c) component_names_.push_back("u" + std::to_string(c));
  } else {
    component_names_ = file_.dataset(names::kComponent).read_strings();
  }
  if (component_names_.size() != shape[2]) {
    wrong_shape(file_.name() + names::kComponent, {component_names_.size()}, std::to_string(shape[2]));
  }
  const hdf5::Dataset time = file_.dataset(names::kTime);
  times_per_trajectory_ = time.shape().size() == 2;
  dataset_of_shape(file_, names::kTime,
                   times_per_trajectory_ ? hdf5::Shape{trajectories_, save_points_} : hdf5::Shape{save_points_});
  for (const char* name :
       {names::kStatus, names::kAccepted, names::kRejected, names::kEvaluations, names::kEndTime, names::kStartTime}) {
    if (!may_leave_out(file_, name)) dataset_of_shape(file_, name, {trajectories_});
  }
  if (!may_leave_out(file_, names::kEndState)) dataset_of_shape(file_, names::kEndState, {trajectories_, components()});
  dataset_of_shape(file_, names::kInitialState, {trajectories_, components()});
  if (file_.has(names::kParameters)) {
    parameter_names_ = file_.dataset(names::kParameter).read_strings();
    parameters_per_trajectory_ = file_.dataset(names::kParameters).shape().size() == 2;
    dataset_of_shape(file_, names::kParameters,
                     parameters_per_trajectory_ ? hdf5::Shape{trajectories_, parameter_names_.size()}
                                                : hdf5::Shape{parameter_names_.size()});
  }
  require_promised_tables(file_);
  if (file_.has(names::kImpulseTime)) read_impulse_form();
  // Datasets of one that was finished in part and goes on are those of then.
  events_beside_ =
      file_.path().extension() == ".part" && std::filesystem::exists(EventJournal::name_beside(file_.path()));
  keeps_events_ = events_beside_ || file_.has(names::kEventTime);
  if (file_.has(names::kEventTime)) check_events();
}

void ResultFile::check_events() const {
  const hdf5::Shape times = file_.dataset(names::kEventTime).shape();
  if (times.size() != 1) wrong_shape(file_.name() + names::kEventTime, times, "one dimension");
  for (const char* name : {names::kEventReset, names::kEventTrajectory}) dataset_of_shape(file_, name, times);
}

void ResultFile::read_impulse_form() {
  const hdf5::Shape times = file_.dataset(names::kImpulseTime).shape();
  if (times.empty()) wrong_shape(file_.name() + names::kImpulseTime, times, "a dimension of impulses");
  ImpulseForm& form = impulse_form_;
  form.uneven = file_.has(names::kImpulseTrajectory);
  if (!form.uneven) form.each = times.back();
  const auto differs = [&](const char* name) {
    const bool own = !form.uneven && file_.has(name) && file_.dataset(name).shape().size() == 2;
    dataset_of_shape(file_, name,
                     form.uneven ? hdf5::Shape{times[0]}
                     : own       ? hdf5::Shape{trajectories_, form.each}
                                 : hdf5::Shape{form.each});
    return own;
  };
  form.own_times = differs(names::kImpulseTime);
  form.own_components = differs(names::kImpulseComponent);
  form.own_changes = differs(names::kImpulseChange);
  form.own_factors = differs(names::kImpulseFactor);
  if (form.uneven) dataset_of_shape(file_, names::kImpulseTrajectory, {times[0]});
}

template <class T>
std::vector<T> ResultFile::states(std::size_t first, std::size_t count) const {
  return file_.dataset(names::kState).read<T>({first, 0, 0}, {count, save_points_, components()});
}

template <class T>
std::vector<T> ResultFile::end_states(std::size_t first, std::size_t count) const {
  if (!may_leave_out(file_, names::kEndState)) {
    return file_.dataset(names::kEndState).read<T>({first, 0}, {count, components()});
  }
  const hdf5::Dataset state = file_.dataset(names::kState);
  if (save_points_ == 0) return std::vector<T>(count * components(), std::numeric_limits<T>::quiet_NaN());
  return state.read<T>({first, save_points_ - 1, 0}, {count, 1, components()});
}

template std::vector<float> ResultFile::states<float>(std::size_t, std::size_t) const;
template std::vector<double> ResultFile::states<double>(std::size_t, std::size_t) const;
template std::vector<float> ResultFile::end_states<float>(std::size_t, std::size_t) const;
template std::vector<double> ResultFile::end_states<double>(std::size_t, std::size_t) const;

std::vector<TrajectoryRecord> ResultFile::records(std::size_t first, std::size_t count) const {
  const auto status = rows_or<std::uint8_t>(file_, names::kStatus, first, count, 0);
  const auto accepted = rows_or<std::int32_t>(file_, names::kAccepted, first, count, 0);
  const auto rejected = rows_or<std::int32_t>(file_, names::kRejected, first, count, 0);
  const auto evaluations = rows_or<std::int32_t>(file_, names::kEvaluations, first, count, 0);
  auto end_time = rows_or<double>(file_, names::kEndTime, first, count, 0);
  if (may_leave_out(file_, names::kEndTime) && save_points_ > 0) {
    std::vector<double> last = times_per_trajectory_ ? std::vector<double>{} : times(0);
    for (std::size_t i = 0; i < count; ++i) end_time[i] = times_per_trajectory_ ? times(first + i).back() : last.back();
  }
  std::vector<TrajectoryRecord> records(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (status[i] >= kStatusCount) {
      throw Error(ErrorKind::file, {file_.name() + names::kStatus,
                                    std::to_string(status[i]),
                                    "a status below " + std::to_string(kStatusCount),
                                    {}});
    }
    records[i] = {static_cast<Status>(status[i]), accepted[i], rejected[i], evaluations[i], end_time[i]};
  }
  return records;
}

std::vector<double> ResultFile::initial_states(std::size_t first, std::size_t count) const {
  return file_.dataset(names::kInitialState).read<double>({first, 0}, {count, components()});
}

std::vector<double> ResultFile::times(std::size_t trajectory) const {
  if (times_per_trajectory_) return times_.row(file_, names::kTime, trajectory, save_points_);
  return file_.dataset(names::kTime).read<double>();
}

std::vector<double> ResultFile::parameters(std::size_t trajectory) const {
  if (parameter_names_.empty()) return {};
  if (parameters_per_trajectory_)
    return parameters_.row(file_, names::kParameters, trajectory, parameter_names_.size());
  return file_.dataset(names::kParameters).read<double>();
}

std::vector<double> ResultFile::RowsAtHand::row(const hdf5::File& file, const char* name, std::size_t trajectory,
                                                std::size_t width) {
  constexpr std::size_t kBytes = std::size_t{1} << 19;
  if (width == 0) return {};
  if (trajectory < first_ || (trajectory - first_ + 1) * width > numbers_.size()) {
    const hdf5::Dataset table = file.dataset(name);
    const std::size_t rows = std::max<std::size_t>(kBytes / (width * sizeof(double)), 1);
    // One that is asked for alone, far from the last, is read alone.
    const bool next = trajectory == first_ + numbers_.size() / width;
    const std::size_t left = table.shape()[0] - std::min(trajectory, table.shape()[0]);
    const std::size_t count = next ? std::clamp<std::size_t>(rows, 1, std::max<std::size_t>(left, 1)) : 1;
    numbers_ = table.read<double>({trajectory, 0}, {count, width});
    first_ = trajectory;
  }
  const auto begin = numbers_.begin() + static_cast<std::ptrdiff_t>((trajectory - first_) * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(width)};
}

std::size_t ResultFile::entries_before(const char* name, std::size_t row) const {
  const hdf5::Dataset whose = file_.dataset(name);
  const auto number = static_cast<std::int64_t>(first_trajectory_ + row);
  std::size_t least = 0, most = whose.size();
  while (least < most) {
    const std::size_t middle = least + (most - least) / 2;
    if (whose.read<std::int64_t>({middle}, {1})[0] < number) {
      least = middle + 1;
    } else {
      most = middle;
    }
  }
  return least;
}

Impulses ResultFile::impulses(std::size_t first, std::size_t count) const {
  Impulses result;
  const ImpulseForm& form = impulse_form_;
  if (form.none()) return result;
  const std::size_t begin = form.uneven ? entries_before(names::kImpulseTrajectory, first) : 0;
  const std::size_t end = form.uneven ? std::max(entries_before(names::kImpulseTrajectory, first + count), begin) : 0;
  const std::size_t size = form.uneven ? end - begin : form.each * (form.differ() ? count : 1);
  const auto column = [&]<class T>(const char* name, bool own, T) {
    const hdf5::Dataset dataset = file_.dataset(name);
    if (form.uneven) return dataset.read<T>({begin}, {size});
    return own ? dataset.read<T>({first, 0}, {count, form.each}) : dataset.read<T>();
  };
  const auto times = column(names::kImpulseTime, form.own_times, double{});
  const auto components = column(names::kImpulseComponent, form.own_components, std::int32_t{});
  const auto changes = column(names::kImpulseChange, form.own_changes, double{});
  const auto factors = column(names::kImpulseFactor, form.own_factors, double{});
  const auto of = [](const auto& values, std::size_t i) { return values[i % values.size()]; };
  result.impulses.reserve(size);
  for (std::size_t i = 0; i < size; ++i) {
    // A negative index is one that no state has.
    result.impulses.push_back(
        {of(times, i), static_cast<std::size_t>(of(components, i)), of(changes, i), of(factors, i)});
  }
  if (!form.differ()) return result;
  if (form.uneven) {
    result.first = rows_of_entries(names::kImpulseTrajectory, first, count, begin, size);
  } else {
    for (std::size_t i = 0; i <= count; ++i) result.first.push_back(i * form.each);
  }
  return result;
}

std::vector<std::size_t> ResultFile::rows_of_entries(const char* name, std::size_t first, std::size_t count,
                                                     std::size_t begin, std::size_t size) const {
  const auto whose = file_.dataset(name).read<std::int64_t>({begin}, {size});
  std::vector<std::size_t> starts{0};
  std::size_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    while (at < size && whose[at] == static_cast<std::int64_t>(first_trajectory_ + first + i)) ++at;
    starts.push_back(at);
  }
  if (at != size) {
    throw Error(ErrorKind::file, {file_.name() + name,
                                  "number " + std::to_string(whose[at]) + " out of order",
                                  "ascending numbers of trajectories",
                                  {}});
  }
  return starts;
}

EventLog ResultFile::events(std::size_t first, std::size_t count) const {
  if (events_beside_) return events_beside(first, count);
  return keeps_events_ ? events_in_tables(first, count) : EventLog{};
}

EventLog ResultFile::events_in_tables(std::size_t first, std::size_t count) const {
  EventLog log;
  const std::size_t begin = entries_before(names::kEventTrajectory, first);
  const std::size_t size = std::max(entries_before(names::kEventTrajectory, first + count), begin) - begin;
  log.times = file_.dataset(names::kEventTime).read<double>({begin}, {size});
  log.resets = file_.dataset(names::kEventReset).read<std::int32_t>({begin}, {size});
  log.first = rows_of_entries(names::kEventTrajectory, first, count, begin, size);
  return log;
}

EventLog ResultFile::events_beside(std::size_t first, std::size_t count) const {
  const auto status = file_.dataset(names::kStatus).read<std::uint8_t>({first}, {count});
  const auto finished = [&](std::size_t i) { return static_cast<Status>(status[i]) != Status::cancelled; };
  const auto all_are_known = [&] {
    for (std::size_t i = 0; i < count; ++i) {
      if (finished(i) && !journal_->holds(first + i)) return false;
    }
    return true;
  };
  if (!journal_ || !all_are_known()) {  // its writer may have gone on
    journal_ = std::make_shared<const EventJournal>(EventJournal::name_beside(file_.path()), trajectories_,
                                                    EventJournal::Begin::look);
  }
  // What is not there may be in the tables of a file that was finished in part before.
  std::optional<EventLog> earlier;
  const auto in_tables = [&](std::size_t i) {
    if (!file_.has(names::kEventTime)) {
      throw Error(ErrorKind::file,
                  {EventJournal::name_beside(file_.path()).string(),
                   "no events of trajectory " + std::to_string(first_trajectory_ + first + i) + ", which is finished",
                   "those of all that are finished", "continue the solve with --resume"});
    }
    if (!earlier) earlier = events_in_tables(first, count);
    TrajectoryEvents events;
    for (std::size_t at = earlier->first[i]; at < earlier->first[i + 1]; ++at)
      events.push_back({earlier->times[at], earlier->resets[at]});
    return events;
  };
  EventLog log;
  for (std::size_t i = 0; i < count; ++i) {
    if (finished(i)) {
      log.add(journal_->holds(first + i) ? journal_->read(first + i) : in_tables(i));
    } else {
      log.add({});
    }
  }
  return log;
}

std::vector<std::string> ResultFile::reset_texts() const {
  if (!file_.has(names::kEventReset)) return {};
  const hdf5::Dataset resets = file_.dataset(names::kEventReset);
  return resets.has_attribute("resets") ? resets.string_list_attribute("resets") : std::vector<std::string>{};
}

std::optional<hdf5::AttributeValue> ResultFile::attribute(const std::string& name) const {
  return file_.has_attribute(name) ? file_.attribute(name) : std::nullopt;
}

std::string ResultFile::text_attribute(const std::string& name) const {
  const auto value = attribute(name);
  const auto* text = value ? std::get_if<std::string>(&*value) : nullptr;
  return text == nullptr ? std::string{} : *text;
}

}  // namespace lockstep::ode
