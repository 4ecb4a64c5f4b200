// What every tile function made of somebody's code needs: it always works on whole tiles, and a lane that throws
// spoils itself only.
#pragma once

#include <cstddef>

#include "lockstep/kernels/tile.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode::detail {

inline constexpr std::size_t round_up_to_alignment(std::size_t bytes) { return (bytes + 63) / 64 * 64; }

// Lanes beyond tile.lanes are filled with copies of the last wanted one, so that evaluate_whole() sees every lane
// holding numbers some trajectory really has. When it throws, each lane is tried on its own and becomes NaN if it
// throws again; the others keep the bits they would have had.
template <class T>
class GuardedTile : public TileFunction<T> {
 public:
  void evaluate(const TileView<T>& tile, std::byte* workspace) const final;
  std::size_t workspace_bytes() const final { return guard_bytes() + whole_workspace_bytes(); }

 protected:
  GuardedTile(std::size_t components, std::size_t parameters, std::size_t outputs)
      : components_(components), parameters_(parameters), outputs_(outputs) {}

  // tile.lanes == kTileLanes; may throw.
  virtual void evaluate_whole(const TileView<T>& tile, std::byte* workspace) const = 0;
  virtual std::size_t whole_workspace_bytes() const { return 0; }

 private:
  struct Copy;
  std::size_t guard_bytes() const;
  Copy copy_in(std::byte* workspace) const;
  void isolate(const TileView<T>& tile, std::byte* workspace) const;

  std::size_t components_;
  std::size_t parameters_;
  std::size_t outputs_;
};

extern template class GuardedTile<float>;
extern template class GuardedTile<double>;

}  // namespace lockstep::ode::detail
