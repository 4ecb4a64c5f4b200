#include "lockstep/cli/float32_range.h"

#include <cmath>
#include <limits>
#include <span>

#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

constexpr double kLargest = std::numeric_limits<float>::max();

// Of numbers [row][name] a note for each name, of the first row with such a number.
void add_notes(const std::string& what, const std::vector<std::string>& names, std::span<const double> values,
               std::vector<std::string>& notes) {
  const std::size_t columns = names.size();
  std::vector<bool> told(columns);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::size_t column = i % columns, row = i / columns;
    const double value = values[i];
    const bool is_infinite = std::abs(value) > kLargest, is_zero = value != 0 && static_cast<float>(value) == 0;
    if ((!is_infinite && !is_zero) || told[column]) continue;
    told[column] = true;
    notes.push_back(what + " " + names[column] + " = " + number_text(value) +
                    (values.size() > columns ? " in trajectory " + std::to_string(row) : "") + " is " +
                    (is_infinite ? "infinite" : "0") + " in float32, whose numbers go " +
                    (is_infinite ? "up to 3.4e38" : "down to 1.4e-45") + ": take precision f64, or other units");
  }
}

}  // namespace

std::vector<std::string> float32_range_notes(const ode::Problem& problem, const std::vector<std::string>& components,
                                             const std::vector<std::string>& parameters) {
  std::vector<std::string> notes;
  if (!components.empty()) add_notes("the initial state", components, problem.initial_states, notes);
  if (!parameters.empty()) add_notes("parameter", parameters, problem.parameters, notes);
  return notes;
}

}  // namespace lockstep::cli
