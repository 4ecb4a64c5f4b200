#include "lockstep/cli/stored_problem.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "lockstep/cli/provenance.h"
#include "lockstep/cli/right_hand_side.h"
#include "lockstep/cli/state_events.h"
#include "lockstep/core/error.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/plan_file.h"
#include "lockstep/nn/safetensors.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::cli {
namespace {

namespace names = ode::result_names;

constexpr const char* kGroup = "problem";
constexpr const char* kEndTimes = "end_time";  // f64 [1] or [trajectory]: what was asked for, not what was reached
// Where the file has some of the components: f64 [trajectory][component] of all, and which of them it has, by index.
constexpr const char* kInitialState = "initial_state";
constexpr const char* kStoredComponents = "stored_components";
constexpr const char* kModel = "model";  // u8: safetensors, or a plan file
constexpr const char* kSystem = "system";
constexpr const char* kWithTime = "with_time";
constexpr const char* kEventComponent = "event_component";
constexpr const char* kEventValue = "event_value";
constexpr const char* kEventModel = "event_model";  // u8: a plan file, of an expression
constexpr const char* kEventDirection = "event_direction";
constexpr const char* kResets = "resets";           // a group of a group for each, "0", "1", ...: an event, and
constexpr const char* kStateModel = "state_model";  // u8: a plan file, of the state behind
constexpr const char* kText = "text";
// A larger net is not worth a copy in each of its results.
constexpr std::size_t kLargestModel = std::size_t{64} << 20;

[[noreturn]] void cannot(const ode::ResultFile& file, const std::string& found, const std::string& expected) {
  throw Error(ErrorKind::unsupported, {file.path().string(), found, expected, "solve again with --certificate"});
}

double number(const ode::ResultFile& file, const char* name) {
  const auto value = file.attribute(name);
  if (value) {
    if (const auto* real = std::get_if<double>(&*value)) return *real;
    if (const auto* integer = std::get_if<std::int64_t>(&*value)) return static_cast<double>(*integer);
  }
  cannot(file, std::string("no attribute ") + name, "all options of its solve");
}

struct StoredRhs {
  ode::Rhs function;
  // Of a net that was guarded: what it was trained on, and what its solve did outside.
  ode::GuardAction guard = ode::GuardAction::ignore;
  ode::Range range;
};

ode::Rhs guarded(const ode::ResultFile& file, const nn::Model& model, ode::Rhs net, StoredRhs& stored) {
  const std::string action = file.text_attribute("guard");
  if (action.empty()) return net;
  const auto known = ode::parse_guard_action(action);
  const std::vector<nn::Feature> features = rhs_features(model.inputs);
  const std::size_t count = net->components() + net->parameters();
  if (!known || features.size() < count) cannot(file, "guard \"" + action + "\"", "a guard, and the net's range");
  stored.guard = *known;
  for (std::size_t i = 0; i < count; ++i) {
    stored.range.minimum.push_back(features[i].minimum);
    stored.range.maximum.push_back(features[i].maximum);
  }
  // Of equations whose nets were clamped the model has the bounds in it, and no range.
  const bool clamps = stored.guard == ode::GuardAction::clamp && stored.range.bounded();
  return clamps ? ode::clamp_to_range(net, stored.range) : net;
}

nn::Model read_model(std::span<const std::byte> bytes, const std::string& source) {
  return nn::is_plan_file(bytes) ? nn::read_plan(bytes, source).model : nn::read_safetensors(bytes, source);
}

StoredRhs rebuild_rhs(const ode::ResultFile& file, const hdf5::Group& group) {
  StoredRhs stored;
  ode::Rhs& rhs = stored.function;
  if (group.has_attribute(kSystem)) rhs = ode::system(group.string_attribute(kSystem));
  if (group.has(kModel)) {
    const auto bytes = group.dataset(kModel).read<std::uint8_t>();
    const nn::Model model = read_model(std::as_bytes(std::span(bytes)), file.path().string() + ":/problem/model");
    ode::NetOptions options;
    options.with_time = group.has_attribute(kWithTime) && group.integer_attribute(kWithTime) != 0;
    const ode::Rhs net = guarded(
        file, model,
        nn::is_stack(model) ? ode::net(nn::to_mlp(model), options) : ode::net(nn::to_graph(model), options), stored);
    if (rhs) {
      rhs = ode::sum(rhs, net);
      stored.range.minimum.resize(std::min(stored.range.minimum.size(), rhs->components()));
      stored.range.maximum.resize(stored.range.minimum.size());  // the net's parameters come last
    } else {
      rhs = net;
    }
  }
  if (!rhs) cannot(file, "neither a system nor a net", "the equation, which its group \"problem\" holds");
  if (rhs->digest() != file.text_attribute("rhs_digest")) {
    cannot(file, "another equation than the one of its attribute rhs_digest", "the equation it was solved with");
  }
  return stored;
}

ode::Options rebuild_options(const ode::ResultFile& file) {
  ode::Options options;
  options.method = file.text_attribute("method");
  options.precision = file.precision();
  const std::string control = file.text_attribute("control");
  bool known = false;
  for (const auto one : {ode::StepControl::per_trajectory, ode::StepControl::common, ode::StepControl::fixed}) {
    if (to_string(one) != control) continue;
    options.control = one;
    known = true;
  }
  if (!known) cannot(file, "step control \"" + control + "\"", "per_trajectory, common or fixed");
  if (options.control == ode::StepControl::fixed) {
    options.dt = number(file, "dt");
  } else {
    options.rtol = number(file, "rtol");
    const auto atol = file.attribute("atol");
    if (atol && std::holds_alternative<std::vector<double>>(*atol)) {
      options.component_atol = std::get<std::vector<double>>(*atol);
    } else {
      options.atol = number(file, "atol");
    }
    if (file.attribute("initial_step")) options.initial_step = number(file, "initial_step");
    if (file.attribute("max_step")) options.max_step = number(file, "max_step");
  }
  if (const auto stops = file.attribute("stops")) options.stops = std::get<std::vector<double>>(*stops);
  if (file.attribute("stop_at_knots")) options.stop_at_knots = number(file, "stop_at_knots") != 0;
  options.max_steps = static_cast<std::int64_t>(number(file, "max_steps"));
  options.validate();
  return options;
}

void store_bytes(hdf5::Group& group, const char* name, std::span<const std::byte> bytes) {
  const std::span<const std::uint8_t> numbers(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  group.create_dataset<std::uint8_t>(name, {numbers.size()}).write<std::uint8_t>(numbers);
}

std::vector<std::byte> stored_bytes_of(const hdf5::Group& group, const char* name) {
  const auto numbers = group.dataset(name).read<std::uint8_t>();
  const auto bytes = std::as_bytes(std::span(numbers));
  return {bytes.begin(), bytes.end()};
}

void store_event(hdf5::Group& group, const EventForm& event, ode::TerminalEvent::Direction direction) {
  if (event.model.empty()) {
    group.set_attribute(kEventComponent, event.component);
    group.set_attribute(kEventValue, event.value);
  } else {
    store_bytes(group, kEventModel, event.model);
  }
  group.set_attribute(kEventDirection, to_string(direction));
}

// Nothing where the group has none.
std::optional<EventForm> stored_event(const ode::ResultFile& file, const hdf5::Group& group, std::size_t components) {
  EventForm event;
  if (group.has_attribute(kEventValue)) {
    event.component = static_cast<std::size_t>(group.integer_attribute(kEventComponent));
    event.value = group.number_attribute(kEventValue);
    if (event.component >= components) cannot(file, "an event of no component", "a component's index");
    return event;
  }
  if (!group.has(kEventModel)) return std::nullopt;
  event.model = stored_bytes_of(group, kEventModel);
  return event;
}

ode::TerminalEvent::Direction direction_of(const ode::ResultFile& file, const hdf5::Group& group) {
  const std::string text = group.string_attribute(kEventDirection);
  const auto direction = parse_direction(text);
  if (!direction) cannot(file, "the direction \"" + text + "\" of an event", "rising, falling or either");
  return *direction;
}

void add_resets(const ode::ResultFile& file, const hdf5::Group& problem_group, ode::Problem& problem) {
  if (!problem_group.has(kResets)) {
    if (file.attribute("resets")) cannot(file, "resets without their states", "its group problem/resets");
    return;
  }
  const hdf5::Group resets = problem_group.group(kResets);
  for (std::size_t i = 0; i < resets.groups().size(); ++i) {
    const hdf5::Group group = resets.group(std::to_string(i));
    const auto event = stored_event(file, group, problem.rhs->components());
    if (!event) cannot(file, "a reset without its event", "component and value, or an expression");
    const ResetForm form{*event, stored_bytes_of(group, kStateModel), group.string_attribute(kText)};
    problem.resets.push_back({function_of(form.event, problem.rhs, form.text, group.name() + '/' + kEventModel),
                              state_of(form, problem.rhs, group.name() + '/' + kStateModel),
                              direction_of(file, group)});
  }
}

}  // namespace

std::vector<std::size_t> stored_components(const ode::ResultFile& file) {
  if (!file.hdf5().has(kGroup)) return {};
  const hdf5::Group group = file.hdf5().group(kGroup);
  const auto value = group.has_attribute(kStoredComponents) ? group.attribute(kStoredComponents) : std::nullopt;
  const auto* indices = value ? std::get_if<std::vector<std::int64_t>>(&*value) : nullptr;
  std::vector<std::size_t> stored;
  for (const std::int64_t index : indices ? *indices : std::vector<std::int64_t>{}) {
    if (index >= 0) stored.push_back(static_cast<std::size_t>(index));
  }
  return stored;
}

std::string wrong_equation(const ode::ResultFile& file) {
  try {
    if (file.hdf5().has(kGroup)) rebuild_rhs(file, file.hdf5().group(kGroup));
  } catch (const Error& error) {
    return Error(error.kind(), {error.field(), error.found(), error.expected(), {}}).what();
  }
  return {};
}

void store_problem(hdf5::File& file, const ProblemFile& problem_file, const ProblemSetup& setup) {
  hdf5::Group group = file.create_group(kGroup);
  const std::vector<double>& ends = setup.problem.end_times;
  hdf5::Dataset end_times = group.create_dataset<double>(kEndTimes, {ends.size()});
  end_times.write<double>(ends);
  // Tells one for each trajectory from one for all, so that parts of an ensemble can be merged.
  if (ends.size() > 1 || (setup.part_of && setup.part_of->end_times_per_trajectory)) {
    end_times.attach_scale(0, file.dataset(names::kTrajectory));
  }
  if (!setup.stored.empty()) {
    const std::size_t components = setup.component_names.size();
    hdf5::Dataset initial = group.create_dataset<double>(kInitialState, {setup.problem.trajectories(), components});
    initial.write<double>(setup.problem.initial_states);
    initial.attach_scale(0, file.dataset(names::kTrajectory));
    group.set_attribute(kStoredComponents, std::vector<std::int64_t>(setup.stored.begin(), setup.stored.end()));
  }
  if (problem_file.rhs.system) group.set_attribute(kSystem, problem_file.rhs.system->value);
  if (setup.stored_model && setup.stored_model->bytes().size() <= kLargestModel) {
    store_bytes(group, kModel, setup.stored_model->bytes());
    group.set_attribute(kWithTime, problem_file.rhs.with_time ? 1 : 0);
  }
  if (setup.event) store_event(group, *setup.event, setup.problem.event->direction);
  if (setup.resets.empty()) return;
  hdf5::Group resets = group.create_group(kResets);
  for (std::size_t i = 0; i < setup.resets.size(); ++i) {
    hdf5::Group reset = resets.create_group(std::to_string(i));
    store_event(reset, setup.resets[i].event, setup.problem.resets[i].direction);
    store_bytes(reset, kStateModel, setup.resets[i].state);
    reset.set_attribute(kText, setup.resets[i].text);
  }
}

StoredProblem rebuild_problem(const ode::ResultFile& file, std::span<const std::size_t> trajectories) {
  const hdf5::File raw = hdf5::File::open(file.path());
  if (!raw.has(kGroup)) cannot(file, "no description of its problem", "one, which `lockstep solve` writes");
  const hdf5::Group group = raw.group(kGroup);
  StoredProblem stored;
  ode::Problem& problem = stored.problem;
  const StoredRhs rhs = rebuild_rhs(file, group);
  problem.rhs = rhs.function;
  const std::size_t components = problem.rhs->components();
  const bool own_states = group.has(kInitialState);
  if (own_states) {
    stored.components = stored_components(file);
    const bool known = std::ranges::all_of(stored.components, [&](std::size_t c) { return c < components; });
    if (!known || stored.components.size() != file.components() ||
        group.dataset(kInitialState).shape() != hdf5::Shape{file.trajectories(), components}) {
      cannot(file, "other components than its problem says that it has", "a whole file");
    }
  } else if (file.components() != components) {
    cannot(file, std::to_string(file.components()) + " of " + std::to_string(components) + " components",
           "all of them, to solve trajectories again");
  }
  stored.options = rebuild_options(file);
  const auto own_ends = group.dataset(kEndTimes).read<double>();
  if (own_ends.size() != 1 && own_ends.size() != file.trajectories()) {
    cannot(file, std::to_string(own_ends.size()) + " end times", "one, or one for each trajectory");
  }
  const auto starts = raw.dataset(names::kStartTime).read<double>();
  const bool own_span = own_ends.size() != 1 || std::ranges::any_of(starts, [&](double t) { return t != starts[0]; });
  problem.start_times = own_span || starts.empty() ? std::vector<double>{} : std::vector{starts[0]};
  problem.end_times = own_span ? std::vector<double>{} : own_ends;
  problem.save_times_per_trajectory = file.times_per_trajectory();
  if (!problem.save_times_per_trajectory) problem.save_times = file.times(0);
  if (!file.parameters_per_trajectory()) problem.parameters = file.parameters(0);
  const bool own_impulses = file.impulse_form().differ();
  if (own_impulses) {
    problem.first_impulse = {0};
  } else {
    problem.impulses = file.impulses(0, 1).impulses;
  }
  const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  };
  for (const std::size_t i : trajectories) {
    append(problem.initial_states,
           own_states ? group.dataset(kInitialState).read<double>({i, 0}, {1, components}) : file.initial_states(i, 1));
    if (file.parameters_per_trajectory()) append(problem.parameters, file.parameters(i));
    if (problem.save_times_per_trajectory) append(problem.save_times, file.times(i));
    if (own_impulses) {
      const std::vector<ode::Impulse> own = file.impulses(i, 1).impulses;
      problem.impulses.insert(problem.impulses.end(), own.begin(), own.end());
      problem.first_impulse.push_back(problem.impulses.size());
    }
    if (!own_span) continue;
    problem.start_times.push_back(starts[i]);
    problem.end_times.push_back(own_ends.size() == 1 ? own_ends[0] : own_ends[i]);
  }
  if (const auto form = stored_event(file, group, components)) {
    problem.event = ode::TerminalEvent{
        function_of(*form, problem.rhs, file.text_attribute("event"), group.name() + '/' + kEventModel),
        direction_of(file, group)};
  } else if (rhs.guard == ode::GuardAction::stop) {
    problem.event = ode::leaves_range(problem.rhs, rhs.range);
  } else if (file.attribute("event")) {
    cannot(file, "an event without its value", "component, value and direction");
  }
  add_resets(file, group, problem);
  problem.validate();
  return stored;
}

namespace {

// Of the components that the file has.
agreement::Certificate solve_members(const StoredProblem& stored, Precision precision,
                                     const agreement::CertificateOptions& which, const RunControl& control) {
  ode::Options options = stored.options;
  options.precision = precision;
  return with_components(make_certificate(stored.problem, options, which, control), stored.components);
}

}  // namespace

agreement::Certificate recompute_certificate(const ode::ResultFile& file, const agreement::CertificateOptions& which,
                                             const RunControl& control, const agreement::SolvedAgain& how) {
  const std::vector<std::size_t> sample =
      which.chosen.empty() ? agreement::evenly_spaced(file.trajectories(), which.samples) : which.chosen;
  // Where one step size serves all trajectories, all must be solved again; otherwise the sample speaks for itself.
  std::vector<std::size_t> solved = sample;
  if (file.text_attribute("control") == to_string(ode::StepControl::common)) {
    solved.resize(file.trajectories());
    std::iota(solved.begin(), solved.end(), std::size_t{0});
  }
  const StoredProblem stored = rebuild_problem(file, solved);
  // The rebuilt problem counts from 0; with common control, as the file does.
  agreement::CertificateOptions perturbed = which;
  perturbed.samples = sample.size();
  if (solved.size() == sample.size()) perturbed.chosen.clear();
  const auto solve = [&](Precision precision, const agreement::CertificateOptions& members) {
    agreement::Certificate found = solve_members(stored, precision, members, control);
    found.trajectories = sample;
    return found;
  };
  return agreement::solve_again(agreement::StoredEnsemble(file.path()), perturbed, how, solve);
}

agreement::Settings::OwnProblem own_problem(const ode::ResultFile& file, std::size_t trajectory, Precision precision,
                                            const RunControl& control) {
  StoredProblem stored = rebuild_problem(file, std::vector<std::size_t>{trajectory});
  if (!stored.components.empty())
    cannot(file, "some of its problem's components", "all of them, to go on from a saved state");
  stored.options.precision = precision;
  return {std::move(stored.problem), std::move(stored.options), control};
}

}  // namespace lockstep::cli
