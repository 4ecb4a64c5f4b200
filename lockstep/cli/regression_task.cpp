// A regression as a task of `train`.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "lockstep/cli/shared_weights_task.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/training_advice.h"
#include "lockstep/cli/training_data.h"
#include "lockstep/cli/training_task.h"
#include "lockstep/core/resolved_text.h"
#include "lockstep/core/thread_count.h"
#include "lockstep/nn/fit.h"
#include "lockstep/nn/net_plan.h"

namespace lockstep::cli {
namespace {

nn::RegressionData view(const RegressionTable& table) {
  return {MatrixView<const double>::row_major(table.inputs.data(), table.rows(), table.input_names.size()),
          MatrixView<const double>::row_major(table.targets.data(), table.rows(), table.target_names.size()),
          MatrixView<const double>::row_major(table.sigma.data(), table.sigma.empty() ? 0 : table.rows(),
                                              table.target_names.size())};
}

template <class T>
class RegressionTask : public TrainingTask<T> {
 public:
  RegressionTask(const TrainingFile& file, RegressionData data) : file_(file), data_(std::move(data)) {
    this->data_digest_ = data_.digest;
    const RegressionTable& table = data_.training;
    this->starts_.push_back(
        initial_model(file, file.nets.at(0), features(table.input_names, table.inputs, table.input_units),
                      features(table.target_names, table.targets, table.target_units),
                      input_scaling(file.data.normalisation, table.inputs, table.input_names.size()),
                      output_scaling(file.data.normalisation, table.targets, table.target_names.size())));
    for (const TrainingPhase& phase : file.phases) loss_of_batch(phase.batch);
  }

  const TrainingFile& file() const override { return file_; }
  std::vector<train::Phase> phases() const override {
    std::vector<train::Phase> phases;
    for (const TrainingPhase& phase : file_.phases) phases.push_back(phase.phase);
    return phases;
  }

  double loss_unit() const override { return losses_.begin()->second.loss_unit(); }
  double loss(const train::Place& place, std::span<const T> parameters, std::span<T> gradient) override {
    return loss_of_batch(file_.phases[place.phase].batch)(place, parameters, gradient);
  }

  void follow(const train::Training<T>& training) override {
    for (auto& [batch, loss] : losses_) loss.follow(training);
  }

  typename train::Training<T>::Validation validation() override {
    if (data_.validation.rows() > 0) {
      return [this](const train::Place&, std::span<const T> p) { return any().validation_loss(p); };
    }
    if (!has_batches()) return {};
    // A batch's loss does not tell which parameters are best: all rows do.
    return [this](const train::Place&, std::span<const T> p) { return any().loss(p); };
  }
  std::int64_t validate_every() const override {
    std::int64_t every = 1;
    for (const auto& [batch, loss] : losses_) every = std::max(every, loss.iterations_per_epoch());
    return every;
  }

  double final_loss(std::span<const T> parameters) override { return any().loss(parameters); }
  std::optional<double> final_validation_loss(std::span<const T> parameters) override {
    if (data_.validation.rows() == 0) return std::nullopt;
    return any().validation_loss(parameters);
  }

  std::string data_text() const override {
    const std::size_t training = data_.training.rows(), validation = data_.validation.rows();
    const auto missing = std::ranges::count_if(data_.training.targets, [](double x) { return std::isnan(x); });
    return count_text(training) + " rows" +
           (missing == 0 ? std::string()
                         : ", " + count_text(missing) + " of " + count_text(data_.training.targets.size()) +
                               " targets missing") +
           (data_.without_targets == 0 ? std::string()
                                       : ", " + count_text(data_.without_targets) + " without any left out") +
           (validation > 0 ? ", " + count_text(validation) + " more for validation" : std::string());
  }
  std::vector<std::string> data_advice() const override { return advice(file_, data_.training, this->starts_); }
  std::string watched_text() const override {
    return data_.validation.rows() > 0 ? ", validation data" : has_batches() ? ", all rows" : "";
  }
  Judgement judge(std::span<const T> parameters) override {
    const nn::NetPlan<T> plan = nn::NetPlan<T>::compile(this->nets(parameters).front());
    const std::vector<double> spreads =
        train::column_spreads(data_.training.targets, data_.training.target_names.size());
    Judgement judgement;
    for (const std::string& name : data_.training.target_names) {
      if (judgement.outputs.size() < kMostPictured) judgement.outputs.push_back({.name = name});
    }
    add_errors(plan, data_.training, "training", spreads, judgement);
    if (data_.validation.rows() > 0) add_errors(plan, data_.validation, "validation", spreads, judgement);
    if (file_.loss == LossKind::mean_squared) judgement.report.bounded_loss = "mean_huber";
    return judgement;
  }
  std::string loss_text() const override { return loss_name() + (data_.training.sigma.empty() ? "" : " over sigma"); }

 private:
  std::string loss_name() const {
    switch (file_.loss) {
      case LossKind::mean_squared:
        return "mean squared error";
      case LossKind::sum_squared:
        return "sum of squared errors";
      case LossKind::mean_absolute:
        return "mean absolute error";
      case LossKind::mean_huber:
      case LossKind::huber:  // of trajectories
        break;
    }
    return "mean Huber loss";
  }
  bool has_batches() const {
    return std::any_of(file_.phases.begin(), file_.phases.end(), [](const auto& phase) { return phase.batch > 0; });
  }
  static constexpr std::size_t kMostPictured = 6;    // outputs
  static constexpr std::size_t kMostDrawn = 4000;    // points of each kind of data
  static constexpr std::size_t kPieceRows = 65'536;  // evaluated at a time

  void add_errors(const nn::NetPlan<T>& plan, const RegressionTable& table, const char* data,
                  std::span<const double> spreads, Judgement& judgement) const {
    const std::size_t width = table.input_names.size(), made = table.target_names.size(), rows = table.rows();
    const std::size_t stride = (rows + kMostDrawn - 1) / kMostDrawn;
    const bool validation = &table == &data_.validation;
    const int threads = chosen_threads(file_.options.threads, "run.threads");
    train::ErrorSums sums(made);
    std::vector<double> found(made);
    for (std::size_t first = 0; first < rows; first += kPieceRows) {
      const std::size_t piece = std::min(kPieceRows, rows - first);
      const auto begin = table.inputs.begin() + static_cast<std::ptrdiff_t>(first * width);
      const std::vector<T> in(begin, begin + static_cast<std::ptrdiff_t>(piece * width));
      std::vector<T> out(piece * made);
      plan.evaluate(std::vector{MatrixView<const T>::row_major(in.data(), piece, width)},
                    std::vector{MatrixView<T>::row_major(out.data(), piece, made)}, threads);
      for (std::size_t row = 0; row < piece; ++row) {
        const std::span<const double> truth(table.targets.data() + (first + row) * made, made);
        std::copy_n(out.begin() + static_cast<std::ptrdiff_t>(row * made), made, found.begin());
        sums.add(found, truth,
                 table.sigma.empty() ? std::span<const double>()
                                     : std::span(table.sigma).subspan((first + row) * made, made));
        for (std::size_t i = 0; (first + row) % stride == 0 && i < judgement.outputs.size(); ++i) {
          PredictedOutput& of = judgement.outputs[i];
          (validation ? of.validation_true : of.training_true).push_back(truth[i]);
          (validation ? of.validation_predicted : of.training_predicted).push_back(found[i]);
        }
      }
    }
    const std::vector<train::ColumnErrors> errors = sums.errors(spreads);
    for (std::size_t i = 0; i < made; ++i) {
      const std::string unit = i < table.target_units.size() ? table.target_units[i] : "";
      judgement.report.rows.push_back(
          {data, table.target_names[i], unit, errors[i],
           errors[i].numbers == 0 ? std::string() : place_text(table, errors[i].largest_row)});
      if (i >= judgement.outputs.size()) continue;
      PredictedOutput& of = judgement.outputs[i];
      of.unit = unit;
      of.summary += (validation ? ", validation " : "RMS ") + percent_text(errors[i].relative());
    }
  }

  // "temperature = 300, pressure = 2", or of many inputs nothing.
  std::string place_text(const RegressionTable& table, std::size_t row) const {
    constexpr std::size_t kMostInputs = 3;
    const std::size_t width = table.input_names.size();
    std::string text;
    for (std::size_t i = 0; i < width && width <= kMostInputs; ++i) {
      double least = table.inputs[row * width + i], most = least;
      for (std::size_t at = i; at < table.inputs.size(); at += width) {
        least = std::fmin(least, table.inputs[at]);
        most = std::fmax(most, table.inputs[at]);
      }
      text += (i == 0 ? "" : ", ") + table.input_names[i] + " = " +
              resolved_text(table.inputs[row * width + i], (most - least) / 1e4);
    }
    return text;
  }

  // In a unit of its own for each target where there is one, so that none depends on the unit of the data.
  void set_threshold(ResidualCost& cost) const {
    cost.delta = file_.huber_threshold;
    if (file_.loss != LossKind::mean_huber || !data_.training.sigma.empty()) return;
    if (!nn::scales_outputs(this->starts_[0])) return;
    cost.deltas = train::column_spreads(data_.training.targets, data_.training.target_names.size());
    for (double& spread : cost.deltas) spread = file_.huber_threshold * (spread > 0 ? spread : 1);
  }

  nn::RegressionLoss<T>& any() { return losses_.begin()->second; }

  nn::RegressionLoss<T>& loss_of_batch(std::size_t batch) {
    const auto found = losses_.find(batch);
    if (found != losses_.end()) return found->second;
    nn::FitOptions options;
    options.cost.residual = file_.loss == LossKind::mean_absolute ? Residual::absolute
                            : file_.loss == LossKind::mean_huber  ? Residual::huber
                                                                  : Residual::squared;
    set_threshold(options.cost);
    options.reduction = file_.loss == LossKind::sum_squared ? nn::Reduction::sum : nn::Reduction::mean;
    options.phases = phases();
    options.batch = batch;
    options.missing = nn::MissingTargets::skip;  // what may not was refused as the data were read
    options.seed = file_.seed;
    if (data_.validation.rows() > 0) options.validation = view(data_.validation);
    options.precision = file_.options.precision;
    options.threads = chosen_threads(file_.options.threads, "run.threads");
    options.cpu_target = file_.options.cpu_target;
    const nn::Model& start = this->starts_[0];
    if (data_.training.sigma.empty()) options.residual_unit = nn::residual_unit(start);
    if (nn::is_stack(start)) {
      return losses_.try_emplace(batch, nn::to_mlp(start), view(data_.training), options).first->second;
    }
    return losses_.try_emplace(batch, nn::to_graph(start), view(data_.training), options).first->second;
  }

  TrainingFile file_;
  RegressionData data_;
  std::map<std::size_t, nn::RegressionLoss<T>> losses_;  // by batch size
};

}  // namespace

template <class T>
std::unique_ptr<TrainingTask<T>> make_regression_task(const TrainingFile& file, RegressionData data) {
  return with_shared_weights<T>(std::make_unique<RegressionTask<T>>(file, std::move(data)));
}
template <class T>
std::unique_ptr<TrainingTask<T>> make_regression_task(const TrainingFile& file) {
  return make_regression_task<T>(file, load_regression(file));
}
template std::unique_ptr<TrainingTask<float>> make_regression_task<float>(const TrainingFile&);
template std::unique_ptr<TrainingTask<double>> make_regression_task<double>(const TrainingFile&);
template std::unique_ptr<TrainingTask<float>> make_regression_task<float>(const TrainingFile&, RegressionData);
template std::unique_ptr<TrainingTask<double>> make_regression_task<double>(const TrainingFile&, RegressionData);

}  // namespace lockstep::cli
