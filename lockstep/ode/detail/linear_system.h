// Linear equations as the reference solves them: Gauss' elimination with partial pivoting.
#pragma once

#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

namespace lockstep::ode::detail {

// (1/gamma - h J) x = b. Every operation is rounded; products that are added are fused. Entries of h J that are not
// finite count as 0.
template <class T>
class LinearSystem {
 public:
  // jacobian[row][column].
  LinearSystem(std::vector<std::vector<T>> jacobian, T inverse_gamma, T h) : w_(std::move(jacobian)) {
    const std::size_t n = w_.size();
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = 0; j < n; ++j) {
        const T without = i == j ? inverse_gamma : 0;
        const T entry = i == j ? std::fma(-h, w_[i][j], without) : -h * w_[i][j];
        w_[i][j] = std::isfinite(entry) ? entry : without;
      }
    }
    for (std::size_t k = 0; k < n; ++k) {
      std::size_t pivot = k;
      for (std::size_t i = k + 1; i < n; ++i) {
        if (std::fabs(w_[i][k]) > std::fabs(w_[pivot][k])) pivot = i;
      }
      std::swap(w_[k], w_[pivot]);
      pivots_.push_back(pivot);
      // Infinity has no inverse: 0 would hold the component still.
      w_[k][k] = std::fma(w_[k][k], T(0), 1 / w_[k][k]);
      for (std::size_t i = k + 1; i < n; ++i) {
        w_[i][k] *= w_[k][k];
        if (w_[i][k] == 0) continue;
        for (std::size_t j = k + 1; j < n; ++j) w_[i][j] = std::fma(-w_[i][k], w_[k][j], w_[i][j]);
      }
    }
  }

  void solve(std::vector<T>& b) const {
    const std::size_t n = w_.size();
    for (std::size_t k = 0; k < n; ++k) std::swap(b[k], b[pivots_[k]]);
    for (std::size_t i = 1; i < n; ++i) {
      for (std::size_t j = 0; j < i; ++j) b[i] = std::fma(-w_[i][j], b[j], b[i]);
    }
    for (std::size_t i = n; i-- > 0;) {
      for (std::size_t j = i + 1; j < n; ++j) b[i] = std::fma(-w_[i][j], b[j], b[i]);
      b[i] *= w_[i][i];
    }
  }

 private:
  std::vector<std::vector<T>> w_;  // the factors, the upper one's diagonal inverted
  std::vector<std::size_t> pivots_;
};

}  // namespace lockstep::ode::detail
