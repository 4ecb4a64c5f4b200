// From what [[impulses]] say to the impulses of an ensemble: files read, distributions drawn, times counted out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "lockstep/cli/impulses_section.h"
#include "lockstep/ode/impulse_form.h"
#include "lockstep/ode/problem.h"

namespace lockstep::cli {

// Whose states change.
struct ImpulsedEnsemble {
  std::span<const std::string> components;  // names
  std::size_t trajectories = 1;
  bool says_trajectories = false;        // somebody else than lists of [[impulses]] says how many
  bool takes_the_first = false;          // of more: impulses of those beyond are left out
  std::span<const double> starts, ends;  // one for all, or of each trajectory
  RandomStream random;                   // the streams from this one on are theirs
  // Of data: what else the columns of a CSV may be called, what tells trajectories apart there (else their numbers
  // from 0), and what has the unit of the time.
  std::string time_column = "time", trajectory_column = "trajectory";
  std::span<const std::string> labels{};  // [trajectory]
  std::string times_of = "time.span";
};

// Ordered by order_impulses(), as they stand in the file. Adds notes where some lie outside the spans. Throws Error:
// (file) for a file that cannot be read, (invalid_argument) naming file, line and key for everything else, such as a
// table none of whose impulses lies in a span.
ode::Impulses make_impulses(const std::vector<ImpulsesSection>& sections, const ImpulsedEnsemble& ensemble,
                            std::vector<std::string>& notes);

// By time, those of one time as they stand. Those that roundings alone keep apart, 0.3 and 3 x 0.1, are of one time: of
// that of the first among them as they stand. `start`: of the span, or 0 where trajectories have spans of their own.
void order_impulses(std::span<ode::Impulse> impulses, double start);

// What people take for one time, 0.3 and 3 x 0.1, is one: impulses that roundings alone keep from one of the ascending
// `times` are at it, so that these do not decide whether the state there is that before or behind them. `start`: of the
// span.
void meet_times(std::span<ode::Impulse> impulses, std::span<const double> times, double start);
// The same with save points. Of spans of their own, whose save points shared impulses cannot all meet, none.
void meet_save_points(ode::Problem& problem);

// "3 changes of gut, at t = 0 to 48", "" for none: for people.
std::string text_of_impulses(const ode::Impulses& impulses, std::span<const std::string> components);

// The component of a name or an index. Throws Error (invalid_argument).
std::size_t component_of(const std::variant<std::string, std::size_t>& component,
                         std::span<const std::string> components, const std::string& where);

// start, start + interval, ... up to and including the end, which it meets where rounding alone keeps it apart; the
// other way where the end lies before the start. Throws Error (invalid_argument) where they are more than `most`.
std::vector<double> repeated_times(double start, double end, double interval, double most, const std::string& where);

}  // namespace lockstep::cli
