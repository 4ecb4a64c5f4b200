#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "lockstep/cli/ensemble_grid.h"
#include "lockstep/cli/plot/sweep.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kRowsAtOnce = std::size_t{1} << 14;

// Whether each parameter, and the initial value of each component, differs between trajectories.
struct Differing {
  std::vector<bool> parameters, initial_values;
};

Differing differing(const ode::ResultFile& file) {
  Differing differ;
  differ.parameters.resize(file.parameter_names().size());
  differ.initial_values.resize(file.components());
  std::vector<double> first_parameters, first_state;
  for (std::size_t first = 0; first < file.trajectories(); first += kRowsAtOnce) {
    const std::size_t count = std::min(kRowsAtOnce, file.trajectories() - first);
    const std::vector<double> states = file.initial_states(first, count);
    if (first == 0) first_state.assign(states.begin(), states.begin() + static_cast<std::ptrdiff_t>(file.components()));
    for (std::size_t i = 0; i < states.size(); ++i) {
      const std::size_t c = i % file.components();
      if (states[i] != first_state[c]) differ.initial_values[c] = true;
    }
    for (std::size_t i = first; file.parameters_per_trajectory() && i < first + count; ++i) {
      const std::vector<double> parameters = file.parameters(i);
      if (i == 0) first_parameters = parameters;
      for (std::size_t p = 0; p < parameters.size(); ++p) {
        if (parameters[p] != first_parameters[p]) differ.parameters[p] = true;
      }
    }
  }
  return differ;
}

std::vector<SweepAxis> all_axes(const ode::ResultFile& file) {
  std::vector<SweepAxis> axes;
  for (std::size_t p = 0; p < file.parameter_names().size(); ++p) {
    axes.push_back({SweepAxis::Kind::parameter, p, file.parameter_names()[p]});
  }
  for (std::size_t c = 0; c < file.components(); ++c) {
    axes.push_back({SweepAxis::Kind::initial_value, c, file.component_names()[c]});
  }
  return axes;
}

bool differs(const SweepAxis& axis, const Differing& differ) {
  return axis.kind == SweepAxis::Kind::parameter ? differ.parameters[axis.column] : differ.initial_values[axis.column];
}

std::size_t count_values(const ode::ResultFile& file, const SweepAxis& axis) {
  const std::vector<double> values = sweep_values(file, axis);
  return std::set<double>(values.begin(), values.end()).size();
}

}  // namespace

std::vector<double> sweep_values(const ode::ResultFile& file, const SweepAxis& axis) {
  std::vector<double> values;
  values.reserve(file.trajectories());
  for (std::size_t first = 0; first < file.trajectories(); first += kRowsAtOnce) {
    const std::size_t count = std::min(kRowsAtOnce, file.trajectories() - first);
    if (axis.kind == SweepAxis::Kind::parameter) {
      for (std::size_t i = first; i < first + count; ++i) values.push_back(file.parameters(i)[axis.column]);
    } else {
      const std::vector<double> states = file.initial_states(first, count);
      for (std::size_t i = axis.column; i < states.size(); i += file.components()) values.push_back(states[i]);
    }
  }
  return values;
}

bool is_grid(std::size_t columns, std::size_t rows, std::size_t trajectories) {
  // Of two that are random each is another in each trajectory. Half of a grid may be unfinished.
  return columns > 1 && rows > 1 && columns * rows < 2 * trajectories;
}

std::vector<SweepAxis> sweep_axes(const ode::ResultFile& file, const std::vector<std::string>& asked) {
  if (file.trajectories() < 2 || file.components() == 0) return {};
  const Differing differ = differing(file);
  const std::vector<SweepAxis> all = all_axes(file);
  std::vector<SweepAxis> axes;
  for (const std::string& name : asked) {
    const auto found = std::ranges::find(all, name, &SweepAxis::name);
    if (found == all.end()) {
      std::vector<std::string_view> known;
      for (const SweepAxis& axis : all) known.push_back(axis.name);
      refuse("--over", '"' + name + '"', "one of " + list_text(known), did_you_mean(name, known));
    }
    if (!differs(*found, differ)) {
      std::string others;
      for (const SweepAxis& axis : all) {
        if (differs(axis, differ)) others += (others.empty() ? "" : ", ") + axis.name;
      }
      refuse("--over", found->text() + ", which is the same in all trajectories", "what differs between them",
             others.empty() ? "nothing does" : "take of " + others);
    }
    axes.push_back(*found);
  }
  if (!asked.empty()) return axes;
  for (const auto& [name, count] : stored_grid(file)) {
    const auto found = std::ranges::find(all, name, &SweepAxis::name);
    if (found != all.end() && differs(*found, differ) && axes.size() < 2) axes.push_back(*found);
  }
  if (!axes.empty()) return axes;
  // Parameters come first: what they do is asked more often than what random initial states do.
  for (const auto kind : {SweepAxis::Kind::parameter, SweepAxis::Kind::initial_value}) {
    for (const SweepAxis& axis : all) {
      if (axis.kind == kind && differs(axis, differ)) axes.push_back(axis);
    }
    if (!axes.empty()) break;
  }
  const bool one = axes.size() == 1;
  const bool two =
      axes.size() == 2 && is_grid(count_values(file, axes[0]), count_values(file, axes[1]), file.trajectories());
  return one || two ? axes : std::vector<SweepAxis>{};
}

ValueSpacing spacing_of(const std::vector<double>& sorted) {
  if (sorted.size() < 2) return ValueSpacing::even;
  constexpr double kNear = 1e-6;  // of the range: what is given with seven digits is as spaced as it is meant
  const auto is_even = [&](const auto& place) {
    const double first = place(sorted.front()), range = place(sorted.back()) - first;
    for (std::size_t i = 1; i + 1 < sorted.size(); ++i) {
      const double even = first + range * static_cast<double>(i) / static_cast<double>(sorted.size() - 1);
      if (!(std::abs(place(sorted[i]) - even) <= kNear * range)) return false;
    }
    return true;
  };
  if (is_even([](double value) { return value; })) return ValueSpacing::even;
  const bool logarithmic = sorted.front() > 0 && is_even([](double value) { return std::log10(value); });
  return logarithmic ? ValueSpacing::logarithmic : ValueSpacing::uneven;
}

std::vector<double> round_ticks(double low, double high, bool logarithmic, std::size_t most) {
  std::vector<double> ticks;
  if (!(low < high) || most < 2) return {low};
  constexpr double kRounding = 1e-9;
  if (logarithmic) {
    const int first = static_cast<int>(std::ceil(std::log10(low) - kRounding));
    const int last = static_cast<int>(std::floor(std::log10(high) + kRounding));
    const auto decades = static_cast<std::size_t>(std::max(last - first + 1, 0));
    if (decades > 2 || (decades == 2 && most < 4)) {
      const int step = static_cast<int>((decades + most - 1) / most);
      for (int power = first; power <= last; power += step) ticks.push_back(std::pow(10.0, power));
      return ticks;
    }
    for (int power = first - 1; power <= last; ++power) {
      for (const double factor : {1.0, 2.0, 5.0}) {
        const double tick = factor * std::pow(10.0, power);
        if (tick >= low * (1 - kRounding) && tick <= high * (1 + kRounding)) ticks.push_back(tick);
      }
    }
    if (ticks.size() > 2 && ticks.size() <= most) return ticks;
    ticks.clear();
  }
  const double range = high - low;
  double step = std::pow(10.0, std::floor(std::log10(range / static_cast<double>(most))));
  for (const double factor : {1.0, 2.0, 5.0, 10.0}) {
    const double wide = factor * step;
    if (std::floor(high / wide + kRounding) - std::ceil(low / wide - kRounding) + 1 > static_cast<double>(most))
      continue;
    for (double k = std::ceil(low / wide - kRounding); k <= std::floor(high / wide + kRounding); ++k) {
      ticks.push_back(k * wide);
    }
    break;
  }
  return ticks;
}

}  // namespace lockstep::cli
