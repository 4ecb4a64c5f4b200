// Two result files number by number: the same bits, or how far apart and where first.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/agreement/event_difference.h"
#include "lockstep/core/run_control.h"
#include "lockstep/ode/result_file.h"

namespace lockstep::cli {

struct Place {
  std::size_t trajectory = 0;
  std::size_t time = 0;  // save point
  std::size_t component = 0;
  double a = 0;
  double b = 0;
};

// How one array of both files differs. NaN is compared as a class: any NaN equals any other.
struct ArrayDifference {
  std::size_t numbers = 0;       // compared
  std::size_t different = 0;     // in their bits
  std::size_t trajectories = 0;  // with at least one such number
  std::size_t not_finite_a = 0;  // trajectories with NaN or infinite numbers in a
  std::size_t not_finite_b = 0;
  std::size_t only_a_finite = 0;
  std::size_t only_b_finite = 0;
  double sum_of_squares = 0;  // over pairs of finite numbers
  std::size_t finite_pairs = 0;
  double max_absolute = 0;
  double max_relative = 0;        // |a - b| / max(|a|, |b|)
  std::optional<Place> first;     // in the file's order
  std::optional<Place> earliest;  // in time
  std::optional<Place> largest_absolute;
  std::optional<Place> largest_relative;

  double root_mean_square() const;
};

// A field of the files' provenance that is not the same in both.
struct FieldDifference {
  std::string field;
  std::string a;
  std::string b;
};

struct Comparison {
  ArrayDifference state;
  ArrayDifference end_state;                // Place::time is 0
  std::size_t different_status = 0;         // trajectories
  std::optional<std::size_t> first_status;  // trajectory
  ode::Status status_a{};
  ode::Status status_b{};
  std::size_t different_end_time = 0;         // trajectories
  std::optional<std::size_t> first_end_time;  // trajectory
  double end_time_a = 0;
  double end_time_b = 0;
  std::size_t different_counts = 0;  // trajectories whose steps or evaluations differ
  std::size_t unfinished = 0;        // cancelled in both or either
  std::optional<agreement::EventDifference> events;  // where both keep them
  bool same_precision = true;
  std::vector<FieldDifference> fields;

  bool same_bits() const;
};

// Streams both files in pieces of a few MB. Throws Error where they cannot be compared: another number of trajectories,
// save points or components, other times.
// With Extent::first_difference it stops soon after one and tells no more than that there is one.
enum class Extent { whole, first_difference };
Comparison compare(const ode::ResultFile& a, const ode::ResultFile& b, const RunControl& control = {},
                   Extent extent = Extent::whole);

}  // namespace lockstep::cli
