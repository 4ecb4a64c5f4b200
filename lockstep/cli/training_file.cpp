#include "lockstep/cli/training_file.h"

#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/cli/file_keys.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/toml_value.h"
#include "lockstep/cli/training_phases.h"
#include "lockstep/core/hash.h"
#include "lockstep/nn/detail/activation_list.h"
#include "lockstep/ode/detail/steps_of_resets.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::cli {
namespace {

const TomlValue& required_section(const TomlValue& file, std::string_view name, Names keys, const char* remedy) {
  const TomlValue* table = section(file, name, keys);
  if (table != nullptr) return *table;
  throw Error(ErrorKind::invalid_argument, {file.where(), "no section [" + std::string(name) + "]",
                                            "the section [" + std::string(name) + "]", remedy});
}

Activation activation_of(const TomlValue& value, const std::string& text) {
  if (const auto activation = parse_activation(text)) return *activation;
  std::vector<std::string> names;
  for (const Activation& activation : all_activations()) names.push_back(to_string(activation));
  const std::vector<std::string_view> known(names.begin(), names.end());
  throw value.error('"' + text + '"', "one of " + list_text(known), did_you_mean(text, known));
}

Activation activation_of(const TomlValue& value) { return activation_of(value, value.text()); }

std::vector<Activation> of_hidden_layers(const NetSection& net, Activation activation) {
  std::vector<Activation> activations(net.hidden.size(), activation);
  activations.push_back(Activation{ActivationKind::identity});
  return activations;
}

// An array, or a text with commas: one for each layer, or one for all but the last.
std::vector<Activation> activations_of(const TomlValue& value, const NetSection& net) {
  std::vector<Activation> activations;
  if (value.is_text()) {
    for (const std::string& name : nn::detail::split_list(value.text())) {
      activations.push_back(activation_of(value, name));
    }
  } else {
    for (const TomlValue& one : value.array()) activations.push_back(activation_of(one));
  }
  const std::size_t layers = net.hidden.size() + 1;
  if (activations.size() == 1 && layers > 1) return of_hidden_layers(net, activations[0]);
  if (activations.size() == layers) return activations;
  throw value.error(value.describe(),
                    std::to_string(layers) + ", one for each layer, the last too, or one for the hidden layers");
}

void read_net(const TomlValue& table, const TrainingFile& training, NetSection& net) {
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
    net.activations = activations_of(*each, net);
  } else if (!net.start) {
    net.activations = of_hidden_layers(net, one != nullptr ? activation_of(*one) : Activation{ActivationKind::tanh});
  }
  if (const TomlValue* law = table.find("initialisation")) {
    net.initialisation = train::parse_initialisation(law->where(), law->text());
  }
  if (const TomlValue* seed = table.find("seed")) net.seed = static_cast<std::uint64_t>(at_least(*seed, 0));
  if (const TomlValue* name = table.find("name")) net.name = name->text();
}

// [net], or [net.NAME] for each of several, beside which [net] may have a seed.
void read_nets(const TomlValue& file, TrainingFile& training) {
  const bool may_be_none = training.ode && (!training.ode->trained.empty() ||
                                            (training.ode->equations && !training.ode->equations->trained.empty()));
  const TomlValue* table = file.find("net");
  if (table == nullptr && may_be_none) return;
  if (table == nullptr || !table->is_table() ||
      std::ranges::none_of(table->table(), [](const auto& entry) { return entry.second.is_table(); })) {
    const TomlValue& one =
        required_section(file, "net", training_keys::kNet, "add [net] with hidden = [100] and activation = \"tanh\"");
    read_net(one, training, training.nets.emplace_back());
    training.seed = training.nets[0].seed;
    return;
  }
  if (!training.ode || !training.ode->equations) {
    throw table->error("nets by name", "one net", "call them in [rhs.equations], or write [net]");
  }
  if (const TomlValue* seed = table->find("seed")) training.seed = static_cast<std::uint64_t>(at_least(*seed, 0));
  for (const auto& [name, value] : table->table()) {
    if (name == "seed") continue;
    if (!value.is_table()) throw value.error(name + " beside nets by name", "a seed, or [net." + name + "]");
    value.allow_only(training_keys::kNet);
    if (name == "rhs" || name == "checkpoint") {
      throw value.error("a net called " + name, "another name: a file of the training's is called so");
    }
    NetSection& net = training.nets.emplace_back();
    net.called = name;
    net.seed = training.seed + training.nets.size() - 1;
    read_net(value, training, net);
  }
}

std::vector<std::string> names_of(const TomlValue& value) {
  if (value.is_text()) return {value.text()};
  std::vector<std::string> names = value.texts();
  if (names.empty()) throw value.error("no names", "at least one");
  return names;
}

// Trajectories kept for validation, a list of numbers and texts.
void read_held(const TomlValue& list, bool regression, DataSection& data) {
  if (regression) {
    throw list.error(list.describe(), "a share from 0 to below 1", "rows in a file of their own are validation_file");
  }
  data.where_held = list.where();
  for (const TomlValue& each : list.array()) {
    data.held.push_back({each.is_text() ? each.text() : number_text(each.number()), each.where()});
  }
  if (data.held.empty()) throw list.error("no trajectory", "at least one, or no list");
}

void read_data(const TomlValue& file, TrainingFile& training) {
  static constexpr std::array<std::string_view, 3> kNormalisations{"none", "standard", "min_max"};
  const TomlValue& table = required_section(file, "data", training_keys::kData, "add [data] with file = \"table.csv\"");
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
  if (!regression && data.states.empty() && !training.ode && !ode::ResultFile::recognises(data.file.value)) {
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
    if (validation->is_text()) {
      throw validation->error(validation->describe(), "a share from 0 to below 1",
                              "data in a file of their own are validation_file");
    }
    if (validation->is_array()) {
      read_held(*validation, regression, data);
    } else {
      data.validation = validation->number();
      if (!(data.validation >= 0 && data.validation < 1)) {
        throw validation->error(validation->describe(), "a share from 0 to below 1");
      }
    }
  }
  if (const TomlValue* own = table.find("validation_file")) {
    if (data.validation > 0 || !data.held.empty()) throw own->error("validation_file beside validation", "one of them");
    data.validation_file = {training.path.parent_path() / own->text(), own->where()};
  }
  if (const TomlValue* units = table.find("units")) {
    if (!units->is_table()) throw units->error(units->describe(), "a table: { x = \"m\" }");
    for (const auto& [column, unit] : units->table()) data.units.push_back({column, {unit.text(), unit.where()}});
  }
  data.sigma = read_sigma(table, regression ? SigmaOf::regression : SigmaOf::trajectories);
  data.starts = read_starts(table);
  if (regression && !data.starts.of.empty()) {
    throw table.find("starts")->error("starts in a regression", "a neural ODE", "remove this key");
  }
  if (data.states.size() > 1) data.starts.require_among(data.states);  // one name may be that of a dataset of all
  for (const nn::Equation& each : data.starts.of) data.sigma.may_lack.push_back(each.name);
  data.parameters = read_known_parameters(table);
  if (regression && !data.parameters.empty()) {
    refuse(data.parameters.where, "parameters of trajectories in a regression", "a neural ODE",
           "make them columns of inputs");
  }
  if (!regression) declare(data.parameters, *training.ode);
  if (const TomlValue* missing = table.find("missing")) {
    static constexpr std::array<std::string_view, 2> kMissing{"refuse", "skip"};
    data.missing = missing->one_of(kMissing) == "skip" ? train::MissingNumbers::as_nan : train::MissingNumbers::refuse;
  }
}

// All in their order, or by name: those left out take the system's.
void read_system_parameters(const TomlValue& parameters, OdeSection& ode) {
  if (!parameters.is_table()) {
    ode.parameters = parameters.numbers();
    return;
  }
  const ode::SystemInfo info = system_of(ode);
  const std::vector<std::string_view> names(info.parameters.begin(), info.parameters.end());
  parameters.allow_only(names);
  ode.parameters = info.default_parameters;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const TomlValue* value = parameters.find(names[i]);
    if (value == nullptr) continue;
    if (!value->is_table()) {
      ode.parameters[i] = number_of(*value);
      continue;
    }
    ode.trained.push_back(trained_parameter(*value, i));
    ode.parameters[i] = ode.trained.back().start;
  }
}

void read_ode(const TomlValue& file, TrainingFile& training) {
  static constexpr std::array<std::string_view, 2> kFailed{"stop", "leave_out"};
  const TomlValue* table = section(file, "ode", training_keys::kOde);
  if (table == nullptr) return;
  OdeSection& ode = training.ode.emplace();
  if (const TomlValue* system = table->find("system")) ode.system = {system->text(), system->where()};
  if (const TomlValue* parameters = table->find("parameters")) {
    if (!ode.system) throw parameters->error("parameters without a system", "a built-in system", "add system");
    read_system_parameters(*parameters, ode);
  }
  if (const TomlValue* with_time = table->find("with_time")) ode.with_time = with_time->boolean();
  if (const TomlValue* failed = table->find("failed")) {
    training.failed =
        failed->one_of(kFailed) == "stop" ? ode::FailedTrajectories::stop : ode::FailedTrajectories::leave_out;
  }
}

void read_output(const TomlValue& file, TrainingFile& training) {
  training.output.where = training.path.string() + ": output.file";
  const TomlValue* table = section(file, "output", training_keys::kOutput);
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

void read_rhs(const TomlValue& file, TrainingFile& training) {
  const TomlValue* table = section(file, "rhs", training_keys::kRhs);
  if (table == nullptr) return;
  if (table->find("equations") == nullptr) {
    throw table->error("no equations", "[rhs.equations]", "add them; a built-in system is named in [ode]");
  }
  if (!training.ode) training.ode.emplace();
  if (training.ode->system || training.ode->with_time) {
    throw table->error("equations beside a system or with_time in [ode]", "one of them", "remove one of them");
  }
  training.ode->equations = read_equations(*table, training.path.parent_path(), ParametersMay::be_trained);
}

// A step ends where its trajectory is reset.
void require_own_steps(const TrainingFile& training, const ProblemFile& solver) {
  constexpr const char* kOwn = ode::detail::kStepsOfResets;
  for (const TrainingPhase& phase : training.phases) {
    if (phase.dt)
      throw Error(ErrorKind::invalid_argument,
                  {phase.where + ".dt", "fixed steps with resets", kOwn, "remove this key"});
  }
  if (training.options.control == ode::StepControl::per_trajectory) return;
  const bool fixed = training.options.control == ode::StepControl::fixed;
  const auto place =
      solver.where_of.find(solver.where_of.contains("options.control") ? "options.control" : "options.dt");
  throw Error(ErrorKind::invalid_argument,
              {place == solver.where_of.end() ? training.path.string() + ": method.control" : place->second,
               std::string(fixed ? "fixed" : "common") + " steps with resets", kOwn,
               fixed ? "use control = \"per_trajectory\", without dt" : "use control = \"per_trajectory\""});
}

TrainingFile interpret(const TomlValue& file, const std::filesystem::path& path) {
  static constexpr std::array<std::string_view, 11> kSections{
      "net", "data", "rhs", "ode", "resets", "impulses", "training", "phase", "method", "run", "output"};
  if (const TomlValue* event = file.find("event")) {
    throw event->error("an event in a training file", "none: the loss compares states at the data's times",
                       "end each trajectory's rows before its event, or train on times and states of events from C++ "
                       "with ode::EndLoss");
  }
  refuse_misplaced_keys(file, FileKind::training);
  file.allow_only(kSections);
  TrainingFile training;
  training.path = path;
  read_ode(file, training);
  read_rhs(file, training);
  read_nets(file, training);
  read_data(file, training);
  if (const TomlValue* impulses = file.find("impulses")) {
    if (!training.ode) {
      throw impulses->error("impulses in a regression", "a neural ODE, whose states change over time", "remove them");
    }
    training.impulses = read_impulses(*impulses, path.parent_path());
  }
  if (const TomlValue* resets = file.find("resets")) {
    if (!training.ode) {
      throw resets->error("resets in a regression", "a neural ODE, whose states change over time", "remove them");
    }
    training.resets = read_resets(*resets);
  }
  read_phases(file, training);
  if (const TomlValue* method = file.find("method"); method != nullptr && !training.ode && method->is_table()) {
    static constexpr std::array<std::string_view, 1> kPrecision{"precision"};
    method->allow_only(kPrecision);
  }
  ProblemFile solver;
  solver.path = path;
  read_solver_sections(file, solver);
  if (solver.options.device.uses_cuda() || solver.options.engine != ode::EngineChoice::automatic) {
    const bool device = solver.options.device.uses_cuda();
    const std::string field = device ? "options.device" : "options.engine";
    throw Error(ErrorKind::unsupported,
                {solver.where_of.at(field),
                 device ? to_string(solver.options.device) : std::string(to_string(solver.options.engine)),
                 device ? "\"cpu\": nets are trained there" : "no engine of a GPU: nets are trained on the CPU",
                 "remove this key"});
  }
  training.options = solver.options;
  if (!training.resets.empty()) require_own_steps(training, solver);
  const auto atol = solver.where_of.find("options.atol");
  if (atol != solver.where_of.end()) training.where_atol = atol->second;
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

ode::FirstPoints first_points(const TrainingFile& file) {
  const auto is_free = [](const TrainingPhase& phase) { return phase.continuity.has_value(); };
  const bool all = file.phases.empty() ? file.noisy : std::ranges::all_of(file.phases, is_free);
  return all ? ode::FirstPoints::may_miss : ode::FirstPoints::complete;
}

ode::SystemInfo system_of(const OdeSection& ode) {
  try {
    return ode::system_info(ode.system->value);
  } catch (const Error& error) {
    throw Error(error.kind(), {ode.system->where, error.found(), error.expected(), error.remedy()});
  }
}

void override_with(const TrainingOverrides& given, TrainingFile& file) {
  if (given.output) {
    file.output.stem = *given.output;
    file.output.where = given.where_output;
    const auto extension = file.output.stem.extension();
    if (extension == ".h5" || extension == ".safetensors") file.output.stem.replace_extension();
  }
  if (given.overwrite) file.output.overwrite = true;
  if (given.threads) file.options.threads = *given.threads;
  if (!given.seed) return;
  file.seed = *given.seed;
  for (std::size_t i = 0; i < file.nets.size(); ++i) file.nets[i].seed = *given.seed + i;
}

}  // namespace lockstep::cli
