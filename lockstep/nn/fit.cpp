#include "lockstep/nn/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/random.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/core/thread_count.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/nn/shared_weights.h"
#include "lockstep/train/loss_unit.h"
#include "lockstep/train/shuffle.h"

namespace lockstep::nn {
namespace {

constexpr std::uint32_t kSplitStream = 0x53504c54;  // independent of the streams of initial weights

[[noreturn]] void refuse_fit(std::string field, std::string found, std::string expected, std::string remedy = {}) {
  throw Error(ErrorKind::invalid_argument,
              {std::move(field), std::move(found), std::move(expected), std::move(remedy)});
}

// Zero for a NaN that may be skipped.
template <class T>
AlignedBuffer<T> rounded_numbers(const std::string& field, const MatrixView<const double>& view,
                                 MissingTargets missing) {
  AlignedBuffer<T> numbers(view.rows * view.columns);
  for (std::size_t row = 0; row < view.rows; ++row) {
    for (std::size_t c = 0; c < view.columns; ++c) {
      const double value = view(row, c);
      if (std::isnan(value) && missing == MissingTargets::skip) continue;
      if (!std::isfinite(static_cast<T>(value))) {
        refuse_fit(field + " of sample " + std::to_string(row) + ", column " + std::to_string(c),
                   std::isnan(value) ? "NaN" : number_text(value), "a finite number",
                   std::isfinite(value) ? "train in float64" : "leave the sample out or repair it");
      }
      numbers[row * view.columns + c] = static_cast<T>(value);
    }
  }
  return numbers;
}

void require_shape(const char* name, const RegressionData& data, std::size_t inputs, std::size_t outputs) {
  const auto text = [](std::size_t rows, std::size_t columns) {
    return std::to_string(rows) + " x " + std::to_string(columns);
  };
  const std::string field(name);
  if (data.inputs.columns != inputs) {
    refuse_fit(field + ".inputs", text(data.inputs.rows, data.inputs.columns),
               std::to_string(inputs) + " columns, the inputs of the net");
  }
  if (data.targets.columns != outputs) {
    refuse_fit(field + ".targets", text(data.targets.rows, data.targets.columns),
               std::to_string(outputs) + " columns, the outputs of the net");
  }
  if (data.targets.rows != data.inputs.rows) {
    refuse_fit(field + ".targets", std::to_string(data.targets.rows) + " samples",
               std::to_string(data.inputs.rows) + ", as many as inputs");
  }
  if (data.inputs.rows == 0 || data.inputs.rows > std::numeric_limits<std::uint32_t>::max()) {
    refuse_fit(field, std::to_string(data.inputs.rows) + " samples", "at least one, fewer than 2^32");
  }
  if (data.sigma.rows != 0 && (data.sigma.rows != data.targets.rows || data.sigma.columns != outputs)) {
    refuse_fit(field + ".sigma", text(data.sigma.rows, data.sigma.columns),
               text(data.targets.rows, outputs) + ", as targets, or none");
  }
}

// Of residuals in their unit the same cost but for the unit of the loss.
ResidualCost cost_in_unit(const FitOptions& options) {
  ResidualCost cost = options.cost;
  cost.delta /= options.residual_unit;
  for (double& delta : cost.deltas) delta /= options.residual_unit;
  return cost;
}

CpuTarget target_of(const FitOptions& options) {
  options.validate();
  return options.cpu_target.value_or(best_cpu_target());
}

}  // namespace

void FitOptions::validate() const {
  if (phases.empty()) refuse_fit("fit.phases", "none", "at least one");
  for (const train::Phase& phase : phases) phase.validate();
  if (!(validation_fraction >= 0 && validation_fraction < 1)) {
    refuse_fit("fit.validation_fraction", number_text(validation_fraction), "a number from 0 to below 1");
  }
  int exponent = 0;
  if (!(std::isfinite(residual_unit) && std::frexp(residual_unit, &exponent) == 0.5)) {
    refuse_fit("fit.residual_unit", number_text(residual_unit), "a power of two");
  }
  if (validate_every < 1) refuse_fit("fit.validate_every", std::to_string(validate_every), "at least 1");
  chosen_threads(threads, "fit.threads");
  if (cpu_target) require_cpu_target(*cpu_target);
}

template <class T>
RegressionLoss<T>::RegressionLoss(const Mlp& mlp, const RegressionData& data, const FitOptions& options)
    : RegressionLoss(RegressionPlan<T>::compile(mlp, cost_in_unit(options), target_of(options)), data, options) {}
template <class T>
RegressionLoss<T>::RegressionLoss(const graph::Graph& graph, const RegressionData& data, const FitOptions& options)
    : RegressionLoss(GraphRegressionPlan<T>::compile(graph, cost_in_unit(options), target_of(options)), data, options) {
}

template <class T>
typename RegressionLoss<T>::Rounded RegressionLoss<T>::rounded(const char* name, const RegressionData& data) const {
  const std::string prefix = name;
  require_shape(prefix.empty() ? "data" : name, data, input_count_, output_count_);
  const std::string before = prefix.empty() ? "" : prefix + " ";
  Rounded result{rounded_numbers<T>(before + "inputs", data.inputs, MissingTargets::refuse),
                 rounded_numbers<T>(before + "targets", data.targets, options_.missing),
                 {},
                 data.inputs.rows};
  bool has_factors = data.sigma.rows != 0 || options_.residual_unit != 1;
  for (std::size_t row = 0; row < data.targets.rows && !has_factors; ++row) {
    for (std::size_t c = 0; c < output_count_; ++c) has_factors = has_factors || std::isnan(data.targets(row, c));
  }
  if (!has_factors) return result;
  result.factors = AlignedBuffer<T>(result.targets.size());
  for (std::size_t row = 0; row < data.targets.rows; ++row) {
    for (std::size_t c = 0; c < output_count_; ++c) {
      if (std::isnan(data.targets(row, c))) continue;
      const double sigma = data.sigma.rows == 0 ? 1 : data.sigma(row, c);
      const auto factor = static_cast<T>(1 / sigma / options_.residual_unit);
      if (!(sigma > 0) || !std::isfinite(sigma) || !std::isfinite(factor) || factor == 0) {
        refuse_fit(before + "sigma of sample " + std::to_string(row) + ", column " + std::to_string(c),
                   std::isnan(sigma) ? "NaN" : number_text(sigma), "a finite number greater than 0 for each target");
      }
      result.factors[row * output_count_ + c] = factor;
    }
  }
  return result;
}
template <class T>
TiledSamples<T> RegressionLoss<T>::make_samples(std::size_t capacity, const Rounded& of) const {
  const ResidualFactors factors = of.factors.empty() ? ResidualFactors::none : ResidualFactors::given;
  return std::visit([&](const auto& plan) { return plan.make_samples(capacity, factors); }, plan_);
}
template <class T>
void RegressionLoss<T>::assign(TiledSamples<T>& tiles, const Rounded& from, std::span<const std::uint32_t> rows) const {
  const auto view = [&](const AlignedBuffer<T>& numbers, std::size_t columns) {
    return MatrixView<const T>::row_major(numbers.data(), numbers.empty() ? 0 : from.samples, columns);
  };
  std::visit(
      [&](const auto& plan) {
        plan.assign(tiles, view(from.inputs, input_count_), view(from.targets, output_count_), rows,
                    view(from.factors, output_count_));
      },
      plan_);
}
template <class T>
double RegressionLoss<T>::share_of_targets(const Rounded& of, std::span<const std::uint32_t> rows) const {
  if (of.factors.empty()) return 1;
  std::size_t there = 0;
  for (const std::uint32_t row : rows) {
    for (std::size_t c = 0; c < output_count_; ++c) there += of.factors[row * output_count_ + c] != 0;
  }
  if (there == 0) refuse_fit("data.targets", "none that is there", "at least one");
  return static_cast<double>(there) / static_cast<double>(rows.size() * output_count_);
}

template <class T>
RegressionLoss<T>::RegressionLoss(Plan plan, const RegressionData& data, const FitOptions& options)
    : options_(options), plan_(std::move(plan)) {
  options_.threads = chosen_threads(options.threads, "fit.threads");
  const bool is_linear = options.cost.residual == Residual::absolute;
  loss_unit_ = is_linear ? options.residual_unit : options.residual_unit * options.residual_unit;
  input_count_ = std::visit([](const auto& any) { return any.inputs(); }, plan_);
  output_count_ = std::visit([](const auto& any) { return any.outputs(); }, plan_);
  data_ = rounded("", data);
  training_.resize(data_.samples);
  std::iota(training_.begin(), training_.end(), 0u);
  if (options.validation) {
    const Rounded kept = rounded("validation", *options.validation);
    validation_ = make_samples(kept.samples, kept);
    assign(validation_, kept, {});
    std::vector<std::uint32_t> all(kept.samples);
    std::iota(all.begin(), all.end(), 0u);
    validation_share_ = share_of_targets(kept, all);
  } else if (options.validation_fraction > 0) {
    const auto kept = static_cast<std::size_t>(options.validation_fraction * static_cast<double>(data_.samples));
    if (kept == 0) {
      refuse_fit("fit.validation_fraction",
                 number_text(options.validation_fraction) + " of " + std::to_string(data_.samples) + " samples",
                 "at least one sample", "raise it, or set it to 0");
    }
    train::shuffle(training_, options.seed, kSplitStream, 0);
    const std::span<const std::uint32_t> rows = std::span(training_).last(kept);
    validation_ = make_samples(kept, data_);
    assign(validation_, data_, rows);
    validation_share_ = share_of_targets(data_, rows);
    training_.resize(data_.samples - kept);
    std::sort(training_.begin(), training_.end());
  }
  all_ = make_samples(training_.size(), data_);
  assign(all_, data_, training_);
  share_ = share_of_targets(data_, training_);
  if (options.batch > 0 && options.batch < training_.size()) batch_ = make_samples(options.batch, data_);
}

template <class T>
std::int64_t RegressionLoss<T>::iterations_per_epoch() const {
  if (batch_.inputs.empty()) return 1;
  return static_cast<std::int64_t>((training_.size() + options_.batch - 1) / options_.batch);
}

template <class T>
double RegressionLoss<T>::scale(const TiledSamples<T>& samples) const {
  if (options_.reduction == Reduction::sum) return 1;
  const double share = &samples == &validation_ ? validation_share_ : share_;
  return 1 / (static_cast<double>(samples.samples * output_count_) * share);
}

template <class T>
void RegressionLoss<T>::fill_batch(std::int64_t iteration) {
  const std::int64_t epoch = iteration / iterations_per_epoch();
  if (epoch != order_epoch_) {
    order_ = training_;
    train::shuffle(order_, options_.seed, train::kOrderStream, static_cast<std::uint64_t>(epoch));
    order_epoch_ = epoch;
  }
  const std::size_t first = static_cast<std::size_t>(iteration % iterations_per_epoch()) * options_.batch;
  const std::size_t count = std::min(options_.batch, order_.size() - first);
  assign(batch_, data_, std::span(order_).subspan(first, count));
}

template <class T>
double RegressionLoss<T>::operator()(const train::Place& place, std::span<const T> parameters, std::span<T> gradient) {
  const bool whole = batch_.inputs.empty() || options_.phases[place.phase].is_lbfgs();
  if (!whole) fill_batch(place.total);
  const TiledSamples<T>& samples = whole ? all_ : batch_;
  const double batch_scale = scale(samples);
  const bool is_followed = followed_ != nullptr && followed_->parameters().data() == parameters.data();
  auto* const stack = std::get_if<RegressionPlan<T>>(&plan_);
  if (is_followed && stack != nullptr && followed_->ahead()) {
    return loss_unit_ *
           stack->loss_and_gradient(parameters, samples, batch_scale, gradient, options_.threads, *followed_->ahead());
  }
  return loss_unit_ * std::visit(
                          [&](auto& plan) {
                            plan.set_parameters(parameters);
                            return plan.loss_and_gradient(samples, batch_scale, gradient, options_.threads);
                          },
                          plan_);
}

template <class T>
double RegressionLoss<T>::loss(const TiledSamples<T>& samples, std::span<const T> parameters) {
  return loss_unit_ * std::visit(
                          [&](auto& plan) {
                            plan.set_parameters(parameters);
                            return plan.loss(samples, scale(samples), options_.threads);
                          },
                          plan_);
}

template <class T>
double RegressionLoss<T>::loss(std::span<const T> parameters) {
  return loss(all_, parameters);
}

template <class T>
double RegressionLoss<T>::validation_loss(std::span<const T> parameters) {
  return loss(validation_, parameters);
}

namespace {

// [output], or none.
std::vector<double> output_scales(const Model& model) {
  std::vector<double> scales;
  if (is_stack(model)) {
    scales = to_mlp(model).output_scaling.scale;
  } else if (model.outputs.size() == 1) {
    const graph::Graph graph = to_graph(model);
    const std::size_t value = graph.outputs[0].value, inputs = graph.inputs.size();
    const auto* rescale = value < inputs ? nullptr : std::get_if<Rescale>(&graph.nodes[value - inputs].operation);
    if (rescale != nullptr) scales = rescale->scale;
  }
  return scales;
}

}  // namespace

bool scales_outputs(const Model& model) { return !output_scales(model).empty(); }

double residual_unit(const Model& model) {
  double largest = 0;
  for (const double scale : output_scales(model)) largest = std::max(largest, std::fabs(scale));
  return train::unit_of(largest);
}

namespace {

template <class T>
FitReport fit_in(Model& model, const RegressionData& data, FitOptions options, const FitControl& control) {
  if (options.residual_unit == 1 && data.sigma.rows == 0) options.residual_unit = residual_unit(model);
  const graph::Graph graph = to_graph(model);
  RegressionLoss<T> loss =
      is_stack(model) ? RegressionLoss<T>(to_mlp(model), data, options) : RegressionLoss<T>(graph, data, options);
  const SharedWeights shared(model);
  const std::vector<double> weights = graph::gather_weights(graph);
  std::vector<T> start(weights.begin(), weights.end());
  if (!shared.is_none()) start = shared.gather<T>(start);
  train::Training<T> training(options.phases, std::move(start));
  training.measure_in(loss.loss_unit());
  if (shared.is_none()) loss.follow(training);
  std::vector<T> all, all_slopes(weights.size());
  const auto numbers = [&](std::span<const T> x) -> std::span<const T> {
    if (shared.is_none()) return x;
    return all = shared.spread(x);
  };
  const auto shared_loss = [&](const train::Place& place, std::span<const T> x, std::span<T> gradient) {
    const double value = loss(place, numbers(x), all_slopes);
    shared.add_up<T>(all_slopes, gradient);
    return value;
  };
  const bool validated = loss.validation_samples() > 0;
  if (validated) {
    training.validate_with([&](const train::Place&, std::span<const T> x) { return loss.validation_loss(numbers(x)); },
                           options.validate_every);
  }
  FitReport report;
  const auto finish = [&](std::span<const T> trained) {
    const std::span<const T> parameters = numbers(trained);
    set_parameters(model, parameters);
    model.weight_type = options.precision == Precision::f32 ? WeightType::f32 : WeightType::f64;
    report.iterations = training.place().total;
    report.loss = loss.loss(parameters);
    if (validated) report.validation_loss = loss.validation_loss(parameters);
  };
  try {
    while (!training.finished()) {
      if (control.cancel != nullptr && control.cancel->requested()) {
        report.cancelled = true;
        break;
      }
      const train::IterationReport iteration =
          shared.is_none() ? training.iterate(std::ref(loss)) : training.iterate(shared_loss);
      if (control.progress) control.progress(iteration);
    }
    // The watched loss is that before each step: what the last one led to has not been looked at.
    const auto judge = [&](std::span<const T> x) {
      return validated ? loss.validation_loss(numbers(x)) : loss.loss(numbers(x));
    };
    const bool best_is_known = validated || loss.iterations_per_epoch() == 1;
    const bool last_is_better = !(judge(training.best_parameters()) <= judge(training.last_parameters()));
    finish(last_is_better || !best_is_known ? training.last_parameters() : training.best_parameters());
  } catch (...) {
    set_parameters(model, numbers(training.best_parameters()));
    throw;
  }
  return report;
}

}  // namespace

FitReport fit(Model& model, const RegressionData& data, const FitOptions& options, const FitControl& control) {
  const StandardArithmetic arithmetic;
  return options.precision == Precision::f32 ? fit_in<float>(model, data, options, control)
                                             : fit_in<double>(model, data, options, control);
}

template <class T>
void set_parameters(Model& model, std::span<const T> parameters) {
  const StandardArithmetic arithmetic;
  std::size_t expected = 0;
  for (const Node& node : model.nodes) {
    if (const auto* dense = std::get_if<Dense>(&node.operation)) expected += dense->weights.size() + dense->bias.size();
  }
  if (parameters.size() != expected) {
    refuse_fit("parameters", std::to_string(parameters.size()) + " numbers", std::to_string(expected),
               "give every dense node's weights, then its bias");
  }
  auto from = parameters.begin();
  for (Node& node : model.nodes) {
    auto* const dense = std::get_if<Dense>(&node.operation);
    if (dense == nullptr) continue;
    for (std::vector<double>* numbers : {&dense->weights, &dense->bias}) {
      for (double& number : *numbers) number = *from++;
    }
  }
}

template class RegressionLoss<float>;
template class RegressionLoss<double>;
template void set_parameters<float>(Model&, std::span<const float>);
template void set_parameters<double>(Model&, std::span<const double>);

}  // namespace lockstep::nn
