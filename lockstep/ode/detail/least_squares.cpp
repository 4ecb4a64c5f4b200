#include "lockstep/ode/detail/least_squares.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <utility>

#include "lockstep/core/error.h"

namespace lockstep::ode::detail {

namespace {

// Of the numbers of a column in rows from `first` on.
double square_below(const Rows& rows, std::size_t first, std::size_t column) {
  double square = 0;
  for (std::size_t i = first; i < rows.count(); ++i) square += rows.at(i, column) * rows.at(i, column);
  return square;
}

// Reflects the rows from `first` on so that `column`, whose squares there are `square`, is zero below that row.
void reflect(Rows& rows, std::size_t first, std::size_t column, double square) {
  const std::size_t count = rows.count();
  const double norm = rows.at(first, column) > 0 ? -std::sqrt(square) : std::sqrt(square);
  // v = x - norm e, of which v^T v = -2 norm v_first.
  const double head = rows.at(first, column) - norm;
  for (std::size_t j = column + 1; j < rows.columns; ++j) {
    double product = head * rows.at(first, j);
    for (std::size_t i = first + 1; i < count; ++i) product += rows.at(i, column) * rows.at(i, j);
    const double factor = product / (norm * head);
    rows.at(first, j) += factor * head;
    for (std::size_t i = first + 1; i < count; ++i) rows.at(i, j) += factor * rows.at(i, column);
  }
  rows.at(first, column) = norm;
  for (std::size_t i = first + 1; i < count; ++i) rows.at(i, column) = 0;
}

}  // namespace

void reduce(Rows& rows) {
  const std::size_t count = std::min(rows.count(), rows.columns);
  for (std::size_t k = 0; k < count; ++k) {
    const double square = square_below(rows, k, k);
    if (square > 0) reflect(rows, k, k, square);
  }
  rows.numbers.resize(count * rows.columns);
}

std::size_t eliminate(Rows& rows, std::size_t count, double smallest, const RunControl& control) {
  std::size_t used = 0;
  std::vector<double> squares(count);
  for (std::size_t k = 0; k < count; ++k) squares[k] = square_below(rows, 0, k);
  for (std::size_t k = 0; k < count && used < rows.count(); ++k) {
    if (control.cancelled()) throw Error(ErrorKind::cancelled, {.found = "least squares stopped by their caller"});
    const double square = square_below(rows, used, k);
    if (square > smallest * smallest * squares[k]) reflect(rows, used++, k, square);
  }
  Rows rest{rows.columns - count};
  for (std::size_t i = used; i < rows.count(); ++i) {
    for (std::size_t j = count; j < rows.columns; ++j) rest.numbers.push_back(rows.at(i, j));
  }
  rows = std::move(rest);
  return used;
}

SingularValues singular_values(Rows square) {
  constexpr int kMostSweeps = 60;
  constexpr double kOrthogonal = 1e-15;  // cosine between columns
  const std::size_t n = square.columns;
  Rows right{n, std::vector<double>(n * n)};
  for (std::size_t i = 0; i < n; ++i) right.at(i, i) = 1;
  bool rotated = true;
  for (int sweep = 0; rotated && sweep < kMostSweeps; ++sweep) {
    rotated = false;
    for (std::size_t p = 0; p < n; ++p) {
      for (std::size_t q = p + 1; q < n; ++q) {
        double pp = 0, qq = 0, pq = 0;
        for (std::size_t i = 0; i < n; ++i) {
          pp += square.at(i, p) * square.at(i, p);
          qq += square.at(i, q) * square.at(i, q);
          pq += square.at(i, p) * square.at(i, q);
        }
        if (!(std::abs(pq) > kOrthogonal * std::sqrt(pp) * std::sqrt(qq))) continue;
        rotated = true;
        const double zeta = (qq - pp) / (2 * pq);
        const double t = (zeta >= 0 ? 1.0 : -1.0) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta));
        const double c = 1 / std::sqrt(1 + t * t), s = c * t;
        for (Rows* of : {&square, &right}) {
          for (std::size_t i = 0; i < n; ++i) {
            const double a = of->at(i, p), b = of->at(i, q);
            of->at(i, p) = c * a - s * b;
            of->at(i, q) = s * a + c * b;
          }
        }
      }
    }
  }
  std::vector<double> norms(n);
  for (std::size_t j = 0; j < n; ++j) {
    for (std::size_t i = 0; i < n; ++i) norms[j] += square.at(i, j) * square.at(i, j);
    norms[j] = std::sqrt(norms[j]);
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) { return norms[a] > norms[b]; });
  SingularValues result{{}, {n, std::vector<double>(n * n)}, {n, std::vector<double>(n * n)}};
  for (std::size_t j = 0; j < n; ++j) {
    result.values.push_back(norms[order[j]]);
    for (std::size_t i = 0; i < n; ++i) {
      result.left.at(i, j) = square.at(i, order[j]);
      result.right.at(i, j) = right.at(i, order[j]);
    }
  }
  return result;
}

namespace {

// By halving the angle four times, then the series: x below 0.1, whose first term left out is below 1e-19.
double arc_tangent(double x) {
  for (int i = 0; i < 4; ++i) x = x / (1 + std::sqrt(1 + x * x));
  double sum = 0;
  for (int k = 8; k >= 0; --k) sum = 1.0 / (2 * k + 1) - x * x * sum;
  return 16 * x * sum;
}

// Between -t and t: Abramowitz & Stegun 26.7.3 and 26.7.4, theta = atan(t / sqrt(nu)).
double student_probability(double t, std::size_t degrees) {
  const double tangent = t / std::sqrt(static_cast<double>(degrees));
  const double cosine = 1 / std::sqrt(1 + tangent * tangent), sine = tangent * cosine;
  const bool odd = degrees % 2 == 1;
  double sum = 0, term = odd ? cosine : 1;
  for (std::size_t k = odd ? 1 : 0; k + 2 <= degrees; k += 2) {
    sum += term;
    const auto of = static_cast<double>(k);
    term *= cosine * cosine * (of + 1) / (of + 2);
  }
  return odd ? 2 / std::numbers::pi * (arc_tangent(tangent) + sine * sum) : sine * sum;
}

}  // namespace

double student_t_95(std::size_t degrees) {
  constexpr double kNormal = kNormal95;
  constexpr std::size_t kMany = 2000;
  if (degrees > kMany) {
    // Abramowitz & Stegun 26.7.5; the next term is below 1e-9.
    const double g1 = (kNormal * kNormal * kNormal + kNormal) / 4, squared = kNormal * kNormal;
    const double g2 = kNormal * ((5 * squared + 16) * squared + 3) / 96;
    const auto nu = static_cast<double>(degrees);
    return kNormal + g1 / nu + g2 / (nu * nu);
  }
  double low = kNormal, high = 13;  // 12.7 of one degree
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (student_probability(middle, degrees) < 0.95 ? low : high) = middle;
  }
  return (low + high) / 2;
}

}  // namespace lockstep::ode::detail
