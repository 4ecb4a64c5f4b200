#include "lockstep/ode/detail/fit_squares.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lockstep::ode::detail {
namespace {

// Rows that hold the unknowns of the first columns, `first` of them, to where they are.
void append_damping(Rows& rows, std::span<const double> lengths, double root) {
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    rows.numbers.resize(rows.numbers.size() + rows.columns);
    rows.at(rows.count() - 1, i) = root * lengths[i];
  }
}

double square(double x) { return x * x; }

// x from the first x.size() rows of a triangle, whose columns behind those count with the numbers `behind`.
void solve_back(const Rows& triangle, std::span<const double> behind, std::span<double> x) {
  for (std::size_t i = x.size(); i-- > 0;) {
    double rest = triangle.at(i, triangle.columns - 1);
    for (std::size_t j = i + 1; j < x.size(); ++j) rest -= triangle.at(i, j) * x[j];
    for (std::size_t j = 0; j < behind.size(); ++j) rest -= triangle.at(i, x.size() + j) * behind[j];
    x[i] = rest / triangle.at(i, i);
  }
}

}  // namespace

FitSquares::FitSquares(ComparedRows& compared, std::span<const double> slopes, std::span<const double> units,
                       double smallest)
    : starts_(compared.starts()), trained_(slopes.size()), smallest_(smallest), lengths_(slopes.size()) {
  const auto take = [&](std::size_t, Rows rows) {
    std::vector<double> squares(starts_);
    for (std::size_t i = 0; i < rows.count(); ++i) {
      for (std::size_t c = 0; c < starts_; ++c) squares[c] += square(rows.at(i, c) *= units[c]);
      for (std::size_t j = 0; j < trained_; ++j) lengths_[j] += square(rows.at(i, starts_ + j) *= slopes[j]);
      sum_ += square(rows.at(i, rows.columns - 1));
    }
    numbers_ += static_cast<double>(rows.count());
    for (const double each : squares) {
      if (each > 0) ++unknowns_;
      start_lengths_.push_back(each > 0 ? std::sqrt(each) : 1);
    }
    reduce(rows);
    triangles_.push_back(std::move(rows));
  };
  compared.each(take, [] {});
  for (double& each : lengths_) {
    if (each > 0) ++unknowns_;
    each = each > 0 ? std::sqrt(each) : 1;
  }
}

FitSquares::Step FitSquares::step(double damping) const {
  const double least = std::max(damping, smallest_ * smallest_), root = std::sqrt(least);
  Step result{std::vector<double>(trained_), std::vector<double>(triangles_.size() * starts_)};
  double met = 0;  // of the sum, by the damped unknowns
  Rows rest{trained_ + 1};
  std::vector<Rows> of_starts;
  for (std::size_t i = 0; i < triangles_.size(); ++i) {
    Rows own = triangles_[i];
    append_damping(own, std::span(start_lengths_).subspan(i * starts_, starts_), root);
    reduce(own);
    for (std::size_t row = 0; row < own.count(); ++row) {
      if (row < starts_) {
        met += square(own.at(row, own.columns - 1));
        continue;
      }
      for (std::size_t j = starts_; j < own.columns; ++j) rest.numbers.push_back(own.at(row, j));
    }
    if (rest.count() > 8 * rest.columns) reduce(rest);
    own.numbers.resize(starts_ * own.columns);
    of_starts.push_back(std::move(own));
  }
  append_damping(rest, lengths_, root);
  reduce(rest);
  for (std::size_t i = 0; i < trained_; ++i) met += square(rest.at(i, trained_));
  solve_back(rest, {}, result.parameters);
  for (std::size_t i = 0; i < triangles_.size(); ++i) {
    solve_back(of_starts[i], result.parameters, std::span(result.starts).subspan(i * starts_, starts_));
  }
  // With d the step, |J d - r|^2 + damping |D d|^2 = |r|^2 - met.
  double moved = 0;
  for (std::size_t i = 0; i < trained_; ++i) moved += square(lengths_[i] * result.parameters[i]);
  for (std::size_t i = 0; i < result.starts.size(); ++i) moved += square(start_lengths_[i] * result.starts[i]);
  result.fall = sum_ > 0 ? (met + least * moved) / sum_ : 0;
  return result;
}

}  // namespace lockstep::ode::detail
