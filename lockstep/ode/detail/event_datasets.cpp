#include "lockstep/ode/detail/event_datasets.h"

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/ode/result_file.h"

namespace lockstep::ode {
namespace {

namespace names = result_names;
constexpr std::size_t kPieceEvents = std::size_t{1} << 18;

// The three columns, a piece at a time.
class Columns {
 public:
  Columns(hdf5::File& file, std::size_t events)
      : whose_(file.create_dataset<std::int64_t>(names::kEventTrajectory, {events})),
        times_(file.create_dataset<double>(names::kEventTime, {events})),
        resets_(file.create_dataset<std::int32_t>(names::kEventReset, {events})) {
    whose_.make_scale(names::kEventTrajectory);
    times_.attach_scale(0, whose_);
    resets_.attach_scale(0, whose_);
    whose_.set_attribute("long_name", "trajectory whose state changed");
    times_.set_attribute("long_name", "time at which a reset changed the state");
    resets_.set_attribute("long_name", "which reset it was");
  }

  void add(std::int64_t trajectory, const ResetEvent& event) {
    next_whose_.push_back(trajectory);
    next_times_.push_back(event.time);
    next_resets_.push_back(event.reset);
    if (next_times_.size() == kPieceEvents) write();
  }
  void write() {
    if (next_times_.empty()) return;
    const hdf5::Shape start{written_}, count{next_times_.size()};
    whose_.write<std::int64_t>(next_whose_, start, count);
    times_.write<double>(next_times_, start, count);
    resets_.write<std::int32_t>(next_resets_, start, count);
    written_ += next_times_.size();
    next_whose_.clear();
    next_times_.clear();
    next_resets_.clear();
  }
  hdf5::Dataset& times() { return times_; }
  hdf5::Dataset& resets() { return resets_; }

 private:
  hdf5::Dataset whose_, times_, resets_;
  std::size_t written_ = 0;
  std::vector<std::int64_t> next_whose_;
  std::vector<double> next_times_;
  std::vector<std::int32_t> next_resets_;
};

}  // namespace

void write_event_datasets(hdf5::File& file, const EventJournal& journal, std::size_t first_trajectory,
                          const std::vector<std::string>& reset_texts) {
  for (const char* name : {names::kEventTime, names::kEventReset, names::kEventTrajectory})
    if (file.has(name)) file.remove(name);
  std::size_t events = 0;
  for (std::size_t i = 0; i < journal.trajectories(); ++i) events += journal.count(i);
  Columns columns(file, events);
  for (std::size_t i = 0; i < journal.trajectories(); ++i) {
    if (journal.count(i) == 0) continue;
    for (const ResetEvent& event : journal.read(i)) columns.add(static_cast<std::int64_t>(first_trajectory + i), event);
  }
  columns.write();
  if (!reset_texts.empty()) columns.resets().set_attribute("resets", reset_texts);
  const hdf5::Dataset end_time = file.dataset(names::kEndTime);
  if (end_time.has_attribute("units")) columns.times().set_attribute("units", end_time.string_attribute("units"));
}

void append_event_datasets(const hdf5::File& file, std::size_t first_trajectory, EventJournal& journal) {
  if (!file.has(names::kEventTime)) return;
  // A kill while they were being written leaves some here that may not be whole, and all of them in the journal.
  std::size_t held = 0;
  while (held < journal.trajectories() && journal.holds(held)) ++held;
  if (held == journal.trajectories()) return;
  const hdf5::Dataset times = file.dataset(names::kEventTime), resets = file.dataset(names::kEventReset),
                      whose = file.dataset(names::kEventTrajectory);
  TrajectoryEvents events;
  std::size_t row = 0;
  const auto close = [&] {  // the row
    if (!journal.holds(row)) journal.append(row, std::span(&events, 1));
    events.clear();
    ++row;
  };
  for (std::size_t first = 0; first < times.size(); first += kPieceEvents) {
    const hdf5::Shape start{first}, count{std::min(kPieceEvents, times.size() - first)};
    const auto numbers = whose.read<std::int64_t>(start, count);
    const auto when = times.read<double>(start, count);
    const auto which = resets.read<std::int32_t>(start, count);
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      while (row < journal.trajectories() && static_cast<std::int64_t>(first_trajectory + row) < numbers[i]) close();
      if (static_cast<std::int64_t>(first_trajectory + row) != numbers[i]) {
        throw Error(ErrorKind::file, {whose.name(),
                                      "number " + std::to_string(numbers[i]) + " out of order",
                                      "ascending numbers of trajectories",
                                      {}});
      }
      events.push_back({when[i], which[i]});
    }
  }
  while (row < journal.trajectories()) close();
  journal.sync();
}

}  // namespace lockstep::ode
