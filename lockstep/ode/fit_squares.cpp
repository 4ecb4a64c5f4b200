// A fit's loss as a sum of squares, where it is one of few unknowns.
#include <algorithm>
#include <memory>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/detail/fit_solves.h"
#include "lockstep/ode/detail/fit_squares.h"
#include "lockstep/ode/detail/opened_parameters.h"
#include "lockstep/ode/fit.h"

namespace lockstep::ode {
namespace {

// Derivatives of a tile and their copy, as parameter_uncertainty() has them, and the triangles of all trajectories.
bool is_small(const TrajectoryData& data, std::size_t components, std::size_t unknowns) {
  constexpr std::size_t kMostUnknowns = 256;  // of a trajectory: the work grows by their square
  constexpr double kMostBytes = 1e9;
  const auto width = static_cast<double>(unknowns + 1);
  const double tile = 2.0 * 32 * 8 * static_cast<double>(data.points(components) * components * unknowns);
  const double triangles = 8 * static_cast<double>(data.trajectories) * width * width;
  return unknowns <= kMostUnknowns && tile + 2 * triangles < kMostBytes;
}

}  // namespace

template <class T>
std::optional<train::SquaresModel> FitLoss<T>::squares(const train::Place& place, std::span<const T> parameters) {
  const StandardArithmetic arithmetic;
  Parts& parts = *parts_;
  const FitOptions& options = parts.options;
  const FitPhase& phase = options.phases[place.phase];
  const std::size_t n = parts.rhs->components(), points = parts.data.points(n);
  const auto* const with = dynamic_cast<const detail::WithTrained*>(parts.rhs.get());
  const bool is_whole =
      (phase.segment == 0 || phase.segment + 1 >= points) && (phase.horizon == 0 || phase.horizon >= points);
  const bool counts_alike = phase.component_weights.empty() || phase.component_weights == options.component_weights;
  if (!is_whole || !counts_alike || with == nullptr || !with->untrained()->weights().empty() ||
      options.huber_threshold || !phase.training.is_lbfgs())
    return std::nullopt;
  const std::span<const TrainedParameter> trained = with->trained();
  const std::size_t count = trained.size(), free = phase.continuity ? n : 0;
  if (!is_small(parts.data, n, free + count)) return std::nullopt;

  std::vector<double> values, slopes;
  for (std::size_t i = 0; i < count; ++i) {
    values.push_back(trained[i].value(static_cast<double>(parameters[i])));
    slopes.push_back(trained[i].slope(static_cast<double>(parameters[i])));
  }
  TrajectoryData data = parts.data;
  data.parameters = detail::with_values(data.parameters, with->untrained()->parameters(), trained, values);
  const detail::DataRows rows(data, n);
  std::vector<double> starts;
  UncertaintyOptions untrained;
  if (phase.continuity) {
    const std::vector<double> states = parts.states(parameters);
    for (std::size_t i = 0; i < data.trajectories; ++i) {
      const auto first = states.begin() + static_cast<std::ptrdiff_t>(rows.first(i) * n);
      starts.insert(starts.end(), first, first + static_cast<std::ptrdiff_t>(n));
    }
    untrained.initial_states = starts;
  }
  untrained.component_weights = options.component_weights;
  if (options.starts)
    untrained.starts = GivenStarts{detail::untrained(options.starts->values), options.starts->components};
  for (const Reset& reset : options.resets) {
    untrained.resets.push_back(reset);
    untrained.resets.back().function = detail::untrained(reset.function);
    untrained.resets.back().state = detail::untrained(reset.state);
  }
  Options solve = phase.solve.value_or(options.solve);
  solve.precision = Precision::f64;
  const double smallest = detail::smallest_effect(solve);
  const auto model = [&]() -> std::shared_ptr<const detail::FitSquares> {
    try {
      detail::ComparedRows compared(with->untrained(), trained, {}, data, solve, untrained, parts.control);
      auto found = std::make_shared<const detail::FitSquares>(compared, slopes, parts.units, smallest);
      return compared.unsolved() == 0 && !compared.unresolved() && found->freedom() > 0 ? found : nullptr;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::cancelled) throw;
      return nullptr;  // what cannot be differentiated so is trained without
    }
  }();
  if (!model) return std::nullopt;
  std::vector<std::size_t> places;  // of starts among the parameters
  for (std::size_t i = 0; i < (free == 0 ? 0 : data.trajectories); ++i) {
    for (std::size_t c = 0; c < n; ++c) places.push_back(count + rows.first(i) * n + c);
  }
  return train::SquaresModel{model->freedom(),
                             [model, places = std::move(places), size = parameters.size()](double damping) {
                               detail::FitSquares::Step found = model->step(damping);
                               train::SquaresStep step{std::move(found.parameters), found.fall};
                               step.step.resize(size);
                               for (std::size_t i = 0; i < places.size(); ++i) step.step[places[i]] = found.starts[i];
                               return step;
                             }};
}

template std::optional<train::SquaresModel> FitLoss<float>::squares(const train::Place&, std::span<const float>);
template std::optional<train::SquaresModel> FitLoss<double>::squares(const train::Place&, std::span<const double>);

}  // namespace lockstep::ode
