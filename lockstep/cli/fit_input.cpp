#include "lockstep/cli/fit_input.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <utility>

#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/ode/detail/huber.h"

namespace lockstep::cli {
namespace {

// Once, where all trajectories share them.
void take_impulses(const TrajectoryTable& table, ode::TrajectoryData& data) {
  if (table.impulses.empty()) return;
  data.impulses = table.impulses.front();
  if (std::ranges::all_of(table.impulses, [&](const auto& of) { return of == data.impulses; })) return;
  data.impulses.clear();
  data.first_impulse = {0};
  for (const std::vector<ode::Impulse>& of : table.impulses) {
    data.impulses.insert(data.impulses.end(), of.begin(), of.end());
    data.first_impulse.push_back(data.impulses.size());
  }
}

std::vector<bool> measured_components(const TrajectoryTable& table) {
  const std::size_t n = table.component_names.size();
  std::vector<bool> measured(n);
  for (std::size_t at = 0; at < table.states.size(); ++at) {
    if (!std::isnan(table.states[at])) measured[at % n] = true;
  }
  return measured;
}

// First numbers that are not there and that nobody misses, since `starts` gives them; not of components that were
// measured nowhere, all of whose numbers are missing.
std::size_t known_starts(const TrajectoryTable& table, const StartsSection& starts) {
  const std::size_t n = table.component_names.size();
  const std::vector<bool> measured = measured_components(table);
  std::size_t known = 0;
  for (std::size_t c = 0; c < n; ++c) {
    if (!measured[c] || !starts.has(table.component_names[c])) continue;
    for (std::size_t i = 0, row = 0; i < table.trajectories(); row += table.lengths[i++])
      known += std::isnan(table.states[row * n + c]);
  }
  return known;
}

}  // namespace

ode::TrajectoryData library_data(const TrajectoryTable& table, const std::vector<double>& parameters,
                                 const std::vector<std::string>& names) {
  ode::TrajectoryData data{table.trajectories(), table.times, table.states, parameters, table.numbers, {}, table.sigma};
  data.names = table.names;
  if (!names.empty() && !table.known.empty()) {
    data.parameters = with_known(parameters, names, table.known_names, table.known);
  }
  take_impulses(table, data);
  if (!table.have_one_length()) {
    data.lengths = table.lengths;
    return data;
  }
  const auto points = static_cast<std::ptrdiff_t>(table.lengths.front());
  bool shared = true;
  for (std::size_t i = 1; i < data.trajectories; ++i) {
    shared = shared && std::equal(table.times.begin(), table.times.begin() + points,
                                  table.times.begin() + static_cast<std::ptrdiff_t>(i) * points);
  }
  if (shared) data.times.resize(table.lengths.front());
  return data;
}

ode::Problem spans_of(const TrajectoryTable& table, ode::Rhs rhs) {
  ode::Problem problem;
  problem.rhs = std::move(rhs);
  problem.start_times.clear();
  for (std::size_t i = 0, row = 0; i < table.lengths.size(); row += table.lengths[i++]) {
    problem.start_times.push_back(table.times[row]);
    problem.end_times.push_back(table.times[row + table.lengths[i] - 1]);
  }
  return problem;
}

std::string text_of(const TrajectoryData& data, const StartsSection& starts) {
  const std::size_t training = data.training.trajectories(), validation = data.validation.trajectories();
  const auto [least, most] = std::minmax_element(data.training.lengths.begin(), data.training.lengths.end());
  const std::vector<double>& states = data.training.states;
  std::size_t impulses = 0;
  for (const std::vector<ode::Impulse>& of : data.training.impulses) impulses += of.size();
  const std::size_t known = known_starts(data.training, starts), wanted = states.size() - known;
  const auto unmeasured = std::ranges::count_if(states, [](double x) { return std::isnan(x); });
  const std::size_t missing = static_cast<std::size_t>(unmeasured) - known;
  return count_text(training) + (training == 1 ? " trajectory" : " trajectories") + " of " +
         (*least == *most ? std::string() : count_text(*least) + " to ") + count_text(*most) + " points" +
         (missing == 0 ? std::string()
                       : ", " + count_text(missing) + " of " + count_text(wanted) + " numbers missing") +
         (impulses == 0 ? std::string() : ", " + counted_text(impulses, "impulse")) +
         (validation > 0 ? ", " + count_text(validation) + " more for validation" : std::string());
}

bool hides_component(const TrajectoryTable& table, const std::vector<bool>& still) {
  constexpr std::size_t kIntervals = 20;
  const std::vector<bool> measured = measured_components(table);
  if (!std::ranges::all_of(measured, std::identity())) return true;
  const std::size_t n = table.component_names.size();
  std::vector<std::size_t> behind(n);  // how many numbers of each
  std::size_t intervals = 0;
  for (std::size_t i = 0, row = 0; i < table.trajectories(); row += table.lengths[i++]) {
    for (std::size_t point = 1; point < table.lengths[i]; ++point, ++intervals) {
      for (std::size_t c = 0; c < n; ++c) behind[c] += std::isnan(table.states[(row + point) * n + c]) ? 0 : 1;
    }
  }
  for (std::size_t c = 0; c < n; ++c) {
    const bool moves = still.empty() || !still[c];
    if (moves && behind[c] * kIntervals < intervals) return true;
  }
  return false;
}

std::vector<double> component_weights(const DataSection& section, const TrajectoryData& data) {
  std::vector<double> weights;
  if (section.sigma.empty() || section.sigma.one_by_one()) return weights;
  for (const SigmaSection::Of& each : section.sigma.of(data.training.component_names)) {
    weights.push_back(std::isnan(each.size) ? 1 : 1 / (each.size * each.size));
    if (!std::isnan(each.size)) continue;
    const std::size_t n = data.training.component_names.size();
    for (const TrajectoryTable* table : {&data.training, &data.validation}) {
      for (std::size_t at = weights.size() - 1; at < table->states.size(); at += n) {
        if (std::isnan(table->states[at])) continue;
        throw Error(ErrorKind::invalid_argument,
                    {section.sigma.where, "none of " + each.name, "one of each that was measured, in their units", {}});
      }
    }
  }
  return weights;
}

double loss_of_starts(const TrajectoryTable& table, const std::vector<double>& starts,
                      const std::vector<double>& weights, std::span<const ode::TrajectoryRecord> records,
                      std::span<const double> thresholds) {
  if (starts.empty()) return 0;
  const std::size_t n = table.component_names.size();
  double sum = 0;
  std::size_t row = 0, solved = 0;
  for (std::size_t i = 0; i < table.lengths.size(); row += table.lengths[i++]) {
    if (i < records.size() && records[i].status != ode::Status::success) continue;
    ++solved;
    for (std::size_t c = 0; c < n; ++c) {
      const std::size_t at = row * n + c;
      if (std::isnan(table.states[at])) continue;
      const double sigma = table.sigma.empty() ? 1 : table.sigma[at];
      const double difference = (starts[i * n + c] - table.states[at]) / sigma;
      const double threshold = thresholds.empty() ? std::numeric_limits<double>::infinity() : thresholds[c];
      sum += ode::detail::measurement_loss(weights.empty() ? 1 : weights[c], difference, threshold).loss;
    }
  }
  return solved == 0 ? 0 : sum / static_cast<double>(solved);
}

}  // namespace lockstep::cli
