// What `train` trains: nets' weights, parameters of equations and systems, and their loss, whether a regression or a
// neural ODE.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/cli/fit_report.h"
#include "lockstep/cli/parameter_report.h"
#include "lockstep/cli/plot/fit_pictures.h"
#include "lockstep/cli/training_data.h"
#include "lockstep/cli/training_file.h"
#include "lockstep/core/run_control.h"
#include "lockstep/nn/model.h"
#include "lockstep/train/training.h"

namespace lockstep::cli {

// A parameter of equations or of a built-in system that is trained.
struct TrainedValue {
  std::string name;
  double start, value;
  std::string unit = {};
};

// Where the fit has the states of the training data's trajectories at the data's times.
struct FittedStates {
  std::vector<std::string> trajectories;  // [trajectory], what people call them
  std::vector<std::size_t> lengths;       // [trajectory], points of each
  std::vector<std::string> components;
  std::vector<double> times;   // [trajectory][time]
  std::vector<double> states;  // [trajectory][time][component], the starts first; NaN where a solve did not get there
  std::vector<double> data;    // likewise, to compare them with; NaN where there is none
  bool starts_are_found = false;  // by the training, and not the data's first points
};

// How good what was trained is, and what a picture of that shows: one of the two.
struct Judgement {
  FitReport report;
  FittedCurves curves;
  std::vector<PredictedOutput> outputs;
  FittedStates fitted;  // without trajectories for a regression
  std::optional<ode::UnresolvedDerivatives> unresolved;  // of the training data's solves: slopes of the loss are wrong
};

// T is float or double: the arithmetic of the loss, and of the parameters. What is added here, SharedWeightsTask passes
// on.
template <class T>
class TrainingTask {
 public:
  virtual ~TrainingTask() = default;
  // With what the data decided: what runs.
  virtual const TrainingFile& file() const = 0;
  virtual std::vector<train::Phase> phases() const = 0;
  // How many numbers are trained: the weights of the nets and the equations' parameters, which come first, and what
  // else the loss has.
  virtual std::size_t parameters() const { return weights(); }
  std::size_t weights() const { return start_weights().size(); }
  // What training starts from: these, then zeros.
  std::vector<T> start_parameters() const;
  // The loss's derivative is that of loss / loss_unit().
  virtual double loss_unit() const { return 1; }
  virtual double loss(const train::Place& place, std::span<const T> parameters, std::span<T> gradient) = 0;
  // From now on all that solves looks at it between steps, and throws Error (cancelled) when it is requested. Null: it
  // goes on.
  virtual void stop_when(const CancelToken*) {}
  // The calls above will come from this training, which stays where it is.
  virtual void follow(const train::Training<T>&) {}
  // What is watched instead of the loss, and how often; none where the loss itself tells which parameters are best.
  virtual typename train::Training<T>::Validation validation() { return {}; }
  virtual std::int64_t validate_every() const { return 1; }
  // For train::Training::finish_by().
  virtual std::optional<train::SquaresModel> squares(const train::Place&, std::span<const T>) { return std::nullopt; }
  // How much of its data the last loss of any kind went without: trajectories that diverged.
  virtual std::int64_t left_out() const { return 0; }
  // Over all that was trained on, for the last line of the report.
  virtual double final_loss(std::span<const T> parameters) = 0;
  virtual std::optional<double> final_validation_loss(std::span<const T>) { return std::nullopt; }
  // Which data the last of these two went without, and why: ", without 1 of 20 trajectories (7: not_finite at t = 2)".
  virtual std::string left_out_text() const { return {}; }
  // What befell solves, for people who look at nothing else: "left out, since they could not be solved: 1 of 20
  // trajectories ...".
  virtual std::vector<std::string> solve_notes() const { return {}; }
  // Of training and validation data; a solve or evaluation of all of them.
  virtual Judgement judge(std::span<const T> parameters) = 0;
  // How well the training data determine values(); without names where there are none.
  virtual ParameterReport uncertainty(std::span<const T>) { return {}; }

  // "1,000 rows, 100 of them for validation".
  virtual std::string data_text() const = 0;
  // What to write about data that will not be learned as they stand.
  virtual std::vector<std::string> data_advice() const { return {}; }
  // What changes states where an event happens, "" for nothing.
  virtual std::string resets_text() const { return {}; }
  // How a phase's gradients come about, sentence by sentence.
  virtual std::vector<std::string> explain(std::size_t) { return {}; }
  virtual std::string loss_text() const = 0;  // "mean squared error"
  // Of what the watched loss is taken, where it is not the training loss: ", validation data".
  virtual std::string watched_text() const { return {}; }
  // What more the best loss is of, where that is not final_loss(): ", of the last phase: in segments of 5 intervals".
  virtual std::string best_text() const { return {}; }
  const std::string& data_digest() const { return data_digest_; }

  // Shapes, names, scaling and ranges, with the weights that training starts from, as the file has them.
  const std::vector<nn::Model>& starts() const { return starts_; }
  // The starts with these weights instead; what follows them is passed over.
  virtual std::vector<nn::Model> nets(std::span<const T> parameters) const;
  virtual std::vector<TrainedValue> values(std::span<const T>) const { return {}; }
  // The right-hand side of equations with all that.
  virtual std::optional<nn::Model> equations(std::span<const T>) const { return std::nullopt; }
  // Of all models that training starts from.
  virtual std::string start_digest() const { return starts_[0].digest(); }

 protected:
  virtual std::vector<double> start_weights() const;

  std::vector<nn::Model> starts_;
  std::string data_digest_;
};

// Throw Error naming file, line and key, or file and row of the data.
template <class T>
std::unique_ptr<TrainingTask<T>> make_regression_task(const TrainingFile& file);
template <class T>
std::unique_ptr<TrainingTask<T>> make_ode_task(const TrainingFile& file);
// Of data that a caller has in memory already.
template <class T>
std::unique_ptr<TrainingTask<T>> make_regression_task(const TrainingFile& file, RegressionData data);
template <class T>
std::unique_ptr<TrainingTask<T>> make_ode_task(const TrainingFile& file, TrajectoryData data);

// The net that the file asks for, between ports of these features.
nn::Model initial_model(const TrainingFile& file, const NetSection& net, std::vector<nn::Feature> inputs,
                        std::vector<nn::Feature> outputs, const InputScaling& input_scaling,
                        const OutputScaling& output_scaling);

}  // namespace lockstep::cli
