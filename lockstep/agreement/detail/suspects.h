// Which few trajectories of an ensemble to look at twice: those that lie farthest out of what the certified ones show.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lockstep/agreement/spread.h"

namespace lockstep::agreement {

// Two scores for each trajectory, both in standard deviations of the members' own: how far it is at a time, and how
// much farther than at the save point before. Growth over one interval varies much less than growth since the start,
// so that the second finds a trajectory that is wrong at some times and still nearer than the ensemble's farthest.
// Scores only choose; what is chosen is judged by members of its own. Keeps the highest of each; bounded memory.
class Suspects {
 public:
  static constexpr std::size_t kEach = 16;

  explicit Suspects(const Spread& spread) {
    if (spread.deviation.size() != spread.at.size()) return;
    for (std::size_t k = 0; k < spread.at.size(); ++k) {
      const double median = spread.at[k][kMedian];
      const bool decisive = median > 0 && median < spread.decisive();
      times_.push_back({decisive, decisive ? 1 / median : 0, 1 / std::max(spread.deviation[k], kLeastDeviation),
                        1 / std::max(spread.jump_deviation[k], kLeastDeviation)});
    }
  }

  // All distances of one trajectory, [time]; ended or not compared: negative. Infinite ones are found otherwise.
  void add(std::size_t trajectory, const std::vector<double>& distance) {
    double level = 0, jump = 0, before = 0;
    for (std::size_t k = 0; k < times_.size(); ++k) {
      const Time& time = times_[k];
      if (!time.decisive || !(distance[k] >= 0)) continue;
      const double size = log2(std::max(distance[k] * time.inverse_median, kFloor));
      level = std::max(level, size * time.inverse_deviation);
      jump = std::max(jump, (size - before) * time.inverse_jump);
      before = size;
    }
    keep(by_level_, {level, trajectory});
    keep(by_jump_, {jump, trajectory});
  }

  // Ascending.
  std::vector<std::size_t> trajectories() const {
    std::vector<std::size_t> all;
    for (const auto* list : {&by_level_, &by_jump_}) {
      for (const Score& score : *list) all.push_back(score.trajectory);
    }
    std::ranges::sort(all);
    all.erase(std::unique(all.begin(), all.end()), all.end());
    return all;
  }

  // Distances below this part of the median tell of chance alone: a difference that passes through zero.
  static constexpr double kFloor = 0.25;
  // Straight lines between powers of two: within 0.09, in a few instructions.
  static double log2(double x) {
    return static_cast<double>(std::bit_cast<std::int64_t>(x) - std::int64_t{1023} * (std::int64_t{1} << 52)) * 0x1p-52;
  }

 private:
  static constexpr double kLeastDeviation = 0.5;  // octaves
  struct Time {
    bool decisive;
    double inverse_median, inverse_deviation, inverse_jump;
  };
  struct Score {
    double score;
    std::size_t trajectory;
  };
  // A heap with the lowest score in front.
  static void keep(std::vector<Score>& list, Score score) {
    const auto higher = [](const Score& x, const Score& y) { return x.score > y.score; };
    if (list.size() == kEach) {
      if (!(score.score > list.front().score)) return;
      std::ranges::pop_heap(list, higher);
      list.pop_back();
    }
    list.push_back(score);
    std::ranges::push_heap(list, higher);
  }

  std::vector<Time> times_;
  std::vector<Score> by_level_, by_jump_;
};

}  // namespace lockstep::agreement
