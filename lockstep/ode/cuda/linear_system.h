// The linear equations of one trajectory, as one thread solves them: what linearly implicit methods ask of each stage.
// The arithmetic, pivots included, is detail::LinearSystem's.
#pragma once

#include "lockstep/kernels/lane/scalar_lane.h"

namespace lockstep::ode::cuda {

// Where entries lie, as LinearLayout has it: all n x n, in the order of the components, or a band of rows that reach
// `below` entries below the diagonal and `reach` above it, in an order of its own. Order::component(place).
struct GivenOrder {
  static LOCKSTEP_HOST_DEVICE constexpr int component(int place) { return place; }
};
template <int n, int below, int reach, int stride, int shift, class Order>
struct MatrixShape {
  static constexpr int kSize = n;
  static constexpr int kEntries = n * (stride == n ? n : stride + 1);  // a band takes at most half of the whole
  // Few enough that the compiler unrolls every loop and the entries are registers, so that none may be found by an
  // index that it does not know.
  static constexpr bool kUnrolled = n <= 6;
  static LOCKSTEP_HOST_DEVICE constexpr int component(int place) { return Order::component(place); }
  static LOCKSTEP_HOST_DEVICE constexpr int at(int i, int j) { return i * stride + j + shift; }
  static LOCKSTEP_HOST_DEVICE constexpr int rows_end(int column) {
    return column + below + 1 < n ? column + below + 1 : n;
  }
  static LOCKSTEP_HOST_DEVICE constexpr int columns_begin(int row) { return row < below ? 0 : row - below; }
  static LOCKSTEP_HOST_DEVICE constexpr int columns_end(int row) { return row + reach + 1 < n ? row + reach + 1 : n; }
};
template <int n>
using WholeMatrix = MatrixShape<n, n, n, n, 0, GivenOrder>;

template <class T, class Shape>
class LinearSystem {
 public:
  static constexpr int kSize = Shape::kSize;

  // f_u [Shape::at(i, j)], where a derivative puts it before factor().
  LOCKSTEP_HOST_DEVICE T* entries() { return w_; }

  // J becomes the factors of 1/gamma - h J, in which entries of h J count that are finite.
  LOCKSTEP_HOST_DEVICE void factor(T inverse_gamma, T h) {
    for (int i = 0; i < kSize; ++i) {
      for (int j = Shape::columns_begin(i); j < Shape::columns_end(i); ++j) {
        const T without = i == j ? inverse_gamma : T(0);
        const T entry = i == j ? L::fma(-h, at(i, j), without) : L::mul(-h, at(i, j));
        at(i, j) = finite_or(entry, without);
      }
    }
    for (int k = 0; k < kSize; ++k) {
      choose_pivot(k);
      // Infinity has no inverse: 0 would hold the component still.
      at(k, k) = L::fma(at(k, k), T(0), L::div(T(1), at(k, k)));
      for (int i = k + 1; i < Shape::rows_end(k); ++i) {
        const T multiple = at(i, k) = L::mul(at(i, k), at(k, k));
        if (multiple == 0) continue;
        for (int j = k + 1; j < Shape::columns_end(k); ++j) at(i, j) = L::fma(-multiple, at(k, j), at(i, j));
      }
    }
  }

  // b[component] becomes the solution.
  template <class Row>
  LOCKSTEP_HOST_DEVICE void solve(Row&& b) const {
    for (int k = 0; k < kSize; ++k) {
      with_pivot(k, [&](int i) { exchange(of(b, k), of(b, i)); });
      for (int i = k + 1; i < Shape::rows_end(k); ++i) of(b, i) = L::fma(-at(i, k), of(b, k), of(b, i));
    }
    for (int i = kSize; i-- > 0;) {
      for (int j = i + 1; j < Shape::columns_end(i); ++j) of(b, i) = L::fma(-at(i, j), of(b, j), of(b, i));
      of(b, i) = L::mul(of(b, i), at(i, i));
    }
  }

  static LOCKSTEP_HOST_DEVICE T finite_or(T x, T otherwise) { return L::mul(x, T(0)) == 0 ? x : otherwise; }

 private:
  using L = ScalarLane<T>;

  LOCKSTEP_HOST_DEVICE T& at(int i, int j) { return w_[Shape::at(i, j)]; }
  LOCKSTEP_HOST_DEVICE const T& at(int i, int j) const { return w_[Shape::at(i, j)]; }
  template <class Row>
  static LOCKSTEP_HOST_DEVICE T& of(Row& b, int place) {
    return b[Shape::component(place)];
  }
  static LOCKSTEP_HOST_DEVICE void exchange(T& a, T& b) {
    const T x = a;
    a = b;
    b = x;
  }

  // The first row of those with the largest entry in column k, and puts it in row k's place; multiples stay where they
  // were found.
  LOCKSTEP_HOST_DEVICE void choose_pivot(int k) {
    T most = L::abs(at(k, k));
    int pivot = k;
    for (int i = k + 1; i < Shape::rows_end(k); ++i) {
      const T size = L::abs(at(i, k));
      if (most < size) {
        most = size;
        pivot = i;
      }
    }
    pivots_[k] = pivot;
    with_pivot(k, [&](int i) {
      for (int j = k; j < Shape::columns_end(k); ++j) exchange(at(k, j), at(i, j));
    });
  }
  // Calls each(i) for the row i that changes places with row k, if one does.
  template <class Each>
  LOCKSTEP_HOST_DEVICE void with_pivot(int k, const Each& each) const {
    if constexpr (Shape::kUnrolled) {
      for (int i = k + 1; i < Shape::rows_end(k); ++i) {
        if (pivots_[k] == i) each(i);
      }
    } else {
      if (pivots_[k] != k) each(pivots_[k]);
    }
  }

  T w_[Shape::kEntries];  // the factors, the upper one's diagonal inverted
  int pivots_[kSize];
};

}  // namespace lockstep::ode::cuda
