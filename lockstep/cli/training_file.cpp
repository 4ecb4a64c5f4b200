#include "lockstep/cli/training_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/cli/text.h"
#include "lockstep/cli/toml_value.h"
#include "lockstep/core/hash.h"

namespace lockstep::cli {
namespace {

using Names = std::span<const std::string_view>;

// A section, null where absent; its keys are checked.
const TomlValue* section(const TomlValue& file, std::string_view name, Names keys) {
  const TomlValue* table = file.find(name);
  if (table == nullptr) return nullptr;
  if (!table->is_table()) throw table->error(table->describe(), "a table: [" + std::string(name) + "]");
  table->allow_only(keys);
  return table;
}

const TomlValue& required_section(const TomlValue& file, std::string_view name, Names keys, const char* remedy) {
  const TomlValue* table = section(file, name, keys);
  if (table != nullptr) return *table;
  throw Error(ErrorKind::invalid_argument, {file.where(), "no section [" + std::string(name) + "]",
                                            "the section [" + std::string(name) + "]", remedy});
}

std::int64_t at_least(const TomlValue& value, std::int64_t least) {
  const std::int64_t number = value.integer();
  if (number < least) throw value.error(value.describe(), "an integer of " + std::to_string(least) + " or more");
  return number;
}

Activation activation_of(const TomlValue& value) {
  if (const auto activation = parse_activation(value.text())) return *activation;
  std::vector<std::string> names;
  for (const Activation& activation : all_activations()) names.push_back(to_string(activation));
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw value.error(value.describe(), "one of " + list_text(known), did_you_mean(value.text(), known));
}

void read_net(const TomlValue& file, TrainingFile& training) {
  static constexpr std::array<std::string_view, 7> kKeys{"start",          "hidden", "activation", "activations",
                                                         "initialisation", "seed",   "name"};
  const TomlValue& table =
      required_section(file, "net", kKeys, "add [net] with hidden = [100] and activation = \"tanh\"");
  NetSection& net = training.net;
  net.where = table.where();
  if (const TomlValue* start = table.find("start")) {
    net.start = {training.path.parent_path() / start->text(), start->where()};
    for (const char* key : {"hidden", "activation", "activations", "initialisation", "seed"}) {
      if (const TomlValue* value = table.find(key)) {
        throw value->error(std::string(key) + " beside a model to start from", "start alone", "remove one of them");
      }
    }
  }
  if (const TomlValue* hidden = table.find("hidden")) {
    for (const TomlValue& width : hidden->array()) {
      if (at_least(width, 1) > 1'000'000) throw width.error(width.describe(), "at most 1,000,000");
      net.hidden.push_back(static_cast<std::size_t>(width.integer()));
    }
  } else if (!net.start) {
    throw table.error("no hidden layers", "their widths", "add hidden = [100], or hidden = [] for a linear map");
  }
  const TomlValue* one = table.find("activation");
  const TomlValue* each = table.find("activations");
  if (one != nullptr && each != nullptr) throw each->error("activation and activations", "one of them");
  if (each != nullptr) {
    for (const TomlValue& value : each->array()) net.activations.push_back(activation_of(value));
    if (net.activations.size() != net.hidden.size() + 1) {
      throw each->error(each->describe(), std::to_string(net.hidden.size() + 1) + ", one for each layer, the last too");
    }
  } else if (!net.start) {
    const Activation hidden = one != nullptr ? activation_of(*one) : Activation{ActivationKind::tanh};
    net.activations.assign(net.hidden.size(), hidden);
    net.activations.push_back(Activation{ActivationKind::identity});
  }
  if (const TomlValue* law = table.find("initialisation")) {
    net.initialisation = train::parse_initialisation(law->where(), law->text());
  }
  if (const TomlValue* seed = table.find("seed")) net.seed = static_cast<std::uint64_t>(at_least(*seed, 0));
  if (const TomlValue* name = table.find("name")) net.name = name->text();
}

std::vector<std::string> names_of(const TomlValue& value) {
  if (value.is_text()) return {value.text()};
  std::vector<std::string> names = value.texts();
  if (names.empty()) throw value.error("no names", "at least one");
  return names;
}

void read_data(const TomlValue& file, TrainingFile& training) {
  static constexpr std::array<std::string_view, 8> kKeys{"file", "inputs",     "targets",   "states",
                                                         "time", "trajectory", "normalise", "validation"};
  static constexpr std::array<std::string_view, 3> kNormalisations{"none", "standard", "min_max"};
  const TomlValue& table = required_section(file, "data", kKeys, "add [data] with file = \"table.csv\"");
  DataSection& data = training.data;
  data.where = table.where();
  const TomlValue* name = table.find("file");
  if (name == nullptr) throw table.error("no file", "what to train on", "add file = \"table.csv\"");
  data.file = {training.path.parent_path() / name->text(), name->where()};
  const auto read = [&](const char* key, std::vector<std::string>& names, std::string& where) {
    where = table.where() + "." + key;
    if (const TomlValue* value = table.find(key)) {
      names = names_of(*value);
      where = value->where();
    }
  };
  read("inputs", data.inputs, data.where_inputs);
  read("targets", data.targets, data.where_targets);
  read("states", data.states, data.where_states);
  for (const auto& [key, text, where] : {std::tuple{"time", &data.time, &data.where_time},
                                         std::tuple{"trajectory", &data.trajectory, &data.where_trajectory}}) {
    *where = table.where() + "." + key;
    if (const TomlValue* value = table.find(key)) {
      *text = value->text();
      *where = value->where();
    }
  }
  const bool regression = !data.inputs.empty() || !data.targets.empty();
  if (regression && (!data.states.empty() || training.ode || !data.time.empty())) {
    throw table.error("inputs or targets beside states, time or [ode]",
                      "inputs and targets of a regression, or states and time of a neural ODE");
  }
  if (regression && (data.inputs.empty() || data.targets.empty())) {
    throw table.error(data.inputs.empty() ? "targets without inputs" : "inputs without targets", "both");
  }
  if (!regression && data.states.empty() && !training.ode) {
    throw table.error("neither inputs and targets nor states", "one of them",
                      "add inputs = [\"x\"] and targets = [\"y\"], or time = \"t\" and states = [\"u\"]");
  }
  if (!regression && !training.ode) training.ode.emplace();
  if (const TomlValue* normalise = table.find("normalise")) {
    const std::string kind = normalise->one_of(kNormalisations);
    data.normalisation = kind == "standard"  ? Normalisation::standard
                         : kind == "min_max" ? Normalisation::min_max
                                             : Normalisation::none;
  }
  if (const TomlValue* validation = table.find("validation")) {
    data.validation = validation->number();
    if (!(data.validation >= 0 && data.validation < 1)) {
      throw validation->error(validation->describe(), "a share from 0 to below 1");
    }
  }
}

void read_ode(const TomlValue& file, TrainingFile& training) {
  static constexpr std::array<std::string_view, 4> kKeys{"system", "parameters", "with_time", "failed"};
  static constexpr std::array<std::string_view, 2> kFailed{"stop", "leave_out"};
  const TomlValue* table = section(file, "ode", kKeys);
  if (table == nullptr) return;
  OdeSection& ode = training.ode.emplace();
  if (const TomlValue* system = table->find("system")) ode.system = {system->text(), system->where()};
  if (const TomlValue* parameters = table->find("parameters")) {
    ode.parameters = parameters->numbers();
    if (!ode.system) throw parameters->error("parameters without a system", "a built-in system", "add system");
  }
  if (const TomlValue* with_time = table->find("with_time")) ode.with_time = with_time->boolean();
  if (const TomlValue* failed = table->find("failed")) {
    training.failed =
        failed->one_of(kFailed) == "stop" ? ode::FailedTrajectories::stop : ode::FailedTrajectories::leave_out;
  }
}

// Keys of a phase, in groups that belong to some rules or schedules alone.
constexpr std::array<std::string_view, 27> kPhaseKeys{
    "name",           "optimiser", "iterations", "rate",         "schedule",    "warm_up",    "total",
    "final_fraction", "factor",    "every",      "patience",     "improvement", "floor",      "momentum",
    "beta1",          "beta2",     "epsilon",    "weight_decay", "clip_norm",   "clip_value", "target",
    "stop_after",     "batch",     "segment",    "horizon",      "dt",          "history"};

train::LearningRateOptions read_rate(const TomlValue& table, std::int64_t iterations) {
  train::LearningRateOptions options;
  const auto number = [&](const char* key, double& to) {
    if (const TomlValue* value = table.find(key)) to = value->number();
  };
  const auto count = [&](const char* key, std::int64_t& to) {
    if (const TomlValue* value = table.find(key)) to = at_least(*value, 0);
  };
  if (const TomlValue* schedule = table.find("schedule")) {
    options.schedule = train::parse_schedule(schedule->where(), schedule->text());
  }
  options.total = iterations;
  number("rate", options.rate);
  count("warm_up", options.warm_up);
  count("total", options.total);
  number("final_fraction", options.final_fraction);
  number("factor", options.factor);
  count("every", options.every);
  count("patience", options.patience);
  number("improvement", options.improvement);
  number("floor", options.floor);
  // A key that its schedule does not read would be a wish passed over.
  using S = train::Schedule;
  const S schedule = options.schedule;
  for (const auto& [key, belongs] : {std::pair{"total", schedule == S::cosine},
                                     {"final_fraction", schedule == S::cosine},
                                     {"factor", schedule == S::step || schedule == S::plateau},
                                     {"every", schedule == S::step},
                                     {"patience", schedule == S::plateau},
                                     {"improvement", schedule == S::plateau}}) {
    const TomlValue* value = table.find(key);
    if (value == nullptr || belongs) continue;
    throw value->error(std::string(key) + " with schedule = \"" + std::string(to_string(schedule)) + "\"",
                       "a schedule that uses it", "choose another schedule, or remove this key");
  }
  return options;
}

void read_gradient_rule(const TomlValue& table, const TomlValue* optimiser, train::Phase& phase) {
  train::OptimiserOptions options;
  if (optimiser != nullptr) options.rule = train::parse_rule(optimiser->where(), optimiser->text());
  const bool momentum = options.rule == train::Rule::sgd || options.rule == train::Rule::nesterov;
  for (const auto& [key, to, belongs] : {std::tuple{"momentum", &options.momentum, momentum},
                                         {"beta1", &options.beta1, !momentum},
                                         {"beta2", &options.beta2, !momentum},
                                         {"epsilon", &options.epsilon, !momentum},
                                         {"weight_decay", &options.weight_decay, true}}) {
    const TomlValue* value = table.find(key);
    if (value == nullptr) continue;
    if (!belongs) {
      throw value->error(std::string(key) + " with optimiser = \"" + std::string(to_string(options.rule)) + "\"",
                         "an optimiser that uses it", "remove this key");
    }
    *to = value->number();
  }
  if (const TomlValue* history = table.find("history")) {
    throw history->error("history with optimiser = \"" + std::string(to_string(options.rule)) + "\"",
                         "optimiser = \"lbfgs\"", "remove this key");
  }
  if (const TomlValue* norm = table.find("clip_norm")) phase.clip.norm = norm->number();
  if (const TomlValue* value = table.find("clip_value")) phase.clip.value = value->number();
  phase.learning_rate = read_rate(table, phase.iterations);
  phase.rule = options;
}

void read_lbfgs(const TomlValue& table, train::Phase& phase) {
  static constexpr std::array<std::string_view, 6> kKeys{"name",   "optimiser", "iterations",
                                                         "target", "horizon",   "history"};
  for (const auto& [key, value] : table.table()) {
    if (key == "loss" || std::find(kKeys.begin(), kKeys.end(), key) != kKeys.end()) continue;
    throw value.error(key + " with optimiser = \"lbfgs\"", "one of " + list_text(kKeys),
                      key == "batch" ? "L-BFGS needs the same loss in every iteration: all rows" : "remove this key");
  }
  train::LbfgsOptions options;
  if (const TomlValue* history = table.find("history")) {
    options.history = static_cast<std::size_t>(at_least(*history, 1));
  }
  phase.rule = options;
}

TrainingPhase read_phase(const TomlValue& table, bool neural_ode) {
  TrainingPhase result;
  result.where = table.where();
  train::Phase& phase = result.phase;
  if (const TomlValue* name = table.find("name")) phase.name = name->text();
  if (const TomlValue* iterations = table.find("iterations")) phase.iterations = at_least(*iterations, 1);
  if (const TomlValue* target = table.find("target")) phase.target = target->number();
  if (const TomlValue* patience = table.find("stop_after")) phase.patience = at_least(*patience, 1);
  const TomlValue* optimiser = table.find("optimiser");
  if (optimiser != nullptr && optimiser->text() == "lbfgs") {
    read_lbfgs(table, phase);
  } else {
    try {
      read_gradient_rule(table, optimiser, phase);
    } catch (const Error& error) {
      if (optimiser == nullptr || error.field() != optimiser->where()) throw;
      // The library does not know that lbfgs is spelt as an optimiser here.
      std::vector<std::string_view> known(train::rule_names().begin(), train::rule_names().end());
      known.push_back("lbfgs");
      throw optimiser->error(optimiser->describe(), "one of " + list_text(known),
                             did_you_mean(optimiser->text(), known));
    }
  }
  if (const TomlValue* batch = table.find("batch")) {
    if (neural_ode) throw batch->error("batch", "a regression", "remove this key: every step sees all trajectories");
    result.batch = static_cast<std::size_t>(at_least(*batch, 1));
  }
  for (const char* key : {"segment", "horizon", "dt"}) {
    const TomlValue* value = table.find(key);
    if (value != nullptr && !neural_ode) throw value->error(key, "a neural ODE", "remove this key");
  }
  if (const TomlValue* segment = table.find("segment")) {
    result.segment = static_cast<std::size_t>(at_least(*segment, 1));
  }
  if (const TomlValue* horizon = table.find("horizon")) {
    result.horizon = static_cast<std::size_t>(at_least(*horizon, 2));
  }
  if (const TomlValue* dt = table.find("dt")) {
    result.dt = dt->number();
    if (!(*result.dt > 0)) throw dt->error(dt->describe(), "a number greater than 0");
  }
  try {
    phase.validate();
  } catch (const Error& error) {
    // "learning_rate.factor" is the key factor of this phase.
    const std::string key = error.field().substr(error.field().rfind('.') + 1);
    const TomlValue* value = table.find(key);
    throw Error(error.kind(), {value != nullptr ? value->where() : table.where() + ": " + error.field(), error.found(),
                               error.expected(), error.remedy()});
  }
  return result;
}

LossKind loss_of(const TomlValue& value, bool neural_ode) {
  static constexpr std::array<std::string_view, 4> kLosses{"mean_squared", "sum_squared", "mean_absolute",
                                                           "mean_huber"};
  if (neural_ode) {
    throw value.error("a loss for a neural ODE", "none: it is the sum of squares, averaged over trajectories",
                      "remove this key");
  }
  const std::string name = value.one_of(kLosses);
  return static_cast<LossKind>(std::find(kLosses.begin(), kLosses.end(), name) - kLosses.begin());
}

void read_training(const TomlValue& file, TrainingFile& training) {
  std::vector<std::string_view> all_keys(kPhaseKeys.begin(), kPhaseKeys.end());
  all_keys.push_back("loss");
  all_keys.push_back("phases");
  const TomlValue* table = section(file, "training", all_keys);
  const bool neural_ode = training.ode.has_value();
  if (table != nullptr) {
    if (const TomlValue* loss = table->find("loss")) training.loss = loss_of(*loss, neural_ode);
  }
  const TomlValue* phases = file.find("phase");
  const TomlValue* recommended = table != nullptr ? table->find("phases") : nullptr;
  if (recommended != nullptr) {
    static constexpr std::array<std::string_view, 1> kChoices{"recommended"};
    static constexpr std::array<std::string_view, 2> kKeys{"phases", "target"};
    recommended->one_of(kChoices);
    if (!neural_ode)
      throw recommended->error("recommended phases", "a neural ODE", "say how to train: rate, iterations");
    if (phases != nullptr) throw phases->error("[[phase]] beside recommended ones", "one of them");
    table->allow_only(kKeys);
    if (const TomlValue* target = table->find("target")) training.target = target->number();
    return;
  }
  if (phases == nullptr) {
    if (table == nullptr) {
      throw Error(ErrorKind::invalid_argument,
                  {file.where(), "neither [training] nor [[phase]]", "how to train",
                   "add [training] with optimiser = \"adam\", rate = 0.01, iterations = 1000"});
    }
    training.phases.push_back(read_phase(*table, neural_ode));
    return;
  }
  if (table != nullptr) {
    static constexpr std::array<std::string_view, 1> kShared{"loss"};
    table->allow_only(kShared);  // the rest stands in the phases
  }
  if (!phases->is_array()) throw phases->error(phases->describe(), "an array of tables: [[phase]]");
  for (const TomlValue& phase : phases->array()) {
    phase.allow_only(kPhaseKeys);
    training.phases.push_back(read_phase(phase, neural_ode));
  }
}

void read_output(const TomlValue& file, TrainingFile& training) {
  static constexpr std::array<std::string_view, 3> kKeys{"file", "overwrite", "checkpoint_every"};
  training.output.where = training.path.string() + ": output.file";
  const TomlValue* table = section(file, "output", kKeys);
  if (table == nullptr) return;
  if (const TomlValue* name = table->find("file")) {
    training.output.where = name->where();
    if (name->text().empty()) throw name->error("an empty name", "a file name");
    training.output.stem = name->text();
  }
  if (const TomlValue* overwrite = table->find("overwrite")) training.output.overwrite = overwrite->boolean();
  if (const TomlValue* every = table->find("checkpoint_every")) {
    training.output.checkpoint_seconds = every->number();
    if (!(every->number() >= 0)) throw every->error(every->describe(), "seconds, 0 or more");
  }
}

TrainingFile interpret(const TomlValue& file, const std::filesystem::path& path) {
  static constexpr std::array<std::string_view, 8> kSections{"net",   "data",   "ode", "training",
                                                             "phase", "method", "run", "output"};
  file.allow_only(kSections);
  TrainingFile training;
  training.path = path;
  read_net(file, training);
  read_ode(file, training);
  read_data(file, training);
  read_training(file, training);
  if (const TomlValue* method = file.find("method"); method != nullptr && !training.ode && method->is_table()) {
    static constexpr std::array<std::string_view, 1> kPrecision{"precision"};
    method->allow_only(kPrecision);
  }
  ProblemFile solver;
  solver.path = path;
  read_solver_sections(file, solver);
  training.options = solver.options;
  try {
    training.options.validate();
  } catch (const Error& error) {
    throw in_users_words(error, solver);
  }
  read_output(file, training);
  return training;
}

}  // namespace

TrainingFile read_training_file(const std::filesystem::path& path) { return interpret(read_toml(path), path); }

TrainingFile parse_training_file(std::string_view text, const std::filesystem::path& path) {
  return interpret(parse_toml(text, path.string()), path);
}

std::string options_digest(const TrainingFile& file) {
  ContentHash hash;
  const auto number = [&](double x) { hash.add(std::span<const double>(&x, 1)); };
  const auto count = [&](auto n) { hash.add(std::to_string(n)); };
  count(static_cast<int>(file.loss));
  count(static_cast<int>(file.data.normalisation));
  number(file.data.validation);
  number(file.target.value_or(-1));
  count(static_cast<int>(file.failed));
  for (const TrainingPhase& each : file.phases) {
    const train::Phase& phase = each.phase;
    count(phase.iterations);
    number(phase.target.value_or(-1));
    count(phase.patience);
    count(each.batch);
    count(each.segment);
    count(each.horizon);
    number(each.dt.value_or(-1));
    if (const auto* lbfgs = std::get_if<train::LbfgsOptions>(&phase.rule)) {
      count(lbfgs->history);
      continue;
    }
    const auto& rule = std::get<train::OptimiserOptions>(phase.rule);
    hash.add(to_string(rule.rule));
    for (const double x : {rule.momentum, rule.beta1, rule.beta2, rule.epsilon, rule.weight_decay}) number(x);
    const train::LearningRateOptions& rate = phase.learning_rate;
    hash.add(to_string(rate.schedule));
    for (const double x : {rate.rate, rate.final_fraction, rate.factor, rate.improvement, rate.floor}) number(x);
    for (const std::int64_t n : {rate.warm_up, rate.total, rate.every, rate.patience}) count(n);
    number(phase.clip.norm.value_or(-1));
    number(phase.clip.value.value_or(-1));
  }
  count(file.ode.has_value());
  if (file.ode) {
    hash.add(file.ode->system ? file.ode->system->value : std::string());
    hash.add(std::span<const double>(file.ode->parameters));
    count(file.ode->with_time);
    const ode::Options& options = file.options;
    hash.add(options.method);
    count(static_cast<int>(options.control));
    for (const double x :
         {options.rtol, options.atol, options.dt, options.initial_step.value_or(-1), options.max_step.value_or(-1)}) {
      number(x);
    }
    count(options.max_steps);
  }
  return hash.hex();
}

}  // namespace lockstep::cli
