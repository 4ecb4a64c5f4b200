#include "lockstep/cli/problem_setup.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "lockstep/cli/ensemble_files.h"
#include "lockstep/cli/ensemble_grid.h"
#include "lockstep/cli/ensemble_impulses.h"
#include "lockstep/cli/float32_range.h"
#include "lockstep/cli/meant_numbers.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/right_hand_side.h"
#include "lockstep/cli/step_limit.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/time_notes.h"
#include "lockstep/cli/unread_note.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/solve.h"

namespace lockstep::cli {
namespace {

// Random numbers of initial states, parameters, spans and impulses are independent of each other.
enum Stream : std::uint32_t { kInitialStates, kParameters, kSpans, kImpulses };

// The values of each part of the ensemble, datasets read.
struct Sources {
  std::optional<EnsembleValues> initial_state;
  std::optional<EnsembleValues> parameters;
  std::optional<EnsembleValues> span;
};

// What to do about sources that list different numbers of rows; `one`, where that is not null, lists a single one.
std::string rows_remedy(const Sources& sources, const std::optional<EnsembleValues>* one) {
  const std::string first = "set ensemble.trajectories to use the first rows of each";
  if (one == nullptr) return first;
  const char* const plain = one == &sources.initial_state ? "ensemble.initial_state as [component]"
                            : one == &sources.parameters  ? "ensemble.parameters as [parameter]"
                                                          : "time.span as [start, end]";
  return std::string("for all trajectories the same give ") + plain + ", one dimension";
}

// The grid says how many there are: whoever else does must agree.
std::size_t count_grid(const ProblemFile& file, const Sources& sources, const Grid& grid) {
  const std::size_t count = grid.trajectories();
  const std::string expected =
      count_text(count) + ", one for each combination of ensemble.grid (" + grid_text(grid.shape()) + ")";
  if (count == 0)
    refuse(file.path.string() + ": ensemble.grid", grid_text(grid.shape()), "fewer combinations", "take fewer values");
  if (const auto& given = file.ensemble.trajectories; given && given->value != count) {
    refuse(given->where, count_text(given->value), expected, "leave it out where there is a grid");
  }
  for (const auto* source : {&sources.initial_state, &sources.parameters, &sources.span}) {
    if (!*source) continue;
    const std::string spread = where_spread(**source);
    if (!spread.empty()) {
      refuse(spread, "a range to spread over trajectories, beside ensemble.grid", "an axis of the grid, or one number",
             "move it into [ensemble.grid] with a number of points, [low, high, 11]");
    }
    if (const auto rows = listed_rows(**source); rows && *rows != count) {
      refuse(
          (*source)->where, counted_text(*rows, "row"), expected,
          "move what is to be combined with the others into [ensemble.grid], and give one number for all of the rest");
    }
  }
  return count;
}

std::size_t count_trajectories(const ProblemFile& file, const Sources& sources, const Grid& grid) {
  if (!grid.empty()) return count_grid(file, sources, grid);
  if (file.ensemble.trajectories) return file.ensemble.trajectories->value;
  std::size_t listed = 0;
  const std::optional<EnsembleValues>* before = nullptr;
  for (const auto* source : {&sources.initial_state, &sources.parameters, &sources.span}) {
    if (!*source) continue;
    const auto rows = listed_rows(**source);
    if (!rows) continue;
    if (listed != 0 && *rows != listed) {
      refuse((*source)->where, counted_text(*rows, "row"), count_text(listed) + " as " + (*before)->where + " lists",
             rows_remedy(sources, listed == 1  ? before
                                  : *rows == 1 ? source
                                               : nullptr));
    }
    listed = *rows;
    before = source;
  }
  if (listed > 0) return listed;
  for (const auto* source : {&sources.initial_state, &sources.parameters, &sources.span}) {
    if (*source && list_nothing(**source)) return 0;
  }
  for (const auto* source : {&sources.initial_state, &sources.parameters, &sources.span}) {
    const std::string where = *source ? where_spread(**source) : std::string();
    if (!where.empty()) {
      refuse(where, "a range to spread over trajectories, whose number nothing says", "how many",
             "add trajectories = 11 to [ensemble]");
    }
  }
  return 1;
}

double memory_bytes() {
  return static_cast<double>(::sysconf(_SC_PHYS_PAGES)) * static_cast<double>(::sysconf(_SC_PAGE_SIZE));
}

// Counts that no memory holds are said to be so before they are tried.
void require_memory(const ProblemFile& file, std::size_t trajectories, std::size_t components) {
  const double bytes =
      static_cast<double>(trajectories) * static_cast<double>(std::max<std::size_t>(components, 1)) * sizeof(double);
  const double memory = memory_bytes();
  if (bytes <= memory || memory <= 0) return;
  refuse(file.ensemble.trajectories ? file.ensemble.trajectories->where : file.path.string() + ": ensemble",
         counted_text(trajectories, "trajectory") + ", whose initial states take " +
             size_text(static_cast<std::uint64_t>(std::min(bytes, 1e19))),
         "less than the memory of this machine, " + size_text(static_cast<std::uint64_t>(memory)),
         file.ensemble.grid.empty() ? "solve them in several files with other seeds" : "take fewer values on its axes");
}

const EnsembleValues* pointer_to(const std::optional<EnsembleValues>& values) { return values ? &*values : nullptr; }

void draw_initial_states(const ProblemFile& file, const Sources& sources, const NamedRhs& rhs, const Grid& grid,
                         std::size_t trajectories, ode::Problem& problem) {
  const ColumnNames columns =
      grid.without_axes(Grid::Kind::component, {"component", rhs.component_names, {}, rhs.parameter_names},
                        pointer_to(sources.initial_state));
  EnsembleMatrix states;
  if (sources.initial_state) {
    states = draw(*sources.initial_state, trajectories, columns, {file.ensemble.seed, kInitialStates});
  } else if (rhs.default_initial_state.empty() && grid.has(Grid::Kind::component)) {
    // Those that are no axes are missed by name.
    states =
        draw({EnsembleValues::Named{}, file.path.string() + ": ensemble.initial_state"}, trajectories, columns, {});
  } else if (!rhs.default_initial_state.empty()) {
    states = {rhs.default_initial_state, 1};
  } else {
    refuse(file.path.string() + ": ensemble.initial_state", "nothing", "the state each trajectory starts from",
           "add initial_state = [1, 0, 0] to [ensemble]");
  }
  if (trajectories == 0) states.values.clear();
  if (states.rows == 1 && trajectories > 1) states.values = repeated(std::move(states.values), trajectories);
  problem.initial_states = grid.fill(Grid::Kind::component, std::move(states.values), rhs.component_names.size());
}

void draw_parameters(const ProblemFile& file, const Sources& sources, const NamedRhs& rhs, const Grid& grid,
                     std::size_t trajectories, ode::Problem& problem) {
  const ColumnNames columns =
      grid.without_axes(Grid::Kind::parameter, {"parameter", rhs.parameter_names, rhs.default_parameters},
                        pointer_to(sources.parameters));
  if (sources.parameters) {
    problem.parameters =
        grid.fill(Grid::Kind::parameter,
                  draw(*sources.parameters, trajectories, columns, {file.ensemble.seed, kParameters}).values,
                  rhs.parameter_names.size());
    return;
  }
  for (std::size_t i = 0; i < rhs.parameter_names.size(); ++i) {
    if (!columns.defaults[i]) {
      const std::string& name = rhs.parameter_names[i];
      const bool may_be_time = (name == "t" || name == "time") && file.rhs.model && !file.rhs.with_time;
      refuse(file.path.string() + ": ensemble.parameters", "no value for " + name, "a number for each parameter",
             may_be_time ? "where " + name + " is the time, set with_time = true; else add parameters to [ensemble]"
                         : "add parameters to [ensemble]");
    }
    problem.parameters.push_back(*columns.defaults[i]);
  }
  problem.parameters = grid.fill(Grid::Kind::parameter, std::move(problem.parameters), rhs.parameter_names.size());
}

void draw_spans(const ProblemFile& file, const Sources& sources, const NamedRhs& rhs, std::size_t trajectories,
                ode::Problem& problem) {
  const ColumnNames columns{"end of the span", {"start", "end"}, {0.0, std::nullopt}};
  EnsembleMatrix spans;
  if (sources.span) {
    spans = draw(*sources.span, trajectories, columns, {file.ensemble.seed, kSpans});
  } else if (rhs.default_end_time) {
    spans = {{0, *rhs.default_end_time}, 1};
  } else {
    refuse(file.path.string() + ": time.span", "nothing", "start and end of the integration",
           "add [time] with span = [0, 1]");
  }
  problem.start_times.resize(spans.rows);
  problem.end_times.resize(spans.rows);
  for (std::size_t i = 0; i < spans.rows; ++i) {
    problem.start_times[i] = spans.values[2 * i];
    problem.end_times[i] = spans.values[2 * i + 1];
  }
}

constexpr double kMostSavePoints = 1e9;  // 8 GB of times alone

std::vector<double> evenly_spaced(double start, double end, std::size_t points) {
  if (points == 1) return {end};
  std::vector<double> times(points);
  for (std::size_t i = 0; i < points; ++i) {
    // Product first: over [0, 1] these are the numbers nearest to i / (n - 1).
    times[i] = start + (end - start) * static_cast<double>(i) / static_cast<double>(points - 1);
  }
  times.back() = end;
  return times;
}

void require_memory_for_times(const std::string& where, std::size_t points, std::size_t spans) {
  const double bytes = static_cast<double>(points) * static_cast<double>(spans) * sizeof(double),
               memory = memory_bytes();
  if (bytes <= memory || memory <= 0) return;
  refuse(where,
         count_text(points) + " save points" + (spans > 1 ? " for each of " + count_text(spans) + " spans" : "") +
             ", whose times take " + size_text(static_cast<std::uint64_t>(std::min(bytes, 1e19))),
         "less than the memory of this machine, " + size_text(static_cast<std::uint64_t>(memory)), "save fewer points");
}

void load_save_times(const EnsembleValues::Dataset& source, const std::string& where, std::size_t trajectories,
                     ode::Problem& problem) {
  const hdf5::File file = hdf5::File::open(source.file);
  const MeantNumbers meant(dataset_named(file, source.dataset, where));
  const hdf5::Shape shape = meant.dataset().shape();
  if (shape.size() == 1) {
    problem.save_times = meant.read<double>();
  } else if (shape.size() == 2 && shape[0] >= trajectories) {
    problem.save_times = meant.read<double>({0, 0}, {trajectories, shape[1]});
    problem.save_times_per_trajectory = true;
  } else {
    refuse(where,
           meant.dataset().name() + " with " + std::to_string(shape.size()) + " dimensions" +
               (shape.size() == 2 ? " and " + count_text(shape[0]) + " rows" : ""),
           "[time], or [trajectory, time] with a row for each of " + count_text(trajectories) + " trajectories");
  }
}

void choose_save_times(const ProblemFile& file, std::size_t trajectories, ode::Problem& problem) {
  const bool shared_span = problem.start_times.size() == 1;
  const auto& save = file.time.save;
  if (save && std::holds_alternative<EnsembleValues::Dataset>(save->value)) {
    load_save_times(std::get<EnsembleValues::Dataset>(save->value), save->where, trajectories, problem);
    return;
  }
  if (save && std::holds_alternative<EnsembleValues::Table>(save->value)) {
    problem.save_times = read_column(std::get<EnsembleValues::Table>(save->value), "time", save->where);
    return;
  }
  if (save && std::holds_alternative<Times>(save->value)) {
    problem.save_times = std::get<Times>(save->value).times;
    return;
  }
  if (save && std::holds_alternative<Every>(save->value)) {
    const double interval = std::get<Every>(save->value).interval;
    if (!shared_span) {
      refuse(save->where, "every = " + number_text(interval) + " with a span for each trajectory",
             "as many save points in every trajectory", "give a number of points, save = 101");
    }
    problem.save_times =
        repeated_times(problem.start_times[0], problem.end_times[0], interval, kMostSavePoints, save->where);
    return;
  }
  const auto* spread = save ? std::get_if<EnsembleValues::Spread>(&save->value) : nullptr;
  const std::size_t points = spread != nullptr ? *spread->points
                             : save            ? std::get<EvenlySpaced>(save->value).points
                                               : 1;
  if (static_cast<double>(points) > kMostSavePoints) {
    refuse(save->where, count_text(points), "at most 1e9 save points", "save fewer");
  }
  const std::size_t grids = spread != nullptr ? 1 : problem.start_times.size();
  require_memory_for_times(save ? save->where : "time.save", points, grids);
  if (spread != nullptr) {
    problem.save_times = draw({*spread, save->where}, points, {"time", {"time"}, {}}, {}).values;
    return;
  }
  problem.save_times_per_trajectory = !shared_span;
  problem.save_times.reserve(points * problem.start_times.size());  // which throws before memory is full
  for (std::size_t i = 0; i < problem.start_times.size(); ++i) {
    if (points > 1 && problem.start_times[i] == problem.end_times[i]) {
      refuse(save->where,
             count_text(points) + " points over a span of no length" +
                 (shared_span ? "" : ", that of trajectory " + std::to_string(i)),
             "a span whose end is not its start, or save = 1");
    }
    const std::vector<double> times = evenly_spaced(problem.start_times[i], problem.end_times[i], points);
    problem.save_times.insert(problem.save_times.end(), times.begin(), times.end());
  }
}

// Returns what of the problem reads the time, as people call it; "" where nothing does.
std::string add_events(const ProblemFile& file, NamedRhs& rhs, ProblemSetup& setup) {
  std::string reader = rhs.reads_time ? "the right-hand side" : "";
  const auto note = [&](bool reads_time, const char* name) {
    if (reads_time && reader.empty()) reader = name;
  };
  std::vector<std::string> nets;
  const auto add_nets = [&nets](std::vector<std::string>& called) {
    for (std::string& net : called) {
      if (std::ranges::find(nets, net) == nets.end()) nets.push_back(std::move(net));
    }
  };
  if (file.event) {
    auto [event, form, reads_time, called] = make_event(*file.event, rhs);
    setup.problem.event = std::move(event);
    setup.event = std::move(form);
    note(reads_time, "the event");
    add_nets(called);
  }
  for (const ResetSection& section : file.resets) {
    auto [reset, form, reads_time, called] = make_reset(section, rhs);
    setup.problem.resets.push_back(std::move(reset));
    setup.resets.push_back(std::move(form));
    note(reads_time, "a reset");
    add_nets(called);
  }
  setup.problem.keep_events = file.output.events;
  const auto guard = file.rhs.guard ? file.rhs.guard->value : ode::GuardAction::flag;
  if (!nets.empty() && (guard == ode::GuardAction::flag || guard == ode::GuardAction::stop)) {
    const std::vector<std::string_view> names(nets.begin(), nets.end());
    rhs.notes.push_back("the training range of " + list_text(names) +
                        " is not watched in calls by resets and events; guard = \"clamp\" acts there, too");
  }
  return reader;
}

void add_impulses(const ProblemFile& file, const Sources& sources, const NamedRhs& rhs, ProblemSetup& setup) {
  ode::Problem& problem = setup.problem;
  const auto lists = [](const std::optional<EnsembleValues>& values) { return values && listed_rows(*values); };
  ode::Impulses impulses = make_impulses(
      file.impulses,
      {.components = rhs.component_names,
       .trajectories = problem.trajectories(),
       .says_trajectories = file.ensemble.trajectories || !file.ensemble.grid.empty() || lists(sources.initial_state) ||
                            lists(sources.parameters) || lists(sources.span),
       .takes_the_first = file.ensemble.takes_the_first,
       .starts = problem.start_times,
       .ends = problem.end_times,
       .random = {file.ensemble.seed, kImpulses}},
      setup.notes);
  setup.impulses = text_of_impulses(impulses, rhs.component_names);
  problem.impulses = std::move(impulses.impulses);
  problem.first_impulse = std::move(impulses.first);
}

// Those of the net's file, and over them those of the problem file.
std::vector<std::string> units_of(const ProblemFile& file, const NamedRhs& rhs) {
  std::vector<std::string> units = rhs.component_units;
  if (file.rhs.units.empty()) return units;
  units.resize(rhs.component_names.size());
  const std::vector<std::string_view> known(rhs.component_names.begin(), rhs.component_names.end());
  for (const auto& [name, unit] : file.rhs.units) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end()) {
      refuse(unit.where, "an unknown component", "one of " + list_text(known), did_you_mean(name, known));
    }
    units[static_cast<std::size_t>(found - known.begin())] = unit.value;
  }
  return units;
}

// Which components go to the file.
std::vector<std::size_t> choose_components(const Output& output, const NamedRhs& rhs) {
  std::vector<std::size_t> chosen;
  if (!output.components) return chosen;
  const auto& [names, where] = *output.components;
  const std::vector<std::string_view> known(rhs.component_names.begin(), rhs.component_names.end());
  for (const std::string& name : names) {
    const auto found = std::ranges::find(known, name);
    if (found == known.end()) {
      refuse(where, "\"" + name + "\"", "names among " + list_text(known), did_you_mean(name, known));
    }
    const auto component = static_cast<std::size_t>(found - known.begin());
    if (std::ranges::find(chosen, component) != chosen.end()) {
      refuse(where, "\"" + name + "\" twice", "each component once");
    }
    chosen.push_back(component);
  }
  return chosen;
}

// Every so many of the save points, from the first. They are hit by the interpolant, so that leaving some out changes
// no bit of the others.
void thin_save_times(const Output& output, ode::Problem& problem) {
  if (!output.every || output.every->value == 1) return;
  const std::size_t every = output.every->value;
  const std::size_t points = problem.save_points();
  if (every >= points) {
    refuse(output.every->where, count_text(every),
           "a number below that of the save points, which is " + count_text(points),
           "save fewer points with time.save");
  }
  std::vector<double> kept;
  for (std::size_t i = 0; i < problem.save_times.size(); ++i) {
    if (i % points % every == 0) kept.push_back(problem.save_times[i]);
  }
  problem.save_times = std::move(kept);
}

// Fixed steps are counted before any is taken: where all trajectories would be stopped for their number, nobody
// needs to wait for it.
void require_steps_to_the_end(const ProblemFile& file, const ode::Problem& problem, const ode::Options& options) {
  if (options.control != ode::StepControl::fixed || problem.event || problem.trajectories() == 0) return;
  double fewest = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::max(problem.start_times.size(), problem.end_times.size()); ++i) {
    fewest = std::min(fewest, std::abs(problem.end_time(i) - problem.start_time(i)) / options.dt);
  }
  const auto most = static_cast<double>(options.max_steps);
  if (fewest < most + 1) return;
  const auto place = file.where_of.find("options.dt");
  refuse(place == file.where_of.end() ? file.path.string() + ": method.dt" : place->second,
         number_text(options.dt) + ", which takes " + number_text(std::round(fewest)) + " steps to the end",
         "at most " + count_text(options.max_steps) + " steps (method.max_steps)",
         "take larger steps, or raise max_steps");
}

}  // namespace

Error in_users_words(const Error& error, const ProblemFile& file) {
  static const std::map<std::string, std::string, std::less<>> kKeys{
      {"problem.rhs", "rhs"},
      {"problem.initial_states", "ensemble.initial_state"},
      {"problem.parameters", "ensemble.parameters"},
      {"problem.start_times", "time.span"},
      {"problem.end_times", "time.span"},
      {"problem.save_times", "time.save"},
      {"problem.resets", "resets"},
      {"problem.keep_events", "output.events"},
      {"problem.impulses", "impulses"},
      {"options.method", "method.name"},
      {"options.threads", "run.threads"},
      {"options.cpu_target", "run.cpu_target"},
      {"options.device", "run.device"},
      {"options.engine", "run.engine"},
  };
  std::string field = error.field();
  if (field == "method") field = "options.method";
  if (field == "cpu target") field = "options.cpu_target";
  const std::string base = field.substr(0, field.find('['));
  const std::string index = field.substr(base.size());
  const auto place = file.where_of.find(base);
  const auto key = kKeys.find(base);
  if (place != file.where_of.end()) {
    field = place->second + index;
  } else if (key != kKeys.end()) {
    field = file.path.string() + ": " + key->second + index;
  } else if (base.starts_with("options.")) {
    field = file.path.string() + ": method." + field.substr(8);
  }
  return Error(error.kind(), {field, error.found(), error.expected(), error.remedy()});
}

std::vector<std::string> ProblemSetup::stored_names() const {
  if (stored.empty()) return component_names;
  std::vector<std::string> names;
  for (const std::size_t component : stored) names.push_back(component_names[component]);
  return names;
}

std::vector<std::string> ProblemSetup::step_lines() const {
  std::vector<std::string> lines;
  for (std::string line : {step_limit, text_of_stops(problem, options)}) {
    if (!line.empty()) lines.push_back(std::move(line));
  }
  return lines;
}

ProblemSetup set_up(const ProblemFile& file) {
  NamedRhs rhs = load_rhs(file);
  ProblemSetup setup;
  setup.options = file.options;
  ode::Problem& problem = setup.problem;
  problem.rhs = rhs.function;

  const auto load = [](const std::optional<EnsembleValues>& values, const char* coordinate) {
    return values ? std::optional(load_files(*values, coordinate)) : std::nullopt;
  };
  const Sources sources{load(file.ensemble.initial_state, "component"), load(file.ensemble.parameters, "parameter"),
                        load(file.time.span, "")};
  const Grid grid(file.ensemble.grid, rhs.component_names, rhs.parameter_names);
  const std::size_t trajectories = count_trajectories(file, sources, grid);
  require_memory(file, trajectories, rhs.component_names.size());
  draw_initial_states(file, sources, rhs, grid, trajectories, problem);
  draw_parameters(file, sources, rhs, grid, trajectories, problem);
  draw_spans(file, sources, rhs, trajectories, problem);
  choose_save_times(file, trajectories, problem);
  thin_save_times(file.output, problem);
  const std::string reader_of_time = add_events(file, rhs, setup);
  setup.notes = std::move(rhs.notes);
  if (const nn::Equations* system = file.rhs.equations ? &rhs.names : file.rhs.written.get()) {
    if (auto note = unread_note(*system, texts_of(file.event, file.resets))) setup.notes.push_back(*std::move(note));
  }
  add_impulses(file, sources, rhs, setup);
  meet_save_points(problem);
  setup.stored = choose_components(file.output, rhs);
  if (rhs.guard == ode::GuardAction::stop) {
    if (problem.event) {
      refuse(file.event->where, "an event beside guard = \"stop\"", "one of them", "use guard = \"flag\"");
    }
    problem.event = ode::leaves_range(problem.rhs, rhs.range);
  }
  try {
    ode::validate(problem, setup.options);
    ode::require_devices(problem, setup.options);
  } catch (const Error& error) {
    throw in_users_words(error, file);
  }
  require_steps_to_the_end(file, problem, setup.options);
  setup.range = std::move(rhs.range);
  setup.guard = rhs.guard;
  if (!reader_of_time.empty() && setup.options.precision == Precision::f32) {
    if (auto note = coarse_time_note(problem, reader_of_time)) setup.notes.push_back(*std::move(note));
  }
  if (setup.options.precision == Precision::f32) {
    for (std::string& note : float32_range_notes(problem, rhs.component_names, rhs.parameter_names)) {
      setup.notes.push_back(std::move(note));
    }
  }
  setup.step_limit = limit_steps(rhs.time_feature, setup.options);
  if (auto note = note_of_steps(rhs.time_feature, problem, setup.options)) setup.notes.push_back(*std::move(note));
  const auto [first_time, last_time] = problem.time_range();
  for (const nn::KnownTimes& known : rhs.times) add_time_note(known, first_time, last_time, setup.notes);
  if (auto note = far_stops_note(problem, setup.options.stops)) setup.notes.push_back(*std::move(note));
  if (auto note = date_note(file.time.unit)) setup.notes.push_back(*std::move(note));
  setup.title = std::move(rhs.title);
  setup.grid = grid.shape();
  setup.component_units = units_of(file, rhs);
  setup.component_names = std::move(rhs.component_names);
  setup.time_unit = file.time.unit;
  setup.parameter_names = std::move(rhs.parameter_names);
  setup.stored_model = std::move(rhs.stored);
  setup.equations = std::move(rhs.equations);
  return setup;
}

}  // namespace lockstep::cli
