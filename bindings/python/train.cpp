#include "bindings/python/train.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/model.h"
#include "bindings/python/solution.h"
#include "bindings/python/users_words.h"
#include "bindings/python/watched.h"
#include "lockstep/cli/file_keys.h"
#include "lockstep/cli/trained_values.h"
#include "lockstep/cli/training_data.h"
#include "lockstep/cli/training_file.h"
#include "lockstep/cli/training_run.h"
#include "lockstep/cli/training_task.h"
#include "lockstep/core/pending_file.h"
#include "lockstep/nn/hdf5_model.h"
#include "lockstep/nn/safetensors.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

using Numbers = nb::ndarray<const double, nb::c_contig, nb::device::cpu>;

std::vector<double> values_of(const Numbers& numbers) { return {numbers.data(), numbers.data() + numbers.size()}; }

enum class MayMiss { no, yes };
void require_finite(const char* name, const Numbers& numbers, MayMiss may_miss = MayMiss::no,
                    const char* remedy = "repair the row or leave it out") {
  const std::size_t row = numbers.size() / std::max<std::size_t>(numbers.shape(0), 1);
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    if (std::isfinite(numbers.data()[i])) continue;
    if (may_miss == MayMiss::yes && std::isnan(numbers.data()[i])) continue;
    throw Error(ErrorKind::invalid_argument,
                {std::string(name) + "[" + std::to_string(i / row) + "]",
                 std::isnan(numbers.data()[i]) ? "NaN" : "infinity", "finite numbers", remedy});
  }
}

// Of each iteration, and of the whole.
struct History {
  std::vector<std::int64_t> iteration;
  std::vector<double> loss, watched, gradient_norm, learning_rate;

  void note(const train::IterationReport& report) {
    iteration.push_back(report.place.total);
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
  cli::FitReport report;
  cli::ParameterReport uncertainty;
  std::vector<std::string> advice;
};

// Whatever happens: what was trained is to be returned all the same.
template <class T>
cli::FitReport judged(cli::TrainingTask<T>& task, std::span<const T> parameters) {
  try {
    return task.judge(parameters).report;
  } catch (const Error& error) {
    cli::FitReport none;
    none.worst = "no errors of the fit: " + std::string(error.what());
    return none;
  }
}

template <class T>
Trained iterate(cli::TrainingTask<T>& task, const RunControl& control) {
  train::Training<T> training(task.phases(), task.start_parameters());
  task.follow(training);
  if (auto validation = task.validation()) training.validate_with(std::move(validation), task.validate_every());
  training.count_left_out([&task] { return task.left_out(); });
  const auto loss = [&](const train::Place& place, std::span<const T> parameters, std::span<T> gradient) {
    return task.loss(place, parameters, gradient);
  };
  Trained trained;
  trained.advice = task.data_advice();
  const auto total = static_cast<std::size_t>(training.total_iterations());
  while (!training.finished() && !control.cancelled()) {
    trained.history.note(training.iterate(loss));
    control.progress(static_cast<std::size_t>(training.place().total), total);
  }
  const std::span<const T> best = training.best_parameters();
  if (std::isfinite(training.best_loss())) {
    trained.uncertainty = task.uncertainty(best);
    trained.report = judged(task, best);
    cli::presuppose_fit(trained.uncertainty, trained.report);
  }
  const auto describe = [&](nn::Model& model) {
    model.metadata["training_data_digest"] = task.data_digest();
    model.metadata["training_iterations"] = std::to_string(training.place().total);
    if (!trained.report.empty()) cli::store(trained.report, model.metadata);
    cli::store(trained.uncertainty, model.metadata);
  };
  trained.nets = task.nets(best);
  for (nn::Model& net : trained.nets) describe(net);
  trained.values = task.values(best);
  trained.equations = task.equations(best);
  if (trained.equations) describe(*trained.equations);
  trained.loss = task.final_loss(best);
  trained.loss_text = task.loss_text() + task.left_out_text();
  trained.validation_loss = task.final_validation_loss(best);
  return trained;
}

MayMiss missing(const cli::DataSection& data, train::MissingNumbers otherwise) {
  return data.missing.value_or(otherwise) == train::MissingNumbers::as_nan ? MayMiss::yes : MayMiss::no;
}

cli::RegressionTable regression_table(const cli::TrainingFile& file, const std::vector<Numbers>& data) {
  const Numbers &x = data[0], &y = data[1];
  require_finite("x", x);
  require_finite("y", y, missing(file.data, train::MissingNumbers::refuse),
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
    return "sigma[" + std::to_string(at / width) + "], of " + table.target_names[at % width];
  });
  return table;
}

cli::TrajectoryTable trajectory_table(const cli::TrainingFile& file, const std::vector<Numbers>& data) {
  const Numbers &t = data[0], &u = data[1];
  require_finite("t", t, MayMiss::yes);
  require_finite("u", u, missing(file.data, train::MissingNumbers::as_nan));
  return cli::trajectory_table({"t", "u", u.shape(0), u.shape(1), values_of(t), values_of(u), "sigma",
                                data.size() > 2 ? values_of(data[2]) : std::vector<double>()},
                               file.data.states, cli::first_numbers(file));
}

template <class T>
Trained train_with(const cli::TrainingFile& file, const std::vector<Numbers>& data, const RunControl& control) {
  std::unique_ptr<cli::TrainingTask<T>> task;
  if (data.empty()) {
    task = file.ode ? cli::make_ode_task<T>(file) : cli::make_regression_task<T>(file);
  } else if (data.size() == 2 && file.data.sigma.one_by_one()) {
    throw Error(ErrorKind::invalid_argument,
                {"sigma", "the name of a column beside arrays", "numbers by name, or an array",
                 "give an array of the shape of the data"});
  } else if (file.ode) {
    task = cli::make_ode_task<T>(file, cli::split(file, trajectory_table(file, data)));
  } else {
    task = cli::make_regression_task<T>(file, cli::split(file, regression_table(file, data)));
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
  if (outputs.system.empty()) return;
  const std::string text = cli::trained_system_text(file, trained.values, trained.uncertainty);
  write_file(outputs.system, std::as_bytes(std::span(text)), existing);
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
    nb::cast<nb::dict>(errors[row.data.c_str()])[row.name.c_str()] = of;
  }
  return errors;
}

std::string lines_of(const Trained& trained) {
  std::string text;
  const std::vector<std::string> failed{trained.report.worst};
  const bool is_judged = !trained.report.empty() || trained.report.worst.empty();
  for (const auto& lines : {cli::table_lines(trained.uncertainty),
                            is_judged ? cli::table_lines(trained.report) : failed, cli::fit_notes(trained.report)}) {
    for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  }
  return text;
}

// (standard errors by name, intervals by name, correlations [parameter][parameter], notes); NaN where the data do not
// determine the parameters.
nb::tuple uncertainty_of(const Trained& trained) {
  const cli::ParameterReport& report = trained.uncertainty;
  nb::dict errors, intervals;
  const std::size_t count = report.refused.empty() ? report.names.size() : 0;
  for (std::size_t i = 0; i < count; ++i) {
    errors[report.names[i].c_str()] = report.found.standard_errors[i];
    intervals[report.names[i].c_str()] = nb::make_tuple(report.found.lower[i], report.found.upper[i]);
  }
  return nb::make_tuple(errors, intervals, to_numpy(report.found.correlations, {count, count}),
                        report.names.empty() ? cli::fit_notes(trained.report) : cli::note_lines(report));
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
// file names them. Returns (nets by name, values by name, equations or None, history, loss, validation loss or None,
// what the loss is, errors, these as a table for people, uncertainty of the values, advice about the data, what stopped
// it or None).
nb::tuple run(const std::string& text, const std::optional<std::filesystem::path>& path,
              const std::vector<Numbers>& data, const Nets& starts, const Nets& models, nb::handle progress) {
  return tell_in_users_words(
      [&] {
        cli::TrainingFile file = path ? cli::read_training_file(*path) : cli::parse_training_file(text, kArguments);
        put_in_memory(file, starts, models);
        Trained trained;
        const nb::object stopped = run_watched(progress, [&](const RunControl& control) {
          trained = file.options.precision == Precision::f32 ? train_with<float>(file, data, control)
                                                             : train_with<double>(file, data, control);
          if (!path && !file.output.stem.empty()) write_models(file, trained);
        });
        nb::dict nets, values;
        for (std::size_t i = 0; i < trained.nets.size(); ++i) {
          nets[file.nets[i].called.c_str()] = Net(std::move(trained.nets[i]));
        }
        for (const cli::TrainedValue& value : trained.values) values[value.name.c_str()] = value.value;
        nb::object equations = nb::none();
        if (trained.equations) equations = nb::cast(Net(std::move(*trained.equations)));
        return nb::make_tuple(nets, values, equations, trained.history.arrays(), trained.loss, trained.validation_loss,
                              trained.loss_text, errors_of(trained.report), lines_of(trained), uncertainty_of(trained),
                              trained.advice, stopped);
      },
      path ? Source::file : Source::arguments);
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
  module.def("phase_keys", [] {
    std::vector<std::string> keys;
    for (const std::string_view key : cli::training_keys::kPhase) keys.emplace_back(key);
    return keys;
  });
  module.def("train", &run, nb::arg("text"), nb::arg("path").none(), nb::arg("data"), nb::arg("starts"),
             nb::arg("models"), nb::arg("progress").none());
}

}  // namespace lockstep::python
