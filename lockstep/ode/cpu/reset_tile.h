// The resets of a tile's lanes: which of them strikes first within a step, and what it makes of the state.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "lockstep/ode/cpu/solve_context.h"
#include "lockstep/ode/cpu/turning_lanes.h"
#include "lockstep/ode/detail/reset_side.h"
#include "lockstep/ode/detail/turn_search.h"

namespace lockstep::ode::cpu {

// One reset of a lane, and the state that it found.
struct ResetChange {
  int lane;
  std::size_t reset;
  std::vector<double> before;  // [component]
};

// When functions are evaluated of the states at the steps' ends, [lane]: before a jump there and, of lanes that go on
// behind one, then as well.
struct StepEnds {
  const double* before;
  const double* behind;
  LaneMask leaping;
};

template <class T>
class ResetTile {
 public:
  // [lane]: the number of the reset that strikes, or kNone.
  static constexpr int kNone = -1;
  using Striking = std::array<int, kTileLanes>;
  static Striking none() {
    Striking striking;
    striking.fill(kNone);
    return striking;
  }

  // `records`: of the tile's lanes. `seen`, [lane]: the times at which functions are evaluated of states that lie at
  // tile.t, each a side of a jump there.
  ResetTile(const SolveContext<T>& context, TileState<T>& tile, const LaneRecord<T>* records, const double* seen)
      : context_(context),
        tile_(tile),
        records_(records),
        seen_(seen),
        values_(context.resets.empty() ? 0 : kTileLanes) {
    for (auto* sides : {&sides_, &staged_}) sides->resize(count() * kTileLanes);
    ways_.resize(count() * kTileLanes);
    struck_at_.resize(count() * kTileLanes);
    for (auto* numbers : {&found_, &left_, &rounding_}) numbers->resize(count() * kTileLanes);
  }

  std::size_t count() const { return context_.resets.size(); }
  // Every change from now on is added to it. Null: none is.
  void keep_changes(std::vector<ResetChange>* changes) { changes_ = changes; }

  // The sides of trajectories at their start, in a staged tile or in the tile itself, seen at those times.
  void start(TileState<T>& staged, const double* seen) {
    const bool in_place = &staged == &tile_;
    std::vector<Side>& sides = in_place ? sides_ : staged_;
    if (in_place) std::ranges::fill(struck_at_, kNever);
    for (std::size_t i = 0; i < count(); ++i) {
      evaluate(i, seen, staged.y.data(), staged);
      T start[kTileLanes];
      std::copy_n(values_.data(), kTileLanes, start);
      LaneMask standing = 0;
      for (int lane = 0; lane < staged.lanes; ++lane)
        if (Side::stands_at_start(start[lane])) standing |= LaneMask{1} << lane;
      T rounding[kTileLanes] = {};
      if (standing != 0) see_rounding(i, standing, staged, seen, rounding);
      for (int lane = 0; lane < staged.lanes; ++lane) sides[at(i, lane)] = Side::at_start(start[lane], rounding[lane]);
    }
  }
  void install(int staged, int lane) {
    for (std::size_t i = 0; i < count(); ++i) {
      sides_[at(i, lane)] = staged_[at(i, staged)];
      struck_at_[at(i, lane)] = kNever;
    }
  }
  void move(int from, int to) {
    for (std::size_t i = 0; i < count(); ++i) {
      sides_[at(i, to)] = sides_[at(i, from)];
      struck_at_[at(i, to)] = struck_at_[at(i, from)];
    }
  }

  // Evaluates at the end of the accepted steps and, where the tile's scratch estimates the states, in the middle.
  // Returns the lanes for which the interpolant is needed to know more.
  LaneMask look_at_end(const StepEnds& ends) {
    LaneMask inside = 0;
    StepValues<T> values;
    for (std::size_t i = 0; i < count(); ++i) {
      evaluate(i, tile_.t_stage, tile_.scratch.data(), tile_);
      std::copy_n(values_.data(), kTileLanes, values.middle);
      evaluate(i, ends.before, tile_.y1.data(), tile_);
      LaneMask off = 0;
      for_lanes(tile_.accepted, [&](int lane) {
        Side& side = sides_[at(i, lane)];
        Way& way = ways_[at(i, lane)];
        values.before[lane] = way.before = side.before;
        values.after[lane] = way.at_end = way.leapt = value(lane);
        side.see_end(way.at_end);
        way.turns = false;
        way.crosses = detail::crosses(direction(i), way.before, way.at_end);
        if (way.crosses) way.search = {0, way.before, 1, way.at_end};
        if (side.on_threshold()) way.look = {};
        (way.crosses || side.on_threshold() ? inside : off) |= LaneMask{1} << lane;
      });
      inside |= lanes_where(turning_lanes(off, values), [&](int lane) {
        Way& way = ways_[at(i, lane)];
        way.turn = {way.before, values.middle[lane], way.at_end, strikes(i)};
        return way.turns = way.turn.open();
      });
      if (ends.leaping == 0) continue;
      evaluate(i, ends.behind, tile_.y1.data(), tile_);
      for_lanes(ends.leaping, [&](int lane) {
        ways_[at(i, lane)].leapt = value(lane);
        sides_[at(i, lane)].see_end(value(lane));
      });
    }
    return inside;
  }

  // After that: which reset strikes first within each lane's step, or at the end of those that leap, and where, in
  // `theta`, which holds where an event does, or 2, and keeps it where no reset comes before.
  Striking find_first(const StepCode<T>& code, LaneMask inside, LaneMask leaping, double* theta) {
    Striking striking = none();
    resting_ = leapt_ = 0;
    for (std::size_t i = 0; i < count(); ++i) {
      look_at_threshold(code, i, inside);
      look_for_turns(code, i, inside);
      const LaneMask crossing = lanes_where(inside, [&](int lane) { return ways_[at(i, lane)].crosses; });
      search(code, i, crossing);
      for_lanes(crossing, [&](int lane) {
        const double own = ways_[at(i, lane)].search.high();
        if (own >= theta[lane]) return;
        theta[lane] = own;
        striking[static_cast<std::size_t>(lane)] = static_cast<int>(i);
        leapt_ &= ~(LaneMask{1} << lane);
      });
      for_lanes(leaping & ~crossing, [&](int lane) {
        Way& way = ways_[at(i, lane)];
        way.search = {};
        if (theta[lane] <= 1 || !detail::crosses(direction(i), way.at_end, way.leapt)) return;
        theta[lane] = 1;
        striking[static_cast<std::size_t>(lane)] = static_cast<int>(i);
        leapt_ |= LaneMask{1} << lane;
      });
    }
    return striking;
  }
  // Lanes for which that is a reset whose function leaps, with the time, where the step ends.
  LaneMask leapt() const { return leapt_; }
  // Whether that reset, which strikes at t, does so without time between it and its last time.
  bool piles_up(int reset, int lane, double t, double smallest_step) const {
    const std::size_t place = at(static_cast<std::size_t>(reset), lane);
    const Side& side = sides_[place];
    return detail::piles_up(side.on_threshold() ? ways_[place].look.side_where_cut(side) : side, struck_at_[place],
                            tile_.t[lane], t, smallest_step);
  }
  // Lanes that come to rest on a threshold where the step begins.
  LaneMask resting() const { return resting_; }

  // Of lanes whose steps nothing cut short.
  void keep_ends(LaneMask lanes) {
    for (std::size_t i = 0; i < count(); ++i) {
      for_lanes(lanes, [&](int lane) {
        Side& side = sides_[at(i, lane)];
        const Way& way = ways_[at(i, lane)];
        side = side.on_threshold() ? way.look.side_at_end(side, way.leapt) : side.off(way.leapt);
      });
    }
  }

  // Of lanes that resets cut short: where they are left between, and from where those struck.
  void keep_cuts(LaneMask lanes, const Striking& striking) {
    for (std::size_t i = 0; i < count(); ++i) {
      for_lanes(lanes, [&](int lane) {
        Side& side = sides_[at(i, lane)];
        const Way& way = ways_[at(i, lane)];
        if (side.on_threshold()) {
          side = way.look.side_where_cut(side);
        } else if (striking[static_cast<std::size_t>(lane)] == static_cast<int>(i)) {
          side.before = way.before;
        }
      });
    }
  }

  // Lanes whose states, tile.y at tile.t, change at once: by the resets that strike, or, where there are none, they
  // have by impulses. The resets follow that this strikes, each once. ends(lanes) tells which lanes their event ends,
  // before and after each change; returns those.
  template <class Ends>
  LaneMask settle(LaneMask lanes, Striking striking, const Ends& ends) {
    std::uint64_t used[kTileLanes] = {};
    const Striking searched = striking;
    LaneMask ended =
        ends(lanes_where(lanes, [&](int lane) { return striking[static_cast<std::size_t>(lane)] != kNone; }));
    for (LaneMask changing = lanes & ~ended; changing != 0;) {
      apply(changing, striking, used);
      const LaneMask over = ends(changing);
      ended |= over;
      changing = choose_next(changing & ~over, striking, used);
    }
    leave(lanes & ~ended, searched, used);
    return ended;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::quiet_NaN();
  using Side = detail::ResetSide<T>;
  using Look = detail::ThresholdLook<T>;
  struct Way {  // of one reset through a step
    T at_end = 0, leapt = 0;  // its value there, and behind a jump with the time
    T before = 0;  // where the search for its crossing begins
    bool crosses = false, turns = false;
    Look look = {};                         // where it begins on the threshold
    detail::UnresolvedTime<T> behind = {};  // likewise
    detail::TurnSearch<T> turn = {};        // where it does not, and ends on the side on which it began
    detail::CrossingSearch<T> search = {};  // where it crosses
  };

  static std::size_t at(std::size_t reset, int lane) { return reset * kTileLanes + static_cast<std::size_t>(lane); }
  template <class Which>
  static LaneMask lanes_where(LaneMask lanes, const Which& which) {
    LaneMask result = 0;
    for_lanes(lanes, [&](int lane) { result |= which(lane) ? LaneMask{1} << lane : 0; });
    return result;
  }
  template <class Body>
  static void for_lanes(LaneMask lanes, const Body& body) {
    for (; lanes != 0; lanes &= lanes - 1) body(std::countr_zero(lanes));
  }
  TerminalEvent::Direction direction(std::size_t i) const { return context_.problem->resets[i].direction; }
  auto strikes(std::size_t i) const {
    return [direction = direction(i)](T before, T after) { return detail::crosses(direction, before, after); };
  }
  void evaluate(std::size_t i, const double* t, const T* states, const TileState<T>& tile) {
    context_.resets[i].function->evaluate({t, states, tile.parameters.data(), values_.data(), tile.lanes},
                                          tile.workspace);
  }
  T value(int lane) const { return values_[static_cast<std::size_t>(lane)]; }

  // At theta of each lane's step.
  void evaluate_within(const StepCode<T>& code, std::size_t i) {
    for (int lane = 0; lane < tile_.lanes; ++lane)
      tile_.t_stage[lane] = std::fma(tile_.theta[lane], tile_.h_try[lane], tile_.t[lane]);
    evaluate_at_stage_times(code, i);
  }
  void evaluate_at_stage_times(const StepCode<T>& code, std::size_t i) {
    code.kernels.interpolate(tile_, code.settings);
    evaluate(i, tile_.t_stage, tile_.scratch.data(), tile_);
  }

  // What time alone changes just behind those lanes' own.
  void see_unresolved(std::size_t i, LaneMask lanes) {
    T here[kTileLanes];
    double begin[kTileLanes];
    times_behind(tile_, context_.step.settings.has_stops, begin);
    evaluate(i, begin, tile_.y.data(), tile_);
    std::copy_n(values_.data(), kTileLanes, here);
    std::copy_n(begin, kTileLanes, tile_.t_stage);
    for_lanes(lanes, [&](int lane) {
      ways_[at(i, lane)].behind = {begin[lane], tile_.h_try[lane]};
      tile_.t_stage[lane] = ways_[at(i, lane)].behind.end();
    });
    evaluate(i, tile_.t_stage, tile_.y.data(), tile_);
    for_lanes(lanes, [&](int lane) { ways_[at(i, lane)].behind.see(here[lane], value(lane)); });
  }

  void look_at_threshold(const StepCode<T>& code, std::size_t i, LaneMask inside) {
    LaneMask looking = lanes_where(inside, [&](int lane) { return sides_[at(i, lane)].on_threshold(); });
    const LaneMask standing = looking;
    if (standing != 0) see_unresolved(i, standing);
    const auto elapsed = [&](int lane) { return tile_.theta[lane] * tile_.h_try[lane]; };
    while (looking != 0) {
      for_lanes(looking, [&](int lane) {
        const Way& way = ways_[at(i, lane)];
        tile_.theta[lane] = Look::theta(way.look.next());
        tile_.t_stage[lane] = way.behind.time(elapsed(lane));
      });
      evaluate_at_stage_times(code, i);
      for_lanes(looking, [&](int lane) {
        Way& way = ways_[at(i, lane)];
        way.look.see(sides_[at(i, lane)], direction(i), way.behind.value(elapsed(lane), value(lane)), way.at_end);
      });
      looking = lanes_where(looking, [&](int lane) { return ways_[at(i, lane)].look.next() < Look::kLooks; });
    }
    for_lanes(standing, [&](int lane) {
      Way& way = ways_[at(i, lane)];
      way.crosses = way.look.found();
      if (way.look.rests()) resting_ |= LaneMask{1} << lane;
      if (!way.crosses) return;
      way.search = way.look.search();
      way.before = way.look.side();
    });
  }

  void look_for_turns(const StepCode<T>& code, std::size_t i, LaneMask inside) {
    const LaneMask looking = lanes_where(inside, [&](int lane) { return ways_[at(i, lane)].turns; });
    const auto turn_of = [&](int lane) -> detail::TurnSearch<T>& { return ways_[at(i, lane)].turn; };
    follow_turns(
        looking, turn_of, tile_.theta, [&] { evaluate_within(code, i); }, values_.data(), strikes(i));
    for_lanes(looking, [&](int lane) {
      Way& way = ways_[at(i, lane)];
      if (!way.turn.found()) return;
      way.crosses = true;
      way.before = way.turn.at_low();
      way.search = {way.turn.low(), way.turn.at_low(), way.turn.high(), way.turn.at_high()};
    });
  }

  void search(const StepCode<T>& code, std::size_t i, LaneMask crossing) {
    const auto open = [&](int lane) { return !ways_[at(i, lane)].search.done(); };
    for (LaneMask searching = lanes_where(crossing, open); searching != 0; searching = lanes_where(searching, open)) {
      for_lanes(searching, [&](int lane) { tile_.theta[lane] = ways_[at(i, lane)].search.theta(); });
      evaluate_within(code, i);
      for_lanes(searching, [&](int lane) {
        Way& way = ways_[at(i, lane)];
        way.search.see(value(lane), detail::crosses(direction(i), way.before, value(lane)));
      });
    }
  }

  // Behind changes of those lanes' states: by the resets `used`, of which a search had found `searched`.
  void leave(LaneMask lanes, const Striking& searched, const std::uint64_t* used) {
    const auto is_used = [&](std::size_t i, int lane) { return ((used[lane] >> i) & 1) != 0; };
    const auto changed = [&](std::size_t i, int lane) {
      const std::size_t place = at(i, lane);
      const bool was_searched = searched[static_cast<std::size_t>(lane)] == static_cast<int>(i);
      return detail::ChangedSide<T>{sides_[place], direction(i), is_used(i, lane),
                                    found_[place], left_[place], was_searched ? ways_[place].search.untold() : T(0)};
    };
    for (std::size_t i = 0; i < count(); ++i) {
      const LaneMask standing = lanes_where(lanes, [&](int lane) { return changed(i, lane).may_stand(); });
      if (standing != 0) see_rounding(i, standing, tile_, seen_, &rounding_[at(i, 0)]);
    }
    for_lanes(lanes, [&](int lane) {
      detail::leave_changed<T>(
          count(), [&](std::size_t i) { return changed(i, lane); },
          [&](std::size_t i) { return rounding_[at(i, lane)]; });
      for (std::size_t i = 0; i < count(); ++i)
        if (is_used(i, lane)) struck_at_[at(i, lane)] = tile_.t[lane];
    });
  }

  // What a reset's function may be off by for roundings where those lanes are, seen at those times: [lane].
  void see_rounding(std::size_t i, LaneMask lanes, TileState<T>& tile, const double* seen, T* rounding) {
    using Rounding = detail::FunctionRounding<T>;
    Rounding roundings[kTileLanes];
    T here[kTileLanes];
    const auto see = [&](const double* t, const T* states) {
      evaluate(i, t, states, tile);
      for_lanes(lanes, [&](int lane) { roundings[lane].see(here[lane], value(lane)); });
    };
    evaluate(i, seen, tile.y.data(), tile);
    std::copy_n(values_.data(), kTileLanes, here);
    double moved_times[kTileLanes];
    for (int lane = 0; lane < kTileLanes; ++lane) moved_times[lane] = Rounding::moved_time(seen[lane]);
    see(moved_times, tile.y.data());
    for (std::size_t move = 0; move < Rounding::moves(tile.components); ++move) {
      std::copy(tile.y.begin(), tile.y.end(), tile.scratch.begin());
      for (std::size_t c = move; c < tile.components; c += Rounding::kGroups) {
        for (int lane = 0; lane < tile.lanes; ++lane) {
          T& moved = tile.scratch[c * kTileLanes + static_cast<std::size_t>(lane)];
          moved = Rounding::moved(c, moved);
        }
      }
      see(seen, tile.scratch.data());
    }
    for_lanes(lanes, [&](int lane) { rounding[lane] = roundings[lane].value(); });
  }

  // The resets that strike lanes of `changing`.
  void apply(LaneMask changing, const Striking& striking, std::uint64_t* used) {
    for (std::size_t i = 0; i < count(); ++i) {
      const LaneMask struck = lanes_where(
          changing, [&](int lane) { return striking[static_cast<std::size_t>(lane)] == static_cast<int>(i); });
      if (struck == 0) continue;
      evaluate(i, seen_, tile_.y.data(), tile_);
      context_.resets[i].state->evaluate(
          {seen_, tile_.y.data(), tile_.parameters.data(), tile_.scratch.data(), tile_.lanes}, tile_.workspace);
      for_lanes(struck, [&](int lane) {
        used[lane] |= std::uint64_t{1} << i;
        found_[at(i, lane)] = value(lane);
        if (records_[lane].events != nullptr)
          records_[lane].events->push_back({tile_.t[lane], static_cast<std::int32_t>(i)});
        if (changes_ != nullptr) {
          changes_->push_back({lane, i, {}});
          for (std::size_t c = 0; c < context_.components(); ++c)
            changes_->back().before.push_back(tile_.y[c * kTileLanes + static_cast<std::size_t>(lane)]);
        }
        for (std::size_t place = static_cast<std::size_t>(lane); place < tile_.y.size(); place += kTileLanes)
          tile_.y[place] = tile_.scratch[place];
      });
    }
  }

  // The lanes of `changed` that a reset strikes in their new state; which one.
  LaneMask choose_next(LaneMask changed, Striking& striking, const std::uint64_t* used) {
    striking = none();
    LaneMask chosen = 0;
    for (std::size_t i = 0; i < count() && changed != 0; ++i) {
      evaluate(i, seen_, tile_.y.data(), tile_);
      for_lanes(changed, [&](int lane) {
        left_[at(i, lane)] = value(lane);
        const bool may = ((used[lane] >> i) & 1) == 0 && ((chosen >> lane) & 1) == 0;
        if (!may || !sides_[at(i, lane)].is_struck(direction(i), value(lane))) return;
        striking[static_cast<std::size_t>(lane)] = static_cast<int>(i);
        chosen |= LaneMask{1} << lane;
      });
    }
    return chosen;
  }

  const SolveContext<T>& context_;
  TileState<T>& tile_;
  const LaneRecord<T>* records_;      // [lane]
  const double* seen_;                // [lane]
  AlignedBuffer<T> values_;           // [lane], of the function evaluated last
  std::vector<Side> sides_, staged_;  // [reset][lane]: where the step begins, of staged ones
  std::vector<Way> ways_;             // [reset][lane]
  LaneMask resting_ = 0, leapt_ = 0;
  std::vector<ResetChange>* changes_ = nullptr;
  std::vector<double> struck_at_;  // [reset][lane]: when it struck last
  std::vector<T> found_, left_;    // [reset][lane]: its value before its own change, behind the last one
  std::vector<T> rounding_;        // [reset][lane]: and what that may be off by, where it matters
};

}  // namespace lockstep::ode::cpu
