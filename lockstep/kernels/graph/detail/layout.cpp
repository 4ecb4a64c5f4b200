#include "lockstep/kernels/graph/detail/layout.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <queue>
#include <set>
#include <utility>

namespace lockstep::graph {
namespace {

// Rows that nothing lies in. Each taker gets the first ones that follow each other in sufficient number.
class FreeRows {
 public:
  std::size_t take(std::size_t rows) {
    const auto [last, last_count] = gaps_.empty() ? Gap(most_, 0) : Gap(*gaps_.rbegin());
    std::size_t row = last + last_count == most_ ? last : most_;
    for (auto alike = by_count_.lower_bound(rows); alike != by_count_.end(); ++alike) {
      row = std::min(row, *alike->second.begin());
    }
    const auto found = gaps_.find(row);
    const std::size_t count = found != gaps_.end() ? found->second : 0;
    if (found != gaps_.end()) remove(row, count);
    if (count > rows) add(row + rows, count - rows);
    most_ = std::max(most_, row + rows);
    return row;
  }

  void give_back(std::size_t row, std::size_t count) {
    auto after = gaps_.lower_bound(row);
    if (after != gaps_.end() && after->first == row + count) {
      const std::size_t more = after->second;
      remove(row + count, more);
      count += more;
    }
    after = gaps_.lower_bound(row);
    if (after != gaps_.begin()) {
      const auto [before, more] = *std::prev(after);
      if (before + more == row) {
        remove(before, more);
        row = before;
        count += more;
      }
    }
    add(row, count);
  }

  // As many rows as were ever taken at one time, gaps between them included.
  std::size_t most() const { return most_; }

 private:
  using Gap = std::pair<std::size_t, std::size_t>;  // first row, how many

  void add(std::size_t row, std::size_t count) {
    gaps_[row] = count;
    by_count_[count].insert(row);
  }
  void remove(std::size_t row, std::size_t count) {
    gaps_.erase(row);
    const auto alike = by_count_.find(count);
    alike->second.erase(row);
    if (alike->second.empty()) by_count_.erase(alike);
  }

  std::map<std::size_t, std::size_t> gaps_;                // by first row: how many
  std::map<std::size_t, std::set<std::size_t>> by_count_;  // their first rows
  std::size_t most_ = 0;
};

}  // namespace

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
  FreeRows free;
  using Ending = std::pair<std::size_t, std::size_t>;  // the last time of an area, the area
  std::priority_queue<Ending, std::vector<Ending>, std::greater<>> placed;
  for (const std::size_t area : order) {
    Area& mine = areas_[area];
    for (; !placed.empty() && placed.top().first < mine.first; placed.pop()) {
      const Area& ended = areas_[placed.top().second];
      free.give_back(ended.row, ended.rows);
    }
    mine.row = free.take(mine.rows);
    placed.emplace(mine.last, area);
  }
  return free.most();
}

std::size_t Layout::row(Place place) const {
  const Place outermost = resolve(place);
  return areas_[outermost.area].row + outermost.offset;
}

}  // namespace lockstep::graph
