// Do two solutions agree, in the only sense a chaotic system leaves: are they apart by no more than rounding explains?
// docs/validation.md has the mathematics and the measured error rates.
#pragma once

#include <cstddef>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/agreement/comparable.h"
#include "lockstep/agreement/difference.h"
#include "lockstep/agreement/ensemble.h"
#include "lockstep/agreement/event_difference.h"
#include "lockstep/agreement/scale.h"
#include "lockstep/agreement/spread.h"
#include "lockstep/core/run_control.h"

namespace lockstep::agreement {

// A right solution's largest ratio was 0.09 to 3.2 in 3,400 trials (docs/validation.md).
inline constexpr double kAllowedRatio = 10;
// Divergence may come so much earlier than ln(Delta / (eps |y|)) / lambda.
inline constexpr double kAllowedEarliness = 0.3;

// (A) While S(t) is below Spread::decisive(), each quantile of the distance stays within kAllowedRatio of the spread's,
// and no single trajectory goes farther than Spread::farthest, nor one that is examined farther than its own members
// allow (detail/own_members.h).
struct SpreadTier {
  std::size_t decisive_times = 0;    // save points after the start at which at least the median was decisive
  double decisive_until = 0;         // time
  double worst_ratio = 0;            // over decisive quantiles and times
  std::size_t worst_level = 0;       // of kLevels
  std::size_t worst_time = 0;        // save point
  std::optional<Departure> outlier;  // a trajectory farther than any right one
  // A trajectory of a that lies farther from what a's own problem gives than rounding could take it.
  std::optional<Departure> damaged;
  std::optional<std::size_t> other_bits;  // the first examined one of a whose bits its problem does not give
  std::size_t examined = 0;               // single trajectories that were held against members of their own
  // Those of them that lie farther out than their members, as steps that are accepted by accident lead; ascending.
  std::vector<std::size_t> by_accepted_steps;
  double worst_alone =
      0;  // of the others: ratio of one of them to the farthest of its members, the nearest to what it may be
  double allowed_alone = 0;  // what it may be there
  std::string not_examined;  // why none was, where none was
  bool passed() const { return worst_ratio <= kAllowedRatio && !outlier; }
};

// (B) The median trajectory diverges no earlier than predicted.
struct DivergenceTier {
  double predicted = std::numeric_limits<double>::infinity();  // time; infinite without a growth rate
  double limit = std::numeric_limits<double>::infinity();
  double observed = std::numeric_limits<double>::infinity();  // infinite: not within the record
  bool asked() const { return predicted < std::numeric_limits<double>::infinity(); }
  bool passed() const { return !asked() || observed >= limit; }
};

// What the verdict rests on, for reports.
struct Evidence {
  std::vector<double> times;  // [time] elapsed
  bool is_time = true;        // these are the times themselves, of all trajectories
  Scale scale;
  Spread spread;
  Difference difference;
  SpreadTier spread_tier;
  DivergenceTier divergence_tier;
  // (C) is difference.statistics.
};

enum class Outcome { agree, disagree, undecided };
int exit_code(Outcome outcome);  // 0, 1, 2

struct Verdict {
  Outcome outcome = Outcome::undecided;
  bool same_bits = false;
  std::string sentence;
  std::vector<std::string> reasons;     // at most six
  std::vector<FieldDifference> fields;  // of how the two were made
  // Absent where the two could not be compared. Without a spread where they are of one problem but not by one method.
  std::optional<Evidence> evidence;
  std::optional<EventDifference> events;  // where both keep them
};

struct Settings {
  std::optional<double> lyapunov;          // serves where neither solution carries a certificate
  std::optional<Certificate> certificate;  // computed anew by the caller; wins over those stored
  enum class Of { a, b } certificate_of = Of::a;
  // Members of these trajectories (ascending) by a's problem, where they can be solved again, or else by b's. With it
  // the few that lie farthest out are judged by their own growth, which finds a single wrong one among many; and a,
  // where it is not what its own problem gives (Certificate::base). Where it is empty, or throws an Error because they
  // cannot be solved, all are judged by Spread::farthest alone, and the verdict says so and why.
  struct Examined {
    Certificate members;
    Of of = Of::a;
    Examined(Certificate found, Of by = Of::a) : members(std::move(found)), of(by) {}  // NOLINT: a certificate will do
  };
  std::function<Examined(const std::vector<std::size_t>&)> examine;
  // One trajectory's problem, all components of the state being those of the solutions, and how it was solved, in the
  // coarser precision of the two. With it an examined trajectory beyond its members is asked whether steps that are
  // accepted lead there (detail/accepted_steps.h). Where it is empty, or throws an Error, it is taken that none do.
  struct OwnProblem {
    ode::Problem problem;
    ode::Options options;
    RunControl control = {};
  };
  std::function<OwnProblem(std::size_t)> solved_by;
  std::string not_examined = "nothing here can solve them";  // why `examine` is empty, as the verdict is to say
};

// The coarser of the modes in which the two say that their nets' products were made.
MatrixPrecision matrix_precision_of(const Ensemble& a, const Ensemble& b);
// The coarser of the precisions that the two claim: what their members are to be solved in.
Precision coarser_precision(const Ensemble& a, const Ensemble& b);
// Whether one of the two brought a certificate by which they can be judged: members rounded as in that mode.
bool has_certificate(const Ensemble& a, const Ensemble& b);
// Whether there is no reason to solve members anew. Between two precisions with adaptive steps there is: members that
// are compared with a solution of their own precision do not show how step sizes answer to the other's rounding.
bool brings_certificate(const Ensemble& a, const Ensemble& b);

// Is b a faithful port of a? The certificate is a's; b's own serves if a has none. Throws Error (cancelled), or (file)
// where a file cannot be read; that two solutions cannot be compared is a verdict, not an error.
Verdict judge(const Ensemble& a, const Ensemble& b, const Settings& settings = {}, const RunControl& control = {});

}  // namespace lockstep::agreement
