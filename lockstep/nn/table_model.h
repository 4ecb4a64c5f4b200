// Functions that are given as numbers: measured inputs over time, properties over temperature. As models they are
// called by equations as nets are, and go wherever nets go.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/nn/model.h"

namespace lockstep::nn {

enum class Interpolation {
  linear,    // straight lines
  previous,  // steps: the value at the last knot that is not above the number
  pchip,     // cubics with continuous slopes that stay between their knots' values, so that no overshoot is made:
             // Fritsch & Butland, SIAM J. Sci. Stat. Comput. 5 (1984), the ends as in MATLAB and SciPy
  spline,    // the cubic spline, with continuous second derivatives, that has no knot at the second value from either
             // end: de Boor, A Practical Guide to Splines, 2001, chapter IV; of two values a line, of three a parabola
};
std::string_view to_string(Interpolation interpolation);  // "linear"
std::optional<Interpolation> parse_interpolation(std::string_view name);

struct FunctionTable {
  Feature input;                 // what it is a function of; its range becomes that of the knots, of steps without end
  std::vector<double> at;        // the knots, ascending
  std::vector<Feature> outputs;  // one for each column
  std::vector<double> values;    // [knot][column]
  Interpolation interpolation = Interpolation::linear;
};

// One input port "x" of one feature, one output port "y" of as many as the table has columns. Beyond its ends a table
// keeps the values there. In float32 knots must differ in float32. Throws Error (invalid_argument) that names `at`,
// `values` or `columns` where numbers are not finite, knots do not ascend, sizes do not fit, or two names are one.
Model table_model(const FunctionTable& table);

bool is_table(const Model& model);  // made by table_model()

}  // namespace lockstep::nn
