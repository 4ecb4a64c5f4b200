#include "lockstep/ode/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/detail/impulses.h"
#include "lockstep/ode/detail/save_rows.h"

namespace lockstep::ode {
namespace {

[[noreturn]] void refuse(const std::string& field, const std::string& found, const std::string& expected,
                         const std::string& remedy = {}) {
  throw Error(ErrorKind::invalid_argument,
              {.field = "problem." + field, .found = found, .expected = expected, .remedy = remedy});
}

std::string numbers(std::size_t count) { return std::to_string(count) + (count == 1 ? " number" : " numbers"); }

// `place(i)` says where the i-th of them stands.
template <class Place>
void require_finite(const char* field, const std::vector<double>& values, const Place& place,
                    const std::string& remedy = {}) {
  // Counted first, many at a time: an ensemble has millions of numbers, and hardly ever one to refuse.
  std::size_t finite = 0;
  for (const double value : values) finite += std::fabs(value) <= std::numeric_limits<double>::max() ? 1 : 0;
  if (finite == values.size()) return;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (std::isfinite(values[i])) continue;
    refuse(field, number_text(values[i]) + place(i), "finite numbers", remedy);
  }
}

void require_finite_rows(const char* field, const std::vector<double>& values, std::size_t row_length,
                         const std::string& remedy = {}) {
  const auto place = [&](std::size_t i) {
    return " in row " + std::to_string(i / row_length) + ", column " + std::to_string(i % row_length);
  };
  require_finite(field, values, place, remedy);
}

void require_finite_ends(const char* field, const std::vector<double>& values, const std::string& which) {
  require_finite(field, values, [&](std::size_t i) {
    return " as the " + which + " of " + (values.size() == 1 ? "all trajectories" : "trajectory " + std::to_string(i));
  });
}

void require_finite_save_times(const Problem& problem) {
  if (!problem.save_times_per_trajectory) {
    require_finite("save_times", problem.save_times, [](std::size_t i) { return " at element " + std::to_string(i); });
  } else if (problem.save_points() > 0) {
    require_finite_rows("save_times", problem.save_times, problem.save_points(),
                        "every trajectory has as many save points as the others: solve those with fewer apart");
  }
}

void require_one_or_each(const char* field, std::size_t size, std::size_t trajectories) {
  if (size == 1 || size == trajectories) return;
  refuse(field, numbers(size),
         "one shared by all or one for each of " + std::to_string(trajectories) + " trajectories");
}

// The problem with pick(numbers, width of a row) in place of all numbers that are each trajectory's own.
template <class Pick>
Problem with_rows(const Problem& problem, const Pick& pick) {
  const std::size_t parameters = problem.rhs->parameters();
  Problem result;
  result.rhs = problem.rhs;
  result.event = problem.event;
  result.resets = problem.resets;
  result.keep_events = problem.keep_events;
  result.save_times_per_trajectory = problem.save_times_per_trajectory;
  if (!problem.impulses_differ()) result.impulses = problem.impulses;
  result.initial_states = pick(problem.initial_states, problem.rhs->components());
  const auto take = [&](std::vector<double> Problem::*numbers, std::size_t width, bool is_own) {
    if (is_own) {
      result.*numbers = pick(problem.*numbers, width);
    } else {
      result.*numbers = problem.*numbers;
    }
  };
  take(&Problem::parameters, parameters, problem.parameters.size() != parameters);
  take(&Problem::start_times, 1, problem.start_times.size() != 1);
  take(&Problem::end_times, 1, problem.end_times.size() != 1);
  take(&Problem::save_times, problem.save_points(), problem.save_times_per_trajectory);
  return result;
}

// Those of the next trajectory of its own.
void add_impulses(Problem& problem, std::span<const Impulse> impulses) {
  problem.impulses.insert(problem.impulses.end(), impulses.begin(), impulses.end());
  problem.first_impulse.push_back(problem.impulses.size());
}

void validate_impulses(const Problem& problem) {
  const std::vector<Impulse>& impulses = problem.impulses;
  detail::require_impulses("problem", impulses, problem.first_impulse, problem.trajectories(),
                           problem.rhs->components());
  const std::size_t spans = std::max(problem.start_times.size(), problem.end_times.size());
  for (std::size_t i = 0; i < (impulses.empty() ? 0 : spans); ++i) {
    if (problem.end_time(i) < problem.start_time(i))
      refuse("impulses", "some, and a span that runs backwards for trajectory " + std::to_string(i),
             "spans that run forward where states change at once",
             "exchange the ends, or solve trajectories without impulses apart");
  }
}

// Of an event or a reset beside `rhs`.
void require_function(const std::string& field, const Rhs& function, const StateFunction& rhs, std::size_t outputs) {
  if (!function) refuse(field, "none", "a function of time, state and parameters");
  if (function->outputs() != outputs) {
    refuse(field, numbers(function->outputs()), outputs == 1 ? "one output" : numbers(outputs) + ", the state");
  }
  if (function->components() == rhs.components() && function->parameters() == rhs.parameters()) return;
  refuse(field,
         std::to_string(function->components()) + " components and " + std::to_string(function->parameters()) +
             " parameters",
         std::to_string(rhs.components()) + " and " + std::to_string(rhs.parameters()) + ", as the right-hand side");
}

}  // namespace

std::size_t Problem::trajectories() const {
  return rhs && rhs->components() != 0 ? initial_states.size() / rhs->components() : 0;
}
std::size_t Problem::save_points() const {
  return save_times_per_trajectory ? (trajectories() == 0 ? 0 : save_times.size() / trajectories()) : save_times.size();
}
double Problem::start_time(std::size_t i) const { return start_times.size() == 1 ? start_times[0] : start_times[i]; }
double Problem::end_time(std::size_t i) const { return end_times.size() == 1 ? end_times[0] : end_times[i]; }
std::pair<double, double> Problem::time_range() const {
  const StandardArithmetic arithmetic;
  double least = std::numeric_limits<double>::infinity(), greatest = -least;
  for (const auto* times : {&start_times, &end_times}) {
    for (const double time : *times) {
      least = std::min(least, time);
      greatest = std::max(greatest, time);
    }
  }
  return {least, greatest};
}
const double* Problem::parameters_of(std::size_t i) const {
  const std::size_t count = rhs->parameters();
  return parameters.size() == count ? parameters.data() : parameters.data() + i * count;
}
const double* Problem::save_times_of(std::size_t i) const {
  return save_times_per_trajectory ? save_times.data() + i * save_points() : save_times.data();
}

std::span<const Impulse> Problem::impulses_of(std::size_t i) const {
  return detail::impulses_of(i, impulses, first_impulse);
}

Problem Problem::part(std::size_t first, std::size_t count) const {
  const std::size_t all = trajectories();
  if (first > all || count > all - first) {
    refuse("part",
           "trajectories " + std::to_string(first) + " to " + std::to_string(first + count) + ", the last excluded",
           "trajectories below " + std::to_string(all));
  }
  Problem result = with_rows(*this, [&](const std::vector<double>& values, std::size_t width) {
    const auto begin = values.begin() + static_cast<std::ptrdiff_t>(first * width);
    return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(count * width));
  });
  if (impulses_differ()) {
    result.first_impulse.push_back(0);
    for (std::size_t i = first; i < first + count; ++i) add_impulses(result, impulses_of(i));
  }
  return result;
}

Problem Problem::selection(const std::vector<std::size_t>& rows) const {
  const std::size_t all = trajectories();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (rows[i] < all) continue;
    refuse("selection[" + std::to_string(i) + "]", "trajectory " + std::to_string(rows[i]),
           "trajectories below " + std::to_string(all));
  }
  Problem result = with_rows(*this, [&](const std::vector<double>& values, std::size_t width) {
    std::vector<double> picked;
    picked.reserve(rows.size() * width);
    for (const std::size_t row : rows) {
      const auto begin = values.begin() + static_cast<std::ptrdiff_t>(row * width);
      picked.insert(picked.end(), begin, begin + static_cast<std::ptrdiff_t>(width));
    }
    return picked;
  });
  if (impulses_differ()) {
    result.first_impulse.push_back(0);
    for (const std::size_t row : rows) add_impulses(result, impulses_of(row));
  }
  return result;
}

void Problem::validate() const { detail::validate(*this, detail::SaveRows::full); }

void detail::validate(const Problem& problem, SaveRows rows) {
  const StandardArithmetic arithmetic;
  const auto& [rhs, initial_states, parameters, start_times, end_times, save_times, save_times_per_trajectory, event,
               impulses, first_impulse, resets, keep_events] = problem;
  if (!rhs) refuse("rhs", "none", "a right-hand side", "make one with ode::net, ode::system or ode::function");
  const std::size_t n = rhs->components();
  if (n == 0 || rhs->outputs() != n) {
    refuse("rhs", std::to_string(rhs->outputs()) + " outputs over " + std::to_string(n) + " components",
           "as many derivatives as components");
  }
  if (initial_states.size() % n != 0) {
    refuse("initial_states", numbers(initial_states.size()),
           "a multiple of " + std::to_string(n) + ", the components of " + rhs->description());
  }
  const std::size_t count = problem.trajectories();
  const std::size_t m = rhs->parameters();
  if (parameters.size() != m && parameters.size() != m * count) {
    refuse("parameters", numbers(parameters.size()),
           m == 0 ? "none: " + rhs->description() + " has no parameters"
                  : std::to_string(m) + " shared by all, or " + std::to_string(m) + " for each of " +
                        std::to_string(count) + " trajectories");
  }
  require_finite_rows("initial_states", initial_states, n);
  require_finite_rows("parameters", parameters, m);
  require_one_or_each("start_times", start_times.size(), count);
  require_one_or_each("end_times", end_times.size(), count);
  require_finite_ends("start_times", start_times, "start");
  require_finite_ends("end_times", end_times, "end");
  const bool may_end_early = rows == SaveRows::may_end_early && save_times_per_trajectory;
  if (save_times_per_trajectory && (count == 0 ? !save_times.empty() : save_times.size() % count != 0)) {
    refuse("save_times", numbers(save_times.size()),
           "the same number for each of " + std::to_string(count) + " trajectories");
  }
  if (!may_end_early) require_finite_save_times(problem);
  if (event) require_function("event.function", event->function, *rhs, 1);
  if (resets.size() > kMostResets)
    refuse("resets", std::to_string(resets.size()), "at most " + std::to_string(kMostResets));
  for (std::size_t i = 0; i < resets.size(); ++i) {
    const std::string field = "resets[" + std::to_string(i) + "]";
    require_function(field + ".function", resets[i].function, *rhs, 1);
    require_function(field + ".state", resets[i].state, *rhs, n);
  }
  if (keep_events && resets.empty()) {
    refuse("keep_events", "true, and no resets", "resets, whose events they are",
           "drop it: the end times tell where an event stopped a trajectory");
  }
  validate_impulses(problem);
  // Shared times need one look; anything per trajectory needs one each.
  const bool shared = start_times.size() == 1 && end_times.size() == 1 && !save_times_per_trajectory;
  for (std::size_t i = 0; i < (shared ? std::size_t{1} : count); ++i) {
    const double start = problem.start_time(i), end = problem.end_time(i);
    const double sign = end < start ? -1 : 1;
    const double* times = problem.save_times_of(i);
    for (std::size_t k = 0; k < problem.save_points(); ++k) {
      if (may_end_early && times[k] == std::copysign(std::numeric_limits<double>::infinity(), sign)) {
        if (k + 1 == problem.save_points() || times[k + 1] == times[k]) continue;
      }
      const auto where = [&] {
        return "save point " + std::to_string(k) + " at " + number_text(times[k]) +
               (shared ? "" : " of trajectory " + std::to_string(i));
      };
      if (!(sign * (times[k] - start) >= 0 && sign * (end - times[k]) >= 0)) {
        refuse("save_times", where(), "times within [" + number_text(start) + ", " + number_text(end) + "]",
               "extend the time span or drop the point");
      }
      if (k > 0 && sign * (times[k] - times[k - 1]) <= 0) {
        refuse("save_times", where() + " after " + number_text(times[k - 1]),
               sign > 0 ? "ascending times" : "descending times, as the span runs backwards",
               "sort them and drop repeats");
      }
    }
  }
}

}  // namespace lockstep::ode
