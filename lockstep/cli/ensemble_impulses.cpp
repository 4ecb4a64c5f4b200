#include "lockstep/cli/ensemble_impulses.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>

#include "lockstep/cli/ensemble_files.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

constexpr double kMostImpulses = 1e7;  // of a trajectory, by every

// How far start + (end - start) k / n, start + k interval and the number itself may lie apart.
double roundings_at(double time, double start) { return 0x1p-52 * (4 * std::abs(time) + 3 * std::abs(start)); }

// One table of [[impulses]] with its numbers at hand.
struct Source {
  std::vector<ode::Impulse> impulses;    // of all, or one trajectory's after the other's with
  std::vector<std::size_t> first;        // [trajectory + 1]
  std::optional<EnsembleMatrix> change;  // in place of the impulses' own
  std::optional<EnsembleMatrix> factor;
  std::optional<RepeatedTimes> every;  // the one impulse comes again and again
  std::string where;
  bool left_out = false;  // some, of trajectories beyond those that are taken
};

class Reader {
 public:
  Reader(const ImpulsesSection& section, const ImpulsedEnsemble& ensemble) : section_(section), ensemble_(ensemble) {}

  Source read(std::uint32_t stream) {
    Source source;
    source.where = section_.where;
    source.every = section_.every;
    if (section_.file) {
      read_file(source);
    } else {
      const std::size_t component = component_of(*section_.component, ensemble_.components, section_.component_where);
      if (section_.every) source.impulses.push_back({0, component});
      for (const double time : section_.times) source.impulses.push_back({time, component});
    }
    source.change = draw_column(section_.change, "change", stream);
    source.factor = draw_column(section_.factor, "factor", stream + 1);
    return source;
  }

 private:
  std::optional<EnsembleMatrix> draw_column(const std::optional<EnsembleValues>& given, const char* name,
                                            std::uint32_t stream) const {
    if (!given) return std::nullopt;
    const EnsembleValues values = load_files(*given, "", Filled::single_column);
    const auto listed = listed_rows(values);
    // A list of as many numbers as times would silently become an ensemble.
    const std::size_t trajectories = ensemble_.trajectories;
    const bool says = ensemble_.says_trajectories, as_times = listed && *listed > 1 && *listed == section_.times.size();
    if (listed && *listed != trajectories && (!says || as_times)) {
      const std::string set = "set ensemble.trajectories = " + std::to_string(*listed) + ", or ";
      refuse(values.where, "a list of " + counted_text(*listed, "number") + ", one for each trajectory",
             "as many as trajectories, of which there " + std::string(trajectories == 1 ? "is " : "are ") +
                 count_text(trajectories),
             (says ? std::string() : set) + "write a table of [[impulses]] for each time");
    }
    return draw(values, ensemble_.trajectories, {name, {name}, {}}, {ensemble_.random.seed, stream});
  }

  void read_file(Source& source) {
    if (hdf5::File::recognises(*section_.file)) {
      refuse(section_.where, "an HDF5 file: " + section_.file->string(), "a CSV with columns time, component, change");
    }
    table_ = train::read_csv(*section_.file);
    std::vector<std::string_view> known{"time", "component", "change", "factor", "trajectory"};
    for (const std::string& other : {std::cref(ensemble_.time_column), std::cref(ensemble_.trajectory_column)}) {
      if (std::ranges::find(known, other) == known.end()) known.push_back(other);
    }
    for (const std::string& name : table_.columns) {
      if (std::ranges::find(known, name) != known.end()) continue;
      refuse(section_.where, "column \"" + name + "\" in " + table_.source, "columns " + list_text(known),
             did_you_mean(name, known));
    }
    const auto beside = [&](const char* name, bool is_given, const std::string& where) {
      if (!is_given || !has(name)) return;
      refuse(where, std::string(name) + " beside the column of " + table_.source, "one of them", "remove one");
    };
    beside("component", section_.component.has_value(), section_.component_where);
    beside("change", section_.change.has_value(), section_.change ? section_.change->where : "");
    beside("factor", section_.factor.has_value(), section_.factor ? section_.factor->where : "");
    if (!has("change") && !has("factor") && !section_.change && !section_.factor) {
      refuse(section_.where, "neither a column change nor one factor in " + table_.source,
             "what happens to the component", "add a column, or change = 100 beside file");
    }
    const std::string time = has(ensemble_.time_column) ? ensemble_.time_column : "time";
    if (!has(time)) table_.column(section_.where, time);  // which is missing
    const std::vector<double> times = column(time), changes = column("change"), factors = column("factor");
    const std::vector<std::size_t> components = read_components();
    const auto impulse_of = [&](std::size_t row) {
      return ode::Impulse{times[row], components[row], changes.empty() ? 0 : changes[row],
                          factors.empty() ? 1 : factors[row]};
    };
    const std::string whose = has(ensemble_.trajectory_column) ? ensemble_.trajectory_column : "trajectory";
    if (!has(whose)) {
      for (std::size_t row = 0; row < table_.rows; ++row) source.impulses.push_back(impulse_of(row));
      return;
    }
    std::vector<std::vector<ode::Impulse>> of(ensemble_.trajectories);
    for (std::size_t row = 0; row < table_.rows; ++row) {
      const std::vector<std::size_t> trajectories = trajectories_of(row, whose);
      for (const std::size_t trajectory : trajectories) of[trajectory].push_back(impulse_of(row));
      source.left_out = source.left_out || trajectories.empty();
    }
    source.first.push_back(0);
    for (const std::vector<ode::Impulse>& own : of) {
      source.impulses.insert(source.impulses.end(), own.begin(), own.end());
      source.first.push_back(source.impulses.size());
    }
  }

  // By its number, or all that bear the label; none for one that is left out.
  std::vector<std::size_t> trajectories_of(std::size_t row, const std::string& column) {
    const std::size_t at = table_.index(section_.where, column);
    const double number = table_(row, at);
    if (!ensemble_.labels.empty()) {
      if (places_.empty()) {
        for (std::size_t i = 0; i < ensemble_.labels.size(); ++i) places_[ensemble_.labels[i]].push_back(i);
      }
      std::string label = table_.text(row, at);
      if (label.empty() && !std::isnan(number)) label = number_text(number);
      const auto found = places_.find(label);
      if (found != places_.end()) return found->second;
      const std::vector<std::string_view> known(ensemble_.labels.begin(), ensemble_.labels.end());
      refuse(place(row, column), label.empty() ? "an empty field" : '"' + label + '"',
             "a trajectory of the data: " + list_text(known), did_you_mean(label, known));
    }
    if (number >= 0 && number == std::floor(number)) {
      if (number < static_cast<double>(ensemble_.trajectories)) return {static_cast<std::size_t>(number)};
      if (ensemble_.takes_the_first && std::isfinite(number)) return {};
    }
    const std::string text = table_.text(row, at);
    refuse(place(row, column),
           text.empty() ? std::isnan(number) ? "an empty field" : number_text(number) : '"' + text + '"',
           "a trajectory's number, from 0 to " + std::to_string(ensemble_.trajectories - 1));
  }

  bool has(std::string_view name) const { return std::ranges::find(table_.columns, name) != table_.columns.end(); }

  std::string place(std::size_t row, const std::string& name) const {
    return table_.source + ":" + std::to_string(table_.lines[row]) + ", column " + name;
  }

  // Of numbers; empty where the file has none of that name.
  std::vector<double> column(const std::string& name) const {
    if (!has(name)) return {};
    const std::size_t at = table_.column(section_.where, name);
    std::vector<double> numbers(table_.rows);
    for (std::size_t row = 0; row < table_.rows; ++row) numbers[row] = table_(row, at);
    return numbers;
  }

  std::vector<std::size_t> read_components() const {
    if (section_.component) {
      return std::vector<std::size_t>(
          table_.rows, component_of(*section_.component, ensemble_.components, section_.component_where));
    }
    if (!has("component")) {
      refuse(section_.where, "no column component in " + table_.source, "the component that changes",
             "add the column, or component = \"x\" beside file");
    }
    const std::size_t at = table_.index(section_.where, "component");
    std::vector<std::size_t> components(table_.rows);
    for (std::size_t row = 0; row < table_.rows; ++row) {
      const std::string name = table_.text(row, at);
      const double index = table_(row, at);
      if (name.empty() && !(index >= 0 && index == std::floor(index) && index < 1e9)) {
        refuse(place(row, "component"), std::isnan(index) ? "an empty field" : number_text(index),
               "a component's name, or its index from 0");
      }
      components[row] =
          name.empty() ? component_of(static_cast<std::size_t>(index), ensemble_.components, place(row, "component"))
                       : component_of(name, ensemble_.components, place(row, "component"));
    }
    return components;
  }

  const ImpulsesSection& section_;
  const ImpulsedEnsemble& ensemble_;
  train::Table table_;
  std::map<std::string, std::vector<std::size_t>> places_;  // of labels
};

class Maker {
 public:
  Maker(std::vector<Source> sources, const ImpulsedEnsemble& ensemble)
      : sources_(std::move(sources)), ensemble_(ensemble) {}

  ode::Impulses make() const {
    ode::Impulses made;
    const bool own = ensemble_.trajectories > 1 &&
                     std::ranges::any_of(sources_, [&](const Source& source) { return is_own(source); });
    if (own) made.first.push_back(0);
    for (std::size_t i = 0; i < (own ? ensemble_.trajectories : 1); ++i) {
      const std::size_t begin = made.impulses.size();
      for (const Source& source : sources_) add(source, i, made.impulses);
      order_impulses(std::span(made.impulses).subspan(begin), own || ensemble_.starts.size() == 1 ? start(i) : 0);
      if (own) made.first.push_back(made.impulses.size());
    }
    return made;
  }

  // Those of each table that nobody meets.
  void check_spans(std::vector<std::string>& notes) const {
    const double first = std::ranges::min(ensemble_.starts), last = std::ranges::max(ensemble_.ends);
    const std::string spans = "from " + number_text(first) + " to before " + number_text(last);
    for (const Source& source : sources_) {
      const bool own = is_own(source);
      std::size_t all = 0, outside = 0;
      double example = 0;
      std::vector<ode::Impulse> impulses;
      for (std::size_t i = 0; i < (own ? ensemble_.trajectories : 1); ++i) {
        impulses.clear();
        add(source, i, impulses);
        for (const ode::Impulse& impulse : impulses) {
          ++all;
          if (impulse.time >= (own ? start(i) : first) && impulse.time < (own ? end(i) : last)) continue;
          if (outside++ == 0) example = impulse.time;
        }
      }
      // The first few of an ensemble may have none.
      if (outside == all && !source.left_out) {
        refuse(source.where,
               all == 0 ? "no time within a span" : "t = " + number_text(example) + ", and none within a span",
               "times within spans, " + spans, "give times in the unit of " + ensemble_.times_of);
      }
      if (outside == 0) continue;
      notes.push_back(
          count_text(outside) + " of " + counted_text(all, "impulse") + " of " + source.where +
          (outside == 1 ? " does" : " do") + " nothing: t = " + number_text(example) + " lies outside " +
          (own && ensemble_.starts.size() + ensemble_.ends.size() > 2 ? "its trajectory's span" : "spans, " + spans));
    }
  }

 private:
  double start(std::size_t i) const { return ensemble_.starts[ensemble_.starts.size() == 1 ? 0 : i]; }
  double end(std::size_t i) const { return ensemble_.ends[ensemble_.ends.size() == 1 ? 0 : i]; }

  // Whether they are each trajectory's own.
  bool is_own(const Source& source) const {
    const auto rows = [](const std::optional<EnsembleMatrix>& numbers) { return numbers ? numbers->rows : 1; };
    if (!source.first.empty() || rows(source.change) > 1 || rows(source.factor) > 1) return true;
    return source.every && ((!source.every->from && ensemble_.starts.size() > 1) ||
                            (!source.every->until && ensemble_.ends.size() > 1));
  }

  std::vector<double> times(const Source& source, std::size_t i) const {
    const auto& [interval, given_from, given_until] = *source.every;
    const double from = given_from.value_or(start(i)), until = given_until.value_or(end(i));
    if (until < from) return {};
    std::vector<double> times = repeated_times(from, until, interval, kMostImpulses, source.where);
    // At the end of its span a trajectory ends before it: who gives no end means none there.
    if (!given_until && times.back() == until) times.pop_back();
    return times;
  }

  void add(const Source& source, std::size_t i, std::vector<ode::Impulse>& impulses) const {
    const std::size_t begin = impulses.size();
    if (source.every) {
      for (const double time : times(source, i)) impulses.push_back({time, source.impulses[0].component});
    } else if (source.first.empty()) {
      impulses.insert(impulses.end(), source.impulses.begin(), source.impulses.end());
    } else {
      const auto from = source.impulses.begin();
      impulses.insert(impulses.end(), from + static_cast<std::ptrdiff_t>(source.first[i]),
                      from + static_cast<std::ptrdiff_t>(source.first[i + 1]));
    }
    const auto of = [&](const EnsembleMatrix& numbers) { return numbers.values[numbers.rows == 1 ? 0 : i]; };
    for (std::size_t k = begin; k < impulses.size(); ++k) {
      if (source.change) impulses[k].change = of(*source.change);
      if (source.factor) impulses[k].factor = of(*source.factor);
    }
  }

  std::vector<Source> sources_;
  const ImpulsedEnsemble& ensemble_;
};

}  // namespace

ode::Impulses make_impulses(const std::vector<ImpulsesSection>& sections, const ImpulsedEnsemble& ensemble,
                            std::vector<std::string>& notes) {
  if (sections.empty() || ensemble.trajectories == 0) return {};
  for (std::size_t i = 0; i < std::max(ensemble.starts.size(), ensemble.ends.size()); ++i) {
    const double start = ensemble.starts[ensemble.starts.size() == 1 ? 0 : i];
    const double end = ensemble.ends[ensemble.ends.size() == 1 ? 0 : i];
    if (end >= start) continue;
    refuse(sections.front().where, "a span that runs backwards, that of trajectory " + std::to_string(i),
           "spans that run forward where states change at once", "exchange the ends in time.span");
  }
  std::vector<Source> sources;
  std::uint32_t stream = ensemble.random.stream;
  for (const ImpulsesSection& section : sections) {
    sources.push_back(Reader(section, ensemble).read(stream));
    stream += 2;
  }
  const Maker maker(std::move(sources), ensemble);
  maker.check_spans(notes);
  return maker.make();
}

std::string text_of_impulses(const ode::Impulses& impulses, std::span<const std::string> components) {
  if (impulses.impulses.empty()) return {};
  std::vector<bool> changes(components.size());
  double least = std::numeric_limits<double>::infinity(), most = -least;
  for (const ode::Impulse& impulse : impulses.impulses) {
    changes[impulse.component] = true;
    least = std::min(least, impulse.time);
    most = std::max(most, impulse.time);
  }
  std::vector<std::string_view> names;
  for (std::size_t c = 0; c < components.size(); ++c) {
    if (changes[c]) names.push_back(components[c]);
  }
  std::size_t fewest = impulses.impulses.size(), greatest = 0;
  for (std::size_t i = 1; i < impulses.first.size(); ++i) {
    const std::size_t count = impulses.first[i] - impulses.first[i - 1];
    fewest = std::min(fewest, count);
    greatest = std::max(greatest, count);
  }
  std::string count = counted_text(impulses.impulses.size(), "change");
  if (greatest > 0) {
    const std::string least_of = fewest == greatest ? "" : count_text(fewest) + " to ";
    count = least_of + counted_text(greatest, "change") + " of each trajectory's own,";
  }
  return count + " of " + list_text(names) + ", at t = " + number_text(least) +
         (most > least ? " to " + number_text(most) : "");
}

std::size_t component_of(const std::variant<std::string, std::size_t>& component,
                         std::span<const std::string> components, const std::string& where) {
  if (const auto* name = std::get_if<std::string>(&component)) {
    const std::vector<std::string_view> known(components.begin(), components.end());
    const auto found = std::ranges::find(known, *name);
    if (found == known.end()) {
      refuse(where, "\"" + *name + "\"", "one of " + list_text(known), did_you_mean(*name, known));
    }
    return static_cast<std::size_t>(found - known.begin());
  }
  const std::size_t index = std::get<std::size_t>(component);
  if (index >= components.size()) {
    refuse(where, std::to_string(index), "a component from 0 to " + std::to_string(components.size() - 1));
  }
  return index;
}

void order_impulses(std::span<ode::Impulse> impulses, double start) {
  std::vector<std::size_t> order(impulses.size());  // each one's place as they stand, by time
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return impulses[i].time; });
  std::vector<ode::Impulse> ordered;
  ordered.reserve(impulses.size());
  for (auto begin = order.begin(), end = begin; begin != order.end(); begin = end) {
    const double first = impulses[*begin].time, apart = roundings_at(first, start);
    end = std::find_if(begin, order.end(), [&](std::size_t i) { return impulses[i].time - first > apart; });
    std::sort(begin, end);
    for (auto at = begin; at != end; ++at) {
      ordered.push_back(impulses[*at]);
      ordered.back().time = impulses[*begin].time;
    }
  }
  std::ranges::copy(ordered, impulses.begin());
}

void meet_times(std::span<ode::Impulse> impulses, std::span<const double> times, double start) {
  for (ode::Impulse& impulse : impulses) {
    const double apart = roundings_at(impulse.time, start);
    const auto behind = std::ranges::lower_bound(times, impulse.time);
    if (behind != times.end() && *behind - impulse.time <= apart) {
      impulse.time = *behind;
    } else if (behind != times.begin() && impulse.time - behind[-1] <= apart) {
      impulse.time = behind[-1];
    }
  }
}

void meet_save_points(ode::Problem& problem) {
  const std::span<ode::Impulse> all = problem.impulses;
  const auto saved = [&](std::size_t i) {
    return std::span<const double>(problem.save_times_of(i), problem.save_points());
  };
  if (problem.impulses_differ()) {
    for (std::size_t i = 0; i < problem.trajectories(); ++i) {
      const std::size_t first = problem.first_impulse[i];
      meet_times(all.subspan(first, problem.first_impulse[i + 1] - first), saved(i), problem.start_time(i));
    }
  } else if (!all.empty() && !problem.save_times_per_trajectory) {
    meet_times(all, saved(0), problem.start_time(0));
  }
}

std::vector<double> repeated_times(double start, double end, double interval, double most, const std::string& where) {
  // Of an interval: 0.1 fits ten times into 1 although rounding says 9.99.., and thrice into 1.7e9 to 1700000000.3, an
  // end that is rounded itself. Times ascend nevertheless.
  const double of_ends = 0x1p-52 * std::max(std::abs(start), std::abs(end)) / interval;
  const double slack = std::max(1e-9, std::min(of_ends, 0.25));
  const double intervals = std::floor(std::abs(end - start) / interval + slack);
  if (!(intervals <= most)) {
    refuse(where, number_text(interval) + ", which makes " + rounded_text(intervals, 3) + " times",
           "at most " + rounded_text(most, 3) + " times", "make it longer");
  }
  const double sign = end < start ? -1 : 1;
  std::vector<double> times(static_cast<std::size_t>(intervals) + 1);
  for (std::size_t i = 0; i < times.size(); ++i) {
    times[i] = start + sign * interval * static_cast<double>(i);
  }
  if (sign * (end - times.back()) <= slack * interval) times.back() = end;
  return times;
}

}  // namespace lockstep::cli
