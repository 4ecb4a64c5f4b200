#include "lockstep/agreement/ensemble.h"

#include <algorithm>
#include <cmath>

#include "lockstep/agreement/detail/same_number.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hdf5_text.h"

namespace lockstep::agreement {
namespace {

std::vector<double> rows(const std::vector<double>& of, std::size_t first, std::size_t count, std::size_t width) {
  const auto begin = of.begin() + static_cast<std::ptrdiff_t>(first * width);
  return {begin, begin + static_cast<std::ptrdiff_t>(count * width)};
}

}  // namespace

std::vector<double> Ensemble::states(std::size_t first, std::size_t count) const {
  std::vector<double> rows(count * save_points() * components());
  read_states(first, count, rows);
  return rows;
}

void StoredEnsemble::read_states(std::size_t first, std::size_t count, std::span<float> to) const {
  file_.hdf5().dataset(ode::result_names::kState).read_into(to, {first, 0, 0}, {count, save_points(), components()});
}

void StoredEnsemble::read_states(std::size_t first, std::size_t count, std::span<double> to) const {
  if (file_.precision() == Precision::f64) {
    file_.hdf5().dataset(ode::result_names::kState).read_into(to, {first, 0, 0}, {count, save_points(), components()});
    return;
  }
  // HDF5 converts element by element; widening here is several times faster.
  const std::vector<float> narrow = file_.states<float>(first, count);
  std::ranges::copy(narrow, to.begin());
}

std::vector<ode::TrajectoryRecord> StoredEnsemble::records(std::size_t first, std::size_t count) const {
  return file_.records(first, count);
}

std::vector<double> StoredEnsemble::initial_states(std::size_t first, std::size_t count) const {
  return file_.initial_states(first, count);
}

std::vector<double> StoredEnsemble::parameters(std::size_t trajectory) const { return file_.parameters(trajectory); }

std::vector<double> StoredEnsemble::times(std::size_t trajectory) const { return file_.times(trajectory); }

std::vector<double> StoredEnsemble::end_states(std::size_t first, std::size_t count) const {
  // Files of other programs may leave them out.
  if (!file_.hdf5().has(ode::result_names::kEndState) || !file_.hdf5().has(ode::result_names::kEndTime)) return {};
  return file_.end_states<double>(first, count);
}

double StoredEnsemble::start_time() const {
  // Files of other programs may leave it out.
  if (!file_.hdf5().has(ode::result_names::kStartTime)) return file_.save_points() > 0 ? file_.times(0)[0] : 0;
  return file_.hdf5().dataset(ode::result_names::kStartTime).read<double>({0}, {1})[0];
}

std::vector<std::pair<std::string, std::string>> StoredEnsemble::provenance() const {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const std::string& name : file_.attribute_names()) {
    if (const auto value = file_.attribute(name)) fields.emplace_back(name, hdf5::to_text(*value));
  }
  return fields;
}

Numbers numbers_of(const ode::Solution& solution) {
  Numbers numbers;
  numbers.precision = solution.precision();
  if (solution.precision() == Precision::f32) {
    const auto states = solution.states<float>(), ends = solution.end_states<float>();
    numbers.states.assign(states.begin(), states.end());
    numbers.end_states.assign(ends.begin(), ends.end());
  } else {
    const auto states = solution.states<double>(), ends = solution.end_states<double>();
    numbers.states.assign(states.begin(), states.end());
    numbers.end_states.assign(ends.begin(), ends.end());
  }
  numbers.records.assign(solution.records().begin(), solution.records().end());
  if (solution.keeps_events()) numbers.events = solution.event_log();
  return numbers;
}

HeldEnsemble::HeldEnsemble(ode::Problem problem, Numbers numbers)
    : problem_(std::move(problem)), numbers_(std::move(numbers)) {
  problem_.validate();
  const std::size_t expected = problem_.trajectories() * problem_.save_points() * problem_.rhs->components();
  if (numbers_.states.size() != expected) {
    throw Error(ErrorKind::invalid_argument,
                {"numbers.states",
                 std::to_string(numbers_.states.size()) + " numbers",
                 std::to_string(expected) + " for [trajectory][time][component] of the problem",
                 {}});
  }
  const std::size_t ends = problem_.trajectories() * problem_.rhs->components();
  if (!numbers_.end_states.empty() && numbers_.end_states.size() != ends) {
    throw Error(ErrorKind::invalid_argument,
                {"numbers.end_states",
                 std::to_string(numbers_.end_states.size()) + " numbers",
                 std::to_string(ends) + " for [trajectory][component] of the problem, or none",
                 {}});
  }
  const std::size_t names = numbers_.component_names.size();
  if (names != 0 && names != problem_.rhs->components()) {
    throw Error(ErrorKind::invalid_argument, {"numbers.component_names",
                                              std::to_string(names) + " names",
                                              std::to_string(problem_.rhs->components()) + ", one for each component",
                                              {}});
  }
  if (numbers_.records.empty()) {
    numbers_.records.resize(problem_.trajectories());
    for (std::size_t i = 0; i < numbers_.records.size(); ++i) {
      numbers_.records[i].status = ode::Status::success;
      numbers_.records[i].end_time = problem_.end_time(i);
    }
  }
}

std::vector<std::string> HeldEnsemble::component_names() const {
  if (!numbers_.component_names.empty()) return numbers_.component_names;
  std::vector<std::string> names(problem_.rhs->components());
  for (std::size_t c = 0; c < names.size(); ++c) names[c] = "u" + std::to_string(c);
  return names;
}

void HeldEnsemble::read_states(std::size_t first, std::size_t, std::span<float> to) const {
  const double* from = numbers_.states.data() + first * save_points() * problem_.rhs->components();
  std::transform(from, from + to.size(), to.begin(), [](double x) { return static_cast<float>(x); });
}

void HeldEnsemble::read_states(std::size_t first, std::size_t, std::span<double> to) const {
  std::copy_n(numbers_.states.data() + first * save_points() * problem_.rhs->components(), to.size(), to.begin());
}

std::vector<ode::TrajectoryRecord> HeldEnsemble::records(std::size_t first, std::size_t count) const {
  const auto begin = numbers_.records.begin() + static_cast<std::ptrdiff_t>(first);
  return {begin, begin + static_cast<std::ptrdiff_t>(count)};
}

std::vector<double> HeldEnsemble::initial_states(std::size_t first, std::size_t count) const {
  return rows(problem_.initial_states, first, count, problem_.rhs->components());
}

std::vector<double> HeldEnsemble::end_states(std::size_t first, std::size_t count) const {
  if (numbers_.end_states.empty()) return {};
  return rows(numbers_.end_states, first, count, problem_.rhs->components());
}

ode::EventLog HeldEnsemble::events(std::size_t first, std::size_t count) const {
  ode::EventLog part;
  if (!numbers_.events) return part;
  const ode::EventLog& all = *numbers_.events;
  const auto from = static_cast<std::ptrdiff_t>(all.first[first]),
             to = static_cast<std::ptrdiff_t>(all.first[first + count]);
  part.times.assign(all.times.begin() + from, all.times.begin() + to);
  part.resets.assign(all.resets.begin() + from, all.resets.begin() + to);
  for (std::size_t i = 1; i <= count; ++i) part.first.push_back(all.first[first + i] - all.first[first]);
  return part;
}

bool HeldEnsemble::own_parameters() const {
  const std::size_t parameters = problem_.rhs->parameters();
  return parameters > 0 && problem_.parameters.size() != parameters;
}

std::vector<double> HeldEnsemble::parameters(std::size_t trajectory) const {
  const double* values = problem_.parameters_of(trajectory);
  return {values, values + problem_.rhs->parameters()};
}

std::vector<double> HeldEnsemble::times(std::size_t trajectory) const {
  const double* values = problem_.save_times_of(trajectory);
  return {values, values + problem_.save_points()};
}

ode::Impulses HeldEnsemble::impulses(std::size_t first, std::size_t count) const {
  if (!problem_.impulses_differ()) return {problem_.impulses, {}};
  ode::Problem part = problem_.part(first, count);
  return {std::move(part.impulses), std::move(part.first_impulse)};
}

std::optional<std::size_t> first_of_other_bits(const Ensemble& ensemble, const Certificate& again) {
  for (std::size_t s = 0; s < again.samples(); ++s) {
    const std::size_t i = again.trajectories[s];
    const ode::Status status = ensemble.records(i, 1)[0].status;
    if (status == ode::Status::cancelled) continue;
    const std::vector<double> held = ensemble.states(i, 1);
    for (std::size_t j = 0; j < held.size(); ++j) {
      // One that starts outside is solved and then not stored.
      if (status == ode::Status::outside_range && std::isnan(held[j])) continue;
      if (!same_number(held[j], again.states_of(0, s)[j])) return i;
    }
  }
  return std::nullopt;
}

}  // namespace lockstep::agreement
