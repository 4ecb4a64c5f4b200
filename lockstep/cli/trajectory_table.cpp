// What is asked of trajectories wherever they come from, and trajectories out of rectangles of numbers.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lockstep/cli/measurement_sigma.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/training_tables.h"

namespace lockstep::cli {

bool TrajectoryTable::have_one_length() const {
  return std::all_of(lengths.begin(), lengths.end(), [&](std::size_t length) { return length == lengths.front(); });
}

TrajectoryTable trajectory_table(const Rectangles& data, std::vector<std::string> component_names,
                                 const FirstNumbers& first) {
  TrajectoryTable table;
  const std::size_t points = data.points, components = component_names.size();
  table.component_names = std::move(component_names);
  table.names = data.names;
  for (std::size_t i = 0; i < data.trajectories; ++i) {
    const double* const times = data.times.data() + (data.times.size() == points ? 0 : i * points);
    const double* const states = data.states.data() + i * points * components;
    const auto is_there = [&](std::size_t point) {
      const double* const state = states + point * components;
      return !std::isnan(times[point]) &&
             !std::all_of(state, state + components, [](double x) { return std::isnan(x); });
    };
    std::size_t length = points;
    while (length > 0 && !is_there(length - 1)) --length;
    if (length < 2) {
      refuse(data.where_states + ", trajectory " + table.name(i), count_text(length) + " points", "at least 2",
             kLeavePointOut);
    }
    table.lengths.push_back(length);
    table.times.insert(table.times.end(), times, times + length);
    table.states.insert(table.states.end(), states, states + length * components);
    if (data.sigma.empty()) continue;
    const double* const sigma = data.sigma.data() + i * points * components;
    table.sigma.insert(table.sigma.end(), sigma, sigma + length * components);
  }
  require_order(table, first, data.where_times, data.where_states, {});
  leave_out_known_starts(table, first);
  require_sigma(table.states, table.sigma, [&](std::size_t at) {
    std::size_t trajectory = 0, point = at / components;
    while (point >= table.lengths[trajectory]) point -= table.lengths[trajectory++];
    return data.where_sigma + ", trajectory " + table.name(trajectory) + ", point " + std::to_string(point) +
           ", component " + table.component_names[at % components];
  });
  return table;
}

void require_order(const TrajectoryTable& table, const FirstNumbers& first, const std::string& times,
                   const std::string& states, const std::vector<std::size_t>& lines) {
  const std::size_t n = table.component_names.size();
  std::size_t row = 0;
  for (std::size_t i = 0; i < table.trajectories(); ++i) {
    bool has_more = false;
    for (std::size_t point = 0; point < table.lengths[i]; ++point, ++row) {
      const auto place = [&](const std::string& source) {
        return lines.empty() ? source + ", trajectory " + table.name(i) + ", point " + std::to_string(point)
                             : source + ":" + std::to_string(lines[row]);
      };
      for (std::size_t c = 0; point == 0 && first.points == ode::FirstPoints::complete && c < n; ++c) {
        if (!std::isnan(table.states[row * n + c]) || first.given.has(table.component_names[c])) continue;
        refuse(place(states) + ", component " + table.component_names[c], "NaN",
               "a complete state, from which the trajectory starts",
               "train the starts as well, by phases = \"noisy\" or a continuity in every phase, say where it starts, "
               "starts = { " +
                   table.component_names[c] +
                   " = 1 }, or leave out the points before the first complete "
                   "one");
      }
      const double time = table.times[row];
      if (std::isnan(time)) refuse(place(times), "NaN", "a time of each state", "leave out states without one");
      for (std::size_t c = 0; c < n && point > 0; ++c) has_more = has_more || !std::isnan(table.states[row * n + c]);
      if (point + 1 == table.lengths[i] && !has_more) {
        refuse(place(states), "nothing measured after the first point of this trajectory", "a number to compare with",
               "leave the trajectory out");
      }
      if (point == 0 || time > table.times[row - 1]) continue;
      const bool is_named = !table.names.empty();
      refuse(place(times),
             "time " + number_text(time) + " after " + number_text(table.times[row - 1]) +
                 (is_named && !lines.empty() ? " in trajectory " + table.name(i) : ""),
             "times that ascend within a trajectory",
             time == table.times[row - 1]
                 ? "give the mean of what was measured at one time, or each series a trajectory of "
                   "its own, by a column that tells them apart"
             : is_named ? "sort its rows by the time, or give another experiment a name of its own"
                        : "sort the rows, or name the column that tells trajectories apart");
    }
  }
}

void leave_out_known_starts(TrajectoryTable& table, const FirstNumbers& first) {
  const std::size_t n = table.component_names.size();
  for (std::size_t c = 0; c < n; ++c) {
    if (!first.given.is_number(table.component_names[c], first.parameters)) continue;
    for (std::size_t i = 0, row = 0; i < table.trajectories(); row += table.lengths[i++]) {
      table.states[row * n + c] = std::numeric_limits<double>::quiet_NaN();
    }
  }
}

}  // namespace lockstep::cli
