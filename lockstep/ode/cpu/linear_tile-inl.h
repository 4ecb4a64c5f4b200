// Linear equations of a tile, one system a lane: what linearly implicit methods solve at each stage. Include like
// hwy_lane-inl.h.
#if defined(LOCKSTEP_ODE_CPU_LINEAR_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef LOCKSTEP_ODE_CPU_LINEAR_TILE_INL_H_
#undef LOCKSTEP_ODE_CPU_LINEAR_TILE_INL_H_
#else
#define LOCKSTEP_ODE_CPU_LINEAR_TILE_INL_H_
#endif

#include "lockstep/kernels/lane/hwy_lane-inl.h"
#include "lockstep/ode/cpu/linear_tile.h"

HWY_BEFORE_NAMESPACE();
namespace lockstep {
namespace HWY_NAMESPACE {

using ode::LinearLayout;
using ode::cpu::LinearTile;

// Where entries lie and which of them are computed with. All of them, for what is small:
struct WholeShape {
  static constexpr bool kIsBand = false;
  std::size_t rows_begin(std::size_t) const { return 0; }
  std::size_t rows_end(std::size_t) const { return n; }
  std::size_t columns_begin(std::size_t) const { return 0; }
  std::size_t columns_end(std::size_t) const { return n; }
  std::size_t at(std::size_t i, std::size_t j) const { return i * n + j; }
  std::size_t n;
};
struct BandShape {
  static constexpr bool kIsBand = true;
  std::size_t rows_begin(std::size_t column) const { return layout.rows_begin(column); }
  std::size_t rows_end(std::size_t column) const { return layout.rows_end(column); }
  std::size_t columns_begin(std::size_t row) const { return layout.columns_begin(row); }
  std::size_t columns_end(std::size_t row) const { return layout.columns_end(row); }
  std::size_t at(std::size_t i, std::size_t j) const { return layout.at(i, j); }
  const LinearLayout& layout;
};

// The lanes of one register, as a system of scalars would be written. The arithmetic of each lane, its pivots included,
// is detail::LinearSystem's.
template <class T, class Shape>
class ShapedLanes {
 public:
  using D = hn::ScalableTag<T>;
  using L = HwyLane<D>;
  using V = hn::Vec<D>;

  ShapedLanes(const LinearTile<T>& tile, Shape shape, std::size_t v)
      : tile_(tile), shape_(shape), n_(tile.layout->size()), v_(v) {}

  // J becomes 1/gamma - h J, where entries of h J count that are finite; so do those of f_t.
  HWY_INLINE void shift(T inverse_gamma, V h) const {
    const V minus_h = hn::Neg(h);
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = shape_.columns_begin(i), end = shape_.columns_end(i); j < end; ++j) {
        T* const at = entry(i, j);
        const V without = i == j ? hn::Set(d_, inverse_gamma) : hn::Zero(d_);
        const V entry_of_j = hn::Load(d_, at);
        hn::Store(finite_or(i == j ? L::fma(minus_h, entry_of_j, without) : hn::Mul(minus_h, entry_of_j), without), d_,
                  at);
      }
      T* const by_time = tile_.by_time + i * kTileLanes + v_;
      hn::Store(finite_or(hn::Load(d_, by_time), hn::Zero(d_)), d_, by_time);
    }
  }

  HWY_INLINE void factor() const {
    for (std::size_t k = 0; k < n_; ++k) {
      choose_pivot(k);
      const V pivot = hn::Load(d_, entry(k, k));
      // Infinity has no inverse: 0 would hold the component still.
      const V inverse = L::fma(pivot, hn::Zero(d_), hn::Div(hn::Set(d_, T(1)), pivot));
      hn::Store(inverse, d_, entry(k, k));
      for (std::size_t i = k + 1, end = shape_.rows_end(k); i < end; ++i) eliminate(k, i, inverse);
    }
  }

  // rows[component][lane] becomes the solution.
  HWY_INLINE void solve(T* rows) const {
    if constexpr (Shape::kIsBand) return solve_band(rows);
    T* const b = rows + v_;
    for (std::size_t k = 0; k < n_; ++k) exchange_rows(k, [b](std::size_t i) { return b + i * kTileLanes; });
    for (std::size_t i = 1; i < n_; ++i) reduce(b, i, 0, i);
    for (std::size_t i = n_; i-- > 0;) {
      reduce(b, i, i + 1, n_);
      scale(b + i * kTileLanes, i);
    }
  }

  // The same of the transpose: P W = L U, hence W^T x = b for x = P^T z, L^T z = y, U^T y = b.
  HWY_INLINE void solve_transposed(T* rows) const {
    if constexpr (Shape::kIsBand) return solve_band_transposed(rows);
    T* const b = rows + v_;
    for (std::size_t i = 0; i < n_; ++i) {
      reduce_transposed(b, i, 0, i);
      scale(b + i * kTileLanes, i);
    }
    for (std::size_t i = n_; i-- > 0;) reduce_transposed(b, i, i + 1, n_);
    for (std::size_t k = n_; k-- > 0;) exchange_rows(k, [b](std::size_t i) { return b + i * kTileLanes; });
  }

 private:
  static HWY_INLINE V finite_or(V x, V otherwise) {
    return hn::IfThenElse(hn::Eq(hn::Mul(x, hn::Zero(d_)), hn::Zero(d_)), x, otherwise);
  }

  // Multiples stay where they were found, so that exchanges and eliminations take turns: W = P_1 L_1 P_2 L_2 .. U.
  HWY_INLINE void solve_band(T* rows) const {
    const auto at = places(rows);
    for (std::size_t k = 0; k < n_; ++k) {
      exchange_rows(k, at);
      const V x = hn::Load(d_, at(k));
      for (std::size_t i = k + 1, end = shape_.rows_end(k); i < end; ++i)
        hn::Store(less(hn::Load(d_, at(i)), entry(i, k), x), d_, at(i));
    }
    for (std::size_t i = n_; i-- > 0;) {
      V sum = hn::Load(d_, at(i));
      for (std::size_t j = i + 1, end = shape_.columns_end(i); j < end; ++j)
        sum = less(sum, entry(i, j), hn::Load(d_, at(j)));
      hn::Store(hn::Mul(sum, hn::Load(d_, entry(i, i))), d_, at(i));
    }
  }

  HWY_INLINE void solve_band_transposed(T* rows) const {
    const auto at = places(rows);
    for (std::size_t j = 0; j < n_; ++j) {
      V sum = hn::Load(d_, at(j));
      for (std::size_t i = shape_.rows_begin(j); i < j; ++i) sum = less(sum, entry(i, j), hn::Load(d_, at(i)));
      hn::Store(hn::Mul(sum, hn::Load(d_, entry(j, j))), d_, at(j));
    }
    for (std::size_t k = n_; k-- > 0;) {
      V sum = hn::Load(d_, at(k));
      for (std::size_t i = k + 1, end = shape_.rows_end(k); i < end; ++i)
        sum = less(sum, entry(i, k), hn::Load(d_, at(i)));
      hn::Store(sum, d_, at(k));
      exchange_rows(k, at);
    }
  }

  HWY_INLINE T* entry(std::size_t i, std::size_t j) const { return tile_.matrix + shape_.at(i, j) * kTileLanes + v_; }
  // Of a vector, the row of the component at a place.
  HWY_INLINE auto places(T* rows) const {
    return [b = rows + v_, order = tile_.layout->order().data()](std::size_t i) { return b + order[i] * kTileLanes; };
  }

  // The first row of those with the largest entry in column k, and puts it in row k's place.
  HWY_INLINE void choose_pivot(std::size_t k) const {
    V most = hn::Abs(hn::Load(d_, entry(k, k)));
    V pivot = hn::Set(d_, static_cast<T>(k));
    for (std::size_t i = k + 1, end = shape_.rows_end(k); i < end; ++i) {
      const V size = hn::Abs(hn::Load(d_, entry(i, k)));
      const auto larger = hn::Lt(most, size);
      most = hn::IfThenElse(larger, size, most);
      pivot = hn::IfThenElse(larger, hn::Set(d_, static_cast<T>(i)), pivot);
    }
    hn::Store(pivot, d_, tile_.pivots + k * kTileLanes + v_);
    const std::size_t first = Shape::kIsBand ? k : 0, end = shape_.columns_end(k);
    for_exchanges(k, pivot, [&](std::size_t i, hn::Mask<D> exchanged) {
      for (std::size_t j = first; j < end; ++j) exchange(entry(k, j), entry(i, j), exchanged);
    });
  }

  // As row k was, of a vector.
  template <class At>
  HWY_INLINE void exchange_rows(std::size_t k, const At& at) const {
    const V pivot = hn::Load(d_, tile_.pivots + k * kTileLanes + v_);
    for_exchanges(k, pivot, [&](std::size_t i, hn::Mask<D> exchanged) { exchange(at(k), at(i), exchanged); });
  }

  // Calls each(i, lanes) for rows i below k that change places with it in any lane.
  template <class Each>
  HWY_INLINE void for_exchanges(std::size_t k, V pivot, const Each& each) const {
    if (hn::AllTrue(d_, hn::Eq(pivot, hn::Set(d_, static_cast<T>(k))))) return;
    for (std::size_t i = k + 1, end = shape_.rows_end(k); i < end; ++i) {
      const auto exchanged = hn::Eq(pivot, hn::Set(d_, static_cast<T>(i)));
      if (!hn::AllFalse(d_, exchanged)) each(i, exchanged);
    }
  }
  HWY_INLINE void exchange(T* a, T* b, hn::Mask<D> exchanged) const {
    const V x = hn::Load(d_, a), y = hn::Load(d_, b);
    hn::Store(hn::IfThenElse(exchanged, y, x), d_, a);
    hn::Store(hn::IfThenElse(exchanged, x, y), d_, b);
  }

  // Row i less its multiple of row k. Rows that hold zero in column k stay as they are.
  HWY_INLINE void eliminate(std::size_t k, std::size_t i, V inverse) const {
    const V multiple = hn::Mul(hn::Load(d_, entry(i, k)), inverse);
    hn::Store(multiple, d_, entry(i, k));
    const auto nothing = hn::Eq(multiple, hn::Zero(d_));
    if (hn::AllTrue(d_, nothing)) return;
    const V minus = hn::Neg(multiple);
    for (std::size_t j = k + 1, end = shape_.columns_end(k); j < end; ++j) {
      const V x = hn::Load(d_, entry(i, j));
      hn::Store(hn::IfThenElse(nothing, x, L::fma(minus, hn::Load(d_, entry(k, j)), x)), d_, entry(i, j));
    }
  }

  HWY_INLINE V less(V sum, const T* entry, V x) const { return L::fma(hn::Neg(hn::Load(d_, entry)), x, sum); }
  HWY_INLINE void scale(T* at, std::size_t i) const {
    hn::Store(hn::Mul(hn::Load(d_, at), hn::Load(d_, entry(i, i))), d_, at);
  }

  // b_i less the sum of w_ij b_j over columns from `first` to `end`.
  HWY_INLINE void reduce(T* b, std::size_t i, std::size_t first, std::size_t end) const {
    V sum = hn::Load(d_, b + i * kTileLanes);
    for (std::size_t j = first; j < end; ++j) sum = less(sum, entry(i, j), hn::Load(d_, b + j * kTileLanes));
    hn::Store(sum, d_, b + i * kTileLanes);
  }

  // b_i less the sum of w_ji b_j over rows from `first` to `end`.
  HWY_INLINE void reduce_transposed(T* b, std::size_t i, std::size_t first, std::size_t end) const {
    V sum = hn::Load(d_, b + i * kTileLanes);
    for (std::size_t j = first; j < end; ++j) sum = less(sum, entry(j, i), hn::Load(d_, b + j * kTileLanes));
    hn::Store(sum, d_, b + i * kTileLanes);
  }

  static constexpr D d_{};
  const LinearTile<T>& tile_;
  Shape shape_;
  std::size_t n_, v_;
};

// Those of a tile's register v, whatever its layout.
template <class T>
class LinearLanes {
 public:
  using V = typename ShapedLanes<T, WholeShape>::V;

  LinearLanes(const LinearTile<T>& tile, int v) : tile_(tile), v_(static_cast<std::size_t>(v)) {}

  HWY_INLINE void shift(T inverse_gamma, V h) const {
    is_band() ? shift_band(tile_, v_, inverse_gamma, h) : whole().shift(inverse_gamma, h);
  }
  HWY_INLINE void factor() const { is_band() ? factor_band(tile_, v_) : whole().factor(); }
  HWY_INLINE void solve(T* rows) const { is_band() ? solve_band(tile_, v_, rows) : whole().solve(rows); }
  HWY_INLINE void solve_transposed(T* rows) const {
    is_band() ? solve_band_transposed(tile_, v_, rows) : whole().solve_transposed(rows);
  }

 private:
  HWY_INLINE bool is_band() const { return tile_.layout->is_band(); }
  HWY_INLINE auto whole() const { return ShapedLanes<T, WholeShape>(tile_, WholeShape{tile_.layout->size()}, v_); }

  // Bands are long: calls keep them out of the loops of small systems.
  static HWY_INLINE auto band(const LinearTile<T>& tile, std::size_t v) {
    return ShapedLanes<T, BandShape>(tile, BandShape{*tile.layout}, v);
  }
  static HWY_NOINLINE void shift_band(const LinearTile<T>& tile, std::size_t v, T inverse_gamma, V h) {
    band(tile, v).shift(inverse_gamma, h);
  }
  static HWY_NOINLINE void factor_band(const LinearTile<T>& tile, std::size_t v) { band(tile, v).factor(); }
  static HWY_NOINLINE void solve_band(const LinearTile<T>& tile, std::size_t v, T* rows) { band(tile, v).solve(rows); }
  static HWY_NOINLINE void solve_band_transposed(const LinearTile<T>& tile, std::size_t v, T* rows) {
    band(tile, v).solve_transposed(rows);
  }

  const LinearTile<T>& tile_;
  std::size_t v_;
};

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target
