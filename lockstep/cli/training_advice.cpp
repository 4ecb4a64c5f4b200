#include "lockstep/cli/training_advice.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

#include "lockstep/cli/text.h"
#include "lockstep/cli/uneven_spreads.h"
#include "lockstep/nn/guarded_calls.h"
#include "lockstep/train/table.h"

namespace lockstep::cli {
namespace {

// Spreads that differ by more than this leave the smaller with a 10,000th of a sum of squares; numbers that are so far
// from 1 are none that nets learn from.
constexpr double kUnlike = 100;
// A normal distribution has one of these in 1e50 numbers; what has is better known by its order of magnitude.
constexpr double kFarOut = 15;  // deviations
constexpr std::size_t kMostNamed = 6;

struct Column {
  std::string name;
  train::ColumnStatistics of;
};

std::vector<Column> columns_of(const std::vector<std::string>& names, const std::vector<double>& values) {
  std::vector<Column> columns;
  for (std::size_t i = 0; i < names.size(); ++i) {
    columns.push_back({names[i], train::column_statistics(values, names.size(), i)});
  }
  return columns;
}

// "a, b, c and 3 more"
std::string named(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), kMostNamed); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return names.size() <= kMostNamed ? text : text + " and " + std::to_string(names.size() - kMostNamed) + " more";
}

// Columns that float32 rounds by more than a hundredth of their deviation, as it does with days since -4712 or a
// pressure to the millipascal: half a unit in the last place is 2^-24 of a number.
constexpr double kRounded = 1 / 100.0;

void find_rounded(const TrainingFile& file, std::initializer_list<const std::vector<Column>*> columns,
                  std::vector<std::string>& lines) {
  if (file.options.precision != Precision::f32) return;
  std::vector<std::string> rounded;
  for (const std::vector<Column>* const some : columns) {
    for (const auto& [name, of] : *some) {
      const double largest = std::max(std::fabs(of.minimum), std::fabs(of.maximum));
      if (of.minimum < of.maximum && std::ldexp(largest, -24) > kRounded * of.deviation) {
        rounded.push_back(name + " (" + rounded_text(of.mean, 2) + " +- " + rounded_text(of.deviation, 2) + ")");
      }
    }
  }
  if (rounded.empty()) return;
  lines.push_back("float32 rounds away what is to be learned from " + named(rounded) +
                  ": take off what all have in common, or set precision = \"f64\" in [method]");
}

// Numbers whose largest is far from 1.
bool is_far_from_one(const train::ColumnStatistics& of) {
  const double largest = std::max(std::fabs(of.minimum), std::fabs(of.maximum));
  return largest > kUnlike || largest < 1 / kUnlike;
}
std::string sized(const Column& column) {
  return column.name + " (" + rounded_text(std::max(std::fabs(column.of.minimum), std::fabs(column.of.maximum)), 2) +
         ")";
}

// Whether a net has inputs that are far from 1 as it takes them.
class InputSizes {
 public:
  InputSizes(const TrainingFile& file, const std::vector<nn::Model>& nets)
      : is_started_(!nets.empty() && !file.nets.empty() && file.nets[0].start),
        is_known_(file.data.normalisation == Normalisation::none && (!is_started_ || nn::is_stack(nets[0]))) {
    if (is_started_ && is_known_) scaling_ = nn::to_mlp(nets[0]).input_scaling;
  }

  bool are_far(std::size_t input, train::ColumnStatistics of) const {
    if (!is_known_) return false;
    for (double* x : {&of.minimum, &of.maximum}) {
      if (input < scaling_.scale.size()) *x = (*x - scaling_.shift[input]) / scaling_.scale[input];
    }
    return is_far_from_one(of);
  }
  // Of targets nothing is known where the net to start from gives what it was trained to; layers that bend nothing
  // learn any.
  bool knows_targets(const NetSection& net) const { return is_known_ && !is_started_ && !net.hidden.empty(); }
  std::string text(std::vector<std::string> inputs, const std::vector<std::string>& targets = {}) const {
    const std::string what = targets.empty() ? "from inputs" : inputs.empty() ? "targets" : "from inputs and targets";
    inputs.insert(inputs.end(), targets.begin(), targets.end());
    return "nets learn " + what + " of size 1: " + named(inputs) + " are not; " +
           (is_started_ ? "the model to start from was normalised for others, or not at all: train one from the "
                          "beginning, without start and with normalise = \"standard\" in [data]"
                        : "add normalise = \"standard\" to [data]");
  }

 private:
  bool is_started_, is_known_;
  InputScaling scaling_;
};

// Where one of several outputs has most of the loss. Of equations only spreads that leave nothing of the others are
// told: rates are found by what they change, whatever its size.
void compare_spreads(const TrainingFile& file, const std::vector<Column>& columns, std::vector<std::string>& lines) {
  const bool is_net = !file.nets.empty() && !(file.ode && file.ode->equations);
  std::vector<NamedSpread> spreads;
  for (const Column& column : columns) spreads.push_back({column.name, column.of.deviation});
  auto text = uneven_spreads_text(spreads, is_net ? kUneven : kUnlike);
  if (text) lines.push_back(*std::move(text));
}

// Of a net that is called with these over the data.
void add_large_inputs(const nn::Model& net, std::vector<std::string>& large) {
  for (const nn::Feature& input : net.inputs.at(0).features) {
    const Column column{input.name, {.minimum = input.minimum, .maximum = input.maximum}};
    const bool is_known = nn::is_bounded(input) && input.minimum < input.maximum;
    if (is_known && is_far_from_one(column.of)) large.push_back(sized(column));
  }
}

// Whether some trajectory meets one of its impulses; one at its end comes too late.
bool meets_impulses(const TrajectoryTable& table) {
  for (std::size_t i = 0, row = 0; i < table.impulses.size(); row += table.lengths[i++]) {
    const double start = table.times[row], end = table.times[row + table.lengths[i] - 1];
    for (const ode::Impulse& impulse : table.impulses[i]) {
      if (impulse.time >= start && impulse.time < end) return true;
    }
  }
  return false;
}

}  // namespace

std::vector<std::string> advice(const TrainingFile& file, const RegressionTable& table,
                                const std::vector<nn::Model>& nets) {
  std::vector<std::string> lines, constant, large, large_targets, skewed;
  const InputSizes sizes(file, nets);
  const std::vector<Column> columns = columns_of(table.input_names, table.inputs);
  const std::vector<Column> targets = columns_of(table.target_names, table.targets);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const Column& column = columns[i];
    const auto& of = column.of;
    if (of.minimum == of.maximum) {
      constant.push_back(column.name);
    } else if (sizes.are_far(i, of)) {
      large.push_back(sized(column));
    } else if (of.minimum > 0 && of.maximum - of.mean > kFarOut * of.deviation) {
      skewed.push_back(column.name);
    }
  }
  for (const Column& target : targets) {
    const bool varies = target.of.minimum < target.of.maximum;
    if (varies && sizes.knows_targets(file.nets.at(0)) && is_far_from_one(target.of)) {
      large_targets.push_back(sized(target));
    }
  }
  find_rounded(file, {&columns, &targets}, lines);
  if (!constant.empty()) lines.push_back("nothing can be learned from inputs that do not vary: " + named(constant));
  if (!large.empty() || !large_targets.empty()) lines.push_back(sizes.text(large, large_targets));
  if (!skewed.empty()) {
    lines.push_back("inputs of which few values lie far above all others are better given as logarithms: " +
                    named(skewed));
  }
  if (table.sigma.empty()) compare_spreads(file, targets, lines);
  return lines;
}

std::vector<std::string> advice(const TrainingFile& file, const TrajectoryTable& table,
                                const std::vector<nn::Model>& nets) {
  std::vector<std::string> lines;
  std::string normalise = normalise_advice(file, table, nets);
  if (!normalise.empty()) lines.push_back(std::move(normalise));
  const std::vector<Column> columns = columns_of(table.component_names, table.states);
  find_rounded(file, {&columns}, lines);
  if (file.data.sigma.empty()) compare_spreads(file, columns, lines);
  const auto has_some = [](const std::vector<ode::Impulse>& impulses) { return !impulses.empty(); };
  if (std::ranges::any_of(table.impulses, has_some) && !meets_impulses(table)) {
    lines.push_back("no impulse lies between the first and the last point of its trajectory: they change nothing");
  }
  return lines;
}

std::optional<std::string> renamed_note(const std::vector<std::string>& components,
                                        const std::vector<std::string>& states) {
  std::vector<std::string> renamed;
  for (std::size_t c = 0; c < std::min(components.size(), states.size()); ++c) {
    if (states[c] != components[c]) renamed.push_back(states[c] + " is " + components[c]);
  }
  if (renamed.empty()) return std::nullopt;
  return "states are components by their places: " + named(renamed);
}

std::string advice_on_end(const TrainingFile& file, const train::IterationReport& last) {
  if (file.options.precision != Precision::f32 || !last.phase_ended || !last.stalled) return {};
  return "the last phase ended where steps win no more than float32 rounds: to go on from there, set precision = "
         "\"f64\" in [method]";
}

std::string normalise_advice(const TrainingFile& file, const TrajectoryTable& table,
                             const std::vector<nn::Model>& nets) {
  if (file.nets.empty() || !file.ode) return {};
  const InputSizes sizes(file, nets);
  std::vector<std::string> large;
  if (file.ode->equations) {  // what its nets are called with over the data is the range of their inputs
    if (file.data.normalisation != Normalisation::none) return {};
    for (std::size_t net = 0; net < std::min(nets.size(), file.nets.size()); ++net) {
      if (!file.nets[net].start) add_large_inputs(nets[net], large);
    }
    return large.empty() ? "" : sizes.text(large);
  }
  const std::vector<Column> columns = columns_of(table.component_names, table.states);
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const train::ColumnStatistics& of = columns[i].of;
    if (of.minimum < of.maximum && sizes.are_far(i, of)) large.push_back(sized(columns[i]));
  }
  return large.empty() ? "" : sizes.text(large);
}

}  // namespace lockstep::cli
