// Where a tile's derivatives lie that are carried forward: where trajectories leave lanes free, those of several
// directions side by side, so that one trajectory fills a tile with its directions.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>

#include "lockstep/ode/cpu/tile_state.h"

namespace lockstep::ode::cpu {

// Of a component, `groups()` rows of kTileLanes numbers: [direction of the group][lane], `width()` lanes, the least
// power of two that holds the trajectories.
class DirectionLanes {
 public:
  // `beside`: of how many directions at most the lanes are filled by repeat().
  DirectionLanes(std::size_t trajectories, std::size_t directions, std::size_t beside = kTileLanes)
      : width_(std::bit_ceil(trajectories)),
        groups_((directions + side_by_side() - 1) / side_by_side()),
        used_(std::min(side_by_side(), beside) * width_) {}

  std::size_t width() const { return width_; }
  std::size_t side_by_side() const { return kTileLanes / width_; }
  std::size_t groups() const { return groups_; }
  std::size_t used() const { return used_; }  // lanes, the first ones
  std::size_t group(std::size_t direction) const { return direction / side_by_side(); }
  // Of a direction, its first lane in the rows of its group.
  std::size_t offset(std::size_t direction) const { return direction % side_by_side() * width_; }
  // Of a number, where the first trajectory's lies.
  std::size_t place(std::size_t component, std::size_t direction) const {
    return (component * groups_ + group(direction)) * kTileLanes + offset(direction);
  }

  // to[row][lane] of rows whose trajectories stand in every place in use side by side as they do in the first; it may
  // be `rows` itself.
  template <class Number>
  void repeat(const Number* rows, std::size_t count, Number* to) const {
    for (; count-- > 0; rows += kTileLanes, to += kTileLanes) {
      if (to != rows) std::copy_n(rows, width_, to);
      if (width_ == 1) std::fill_n(to, used_, rows[0]);
      for (std::size_t done = width_; width_ > 1 && done < used_; done *= 2)
        std::copy_n(to, std::min(done, used_ - done), to + done);
    }
  }
  // The same of a set of lanes.
  LaneMask repeat(LaneMask lanes) const {
    if (width_ == kTileLanes) return lanes;
    lanes &= (LaneMask{1} << width_) - 1;
    for (std::size_t done = width_; done < kTileLanes; done *= 2) lanes |= lanes << done;
    return lanes;
  }

 private:
  std::size_t width_, groups_, used_;
};

}  // namespace lockstep::ode::cpu
