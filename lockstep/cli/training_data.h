// The numbers a training learns from, read from CSV or HDF5, checked, split and normalised.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "lockstep/cli/training_file.h"
#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/nn/model.h"
#include "lockstep/ode/problem.h"

namespace lockstep::cli {

// Inputs and targets of a regression, row by row.
struct RegressionTable {
  std::vector<std::string> input_names, target_names;
  std::vector<double> inputs;   // [row][input]
  std::vector<double> targets;  // [row][target]; NaN where one is missing
  std::vector<std::string> input_units, target_units;  // likewise; each empty where it is not known
  std::vector<double> sigma = {};                      // [row][target], the targets' standard deviations; or empty
  std::size_t rows() const { return inputs.size() / input_names.size(); }
};

// Trajectories, without gaps between them; a solve starts at the first point.
struct TrajectoryTable {
  std::vector<std::string> component_names;
  std::vector<std::size_t> lengths;  // [trajectory], points of each
  std::vector<double> times;         // [trajectory][time]
  std::vector<double> states;        // [trajectory][time][component]; NaN where a component was not measured
  std::vector<double> sigma;         // likewise, the standard deviation of each; or empty
  std::vector<std::size_t> numbers;  // [trajectory], counted through the file; empty: 0, 1, ...
  std::vector<std::string> names;    // [trajectory], of a column of texts or numbers; or empty
  std::vector<std::string> component_units;  // [component], or empty; each empty where it is not known
  std::string time_name = "t", time_unit;
  std::string resets;                               // of a solve whose result these are, for people; "" without
  std::vector<std::string> known_names;             // of parameters that are known, each trajectory's own
  std::vector<double> known;                        // [trajectory][known parameter]
  std::vector<std::vector<ode::Impulse>> impulses;  // [trajectory], as ode::TrajectoryData has them; or empty
  std::size_t trajectories() const { return lengths.size(); }
  bool have_one_length() const;
  std::size_t number(std::size_t trajectory) const { return numbers.empty() ? trajectory : numbers[trajectory]; }
  // What people call it.
  std::string name(std::size_t trajectory) const {
    return names.empty() ? std::to_string(number(trajectory)) : names[trajectory];
  }
};

struct RegressionData {
  RegressionTable training, validation;  // validation may have no rows
  std::string digest;                    // of all numbers, as read
  std::size_t without_targets = 0;       // rows that were left out, having no target at all
};
struct TrajectoryData {
  TrajectoryTable training, validation;
  std::string digest;
  std::vector<std::string> notes;  // for people
};

// The split takes a fixed share drawn by the net's seed. Throws Error naming file and place: columns or datasets that
// are missing or do not fit together, numbers that are not finite (by row), times that do not ascend.
RegressionData load_regression(const TrainingFile& file);
TrajectoryData load_trajectories(const TrainingFile& file);
// Trajectories out of rectangles: states [trajectory][time][component] and times [time], or [trajectory][time]. A
// trajectory ends before the points at which it has no time or no state at all to its rectangle's end: NaN. `where` is
// what messages call times, states and their standard deviations, of which there are as many as states, or none. Throws
// Error as load_trajectories().
struct Rectangles {
  std::string where_times, where_states;
  std::size_t trajectories = 0, points = 0;
  std::vector<double> times, states;
  std::string where_sigma = {};
  std::vector<double> sigma = {};
  std::vector<std::string> names = {};  // [trajectory], what people call them; or none
};
// What first points may lack: all of their numbers, or those of states whose starts are given.
struct FirstNumbers {
  ode::FirstPoints points = ode::FirstPoints::complete;
  StartsSection given = {};
  std::vector<std::string> parameters = {};  // of the right-hand side, by name
  std::vector<std::string> states = {};      // likewise; or none
};
FirstNumbers first_numbers(const TrainingFile& file);
TrajectoryTable trajectory_table(const Rectangles& data, std::vector<std::string> component_names,
                                 const FirstNumbers& first = {});
// The same split of numbers that a caller has in memory. Units that the file names go before those of the table.
// `validation`: with rows of their own for that, of which none is trained on; their columns are those of `all`. Of
// trajectories the last `own` are kept.
RegressionData split(const TrainingFile& file, const RegressionTable& all, const RegressionTable* validation = nullptr);
TrajectoryData split(const TrainingFile& file, const TrajectoryTable& all, std::size_t own = 0);

// What a net of these features needs: scaling from the columns' statistics (of values [row][feature]), and the range
// each column covers with a hundredth of its width more on either side, as the port's guard: a net that fits a closed
// orbit goes around beside the data's, not on it.
InputScaling input_scaling(Normalisation normalisation, const std::vector<double>& values, std::size_t features);
OutputScaling output_scaling(Normalisation normalisation, const std::vector<double>& values, std::size_t features);
// Their units as well, where there are any.
std::vector<nn::Feature> features(const std::vector<std::string>& names, const std::vector<double>& values,
                                  const std::vector<std::string>& units = {});

}  // namespace lockstep::cli
