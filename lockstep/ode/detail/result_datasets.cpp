// What a result file holds: the datasets that a new file is given, and what goes into them before the solve.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ode/detail/result_layout.h"
#include "lockstep/ode/detail/write_in_order.h"

namespace lockstep::ode {
namespace {

namespace names = result_names;

hdf5::Dataset create_numbers(hdf5::File& file, const char* name, Precision precision, const hdf5::Shape& shape) {
  return precision == Precision::f32 ? file.create_dataset<float>(name, shape)
                                     : file.create_dataset<double>(name, shape);
}

void describe(hdf5::Dataset& dataset, const char* long_name) { dataset.set_attribute("long_name", long_name); }

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

}  // namespace

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
    detail::write_in_order<T>(dataset, direct_.get(), piece_, hdf5::Shape(shape.size()), shape,
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
  // From here on no table of the file changes any more: whenever the writer is killed, the file can be opened.
  if (journal_) {
    show();
  } else {
    open_direct();
  }
}

}  // namespace lockstep::ode
