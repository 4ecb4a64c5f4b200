#include "lockstep/cli/right_hand_side.h"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "lockstep/cli/component_order.h"
#include "lockstep/cli/model_text.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/guarded_calls.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/plan_file.h"
#include "lockstep/nn/safetensors.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::cli {
namespace {

// Names from the problem file; where it has none, those of the model's ports; else prefix and index.
std::vector<std::string> feature_names(const std::vector<nn::Feature>& features, std::size_t first, std::size_t count,
                                       const std::vector<std::string>& given, const std::string& prefix) {
  std::vector<std::string> names(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (i < given.size()) {
      names[i] = given[i];
    } else if (first + i < features.size() && !features[first + i].name.empty()) {
      names[i] = features[first + i].name;
    } else {
      names[i] = prefix + std::to_string(i);
    }
  }
  return names;
}

// Those of the problem file, for `features` of the model.
void check_names(const ProblemFile& file, const char* field, const std::vector<std::string>& names,
                 std::span<const nn::Feature> features, std::size_t expected) {
  const auto refuse = [&](const std::string& found, const std::string& wanted, const std::string& remedy = {}) {
    throw Error(ErrorKind::invalid_argument, {file.where_of.at(field), found, wanted, remedy});
  };
  if (names.empty()) return;
  if (names.size() != expected) {
    refuse(counted_text(names.size(), "name"), std::to_string(expected),
           "names are given here in the model's order, and choose nothing");
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto before = names.begin() + static_cast<std::ptrdiff_t>(i);
    if (names[i].empty()) refuse("an empty name", "a name for each");
    if (std::find(names.begin(), before, names[i]) != before) refuse("\"" + names[i] + "\" twice", "different names");
    // Who wants another order, or a choice, would be told of one number by the name of another.
    const auto own = std::ranges::find(features, names[i], &nn::Feature::name);
    if (own != features.end() && own != features.begin() + static_cast<std::ptrdiff_t>(i)) {
      refuse("\"" + names[i] + "\" in place " + std::to_string(i),
             "it in place " + std::to_string(own - features.begin()) + ", where the model has it",
             "names are given here in the model's order, and choose nothing");
    }
  }
}

NamedRhs load_system(const ProblemFile& file) {
  const std::string& name = file.rhs.system->value;
  try {
    NamedRhs rhs;
    rhs.function = ode::system(name);
    const ode::SystemInfo& info = ode::system_info(name);
    rhs.title = info.title;
    rhs.component_names = info.components;
    rhs.parameter_names = info.parameters;
    rhs.default_parameters.assign(info.default_parameters.begin(), info.default_parameters.end());
    rhs.default_initial_state = info.default_initial_state;
    rhs.default_end_time = info.default_end_time;
    rhs.reads_time = info.reads_time;
    return rhs;
  } catch (const Error& error) {
    throw Error(error.kind(), {file.rhs.system->where, error.found(), error.expected(), error.remedy()});
  }
}

// Of the features of a right-hand side, the state's first.
ode::Range range_of(const std::vector<nn::Feature>& features, const ode::StateFunction& rhs) {
  const std::size_t count = rhs.components() + rhs.parameters();
  ode::Range range;
  if (features.size() < count) return range;
  for (std::size_t i = 0; i < count; ++i) {
    range.minimum.push_back(features[i].minimum);
    range.maximum.push_back(features[i].maximum);
  }
  return range;
}

// How a net comes by a range.
constexpr const char* kStoreRanges =
    "lockstep import NET -o net.h5 --ranges data.csv, in Python net.with_ranges(data=x); lockstep train does so itself";

// Of nets that are there for resets and events alone.
[[noreturn]] void refuse_uncalled(const Given<ode::GuardAction>& asked) {
  throw Error(ErrorKind::invalid_argument,
              {asked.where, std::string(to_string(asked.value)) + " with nets that the equations do not call",
               "one with a training range that they call: calls by resets and events are not watched",
               "use guard = \"clamp\", which works in those as well, or \"ignore\""});
}

bool know_ranges(const std::vector<nn::Equations::Net>& nets) {
  return std::ranges::any_of(nets, [](const nn::Equations::Net& net) { return nn::knows_range(net.model); });
}

// Takes the training range from the model's input features, and clamps where that was asked for.
void guard(const ProblemFile& file, const std::vector<nn::Feature>& features, NamedRhs& rhs) {
  const auto& asked = file.rhs.guard;
  rhs.range = range_of(features, *rhs.function);
  if (!rhs.range.bounded()) {
    rhs.range = {};
    if (!asked || asked->value == ode::GuardAction::ignore) return;
    if (file.rhs.written && know_ranges(file.rhs.written->nets)) {
      if (asked->value != ode::GuardAction::clamp || (!file.event && file.resets.empty())) refuse_uncalled(*asked);
      rhs.guard = ode::GuardAction::clamp;  // load_rhs() does so in what resets and events call
      return;
    }
    throw Error(ErrorKind::invalid_argument,
                {asked->where, std::string(to_string(asked->value)) + " with a model that has no training range",
                 "minimum and maximum of its inputs in " + file.rhs.model->value.string(),
                 std::string("remove the guard, or store them: ") + kStoreRanges});
  }
  rhs.guard = asked ? asked->value : ode::GuardAction::flag;
  if (rhs.guard == ode::GuardAction::clamp) rhs.function = ode::clamp_to_range(rhs.function, rhs.range);
}

bool asks(const ProblemFile& file, ode::GuardAction action) {
  return file.rhs.guard && file.rhs.guard->value == action;
}

// What the nets called by a model of equations were trained on, watched where the state and the parameters tell. Not
// for clamp, which acts in the calls themselves.
void watch_calls(const ProblemFile& file, const nn::Model& model, const nn::WatchedInputs& watched, NamedRhs& rhs) {
  const auto& asked = file.rhs.guard;
  if (asks(file, ode::GuardAction::ignore)) return;
  for (const std::string& other : watched.other) {
    rhs.notes.push_back("the " + other + " is not watched: it is no component or parameter");
  }
  ode::Range range = range_of(rhs_features(watched.inputs), *rhs.function);
  if (!range.bounded()) {
    if (!asked) return;
    const auto& written = file.rhs.equations;
    if (written && written->nets.empty() && !written->tables.empty()) {
      throw Error(
          ErrorKind::invalid_argument,
          {asked->where,
           std::string(to_string(asked->value)) + " with tables, none of which is read at a component or parameter",
           "a table of one, or a net", "leave it out: of a table of t a note tells where a span leaves its knots"});
    }
    if (std::ranges::all_of(model.calls, [&](const auto& call) { return nn::called_table(model, call) != nullptr; })) {
      refuse_uncalled(*asked);
    }
    throw Error(
        ErrorKind::invalid_argument,
        {asked->where, std::string(to_string(asked->value)) + " with nets that read no component or parameter as it is",
         "an input that is one", "use guard = \"clamp\", which works on any, or \"ignore\""});
  }
  rhs.range = std::move(range);
  rhs.guard = asked ? asked->value : ode::GuardAction::flag;
}

// What the results keep of it.
std::string equations_of(const nn::Model& model) {
  const auto text = model.metadata.find("equations");
  return text == model.metadata.end() ? "" : text->second;
}
// A line for each call of a net whose inputs are clamped, which the nets' digests in the equations do not tell:
// "drag: inputs clamped, v to [0, 3]".
std::string clamped_text(const nn::Model& model) {
  std::string text;
  for (const nn::GuardedCall& call : model.calls) {
    if (nn::called_table(model, call) != nullptr) continue;
    text += "\n" + call.name + ": inputs clamped";
    for (const nn::Port& port : call.inputs) {
      for (const nn::Feature& feature : port.features) {
        if (!nn::is_bounded(feature)) continue;
        text +=
            ", " + feature.name + " to [" + number_text(feature.minimum) + ", " + number_text(feature.maximum) + "]";
      }
    }
  }
  return text;
}

// Of a model that calls nets with ranges, those that are watched are its inputs'.
std::vector<std::byte> stored_bytes(const nn::Model& model) {
  if (!model.calls.empty()) {
    nn::Model stored = model;
    stored.inputs = nn::watched_inputs(model, nn::Watch::state_and_parameters).inputs;
    stored.calls.clear();
    return stored_bytes(stored);
  }
  try {
    return nn::to_safetensors(model);
  } catch (const Error&) {  // no plain stack, or of a form that safetensors cannot say
    return nn::plan_bytes({model, Precision::f64, CpuTarget::scalar});
  }
}

// Who solves the stored problem again is not to clamp the inputs of equations because their nets were clamped.
nn::Model without_ranges(nn::Model model) {
  for (nn::Port& port : model.inputs) {
    for (nn::Feature& feature : port.features) feature = {.name = feature.name, .unit = feature.unit};
  }
  return model;
}

// What of a model does not depend on the rest of the problem.
KeptNet::Made make_net(const ProblemFile& file, std::shared_ptr<const nn::Model> model, const std::string& name) {
  KeptNet::Made made{.name = name, .function = {}, .stored = {}};
  try {
    const ode::NetOptions net{.name = name, .with_time = file.rhs.with_time};
    std::optional<Mlp> stack = nn::as_stack(*model);
    made.function = stack ? ode::net(*std::move(stack), net) : ode::net(nn::to_graph(*model), net);
  } catch (const Error& error) {
    throw Error(error.kind(), {file.rhs.model->where + " (" + file.rhs.model->value.string() + ")" +
                                   (error.field().empty() ? "" : ": " + error.field()),
                               error.found(), error.expected(), error.remedy()});
  }
  made.stored = std::make_shared<StoredModel>(std::move(model));
  return made;
}

KeptNet::Made kept_net(const ProblemFile& file, const std::shared_ptr<const nn::Model>& model,
                       const std::string& name) {
  if (file.rhs.kept == nullptr || !file.rhs.loaded) return make_net(file, model, name);
  const std::lock_guard lock(file.rhs.kept->mutex);
  auto& made = file.rhs.kept->made[file.rhs.with_time ? 1 : 0];
  if (!made || made->name != name) made = make_net(file, model, name);
  return *made;
}

// Of equations that have a name of their own: "spring, equations of x, v".
std::string title_of(const nn::Model& model, const std::string& name, const std::vector<std::string>& components) {
  if (equations_of(model).empty()) return "Net " + name;
  const std::vector<std::string_view> names(components.begin(), components.end());
  return (name == "equations" ? "Equations of " : name + ", equations of ") + list_text(names);
}

// `physics`: the components of what it is added to.
NamedRhs load_net(const ProblemFile& file, const std::vector<std::string>* physics = nullptr) {
  const auto& activations = file.rhs.activations;
  std::shared_ptr<const nn::Model> given = file.rhs.loaded;
  if (!given) {
    given = std::make_shared<const nn::Model>(
        activations ? load_model(file.rhs.model->value, activations->value, activations->where)
                    : load_model(file.rhs.model->value, std::nullopt));
  }
  const nn::Model& model = *given;
  NamedRhs rhs;
  const std::string name = model.name.empty() ? file.rhs.model->value.stem().string() : model.name;
  const bool clamps_calls = !model.calls.empty() && asks(file, ode::GuardAction::clamp);
  KeptNet::Made net =
      clamps_calls
          ? make_net(file, std::make_shared<const nn::Model>(without_ranges(nn::with_clamped_calls(model))), name)
          : kept_net(file, given, name);
  rhs.function = std::move(net.function);
  rhs.reads_time = file.rhs.with_time || nn::has_time_port(model);
  rhs.stored = std::move(net.stored);
  rhs.equations = equations_of(model) + (clamps_calls ? clamped_text(model) : "");
  const nn::WatchedInputs watched = nn::watched_inputs(model, nn::Watch::state_and_parameters);
  const std::vector<nn::Feature> features = rhs_features(watched.inputs);
  const std::size_t components = rhs.function->components();
  const std::size_t parameters = rhs.function->parameters();
  const auto own = [&](std::size_t first, std::size_t count) {
    const std::size_t end = std::min(first + count, features.size());
    return std::span(features).first(end).subspan(std::min(first, end));
  };
  check_names(file, "rhs.components", file.rhs.components, own(0, components), components);
  check_names(file, "rhs.parameters", file.rhs.parameters, own(components, parameters), parameters);
  rhs.component_names = feature_names(features, 0, components, file.rhs.components, "u");
  require_component_order(physics ? *physics : rhs.component_names, own(0, components), model.outputs[0].features,
                          file.rhs.model->where, file.rhs.model->value);
  rhs.title = title_of(model, name, rhs.component_names);
  for (std::size_t i = 0; i < std::min(components, features.size()); ++i) {
    if (!features[i].unit.empty()) rhs.component_units.push_back(features[i].unit);
  }
  if (rhs.component_units.size() != components) rhs.component_units.clear();
  rhs.parameter_names = feature_names(features, components, parameters, file.rhs.parameters, "p");
  rhs.default_parameters = nn::parameter_defaults(model);
  rhs.default_parameters.resize(parameters);
  rhs.times = watched.times;
  rhs.time_feature = nn::shortest_time_feature(model);
  if (model.calls.empty()) {
    guard(file, features, rhs);
  } else if (clamps_calls) {
    rhs.guard = ode::GuardAction::clamp;
  } else {
    watch_calls(file, model, watched, rhs);
  }
  return rhs;
}

std::vector<std::string> names_of(const std::vector<nn::Feature>& features) {
  std::vector<std::string> names;
  for (const nn::Feature& feature : features) names.push_back(feature.name);
  return names;
}

// In the nets themselves; a table keeps its ends anyway.
void clamp_nets(std::vector<nn::Equations::Net>& nets) {
  for (nn::Equations::Net& net : nets) {
    if (!nn::is_table(net.model)) net.model = nn::with_clamped_inputs(net.model);
  }
}

// Clamps in the calls themselves, where that was asked for. Refuses a guard that no net has a range for.
void guard_nets(const ProblemFile& file, std::vector<nn::Equations::Net>& nets) {
  const auto& asked = file.rhs.guard;
  if (!asked || asked->value == ode::GuardAction::ignore) return;
  if (!know_ranges(nets)) {
    throw Error(
        ErrorKind::invalid_argument,
        {asked->where, std::string(to_string(asked->value)) + " with nets that have no training range",
         "minimum and maximum of their inputs", std::string("remove the guard, or store them: ") + kStoreRanges});
  }
  if (asked->value == ode::GuardAction::clamp) clamp_nets(nets);
}

NamedRhs load_written(const ProblemFile& file) {
  NamedRhs rhs;
  rhs.names = load_nets(*file.rhs.equations);
  guard_nets(file, rhs.names.nets);
  nn::Model model = nn::equations(rhs.names);
  model.name = "equations";
  rhs.function = ode::net(nn::to_graph(model), {.name = model.name});
  rhs.reads_time = nn::has_time_port(model);
  rhs.component_names = names_of(model.inputs[0].features);
  if (rhs.function->parameters() > 0) rhs.parameter_names = names_of(model.inputs[1].features);
  rhs.default_parameters = nn::parameter_defaults(model);
  const nn::WatchedInputs watched = nn::watched_inputs(model, nn::Watch::state_and_parameters);
  rhs.times = watched.times;
  rhs.time_feature = nn::shortest_time_feature(model);
  if (asks(file, ode::GuardAction::clamp)) {
    rhs.guard = ode::GuardAction::clamp;
  } else {
    watch_calls(file, model, watched, rhs);
  }
  rhs.title = title_of(model, model.name, rhs.component_names);
  rhs.equations = equations_of(model);
  rhs.stored = std::make_shared<StoredModel>(std::make_shared<const nn::Model>(std::move(model)));
  return rhs;
}

NamedRhs load_any(const ProblemFile& file) {
  if (file.rhs.equations) return load_written(file);
  if (!file.rhs.model) return load_system(file);
  if (!file.rhs.system) return load_net(file);
  NamedRhs physics = load_system(file);
  NamedRhs closure = load_net(file, &physics.component_names);
  if (physics.component_names.size() != closure.component_names.size()) {
    throw Error(ErrorKind::invalid_argument,
                {file.rhs.model->where, "a net of " + std::to_string(closure.component_names.size()) + " components",
                 std::to_string(physics.component_names.size()) + " as " + file.rhs.system->value + " has",
                 "choose a net and a system of one size"});
  }
  const std::size_t components = physics.component_names.size();
  physics.function = ode::sum(physics.function, closure.function);
  physics.title += " + " + closure.title;
  physics.parameter_names.insert(physics.parameter_names.end(), closure.parameter_names.begin(),
                                 closure.parameter_names.end());
  physics.default_parameters.insert(physics.default_parameters.end(), closure.default_parameters.begin(),
                                    closure.default_parameters.end());
  physics.component_units = closure.component_units;
  physics.guard = closure.guard;
  physics.reads_time = physics.reads_time || closure.reads_time;
  physics.times = std::move(closure.times);
  physics.time_feature = std::move(closure.time_feature);
  physics.notes = std::move(closure.notes);
  physics.range = std::move(closure.range);
  physics.range.minimum.resize(std::min(physics.range.minimum.size(), components));  // the net's parameters come last
  physics.range.maximum.resize(physics.range.minimum.size());
  physics.stored = std::move(closure.stored);
  physics.equations = std::move(closure.equations);
  return physics;
}

}  // namespace

std::vector<nn::Feature> rhs_features(std::vector<nn::Port> ports) {
  // Those named "p" may come before "u".
  std::stable_partition(ports.begin(), ports.end(), [&](const nn::Port& port) {
    return ports.size() == 1 || (port.name != "p" && port.name != "parameters" && !nn::is_time(port));
  });
  std::stable_partition(ports.begin(), ports.end(), [](const nn::Port& port) { return !nn::is_time(port); });
  std::vector<nn::Feature> features;
  for (const nn::Port& port : ports) features.insert(features.end(), port.features.begin(), port.features.end());
  return features;
}

const std::string& StoredModel::digest() const {
  std::call_once(digest_once_, [this] { digest_ = model_->digest(); });
  return digest_;
}
const std::vector<std::byte>& StoredModel::bytes() const {
  const StandardArithmetic arithmetic;
  std::call_once(bytes_once_, [this] { bytes_ = stored_bytes(*model_); });
  return bytes_;
}

NamedRhs load_rhs(const ProblemFile& file) {
  NamedRhs rhs = load_any(file);
  nn::Equations& names = rhs.names;
  if (!names.equations.empty()) return rhs;
  for (const std::string& name : rhs.component_names) names.equations.push_back({name, "", ""});
  for (const std::string& name : rhs.parameter_names) names.parameters.push_back({name, {}});
  if (file.rhs.written && (file.event || !file.resets.empty())) {
    names.definitions = file.rhs.written->definitions;
    names.nets = file.rhs.written->nets;
    if (asks(file, ode::GuardAction::clamp)) clamp_nets(names.nets);
  }
  return rhs;
}

}  // namespace lockstep::cli
