// How good a fit is: the error of each component or output, in its own unit, over training and validation data.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/train/errors.h"

namespace lockstep::cli {

struct FitReport {
  struct Row {
    std::string data;  // "training" or "validation"
    std::string name, unit;
    train::ColumnErrors errors;
    std::string largest_at;  // "trajectory 3, t = 2.5"
  };
  std::vector<Row> rows;
  // "trajectory 3 of the training data (RMS 2.1 % of the spread), 5 of the validation data (3.4 %)"; or empty.
  std::string worst;
  // Of Huber's loss: what its thresholds are, how many numbers of the training data lie beyond them, and where the
  // farthest are; or empty.
  std::string outliers;
  // Of what the training knows besides, for notes alone; not stored.
  std::vector<std::string> beyond_sigma;  // "x 12 sigma": RMS over training data of what misses a stated sigma by far
  std::string bounded_loss = {};          // another loss, in which single numbers would count for less; or empty
  bool exact_starts = false;              // trajectories start at measured first points

  bool empty() const { return rows.empty(); }
  std::size_t outputs() const;  // of one kind of data
  bool has_sigma() const;       // that measurements have standard deviations
  bool has_threshold() const;   // that the loss has one
};

inline constexpr const char* kErrorsKey = "training_errors";  // in a model's metadata
inline constexpr const char* kWorstKey = "training_worst";    // likewise
inline constexpr const char* kOutliersKey = "training_outliers";  // likewise

// As the metadata hold it: a CSV with a line for each row.
std::string to_csv(const FitReport& report);
void store(const FitReport& report, std::map<std::string, std::string>& metadata);
// Nothing where that is no such table.
std::optional<FitReport> parse_fit_report(std::string_view csv, std::string_view worst, std::string_view outliers = {});

// For people: aligned columns, the rows of each kind of data below each other; of many the worst. None of an empty one.
std::vector<std::string> table_lines(const FitReport& report);

std::string percent_text(double share);  // "2.1 %"

// From this RMS on, as a share of the spread, a fit explains little: less than a fifth of the variance.
inline constexpr double kExplainsLittle = 0.9;

// The training data that a fit explains little of, of those that vary: "x 142 %, v 627 %". Not where the RMS is what
// the measurements' standard deviations say of them, nor where a fit by Huber's loss explains those that are within its
// thresholds, half of them at least.
struct Unexplained {
  std::vector<std::string> outputs;  // "x 142 %"; of many the first
  bool all = false;                  // whatever varies
  std::string text() const;          // "RMS of x 142 %, v 627 % of the spread"
};
Unexplained unexplained(const FitReport& report);

// From this many standard deviations on, those stated of the measurements, a fit does not describe the data.
inline constexpr double kBeyondSigma = 3;

// What helps where a fit is bad and first points were taken to be exact.
inline constexpr const char* kNoisyStarts = "first points taken to be exact: phases = \"noisy\" trains them";

// What to say below the table: nothing of a fit that explains its data. Of a bad one what may have made it so: single
// numbers, first points.
std::vector<std::string> fit_notes(const FitReport& report);

}  // namespace lockstep::cli
