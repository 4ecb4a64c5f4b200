#include "lockstep/cli/training_run.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/grace.h"
#include "lockstep/cli/interrupt.h"
#include "lockstep/cli/plot/loss_curve.h"
#include "lockstep/cli/progress.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/trained_values.h"
#include "lockstep/cli/training_advice.h"
#include "lockstep/cli/training_task.h"
#include "lockstep/core/pending_file.h"
#include "lockstep/core/printable.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/safetensors.h"
#include "lockstep/train/checkpoint.h"

namespace lockstep::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::int64_t kMostCurvePoints = 20'000;
constexpr double kLongIteration = 0.05;  // s: some times what writing a checkpoint takes

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

std::string short_number(double value) { return rounded_text(value, 5); }

std::string net_text(const nn::Model& model) {
  if (!nn::is_stack(model)) {
    return std::to_string(model.inputs[0].features.size()) + "-...-" +
           std::to_string(model.outputs[0].features.size()) + ", a graph of " + count_text(std::ssize(model.nodes)) +
           " nodes";
  }
  const Mlp mlp = nn::to_mlp(model);
  std::string text = std::to_string(mlp.inputs());
  for (const DenseLayer& layer : mlp.layers) text += "-" + std::to_string(layer.outputs);
  const auto hidden = std::span(mlp.layers).first(mlp.layers.size() - 1);
  const Activation& first = mlp.layers.front().activation;
  text += " " + to_string(first);
  if (hidden.empty()) return text;
  const auto is_first = [&](const DenseLayer& layer) { return layer.activation == first; };
  for (const DenseLayer& layer : hidden.subspan(1)) {
    if (!std::ranges::all_of(hidden, is_first)) text += "-" + to_string(layer.activation);
  }
  const Activation& last = mlp.layers.back().activation;
  return last == Activation{} ? text : text + " (output " + to_string(last) + ")";
}

// "2-8-1 tanh", of several "production 1-8-1 tanh, loss 1-8-1 tanh", then the parameters' names.
template <class T>
std::string subject_text(const TrainingFile& file, const TrainingTask<T>& task) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  const std::vector<nn::Model>& nets = task.starts();
  for (std::size_t i = 0; i < nets.size(); ++i) {
    add((nets.size() == 1 ? "" : file.nets[i].called + " ") + net_text(nets[i]));
  }
  for (const TrainedValue& value : task.values(task.start_parameters())) add(value.name);
  return text;
}

template <class T>
train::Identity identity_of(const TrainingFile& file, const TrainingTask<T>& task) {
  constexpr std::size_t kMostListed = 30'000;  // characters: an attribute of an HDF5 file holds 64 kB
  train::Identity identity{
      {"data", task.data_digest()}, {"options", options_digest(file)}, {"net", task.start_digest()}};
  if (std::string list = options_list(file); list.size() <= kMostListed)
    identity["options" + std::string(train::kInFull)] = std::move(list);
  return identity;
}

std::string iterations_text(std::int64_t n) { return count_text(n) + (n == 1 ? " iteration" : " iterations"); }

std::string left_out_text(const train::IterationReport& report) {
  return report.left_out == 0 ? "" : ", " + count_text(report.left_out) + " left out";
}

template <class T>
void print_task(const TrainingFile& file, const TrainingTask<T>& task) {
  std::printf("%s, %s, %s; %s\n", subject_text(file, task).c_str(), counted_text(task.weights(), "parameter").c_str(),
              std::string(to_string(file.options.precision)).c_str(), task.data_text().c_str());
  for (const std::string& line : task.data_advice()) {
    std::printf("note: %s\n", printable(line, LineBreaks::escape).c_str());
  }
  std::fflush(stdout);
}

std::string phase_text(std::size_t phase, const std::vector<train::Phase>& phases) {
  const std::string& name = phases[phase].name;
  return "phase " + std::to_string(phase + 1) + " of " + std::to_string(phases.size()) +
         (name.empty() ? "" : " (" + name + ")");
}

template <class T>
class Run {
 public:
  Run(const TrainingFile& file, const RunFlags& flags, TrainingTask<T>& task)
      : file_(file),
        flags_(flags),
        task_(task),
        outputs_(outputs_of(file)),
        training_(task.phases(), task.start_parameters()),
        identity_(identity_of(file, task)) {
    training_.measure_in(task.loss_unit());
    task.follow(training_);
    if (auto validation = task.validation()) training_.validate_with(std::move(validation), task.validate_every());
    training_.finish_by([&task](const train::Place& place, std::span<const T> p) { return task.squares(place, p); });
    training_.count_left_out([&task] { return task.left_out(); });
    while (training_.total_iterations() / stride_ > kMostCurvePoints) stride_ *= 2;
    if (flags.resume) resume();
    say_start();
  }

  int run() {
    const Interrupt interrupt;
    task_.stop_when(&interrupt.token());
    const bool stopped = iterate(interrupt);
    const Grace grace(&interrupt.token());  // most trainings are judged in less
    task_.stop_when(&grace.token());
    write_outputs();
    if (!flags_.quiet) say_end(stopped);
    task_.stop_when(nullptr);
    if (stopped) {
      std::fprintf(stderr, "lockstep: stopped after %s%s; go on with --resume\n",
                   iterations_text(training_.place().total).c_str(),
                   is_cut_ ? ", before how good that is was known" : "");
    } else if (is_cut_) {
      std::fprintf(stderr, "lockstep: trained, but stopped before how good that is was known: --resume finds out\n");
    }
    return stopped || is_cut_ ? interrupt.exit_code() : kSuccess;
  }

 private:
  void resume() {
    if (!std::filesystem::exists(outputs_.checkpoint)) {
      say("nothing to resume in " + outputs_.checkpoint.string() + ": training from the start");
      return;
    }
    train::Checkpoint<T> checkpoint = read_checkpoint();
    training_.restore(std::move(checkpoint.state));
    curve_ = std::move(checkpoint.curve);
    say("resuming after " + iterations_text(training_.place().total));
  }

  // What was changed since may be meant: to train for longer, say.
  train::Checkpoint<T> read_checkpoint() const {
    try {
      return train::read_checkpoint<T>(outputs_.checkpoint, identity_);
    } catch (const Error& error) {
      if (error.remedy().empty() || outputs_.nets.size() != 1 || !std::filesystem::exists(outputs_.first())) throw;
      throw Error(error.kind(),
                  {error.field(), error.found(), error.expected(),
                   error.remedy() + ", from its best model perhaps: net.start = \"" + outputs_.first().string() + '"'});
    }
  }

  // True when a signal stopped it.
  bool iterate(const Interrupt& interrupt) {
    Progress progress("training", "iterations", flags_.quiet ? Verbosity::quiet : Verbosity::normal);
    progress.resume_from(static_cast<std::size_t>(training_.place().total));
    const auto total = static_cast<std::size_t>(training_.total_iterations());
    const auto loss = [this](const train::Place& place, std::span<const T> p, std::span<T> g) {
      return task_.loss(place, p, g);
    };
    Clock::time_point checkpointed = Clock::now(), phase_start = checkpointed;
    std::int64_t phase_from = training_.place().total;
    while (!training_.finished()) {
      if (interrupt.token().requested()) {
        write_checkpoint();
        return true;
      }
      const Clock::time_point began = Clock::now();
      train::IterationReport report;
      try {
        report = training_.iterate(loss);
      } catch (const Error& error) {
        if (error.kind() != ErrorKind::cancelled) keep_what_is_good(error);
        write_checkpoint();
        return true;
      }
      note(report);
      if (training_.finished()) advice_ = advice_on_end(file_, report);
      progress.update(static_cast<std::size_t>(training_.place().total), total, [&] {
        return "loss " + short_number(report.loss) +
               (report.watched != report.loss ? ", watched " + short_number(report.watched) : std::string()) +
               ", gradient " + short_number(report.gradient_norm) + ", rate " + short_number(report.learning_rate) +
               left_out_text(report);
      });
      if (report.phase_ended) {
        say_phase(report, seconds_since(phase_start), phase_from, progress);
        phase_start = Clock::now();
        phase_from = training_.place().total;
      }
      // Not after each of those that take microseconds.
      const bool was_long = seconds_since(began) > kLongIteration;
      if ((was_long || training_.place().total % 16 == 0) &&
          seconds_since(checkpointed) > file_.output.checkpoint_seconds) {
        write_checkpoint();
        checkpointed = Clock::now();
      }
    }
    write_checkpoint();
    return false;
  }

  // After a failed iteration: the state before it, and the best so far, are written; then the error goes on.
  [[noreturn]] void keep_what_is_good(const Error& error) {
    write_checkpoint();
    std::string remedy = error.remedy();
    // Where a phase cannot begin the best model is that of the phase before.
    if (std::isfinite(training_.best_loss()) || training_.place().total > 0) {
      write_outputs();
      remedy += (remedy.empty() ? "" : "; ") + std::string("the best model so far is in ") + outputs_.first().string();
    }
    remedy += (remedy.empty() ? "" : ", ") + std::string("the last good state in ") + outputs_.checkpoint.string();
    std::string field = error.field();
    if (!field.starts_with("iteration ")) {
      field = "iteration " + std::to_string(training_.place().total) + (field.empty() ? "" : ", " + field);
    }
    throw Error(error.kind(), {field, error.found(), error.expected(), remedy});
  }

  void note(const train::IterationReport& report) {
    if (report.place.total % stride_ != 0 && !report.phase_ended) return;
    curve_.push_back({report.place.total, report.loss, report.watched, report.gradient_norm, report.learning_rate,
                      static_cast<std::int64_t>(report.place.phase)});
  }

  void write_checkpoint() { train::write_checkpoint<T>(outputs_.checkpoint, {training_.state(), curve_, identity_}); }

  void describe(nn::Model& model, const std::optional<Given<std::filesystem::path>>& start) const {
    model.metadata["training_file"] = file_.path.filename().string();
    model.metadata["training_data"] = file_.data.file.value.filename().string();
    if (start) model.metadata["training_start"] = start->value.filename().string();
    model.metadata["training_data_digest"] = task_.data_digest();
    model.metadata["training_iterations"] = std::to_string(training_.place().total);
    if (std::isfinite(training_.best_loss())) {
      model.metadata["training_loss"] = number_text(training_.best_loss()) + " (" + task_.loss_text() +
                                        task_.watched_text() + task_.best_text() + ")";
    }
    store_tolerances(file_, model.metadata);
    if (const std::string resets = task_.resets_text(); !resets.empty()) model.metadata["training_resets"] = resets;
    store(judgement_.report, model.metadata);
    store(uncertainty_, model.metadata);
  }

  void write_models() {
    std::vector<nn::Model> nets = task_.nets(training_.best_parameters());
    for (std::size_t i = 0; i < nets.size(); ++i) {
      describe(nets[i], file_.nets[i].start);
      const auto& [path, safetensors] = outputs_.nets[i];
      nn::write_hdf5_model(path, nets[i], Existing::replace);
      try {
        nn::write_safetensors(safetensors, nets[i], Existing::replace);
      } catch (const Error& error) {
        std::error_code ignored;  // where there is none; an older net's would be taken for this one's
        std::filesystem::remove(safetensors, ignored);
        say("no safetensors: " + std::string(error.what()));
      }
    }
    if (std::optional<nn::Model> equations = task_.equations(training_.best_parameters())) {
      describe(*equations, std::nullopt);
      nn::write_hdf5_model(outputs_.equations, *equations, Existing::replace);
    }
    if (outputs_.problem.empty()) return;
    const std::string text = trained_problem_text(file_, task_.values(training_.best_parameters()), uncertainty_);
    write_file(outputs_.problem, std::as_bytes(std::span(text)), Existing::replace);
  }

  // Whatever happens: what was trained is to be written all the same.
  void judge() {
    judgement_ = {};
    uncertainty_ = {};
    if (!std::isfinite(training_.best_loss())) return;
    const auto attempt = [this](const auto& part) {
      try {
        part();
      } catch (const Error& error) {
        note_missing("no errors of the fit: ", error);
      }
    };
    attempt([this] { judgement_ = task_.judge(training_.best_parameters()); });
    attempt([this] { uncertainty_ = task_.uncertainty(training_.best_parameters()); });
    presuppose_fit(uncertainty_, judgement_.report);
    presuppose_minimum(uncertainty_, judgement_.report);
  }

  void note_missing(const std::string& what, const Error& error) {
    is_cut_ = is_cut_ || error.kind() == ErrorKind::cancelled;
    if (error.kind() != ErrorKind::cancelled) say(what + error.what());
  }

  // Where starts were found by the training: else the model alone says all that it has of them.
  void write_states() {
    const FittedStates& fitted = judgement_.fitted;
    if (outputs_.states.empty() || !fitted.starts_are_found) return;
    std::string text = "trajectory," + csv_field(judgement_.curves.time_name);
    for (const std::string& name : fitted.components) text += "," + csv_field(name);
    text += "\n";
    std::size_t row = 0;
    const std::size_t n = fitted.components.size();
    for (std::size_t i = 0; i < fitted.lengths.size(); ++i) {
      for (std::size_t point = 0; point < fitted.lengths[i]; ++point, ++row) {
        text += csv_field(fitted.trajectories[i]) + "," + number_text(fitted.times[row]);
        for (std::size_t c = 0; c < n; ++c) {
          const double state = fitted.states[row * n + c];
          text += "," + (std::isfinite(state) ? number_text(state) : std::string());
        }
        text += "\n";
      }
    }
    write_file(outputs_.states, std::as_bytes(std::span(text)), Existing::replace);
  }

  void write_outputs() {
    judge();
    write_models();
    write_states();
    std::string text = "iteration,loss,watched,gradient_norm,learning_rate,phase\n";
    for (const train::CurvePoint& point : curve_) {
      text += std::to_string(point.iteration);
      for (const double x : {point.loss, point.watched, point.gradient_norm, point.learning_rate}) {
        text += "," + number_text(x);
      }
      text += "," + std::to_string(point.phase + 1) + "\n";
    }
    write_file(outputs_.curve, std::as_bytes(std::span(text)), Existing::replace);
    const std::string subtitle = subject_text(file_, task_) + "  ·  " + task_.data_text() + "  ·  " +
                                 file_.path.filename().string() + "  ·  lockstep " LOCKSTEP_VERSION;
    if (curve_.size() < 2) return;
    picture(outputs_.picture, "the loss", [&] {
      return loss_curve(curve_, "Training of " + title(), subtitle, task_.loss_text(), task_.watched_text(),
                        phase_names());
    });
    if (!judgement_.curves.trajectories.empty()) {
      picture(outputs_.fit, "the fit",
              [&] { return fitted_curves(judgement_.curves, "Fit of " + title() + " to the data", subtitle); });
    }
    if (!judgement_.outputs.empty()) {
      picture(outputs_.fit, "the fit", [&] {
        return predicted_over_true(judgement_.outputs, judgement_.report.outputs(),
                                   "Predictions of " + title() + " over the data", subtitle);
      });
    }
  }

  void picture(const std::filesystem::path& path, const char* of, const std::function<Figure()>& make) {
    try {
      const Figure figure = make();
      draw(figure.script, path, PictureFormat::png, figure.size);
      drawn_.push_back(path);
    } catch (const Error& error) {
      say("no picture of " + std::string(of) + ": " + error.what());
    }
  }

  std::string title() const {
    return task_.starts().size() == 1 ? task_.starts()[0].name : file_.output.stem.filename().string();
  }

  std::vector<std::string> phase_names() const {
    std::vector<std::string> names;
    for (const train::Phase& phase : training_.phases()) names.push_back(phase.name);
    return names;
  }

  void say(const std::string& text) const {
    if (!flags_.quiet) std::fprintf(stderr, "lockstep: %s\n", text.c_str());
  }

  void say_start() const {
    if (!flags_.quiet) print_task(file_, task_);
  }

  void say_phase(const train::IterationReport& report, double seconds, std::int64_t from, Progress& progress) const {
    if (flags_.quiet) return;
    progress.clear();
    const std::int64_t made = report.place.total + 1 - from;
    std::printf("%s: %s in %s (%s each), loss %s%s\n", phase_text(report.place.phase, training_.phases()).c_str(),
                iterations_text(made).c_str(), seconds_text(seconds).c_str(),
                seconds_text(seconds / static_cast<double>(made)).c_str(), short_number(report.loss).c_str(),
                left_out_text(report).c_str());
    std::fflush(stdout);
  }

  void say_end(bool stopped) {
    if (!std::isfinite(training_.best_loss()) && training_.place().iteration == 0 && !training_.finished()) return;
    const std::span<const T> best = training_.best_parameters();
    std::printf("%s: %s\n", stopped ? "best so far" : "result", final_text(best).c_str());
    for (const TrainedValue& value : task_.values(best)) {
      const std::string unit = value.unit.empty() ? "" : " " + value.unit;
      std::printf("%s\n", printable(value.name + " = " + number_text(value.value) + unit + " (from " +
                                        number_text(value.start) + ")",
                                    LineBreaks::escape)
                              .c_str());
    }
    for (const std::vector<std::string>& lines :
         {table_lines(uncertainty_), table_lines(judgement_.report), fit_notes(judgement_.report)}) {
      for (const std::string& line : lines) std::printf("%s\n", printable(line, LineBreaks::escape).c_str());
    }
    for (const std::string& note : task_.solve_notes()) {
      std::printf("note: %s\n", printable(note, LineBreaks::escape).c_str());
    }
    if (!advice_.empty()) std::printf("note: %s\n", advice_.c_str());
    for (const auto& [path, safetensors] : outputs_.nets) {
      const bool both = std::filesystem::exists(safetensors);
      std::printf("%s%s\n", path.string().c_str(), both ? (", " + safetensors.string()).c_str() : "");
    }
    for (const std::filesystem::path& path : {outputs_.equations, outputs_.problem}) {
      if (!path.empty()) std::printf("%s\n", path.string().c_str());
    }
    if (judgement_.fitted.starts_are_found && !outputs_.states.empty())
      std::printf("%s\n", outputs_.states.string().c_str());
    std::printf("%s\n", outputs_.checkpoint.string().c_str());
    std::printf("%s", outputs_.curve.string().c_str());
    for (const std::filesystem::path& drawn : drawn_) std::printf(", %s", drawn.string().c_str());
    std::printf("\n");
  }

  // The losses of all that was trained on and watched; where there is no time for that, the best one of the training.
  std::string final_text(std::span<const T> best) {
    try {
      std::string text = task_.loss_text() + " " + short_number(task_.final_loss(best));
      text += task_.left_out_text();  // of the last loss
      if (const auto validation = task_.final_validation_loss(best)) {
        text += ", " + short_number(*validation) + " on the validation data" + task_.left_out_text();
      }
      return text;
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::cancelled) throw;
      is_cut_ = true;
      return task_.loss_text() + " " + short_number(training_.best_loss()) + task_.watched_text() + task_.best_text();
    }
  }

  const TrainingFile& file_;
  const RunFlags& flags_;
  TrainingTask<T>& task_;
  const TrainingOutputs outputs_;
  train::Training<T> training_;
  const train::Identity identity_;
  std::vector<train::CurvePoint> curve_;
  std::int64_t stride_ = 1;  // iterations between points of the curve
  std::vector<std::filesystem::path> drawn_;
  std::string advice_;  // on how it ended
  Judgement judgement_;
  ParameterReport uncertainty_;
  bool is_cut_ = false;  // what tells how good the result is was stopped
};

template <class T>
int run_with(const TrainingFile& file, const RunFlags& flags) {
  const std::unique_ptr<TrainingTask<T>> task = file.ode ? make_ode_task<T>(file) : make_regression_task<T>(file);
  return Run<T>(task->file(), flags, *task).run();
}

template <class T>
int explain_with(const TrainingFile& file) {
  const std::unique_ptr<TrainingTask<T>> task = file.ode ? make_ode_task<T>(file) : make_regression_task<T>(file);
  print_task(file, *task);
  const std::vector<train::Phase> phases = task->phases();
  for (std::size_t phase = 0; phase < phases.size(); ++phase) {
    const auto* rule = std::get_if<train::OptimiserOptions>(&phases[phase].rule);
    std::printf("%s: at most %s of %s\n", phase_text(phase, phases).c_str(),
                iterations_text(phases[phase].iterations).c_str(),
                rule == nullptr ? "lbfgs" : std::string(to_string(rule->rule)).c_str());
    for (const std::string& sentence : task->explain(phase)) std::printf("- %s\n", sentence.c_str());
  }
  return kSuccess;
}

}  // namespace

int explain_training(const TrainingFile& file) {
  return file.options.precision == Precision::f32 ? explain_with<float>(file) : explain_with<double>(file);
}

int run_training(const TrainingFile& file, const RunFlags& flags) {
  if (file.output.stem.empty()) {
    throw Error(ErrorKind::invalid_argument, {file.output.where, "nothing", "how the files to write are called",
                                              "add [output] with file = \"net\", or --output net"});
  }
  require_output_name(file);
  refuse_existing_outputs(file, flags);
  return file.options.precision == Precision::f32 ? run_with<float>(file, flags) : run_with<double>(file, flags);
}

}  // namespace lockstep::cli
