#include "lockstep/kernels/graph/detail/layout.h"

#include <algorithm>
#include <utility>

namespace lockstep::graph {

std::size_t Layout::add(std::size_t rows, std::size_t time) {
  areas_.push_back({rows, time, time, areas_.size()});
  return areas_.size() - 1;
}

void Layout::lend(std::size_t area, Base base) { areas_[area].base = base; }

void Layout::extend(std::size_t area, std::size_t time) {
  area = resolve({area, 0}).area;
  areas_[area].first = std::min(areas_[area].first, time);
  areas_[area].last = std::max(areas_[area].last, time);
}

void Layout::join(std::size_t part, std::size_t whole, std::size_t offset) {
  areas_[part].parent = whole;
  areas_[part].offset = offset;
  extend(whole, areas_[part].first);
  extend(whole, areas_[part].last);
}

Layout::Place Layout::resolve(Place place) const {
  while (areas_[place.area].parent != place.area) {
    place.offset += areas_[place.area].offset;
    place.area = areas_[place.area].parent;
  }
  return place;
}

std::size_t Layout::allocate() {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < areas_.size(); ++i) {
    if (areas_[i].parent == i && areas_[i].base == 0) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return areas_[a].first < areas_[b].first; });
  std::size_t total = 0;
  std::vector<std::size_t> placed;
  for (const std::size_t area : order) {
    Area& mine = areas_[area];
    std::vector<std::pair<std::size_t, std::size_t>> taken;  // rows of those that live at the same time
    std::erase_if(placed, [&](std::size_t other) { return areas_[other].last < mine.first; });
    for (const std::size_t other : placed) taken.emplace_back(areas_[other].row, areas_[other].rows);
    std::sort(taken.begin(), taken.end());
    std::size_t row = 0;
    for (const auto& [first, count] : taken) {
      if (row + mine.rows <= first) break;
      row = std::max(row, first + count);
    }
    mine.row = row;
    total = std::max(total, row + mine.rows);
    placed.push_back(area);
  }
  return total;
}

std::size_t Layout::row(Place place) const {
  const Place outermost = resolve(place);
  return areas_[outermost.area].row + outermost.offset;
}

}  // namespace lockstep::graph
