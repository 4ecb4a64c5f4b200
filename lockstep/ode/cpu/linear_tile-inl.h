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

using ode::cpu::LinearTile;

// The lanes of one register, as a system of scalars would be written. The arithmetic of each lane, its pivots included,
// is detail::LinearSystem's.
template <class T>
class LinearLanes {
 public:
  using D = hn::ScalableTag<T>;
  using L = HwyLane<D>;
  using V = hn::Vec<D>;

  LinearLanes(const LinearTile<T>& tile, int v) : tile_(tile), n_(tile.components), v_(static_cast<std::size_t>(v)) {}

  // J becomes 1/gamma - h J, where entries of h J count that are finite; so do those of f_t.
  HWY_INLINE void shift(T inverse_gamma, V h) const {
    const V minus_h = hn::Neg(h);
    for (std::size_t i = 0; i < n_; ++i) {
      for (std::size_t j = 0; j < n_; ++j) {
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
      for (std::size_t i = k + 1; i < n_; ++i) eliminate(k, i, inverse);
    }
  }

  // rows[component][lane] becomes the solution.
  HWY_INLINE void solve(T* rows) const {
    T* const b = rows + v_;
    for (std::size_t k = 0; k < n_; ++k) {
      const V pivot = hn::Load(d_, tile_.pivots + k * kTileLanes + v_);
      for_exchanges(k, pivot, [&](std::size_t i, hn::Mask<D> exchanged) {
        exchange(b + k * kTileLanes, b + i * kTileLanes, exchanged);
      });
    }
    for (std::size_t i = 1; i < n_; ++i) reduce(b, i, 0, i);
    for (std::size_t i = n_; i-- > 0;) {
      reduce(b, i, i + 1, n_);
      T* const at = b + i * kTileLanes;
      hn::Store(hn::Mul(hn::Load(d_, at), hn::Load(d_, entry(i, i))), d_, at);
    }
  }

  // The same of the transpose: P W = L U, hence W^T x = b for x = P^T z, L^T z = y, U^T y = b.
  HWY_INLINE void solve_transposed(T* rows) const {
    T* const b = rows + v_;
    for (std::size_t i = 0; i < n_; ++i) {
      reduce_transposed(b, i, 0, i);
      T* const at = b + i * kTileLanes;
      hn::Store(hn::Mul(hn::Load(d_, at), hn::Load(d_, entry(i, i))), d_, at);
    }
    for (std::size_t i = n_; i-- > 0;) reduce_transposed(b, i, i + 1, n_);
    for (std::size_t k = n_; k-- > 0;) {
      const V pivot = hn::Load(d_, tile_.pivots + k * kTileLanes + v_);
      for_exchanges(k, pivot, [&](std::size_t i, hn::Mask<D> exchanged) {
        exchange(b + k * kTileLanes, b + i * kTileLanes, exchanged);
      });
    }
  }

 private:
  static HWY_INLINE V finite_or(V x, V otherwise) {
    return hn::IfThenElse(hn::Eq(hn::Mul(x, hn::Zero(d_)), hn::Zero(d_)), x, otherwise);
  }

  HWY_INLINE T* entry(std::size_t i, std::size_t j) const { return tile_.matrix + (i * n_ + j) * kTileLanes + v_; }

  // The first row of those with the largest entry in column k, and puts it in row k's place.
  HWY_INLINE void choose_pivot(std::size_t k) const {
    V most = hn::Abs(hn::Load(d_, entry(k, k)));
    V pivot = hn::Set(d_, static_cast<T>(k));
    for (std::size_t i = k + 1; i < n_; ++i) {
      const V size = hn::Abs(hn::Load(d_, entry(i, k)));
      const auto larger = hn::Lt(most, size);
      most = hn::IfThenElse(larger, size, most);
      pivot = hn::IfThenElse(larger, hn::Set(d_, static_cast<T>(i)), pivot);
    }
    hn::Store(pivot, d_, tile_.pivots + k * kTileLanes + v_);
    for_exchanges(k, pivot, [&](std::size_t i, hn::Mask<D> exchanged) {
      for (std::size_t j = 0; j < n_; ++j) exchange(entry(k, j), entry(i, j), exchanged);
    });
  }

  // Calls each(i, lanes) for rows i below k that change places with it in any lane.
  template <class Each>
  HWY_INLINE void for_exchanges(std::size_t k, V pivot, const Each& each) const {
    if (hn::AllTrue(d_, hn::Eq(pivot, hn::Set(d_, static_cast<T>(k))))) return;
    for (std::size_t i = k + 1; i < n_; ++i) {
      const auto exchanged = hn::Eq(pivot, hn::Set(d_, static_cast<T>(i)));
      if (!hn::AllFalse(d_, exchanged)) each(i, exchanged);
    }
  }
  HWY_INLINE void exchange(T* a, T* b, hn::Mask<D> exchanged) const {
    const V x = hn::Load(d_, a), y = hn::Load(d_, b);
    hn::Store(hn::IfThenElse(exchanged, y, x), d_, a);
    hn::Store(hn::IfThenElse(exchanged, x, y), d_, b);
  }

  // Row i less its multiple of row k. Rows that hold zero in column k stay as they are: most of a band matrix.
  HWY_INLINE void eliminate(std::size_t k, std::size_t i, V inverse) const {
    const V multiple = hn::Mul(hn::Load(d_, entry(i, k)), inverse);
    hn::Store(multiple, d_, entry(i, k));
    const auto nothing = hn::Eq(multiple, hn::Zero(d_));
    if (hn::AllTrue(d_, nothing)) return;
    const V minus = hn::Neg(multiple);
    for (std::size_t j = k + 1; j < n_; ++j) {
      const V x = hn::Load(d_, entry(i, j));
      hn::Store(hn::IfThenElse(nothing, x, L::fma(minus, hn::Load(d_, entry(k, j)), x)), d_, entry(i, j));
    }
  }

  // b_i less the sum of w_ij b_j over columns from `first` to `end`.
  HWY_INLINE void reduce(T* b, std::size_t i, std::size_t first, std::size_t end) const {
    V sum = hn::Load(d_, b + i * kTileLanes);
    for (std::size_t j = first; j < end; ++j)
      sum = L::fma(hn::Neg(hn::Load(d_, entry(i, j))), hn::Load(d_, b + j * kTileLanes), sum);
    hn::Store(sum, d_, b + i * kTileLanes);
  }

  // b_i less the sum of w_ji b_j over rows from `first` to `end`.
  HWY_INLINE void reduce_transposed(T* b, std::size_t i, std::size_t first, std::size_t end) const {
    V sum = hn::Load(d_, b + i * kTileLanes);
    for (std::size_t j = first; j < end; ++j)
      sum = L::fma(hn::Neg(hn::Load(d_, entry(j, i))), hn::Load(d_, b + j * kTileLanes), sum);
    hn::Store(sum, d_, b + i * kTileLanes);
  }

  static constexpr D d_{};
  const LinearTile<T>& tile_;
  std::size_t n_, v_;
};

}  // namespace HWY_NAMESPACE
}  // namespace lockstep
HWY_AFTER_NAMESPACE();

#endif  // include guard a target
