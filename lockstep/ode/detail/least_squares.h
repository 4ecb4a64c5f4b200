// Dense linear least squares of few unknowns: reduction of rows by Householder, singular values by Jacobi.
#pragma once

#include <cstddef>
#include <vector>

#include "lockstep/core/run_control.h"

namespace lockstep::ode::detail {

// [row][column].
struct Rows {
  std::size_t columns = 0;
  std::vector<double> numbers = {};

  std::size_t count() const { return columns == 0 ? 0 : numbers.size() / columns; }
  double& at(std::size_t row, std::size_t column) { return numbers[row * columns + column]; }
  double at(std::size_t row, std::size_t column) const { return numbers[row * columns + column]; }
};

// Multiplied by an orthogonal matrix from the left so that all below the diagonal is zero, and that cut off: at most
// `columns` rows, upper triangular, with the same lengths of the columns and angles between them (Golub & Van Loan,
// Matrix Computations, 5.2).
void reduce(Rows& rows);

// What the rows say of the other columns when the first `count` are free: multiplied likewise so that these have
// numbers in their first rows alone, which are cut off with the columns. Returns how many rows that are: one for each
// of the columns but those that depend on the ones before them, up to `smallest` of their length.
// Looks at `control` between columns: throws Error (cancelled).
std::size_t eliminate(Rows& rows, std::size_t count, double smallest, const RunControl& control = {});

// rows = U diag(values) V^T of a square matrix, values descending (one-sided Jacobi, which has small ones to their own
// relative accuracy: Demmel & Veselic 1992). `left` is U diag(values).
struct SingularValues {
  std::vector<double> values;
  Rows left, right;
};
SingularValues singular_values(Rows square);

// The t with a probability of 95 % between -t and t under Student's distribution. IEEE operations alone.
double student_t_95(std::size_t degrees_of_freedom);
inline constexpr double kNormal95 = 1.959963984540054;  // what it tends to

}  // namespace lockstep::ode::detail
