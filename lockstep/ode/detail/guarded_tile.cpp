#include "lockstep/ode/detail/guarded_tile.h"

#include <algorithm>
#include <limits>

namespace lockstep::ode::detail {

// A tile of our own in the workspace.
template <class T>
struct GuardedTile<T>::Copy {
  double* t;
  T* in;
  T* parameters;
  T* out;

  TileView<T> view() const { return {t, in, parameters, out, kTileLanes}; }

  // Place `to` gets the numbers of lane `from`.
  void take(const TileView<T>& tile, std::size_t components, std::size_t parameter_count, int from, int to) const {
    t[to] = tile.t[from];
    for (std::size_t c = 0; c < components; ++c) in[c * kTileLanes + to] = tile.in[c * kTileLanes + from];
    for (std::size_t q = 0; q < parameter_count; ++q) {
      parameters[q * kTileLanes + to] = tile.parameters[q * kTileLanes + from];
    }
  }
};

template <class T>
std::size_t GuardedTile<T>::guard_bytes() const {
  static_assert(kTileLanes * sizeof(T) % 64 == 0);
  return kTileLanes * (sizeof(double) + (components_ + parameters_ + outputs_) * sizeof(T));
}

template <class T>
typename GuardedTile<T>::Copy GuardedTile<T>::copy_in(std::byte* workspace) const {
  Copy copy;
  copy.t = reinterpret_cast<double*>(workspace);
  copy.in = reinterpret_cast<T*>(copy.t + kTileLanes);
  copy.parameters = copy.in + components_ * kTileLanes;
  copy.out = copy.parameters + parameters_ * kTileLanes;
  return copy;
}

template <class T>
void GuardedTile<T>::evaluate(const TileView<T>& tile, std::byte* workspace) const {
  try {
    if (tile.lanes == kTileLanes) {
      evaluate_whole(tile, workspace + guard_bytes());
      return;
    }
    const Copy copy = copy_in(workspace);
    for (int lane = 0; lane < kTileLanes; ++lane) {
      copy.take(tile, components_, parameters_, std::min(lane, tile.lanes - 1), lane);
    }
    evaluate_whole(copy.view(), workspace + guard_bytes());
    for (std::size_t o = 0; o < outputs_; ++o) {
      std::copy_n(copy.out + o * kTileLanes, tile.lanes, tile.out + o * kTileLanes);
    }
  } catch (...) {
    isolate(tile, workspace);
  }
}

template <class T>
void GuardedTile<T>::isolate(const TileView<T>& tile, std::byte* workspace) const {
  const Copy copy = copy_in(workspace);
  for (int lane = 0; lane < tile.lanes; ++lane) {
    for (int place = 0; place < kTileLanes; ++place) copy.take(tile, components_, parameters_, lane, place);
    try {
      evaluate_whole(copy.view(), workspace + guard_bytes());
    } catch (...) {
      std::fill_n(copy.out, outputs_ * kTileLanes, std::numeric_limits<T>::quiet_NaN());
    }
    for (std::size_t o = 0; o < outputs_; ++o) tile.out[o * kTileLanes + lane] = copy.out[o * kTileLanes];
  }
}

template class GuardedTile<float>;
template class GuardedTile<double>;

}  // namespace lockstep::ode::detail
