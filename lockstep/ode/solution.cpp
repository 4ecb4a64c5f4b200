#include "lockstep/ode/solution.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"

namespace lockstep::ode {

std::string_view to_string(Status status) {
  switch (status) {
    case Status::success:
      return "success";
    case Status::terminated:
      return "terminated";
    case Status::step_too_small:
      return "step_too_small";
    case Status::not_finite:
      return "not_finite";
    case Status::too_many_steps:
      return "too_many_steps";
    case Status::outside_range:
      return "outside_range";
    case Status::cancelled:
      return "cancelled";
  }
  return "unknown";
}

namespace {

void require_place(const char* field, std::size_t found, std::size_t count, const char* of, const char* remedy) {
  if (found < count) return;
  throw Error(ErrorKind::invalid_argument,
              {field, std::to_string(found), "less than " + std::to_string(count) + ", the number of " + of, remedy});
}

}  // namespace

// Engines write a time.
constexpr double kNeverTakenUp = std::numeric_limits<double>::quiet_NaN();

Solution::Solution(Precision precision, std::size_t trajectories, std::size_t components, std::vector<double> times,
                   bool times_per_trajectory)
    : components_(components),
      save_points_(times_per_trajectory ? (trajectories == 0 ? 0 : times.size() / trajectories) : times.size()),
      times_(std::move(times)),
      times_per_trajectory_(times_per_trajectory),
      records_(trajectories, TrajectoryRecord{.end_time = kNeverTakenUp}) {
  const auto make = [&]<class T>(T) {
    state_ = AlignedBuffer<T>(trajectories * save_points_ * components);
    end_state_ = AlignedBuffer<T>(trajectories * components);
  };
  if (precision == Precision::f32) {
    make(float{});
  } else {
    make(double{});
  }
}

void Solution::refuse_number_type(const char* asked) const {
  const bool is_f32 = precision() == Precision::f32;
  throw Error(ErrorKind::invalid_argument,
              {std::string(asked) + "<" + (is_f32 ? "double" : "float") + ">",
               std::string("a solution of ") + (is_f32 ? "float32" : "float64"),
               std::string(is_f32 ? "float" : "double") + " for T",
               std::string("solve with Options::precision = Precision::") + (is_f32 ? "f64" : "f32") +
                   ", or take numbers one by one: state() and end_state()"});
}

double Solution::state(std::size_t trajectory, std::size_t time, std::size_t component) const {
  require_place("trajectory", trajectory, trajectories(), "trajectories", "count from 0");
  require_place("time", time, save_points_, "save points",
                save_points_ == 0 ? "set Problem::save_times, or take end_state()" : "count from 0");
  require_place("component", component, components_, "components", "count from 0");
  const StandardArithmetic arithmetic;
  const std::size_t at = (trajectory * save_points_ + time) * components_ + component;
  return std::visit([&](const auto& numbers) { return static_cast<double>(numbers[at]); }, state_);
}

double Solution::end_state(std::size_t trajectory, std::size_t component) const {
  require_place("trajectory", trajectory, trajectories(), "trajectories", "count from 0");
  require_place("component", component, components_, "components", "count from 0");
  const StandardArithmetic arithmetic;
  return std::visit(
      [&](const auto& numbers) { return static_cast<double>(numbers[trajectory * components_ + component]); },
      end_state_);
}

EventLog Solution::event_log() const {
  EventLog log;
  for (const TrajectoryEvents& events : events_) log.add(events);
  return log;
}

void Solution::keep_events() {
  events_.resize(trajectories());
  keeps_events_ = true;
}

SolutionBlock Solution::block(std::size_t first, std::size_t count) {
  SolutionBlock block{.first = first, .count = count, .records = records_.data() + first};
  if (keeps_events_) block.events = events_.data() + first;
  std::visit([&](auto& numbers) { block.state = numbers.data() + first * save_points_ * components_; }, state_);
  std::visit([&](auto& numbers) { block.end_state = numbers.data() + first * components_; }, end_state_);
  return block;
}

void Solution::mark_unreached() {
  const auto fill = [](auto& numbers, std::size_t row, std::size_t width) {
    using T = std::remove_cvref_t<decltype(numbers[0])>;
    std::fill_n(numbers.data() + row * width, width, std::numeric_limits<T>::quiet_NaN());
  };
  for (std::size_t row = 0; row < records_.size(); ++row) {
    if (!std::isnan(records_[row].end_time)) continue;
    records_[row].end_time = 0;
    std::visit([&](auto& numbers) { fill(numbers, row, save_points_ * components_); }, state_);
    std::visit([&](auto& numbers) { fill(numbers, row, components_); }, end_state_);
  }
}

}  // namespace lockstep::ode
