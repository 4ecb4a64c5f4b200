// A task of nets to start from that have weights several times, or layers without a bias.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/cli/training_task.h"
#include "lockstep/nn/shared_weights.h"

namespace lockstep::cli {

// What is trained is nn::SharedWeights::trained(), then what the task has behind its nets' weights; the task itself is
// asked with all its numbers.
template <class T>
class SharedWeightsTask : public TrainingTask<T> {
 public:
  SharedWeightsTask(std::unique_ptr<TrainingTask<T>> of, nn::SharedWeights shared)
      : of_(std::move(of)), shared_(std::move(shared)), slopes_(of_->parameters()) {
    this->starts_ = of_->starts();
    this->data_digest_ = of_->data_digest();
    shared_.append(of_->parameters() - shared_.all());
  }

  const TrainingFile& file() const override { return of_->file(); }
  std::vector<train::Phase> phases() const override { return of_->phases(); }
  std::size_t parameters() const override { return shared_.trained(); }
  double loss_unit() const override { return of_->loss_unit(); }
  double loss(const train::Place& place, std::span<const T> parameters, std::span<T> gradient) override {
    const double loss = of_->loss(place, all(parameters), slopes_);
    shared_.add_up<T>(slopes_, gradient);
    return loss;
  }
  void stop_when(const CancelToken* cancel) override { of_->stop_when(cancel); }
  typename train::Training<T>::Validation validation() override {
    auto validation = of_->validation();
    if (!validation) return validation;
    return [this, validation = std::move(validation)](const train::Place& place, std::span<const T> parameters) {
      return validation(place, all(parameters));
    };
  }
  std::int64_t validate_every() const override { return of_->validate_every(); }
  std::int64_t left_out() const override { return of_->left_out(); }
  double final_loss(std::span<const T> parameters) override { return of_->final_loss(all(parameters)); }
  std::optional<double> final_validation_loss(std::span<const T> parameters) override {
    return of_->final_validation_loss(all(parameters));
  }
  std::string left_out_text() const override { return of_->left_out_text(); }
  std::vector<std::string> solve_notes() const override { return of_->solve_notes(); }
  Judgement judge(std::span<const T> parameters) override { return of_->judge(all(parameters)); }
  ParameterReport uncertainty(std::span<const T> parameters) override { return of_->uncertainty(all(parameters)); }

  std::string data_text() const override { return of_->data_text(); }
  std::vector<std::string> data_advice() const override {
    std::vector<std::string> lines;
    for (const std::string& group : shared_.groups()) {
      lines.push_back(group + " have the same weights, as calls of one layer do: they are trained as one");
    }
    for (std::string& line : of_->data_advice()) lines.push_back(std::move(line));
    return lines;
  }
  std::string resets_text() const override { return of_->resets_text(); }
  std::vector<std::string> explain(std::size_t phase) override { return of_->explain(phase); }
  std::string loss_text() const override { return of_->loss_text(); }
  std::string watched_text() const override { return of_->watched_text(); }
  std::string best_text() const override { return of_->best_text(); }

  std::vector<nn::Model> nets(std::span<const T> parameters) const override { return of_->nets(all(parameters)); }
  std::vector<TrainedValue> values(std::span<const T> parameters) const override {
    return of_->values(all(parameters));
  }
  std::optional<nn::Model> equations(std::span<const T> parameters) const override {
    return of_->equations(all(parameters));
  }
  std::string start_digest() const override { return of_->start_digest(); }

 protected:
  std::vector<double> start_weights() const override {
    const std::vector<T> start = shared_.gather<T>(of_->start_parameters());
    const std::size_t behind = of_->parameters() - of_->weights();
    return {start.begin(), start.end() - static_cast<std::ptrdiff_t>(behind)};
  }

 private:
  // Callers have the parameters of a training, or weights alone.
  std::vector<T> all(std::span<const T> parameters) const {
    std::vector<T> padded(parameters.begin(), parameters.end());
    padded.resize(shared_.trained());
    return shared_.spread<T>(padded);
  }

  std::unique_ptr<TrainingTask<T>> of_;
  nn::SharedWeights shared_;
  std::vector<T> slopes_;
};

// The task, or one that heeds what its nets share; those that are not started from share nothing.
template <class T>
std::unique_ptr<TrainingTask<T>> with_shared_weights(std::unique_ptr<TrainingTask<T>> task) {
  nn::SharedWeights shared;
  const std::vector<NetSection>& sections = task->file().nets;
  for (std::size_t i = 0; i < task->starts().size(); ++i) {
    const nn::Model& net = task->starts()[i];
    if (i < sections.size() && sections[i].start) {
      shared.append(net);
    } else {
      shared.append(net.weight_count());
    }
  }
  if (shared.is_none()) return task;
  return std::make_unique<SharedWeightsTask<T>>(std::move(task), std::move(shared));
}

}  // namespace lockstep::cli
