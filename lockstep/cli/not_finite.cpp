#include "lockstep/cli/not_finite.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <span>

#include "lockstep/cli/first_of_status.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/aligned_buffer.h"
#include "lockstep/core/resolved_text.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/tile.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::cli {
namespace {

// The first component whose derivative is none.
template <class T>
std::optional<std::size_t> not_finite_at(const ode::StateFunction& rhs, double time, std::span<const double> state,
                                         std::span<const double> parameters) {
  const auto function = ode::lower<T>(rhs, best_cpu_target());
  AlignedBuffer<double> t(kTileLanes);
  AlignedBuffer<T> in(state.size() * kTileLanes), out(state.size() * kTileLanes);
  AlignedBuffer<T> given(std::max<std::size_t>(parameters.size(), 1) * kTileLanes);
  AlignedBuffer<std::byte> workspace(function->workspace_bytes());
  t[0] = time;
  for (std::size_t i = 0; i < state.size(); ++i) in[i * kTileLanes] = static_cast<T>(state[i]);
  for (std::size_t i = 0; i < parameters.size(); ++i) given[i * kTileLanes] = static_cast<T>(parameters[i]);
  function->evaluate({t.data(), in.data(), parameters.empty() ? nullptr : given.data(), out.data(), 1},
                     workspace.data());
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (!std::isfinite(out[i * kTileLanes])) return i;
  }
  return std::nullopt;
}

}  // namespace

std::string first_not_finite(const ode::Problem& problem, const ode::Options& options,
                             const std::vector<std::string>& component_names, const std::vector<std::size_t>& stored,
                             const std::filesystem::path& result) {
  const auto found = first_of_status(result, ode::Status::not_finite);
  if (!found) return {};
  const auto& [trajectory, record] = *found;
  const double end = problem.end_time(trajectory), thousandth = (end - problem.start_time(trajectory)) / 1000;
  std::string text = "trajectory " + count_text(trajectory) +
                     " came to t = " + resolved_text(record.end_time, thousandth) + " of " +
                     resolved_text(end, thousandth);
  if (!stored.empty()) return text;  // the whole state is not known
  const std::vector<double> state = ode::ResultFile(result).end_states<double>(trajectory, 1);
  for (std::size_t i = 0; i < state.size(); ++i) {
    if (!std::isfinite(state[i])) return text + ", where " + component_names[i] + " is no finite number";
  }
  const ode::Problem one = problem.selection({trajectory});
  const bool single = options.precision == Precision::f32;
  const auto bad = single ? not_finite_at<float>(*problem.rhs, record.end_time, state, one.parameters)
                          : not_finite_at<double>(*problem.rhs, record.end_time, state, one.parameters);
  if (bad) return text + ", where d" + component_names[*bad] + "/dt is no finite number";
  if (state.empty()) return text;
  const auto largest = std::ranges::max_element(state, {}, [](double x) { return std::abs(x); });
  return text + ", from where a step led out of what is finite; the largest there is " +
         component_names[static_cast<std::size_t>(largest - state.begin())] + " = " + rounded_text(*largest, 6);
}

}  // namespace lockstep::cli
