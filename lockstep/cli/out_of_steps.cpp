#include "lockstep/cli/out_of_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "lockstep/cli/first_of_status.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/resolved_text.h"
#include "lockstep/ode/cuda/program.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/solution.h"
#include "lockstep/ode/solve.h"

namespace lockstep::cli {
namespace {

constexpr double kTighter = 10;
// Among fewer the first step, which is chosen with care and short, decides how many they are.
constexpr std::int64_t kFewest = 30;

std::int64_t attempts(const ode::TrajectoryRecord& record) { return std::int64_t{record.accepted} + record.rejected; }

// One trajectory again, in float64, to `end` in at most `most` steps.
ode::Solution solved_again(double end, const ode::Problem& problem, const ode::Options& options, std::int64_t most,
                           const RunControl& control) {
  ode::Problem again = problem;
  again.end_times = {end};
  again.save_times = {end};
  again.save_times_per_trajectory = false;
  again.event.reset();
  ode::Options f64 = options;
  f64.precision = Precision::f64;
  f64.matrix_precision = MatrixPrecision::f32;
  f64.control = ode::StepControl::per_trajectory;
  f64.device = ode::parse_device("cpu");
  f64.engine = ode::EngineChoice::automatic;
  f64.threads = 1;
  f64.max_steps = most;
  return ode::solve(again, f64, control);
}

// What one trajectory takes to `end` in at most `most` steps; none where it does not get there.
std::optional<ode::TrajectoryRecord> record_at(double end, const ode::Problem& problem, const ode::Options& options,
                                               std::int64_t most, const RunControl& control) {
  const ode::Solution solution = solved_again(end, problem, options, most, control);
  if (solution.record(0).status != ode::Status::success) return std::nullopt;
  return solution.record(0);
}

// How many steps those are.
std::optional<std::int64_t> steps_to(double end, const ode::Problem& problem, const ode::Options& options,
                                     std::int64_t most, const RunControl& control) {
  const auto reached = record_at(end, problem, options, most, control);
  if (!reached) return std::nullopt;
  return attempts(*reached);
}

// Steps that end where the problem says, as many at any tolerance.
struct GivenEnds {
  std::int64_t impulses = 0, stops = 0, resets = 0;  // until where the trajectory came
  std::int64_t all() const { return impulses + stops + resets; }
};

GivenEnds given_ends(const ode::Problem& problem, const ode::Options& options, std::size_t trajectory,
                     const ode::TrajectoryRecord& record, const RunControl& control) {
  ode::Problem one = problem.selection({trajectory});
  one.end_times = {record.end_time};
  GivenEnds ends;
  const auto stops = [&] { return static_cast<std::int64_t>(ode::stop_times(one, options).size()); };
  const std::int64_t of_both = stops();
  if (!one.resets.empty()) {
    ode::Problem kept = one;
    kept.keep_events = true;
    const ode::Solution solution = solved_again(record.end_time, kept, options, attempts(record), control);
    ends.resets = static_cast<std::int64_t>(solution.events(0).size());
  }
  one.impulses.clear();
  one.first_impulse.clear();
  ends.stops = stops();
  ends.impulses = std::max<std::int64_t>(0, of_both - ends.stops);
  return ends;
}

bool is_stiff(const ode::Problem& problem, const ode::Options& options, std::size_t trajectory,
              const ode::TrajectoryRecord& record, const GivenEnds& ends, const RunControl& control) {
  if (attempts(record) < kFewest || ode::method(options.method).is_linearly_implicit()) return false;
  const ode::Problem one = problem.selection({trajectory});
  ode::Options free = options;
  free.max_step.reset();
  const auto steps = steps_to(record.end_time, one, free, 2 * options.max_steps, control);
  ode::Options tighter = free;
  tighter.rtol /= kTighter;
  tighter.atol /= kTighter;
  for (double& atol : tighter.component_atol) atol /= kTighter;
  if (!steps || *steps <= ends.all() || tighter.rtol < 1e-14) return false;
  const double more = std::pow(kTighter, 0.5 / ode::method(options.method).order);
  const double most = static_cast<double>(ends.all()) + more * static_cast<double>(*steps - ends.all());
  return steps_to(record.end_time, one, tighter, static_cast<std::int64_t>(most), control).has_value();
}

// In how many steps the trajectory comes as far without max_step, where that is what makes them many.
std::optional<std::int64_t> steps_without_limit(const ode::Problem& problem, const ode::Options& options,
                                                std::size_t trajectory, const ode::TrajectoryRecord& record,
                                                const RunControl& control) {
  if (!options.max_step) return std::nullopt;
  const double fewest = std::abs(record.end_time - problem.start_time(trajectory)) / *options.max_step;
  if (fewest < 0.5 * static_cast<double>(attempts(record))) return std::nullopt;
  ode::Options free = options;
  free.max_step.reset();
  return steps_to(record.end_time, problem.selection({trajectory}), free, attempts(record) / 2, control);
}

// "100,000 of which end at impulses and 20 at resets"
std::string text_of(const GivenEnds& ends) {
  std::string text;
  for (const auto& [count, what] : {std::pair{ends.impulses, "impulses"},
                                    {ends.stops, "stops, or where the right-hand side jumps or bends"},
                                    {ends.resets, "resets"}}) {
    if (count == 0) continue;
    text += (text.empty() ? count_text(count) + " of which end at " : " and " + count_text(count) + " at ") + what;
  }
  return text;
}

std::string advice_on(const GivenEnds& ends, const ode::Options& options) {
  if (2 * ends.resets > ends.all()) return "set what resets switch at further apart, or ";
  if (2 * ends.stops > ends.all() && options.stop_at_knots && options.stops.empty())
    return "take stop_at_knots = false where a step passes over many of them without harm, or ";
  return {};
}

// A method that comes as far as the trajectory did, and what it takes.
struct OtherMethod {
  std::string name;
  ode::TrajectoryRecord record;
  double work;  // evaluations of the right-hand side; a Jacobian counts as one for each component
};

std::optional<OtherMethod> with_method(std::string_view name, const ode::Problem& problem, const ode::Options& options,
                                       std::size_t trajectory, const ode::TrajectoryRecord& record,
                                       const RunControl& control) {
  const ode::Tableau& tableau = ode::method(name);
  const auto jacobian = tableau.is_linearly_implicit() ? static_cast<double>(problem.rhs->components()) : 0.0;
  const double of_a_step = tableau.evaluations(true) + jacobian;
  const auto most = static_cast<std::int64_t>(static_cast<double>(record.evaluations) / of_a_step / 2);
  if (most == 0) return std::nullopt;
  ode::Options other = options;
  other.method = name;
  if (options.device.uses_cuda() && ode::cuda::obstacle(problem, other)) return std::nullopt;
  const auto reached = record_at(record.end_time, problem.selection({trajectory}), other, most, control);
  if (!reached) return std::nullopt;
  return OtherMethod{std::string(name), *reached, of_a_step * static_cast<double>(attempts(*reached))};
}

// The methods for stiff problems as advice, the better one where it takes at most half of the work; "" where none does.
std::string advice_of_methods(const ode::Problem& problem, const ode::Options& options, std::size_t trajectory,
                              const ode::TrajectoryRecord& record, const RunControl& control) {
  std::optional<OtherMethod> best;
  for (const std::string_view name : {"rodas5p", "rkc20"}) {
    auto found = with_method(name, problem, options, trajectory, record, control);
    if (found && (!best || found->work < best->work)) best = std::move(found);
  }
  if (!best) return {};
  const bool implicit = ode::method(best->name).is_linearly_implicit();
  return "take method " + best->name + ", which comes as far by " + count_text(best->record.evaluations) +
         " evaluations" + (implicit ? " and " + count_text(attempts(best->record)) + " Jacobians" : "") +
         " in place of " + count_text(record.evaluations) + " evaluations, or ";
}

// "0.3505 of 1", with as many digits as tell the two apart, and a thousandth of the span.
std::string share_text(double start, double reached, double end) {
  const double thousandth = std::abs(end - start) / 1000, left = std::abs(end - reached);
  const double resolution = left > 0 ? std::min(thousandth, left) : thousandth;
  return resolved_text(reached, resolution, 4) + " of " + resolved_text(end, resolution, 4);
}

// Two digits, upwards: 312,345 becomes 320,000.
std::string some(double steps) {
  const double unit = std::pow(10.0, std::floor(std::log10(steps)) - 1);
  return "some " + count_text(static_cast<std::int64_t>(std::ceil(steps / unit) * unit));
}

}  // namespace

bool float32_is_too_coarse(const ode::Problem& problem, const ode::Options& options, std::size_t trajectory,
                           const ode::TrajectoryRecord& record, const RunControl& control) {
  if (options.precision != Precision::f32 || attempts(record) < kFewest) return false;
  const ode::Problem one = problem.selection({trajectory});
  return steps_to(record.end_time, one, options, attempts(record) / 3, control).has_value();
}

std::string explain_out_of_steps(const ode::Problem& problem, const ode::Options& options, std::size_t trajectory,
                                 const ode::TrajectoryRecord& record, const RunControl& control) {
  const double start = problem.start_time(trajectory), end = problem.end_time(trajectory);
  const double share = (record.end_time - start) / (end - start);
  const std::string plain = "raise method.max_steps, or loosen the tolerances";
  if (!(share > 0) || attempts(record) == 0) return plain;
  const double all = static_cast<double>(attempts(record)) / share;
  const bool tells_all = all < 1e9;
  const std::string came = "trajectory " + count_text(trajectory) +
                           " came to t = " + share_text(start, record.end_time, end) + " in " +
                           count_text(attempts(record)) + " steps";
  if (float32_is_too_coarse(problem, options, trajectory, record, control)) {
    return kTooCoarse + came +
           ", and float64 in less than a third of them; take precision f64, or loosen the tolerances";
  }
  const std::string raise =
      tells_all ? "raise method.max_steps to " + some(all) : std::string("all of it needs more than a billion");
  if (const auto free = steps_without_limit(problem, options, trajectory, record, control)) {
    return "max_step makes the steps many: " + came + " of at most " + number_text(*options.max_step) +
           ", and without max_step in " + count_text(*free) + "; give a longer one, or " + raise;
  }
  const GivenEnds ends = given_ends(problem, options, trajectory, record, control);
  if (2 * ends.all() >= attempts(record)) {
    return "the problem says where steps end: " + came + ", " + text_of(ends) + "; " + advice_on(ends, options) + raise;
  }
  if (!is_stiff(problem, options, trajectory, record, ends, control)) {
    return plain + "; " + came + (tells_all ? ", and all of it takes " + some(all) : "");
  }
  return "the problem is stiff: " + came +
         ", and tolerances ten times tighter need no more, since explicit steps are as " +
         "short as the fastest decay; " + advice_of_methods(problem, options, trajectory, record, control) +
         (tells_all ? "raise method.max_steps to " + some(all) : "it needs more than a billion");
}

std::string explain_out_of_steps(const ode::Problem& problem, const ode::Options& options,
                                 const ode::Solution& solution, const RunControl& control) {
  const auto records = solution.records();
  const auto found = std::ranges::find(records, ode::Status::too_many_steps, &ode::TrajectoryRecord::status);
  if (found == records.end()) return {};
  return explain_out_of_steps(problem, options, static_cast<std::size_t>(found - records.begin()), *found, control);
}

std::string explain_out_of_steps(const ode::Problem& problem, const ode::Options& options,
                                 const std::filesystem::path& result, const RunControl& control) {
  const auto found = first_of_status(result, ode::Status::too_many_steps);
  return found ? explain_out_of_steps(problem, options, found->trajectory, found->record, control) : std::string();
}

}  // namespace lockstep::cli
