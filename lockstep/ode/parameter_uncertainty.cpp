#include "lockstep/ode/parameter_uncertainty.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/kernels/math/math.h"
#include "lockstep/ode/detail/data_rows.h"
#include "lockstep/ode/detail/fit_data.h"
#include "lockstep/ode/detail/least_squares.h"
#include "lockstep/ode/differentiable_tile.h"
#include "lockstep/ode/sensitivity.h"

namespace lockstep::ode {
namespace {

[[noreturn]] void refuse(ErrorKind kind, std::string field, std::string found, std::string expected,
                         std::string remedy = {}) {
  throw Error(kind, {std::move(field), std::move(found), std::move(expected), std::move(remedy)});
}

// A right-hand side at other weights than its own.
class AtWeights final : public StateFunction {
 public:
  AtWeights(Rhs inner, std::span<const double> weights)
      : inner_(std::move(inner)), weights_(weights.begin(), weights.end()) {}

  std::size_t components() const override { return inner_->components(); }
  std::size_t parameters() const override { return inner_->parameters(); }
  std::string description() const override { return inner_->description(); }
  std::string digest() const override {
    return ContentHash().add("weights").add(inner_->digest()).add(std::span<const double>(weights_)).hex();
  }
  std::shared_ptr<const TileFunction<float>> lower_f32(CpuTarget target) const override {
    return lower_differentiable<float>(*this, target);
  }
  std::shared_ptr<const TileFunction<double>> lower_f64(CpuTarget target) const override {
    return lower_differentiable<double>(*this, target);
  }
  std::vector<double> weights() const override { return weights_; }
  std::shared_ptr<DifferentiableTile<float>> differentiable_f32(CpuTarget target) const override {
    return with_weights(inner_->differentiable_f32(target));
  }
  std::shared_ptr<DifferentiableTile<double>> differentiable_f64(CpuTarget target) const override {
    return with_weights(inner_->differentiable_f64(target));
  }

 private:
  template <class T>
  std::shared_ptr<DifferentiableTile<T>> with_weights(std::shared_ptr<DifferentiableTile<T>> tile) const {
    if (tile) tile->set_weights(std::vector<T>(weights_.begin(), weights_.end()));
    return tile;
  }
  Rhs inner_;
  std::vector<double> weights_;
};

// The data with all parameters of the right-hand side, those that were trained at their values.
TrajectoryData with_values(TrajectoryData data, std::size_t parameters, std::span<const TrainedParameter> trained,
                           const std::vector<double>& values) {
  const std::size_t given = parameters - trained.size();
  const std::size_t rows = given == 0 ? 1 : data.parameters.size() / given;
  std::vector<double> all;
  for (std::size_t row = 0; row < rows; ++row) {
    auto next = data.parameters.begin() + static_cast<std::ptrdiff_t>(row * given);
    for (std::size_t i = 0; i < parameters; ++i) {
      const auto found = std::ranges::find(trained, i, &TrainedParameter::parameter);
      const auto place = static_cast<std::size_t>(found - trained.begin());
      all.push_back(found == trained.end() ? *next++ : values[place]);
    }
  }
  data.parameters = std::move(all);
  return data;
}

// Rows [by trained parameter..., residual] that stand for all of the data, and what was counted on the way.
struct Reduced {
  detail::Rows rows;
  double loss = 0;
  std::size_t numbers = 0, starts = 0;
};

class Reduction {
 public:
  Reduction(Rhs rhs, std::span<const TrainedParameter> trained, const TrajectoryData& data, Options options,
            const UncertaintyOptions& uncertainty)
      : rhs_(std::move(rhs)),
        trained_(trained),
        data_(data),
        options_(std::move(options)),
        starts_(uncertainty.initial_states),
        components_(rhs_->components()),
        free_(starts_.empty() ? 0 : components_),
        weights_(uncertainty.component_weights) {
    result_.rows.columns = trained.size() + 1;
  }

  // Some tiles of equally long trajectories at a time, whose derivatives take at most 256 MB where one tile's do.
  Reduced all() {
    const std::size_t tile =
        32 * sizeof(double) * data_.points(components_) * components_ * (components_ + rhs_->parameters());
    const std::size_t together = 32 * std::clamp<std::size_t>((std::size_t{1} << 28) / tile, 1, 32);
    std::vector<std::uint32_t> some;
    for (std::size_t i = 0; i < data_.trajectories; ++i) {
      some.push_back(static_cast<std::uint32_t>(i));
      const bool same = i + 1 < data_.trajectories && length(i + 1) == length(i);
      if (some.size() < together && same) continue;
      add(some);
      some.clear();
    }
    return std::move(result_);
  }

 private:
  std::size_t length(std::size_t trajectory) const { return data_.points(trajectory, components_); }

  void add(const std::vector<std::uint32_t>& some) {
    const TrajectoryData data = detail::chosen(data_, components_, rhs_->parameters(), some);
    FitOptions fit;
    fit.solve = options_;
    Problem problem = detail::make_task(rhs_, data, fit, {}, length(some.front()) - 1).problem;
    if (free_ != 0) {
      const auto first = starts_.subspan(some.front() * components_, some.size() * components_);
      problem.initial_states.assign(first.begin(), first.end());
    }
    const Sensitivities found = solve_with_sensitivities(problem, options_);
    const detail::DataRows rows(data, components_);
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (found.records[i].status == Status::success) add(data, rows, problem, found, i);
    }
    reduce(result_.rows);
  }

  // A trajectory's rows [by start..., by trained parameter..., residual]. Those that its start is found from are
  // taken out: what remains below them says all about the parameters.
  void add(const TrajectoryData& data, const detail::DataRows& rows, const Problem& problem, const Sensitivities& found,
           std::size_t trajectory) {
    const std::size_t n = components_, m = rhs_->parameters();
    detail::Rows own{free_ + trained_.size() + 1};
    std::vector<double> row(own.columns);
    const auto push = [&](double root, double residual) {
      row.back() = residual;
      result_.loss += root * root * residual * residual;
      ++result_.numbers;
      for (const double number : row) own.numbers.push_back(root * number);
    };
    const double* const states = data.states.data() + rows.first(trajectory) * n;
    const auto root = [&](std::size_t at) {
      return std::sqrt(detail::measurement_weight(data, weights_, rows.first(trajectory) * n + at, at % n));
    };
    for (std::size_t c = 0; c < free_; ++c) {
      std::fill(row.begin(), row.end(), 0.0);
      row[c] = 1;
      push(root(c), states[c] - problem.initial_states[trajectory * n + c]);
    }
    for (std::size_t point = 1; point < rows.points(trajectory); ++point) {
      for (std::size_t c = 0; c < n; ++c) {
        const std::size_t at = (trajectory * (rows.points(trajectory) - 1) + point - 1) * n + c;
        if (std::isnan(states[point * n + c])) continue;
        std::copy_n(found.by_initial_state.begin() + static_cast<std::ptrdiff_t>(at * n), free_, row.begin());
        for (std::size_t j = 0; j < trained_.size(); ++j)
          row[free_ + j] = found.by_parameter[at * m + trained_[j].parameter];
        push(root(point * n + c), states[point * n + c] - found.states[at]);
      }
    }
    result_.starts += free_;
    reduce(own);
    for (std::size_t i = free_; i < own.count(); ++i) {
      for (std::size_t j = free_; j < own.columns; ++j) result_.rows.numbers.push_back(own.at(i, j));
    }
  }

  Rhs rhs_;
  std::span<const TrainedParameter> trained_;
  const TrajectoryData& data_;
  Options options_;
  std::span<const double> starts_;
  std::size_t components_, free_;
  std::span<const double> weights_;  // [component], or none
  Reduced result_;
};

void check(const Rhs& rhs, std::span<const TrainedParameter> trained, std::span<const double> weights,
           const TrajectoryData& data, const UncertaintyOptions& uncertainty) {
  const std::size_t expected = rhs->weights().size() + trained.size(), n = rhs->components();
  const auto require_count = [](const char* field, std::size_t found, std::size_t expects) {
    if (found == expects) return;
    refuse(ErrorKind::invalid_argument, field, std::to_string(found) + " numbers", std::to_string(expects));
  };
  if (trained.empty()) refuse(ErrorKind::invalid_argument, "trained", "none", "the parameters that were trained");
  require_count("weights", weights.size(), expected);
  if (!uncertainty.initial_states.empty()) {
    require_count("initial_states", uncertainty.initial_states.size(), data.trajectories * n);
  }
  if (!uncertainty.component_weights.empty()) {
    require_count("component_weights", uncertainty.component_weights.size(), n);
  }
  // Derivatives of a tile and their copy, of 32 trajectories each.
  const double bytes = 2.0 * 32 * 8 * static_cast<double>(data.points(n) * n * (n + rhs->parameters()));
  if (bytes > 4e9) {
    refuse(ErrorKind::unsupported, "data", std::to_string(data.points(n)) + " points in a trajectory",
           "fewer: derivatives of these would need " + std::to_string(bytes / 1e9) + " GB", "cut the trajectories");
  }
}

double smallest_effect(const Options& options) {
  return options.control == StepControl::fixed ? 1e-10 : std::max(1e-10, options.rtol);
}

}  // namespace

ParameterUncertainty parameter_uncertainty(const Rhs& rhs, std::span<const TrainedParameter> trained,
                                           std::span<const double> weights, const TrajectoryData& data,
                                           const Options& options, const UncertaintyOptions& uncertainty) {
  const StandardArithmetic arithmetic;
  if (!rhs) refuse(ErrorKind::invalid_argument, "rhs", "none", "a right-hand side");
  check(rhs, trained, weights, data, uncertainty);
  const std::size_t count = trained.size(), own = rhs->weights().size();
  ParameterUncertainty result;
  for (std::size_t i = 0; i < count; ++i) result.values.push_back(trained[i].value(weights[own + i]));
  const TrajectoryData whole = with_values(data, rhs->parameters(), trained, result.values);
  whole.validate(*rhs);
  Options solve = options;
  solve.precision = Precision::f64;
  Rhs at = own == 0 ? rhs : std::make_shared<AtWeights>(rhs, weights.first(own));
  Reduced reduced = Reduction(std::move(at), trained, whole, solve, uncertainty).all();
  result.numbers = reduced.numbers;
  result.unknowns = count + reduced.starts;
  if (result.numbers <= result.unknowns) {
    refuse(ErrorKind::invalid_argument, "data", std::to_string(result.numbers) + " numbers to compare",
           "more than the " + std::to_string(result.unknowns) + " unknowns");
  }
  const std::size_t freedom = result.numbers - result.unknowns;
  result.deviation = std::sqrt(reduced.loss / static_cast<double>(freedom));

  // In units of each parameter's own effect.
  detail::Rows triangle{count, std::vector<double>(count * count)};
  std::vector<double> effect(count), residual(count);
  for (std::size_t i = 0; i < std::min(count, reduced.rows.count()); ++i) {
    residual[i] = reduced.rows.at(i, count);
    for (std::size_t j = 0; j < count; ++j) effect[j] += reduced.rows.at(i, j) * reduced.rows.at(i, j);
  }
  for (double& each : effect) each = each == 0 ? 1 : std::sqrt(each);
  for (std::size_t i = 0; i < std::min(count, reduced.rows.count()); ++i) {
    for (std::size_t j = 0; j < count; ++j) triangle.at(i, j) = reduced.rows.at(i, j) / effect[j];
  }
  const detail::SingularValues found = detail::singular_values(std::move(triangle));
  const auto size_of = [&](std::size_t i) { return result.values[i] == 0 ? 1 : std::abs(result.values[i]); };
  for (std::size_t k = 0; k < count; ++k) {
    if (found.values[k] > smallest_effect(options) * found.values[0]) continue;
    std::vector<double> change(count);
    double largest = 0;
    for (std::size_t i = 0; i < count; ++i) {
      change[i] = found.right.at(i, k) / effect[i];
      if (std::abs(change[i] / size_of(i)) > std::abs(largest)) largest = change[i] / size_of(i);
    }
    for (double& each : change) each /= largest;
    result.undetermined.push_back(std::move(change));
  }
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  result.standard_errors.assign(count, nothing);
  result.lower = result.upper = result.standard_errors;
  result.correlations.assign(count * count, nothing);
  result.distance = nothing;
  if (!result.undetermined.empty()) return result;

  std::vector<double> step(count), covariance(count * count);
  for (std::size_t k = 0; k < count; ++k) {
    const double square = found.values[k] * found.values[k];
    double projection = 0;
    for (std::size_t i = 0; i < count; ++i) projection += found.left.at(i, k) * residual[i];
    for (std::size_t i = 0; i < count; ++i) {
      step[i] += found.right.at(i, k) * projection / square;
      for (std::size_t j = 0; j < count; ++j) {
        covariance[i * count + j] += found.right.at(i, k) * found.right.at(j, k) / square;
      }
    }
  }
  const bool stated = uncertainty.error_size == ErrorSize::as_stated;
  const double size = stated ? 1 : result.deviation;
  const double t = stated ? detail::kNormal95 : detail::student_t_95(freedom);
  result.distance = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const double in_effects = std::sqrt(covariance[i * count + i]);
    const double error = size * in_effects / effect[i], value = result.values[i];
    result.standard_errors[i] = error;
    result.lower[i] = value - t * error;
    result.upper[i] = value + t * error;
    if (trained[i].law == ParameterLaw::positive) {
      const bool near_zero = !(error < value);
      result.lower[i] = near_zero ? 0 : value * math::exp(-t * error / value);
      if (!near_zero) result.upper[i] = value * math::exp(t * error / value);
    }
    if (size > 0) result.distance = std::max(result.distance, std::abs(step[i]) / (size * in_effects));
    for (std::size_t j = 0; j < count; ++j) {
      result.correlations[i * count + j] =
          i == j ? 1 : covariance[i * count + j] / (in_effects * std::sqrt(covariance[j * count + j]));
    }
  }
  return result;
}

}  // namespace lockstep::ode
