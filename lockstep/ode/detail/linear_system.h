// Linear equations as the reference solves them: Gauss' elimination with partial pivoting.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "lockstep/ode/linear_layout.h"

namespace lockstep::ode::detail {

// (1/gamma - h J) x = b, eliminated in the layout's order and within its bounds. Every operation is rounded; products
// that are added are fused. Entries of h J that are not finite count as 0.
template <class T>
class LinearSystem {
 public:
  // jacobian[component][of component]. The layout is kept by reference.
  LinearSystem(const std::vector<std::vector<T>>& jacobian, const LinearLayout& layout, T inverse_gamma, T h)
      : layout_(layout) {
    const std::size_t n = layout.size();
    w_.assign(n, std::vector<T>(n));
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = layout.columns_begin(i); j < layout.columns_end(i); ++j) {
        const T of_j = jacobian[layout.order()[i]][layout.order()[j]];
        const T without = i == j ? inverse_gamma : 0;
        const T entry = i == j ? std::fma(-h, of_j, without) : -h * of_j;
        w_[i][j] = std::isfinite(entry) ? entry : without;
      }
    }
    for (std::size_t k = 0; k < n; ++k) {
      const std::size_t rows_end = layout.rows_end(k), columns_end = layout.columns_end(k);
      std::size_t pivot = k;
      for (std::size_t i = k + 1; i < rows_end; ++i) {
        if (std::fabs(w_[i][k]) > std::fabs(w_[pivot][k])) pivot = i;
      }
      for (std::size_t j = k; j < columns_end; ++j) std::swap(w_[k][j], w_[pivot][j]);
      pivots_.push_back(pivot);
      // Infinity has no inverse: 0 would hold the component still.
      w_[k][k] = std::fma(w_[k][k], T(0), 1 / w_[k][k]);
      for (std::size_t i = k + 1; i < rows_end; ++i) {
        w_[i][k] *= w_[k][k];
        if (w_[i][k] == 0) continue;
        for (std::size_t j = k + 1; j < columns_end; ++j) w_[i][j] = std::fma(-w_[i][k], w_[k][j], w_[i][j]);
      }
    }
  }

  // b[component] becomes x.
  void solve(std::vector<T>& b) const {
    const std::size_t n = w_.size();
    const auto at = [&](std::size_t place) -> T& { return b[layout_.order()[place]]; };
    for (std::size_t k = 0; k < n; ++k) {
      std::swap(at(k), at(pivots_[k]));
      for (std::size_t i = k + 1; i < layout_.rows_end(k); ++i) at(i) = std::fma(-w_[i][k], at(k), at(i));
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t j = i + 1; j < layout_.columns_end(i); ++j) at(i) = std::fma(-w_[i][j], at(j), at(i));
      at(i) *= w_[i][i];
    }
  }

 private:
  const LinearLayout& layout_;
  std::vector<std::vector<T>> w_;  // [place][place]: the factors, the upper one's diagonal inverted
  std::vector<std::size_t> pivots_;
};

}  // namespace lockstep::ode::detail
