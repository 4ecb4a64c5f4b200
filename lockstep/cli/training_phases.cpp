#include "lockstep/cli/training_phases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "lockstep/cli/file_keys.h"
#include "lockstep/cli/text.h"
#include "lockstep/ode/huber.h"

namespace lockstep::cli {

const TomlValue* section(const TomlValue& file, std::string_view name, std::span<const std::string_view> keys) {
  const TomlValue* table = file.find(name);
  if (table == nullptr) return nullptr;
  if (!table->is_table()) throw table->error(table->describe(), "a table: [" + std::string(name) + "]");
  table->allow_only(keys);
  return table;
}

std::int64_t at_least(const TomlValue& value, std::int64_t least) {
  const std::int64_t number = value.integer();
  if (number < least) throw value.error(value.describe(), "an integer of " + std::to_string(least) + " or more");
  return number;
}

namespace {

// Keys of [training] beside [[phase]].
constexpr std::array<std::string_view, 2> kOfAllPhases{"loss", "huber_threshold"};

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
                       "a schedule that uses it",
                       key == std::string_view("patience")
                           ? "write stop_after to stop early, or choose schedule = \"plateau\", which lowers the rate"
                           : "choose another schedule, or remove this key");
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
  static constexpr std::array<std::string_view, 10> kKeys{"name",    "optimiser", "iterations", "target", "stop_after",
                                                          "horizon", "history",   "segment",    "dt",     "continuity"};
  for (const auto& [key, value] : table.table()) {
    if (std::ranges::count(kOfAllPhases, key) + std::ranges::count(kKeys, key) > 0) continue;
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
    result.batch = static_cast<std::size_t>(at_least(*batch, 1));
  }
  for (const char* key : {"segment", "horizon", "dt", "continuity"}) {
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
  if (const TomlValue* continuity = table.find("continuity")) {
    result.continuity = continuity->number();
    if (!(*result.continuity > 0)) throw continuity->error(continuity->describe(), "a number greater than 0");
  }
  if (result.batch != 0 && result.continuity) {
    throw table.find("batch")->error("batch beside continuity", "one of them: free states need the same loss always");
  }
  try {
    phase.validate();
  } catch (const Error& error) {
    // "learning_rate.factor" is the key factor of this phase.
    std::string key = error.field().substr(error.field().rfind('.') + 1);
    if (error.field().starts_with("clip.")) key = "clip_" + key;
    const TomlValue* value = table.find(key);
    throw Error(error.kind(), {value != nullptr ? value->where() : table.where() + ": " + error.field(), error.found(),
                               error.expected(), error.remedy()});
  }
  return result;
}

LossKind loss_of(const TomlValue& value, bool neural_ode) {
  static constexpr std::array<std::string_view, 4> kLosses{"mean_squared", "sum_squared", "mean_absolute",
                                                           "mean_huber"};
  static constexpr std::array<std::string_view, 2> kOfTrajectories{"squared", "huber"};
  // The other's, by a name of its own.
  const auto refuse_other = [&](std::span<const std::string_view> others, const char* of, const char* expected,
                                const char* remedy) {
    if (value.is_text() && std::ranges::count(others, value.text()) > 0)
      throw value.error(value.describe() + ", a loss of " + of, expected, remedy);
  };
  if (neural_ode) {
    refuse_other(kLosses, "regressions",
                 "a loss for a neural ODE, \"squared\" or \"huber\": a sum over points, averaged over trajectories",
                 value.is_text() && value.text() == "mean_huber" ? "write loss = \"huber\"" : "remove this key");
    return value.one_of(kOfTrajectories) == "huber" ? LossKind::huber : LossKind::mean_squared;
  }
  refuse_other(
      kOfTrajectories, "neural ODEs", "a loss for a regression: mean_squared, sum_squared, mean_absolute or mean_huber",
      value.is_text() && value.text() == "huber" ? "write loss = \"mean_huber\"" : "write loss = \"mean_squared\"");
  const std::string name = value.one_of(kLosses);
  return static_cast<LossKind>(std::find(kLosses.begin(), kLosses.end(), name) - kLosses.begin());
}

void read_threshold(const TomlValue& value, TrainingFile& training) {
  const bool of_trajectories = training.ode.has_value();
  if (training.loss != (of_trajectories ? LossKind::huber : LossKind::mean_huber)) {
    const std::string loss = of_trajectories ? "loss = \"huber\"" : "loss = \"mean_huber\"";
    throw value.error("huber_threshold without " + loss, "that loss, of which it is",
                      "add " + loss + ", or remove this key");
  }
  training.huber_threshold = value.number();
  if (!(training.huber_threshold > 0) || !std::isfinite(training.huber_threshold))
    throw value.error(value.describe(), "a number greater than 0");
}

}  // namespace

void read_phases(const TomlValue& file, TrainingFile& training) {
  std::vector<std::string_view> all_keys(training_keys::kPhase.begin(), training_keys::kPhase.end());
  all_keys.insert(all_keys.end(), training_keys::kTraining.begin(), training_keys::kTraining.end());
  const TomlValue* table = section(file, "training", all_keys);
  const bool neural_ode = training.ode.has_value();
  if (table != nullptr) {
    if (const TomlValue* loss = table->find("loss")) training.loss = loss_of(*loss, neural_ode);
    if (training.loss == LossKind::huber) training.huber_threshold = ode::kHuberThreshold;
    if (const TomlValue* threshold = table->find("huber_threshold")) read_threshold(*threshold, training);
  }
  const TomlValue* phases = file.find("phase");
  const TomlValue* recommended = table != nullptr ? table->find("phases") : nullptr;
  if (recommended != nullptr) {
    static constexpr std::array<std::string_view, 2> kChoices{"recommended", "noisy"};
    static constexpr std::array<std::string_view, 4> kKeys{"phases", "target", "loss", "huber_threshold"};
    training.noisy = recommended->one_of(kChoices) == "noisy";
    if (!neural_ode)
      throw recommended->error(recommended->text() + " phases", "a neural ODE", "say how to train: rate, iterations");
    if (phases != nullptr) throw phases->error("[[phase]] beside recommended ones", "one of them");
    for (const auto& [key, value] : table->table()) {
      if (!std::ranges::count(kKeys, key) && std::ranges::count(all_keys, key)) {
        throw value.error("a value beside phases = " + recommended->describe() + ", which names its own",
                          "target, loss and huber_threshold alone", "leave it away, or write all phases out");
      }
    }
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
    table->allow_only(kOfAllPhases);  // the rest stands in the phases
  }
  if (!phases->is_array()) throw phases->error(phases->describe(), "an array of tables: [[phase]]");
  for (const TomlValue& phase : phases->array()) {
    phase.allow_only(training_keys::kPhase);
    training.phases.push_back(read_phase(phase, neural_ode));
  }
}

}  // namespace lockstep::cli
