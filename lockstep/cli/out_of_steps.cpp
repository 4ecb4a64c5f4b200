#include "lockstep/cli/out_of_steps.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <vector>

#include "lockstep/cli/text.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/solution.h"
#include "lockstep/ode/solve.h"

namespace lockstep::cli {
namespace {

constexpr double kTighter = 10;
// Among fewer the first step, which is chosen with care and short, decides how many they are.
constexpr std::int64_t kFewest = 30;

std::int64_t attempts(const ode::TrajectoryRecord& record) { return std::int64_t{record.accepted} + record.rejected; }

// What one trajectory takes to `end` in at most `most` steps; none where it does not get there.
std::optional<ode::TrajectoryRecord> record_at(double end, const ode::Problem& problem, const ode::Options& options,
                                               std::int64_t most, const RunControl& control) {
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
  const ode::Solution solution = ode::solve(again, f64, control);
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

bool is_stiff(const ode::Problem& problem, const ode::Options& options, std::size_t trajectory,
              const ode::TrajectoryRecord& record, const RunControl& control) {
  if (attempts(record) < kFewest || ode::method(options.method).is_linearly_implicit()) return false;
  const ode::Problem one = problem.selection({trajectory});
  const auto steps = steps_to(record.end_time, one, options, 2 * options.max_steps, control);
  ode::Options tighter = options;
  tighter.rtol /= kTighter;
  tighter.atol /= kTighter;
  for (double& atol : tighter.component_atol) atol /= kTighter;
  if (!steps || tighter.rtol < 1e-14) return false;
  const double most = std::pow(kTighter, 0.5 / ode::method(options.method).order) * static_cast<double>(*steps);
  return steps_to(record.end_time, one, tighter, static_cast<std::int64_t>(most), control).has_value();
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
  if (tableau.is_linearly_implicit() && options.device.uses_cuda()) return std::nullopt;
  const auto jacobian = tableau.is_linearly_implicit() ? static_cast<double>(problem.rhs->components()) : 0.0;
  const double of_a_step = tableau.evaluations(true) + jacobian;
  const auto most = static_cast<std::int64_t>(static_cast<double>(record.evaluations) / of_a_step / 2);
  if (most == 0) return std::nullopt;
  ode::Options other = options;
  other.method = name;
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

// "0.3505 of 1", with as many digits as tell the two apart.
std::string share_text(double reached, double end) {
  int digits = 4;
  while (digits < 17 && reached != end && rounded_text(reached, digits) == rounded_text(end, digits)) ++digits;
  return rounded_text(reached, digits) + " of " + rounded_text(end, digits);
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
  const std::string came = "trajectory " + count_text(trajectory) + " came to t = " + share_text(record.end_time, end) +
                           " in " + count_text(attempts(record)) + " steps";
  if (float32_is_too_coarse(problem, options, trajectory, record, control)) {
    return "float32 is too coarse here: " + came +
           ", and float64 in less than a third of them; take precision f64, or loosen the tolerances";
  }
  if (!is_stiff(problem, options, trajectory, record, control)) {
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
  constexpr std::size_t kRows = 65536;
  const ode::ResultFile file(result);
  for (std::size_t first = 0; first < file.trajectories(); first += kRows) {
    const auto records = file.records(first, std::min(kRows, file.trajectories() - first));
    const auto found = std::ranges::find(records, ode::Status::too_many_steps, &ode::TrajectoryRecord::status);
    if (found == records.end()) continue;
    const std::size_t trajectory = first + static_cast<std::size_t>(found - records.begin());
    return explain_out_of_steps(problem, options, trajectory, *found, control);
  }
  return {};
}

}  // namespace lockstep::cli
