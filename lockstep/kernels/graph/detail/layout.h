// Where each value of a graph lies in a tile: which values share rows, how long they live, and which rows those are.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lockstep::graph {

// Areas are runs of rows that hold one value or several. An area may become a part of a later, larger one.
class Layout {
 public:
  struct Place {
    std::size_t area;
    std::size_t offset;  // rows from the area's first
  };

  // The base of rows that lie with the caller: 0 is the tile's own.
  using Base = std::uint8_t;

  // `time` orders the steps; an area lives from the first time to the last that is told of it, both included.
  std::size_t add(std::size_t rows, std::size_t time);
  // From now on the area's rows are the caller's: from the first of `base` on. It may be no part of another.
  void lend(std::size_t area, Base base);
  void extend(std::size_t area, std::size_t time);
  // Makes `part`, whole, rows offset... of `whole`.
  void join(std::size_t part, std::size_t whole, std::size_t offset);
  // In the outermost area.
  Place resolve(Place place) const;
  std::size_t last(std::size_t area) const { return areas_[area].last; }
  std::size_t rows(std::size_t area) const { return areas_[area].rows; }

  // Gives every outermost area its rows, so that no two that live at one time share any; returns how many there are.
  std::size_t allocate();
  std::size_t row(Place place) const;  // after allocate(), from the first of its base
  Base base(Place place) const { return areas_[resolve(place).area].base; }

 private:
  struct Area {
    std::size_t rows, first, last;
    std::size_t parent;  // itself where it is outermost
    std::size_t offset = 0;
    std::size_t row = 0;
    Base base = 0;
  };
  std::vector<Area> areas_;
};

}  // namespace lockstep::graph
