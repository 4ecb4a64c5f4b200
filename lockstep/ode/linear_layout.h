// Where the entries of a Jacobian, and of the linear equations made of it, lie in memory.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace lockstep::ode {

// Either all n x n, or a band: equations in an order that brings what is not zero near the diagonal, and of each row
// the entries that elimination with exchanges of rows may reach, as in LAPACK's gbtrf. Numbers of entries count rows of
// kTileLanes numbers.
class LinearLayout {
 public:
  static LinearLayout dense(std::size_t n);
  // pattern[row]: the columns that may hold other numbers than zero; the diagonal always may. A band where that takes
  // at most half of the memory, its order by Cuthill & McKee (1969, Proc. 24th Nat. Conf. ACM, 157-172), each piece
  // from an end as far off as George & Liu (1979, ACM Trans. Math. Softw. 5, 284-295) find one, where the given order
  // is not as good. It follows from the pattern alone.
  static LinearLayout of(const std::vector<std::vector<std::size_t>>& pattern);

  std::size_t size() const { return n_; }
  bool is_band() const { return is_band_; }
  // The component whose equation comes at each place.
  const std::vector<std::size_t>& order() const { return order_; }
  std::size_t place(std::size_t component) const { return place_[component]; }

  // Where a row or a column has entries: below the diagonal those of the equations as they are, above it those too that
  // exchanges of rows may add.
  std::size_t rows_begin(std::size_t column) const { return column - std::min(column, reach_); }
  std::size_t rows_end(std::size_t column) const { return std::min(n_, column + below_ + 1); }
  std::size_t columns_begin(std::size_t row) const { return row - std::min(row, below_); }
  std::size_t columns_end(std::size_t row) const { return std::min(n_, row + reach_ + 1); }

  // How far a row reaches below and above the diagonal, and how entries are numbered.
  std::size_t below() const { return below_; }
  std::size_t reach() const { return reach_; }
  std::size_t stride() const { return stride_; }
  std::size_t shift() const { return shift_; }

  std::size_t entries() const { return n_ * (is_band_ ? below_ + reach_ + 1 : n_); }
  // Of places i and j; columns_begin(i) <= j < columns_end(i).
  std::size_t at(std::size_t i, std::size_t j) const { return i * stride_ + j + shift_; }

 private:
  LinearLayout(std::vector<std::size_t> order, std::size_t below, std::size_t above, bool is_band);

  std::vector<std::size_t> order_, place_;
  std::size_t n_, below_, reach_, stride_, shift_;
  bool is_band_;
};

}  // namespace lockstep::ode
