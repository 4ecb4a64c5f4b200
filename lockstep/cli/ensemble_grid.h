// Every combination of the values of several components and parameters: [ensemble.grid] of a problem file.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/cli/ensemble_values.h"
#include "lockstep/ode/result_file.h"

namespace lockstep::cli {

using GridShape = std::vector<std::pair<std::string, std::size_t>>;  // name and number of values, the slowest first
std::string grid_text(const GridShape& shape);                       // "alpha 21 x beta 31"

// What a result file says of its ensemble's grid.
inline constexpr const char *kGridAttribute = "grid", *kGridPointsAttribute = "grid_points";
GridShape stored_grid(const ode::ResultFile& file);  // empty: none

class Grid {
 public:
  Grid() = default;  // none
  // Reads the files that axes name. Throws Error (invalid_argument) for a name that is not exactly one component or
  // one parameter, and for values of more than one column or none.
  Grid(const std::vector<GridAxis>& axes, const std::vector<std::string>& components,
       const std::vector<std::string>& parameters);

  bool empty() const { return axes_.empty(); }
  // Combinations; 0 where size_t does not hold them.
  std::size_t trajectories() const { return trajectories_; }
  GridShape shape() const;

  enum class Kind { component, parameter };
  bool has(Kind kind) const;
  // What a draw needs not be given: columns of the grid get a default, which fill() replaces. Throws Error
  // (invalid_argument) for one whose name `values` has, too.
  ColumnNames without_axes(Kind kind, ColumnNames columns, const EnsembleValues* values) const;
  // [trajectory][column] of `rows`, one of them for all or one for each trajectory: with the grid's values in its
  // columns.
  std::vector<double> fill(Kind kind, std::vector<double> rows, std::size_t columns) const;

 private:
  struct Axis {
    std::string name, where;
    Kind kind = Kind::parameter;
    std::size_t column = 0;
    EnsembleValues values;  // drawn by fill(), once their number is known to be sensible
    std::size_t count = 0;
  };
  std::vector<Axis> axes_;
  std::size_t trajectories_ = 0;
};

}  // namespace lockstep::cli
