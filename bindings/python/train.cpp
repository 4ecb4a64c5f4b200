#include "bindings/python/train.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/errors.h"
#include "bindings/python/impulses.h"
#include "bindings/python/model.h"
#include "bindings/python/solution.h"
#include "bindings/python/users_words.h"
#include "bindings/python/watched.h"
#include "lockstep/cli/file_keys.h"
#include "lockstep/cli/grace.h"
#include "lockstep/cli/trained_values.h"
#include "lockstep/cli/training_advice.h"
#include "lockstep/cli/training_data.h"
#include "lockstep/cli/training_file.h"
#include "lockstep/cli/training_run.h"
#include "lockstep/cli/training_task.h"
#include "lockstep/core/names.h"
#include "lockstep/core/pending_file.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/safetensors.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

std::vector<double> values_of(const Numbers& numbers) { return {numbers.data(), numbers.data() + numbers.size()}; }

using Labels = std::vector<std::string>;  // [trajectory], what people call them; or none

// "x[37]" of a single column, "x[37], column 2", "u, trajectory 0, point 37, component 1".
std::string place_of(const char* name, const Numbers& numbers, std::size_t at, const Labels& labels) {
  std::vector<std::string> places;
  std::size_t trajectory = 0;  // where there are several
  for (std::size_t d = numbers.ndim(); d-- > 0; at /= numbers.shape(d)) {
    trajectory = at % numbers.shape(d);
    places.insert(places.begin(), std::to_string(trajectory));
  }
  if (places.size() == 3) {
    return std::string(name) + ", trajectory " + (trajectory < labels.size() ? labels[trajectory] : places[0]) +
           ", point " + places[1] + ", component " + places[2];
  }
  const bool one_column = places.size() < 2 || numbers.shape(1) == 1;
  return std::string(name) + "[" + places[0] + "]" + (one_column ? "" : ", column " + places[1]);
}

enum class MayMiss { no, yes };
constexpr const char* kRepair = "repair the row or leave it out";
void require_finite(const char* name, const Numbers& numbers, MayMiss may_miss = MayMiss::no,
                    const char* remedy = kRepair, const Labels& labels = {}) {
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isfinite(numbers.data()[i])) continue;
    if (may_miss == MayMiss::yes && std::isnan(numbers.data()[i])) continue;
    const bool is_nan = std::isnan(numbers.data()[i]);
    const char* const of_infinity =
        may_miss == MayMiss::yes ? "what was not measured is NaN; else repair the row or leave it out" : kRepair;
    throw Error(ErrorKind::invalid_argument, {place_of(name, numbers, i, labels), is_nan ? "NaN" : "infinity",
                                              "finite numbers", is_nan ? remedy : of_infinity});
  }
}

// Of each iteration, and of the whole.
struct History {
  std::vector<std::int64_t> iteration, phase;
  std::vector<double> loss, watched, gradient_norm, learning_rate;

  void note(const train::IterationReport& report) {
    iteration.push_back(report.place.total);
    phase.push_back(static_cast<std::int64_t>(report.place.phase) + 1);  // as in the curve that `lockstep train` writes
    loss.push_back(report.loss);
    watched.push_back(report.watched);
    gradient_norm.push_back(report.gradient_norm);
    learning_rate.push_back(report.learning_rate);
  }
  nb::dict arrays() const {
    nb::dict result;
    result["iteration"] = to_numpy(iteration, {iteration.size()});
    result["loss"] = to_numpy(loss, {loss.size()});
    result["watched"] = to_numpy(watched, {watched.size()});
    result["gradient_norm"] = to_numpy(gradient_norm, {gradient_norm.size()});
    result["learning_rate"] = to_numpy(learning_rate, {learning_rate.size()});
    result["phase"] = to_numpy(phase, {phase.size()});
    return result;
  }
};

struct Trained {
  std::vector<nn::Model> nets;
  std::vector<cli::TrainedValue> values;
  std::optional<nn::Model> equations;
  History history;
  double loss = 0;
  std::optional<double> validation_loss;
  std::string loss_text;
  cli::Judgement fit;
  cli::ParameterReport uncertainty;
  std::vector<std::string> advice;
  std::vector<std::string> solve_notes;
  std::string advice_on_end;
  std::optional<Error> failure;  // what ended it behind its first iteration
};

// What `part` finds; nothing where it was stopped.
template <class Part>
auto unless_stopped(const Part& part) -> std::optional<decltype(part())> {
  try {
    return part();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::cancelled) throw;
    return std::nullopt;
  }
}

// Whatever happens: what was trained is to be returned all the same.
template <class T>
cli::Judgement judged(cli::TrainingTask<T>& task, std::span<const T> parameters) {
  cli::Judgement none;
  try {
    return task.judge(parameters);
  } catch (const Error& error) {
    none.report.worst =
        "no errors of the fit: " +
        (error.kind() == ErrorKind::cancelled ? "stopped before they were known" : std::string(error.what()));
    return none;
  }
}

template <class T>
Trained iterate(cli::TrainingTask<T>& task, const RunControl& control) {
  train::Training<T> training(task.phases(), task.start_parameters());
  training.measure_in(task.loss_unit());
  task.follow(training);
  if (auto validation = task.validation()) training.validate_with(std::move(validation), task.validate_every());
  training.finish_by([&task](const train::Place& place, std::span<const T> p) { return task.squares(place, p); });
  training.count_left_out([&task] { return task.left_out(); });
  const auto loss = [&](const train::Place& place, std::span<const T> parameters, std::span<T> gradient) {
    return task.loss(place, parameters, gradient);
  };
  Trained trained;
  trained.advice = task.data_advice();
  const auto total = static_cast<std::size_t>(training.total_iterations());
  task.stop_when(control.cancel);
  while (!training.finished() && !control.cancelled()) {
    std::optional<train::IterationReport> report;
    try {
      report = training.iterate(loss);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::cancelled && training.place().total == 0) throw;
      if (error.kind() != ErrorKind::cancelled) trained.failure = error;
      break;
    }
    trained.history.note(*report);
    if (training.finished()) trained.advice_on_end = cli::advice_on_end(task.file(), *report);
    control.progress(static_cast<std::size_t>(training.place().total), total);
  }
  const cli::Grace grace(control.cancel);  // most trainings are judged in less
  task.stop_when(&grace.token());
  const std::span<const T> best = training.best_parameters();
  if (std::isfinite(training.best_loss())) {
    trained.fit = judged(task, best);
    if (auto found = unless_stopped([&] { return task.uncertainty(best); })) trained.uncertainty = std::move(*found);
    cli::presuppose_fit(trained.uncertainty, trained.fit.report);
    cli::presuppose_minimum(trained.uncertainty, trained.fit.report);
  }
  const auto describe = [&](nn::Model& model) {
    model.metadata["training_data_digest"] = task.data_digest();
    model.metadata["training_iterations"] = std::to_string(training.place().total);
    cli::store_tolerances(task.file(), model.metadata);
    if (!trained.fit.report.empty()) cli::store(trained.fit.report, model.metadata);
    cli::store(trained.uncertainty, model.metadata);
  };
  trained.nets = task.nets(best);
  for (nn::Model& net : trained.nets) describe(net);
  trained.values = task.values(best);
  trained.equations = task.equations(best);
  if (trained.equations) describe(*trained.equations);
  const std::optional<double> loss_of_all = unless_stopped([&] { return task.final_loss(best); });
  trained.loss = loss_of_all.value_or(training.best_loss());
  trained.loss_text = task.loss_text() + (loss_of_all ? task.left_out_text() : task.watched_text() + task.best_text());
  trained.validation_loss = unless_stopped([&] { return task.final_validation_loss(best); }).value_or(std::nullopt);
  trained.solve_notes = task.solve_notes();
  task.stop_when(nullptr);
  return trained;
}

MayMiss missing(const cli::DataSection& data, train::MissingNumbers otherwise) {
  return data.missing.value_or(otherwise) == train::MissingNumbers::as_nan ? MayMiss::yes : MayMiss::no;
}

// `prefix`: what the arrays are of, for messages: "" or "validation.".
cli::RegressionTable regression_table(const cli::TrainingFile& file, const std::vector<Numbers>& data,
                                      const std::string& prefix = {}) {
  const Numbers &x = data[0], &y = data[1];
  require_finite((prefix + "x").c_str(), x);
  require_finite((prefix + "y").c_str(), y, missing(file.data, train::MissingNumbers::refuse),
                 "repair the row or leave it out, or let missing targets be: missing=\"skip\"");
  cli::RegressionTable table{file.data.inputs, file.data.targets, values_of(x), values_of(y)};
  if (data.size() > 2) {
    table.sigma = values_of(data[2]);
  } else if (!file.data.sigma.empty()) {
    std::vector<double> row;
    for (const cli::SigmaSection::Of& each : file.data.sigma.of(table.target_names)) row.push_back(each.size);
    for (std::size_t at = 0; at < table.targets.size(); ++at) table.sigma.push_back(row[at % row.size()]);
  }
  const std::size_t width = table.target_names.size();
  cli::require_sigma(table.targets, table.sigma, [&](std::size_t at) {
    return prefix + "sigma[" + std::to_string(at / width) + "], of " + table.target_names[at % width];
  });
  return table;
}

// Rows of them, and names of components.
using Impulses = std::optional<std::pair<Numbers, std::vector<std::string>>>;

cli::TrajectoryTable trajectory_table(const cli::TrainingFile& file, const std::vector<Numbers>& data,
                                      const Impulses& impulses, const std::optional<Numbers>& known,
                                      const Labels& labels) {
  const Numbers &t = data[0], &u = data[1];
  require_finite("t", t, MayMiss::yes);
  require_finite("u", u, missing(file.data, train::MissingNumbers::as_nan), kRepair, labels);
  cli::TrajectoryTable table =
      cli::trajectory_table({"t", "u", u.shape(0), u.shape(1), values_of(t), values_of(u), "sigma",
                             data.size() > 2 ? values_of(data[2]) : std::vector<double>(), labels},
                            file.data.states, cli::first_numbers(file));
  if (known) table.known = values_of(*known);
  if (!impulses) return table;
  const auto& [rows, names] = *impulses;
  std::vector<double> starts;
  for (std::size_t i = 0, first = 0; i < table.trajectories(); first += table.lengths[i++]) {
    starts.push_back(table.lengths[i] > 0 ? table.times[first] : 0);
  }
  const ode::Impulses given =
      read_impulses({rows.data(), rows.size()}, names, table.component_names, table.trajectories(), starts);
  for (std::size_t i = 0; i < table.trajectories(); ++i) {
    const std::span<const ode::Impulse> of = given.of(i);
    table.impulses.emplace_back(of.begin(), of.end());
  }
  return table;
}

template <class T>
Trained train_with(const cli::TrainingFile& file, const std::vector<Numbers>& data,
                   const std::vector<Numbers>& validation, const Impulses& impulses,
                   const std::optional<Numbers>& known, const Labels& labels, const RunControl& control) {
  std::unique_ptr<cli::TrainingTask<T>> task;
  if (data.empty()) {
    task = file.ode ? cli::make_ode_task<T>(file) : cli::make_regression_task<T>(file);
  } else if (data.size() == 2 && file.data.sigma.one_by_one()) {
    throw Error(ErrorKind::invalid_argument,
                {"sigma", "the name of a column beside arrays", "numbers by name, or an array",
                 "give an array of the shape of the data"});
  } else if (file.ode) {
    task = cli::make_ode_task<T>(file, cli::split(file, trajectory_table(file, data, impulses, known, labels)));
  } else {
    std::optional<cli::RegressionTable> own;
    if (!validation.empty()) own = regression_table(file, validation, "validation.");
    task = cli::make_regression_task<T>(file, cli::split(file, regression_table(file, data), own ? &*own : nullptr));
  }
  return iterate(*task, control);
}

void write_models(const cli::TrainingFile& file, const Trained& trained) {
  const cli::TrainingOutputs outputs = cli::outputs_of(file);
  const Existing existing = file.output.overwrite ? Existing::replace : Existing::refuse;
  for (std::size_t i = 0; i < trained.nets.size(); ++i) {
    const nn::Model& net = trained.nets[i];
    nn::write_hdf5_model(outputs.nets[i].model, net, existing);
    if (nn::is_stack(net)) nn::write_safetensors(outputs.nets[i].safetensors, net, existing);
  }
  if (trained.equations) nn::write_hdf5_model(outputs.equations, *trained.equations, existing);
  if (outputs.problem.empty()) return;
  const std::string text = cli::trained_problem_text(file, trained.values, trained.uncertainty);
  write_file(outputs.problem, std::as_bytes(std::span(text)), existing);
}

// {"training": {name: {"rms": ..., ...}}, "validation": ...}
nb::dict errors_of(const cli::FitReport& report) {
  nb::dict errors;
  for (const cli::FitReport::Row& row : report.rows) {
    if (!errors.contains(row.data.c_str())) errors[row.data.c_str()] = nb::dict();
    nb::dict of;
    of["rms"] = row.errors.rms;
    of["relative"] = row.errors.relative();
    of["largest"] = row.errors.largest;
    of["largest_at"] = row.largest_at;
    of["spread"] = row.errors.spread;
    of["numbers"] = row.errors.numbers;
    of["unit"] = row.unit;
    if (row.errors.in_sigma) of["in_sigma"] = *row.errors.in_sigma;
    if (const auto& within = row.errors.within) {
      of["rms_within"] = within->rms;
      of["beyond"] = row.errors.numbers - within->numbers;
    }
    nb::cast<nb::dict>(errors[row.data.c_str()])[row.name.c_str()] = of;
  }
  return errors;
}

std::vector<std::string> in_users_words(std::vector<std::string> lines, Source source) {
  for (std::string& line : lines) line = python::in_users_words(std::move(line), source);
  return lines;
}

std::string lines_of(const Trained& trained, Source source) {
  std::string text;
  const std::vector<std::string> failed{trained.fit.report.worst};
  const bool is_judged = !trained.fit.report.empty() || trained.fit.report.worst.empty();
  for (const auto& lines :
       {cli::table_lines(trained.uncertainty), is_judged ? cli::table_lines(trained.fit.report) : failed,
        in_users_words(cli::fit_notes(trained.fit.report), source)}) {
    for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  }
  for (const std::string& note : trained.solve_notes) text += (text.empty() ? "note: " : "\nnote: ") + note;
  if (!trained.advice_on_end.empty()) {
    text += (text.empty() ? "note: " : "\nnote: ") + python::in_users_words(trained.advice_on_end, source);
  }
  for (const std::string& note : cli::note_lines(trained.uncertainty)) {
    const std::size_t at = text.find(note);
    if (at != std::string::npos) text.replace(at, note.size(), python::in_users_words(note, source));
  }
  return text;
}

// What a picture of the fit shows: curves over data of some trajectories, or what was predicted over what is true.
nb::dict picture_of(const cli::Judgement& fit) {
  nb::list trajectories, outputs;
  const std::size_t components = fit.curves.names.size();
  for (const cli::FittedTrajectory& from : fit.curves.trajectories) {
    nb::dict one;
    one["title"] = from.title;
    one["times"] = to_numpy(from.times, {from.times.size()});
    one["data"] = to_numpy(from.data, {from.times.size(), components});
    one["sigma"] = to_numpy(from.sigma, {from.sigma.empty() ? 0 : from.times.size(), components});
    one["curve_times"] = to_numpy(from.curve_times, {from.curve_times.size()});
    one["curve"] = to_numpy(from.curve, {from.curve_times.size(), components});
    trajectories.append(one);
  }
  for (const cli::PredictedOutput& from : fit.outputs) {
    nb::dict one;
    one["name"] = from.name;
    one["unit"] = from.unit;
    one["summary"] = from.summary;
    one["training"] = nb::make_tuple(to_numpy(from.training_true, {from.training_true.size()}),
                                     to_numpy(from.training_predicted, {from.training_predicted.size()}));
    one["validation"] = nb::make_tuple(to_numpy(from.validation_true, {from.validation_true.size()}),
                                       to_numpy(from.validation_predicted, {from.validation_predicted.size()}));
    outputs.append(one);
  }
  nb::dict picture;
  picture["names"] = fit.curves.names;
  picture["units"] = fit.curves.units;
  picture["time_name"] = fit.curves.time_name;
  picture["time_unit"] = fit.curves.time_unit;
  picture["trajectories"] = trajectories;
  picture["outputs"] = outputs;
  return picture;
}

// What is amiss, for who looks at nothing but the result.
std::vector<std::string> warnings_of(const Trained& trained) {
  std::vector<std::string> lines = trained.advice;
  for (const auto& more : {trained.solve_notes, cli::fit_notes(trained.fit.report),
                           cli::note_lines(trained.uncertainty, cli::Notes::harms)}) {
    lines.insert(lines.end(), more.begin(), more.end());
  }
  return lines;
}

// (trajectories' names, times [trajectory][time], states [trajectory][time][component], their data likewise), filled up
// with NaN.
nb::tuple fitted_states_of(const cli::FittedStates& fitted) {
  const std::size_t count = fitted.lengths.size(), n = fitted.components.size();
  const std::size_t width = count == 0 ? 0 : std::ranges::max(fitted.lengths);
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  std::vector<double> times(count * width, nothing), states(count * width * n, nothing), data = states;
  std::size_t row = 0;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t point = 0; point < fitted.lengths[i]; ++point, ++row) {
      times[i * width + point] = fitted.times[row];
      const std::size_t at = (i * width + point) * n;
      std::copy_n(fitted.states.data() + row * n, n, states.data() + at);
      std::copy_n(fitted.data.data() + row * n, n, data.data() + at);
    }
  }
  return nb::make_tuple(fitted.trajectories, to_numpy(times, {count, width}), to_numpy(states, {count, width, n}),
                        to_numpy(data, {count, width, n}));
}

// (standard errors by name, intervals by name, correlations [parameter][parameter], notes, left by nets by name); NaN
// of parameters that the data do not determine.
nb::tuple uncertainty_of(const Trained& trained, Source source) {
  const cli::ParameterReport& report = trained.uncertainty;
  nb::dict errors, intervals, left;
  const std::size_t count = report.refused.empty() ? report.names.size() : 0;
  for (std::size_t i = 0; i < count; ++i) {
    errors[report.names[i].c_str()] = report.found.standard_errors[i];
    intervals[report.names[i].c_str()] = nb::make_tuple(report.found.lower[i], report.found.upper[i]);
    if (!report.found.left_by_nets.empty()) left[report.names[i].c_str()] = report.found.left_by_nets[i];
  }
  std::vector<std::string> notes = report.names.empty() ? cli::fit_notes(trained.fit.report) : cli::note_lines(report);
  notes.insert(notes.begin(), trained.solve_notes.begin(), trained.solve_notes.end());
  if (const std::string& outliers = trained.fit.report.outliers; !outliers.empty()) notes.push_back(outliers);
  return nb::make_tuple(errors, intervals, to_numpy(report.found.correlations, {count, count}),
                        in_users_words(std::move(notes), source), left);
}

using Nets = std::vector<std::pair<std::string, const Net*>>;

// Those that the texts name and the caller has in memory.
void put_in_memory(cli::TrainingFile& file, const Nets& starts, const Nets& models) {
  for (const auto& [name, net] : starts) {
    for (cli::NetSection& section : file.nets) {
      if (section.called == name) section.loaded = net->shared();
    }
  }
  for (const auto& [name, net] : models) {
    for (auto& kept : file.ode->equations->nets) {
      if (kept.name == name) kept.loaded = net->shared();
    }
  }
}

// `data`: x and y [sample][feature], or t [time] or [trajectory][time] and u [trajectory][time][component], filled up
// with NaN behind shorter trajectories; then perhaps the standard deviations of y or u, of their shape; none where the
// file names them. `validation`: likewise x and y that are not trained on, or nothing. `impulses` as read_impulses()
// takes them. `known` [trajectory][parameter]: those that the text's [data] names. `labels` [trajectory]: what people
// call them, or none. Returns (nets by name, values by name, equations or None, history, loss, validation loss or None,
// what the loss is, errors, these as a table for people, uncertainty of the values, advice about the data, what a
// picture of the fit shows, where the fit has the states, what is to be warned of, what stopped it or None). The last
// four go before what a file says, whose own output is not written.
nb::tuple run(const std::string& text, const std::optional<std::filesystem::path>& path,
              const std::vector<Numbers>& data, const std::vector<Numbers>& validation, const Impulses& impulses,
              const std::optional<Numbers>& known, const Labels& labels, const Nets& starts, const Nets& models,
              nb::handle progress, std::optional<std::int64_t> seed, std::optional<int> threads,
              const std::optional<std::filesystem::path>& output, bool overwrite) {
  if (seed && *seed < 0) {
    throw Error(ErrorKind::invalid_argument, {"seed", std::to_string(*seed), "an integer from 0 on", {}});
  }
  const Source source = path ? Source::file : Source::arguments;
  return tell_in_users_words(
      [&] {
        cli::TrainingFile file = path ? cli::read_training_file(*path) : cli::parse_training_file(text, kArguments);
        put_in_memory(file, starts, models);
        override_with({output, "output", overwrite, seed, threads}, file);
        const bool writes = path ? output.has_value() : !file.output.stem.empty();
        if (writes) cli::require_output_name(file);
        Trained trained;
        nb::object stopped = run_watched(progress, [&](const RunControl& control) {
          trained = file.options.precision == Precision::f32
                        ? train_with<float>(file, data, validation, impulses, known, labels, control)
                        : train_with<double>(file, data, validation, impulses, known, labels, control);
          if (writes) write_models(file, trained);
        });
        if (trained.failure && stopped.is_none()) stopped = exception_of(in_users_words(*trained.failure, source));
        nb::dict nets, values;
        for (std::size_t i = 0; i < trained.nets.size(); ++i) {
          nets[file.nets[i].called.c_str()] = Net(std::move(trained.nets[i]));
        }
        for (const cli::TrainedValue& value : trained.values) values[value.name.c_str()] = value.value;
        nb::object equations = nb::none();
        if (trained.equations) equations = nb::cast(Net(std::move(*trained.equations)));
        return nb::make_tuple(nets, values, equations, trained.history.arrays(), trained.loss, trained.validation_loss,
                              trained.loss_text, errors_of(trained.fit.report), lines_of(trained, source),
                              uncertainty_of(trained, source), in_users_words(trained.advice, source),
                              picture_of(trained.fit), fitted_states_of(trained.fit.fitted),
                              in_users_words(warnings_of(trained), source), stopped);
      },
      source);
}

}  // namespace

void bind_train(nb::module_& module) {
  module.def(
      "place_of_word",
      [](const std::string& word, const std::string& kind) -> std::optional<std::pair<std::string, std::string>> {
        const auto place =
            cli::place_of_word(word, kind == "training" ? cli::FileKind::training : cli::FileKind::problem);
        if (!place) return std::nullopt;
        return std::pair(std::string(place->table), std::string(place->key));
      },
      nb::arg("word"), nb::arg("kind"));
  module.def(
      "nearest_name",
      [](const std::string& name, const std::vector<std::string>& known) {
        return nearest_name(name, std::vector<std::string_view>(known.begin(), known.end()));
      },
      nb::arg("name"), nb::arg("known"));
  module.def("phase_keys", [] {
    std::vector<std::string> keys;
    for (const std::string_view key : cli::training_keys::kPhase) keys.emplace_back(key);
    return keys;
  });
  module.def("train", &run, nb::arg("text"), nb::arg("path").none(), nb::arg("data"), nb::arg("validation"),
             nb::arg("impulses").none(), nb::arg("known").none(), nb::arg("labels"), nb::arg("starts"),
             nb::arg("models"), nb::arg("progress").none(), nb::arg("seed") = nb::none(),
             nb::arg("threads") = nb::none(), nb::arg("output") = nb::none(), nb::arg("overwrite") = false);
}

}  // namespace lockstep::python
