#include "lockstep/agreement/event_difference.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "lockstep/agreement/detail/same_number.h"
#include "lockstep/agreement/detail/text.h"
#include "lockstep/agreement/verdict.h"
#include "lockstep/core/error.h"

namespace lockstep::agreement {
namespace {

constexpr std::size_t kPieceRows = std::size_t{1} << 14;

// States, and the end where both tell of it.
bool same_but_for_events(const Ensemble& a, const Ensemble& b, std::size_t trajectory) {
  if (a.precision() != b.precision()) return false;
  const auto record_a = a.records(trajectory, 1)[0], record_b = b.records(trajectory, 1)[0];
  const std::vector<double> states_a = a.states(trajectory, 1), states_b = b.states(trajectory, 1);
  if (record_a.status != record_b.status || !std::ranges::equal(states_a, states_b, same_number<double>)) return false;
  const std::vector<double> end_a = a.end_states(trajectory, 1), end_b = b.end_states(trajectory, 1);
  if (end_a.empty() || end_b.empty()) return a.save_points() > 0;
  return same_number(record_a.end_time, record_b.end_time) && std::ranges::equal(end_a, end_b, same_number<double>);
}

// Events of one trajectory in both.
struct Pair {
  std::span<const double> times_a, times_b;
  std::span<const std::int32_t> resets_a, resets_b;

  bool same() const {
    return std::ranges::equal(resets_a, resets_b) && std::ranges::equal(times_a, times_b, same_number<double>);
  }
  EventDifference::Place first(std::size_t trajectory) const {
    const auto at = [](std::size_t i, const auto& times, const auto& resets) {
      return i < times.size() ? std::optional(ode::ResetEvent{times[i], resets[i]}) : std::nullopt;
    };
    for (std::size_t i = 0;; ++i) {
      const auto in_a = at(i, times_a, resets_a), in_b = at(i, times_b, resets_b);
      if (!in_a || !in_b || in_a->reset != in_b->reset || !same_number(in_a->time, in_b->time))
        return {trajectory, i, in_a, in_b};
    }
  }
};

void add(const Ensemble& a, const Ensemble& b, std::size_t trajectory, const Pair& pair, EventDifference& difference) {
  difference.events_a += pair.times_a.size();
  difference.events_b += pair.times_b.size();
  if (pair.same()) return;
  ++difference.trajectories;
  if (!difference.first) difference.first = pair.first(trajectory);
  if (!std::ranges::equal(pair.resets_a, pair.resets_b)) {
    ++difference.other_resets;
  } else {
    for (std::size_t i = 0; i < pair.times_a.size(); ++i)
      difference.largest_time = std::max(difference.largest_time, std::abs(pair.times_a[i] - pair.times_b[i]));
  }
  if (!difference.unexplained && same_but_for_events(a, b, trajectory)) difference.unexplained = trajectory;
}

std::string text_of(const std::optional<ode::ResetEvent>& event) {
  return event ? "reset " + std::to_string(event->reset) + " at t = " + number_text(event->time) : "none";
}

}  // namespace

std::optional<EventDifference> compare_events(const Ensemble& a, const Ensemble& b, const RunControl& control) {
  if (!a.keeps_events() || !b.keeps_events()) return std::nullopt;
  EventDifference difference;
  for (std::size_t first = 0; first < a.trajectories(); first += kPieceRows) {
    if (control.cancelled()) throw Error(ErrorKind::cancelled, {"comparison", "a request to stop", {}, {}});
    const std::size_t count = std::min(kPieceRows, a.trajectories() - first);
    const ode::EventLog in_a = a.events(first, count), in_b = b.events(first, count);
    const auto records_a = a.records(first, count), records_b = b.records(first, count);
    for (std::size_t i = 0; i < count; ++i) {
      const bool unfinished =
          records_a[i].status == ode::Status::cancelled || records_b[i].status == ode::Status::cancelled;
      if (unfinished) continue;
      add(a, b, first + i, {in_a.times_of(i), in_b.times_of(i), in_a.resets_of(i), in_b.resets_of(i)}, difference);
    }
  }
  return difference;
}

std::string text_of(const EventDifference& difference) {
  if (difference.same()) return "all " + grouped_digits(difference.events_a) + " the same";
  std::string text = grouped_digits(difference.events_a) + " and " + grouped_digits(difference.events_b) +
                     " events, others in " + trajectories_text(difference.trajectories);
  if (difference.other_resets == 0) text += ", at times that are at most " + number(difference.largest_time) + " apart";
  if (difference.other_resets > 0 && difference.other_resets < difference.trajectories)
    text += ", " + std::to_string(difference.other_resets) + " of them with more, fewer or other resets";
  const EventDifference::Place& first = *difference.first;
  return text + "; first in trajectory " + std::to_string(first.trajectory) + ": its event " +
         std::to_string(first.event) + " is " + text_of(first.a) + ", and " + text_of(first.b);
}

void judge_events(const Ensemble& a, const Ensemble& b, const RunControl& control, Verdict& verdict) {
  if (!verdict.evidence) return;  // nothing could be compared
  verdict.events = compare_events(a, b, control);
  if (!verdict.events || verdict.events->same()) return;
  verdict.reasons.push_back("Of the resets: " + text_of(*verdict.events) + ".");
  if (!verdict.events->unexplained) return;
  verdict.outcome = Outcome::disagree;
  verdict.same_bits = false;
  verdict.sentence = b.name() + " does not agree with " + a.name() + ": the events of trajectory " +
                     std::to_string(*verdict.events->unexplained) + " are others, though its states differ in no bit.";
}

}  // namespace lockstep::agreement
