#include "lockstep/ode/detail/near_knots.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>

#include "lockstep/ode/detail/knot_bounds.h"

namespace lockstep::ode::detail {
namespace {

// Stops are joined along chains, from the first one on. A chain ends at a gap that none of those before it reaches
// across, and none of those behind it back: what follows is the same whatever was before. Twice their sides are more
// than roundings of these comparisons take away. Of those that nobody has told, before the window and behind it, the
// nearest reach farthest: `first_reach` to here, `last_reach` back to there.
struct Chain {
  std::vector<OtherStop> stops;  // ascending
  TimeSpan window;
  double first_reach, last_reach;

  // Whether there is a gap before the span, and one behind it.
  bool ends_beside(const TimeSpan& span) const {
    const std::size_t count = stops.size();
    std::vector<double> back(count + 1, last_reach);
    for (std::size_t i = count; i-- > 0;) back[i] = std::min(back[i + 1], stops[i].time - 2 * stops[i].side);
    bool before = false;
    double forth = first_reach;
    for (std::size_t i = 0; i <= count; ++i) {
      const double low = i == 0 ? window.first : stops[i - 1].time;
      const double high = i == count ? window.last : stops[i].time;
      if (low < span.first && forth < std::min(high, span.first) && back[i] > low) before = true;
      if (before && high > span.last && forth < high && back[i] > std::max(low, span.last)) return true;
      if (i < count) forth = std::max(forth, high + 2 * stops[i].side);
    }
    return false;
  }
};

}  // namespace

TimeSpan rounded_span(const TimeSpan& span, double magnitude, const StopSides& sides, Precision precision) {
  const double size = std::max({std::fabs(span.first), std::fabs(span.last), 0x1p-100});
  const double beyond =
      std::max(4 * sides.of({size, true, magnitude}, precision), 0x1p-40 * std::max(size, span.last - span.first));
  return {span.first - beyond, span.last + beyond};
}

// Stops between whose sides others lie are joined, from the first one on (Stops): a thousand of them on end are not
// met.
TimeSpan span_of_repeated(const TimeSpan& span, double magnitude, const StopSides& sides, Precision precision) {
  const double beside = 0x1p10 * sides.of({size_of(span, 0), true, magnitude}, precision);
  return {span.first - beside, span.last + beside};
}

std::vector<TimeKnot> near_knots(const TimeSpan& rounded, const KnotBounds& bounds, std::vector<OtherStop> others,
                                 const StopSides& sides, Precision precision,
                                 const std::function<std::vector<TimeKnot>(const TimeSpan&)>& ask) {
  if (!bounds.some) return {};
  const auto reach = [&](double time) { return 2 * sides.of({time, true, bounds.magnitude}, precision); };
  const double size = size_of(rounded, 0);
  // Wider and wider; most have no knot within a side of another one.
  const double least = std::max(4 * reach(size), 0x1p-40 * size);
  for (double beyond = least; beyond <= 0x1p9 * least && beyond < std::numeric_limits<double>::infinity();
       beyond *= 8) {
    const TimeSpan window{rounded.first - beyond, rounded.last + beyond};
    std::vector<TimeKnot> knots = ask(window);
    std::erase_if(knots, [&](const TimeKnot& knot) { return knot.time < window.first || knot.time > window.last; });
    Chain chain{others, window, window.first + reach(window.first), window.last - reach(window.last)};
    for (const TimeKnot& knot : knots) chain.stops.push_back({knot.time, sides.of(knot, precision)});
    std::ranges::sort(chain.stops, {}, &OtherStop::time);
    if (chain.ends_beside(rounded)) return knots;
  }
  return ask(kEver);
}

}  // namespace lockstep::ode::detail
