#include "lockstep/ode/linear_layout.h"

#include <numeric>
#include <utility>

namespace lockstep::ode {
namespace {

using Lists = std::vector<std::vector<std::size_t>>;
using Order = std::vector<std::size_t>;

// Which equations share an entry, either way.
Lists neighbours(const Lists& pattern) {
  Lists of(pattern.size());
  for (std::size_t row = 0; row < pattern.size(); ++row) {
    for (const std::size_t column : pattern[row]) {
      if (column == row) continue;
      of[row].push_back(column);
      of[column].push_back(row);
    }
  }
  for (std::vector<std::size_t>& list : of) {
    std::ranges::sort(list);
    list.erase(std::unique(list.begin(), list.end()), list.end());
  }
  return of;
}

// All that is connected with `start`, level by level, in each those of fewer neighbours first.
struct Levels {
  Order order;
  std::size_t count = 0, last_begin = 0;  // the last level's first place in `order`
};
Levels levels_from(std::size_t start, const Lists& neighbours, std::vector<bool>& seen) {
  Levels levels{{start}};
  seen[start] = true;
  for (std::size_t begin = 0; begin < levels.order.size();) {
    const std::size_t end = levels.order.size();
    for (std::size_t at = begin; at < end; ++at) {
      const auto first = static_cast<std::ptrdiff_t>(levels.order.size());
      for (const std::size_t next : neighbours[levels.order[at]]) {
        if (!seen[next]) levels.order.push_back(next);
        seen[next] = true;
      }
      std::ranges::stable_sort(levels.order.begin() + first, levels.order.end(), {},
                               [&](std::size_t i) { return neighbours[i].size(); });
    }
    levels.last_begin = begin;
    ++levels.count;
    begin = end;
  }
  return levels;
}

// Of a piece, from one of its ends: where the levels are as many, and so as narrow, as can easily be had.
Levels longest_levels(std::size_t start, const Lists& neighbours, std::vector<bool>& seen) {
  Levels levels = levels_from(start, neighbours, seen);
  while (true) {
    const auto last = levels.order.begin() + static_cast<std::ptrdiff_t>(levels.last_begin);
    const std::size_t end =
        *std::ranges::min_element(last, levels.order.end(), {}, [&](std::size_t i) { return neighbours[i].size(); });
    for (const std::size_t i : levels.order) seen[i] = false;
    Levels from_end = levels_from(end, neighbours, seen);
    if (from_end.count <= levels.count) return levels;
    levels = std::move(from_end);
  }
}

Order cuthill_mckee(const Lists& neighbours) {
  Order by_degree(neighbours.size()), order;
  std::iota(by_degree.begin(), by_degree.end(), std::size_t{0});
  std::ranges::stable_sort(by_degree, {}, [&](std::size_t i) { return neighbours[i].size(); });
  std::vector<bool> seen(neighbours.size());
  for (const std::size_t start : by_degree) {
    if (seen[start]) continue;
    const Levels levels = longest_levels(start, neighbours, seen);
    order.insert(order.end(), levels.order.begin(), levels.order.end());
  }
  return order;
}

Order inverse(const Order& order) {
  Order place(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  return place;
}

// How far entries lie from the diagonal.
struct Band {
  std::size_t below = 0, above = 0;
  std::size_t width() const { return 2 * below + above + 1; }  // with exchanges of rows
};
Band band_of(const Lists& pattern, const Order& order) {
  const Order place = inverse(order);
  Band band;
  for (std::size_t row = 0; row < pattern.size(); ++row) {
    for (const std::size_t column : pattern[row]) {
      const std::size_t i = place[row], j = place[column];
      (j < i ? band.below : band.above) = std::max(j < i ? band.below : band.above, j < i ? i - j : j - i);
    }
  }
  return band;
}

}  // namespace

LinearLayout::LinearLayout(std::vector<std::size_t> order, std::size_t below, std::size_t above, bool is_band)
    : order_(std::move(order)),
      place_(inverse(order_)),
      n_(order_.size()),
      below_(below),
      reach_(below + above),
      stride_(is_band ? below_ + reach_ : n_),
      shift_(is_band ? below_ : 0),
      is_band_(is_band) {}

LinearLayout LinearLayout::dense(std::size_t n) {
  Order order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return {std::move(order), n, 0, false};
}

LinearLayout LinearLayout::of(const Lists& pattern) {
  const std::size_t n = pattern.size();
  Order given(n);
  std::iota(given.begin(), given.end(), std::size_t{0});
  Order forward = cuthill_mckee(neighbours(pattern)), backward(forward.rbegin(), forward.rend());
  Order* best = &given;
  for (Order* order : {&backward, &forward}) {
    if (band_of(pattern, *order).width() < band_of(pattern, *best).width()) best = order;
  }
  const Band band = band_of(pattern, *best);
  if (2 * band.width() > n) return dense(n);
  return {std::move(*best), band.below, band.above, true};
}

}  // namespace lockstep::ode
