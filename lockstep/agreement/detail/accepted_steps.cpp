#include "lockstep/agreement/detail/accepted_steps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "lockstep/agreement/certificate.h"
#include "lockstep/agreement/detail/own_members.h"
#include "lockstep/ode/solve.h"

namespace lockstep::agreement {
namespace {

// An accident of each of the two that are compared, and one that another follows at once: a step that passes over what
// it ought to see is followed by one that is as long.
constexpr std::size_t kMostGaps = 4;
constexpr std::ptrdiff_t kGapSaves = 8;  // save points from the departure to where it is a solution again
constexpr std::ptrdiff_t kEarlier = 2;   // a step that ends in the gap may begin some save points before it
constexpr std::ptrdiff_t kBeyond = 2;    // and end so many behind it
// No right trajectory of 480,000 was ten times as far as its members (docs/validation.md): one that is as near as that
// has not begun to leave.
constexpr double kNear = 10;
constexpr double kLikeness = 0.25;  // how far from an accepted step's way, as a share of how far it leads
// Tried are so many beginnings by as many sizes, then 4, 16, ... times as many, until one is found or the attempts of
// all are too many.
constexpr std::size_t kFirstTrials = 64;
constexpr double kMostAttempts = 1 << 23;
constexpr double kLongest = 16;  // sizes tried: from the mean step to so many times that

class Row {
 public:
  Row(const ode::Problem& problem, const ode::Options& options, const std::vector<double>& states, const Scale& scale,
      const Spread& spread, std::size_t trajectories, const RunControl& control)
      : problem_(problem),
        options_(options),
        states_(states),
        scale_(scale),
        spread_(spread),
        trajectories_(trajectories),
        control_(control),
        components_(scale.components()) {
    while (points_ < problem.save_points() &&
           std::all_of(state(points_), state(points_) + components_, [](double x) { return std::isfinite(x); }))
      ++points_;
  }

  bool is_explained() {
    if (points_ < 2) return false;
    Save from = kStart;
    for (std::size_t gap = 0; gap <= kMostGaps; ++gap) {
      const Way way = follow(from);
      if (!way.departure) return true;
      if (gap == kMostGaps) return false;
      const Save departure = *way.departure;
      if (time(departure) == time(from)) return false;
      Save near = from;
      for (Save k = from + 1; k < departure; ++k) {
        if (way.ratio_at(k) > kNear) break;
        near = k;
      }
      // Where it is a solution again: for as long as possible.
      Save behind = departure, until = kStart;
      for (Save k = departure; k <= std::min(departure + kGapSaves, last()); ++k) {
        const Save end = follow(k).departure.value_or(last() + 1);
        if (end > until) behind = k, until = end;
        if (until > last()) break;
      }
      const Save reached = farthest_like(std::max(from, near - kEarlier), near, behind);
      if (reached < departure) return false;
      from = reached;
    }
    return false;
  }

 private:
  using Save = std::ptrdiff_t;  // a save point's index, or the start
  static constexpr Save kStart = -1;
  struct Way {
    Save from;
    std::vector<double> ratio;    // of the distance to the members, at the save points behind `from`
    std::vector<double> allowed;  // distance
    std::optional<Save> departure;
    double ratio_at(Save k) const { return ratio[static_cast<std::size_t>(k - from - 1)]; }
  };

  Save last() const { return static_cast<Save>(points_) - 1; }
  const double* state(std::size_t save) const { return states_.data() + save * components_; }
  double time(Save at) const {
    return at == kStart ? problem_.start_time(0) : problem_.save_times_of(0)[static_cast<std::size_t>(at)];
  }
  std::vector<double> state_at(Save at) const {
    if (at == kStart) return problem_.initial_states;
    const double* const begin = state(static_cast<std::size_t>(at));
    return {begin, begin + components_};
  }
  double distance(Save at, const double* other) const {
    return distance_of(state(static_cast<std::size_t>(at)), other, scale_);
  }

  // Trajectories from `starts`, to each one's own end or to that of the row's save points [first, last] where the
  // latter are any.
  ode::Problem piece(const std::vector<double>& starts, const std::vector<double>& start_times, Save first,
                     Save last) const {
    const std::size_t count = start_times.size();
    ode::Problem result = problem_.selection(std::vector<std::size_t>(count, 0));
    result.initial_states = starts;
    result.start_times = start_times;
    result.save_times_per_trajectory = false;
    result.save_times.clear();
    for (Save k = first; k <= last; ++k) result.save_times.push_back(time(k));
    result.end_times = {time(last)};
    return result;
  }

  // From the row's own state at a save point to its end, beside members.
  Way follow(Save from) const {
    Way way{from, {}, {}, {}};
    if (from >= last()) return way;
    const ode::Problem rest = piece(state_at(from), {time(from)}, from + 1, last());
    const Certificate base = make_certificate(rest, options_, {.members = 1, .ulps = 0}, control_);
    const Certificate members = make_certificate(rest, options_, {.members = kOwnMembers}, control_);
    for (Save k = from + 1; k <= last(); ++k) {
      const std::size_t at = static_cast<std::size_t>(k - from - 1) * components_;
      std::vector<double> distances;
      for (std::size_t m = 0; m < members.members; ++m)
        distances.push_back(distance_of(members.states_of(m, 0) + at, base.states.data() + at, scale_));
      double farthest = std::ranges::max(distances);
      for (std::size_t c = 0; c < components_; ++c) {
        const double floor = members.ulps * spread_.epsilon *
                             scale_.largest_so_far[static_cast<std::size_t>(k) * components_ + c] / scale_.size[c];
        farthest = std::max(farthest, floor);
      }
      const double allowed = std::max(allowed_alone(witnesses(distances), trajectories_), spread_.another_step);
      const double off = distance(k, base.states.data() + at);
      way.ratio.push_back(off / farthest);
      way.allowed.push_back(allowed * farthest);
      if (farthest < spread_.decisive() && off > allowed * farthest && !way.departure) way.departure = k;
    }
    return way;
  }

  // Up to which save point, `behind` at most, the solver's own steps, begun at `begin`, may lead from `near` as the row
  // goes; `near` where they do not. They are to stay like it for a little longer: a step may pass the gap's end.
  Save farthest_like(Save begin, Save near, Save behind) const {
    const Save until = std::min(behind + kBeyond, last());
    const ode::Solution regular =
        ode::solve(piece(state_at(begin), {time(begin)}, begin + 1, until), options_, control_);
    const Way way = follow(begin);
    const auto allowed_at = [&](Save k) { return way.allowed[static_cast<std::size_t>(k - begin - 1)]; };
    double jump = 0;
    bool meets = true;
    for (Save k = near + 1; k <= until; ++k) {
      const double off = off_by(regular, 0, k, begin + 1);
      jump = std::max(jump, off);
      meets = meets && off <= allowed_at(k);
    }
    if (meets) return behind;  // it was the other that left
    const auto like_until = [&](const ode::Solution& tried, std::size_t trajectory, Save first) {
      for (Save k = std::max(first, near + 1); k <= until; ++k) {
        if (!(off_by(tried, trajectory, k, first) <= std::max(allowed_at(k), kLikeness * jump))) return k - 1;
      }
      return until;
    };
    // A step that is tried begins where the row still is what it ought to be.
    const Save begun = std::min(like_until(regular, 0, begin + 1), behind - 1);
    const double mean_step =
        std::abs(time(until) - time(begin)) / std::max(1, static_cast<int>(regular.record(0).accepted));
    Save reached = near;
    double attempts = 0;
    for (std::size_t count = kFirstTrials; attempts < kMostAttempts; count *= 2) {
      for (Save k = begin; k <= begun; ++k) {
        if (time(k) == time(k + 1)) continue;
        const std::size_t beginnings = count / static_cast<std::size_t>(behind - begin) + 1;
        std::vector<double> times;
        for (std::size_t i = 0; i < beginnings; ++i) {
          const double part = (static_cast<double>(i) + 0.5) / static_cast<double>(beginnings);
          times.push_back(std::lerp(time(k), time(k + 1), part));
        }
        ode::Problem from_there = piece(states_at(begin, times), times, k + 1, until);
        if (until == last()) from_there.end_times = {problem_.end_time(0)};
        for (std::size_t j = 0; j < count; ++j) {
          const double part = (static_cast<double>(j) + 0.5) / static_cast<double>(count);
          ode::Options with_step = options_;
          with_step.initial_step = mean_step * std::pow(kLongest, part);
          // Most sizes are refused at once.
          ode::Options one_step = with_step;
          one_step.max_steps = 1;
          const ode::Solution one = ode::solve(from_there, one_step, control_);
          std::vector<std::size_t> accepted;
          for (std::size_t i = 0; i < times.size(); ++i) {
            if (one.record(i).accepted > 0) accepted.push_back(i);
          }
          attempts += static_cast<double>(times.size());
          if (accepted.empty()) continue;
          const ode::Solution tried = ode::solve(from_there.selection(accepted), with_step, control_);
          for (std::size_t i = 0; i < accepted.size(); ++i) {
            attempts += tried.record(i).accepted + tried.record(i).rejected;
            reached = std::max(reached, like_until(tried, i, k + 1));
            if (reached == until) return behind;
          }
        }
      }
      if (attempts == 0) break;  // no time lies between
    }
    return std::min(reached, behind);
  }

  // At save point k, from a solution whose first one is the row's `first`.
  double off_by(const ode::Solution& solution, std::size_t trajectory, Save k, Save first) const {
    std::vector<double> other;
    for (std::size_t c = 0; c < components_; ++c)
      other.push_back(solution.state(trajectory, static_cast<std::size_t>(k - first), c));
    return distance(k, other.data());
  }

  // Of the solution from the row's state at a save point: steps end there. [time][component]
  std::vector<double> states_at(Save begin, const std::vector<double>& times) const {
    std::vector<double> starts;
    const std::vector<double> start = state_at(begin);
    for (std::size_t i = 0; i < times.size(); ++i) starts.insert(starts.end(), start.begin(), start.end());
    ode::Problem until = piece(starts, std::vector<double>(times.size(), time(begin)), 0, kStart);
    until.end_times = times;
    const ode::Solution solution = ode::solve(until, options_, control_);
    std::vector<double> states;
    for (std::size_t i = 0; i < times.size(); ++i) {
      for (std::size_t c = 0; c < components_; ++c) states.push_back(solution.end_state(i, c));
    }
    return states;
  }

  const ode::Problem& problem_;
  const ode::Options& options_;
  const std::vector<double>& states_;
  const Scale& scale_;
  const Spread& spread_;
  std::size_t trajectories_;
  const RunControl& control_;
  std::size_t components_;
  std::size_t points_ = 0;  // those before the first state that is not finite
};

}  // namespace

bool is_by_accepted_steps(const ode::Problem& problem, const ode::Options& options, const std::vector<double>& row,
                          const Scale& scale, const Spread& spread, std::size_t trajectories,
                          const RunControl& control) {
  if (options.control != ode::StepControl::per_trajectory || spread.matrix_precision != MatrixPrecision::f32)
    return false;
  ode::Problem plain = problem;
  plain.keep_events = false;
  return Row(plain, options, row, scale, spread, trajectories, control).is_explained();
}

}  // namespace lockstep::agreement
