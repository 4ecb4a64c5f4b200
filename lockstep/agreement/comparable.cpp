#include "lockstep/agreement/comparable.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lockstep/agreement/table_difference.h"
#include "lockstep/core/text.h"

namespace lockstep::agreement {
namespace {

// They decide the mathematics and the discretisation. Engine, cpu_target, threads, precision and version do not.
const std::set<std::string> kOfProblem{"problem_digest", "rhs_digest", "model_digest"};
const std::set<std::string> kOfSolver{"method",       "control",  "dt",    "rtol",         "atol",
                                      "initial_step", "max_step", "stops", "stop_at_knots"};
// What a right-hand side is called, and what happens at events: where the digests differ or are not stated, in words.
const std::set<std::string> kTellsOfRhs{"rhs", "equations"};
const std::set<std::string> kTellsOfEvents{"event", "resets"};
const std::set<std::string> kNotOfInterest{"history",         "command",
                                           "source",          "seconds",
                                           "Conventions",     "title",
                                           "kernel",          "model",
                                           "accepted_steps",  "rejected_steps",
                                           "rhs_evaluations", "problem_file",
                                           "index_files",     "index_first_trajectories",
                                           "engine_reason"};

// A tolerance of each component is the one of all where it is the same for each.
std::string as_one_number(const std::string& list) {
  const std::size_t comma = list.find(", ");
  const std::string first = list.substr(0, comma);
  for (std::size_t begin = 0; begin < list.size();) {
    const std::size_t end = std::min(list.find(", ", begin), list.size());
    if (list.compare(begin, end - begin, first) != 0) return list;
    begin = end + 2;
  }
  return first;
}

// Equations have a line each.
std::string in_one_line(std::string_view lines) {
  std::string line;
  for (const char c : lines) {
    if (c == '\n') {
      line += ", ";
    } else {
      line += c;
    }
  }
  return line;
}

class Fields {
 public:
  void add(std::string field, std::string a, std::string b, bool forbids, bool of_solver = false) {
    all_.push_back({std::move(field), std::move(a), std::move(b), forbids, of_solver});
  }
  // The first difference between two lists, named by `what` and its place.
  bool same(const std::string& what, const std::vector<double>& a, const std::vector<double>& b) {
    if (a.size() != b.size()) {
      add(what, std::to_string(a.size()) + " numbers", std::to_string(b.size()) + " numbers", true);
      return false;
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::bit_cast<std::uint64_t>(a[i]) == std::bit_cast<std::uint64_t>(b[i]) || a[i] == b[i]) continue;
      add(what + " [" + std::to_string(i) + "]", number_text(a[i]), number_text(b[i]), true);
      return false;
    }
    return true;
  }
  std::vector<FieldDifference> sorted() && {
    // The problem goes before its solver, and what people can read before digests of it.
    const auto rank = [](const FieldDifference& of) {
      if (!of.forbids) return 3;
      return of.field.ends_with("_digest") ? 2 : of.of_solver ? 1 : 0;
    };
    std::ranges::stable_sort(all_, [&](const auto& x, const auto& y) { return rank(x) < rank(y); });
    return std::move(all_);
  }

 private:
  std::vector<FieldDifference> all_;
};

void compare_shapes(const Ensemble& a, const Ensemble& b, Fields& fields) {
  const auto size = [&](const char* what, std::size_t in_a, std::size_t in_b) {
    if (in_a != in_b) fields.add(what, std::to_string(in_a), std::to_string(in_b), true);
  };
  size("trajectories", a.trajectories(), b.trajectories());
  size("save points", a.save_points(), b.save_points());
  size("components", a.components(), b.components());
}

// Numbers are compared by their places: a name that the other has at another place forbids that. A file that names no
// components calls them u0, u1, ...
void compare_names(const Ensemble& a, const Ensemble& b, Fields& fields) {
  const std::vector<std::string> in_a = a.component_names(), in_b = b.component_names();
  const auto is_elsewhere = [](const std::string& name, const std::vector<std::string>& names, std::size_t at) {
    const auto found = std::ranges::find(names, name);
    return found != names.end() && found - names.begin() != static_cast<std::ptrdiff_t>(at);
  };
  for (std::size_t at = 0; at < in_a.size(); ++at) {
    const std::string place = "u" + std::to_string(at);
    if (in_a[at] == in_b[at] || in_a[at] == place || in_b[at] == place) continue;
    const bool ordered_otherwise = is_elsewhere(in_a[at], in_b, at) || is_elsewhere(in_b[at], in_a, at);
    fields.add("component " + std::to_string(at) + "'s name", in_a[at], in_b[at], ordered_otherwise);
    if (ordered_otherwise) return;
  }
}

// What differs beside the numbers forbids nothing, but is told.
void compare_stored_tables(const Ensemble& a, const Ensemble& b, Fields& fields) {
  if (a.stored() == nullptr || b.stored() == nullptr) return;
  for (const TableDifference& one : compare_tables(*a.stored(), *b.stored())) {
    if (!one.table.starts_with("component ")) fields.add(one.table, one.a, one.b, false);
  }
}

// The first difference. A file of another program may not state them; between two of ours the digests tell.
void compare_impulses(const Ensemble& a, const Ensemble& b, Fields& fields) {
  constexpr std::size_t kRows = 4096;
  for (std::size_t first = 0; first < a.trajectories(); first += kRows) {
    const std::size_t count = std::min(kRows, a.trajectories() - first);
    const ode::Impulses in_a = a.impulses(first, count), in_b = b.impulses(first, count);
    const auto states_none = [](const ode::Impulses& of) { return of.first.empty() && of.impulses.empty(); };
    if (states_none(in_a) || states_none(in_b)) return;
    const bool shared = in_a.first.empty() && in_b.first.empty();
    for (std::size_t i = 0; i < (shared ? 1 : count); ++i) {
      const auto of_a = in_a.of(i), of_b = in_b.of(i);
      const std::string whose = shared ? "" : "trajectory " + std::to_string(first + i) + ": ";
      if (of_a.size() != of_b.size()) {
        fields.add(whose + "impulses", std::to_string(of_a.size()), std::to_string(of_b.size()), true);
        return;
      }
      const auto list = [](std::span<const ode::Impulse> impulses, auto number) {
        std::vector<double> numbers;
        for (const ode::Impulse& impulse : impulses) numbers.push_back(static_cast<double>(impulse.*number));
        return numbers;
      };
      const auto same = [&](const char* what, auto number) {
        return fields.same(whose + what, list(of_a, number), list(of_b, number));
      };
      if (!same("impulse times", &ode::Impulse::time) || !same("impulse components", &ode::Impulse::component) ||
          !same("impulse changes", &ode::Impulse::change) || !same("impulse factors", &ode::Impulse::factor))
        return;
    }
    if (shared) return;
  }
}

// The first difference.
void compare_times(const Ensemble& a, const Ensemble& b, Fields& fields) {
  const bool own = a.own_times() || b.own_times();
  for (std::size_t i = 0; i < (own ? a.trajectories() : std::min<std::size_t>(a.trajectories(), 1)); ++i) {
    const std::vector<double> in_a = a.times(i), in_b = b.times(i);
    const auto at = first_other_time(in_a, in_b);
    if (!at) continue;
    fields.add((own ? "trajectory " + std::to_string(i) + ": " : "") + "save times [" + std::to_string(*at) + "]",
               number_text(in_a[*at]), number_text(in_b[*at]), true);
    return;
  }
}

void compare_inputs(const Ensemble& a, const Ensemble& b, Fields& fields) {
  const std::size_t trajectories = a.trajectories();
  const auto each = [&](bool own, const char* what, const auto& values) {
    for (std::size_t i = 0; i < (own ? trajectories : std::min<std::size_t>(trajectories, 1)); ++i) {
      const std::string where = own ? "trajectory " + std::to_string(i) + ": " + what : what;
      if (!fields.same(where, values(a, i), values(b, i))) return;
    }
  };
  compare_times(a, b, fields);
  // A file of another program may not state them; between two of ours the digests tell.
  const bool stated = trajectories == 0 || a.parameters(0).empty() == b.parameters(0).empty();
  if (stated) {
    each(a.own_parameters() || b.own_parameters(), "parameters",
         [](const Ensemble& e, std::size_t i) { return e.parameters(i); });
  }
  compare_impulses(a, b, fields);
  constexpr std::size_t kRows = 4096;
  const std::size_t components = std::max<std::size_t>(a.components(), 1);
  for (std::size_t first = 0; first < trajectories; first += kRows) {
    const std::size_t count = std::min(kRows, trajectories - first);
    const auto in_a = a.initial_states(first, count);
    const auto in_b = b.initial_states(first, count);
    const auto place = static_cast<std::size_t>(std::ranges::mismatch(in_a, in_b).in1 - in_a.begin());
    if (place == in_a.size()) continue;
    fields.add("trajectory " + std::to_string(first + place / components) + ": initial state [" +
                   std::to_string(place % components) + "]",
               number_text(in_a[place]), number_text(in_b[place]), true);
    return;
  }
}

void compare_provenance(const Ensemble& a, const Ensemble& b, Fields& fields) {
  std::map<std::string, std::pair<std::string, std::string>> both;
  for (const auto& [name, value] : a.provenance()) both[name].first = value;
  for (const auto& [name, value] : b.provenance()) both[name].second = value;
  const auto& [rhs_a, rhs_b] = both["rhs_digest"];
  const bool other_rhs = !rhs_a.empty() && !rhs_b.empty() && rhs_a != rhs_b;
  const auto& [problem_a, problem_b] = both["problem_digest"];
  const bool one_problem = !problem_a.empty() && problem_a == problem_b;
  for (const auto& [name, values] : both) {
    auto [in_a, in_b] = values;
    in_a = as_compared(name, in_a), in_b = as_compared(name, in_b);
    if (in_a == in_b || kNotOfInterest.contains(name) || name.starts_with("lockstep_")) continue;
    const bool stated = !in_a.empty() && !in_b.empty();
    const bool of_solver = kOfSolver.contains(name);
    const bool must_agree = of_solver || kOfProblem.contains(name) || (kTellsOfRhs.contains(name) && other_rhs) ||
                            (kTellsOfEvents.contains(name) && !one_problem);
    const auto value = [](const std::string& stored) { return stored.empty() ? "not stated" : in_one_line(stored); };
    fields.add(name, value(in_a), value(in_b), stated && must_agree, of_solver);
  }
}

}  // namespace

std::vector<FieldDifference> compare_fields(const Ensemble& a, const Ensemble& b) {
  Fields fields;
  compare_shapes(a, b, fields);
  const bool same_shape =
      a.trajectories() == b.trajectories() && a.save_points() == b.save_points() && a.components() == b.components();
  if (same_shape) {
    compare_names(a, b, fields);
    compare_inputs(a, b, fields);
    compare_stored_tables(a, b, fields);
  }
  compare_provenance(a, b, fields);
  return std::move(fields).sorted();
}

std::string as_compared(const std::string& name, const std::string& value) {
  return name == "atol" ? as_one_number(value) : value;
}

// With u = 2^-53: dt is a rounded decimal or quotient, of a difference that was rounded, and the product with k rounds
// too: three roundings of at most u |t - start|, and the sum one of u |t|. Two lists, each so far from the exact times,
// are at most 2 u (3 |t - start| + |t|) apart. Where start is not stated it lies between 0 and the first save point, or
// is that: |t - start| <= |t| + |first|.
std::optional<std::size_t> first_other_time(std::span<const double> a, std::span<const double> b) {
  const double first = a.empty() ? 0 : std::abs(a.front());
  const auto [at, _] = std::ranges::mismatch(a, b, [&](double s, double t) {
    const double roundings = 3 * (std::abs(t) + first) + std::abs(t);
    return s == t || std::abs(s - t) <= std::numeric_limits<double>::epsilon() * roundings;
  });
  if (at == a.end() && a.size() == b.size()) return std::nullopt;
  return static_cast<std::size_t>(at - a.begin());
}

std::optional<SilentSolver> silent_on_solver(const Ensemble& a, const Ensemble& b) {
  const auto states = [](const Ensemble& of, std::string_view field) {
    const auto fields = of.provenance();
    return std::ranges::any_of(fields, [&](const auto& each) { return each.first == field && !each.second.empty(); });
  };
  const auto missing = [&](const Ensemble& of) {
    std::string text = states(of, "method") ? "" : "method";
    if (!states(of, "dt") && !(states(of, "rtol") && states(of, "atol")))
      text += std::string(text.empty() ? "" : ", ") + "rtol and atol or dt";
    return text;
  };
  const auto is_adaptive = [&](const Ensemble& of) { return states(of, "rtol") || states(of, "atol"); };
  const auto is_foreign = [&](const Ensemble& of) { return states(of, "lockstep_format") && !states(of, "version"); };
  for (const auto& [silent, other] : {std::pair{&b, &a}, std::pair{&a, &b}}) {
    std::string fields = missing(*silent);
    if (!fields.empty() && (is_adaptive(*other) || is_foreign(*other)))
      return SilentSolver{silent, other, std::move(fields)};
  }
  return std::nullopt;
}

bool same_problem(const std::vector<FieldDifference>& fields) {
  return std::ranges::all_of(fields, [](const FieldDifference& of) { return !of.forbids || of.of_solver; });
}

}  // namespace lockstep::agreement
