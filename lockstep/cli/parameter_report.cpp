#include "lockstep/cli/parameter_report.h"

#include <algorithm>
#include <cmath>

#include "lockstep/cli/derivative_notes.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kMostCorrelated = 8;  // parameters whose correlations are printed
constexpr double kFarFromOptimum = 0.1;     // standard errors

bool is_at_bound(const ParameterReport& report, std::size_t i) {
  return !report.found.at_bound.empty() && report.found.at_bound[i] != ode::ParameterUncertainty::Bound::none;
}

// All that there are, or some: those of parameters that the data determine.
bool has_errors(const ParameterReport& report) {
  if (!report.refused.empty()) return false;
  return report.found.undetermined.empty() ||
         std::ranges::any_of(report.found.standard_errors, [](double error) { return !std::isnan(error); });
}

using Nets = ode::ParameterUncertainty::Nets;

// How much of each parameter's effect the nets leave to it: "12 % of k, 80 % of q".
std::string left_text(const ParameterReport& report) {
  std::string text;
  for (std::size_t i = 0; i < report.names.size(); ++i) {
    const double left = report.found.left_by_nets[i];
    if (std::isnan(left)) continue;
    text += (text.empty() ? "" : ", ") + (left == 0 ? "nothing" : percent_text(left)) + " of " + report.names[i];
  }
  return text;
}

// Numbers to the second digit of their error.
struct Rounding {
  explicit Rounding(double error) {
    if (error > 0 && std::isfinite(error)) decimals = 1 - static_cast<int>(std::floor(std::log10(error)));
  }
  std::string operator()(double value) const {
    if (decimals >= 0 && decimals <= 8 && std::abs(value) < 1e9) return fixed_text(value, decimals);
    const int leading = value == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(value))));
    return scientific_text(value, std::clamp(leading + decimals, 1, 16));
  }
  int decimals = 6;
};

// "a 1 % up, b 1 % down"
std::string change_text(const ParameterReport& report, const std::vector<double>& change) {
  constexpr double kPart = 1e-3;  // of the largest
  std::string text;
  for (std::size_t i = 0; i < change.size(); ++i) {
    const double value = report.found.values[i];
    const double relative = value == 0 ? change[i] : change[i] / std::abs(value);
    if (std::abs(relative) < kPart) continue;
    const std::string size =
        value == 0 ? rounded_text(std::abs(relative), 3) : rounded_text(std::abs(relative), 3) + " %";
    text += (text.empty() ? "" : ", ") + report.names[i] + " " + size + (relative > 0 ? " up" : " down");
  }
  return text;
}

// Chi-square as a normal number, by the cube root of Wilson & Hilferty (PNAS 17 (1931) 684): 0 on average, deviation 1.
double normal_of(double reduced_chi_square, double freedom) {
  const double variance = 2 / (9 * freedom);
  return (std::cbrt(reduced_chi_square) - (1 - variance)) / std::sqrt(variance);
}

// Behind a line on a bad fit.
std::string noisy_text(const ParameterReport& report) {
  return are_exact(report.starts) ? std::string("; ") + kNoisyStarts : std::string();
}

// Where what the fit leaves is not what sigma says of the measurements.
void append_misfit(const ParameterReport& report, std::vector<std::string>& lines) {
  constexpr double kUnlikely = 3;  // deviations: one fit of 700
  const ode::ParameterUncertainty& found = report.found;
  const bool is_far = found.deviation > kBeyondSigma;
  // Chi-square is of errors that are all normal.
  const bool has_chi_square = report.stated_errors && !report.huber_threshold;
  const std::string factor = rounded_text(found.deviation, 3);
  const std::string misses = "the fit misses the data by " + factor + " times what sigma says: ";
  const std::string far =
      "the model does not describe them within the stated sigma, and errors and intervals assume that it does";
  if (!has_chi_square) {
    if (is_far)
      lines.push_back(misses + far + "; where sigma tells ratios alone, say so: absolute_sigma = false" +
                      noisy_text(report));
    return;
  }
  const double normal =
      normal_of(found.deviation * found.deviation, static_cast<double>(found.numbers - found.unknowns));
  if (std::abs(normal) < kUnlikely) return;
  const std::string from_fit = "; absolute_sigma = false takes the size of the errors from the fit";
  if (normal > 0) {
    lines.push_back(misses + (is_far ? far + ": it lacks something" : "the model lacks something") +
                    ", or sigma is too small" + from_fit + noisy_text(report));
  } else {
    lines.push_back("the data lie nearer to the fit than sigma says, by a factor of " + factor +
                    ": sigma may be too large" + from_fit);
  }
}

std::string unconverged_text(const ParameterReport& report, double distance) {
  return std::string("the fit has not converged, and so has no errors or intervals: the least ") +
         (report.huber_threshold ? "loss" : "sum of squares") + " of whole trajectories lies about " +
         rounded_text(distance, 2) +
         " standard errors away; end with a phase of whole trajectories by lbfgs, in float64, give it more iterations "
         "or a larger history, or start nearer";
}

std::size_t places(const std::string& text) {
  return static_cast<std::size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string starts_text(StartsOf starts, Nets nets) {
  const bool let_go = nets == Nets::let_go;
  const std::string weights = let_go ? ", weights of nets among them" : "";
  switch (starts) {
    case StartsOf::data:
      return weights + "; " + kNoisyStarts;
    case StartsOf::data_and_file:
      return weights + "; other " + kNoisyStarts;
    case StartsOf::file:
      return weights;
    case StartsOf::fit:
      break;
  }
  return let_go ? ", starts and weights of nets among them" : ", starts among them";
}

std::string strongest_text(const ParameterReport& report) {
  const std::size_t count = report.names.size();
  std::size_t first = 0, second = 1;
  const auto correlation = [&](std::size_t i, std::size_t j) { return report.found.correlations[i * count + j]; };
  double strongest = -1;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t j = i + 1; j < count; ++j) {
      if (!(std::abs(correlation(i, j)) > strongest)) continue;  // also where one is at a bound and has none
      strongest = std::abs(correlation(i, j));
      first = i, second = j;
    }
  }
  if (strongest < 0) return "no two parameters are determined";
  return "strongest correlation: " + report.names[first] + " with " + report.names[second] + ", " +
         fixed_text(correlation(first, second), 2);
}

}  // namespace

std::string to_csv(const ParameterReport& report) {
  const std::size_t count = report.names.size();
  std::string text = "name,value,standard_error,lower,upper";
  for (const std::string& name : report.names) text += "," + csv_field("correlation_" + name);
  text += "\n";
  for (std::size_t i = 0; i < count; ++i) {
    text += csv_field(report.names[i]) + "," + number_text(report.found.values[i]);
    const auto add = [&](double number) { text += "," + (std::isfinite(number) ? number_text(number) : "nan"); };
    add(report.found.standard_errors[i]);
    add(report.found.lower[i]);
    add(report.found.upper[i]);
    for (std::size_t j = 0; j < count; ++j) add(report.found.correlations[i * count + j]);
    text += "\n";
  }
  return text;
}

void presuppose_fit(ParameterReport& report, const FitReport& fit) {
  const Unexplained found = unexplained(fit);
  if (report.names.empty() || !report.refused.empty() || found.outputs.empty()) return;
  if (!found.all || !has_errors(report)) {
    report.unexplained = found.text();
    return;
  }
  report.found = {};
  report.refused = "they and intervals presuppose a fit, and this one explains little of the data, or nothing (" +
                   found.text() + "); start elsewhere, train for longer or change the model" + noisy_text(report);
}

void presuppose_minimum(ParameterReport& report, FitReport& fit) {
  // Nets are seldom trained to the last. Beside them the least sum may lie a standard error off, but not beyond the
  // interval.
  const double most = report.found.nets == Nets::none ? 1 : 2;  // standard errors
  const double distance = report.found.resolved_distance;
  if (report.names.empty() || !report.refused.empty() || !(distance > most)) return;
  report.found = {};
  report.unexplained.clear();
  report.unconverged = true;
  report.refused = unconverged_text(report, distance);
  fit.beyond_sigma.clear();
}

std::vector<std::string> note_lines(const ParameterReport& report, Notes which) {
  std::vector<std::string> lines;
  const auto tell = [&](std::string line) {  // what is amiss is said in any case
    if (which == Notes::all) lines.push_back(std::move(line));
  };
  if (report.unconverged) lines.push_back(report.refused);
  for (const std::string& name : report.jumps) {
    lines.push_back(moved_jump_text("training", name));
  }
  if (report.jumps_at_states) {
    lines.push_back(
        state_jump_text("the fit may be short of the best one, and errors and intervals too small or missing"));
  }
  if (!report.refused.empty()) {
    if (!report.unconverged) tell("no standard errors: " + report.refused);
    return lines;
  }
  const ode::ParameterUncertainty& found = report.found;
  for (const std::vector<double>& change : found.undetermined) {
    const bool jumps = report.jumps_at_states || !report.jumps.empty();
    const std::string before = jumps                        ? "to derivatives, which see no jump move, "
                               : found.nets == Nets::let_go ? "beside nets that can make up for it, "
                                                            : "";
    lines.push_back(before + "the data do not determine the parameters: " + change_text(report, change) +
                    (jumps ? " has no slope" : " leaves the fit as it is"));
  }
  if (!report.unexplained.empty()) {
    lines.push_back("the fit explains little of some data, or nothing (" + report.unexplained +
                    "): errors and intervals presuppose one that does" + noisy_text(report));
  }
  if (!has_errors(report)) return lines;
  const std::size_t count = report.names.size();
  if (count > kMostCorrelated) tell(strongest_text(report));
  const std::string beyond =
      report.huber_threshold ? ", " + count_text(found.beyond) + " of them beyond the threshold" : "";
  const std::string deviation = rounded_text(found.deviation, 3);
  tell(std::string("errors by Gauss-Newton") + (report.huber_threshold ? " and Huber's formula" : "") + " from " +
       count_text(found.numbers) + " numbers" + (report.stated_errors ? " and their sigma" : "") + beyond +
       (report.stated_errors && !report.huber_threshold
            ? ", reduced chi-square " + rounded_text(found.deviation * found.deviation, 3)
            : ", deviation " + deviation) +
       ", " + counted_text(found.unknowns, "unknown") + starts_text(report.starts, found.nets));
  for (std::size_t i = 0; i < count; ++i) {
    if (!is_at_bound(report, i)) continue;
    const bool low = report.found.at_bound[i] == ode::ParameterUncertainty::Bound::min;
    lines.push_back(report.names[i] + " is at its bound, and the data would have it " + (low ? "below" : "above") +
                    ": the errors of the others hold with it there");
  }
  if (report.stated_errors || report.implied_errors) append_misfit(report, lines);
  if (found.nets == Nets::as_trained) {
    lines.push_back(
        "errors and intervals are given the nets as they were trained, and not ones of the truth: what a net can take "
        "over from a parameter is not in them");
  }
  if (found.nets == Nets::let_go) {
    tell("they allow for what the nets could do instead, which leaves of the parameters' effects " + left_text(report));
  }
  if (found.distance > kFarFromOptimum) {
    lines.push_back(std::string("not at the least ") + (report.huber_threshold ? "loss" : "sum of squares") +
                    " of whole trajectories: that lies about " + rounded_text(found.distance, 2) +
                    " standard errors away");
  }
  return lines;
}

void store(const ParameterReport& report, std::map<std::string, std::string>& metadata) {
  if (report.names.empty()) return;
  if (report.refused.empty()) metadata[kParametersKey] = to_csv(report);
  std::string notes;
  for (const std::string& line : note_lines(report)) notes += (notes.empty() ? "" : "\n") + line;
  metadata[kParametersNotesKey] = notes;
}

std::vector<std::string> table_lines(const ParameterReport& report) {
  const std::size_t count = report.names.size();
  if (count == 0) return {};
  std::vector<std::string> lines;
  if (has_errors(report)) {
    const bool correlated = count > 1 && count <= kMostCorrelated;
    std::vector<std::vector<std::string>> cells{
        {"parameter", "estimate", report.found.nets == Nets::as_trained ? "95 % given the nets" : "95 % interval"}};
    if (correlated) {
      for (std::size_t j = 0; j + 1 < count; ++j) {
        cells[0].push_back((j == 0 ? "correlation with " : "") + report.names[j]);
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Rounding rounded(report.found.standard_errors[i]);
      const std::string unit = i < report.units.size() && !report.units[i].empty() ? " " + report.units[i] : "";
      if (is_at_bound(report, i)) {
        cells.push_back({report.names[i], rounded_text(report.found.values[i], 6) + unit, "at its bound"});
      } else if (std::isnan(report.found.standard_errors[i])) {
        cells.push_back({report.names[i], rounded_text(report.found.values[i], 6) + unit, "not determined"});
      } else {
        cells.push_back({report.names[i],
                         rounded(report.found.values[i]) + " +- " + rounded(report.found.standard_errors[i]) + unit,
                         rounded(report.found.lower[i]) + " to " + rounded(report.found.upper[i])});
      }
      for (std::size_t j = 0; correlated && j + 1 < count; ++j) {
        const double correlation = report.found.correlations[i * count + j];
        cells.back().push_back(j < i && !std::isnan(correlation) ? fixed_text(correlation, 2) : "");
      }
    }
    std::vector<std::size_t> width(cells[0].size());
    for (const auto& row : cells) {
      for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], places(row[i]));
    }
    for (const auto& row : cells) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        const std::string room(width[i] - places(row[i]), ' ');
        line += (i == 0 ? "" : "  ") + (i == 0 ? row[i] + room : room + row[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      lines.push_back(std::move(line));
    }
  }
  for (std::string& line : note_lines(report)) lines.push_back(std::move(line));
  return lines;
}

}  // namespace lockstep::cli
