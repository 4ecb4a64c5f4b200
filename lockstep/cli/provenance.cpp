#include "lockstep/cli/provenance.h"

#include <algorithm>
#include <ctime>
#include <span>
#include <vector>

#include "lockstep/cli/right_hand_side.h"
#include "lockstep/core/hash.h"
#include "lockstep/ode/cpu/engine.h"
#include "lockstep/ode/detail/device_plan.h"

namespace lockstep::cli {
namespace {

constexpr const char* kComponentUnits = "component_units";

std::string utc_text(WallClock::time_point when) {
  const std::time_t seconds = WallClock::to_time_t(when);
  std::tm utc{};
  ::gmtime_r(&seconds, &utc);
  char text[32];
  return {text, std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &utc)};
}

}  // namespace

std::string to_string(ode::StepControl control) {
  switch (control) {
    case ode::StepControl::per_trajectory:
      return "per_trajectory";
    case ode::StepControl::common:
      return "common";
    case ode::StepControl::fixed:
      return "fixed";
  }
  return "unknown";
}

std::string problem_digest(const ode::Problem& problem) {
  ContentHash hash;
  hash.add(problem.rhs->digest());
  for (const auto* numbers :
       {&problem.initial_states, &problem.parameters, &problem.start_times, &problem.end_times, &problem.save_times}) {
    hash.add(std::span<const double>(*numbers));
  }
  const auto add_event = [&hash](const ode::Rhs& function, ode::TerminalEvent::Direction direction) {
    hash.add(function->digest());
    hash.add(std::to_string(static_cast<int>(direction)));
  };
  if (problem.event) add_event(problem.event->function, problem.event->direction);
  for (const ode::Reset& reset : problem.resets) {
    add_event(reset.function, reset.direction);
    hash.add(reset.state->digest());
  }
  if (!problem.impulses.empty()) {
    std::vector<double> numbers;
    numbers.reserve(4 * problem.impulses.size() + problem.first_impulse.size());
    for (const auto& [time, component, change, factor] : problem.impulses) {
      for (const double number : {time, static_cast<double>(component), change, factor}) numbers.push_back(number);
    }
    for (const std::size_t first : problem.first_impulse) numbers.push_back(static_cast<double>(first));
    hash.add(std::span<const double>(numbers));
  }
  return hash.hex();
}

std::string history_line(const std::string& command_line, WallClock::time_point when) {
  return utc_text(when) + " " + command_line;
}

std::string history_line(const std::string& command_line, const ode::ResultFile& from) {
  const std::string before = from.text_attribute("history");
  return history_line(command_line) + (before.empty() ? "" : "\n" + before);
}

void describe_units(hdf5::File& file, const ProblemSetup& setup) {
  namespace names = ode::result_names;
  if (!setup.time_unit.empty()) {
    for (const char* name : {names::kTime, names::kStartTime, names::kEndTime}) {
      file.dataset(name).set_attribute("units", setup.time_unit);
    }
  }
  if (setup.component_units.size() != setup.component_names.size()) return;
  std::vector<std::string> units;
  for (const std::string& name : file.dataset(names::kComponent).read_strings()) {
    const auto found = std::ranges::find(setup.component_names, name);
    if (found == setup.component_names.end()) return;
    units.push_back(setup.component_units[static_cast<std::size_t>(found - setup.component_names.begin())]);
  }
  if (units.empty()) return;
  for (const char* name : {names::kState, names::kEndState, names::kInitialState}) {
    hdf5::Dataset dataset = file.dataset(name);
    dataset.set_attribute(kComponentUnits, units);
    // The CF conventions know one unit for a variable.
    const bool one = std::ranges::count(units, units.front()) == std::ssize(units) && !units.front().empty();
    if (one) dataset.set_attribute("units", units.front());
  }
}

std::vector<std::string> component_units(const ode::ResultFile& file) {
  const hdf5::Dataset state = file.hdf5().dataset(ode::result_names::kState);
  if (!state.has_attribute(kComponentUnits)) return {};
  const auto value = state.attribute(kComponentUnits);
  const auto* units = value ? std::get_if<std::vector<std::string>>(&*value) : nullptr;
  return units != nullptr && units->size() == file.components() ? *units : std::vector<std::string>{};
}

std::string time_unit(const ode::ResultFile& file) {
  const hdf5::Dataset time = file.hdf5().dataset(ode::result_names::kTime);
  if (!time.has_attribute("units")) return {};
  const auto value = time.attribute("units");
  const auto* unit = value ? std::get_if<std::string>(&*value) : nullptr;
  return unit != nullptr ? *unit : std::string{};
}

ode::Attributes describe_problem(const ProblemFile& file, const ProblemSetup& setup, const std::string& command_line,
                                 WallClock::time_point when) {
  const ode::Options& options = setup.options;
  ode::Attributes attributes{
      {"source", std::string("lockstep " LOCKSTEP_VERSION)},
      {"version", std::string(LOCKSTEP_VERSION)},
      {"command", command_line},
      {"history", history_line(command_line, when)},
      {"problem_file", file.path.filename().string()},
      {"problem_digest", setup.part_of ? setup.whole_digest : problem_digest(setup.problem)},
      {"rhs", setup.problem.rhs->description()},
      {"rhs_digest", setup.problem.rhs->digest()},
      {"method", options.method},
      {"control", to_string(options.control)},
      {"precision", std::string(to_string(options.precision))},
      {"matrix_precision", std::string(to_string(options.matrix_precision))},
      {"max_steps", options.max_steps},
      {"seed", static_cast<std::int64_t>(file.ensemble.seed)},
  };
  if (setup.part_of) attributes.emplace_back(ode::result_names::kShard, setup.shard);
  if (!setup.grid.empty()) {
    std::vector<std::string> names;
    std::vector<std::int64_t> points;
    for (const auto& [name, count] : setup.grid) {
      names.push_back(name);
      points.push_back(static_cast<std::int64_t>(count));
    }
    attributes.emplace_back(kGridAttribute, std::move(names));
    attributes.emplace_back(kGridPointsAttribute, std::move(points));
  }
  if (file.rhs.model) {
    attributes.emplace_back("model", file.rhs.model->value.filename().string());
    attributes.emplace_back("model_digest", setup.stored_model->digest());
  }
  if (!setup.equations.empty()) attributes.emplace_back("equations", setup.equations);
  if (options.control == ode::StepControl::fixed) {
    attributes.emplace_back("dt", options.dt);
  } else {
    attributes.emplace_back("rtol", options.rtol);
    if (options.component_atol.empty()) {
      attributes.emplace_back("atol", options.atol);
    } else {
      attributes.emplace_back("atol", options.component_atol);
    }
    if (options.initial_step) attributes.emplace_back("initial_step", *options.initial_step);
    if (options.max_step) attributes.emplace_back("max_step", *options.max_step);
  }
  if (!options.stops.empty()) attributes.emplace_back("stops", options.stops);
  if (!options.stop_at_knots) attributes.emplace_back("stop_at_knots", std::int64_t{0});
  if (setup.guard != ode::GuardAction::ignore) attributes.emplace_back("guard", std::string(to_string(setup.guard)));
  if (setup.problem.event) attributes.emplace_back("event", setup.problem.event->function->description());
  if (!setup.resets.empty()) attributes.emplace_back("resets", text_of_resets(setup.resets));
  if (setup.problem.keep_events) attributes.emplace_back("events", std::int64_t{1});
  if (!setup.impulses.empty()) attributes.emplace_back("impulses", setup.impulses);
  return attributes;
}

ode::Attributes describe_run(const ode::Summary& summary) {
  ode::Attributes attributes{{"engine", summary.engine},
                             {"engine_reason", summary.reason},
                             {"cpu_target", summary.cpu_target},
                             {"kernel", summary.kernel},
                             {"threads", std::int64_t{summary.threads}},
                             {"seconds", summary.seconds},
                             {"accepted_steps", summary.accepted},
                             {"rejected_steps", summary.rejected},
                             {"rhs_evaluations", summary.evaluations}};
  if (!summary.device.empty()) attributes.emplace_back("device", summary.device);
  // Of engines whose numbers have bits of their own: what has begun with one is not continued with another.
  if (summary.engine.ends_with("cuda_gemm")) attributes.emplace_back("products", std::string("cuBLASLt"));
  return attributes;
}

ode::Summary planned_run(const ProblemSetup& setup) {
  const ode::cpu::EnginePlan plan = ode::cpu::plan(setup.problem, setup.options);
  ode::Summary summary;
  const auto devices = ode::detail::plan_devices(setup.problem, setup.options);
  summary.engine = devices.engine;
  summary.device = devices.device;
  summary.reason = devices.reason;
  summary.cpu_target = to_string(plan.target);
  summary.threads = plan.threads;
  summary.kernel = setup.options.precision == Precision::f32 ? setup.problem.rhs->lower_f32(plan.target)->description()
                                                             : setup.problem.rhs->lower_f64(plan.target)->description();
  return summary;
}

std::vector<std::string> deciding_attributes() {
  return {"version",    "precision",      "matrix_precision", "products", "model_digest",  "rhs",
          "rhs_digest", "problem_digest", "method",           "control",  "rtol",          "atol",
          "dt",         "initial_step",   "max_step",         "stops",    "stop_at_knots", "max_steps",
          "event",      "resets",         "events",           "guard",    "shard"};
}

}  // namespace lockstep::cli
