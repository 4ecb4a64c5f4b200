#include "lockstep/cli/evaluate_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "lockstep/cli/column_names.h"
#include "lockstep/cli/data_file.h"
#include "lockstep/cli/data_numbers.h"
#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/meant_numbers.h"
#include "lockstep/cli/refuse.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

// HDF5 takes a slash in a name for a path. `beside_each` ends the name of one more dataset for each port.
std::vector<std::string> dataset_names(const std::vector<nn::Port>& ports, const std::string& model,
                                       const char* beside_each = nullptr) {
  std::vector<std::string> names;
  std::map<std::string, std::string> taken;  // by which port
  for (const nn::Port& port : ports) {
    std::string name = port.name;
    std::replace(name.begin(), name.end(), '/', '_');
    for (const std::string& one : {name, beside_each ? name + beside_each : name}) {
      const auto [found, is_new] = taken.emplace(one, port.name);
      if (is_new || found->second == port.name) continue;
      refuse(model + ": ports \"" + found->second + "\" and \"" + port.name + '"', "one dataset for both, " + one,
             "names that differ", "rename one of them in the net, or evaluate it from Python, C or C++");
    }
    names.push_back(std::move(name));
  }
  return names;
}

std::vector<std::string> answer_names(const nn::Port& port) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < port.features.size(); ++i) {
    names.push_back(port.features[i].name.empty() ? "y" + std::to_string(i) : port.features[i].name);
  }
  return names;
}

template <class T>
class Hdf5Samples : public SampleSource<T> {
 public:
  Hdf5Samples(const std::filesystem::path& path, const std::string& name, const nn::Model& model,
              const std::filesystem::path& model_path)
      : file_(hdf5::File::open(path)) {
    const bool several = model.inputs.size() > 1;
    const std::vector<std::string> names =
        several ? dataset_names(model.inputs, model_path.string()) : std::vector{name};
    for (const nn::Port& port : model.inputs) {
      const std::size_t features = port.features.size();
      const std::string& own_name = names[ports_.size()];
      require_there(own_name, several ? "port " + port.name : "");
      MeantNumbers numbers(file_.dataset(own_name));
      const hdf5::Dataset& dataset = numbers.dataset();
      const hdf5::Shape shape = dataset.shape();
      const bool one_dimension = shape.size() == 1 && features == 1;
      std::vector<std::size_t> columns;
      if (shape.size() == 2) {
        columns = columns_by_name(port, column_names(file_, own_name, several ? own_name + "_feature" : "feature"),
                                  dataset.name(), model_path);
      }
      if (!one_dimension && columns.empty() && (shape.size() != 2 || shape[1] != features)) {
        refuse(dataset.name(),
               counted_text(shape.size() == 2 ? shape[1] : shape.size(), shape.size() == 2 ? "column" : "dimension"),
               "[sample, feature] with " + std::to_string(features) + " columns, " +
                   (several ? "port " + port.name : "the inputs") + " of " + model_path.string(),
               is_by_matlab(dataset)                       ? kTransposeInMatlab
               : shape.size() == 2 && shape[0] == features ? "transpose it"
                                                           : "");
      }
      if (!ports_.empty() && shape[0] != samples()) {
        refuse(dataset.name(), std::to_string(shape[0]) + " samples",
               std::to_string(samples()) + ", as " + ports_[0].numbers.dataset().name() + " has");
      }
      ports_.push_back({one_dimension ? 1 : shape[1], std::move(numbers), one_dimension, std::move(columns)});
    }
  }

  std::size_t samples() const override { return ports_[0].numbers.dataset().shape()[0]; }
  std::vector<T> read(std::size_t port, std::size_t first, std::size_t count) override {
    return read_as<T>(port, first, count);
  }
  std::vector<double> read_exactly(std::size_t port, std::size_t first, std::size_t count) override {
    return read_as<double>(port, first, count);
  }
  std::string place(std::size_t port, std::size_t sample) const override {
    return ports_[port].numbers.dataset().name() + ", row " + std::to_string(sample);
  }

 private:
  template <class Number>
  std::vector<Number> read_as(std::size_t port, std::size_t first, std::size_t count) const {
    const auto& [width, numbers, one_dimension, columns] = ports_[port];
    if (one_dimension) return numbers.template read<Number>({first}, {count});
    std::vector<Number> stored = numbers.template read<Number>({first, 0}, {count, width});
    if (columns.empty()) return stored;
    std::vector<Number> values;
    values.reserve(count * columns.size());
    for (std::size_t row = 0; row < count; ++row) {
      for (const std::size_t column : columns) values.push_back(stored[row * width + column]);
    }
    return values;
  }

  // [feature]: its column; none where they are taken in their order.
  static std::vector<std::size_t> columns_by_name(const nn::Port& port, const std::vector<std::string>& names,
                                                  const std::string& dataset, const std::filesystem::path& model_path) {
    std::vector<std::string> wanted;
    for (const nn::Feature& feature : port.features) wanted.push_back(feature.name);
    const bool all_named = std::ranges::none_of(wanted, [](const std::string& name) { return name.empty(); });
    if (names.empty() || !all_named || wanted == names || go_by_position(wanted, names)) return {};
    std::vector<std::size_t> columns;
    for (const std::string& name : wanted) {
      const auto found = std::ranges::find(names, name);
      if (found == names.end()) {
        refuse(dataset, "columns " + list_text(std::vector<std::string_view>(names.begin(), names.end())),
               "one called \"" + name + "\", an input of " + model_path.string(),
               "give its column that name, or leave out the names of all to have them taken in their order");
      }
      columns.push_back(static_cast<std::size_t>(found - names.begin()));
    }
    return columns;
  }

  void require_there(const std::string& name, const std::string& port) const {
    if (!name.empty() && file_.has(name)) return;
    const std::vector<std::string> names = lockstep::cli::dataset_names(file_);
    const std::vector<std::string_view> known(names.begin(), names.end());
    refuse(file_.path().string(), "no dataset \"" + name + '"', "one for " + (port.empty() ? "the inputs" : port),
           known.empty()  ? "the file has none"
           : port.empty() ? "choose with --input-dataset among " + list_text(known)
                          : "the file has " + list_text(known));
  }

  struct Port {
    std::size_t width;  // columns of the dataset
    MeantNumbers numbers;
    bool one_dimension;                // [sample], for ports of one feature
    std::vector<std::size_t> columns;  // [feature]; none: all in their order
  };
  hdf5::File file_;
  std::vector<Port> ports_;
};

template <class T>
class TableSamples : public SampleSource<T> {
 public:
  TableSamples(const std::filesystem::path& path, const nn::Model& model, const std::filesystem::path& model_path)
      : table_(train::read_csv(path)) {
    std::vector<std::string> names;
    bool all_named = true;
    for (const nn::Port& port : model.inputs) {
      for (const nn::Feature& feature : port.features) {
        names.push_back(feature.name);
        all_named = all_named && !feature.name.empty();
      }
    }
    const std::vector<std::string_view> known(table_.columns.begin(), table_.columns.end());
    if (!all_named) names = columns_for_unnamed(known, names.size(), model_path.string());
    for (const std::string& name : names) {
      if (std::ranges::find(known, name) != known.end()) continue;
      const std::string blanks = train::advice_on_blanks(table_);
      refuse(table_.source, "no column \"" + name + "\", an input of " + model_path.string(),
             "a column called as each input", blanks.empty() ? did_you_mean(name, known) : blanks);
    }
    std::size_t at = 0;
    for (const nn::Port& port : model.inputs) {
      std::vector<std::size_t>& columns = ports_.emplace_back();
      for (std::size_t i = 0; i < port.features.size(); ++i)
        columns.push_back(table_.column(table_.source, names[at++]));
    }
  }

  std::size_t samples() const override { return table_.rows; }
  std::vector<T> read(std::size_t port, std::size_t first, std::size_t count) override {
    return read_as<T>(port, first, count);
  }
  std::vector<double> read_exactly(std::size_t port, std::size_t first, std::size_t count) override {
    return read_as<double>(port, first, count);
  }
  std::string place(std::size_t, std::size_t sample) const override {
    return table_.source + ":" + std::to_string(table_.lines[sample]);
  }
  std::string note() const override { return note_; }

 private:
  std::vector<std::string> columns_for_unnamed(const std::vector<std::string_view>& known, std::size_t inputs,
                                               const std::string& model) {
    std::optional<UnnamedColumns> columns = cli::columns_for_unnamed(table_, inputs, model);
    if (!columns) {
      refuse(table_.source, counted_text(known.size(), "column"),
             std::to_string(inputs) + " in the order of the inputs of " + model + ", which have no names",
             inputs == 1 ? "or call one x0" : "or call them x0 to x" + std::to_string(inputs - 1));
    }
    note_ = std::move(columns->note);
    return std::move(columns->names);
  }

  template <class Number>
  std::vector<Number> read_as(std::size_t port, std::size_t first, std::size_t count) const {
    std::vector<Number> rows;
    for (std::size_t row = first; row < first + count; ++row) {
      for (const std::size_t column : ports_[port]) rows.push_back(static_cast<Number>(table_(row, column)));
    }
    return rows;
  }

  train::Table table_;
  std::vector<std::vector<std::size_t>> ports_;  // [port][feature]: the column
  std::string note_;
};

template <class T>
class Hdf5Answers : public AnswerSink<T> {
 public:
  Hdf5Answers(const AnswerFile& of, const nn::Model& model)
      : file_(
            hdf5::File::create(of.path, of.existing, of.samples * total_width(model.outputs) * sizeof(T) + (1 << 16))) {
    const bool several = model.outputs.size() > 1;
    const std::vector<std::string> names =
        several ? dataset_names(model.outputs, model.provenance.source, "_feature") : std::vector{of.dataset};
    for (const nn::Port& port : model.outputs) {
      const std::size_t width = port.features.size();
      const std::string& name = names[ports_.size()];
      hdf5::Dataset dataset = file_.create_dataset<T>(name, {of.samples, width});
      if (!several || width > 1) {
        const std::string scale = several ? name + "_feature" : "feature";
        hdf5::Dataset features = file_.create_strings(scale, answer_names(port));
        features.make_scale(scale);
        dataset.attach_scale(1, features);
      }
      ports_.push_back({width, std::move(dataset)});
    }
    for (const auto& [name, value] : of.attributes) file_.set_attribute(name, value);
    if (of.has_flags) flags_ = file_.create_dataset<std::uint8_t>(kOutsideRange, {of.samples});
    file_.reserve_space();
  }

  void write(std::span<const std::vector<T>> ports, std::span<const std::uint8_t> flags) override {
    for (std::size_t i = 0; i < ports.size(); ++i) {
      ports_[i].second.template write<T>(ports[i], {written_, 0}, {flags.size(), ports_[i].first});
    }
    if (flags_) flags_->write<std::uint8_t>(flags, {written_}, {flags.size()});
    written_ += flags.size();
  }
  void publish() override { file_.publish(); }

 private:
  hdf5::File file_;
  std::vector<std::pair<std::size_t, hdf5::Dataset>> ports_;  // width, dataset
  std::optional<hdf5::Dataset> flags_;
  std::size_t written_ = 0;
};

template <class T>
class TableAnswers : public AnswerSink<T> {
 public:
  TableAnswers(const AnswerFile& of, const nn::Model& model) : of_(of) {
    for (const nn::Port& port : model.outputs) {
      for (const std::string& name : answer_names(port)) {
        text_ += (text_.empty() ? "" : ",") + csv_field(model.outputs.size() > 1 ? port.name + "." + name : name);
      }
    }
    text_ += of.has_flags ? std::string(",") + kOutsideRange + "\n" : "\n";
  }

  void write(std::span<const std::vector<T>> ports, std::span<const std::uint8_t> flags) override {
    std::array<char, 32> number{};
    for (std::size_t row = 0; row < flags.size(); ++row) {
      bool first = true;
      for (const std::vector<T>& port : ports) {
        const std::size_t width = port.size() / flags.size();
        for (std::size_t i = 0; i < width; ++i, first = false) {
          const auto end = std::to_chars(number.begin(), number.end(), port[row * width + i]).ptr;
          if (!first) text_ += ',';
          text_.append(number.begin(), end);
        }
      }
      if (of_.has_flags) text_ += flags[row] != 0 ? ",1" : ",0";
      text_ += '\n';
    }
  }
  void publish() override { write_file(of_.path, std::as_bytes(std::span(text_)), of_.existing); }

 private:
  AnswerFile of_;
  std::string text_;
};

}  // namespace

std::size_t total_width(const std::vector<nn::Port>& ports) {
  std::size_t sum = 0;
  for (const nn::Port& port : ports) sum += port.features.size();
  return sum;
}

template <class T>
std::unique_ptr<SampleSource<T>> open_samples(const std::filesystem::path& path, const std::string& dataset,
                                              const nn::Model& model, const std::filesystem::path& model_path) {
  static constexpr std::array<const char*, 3> kEndings{".h5", ".hdf5", ".nc"};
  const bool is_called_hdf5 = std::ranges::find(kEndings, path.extension()) != kEndings.end();
  if (is_called_hdf5 || hdf5::File::recognises(path)) {
    return std::make_unique<Hdf5Samples<T>>(path, dataset, model, model_path);
  }
  return std::make_unique<TableSamples<T>>(path, model, model_path);
}

template <class T>
std::unique_ptr<AnswerSink<T>> create_answers(const AnswerFile& file, const nn::Model& model) {
  if (is_csv_name(file.path)) return std::make_unique<TableAnswers<T>>(file, model);
  if (file.dataset.empty() || file.dataset.find('/') != file.dataset.npos) {
    refuse("--output-dataset", '"' + file.dataset + '"', "a name without /, for a dataset at the file's top");
  }
  return std::make_unique<Hdf5Answers<T>>(file, model);
}

template std::unique_ptr<SampleSource<float>> open_samples(const std::filesystem::path&, const std::string&,
                                                           const nn::Model&, const std::filesystem::path&);
template std::unique_ptr<SampleSource<double>> open_samples(const std::filesystem::path&, const std::string&,
                                                            const nn::Model&, const std::filesystem::path&);
template std::unique_ptr<AnswerSink<float>> create_answers(const AnswerFile&, const nn::Model&);
template std::unique_ptr<AnswerSink<double>> create_answers(const AnswerFile&, const nn::Model&);

}  // namespace lockstep::cli
