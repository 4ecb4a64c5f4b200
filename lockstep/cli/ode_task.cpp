// A neural ODE as a task of `train`.
#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "lockstep/cli/derivative_notes.h"
#include "lockstep/cli/equations_training.h"
#include "lockstep/cli/fit_input.h"
#include "lockstep/cli/shared_weights_task.h"
#include "lockstep/cli/step_limit.h"
#include "lockstep/cli/text.h"
#include "lockstep/cli/time_notes.h"
#include "lockstep/cli/trained_values.h"
#include "lockstep/cli/training_advice.h"
#include "lockstep/cli/training_data.h"
#include "lockstep/cli/training_resets.h"
#include "lockstep/cli/training_task.h"
#include "lockstep/cli/trajectory_judgement.h"
#include "lockstep/cli/unread_note.h"
#include "lockstep/core/hash.h"
#include "lockstep/nn/model.h"
#include "lockstep/ode/fit.h"
#include "lockstep/ode/huber.h"
#include "lockstep/ode/parameter_uncertainty.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::cli {
namespace {

// With the tolerances that the data ask for, where it has none of its own.
TrainingFile with_tolerances(TrainingFile file, const TrajectoryTable& training) {
  const std::size_t components = training.component_names.size(), given = file.options.component_atol.size();
  if (given != 0 && given != components) {
    throw Error(ErrorKind::invalid_argument, {file.where_atol,
                                              counted_text(given, "number"),
                                              "one for all components or one for each of " + std::to_string(components),
                                              {}});
  }
  if (!file.where_atol.empty() || file.options.control == ode::StepControl::fixed) return file;
  file.options.component_atol = ode::fit_tolerances(library_data(training, {}), components, file.options.precision);
  return file;
}

std::vector<double> system_parameters(const OdeSection& ode) {
  if (!ode.system) return {};
  const std::vector<double> defaults = system_of(ode).default_parameters;
  if (ode.parameters.empty()) return defaults;
  if (ode.parameters.size() != defaults.size()) {
    throw Error(ErrorKind::invalid_argument, {ode.system->where,
                                              std::to_string(ode.parameters.size()) + " parameters",
                                              std::to_string(defaults.size()) + " as " + ode.system->value + " has",
                                              {}});
  }
  return ode.parameters;
}

template <class T>
class OdeTask : public TrainingTask<T> {
 public:
  OdeTask(const TrainingFile& file, TrajectoryData data)
      : file_(with_tolerances(file, data.training)),
        data_(std::move(data)),
        phases_(fit_phases(file_)),
        loss_(make_loss(file_)) {}

  const TrainingFile& file() const override { return file_; }
  std::vector<train::Phase> phases() const override {
    std::vector<train::Phase> phases;
    for (const ode::FitPhase& phase : phases_) phases.push_back(phase.training);
    return phases;
  }
  std::size_t parameters() const override { return loss_.parameters(); }
  double loss_unit() const override { return loss_unit_; }
  double loss(const train::Place& place, std::span<const T> parameters, std::span<T> gradient) override {
    try {
      return with_named_starts([&] { return loss_(place, parameters, gradient); });
    } catch (const Error& error) {
      const std::string normalise = normalise_advice(file_, data_.training, this->starts_);
      if (normalise.empty() || error.kind() != ErrorKind::invalid_argument) throw;
      throw Error(error.kind(),
                  {error.field(), error.found(), error.expected(), normalise + "; or else " + error.remedy()});
    }
  }
  void stop_when(const CancelToken* cancel) override {
    control_.cancel = cancel;
    loss_.stop_when(cancel);
  }
  typename train::Training<T>::Validation validation() override {
    if (has_validation()) {
      return [this](const train::Place&, std::span<const T> p) { return loss_.validation_loss(p); };
    }
    if (epoch_ == 1) return {};
    // A batch's loss does not tell which parameters are best: all trajectories do.
    return [this](const train::Place&, std::span<const T> p) { return loss_.loss(p); };
  }
  std::int64_t validate_every() const override { return std::max<std::int64_t>(epoch_, has_validation() ? 10 : 1); }
  std::optional<train::SquaresModel> squares(const train::Place& place, std::span<const T> parameters) override {
    return loss_.squares(place, parameters);
  }
  std::int64_t left_out() const override { return static_cast<std::int64_t>(loss_.left_out()); }
  double final_loss(std::span<const T> parameters) override {
    const double loss = loss_.loss(parameters);
    left_out_notes_ = {};
    describe_left_out(data_.training, "training", left_out_notes_[0]);
    if (!left_out_notes_[0].empty()) left_out_notes_[0] += "; the result was not fitted to them";
    return loss +
           loss_of_starts(data_.training, trained_starts(parameters), component_weights_, loss_.records(), thresholds_);
  }
  std::optional<double> final_validation_loss(std::span<const T> parameters) override {
    if (!has_validation()) return std::nullopt;
    const double loss = loss_.validation_loss(parameters);
    describe_left_out(data_.validation, "validation", left_out_notes_[1]);
    return loss;
  }
  std::string left_out_text() const override { return left_out_text_; }
  std::vector<std::string> solve_notes() const override {
    std::vector<std::string> notes;
    for (const std::string& note : left_out_notes_) {
      if (!note.empty()) notes.push_back(note);
    }
    if (!unresolved_note_.empty()) notes.push_back(unresolved_note_);
    return notes;
  }
  Judgement judge(std::span<const T> parameters) override {
    const std::vector<double> weights(parameters.begin(),
                                      parameters.begin() + static_cast<std::ptrdiff_t>(this->weights()));
    JudgedTrajectories training{data_.training, given_data(data_.training), {}};
    JudgedTrajectories validation{data_.validation, {}, {}};
    if (has_validation()) validation.data = given_data(data_.validation);
    training.starts = trained_starts(parameters);
    if (given_.trained && has_validation()) {
      validation.starts = ode::start_states(*given_.trained, weights, validation.data);
    }
    const FittedEquations fitted{rhs_,     weights,           file_.options, resets_.trained,
                                 control_, huber_threshold(), thresholds_,   found_errors_};
    Judgement judgement = judge_fit(fitted, training, validation);
    judgement.report.beyond_sigma = beyond_sigma(judgement.report);
    if (!huber_threshold()) judgement.report.bounded_loss = "huber";
    // Of trained parameters the report on them says so.
    judgement.report.exact_starts = trained_.empty() && are_exact(starts_of_solves());
    unresolved_note_ = judgement.unresolved
                           ? "training goes by slopes that are wrong: " +
                                 unresolved_text(*judgement.unresolved,
                                                 data_.training.name(judgement.unresolved->trajectory), file_.options)
                           : std::string();
    return judgement;
  }
  std::vector<TrainedValue> values(std::span<const T> parameters) const override {
    const std::size_t count = trained_.size();
    return trained_values<T>(parameter_names_, trained_, parameters.subspan(this->weights() - count, count));
  }
  ParameterReport uncertainty(std::span<const T> parameters) override {
    ParameterReport report;
    if (trained_.empty()) return report;
    for (const TrainedValue& value : values(parameters)) {
      report.names.push_back(value.name);
      report.units.push_back(value.unit);
    }
    for (std::size_t i = 0; i < trained_.size(); ++i) {
      if (ode::moves_a_jump(*untrained_, trained_[i].parameter)) report.jumps.push_back(report.names[i]);
    }
    report.jumps_at_states = untrained_->jumps_at_states();
    const bool frees = phases_.back().continuity.has_value();
    const std::vector<double> starts = frees ? trained_starts(parameters) : std::vector<double>();
    report.starts = starts_of_solves();
    report.huber_threshold = huber_threshold();
    report.stated_errors = file_.data.sigma.error_size() == ode::ErrorSize::as_stated;
    report.implied_errors = file_.data.sigma.may_tell_sizes() && !report.stated_errors;
    const auto count = static_cast<std::ptrdiff_t>(this->weights());
    const std::vector<double> weights(parameters.begin(), parameters.begin() + count);
    try {
      report.found =
          ode::parameter_uncertainty(untrained_, trained_, weights, given_data(data_.training), file_.options,
                                     {.initial_states = starts,
                                      .component_weights = component_weights_,
                                      .error_size = file_.data.sigma.error_size(),
                                      .starts = given_.untrained,
                                      .resets = resets_.untrained,
                                      .huber_threshold = huber_threshold(),
                                      .nets = ode::UncertaintyOptions::Nets::let_go},
                                     control_);
      if (report.found.unresolved) report.refused = unstable_text(file_.options);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::cancelled) throw;
      report.refused = error.what();
    }
    return report;
  }
  std::optional<nn::Model> equations(std::span<const T> parameters) const override {
    if (!equations_) return std::nullopt;
    return trained_equations(file_, *equations_, this->nets(parameters), values(parameters));
  }
  std::string start_digest() const override {
    if (this->starts_.empty() && !equations_) return ContentHash().add("system").add(rhs_->digest()).hex();
    if (!equations_ || (equations_->system.nets.size() == 1 && this->starts_.size() == 1))
      return this->starts_[0].digest();
    ContentHash hash;
    for (const nn::Equations::Net& net : equations_->system.nets) hash.add(net.name).add(net.model.digest());
    return hash.hex();
  }

  std::string data_text() const override {
    return text_of(data_, file_.data.starts) +
           (resets_.text.empty() ? "" : ", " + counted_text(file_.resets.size(), "reset"));
  }
  std::string resets_text() const override { return resets_.text; }
  std::vector<std::string> data_advice() const override {
    std::vector<std::string> lines = data_.notes;
    for (std::string& line : advice(file_, data_.training, this->starts_)) lines.push_back(std::move(line));
    if (auto note = renamed_note(components(), data_.training.component_names)) lines.push_back(*std::move(note));
    if (auto note = jump_advice(file_, data_.training)) lines.push_back(*std::move(note));
    const auto begins_at_data = [](const TrainingPhase& phase) { return phase.segment != 0 && !phase.continuity; };
    if (const auto phase = std::ranges::find_if(file_.phases, begins_at_data);
        huber_threshold() && phase != file_.phases.end()) {
      lines.push_back("phase " + std::to_string(phase - file_.phases.begin() + 1) +
                      " begins segments at measurements, whose errors no loss bounds there: give it a continuity, "
                      "which trains their starts");
    }
    if (trained_.empty() && untrained_->jumps_at_states()) {  // else the report on the parameters says so
      lines.push_back(state_jump_text("training goes by slopes that are wrong behind one"));
    }
    if (data_.training.times.empty()) return lines;
    const ode::Problem spans = spans_of(data_.training, untrained_);
    if ((reads_time() || resets_.reads_time) && file_.options.precision == Precision::f32) {
      if (auto note = coarse_time_note(spans, reads_time() ? "the right-hand side" : "a reset"))
        lines.push_back(*std::move(note));
    }
    if (!equations_) return lines;
    std::vector<nn::Equation> others = texts_of({}, file_.resets);
    others.insert(others.end(), file_.data.starts.of.begin(), file_.data.starts.of.end());
    if (auto note = unread_note(equations_->system, others)) lines.push_back(*std::move(note));
    // Phases may take steps of their own; what is true of several is said once.
    std::vector<std::string> notes;
    const auto look_at = [&](const ode::Options& options) {
      if (auto note = note_of_steps(equations_->time_feature, spans, options)) notes.push_back(*std::move(note));
    };
    const auto [least, most] = spans.time_range();
    for (const nn::KnownTimes& known : equations_->times) add_time_note(known, least, most, notes);
    look_at(file_.options);
    for (const TrainingPhase& phase : file_.phases) {
      if (phase.dt) look_at(fixed_steps_of(*phase.dt));
    }
    for (std::string& note : notes) {
      if (std::ranges::find(lines, note) == lines.end()) lines.push_back(std::move(note));
    }
    return lines;
  }
  std::vector<std::string> explain(std::size_t phase) override {
    std::vector<std::string> lines = loss_.explain(phase);
    if (!huber_threshold()) return lines;
    const std::vector<double>& errors = found_errors_;
    std::string sizes;
    for (std::size_t c = 0; c < errors.size(); ++c) {
      if (std::isfinite(errors[c]))
        sizes += (sizes.empty() ? ", taken to be of " : ", ") + data_.training.component_names[c] + " " +
                 rounded_text(errors[c], 3);
    }
    lines.push_back("errors of measurements count by their size alone beyond " + rounded_text(*huber_threshold(), 4) +
                    (errors.empty() ? " sigma" : " errors") + sizes + " (Huber's loss)" +
                    (phases_[phase].continuity ? ", gaps between segments by their squares" : ""));
    return lines;
  }
  std::string best_text() const override {
    const ode::FitPhase& last = phases_.back();
    if (has_validation() || epoch_ > 1) return {};
    if (last.segment != 0 && last.continuity) {
      return ", of the last phase: in segments of " + counted_text(last.segment, "interval") +
             ", with the gaps between them";
    }
    if (last.segment != 0) return ", of the last phase: in segments of " + counted_text(last.segment, "interval");
    return last.horizon != 0 ? ", of the last phase: over " + counted_text(last.horizon, "point") : "";
  }
  std::string watched_text() const override {
    return has_validation() ? ", validation data" : epoch_ > 1 ? ", all trajectories" : "";
  }
  std::string loss_text() const override {
    const std::string of = std::string(huber_threshold() ? "sum of Huber's losses" : "sum of squared errors") +
                           (file_.data.sigma.empty() ? "" : " over sigma");
    return data_.training.trajectories() == 1 ? of : of + " a trajectory, averaged";
  }

 private:
  std::optional<double> huber_threshold() const {
    return file_.loss == LossKind::huber ? std::optional(file_.huber_threshold) : std::nullopt;
  }
  // As equations or a built-in system call them; those of a net alone have no names but the data's.
  std::vector<std::string> components() const {
    if (file_.ode->system) return system_of(*file_.ode).components;
    std::vector<std::string> names;
    if (!equations_) return names;
    for (const nn::Equation& each : equations_->system.equations) names.push_back(each.name);
    return names;
  }
  StartsOf starts_of_solves() const {
    const std::size_t given = given_.trained ? given_.trained->components.size() : 0;
    if (given == rhs_->components()) return StartsOf::file;  // and nothing is left to be freed
    if (phases_.back().continuity) return StartsOf::fit;
    return given == 0 ? StartsOf::data : StartsOf::data_and_file;
  }
  std::vector<std::string> beyond_sigma(const FitReport& report) const {
    std::vector<std::string> beyond;
    if (!file_.data.sigma.may_tell_sizes()) return beyond;
    for (std::size_t c = 0; c < data_.training.component_names.size() && c < report.rows.size(); ++c) {
      const train::ColumnErrors& of = report.rows[c].errors;  // the training data's come first
      double in_sigma = of.in_sigma                  ? *of.in_sigma
                        : component_weights_.empty() ? 0
                                                     : of.rms * std::sqrt(component_weights_[c]);
      // Most are within the threshold, which is one in sigma.
      if (of.within && 2 * of.within->numbers >= of.numbers) in_sigma = std::min(in_sigma, file_.huber_threshold);
      if (of.numbers > 0 && in_sigma > kBeyondSigma)
        beyond.push_back(report.rows[c].name + " " + rounded_text(in_sigma, 3) + " sigma");
    }
    return beyond;
  }
  // A start that is not finite is named as the file names it.
  template <class Call>
  auto with_named_starts(const Call& call) const {
    try {
      return call();
    } catch (const ode::StartsNotFinite& error) {
      const std::string& state = data_.training.component_names[error.component()];
      throw Error(error.kind(), {file_.data.starts.where_of(state), "no finite number", error.expected(),
                                 "start its parameters elsewhere, or keep them where it is finite: positive = true, or "
                                 "min and max"});
    }
  }
  // Of the last loss, one of whole trajectories.
  void describe_left_out(const TrajectoryTable& table, const char* data, std::string& note) {
    constexpr std::size_t kMostNamed = 3;
    left_out_text_.clear();
    note.clear();
    if (loss_.left_out() == 0) return;
    std::string named;
    std::size_t count = 0;
    const std::span<const ode::TrajectoryRecord> records = loss_.records();
    for (std::size_t i = 0; i < records.size(); ++i) {
      if (records[i].status == ode::Status::success || ++count > kMostNamed) continue;
      named += (count == 1 ? "" : ", ") + table.name(i) + ": " + std::string(to_string(records[i].status)) +
               " at t = " + number_text(records[i].end_time);
    }
    const std::string of = count_text(count) + " of " + count_text(records.size());
    left_out_text_ = ", without " + of + " trajectories (" + named + (count > kMostNamed ? ", ..." : "") + ")";
    note = "left out, since they could not be solved: " + of + " trajectories of the " + data + " data (" + named +
           (count > kMostNamed ? ", and " + count_text(count - kMostNamed) + " more" : "") + ")";
  }
  std::vector<double> start_weights() const override {
    return trained_.empty() && !equations_ ? TrainingTask<T>::start_weights() : rhs_->weights();
  }
  // [trajectory][component], where the last phase trains them, or some are given; else nothing.
  std::vector<double> trained_starts(std::span<const T> parameters) const {
    std::vector<double> starts;
    if (!phases_.back().continuity && !given_.trained) return starts;
    if (!phases_.back().continuity) {
      const std::vector<double> weights(parameters.begin(),
                                        parameters.begin() + static_cast<std::ptrdiff_t>(this->weights()));
      return ode::start_states(*given_.trained, weights, given_data(data_.training));
    }
    const std::vector<double> states = loss_.states(parameters);
    const std::size_t n = data_.training.component_names.size();
    std::size_t row = 0;
    for (const std::size_t length : data_.training.lengths) {
      const auto first = states.begin() + static_cast<std::ptrdiff_t>(row * n);
      starts.insert(starts.end(), first, first + static_cast<std::ptrdiff_t>(n));
      row += length;
    }
    return starts;
  }
  ode::TrajectoryData given_data(const TrajectoryTable& table) const {
    return library_data(table, parameters_, given_names_);
  }
  bool has_validation() const { return !data_.validation.times.empty(); }

  // Whose equation is the number 0: what is known beforehand, say, carried along as a state.
  std::vector<bool> still_components() const {
    std::vector<bool> still(data_.training.component_names.size());
    if (!file_.ode->equations) return still;
    const std::vector<nn::Equation>& equations = file_.ode->equations->system.equations;
    for (std::size_t c = 0; c < std::min(still.size(), equations.size()); ++c) still[c] = equations[c].text == "0";
    return still;
  }
  bool reads_time() const {
    const auto& system = file_.ode->system;
    return file_.ode->with_time || (equations_ && equations_->reads_time) ||
           (system && ode::system_info(system->value).reads_time);
  }
  std::size_t longest() const {
    return *std::max_element(data_.training.lengths.begin(), data_.training.lengths.end());
  }
  // The file's options with steps of one size.
  ode::Options fixed_steps_of(double dt) const {
    ode::Options options = file_.options;
    options.control = ode::StepControl::fixed;
    options.dt = dt;
    options.stops.clear();
    return options;
  }
  std::vector<ode::FitPhase> fit_phases(const TrainingFile& file) const {
    std::vector<ode::FitPhase> phases;
    if (file.phases.empty()) {
      const bool gaps = std::ranges::any_of(data_.training.states, [](double x) { return std::isnan(x); });
      // From complete states a segment knows whether it is reset; a state between measurements does not.
      if (!file.resets.empty() && (gaps || jumping_states(file, data_.training).wait()))
        return phases_with_resets(file, data_.training, longest(), component_weights(file.data, data_));
      phases = file.noisy ? ode::noisy_phases(longest(), file.target)
                          : ode::recommended_phases(longest(), file.target, gaps || huber_threshold());
      // Segments would begin with whatever value of what nothing was measured of. Rates alone are found without them.
      if (file.nets.empty() && hides_component(data_.training, still_components()))
        phases.erase(phases.begin(), phases.end() - 1);
    }
    for (const TrainingPhase& phase : file.phases) {
      phases.push_back({.training = phase.phase,
                        .segment = phase.segment,
                        .continuity = phase.continuity,
                        .horizon = phase.horizon,
                        .batch = phase.batch,
                        .solve = {}});
      if (phase.dt) phases.back().solve = fixed_steps_of(*phase.dt);
    }
    return phases;
  }

  ode::FitLoss<T> make_loss(const TrainingFile& file) {
    this->data_digest_ = data_.digest;
    if (file.ode->equations) {
      equations_ = equations_to_train(file, data_.training);
      limit_steps(equations_->time_feature, file_.options);
      this->starts_ = equations_->nets;
      trained_ = equations_->trained;
      parameter_names_ = equations_->parameter_names();
      return make_loss(file, equations_->untrained, equations_->parameters);
    }
    if (file.nets.empty()) return make_system_loss(file, ode::system(file.ode->system->value));
    const std::vector<nn::Feature> states =
        features(data_.training.component_names, data_.training.states, data_.training.component_units);
    std::vector<nn::Feature> inputs = states, outputs(states.size());
    if (file.ode->with_time)
      inputs.push_back(features({"t"}, data_.training.times, {data_.training.time_unit}).front());
    for (std::size_t i = 0; i < states.size(); ++i) outputs[i].name = "d" + states[i].name + "/dt";
    Mlp scaled;  // shapes alone: what fit_scaling looks at
    scaled.layers = {{.inputs = inputs.size(), .outputs = outputs.size()}};
    if (file.data.normalisation == Normalisation::standard) {
      ode::fit_scaling(scaled, library_data(data_.training, {}));
    } else if (file.data.normalisation == Normalisation::min_max) {
      throw Error(ErrorKind::invalid_argument,
                  {file.data.where + ".normalise", "min_max", "none or standard for a neural ODE", {}});
    }
    const nn::Model& start = this->starts_.emplace_back(initial_model(
        file, file.nets.at(0), std::move(inputs), std::move(outputs), scaled.input_scaling, scaled.output_scaling));
    const ode::NetOptions net{.name = start.name, .with_time = file.ode->with_time};
    ode::Rhs rhs = nn::is_stack(start) ? ode::net(nn::to_mlp(start), net) : ode::net(nn::to_graph(start), net);
    if (!file.ode->system) return make_loss(file, std::move(rhs), {});
    const std::vector<double> parameters = system_parameters(*file.ode);  // says where no such system is
    ode::Rhs system = ode::system(file.ode->system->value);
    require_components(file, *system);
    return make_system_loss(file, ode::sum(std::move(system), std::move(rhs)));
  }

  void require_components(const TrainingFile& file, const ode::StateFunction& system) const {
    const std::vector<std::string>& names = data_.training.component_names;
    if (system.components() != names.size()) {
      throw Error(ErrorKind::invalid_argument, {file.ode->system->where,
                                                std::to_string(system.components()) + " components",
                                                std::to_string(names.size()) + " as the data have",
                                                {}});
    }
    // Data may call them otherwise, but not one as another.
    const std::vector<std::string> components = system_of(*file.ode).components;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i] == components[i] || std::ranges::find(components, names[i]) == components.end()) continue;
      throw Error(ErrorKind::invalid_argument,
                  {file.data.where_states,
                   '"' + names[i] + "\" where " + file.ode->system->value + " has \"" + components[i] + '"',
                   "the order of the system's components",
                   {}});
    }
  }
  // A built-in system, alone or with a net, some of its parameters trained.
  ode::FitLoss<T> make_system_loss(const TrainingFile& file, ode::Rhs rhs) {
    require_components(file, *rhs);
    trained_ = file.ode->trained;
    parameter_names_ = system_of(*file.ode).parameters;
    const std::vector<double> all = system_parameters(*file.ode);
    std::vector<double> given;
    for (std::size_t i = 0; i < all.size(); ++i) {
      const bool is_trained = std::ranges::find(trained_, i, &ode::TrainedParameter::parameter) != trained_.end();
      if (!is_trained) given.push_back(all[i]);
    }
    return make_loss(file, std::move(rhs), given);
  }

  // `rhs` with all its parameters, `parameters` those that are not trained.
  ode::FitLoss<T> make_loss(const TrainingFile& file, ode::Rhs rhs, const std::vector<double>& parameters) {
    untrained_ = rhs;
    rhs = ode::train_parameters(std::move(rhs), trained_);
    rhs_ = rhs;
    parameters_ = parameters;
    for (std::size_t i = 0; i < parameter_names_.size(); ++i) {
      const bool is_trained = std::ranges::find(trained_, i, &ode::TrainedParameter::parameter) != trained_.end();
      if (!is_trained) given_names_.push_back(parameter_names_[i]);
    }
    component_weights_ = component_weights(file.data, data_);
    ode::FitOptions options;
    options.component_weights = component_weights_;
    if (component_weights_.empty()) {
      loss_unit_ = ode::loss_unit(given_data(data_.training), rhs_->components());
    }
    options.loss_unit = loss_unit_;
    options.huber_threshold = huber_threshold();
    if (huber_threshold()) {
      const ode::TrajectoryData training = given_data(data_.training);
      thresholds_ = ode::huber_thresholds(training, rhs_->components(), component_weights_, *huber_threshold());
      if (component_weights_.empty() && training.sigma.empty())
        found_errors_ = ode::measurement_errors(training, rhs_->components());
    }
    given_ = starts_to_train(file.data.starts, data_.training.component_names, parameter_names_, trained_);
    options.starts = given_.trained;
    resets_ = resets_to_train(file, {untrained_, data_.training.component_names, parameter_names_, trained_},
                              equations_ ? &equations_->system : nullptr);
    options.resets = resets_.trained;
    options.solve = file_.options;
    options.phases = phases_;
    options.failed = file.failed;
    options.seed = file.seed;
    epoch_ = options.iterations_per_epoch(data_.training.trajectories());
    if (has_validation()) options.validation = given_data(data_.validation);
    return with_named_starts(
        [&] { return ode::FitLoss<T>(std::move(rhs), given_data(data_.training), std::move(options)); });
  }

  TrainingFile file_;
  TrajectoryData data_;
  std::vector<ode::FitPhase> phases_;
  std::optional<EquationsToTrain> equations_;   // these before loss_, which sets them
  ode::Rhs untrained_, rhs_;                    // likewise, without and with the parameters trained
  std::vector<ode::TrainedParameter> trained_;  // likewise
  std::vector<std::string> parameter_names_;    // likewise, of all of them
  std::vector<double> component_weights_;       // likewise
  std::vector<double> thresholds_;              // likewise, [component], of Huber's loss; or none
  std::vector<double> found_errors_;            // likewise, where nothing else says how large measurement errors are
  StartsToTrain given_;                         // likewise
  ResetsToTrain resets_;                        // likewise
  std::vector<double> parameters_;              // of the right-hand side, that are not trained; likewise
  std::vector<std::string> given_names_;        // of these, where they have names; likewise
  double loss_unit_ = 1;                        // likewise
  std::int64_t epoch_ = 1;                      // iterations in it; before loss_, which sets it
  ode::FitLoss<T> loss_;
  RunControl control_;
  std::string left_out_text_;
  std::array<std::string, 2> left_out_notes_;  // of training and of validation data
  std::string unresolved_note_;
};

}  // namespace

template <class T>
std::unique_ptr<TrainingTask<T>> make_ode_task(const TrainingFile& file, TrajectoryData data) {
  return with_shared_weights<T>(std::make_unique<OdeTask<T>>(file, std::move(data)));
}
template <class T>
std::unique_ptr<TrainingTask<T>> make_ode_task(const TrainingFile& file) {
  return make_ode_task<T>(file, load_trajectories(file));
}
template std::unique_ptr<TrainingTask<float>> make_ode_task<float>(const TrainingFile&);
template std::unique_ptr<TrainingTask<double>> make_ode_task<double>(const TrainingFile&);
template std::unique_ptr<TrainingTask<float>> make_ode_task<float>(const TrainingFile&, TrajectoryData);
template std::unique_ptr<TrainingTask<double>> make_ode_task<double>(const TrainingFile&, TrajectoryData);

}  // namespace lockstep::cli
