// What of a trajectory a picture shows over parameters and initial values, and how these are spaced.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/ode/result_file.h"

namespace lockstep::cli {

// A parameter or the initial value of a component.
struct SweepAxis {
  enum class Kind { parameter, initial_value };
  Kind kind = Kind::parameter;
  std::size_t column = 0;
  std::string name;  // in the file
  std::string text() const { return kind == Kind::parameter ? name : "initial " + name; }
};

// Those by which trajectories are told apart: `asked`, else the grid's, else what alone differs between them, or two
// that form a grid. Empty where there are none such. Throws Error (invalid_argument) for a name that is no parameter
// and no component, and for one that is the same in all trajectories.
std::vector<SweepAxis> sweep_axes(const ode::ResultFile& file, const std::vector<std::string>& asked);

// Of each trajectory of the file.
std::vector<double> sweep_values(const ode::ResultFile& file, const SweepAxis& axis);

// Whether so many values of one axis and so many of another are those of a grid, of which some may be unfinished.
bool is_grid(std::size_t columns, std::size_t rows, std::size_t trajectories);

// How sorted values lie.
enum class ValueSpacing { even, logarithmic, uneven };
ValueSpacing spacing_of(const std::vector<double>& sorted);

// Round numbers from low to high, at most so many; of a logarithmic axis (low above 0) powers of ten, where there are
// two of them and room; else 1, 2 and 5 times these.
std::vector<double> round_ticks(double low, double high, bool logarithmic, std::size_t most);

}  // namespace lockstep::cli
