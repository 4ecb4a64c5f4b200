#include "lockstep/cli/problem_file.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "lockstep/cli/file_keys.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/toml_value.h"
#include "lockstep/core/thread_count.h"

namespace lockstep::cli {
namespace {

// One section of the file, whose keys were checked against the ones it may have.
class Section {
 public:
  Section(const TomlValue& file, std::string_view name, Names keys) : table_(file.find(name)) {
    if (table_ == nullptr) return;
    if (!table_->is_table()) throw table_->error(table_->describe(), "a table: [" + std::string(name) + "]");
    table_->allow_only(keys);
  }
  explicit operator bool() const { return table_ != nullptr; }
  const TomlValue& table() const { return *table_; }
  const TomlValue* find(std::string_view key) const { return table_ == nullptr ? nullptr : table_->find(key); }

 private:
  const TomlValue* table_;
};

std::uint64_t not_negative(const TomlValue& value) {
  const std::int64_t number = value.integer();
  if (number < 0) throw value.error(value.describe(), "an integer of 0 or more");
  return static_cast<std::uint64_t>(number);
}

std::size_t positive_count(const TomlValue& value) {
  const std::int64_t number = value.integer();
  if (number < 1) throw value.error(value.describe(), "an integer of 1 or more");
  return static_cast<std::size_t>(number);
}

double positive_number(const TomlValue& value) {
  const double number = value.number();
  if (!(number > 0)) throw value.error(value.describe(), "a number greater than 0");
  return number;
}

ode::GuardAction guard_action(const std::string& name, const std::string& where) {
  static constexpr std::array<std::string_view, 4> kActions{"flag", "clamp", "stop", "ignore"};
  if (const auto action = ode::parse_guard_action(name)) return *action;
  throw Error(ErrorKind::invalid_argument,
              {where, "\"" + name + "\"", "one of " + list_text(kActions), did_you_mean(name, kActions)});
}

void read_rhs(const TomlValue& file, ProblemFile& problem) {
  const Section section(file, "rhs", problem_keys::kRhs);
  if (!section) {
    throw Error(ErrorKind::invalid_argument, {file.where(), "no section [rhs]", "the right-hand side",
                                              "add [rhs] with model = \"net.safetensors\" or system = \"lorenz\""});
  }
  auto& rhs = problem.rhs;
  rhs.where = section.table().where();
  if (const TomlValue* units = section.find("units")) {
    if (!units->is_table()) throw units->error(units->describe(), "a table: { x = \"m\" }");
    for (const auto& [name, unit] : units->table()) rhs.units.push_back({name, {unit.text(), unit.where()}});
  }
  if (section.find("equations") != nullptr) {
    for (const char* key : {"model", "system", "activations", "with_time", "components"}) {
      const TomlValue* value = section.find(key);
      if (value == nullptr) continue;
      throw value->error(
          std::string(key) + " beside equations", "equations alone",
          std::string_view(key) == "model" ? "name it in models, and call it in an equation" : "remove one of them");
    }
    rhs.equations = read_equations(section.table(), problem.path.parent_path());
    if (const TomlValue* guard = section.find("guard")) {
      rhs.guard = {guard_action(guard->text(), guard->where()), guard->where()};
    }
    return;
  }
  for (const char* key : {"definitions", "models", "tables"}) {
    if (const TomlValue* value = section.find(key)) {
      throw value->error(std::string(key) + " without equations", "[rhs.equations]", "add it, or remove this key");
    }
  }
  if (const TomlValue* model = section.find("model")) {
    rhs.model = {problem.path.parent_path() / model->text(), model->where()};
  }
  if (const TomlValue* system = section.find("system")) rhs.system = {system->text(), system->where()};
  if (const TomlValue* activations = section.find("activations")) {
    std::string list = activations->is_text() ? activations->text() : "";
    if (!activations->is_text()) {
      for (const std::string& name : activations->texts()) list += (list.empty() ? "" : ",") + name;
    }
    rhs.activations = {std::move(list), activations->where()};
    if (!rhs.model) throw activations->error("activations without a model", "a model", "add model, or remove this key");
  }
  if (const TomlValue* with_time = section.find("with_time")) {
    rhs.with_time = with_time->boolean();
    if (!rhs.model) throw with_time->error("with_time without a model", "a model", "add model, or remove this key");
  }
  if (const TomlValue* guard = section.find("guard")) {
    if (!rhs.model) throw guard->error("guard without a model", "a model", "add model, or remove this key");
    rhs.guard = {guard_action(guard->text(), guard->where()), guard->where()};
  }
  for (const auto& [key, names] :
       {std::pair{"components", &rhs.components}, std::pair{"parameters", &rhs.parameters}}) {
    const TomlValue* value = section.find(key);
    if (value == nullptr) continue;
    if (!rhs.model)
      throw value->error("names beside a built-in system, which has its own", "a model", "remove this key");
    *names = value->texts();
    problem.where_of[std::string("rhs.") + key] = value->where();
  }
  if (!rhs.model && !rhs.system) {
    throw Error(ErrorKind::invalid_argument,
                {rhs.where, "neither model, system nor equations", "one of them, or a model and a system",
                 "add model = \"net.safetensors\", system = \"lorenz\" or [rhs.equations]"});
  }
}

void read_ensemble(const TomlValue& file, ProblemFile& problem) {
  const Section section(file, "ensemble", problem_keys::kEnsemble);
  auto& ensemble = problem.ensemble;
  const std::filesystem::path folder = problem.path.parent_path();
  if (const TomlValue* trajectories = section.find("trajectories")) {
    ensemble.trajectories = {positive_count(*trajectories), trajectories->where()};
  }
  if (const TomlValue* seed = section.find("seed")) ensemble.seed = not_negative(*seed);
  if (const TomlValue* initial = section.find("initial_state")) {
    ensemble.initial_state = parse_ensemble_values(*initial, folder);
    problem.where_of["problem.initial_states"] = initial->where();
  }
  if (const TomlValue* parameters = section.find("parameters")) {
    ensemble.parameters = parse_ensemble_values(*parameters, folder);
    problem.where_of["problem.parameters"] = parameters->where();
  }
  if (const TomlValue* grid = section.find("grid")) ensemble.grid = parse_grid(*grid, folder);
}

// {logspace = [1e-6, 1, 7]}: the times themselves, whatever the span.
EnsembleValues::Spread spread_times(const TomlValue& save) {
  const EnsembleValues values = parse_ensemble_values(save, {});
  auto spread = std::get<EnsembleValues::Spread>(values.source);
  const std::string key = values.where.substr(values.where.find_last_of(". ") + 1);
  if (spread.low.size() != 1 || spread.high.size() != 1 || !spread.points) {
    throw save.error("a range that does not say how many save points", "its ends and their number",
                     "write save = { " + key + " = [1e-6, 1, 7] }");
  }
  return spread;
}

void read_save(const TomlValue& save, ProblemFile& problem) {
  auto& target = problem.time.save.emplace();
  target.where = save.where();
  if (save.is_table()) {
    static constexpr std::array<std::string_view, 6> kKeys{"every", "linspace", "logspace",
                                                           "file",  "dataset",  "columns"};
    save.allow_only(kKeys);
    const TomlValue* every = save.find("every");
    const bool is_spread = save.find("linspace") != nullptr || save.find("logspace") != nullptr;
    const bool alone = every != nullptr || is_spread;
    if (alone == (save.find("file") != nullptr) || (alone && save.table().size() > 1)) {
      throw save.error("keys that do not go together",
                       "{every = 0.01}, {linspace = [0, 1, 11]}, {logspace = [1e-6, 1, 7]}, {file = \"x.h5\", dataset "
                       "= \"times\"}, or {file = \"x.csv\", columns = \"t\"}");
    }
    if (every != nullptr) {
      target.value = Every{positive_number(*every)};
    } else if (is_spread) {
      target.value = spread_times(save);
    } else {
      std::visit([&](auto source) { target.value = std::move(source); }, parse_file(save, problem.path.parent_path()));
    }
  } else if (save.is_array()) {
    target.value = Times{save.numbers()};
    if (save.array().empty()) throw save.error("no save points", "at least one", "remove the key to save the end only");
  } else if (save.is_number()) {
    if (save.number() > 0 && save.number() != std::nearbyint(save.number())) {
      throw save.error(save.describe(), "an integer: a number of evenly spaced points",
                       "for an interval write save = { every = " + save.describe() + " }");
    }
    target.value = EvenlySpaced{positive_count(save)};
  } else {
    throw save.error(
        save.describe(),
        "a number of evenly spaced points, an array of times, {every = 0.01}, {logspace = [1e-6, 1, 7]}, or "
        "times in a file");
  }
}

void read_time(const TomlValue& file, ProblemFile& problem) {
  const Section section(file, "time", problem_keys::kTime);
  if (const TomlValue* span = section.find("span")) {
    problem.time.span = parse_ensemble_values(*span, problem.path.parent_path());
    problem.where_of["problem.start_times"] = problem.where_of["problem.end_times"] = span->where();
  }
  if (const TomlValue* unit = section.find("unit")) problem.time.unit = unit->text();
  if (const TomlValue* save = section.find("save")) {
    read_save(*save, problem);
    problem.where_of["problem.save_times"] = save->where();
  }
}

void read_method(const TomlValue& file, ProblemFile& problem) {
  static constexpr std::array<std::string_view, 3> kControls{"per_trajectory", "common", "fixed"};
  static constexpr std::array<std::string_view, 2> kPrecisions{"f32", "f64"};
  const Section section(file, "method", kMethodKeys);
  ode::Options& options = problem.options;
  for (const std::string_view key : kMethodKeys) {
    if (const TomlValue* value = section.find(key)) {
      problem.where_of["options." + std::string(key == "name" ? "method" : key)] = value->where();
    }
  }
  if (const TomlValue* name = section.find("name")) options.method = name->text();
  const TomlValue* control = section.find("control");
  if (control != nullptr) {
    const std::string name = control->one_of(kControls);
    options.control = name == "fixed"    ? ode::StepControl::fixed
                      : name == "common" ? ode::StepControl::common
                                         : ode::StepControl::per_trajectory;
  }
  if (const TomlValue* dt = section.find("dt")) {
    options.dt = dt->number();
    if (control == nullptr) options.control = ode::StepControl::fixed;
    if (options.control != ode::StepControl::fixed) {
      throw dt->error("a step size beside control = \"" + control->text() + "\"", "control = \"fixed\"",
                      "use initial_step or max_step with adaptive steps");
    }
  } else if (options.control == ode::StepControl::fixed) {
    throw control->error("fixed steps without dt", "a step size", "add dt = 0.01");
  }
  const auto adaptive_only = [&](const char* key) -> const TomlValue* {
    const TomlValue* value = section.find(key);
    if (value != nullptr && options.control == ode::StepControl::fixed) {
      throw value->error(std::string(key) + " beside fixed steps", "dt alone",
                         "remove " + std::string(key) + ", or choose control = \"per_trajectory\" without dt");
    }
    return value;
  };
  if (const TomlValue* rtol = adaptive_only("rtol")) options.rtol = rtol->number();
  if (const TomlValue* atol = adaptive_only("atol")) {
    if (atol->is_array()) {
      options.component_atol = atol->numbers();
      if (options.component_atol.empty()) throw atol->error("an empty list", "a tolerance, or one for each component");
    } else if (atol->is_table()) {
      throw atol->error(atol->describe(), "a number, or a list of one for each component");
    } else {
      options.atol = atol->number();
    }
  }
  if (const TomlValue* step = adaptive_only("initial_step")) options.initial_step = step->number();
  if (const TomlValue* step = adaptive_only("max_step")) options.max_step = step->number();
  if (const TomlValue* stops = section.find("stops"))
    options.stops = stops->is_array() ? stops->numbers() : std::vector{stops->number()};
  if (const TomlValue* knots = section.find("stop_at_knots")) options.stop_at_knots = knots->boolean();
  if (const TomlValue* steps = section.find("max_steps")) options.max_steps = steps->integer();
  if (const TomlValue* precision = section.find("precision")) {
    options.precision = precision->one_of(kPrecisions) == "f32" ? Precision::f32 : Precision::f64;
  }
  if (const TomlValue* precision = section.find("matrix_precision"))
    options.matrix_precision = *parse_matrix_precision(precision->one_of(kMatrixPrecisionNames));
}

void choose_cpu_target(const std::string& name, const std::string& where, ode::Options& options) {
  static constexpr std::array<std::string_view, 4> kTargets{"scalar", "avx2", "avx512", "neon"};
  options.cpu_target = parse_cpu_target(name);
  if (!options.cpu_target) {
    throw Error(ErrorKind::invalid_argument,
                {where, "\"" + name + "\"", "one of " + list_text(kTargets), did_you_mean(name, kTargets)});
  }
}

void read_run(const TomlValue& file, ProblemFile& problem) {
  const Section section(file, "run", kRunKeys);
  if (const TomlValue* device = section.find("device")) {
    problem.options.device = ode::parse_device(device->text(), device->where());
    problem.where_of["options.device"] = device->where();
  }
  if (const TomlValue* engine = section.find("engine")) {
    problem.options.engine = *ode::parse_engine_choice(engine->one_of(ode::kEngineChoiceNames));
    problem.where_of["options.engine"] = engine->where();
  }
  if (const TomlValue* threads = section.find("threads")) {
    if (not_negative(*threads) > kMostThreads) {
      throw threads->error(threads->describe(), "at most " + std::to_string(kMostThreads) + ", or 0 for all");
    }
    problem.options.threads = static_cast<int>(threads->integer());
    problem.where_of["options.threads"] = threads->where();
  }
  if (const TomlValue* target = section.find("cpu_target")) {
    choose_cpu_target(target->text(), target->where(), problem.options);
    problem.where_of["options.cpu_target"] = target->where();
  }
}

void read_output(const TomlValue& file, ProblemFile& problem) {
  const Section section(file, "output", problem_keys::kOutput);
  if (const TomlValue* name = section.find("file")) {
    if (name->text().empty()) throw name->error("an empty name", "a file name");
    problem.output.file = {name->text(), name->where()};
  }
  if (const TomlValue* overwrite = section.find("overwrite")) problem.output.overwrite = overwrite->boolean();
  if (const TomlValue* components = section.find("components")) {
    if (components->texts().empty()) {
      throw components->error("no components", "at least one name", "remove the key to store all");
    }
    problem.output.components = {components->texts(), components->where()};
  }
  if (const TomlValue* events = section.find("events")) {
    problem.output.events = events->boolean();
    problem.where_of["problem.keep_events"] = events->where();
  }
  if (const TomlValue* every = section.find("every")) problem.output.every = {positive_count(*every), every->where()};
}

ProblemFile interpret(const TomlValue& file, const std::filesystem::path& path) {
  static constexpr std::array<std::string_view, 9> kSections{"rhs",    "ensemble", "time", "method", "event",
                                                             "resets", "impulses", "run",  "output"};
  for (const char* key : {"equations", "definitions", "models", "tables"}) {
    if (const TomlValue* value = file.find(key)) {
      throw value->error("a section of that name", "it in [rhs]", "write [rhs." + std::string(key) + "]");
    }
  }
  refuse_misplaced_keys(file, FileKind::problem);
  file.allow_only(kSections);
  ProblemFile problem;
  problem.path = path;
  read_rhs(file, problem);
  read_ensemble(file, problem);
  read_time(file, problem);
  read_method(file, problem);
  if (const Section event(file, "event", problem_keys::kEvent); event) problem.event = read_event(event.table());
  if (const TomlValue* resets = file.find("resets")) {
    problem.resets = read_resets(*resets);
    problem.where_of["problem.resets"] = resets->where();
  }
  if (const TomlValue* impulses = file.find("impulses")) {
    problem.impulses = read_impulses(*impulses, path.parent_path());
    problem.where_of["problem.impulses"] = impulses->where();
  }
  read_run(file, problem);
  read_output(file, problem);
  return problem;
}

}  // namespace

ProblemFile read_problem_file(const std::filesystem::path& path) { return interpret(read_toml(path), path); }

ProblemFile parse_problem_file(std::string_view text, const std::filesystem::path& path) {
  return interpret(parse_toml(text, path.string()), path);
}

std::vector<std::filesystem::path> input_files(const ProblemFile& file) {
  std::vector<std::filesystem::path> files{file.path};
  if (file.rhs.model) files.push_back(file.rhs.model->value);
  if (file.rhs.equations) {
    for (NamedFile& each : files_of(*file.rhs.equations)) files.push_back(std::move(each.path));
  }
  for (const auto* values : {&file.ensemble.initial_state, &file.ensemble.parameters, &file.time.span}) {
    if (!*values) continue;
    for (auto& path : files_of(**values)) files.push_back(std::move(path));
  }
  for (const GridAxis& axis : file.ensemble.grid) {
    for (auto& path : files_of(axis.values)) files.push_back(std::move(path));
  }
  for (auto& path : files_of(file.impulses)) files.push_back(std::move(path));
  if (!file.time.save) return files;
  const auto& save = file.time.save->value;
  if (const auto* dataset = std::get_if<EnsembleValues::Dataset>(&save)) files.push_back(dataset->file);
  if (const auto* table = std::get_if<EnsembleValues::Table>(&save)) files.push_back(table->file);
  return files;
}

void read_solver_sections(const TomlValue& file, ProblemFile& problem) {
  read_method(file, problem);
  read_run(file, problem);
}

void apply(const ProblemOverrides& overrides, ProblemFile& file) {
  ode::Options& options = file.options;
  const auto set = [&](auto& target, const auto& value, const char* field, const char* flag) {
    if (!value) return;
    target = *value;
    file.where_of[field] = flag;
  };
  if (overrides.output) file.output.file = {*overrides.output, "--output"};
  if (overrides.overwrite) file.output.overwrite = true;
  if (overrides.guard) file.rhs.guard = {guard_action(*overrides.guard, "--guard"), "--guard"};
  if (overrides.trajectories) {
    file.ensemble.trajectories = {*overrides.trajectories, "--trajectories"};
    file.ensemble.takes_the_first = true;
  }
  if (overrides.seed) file.ensemble.seed = *overrides.seed;
  set(options.method, overrides.method, "options.method", "--method");
  set(options.threads, overrides.threads, "options.threads", "--threads");
  set(options.dt, overrides.dt, "options.dt", "--dt");
  if (overrides.dt) options.control = ode::StepControl::fixed;
  for (const auto& [given, flag] :
       {std::pair{overrides.rtol.has_value(), "--rtol"}, std::pair{!overrides.atol.empty(), "--atol"}}) {
    if (given && options.control == ode::StepControl::fixed) {
      throw Error(ErrorKind::invalid_argument,
                  {flag, "a tolerance beside fixed steps (dt)", "adaptive steps", "remove one of them"});
    }
  }
  set(options.rtol, overrides.rtol, "options.rtol", "--rtol");
  if (!overrides.atol.empty()) {
    const bool each = overrides.atol.size() > 1;
    options.component_atol = each ? overrides.atol : std::vector<double>{};
    if (!each) options.atol = overrides.atol.front();
    file.where_of["options.atol"] = "--atol";
  }
  if (overrides.precision) options.precision = *overrides.precision == "f64" ? Precision::f64 : Precision::f32;
  const auto choose = [&](const std::optional<std::string>& name, auto parse, const auto& names, auto& option,
                          const char* field, const char* flag) {
    if (!name) return;
    const auto known = parse(*name);
    if (!known) {
      throw Error(ErrorKind::invalid_argument,
                  {flag, "\"" + *name + "\"", "one of " + list_text(names), did_you_mean(*name, names)});
    }
    option = *known;
    file.where_of[field] = flag;
  };
  choose(overrides.matrix_precision, parse_matrix_precision, kMatrixPrecisionNames, options.matrix_precision,
         "options.matrix_precision", "--matrix-precision");
  choose(overrides.engine, ode::parse_engine_choice, ode::kEngineChoiceNames, options.engine, "options.engine",
         "--engine");
  if (overrides.cpu_target) {
    choose_cpu_target(*overrides.cpu_target, "--cpu-target", options);
    file.where_of["options.cpu_target"] = "--cpu-target";
  }
  if (overrides.device) {
    options.device = ode::parse_device(*overrides.device, "--device");
    file.where_of["options.device"] = "--device";
  }
}

}  // namespace lockstep::cli
