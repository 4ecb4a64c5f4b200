// May two solutions be compared at all? Only solutions of one problem by one method can be the same up to rounding.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/agreement/ensemble.h"

namespace lockstep::agreement {

struct FieldDifference {
  std::string field;  // "save points", "method", "trajectory 17: initial state"
  std::string a;
  std::string b;
  bool forbids = false;    // a verdict; otherwise merely worth knowing (engine, threads, precision, version)
  bool of_solver = false;  // how the problem was solved (method, step control, tolerances), not which
};

// Everything that differs, what forbids a comparison first. Fields that only one of them states do not forbid: a
// file from elsewhere need not carry our digests. What tells nothing about the numbers (when, for how long) is left
// out.
std::vector<FieldDifference> compare_fields(const Ensemble& a, const Ensemble& b);

// Where two lists of save points first differ by more than the roundings of programs that compute them in other ways:
// start + k dt, or start + (end - start) k / n. The source derives the bound.
std::optional<std::size_t> first_other_time(std::span<const double> a, std::span<const double> b);

// The value of attribute `name` as two files that mean the same state it alike: a tolerance of each component is the
// one of all where it is the same for each.
std::string as_compared(const std::string& name, const std::string& value);

// Whether they are solutions of one problem at the same times, as far as these fields tell: their numbers can be
// compared then, though not by rounding where another method, step or tolerance forbids that.
bool same_problem(const std::vector<FieldDifference>& fields);

// A solution that does not state how it was solved: its method, and tolerances or a step.
struct SilentSolver {
  const Ensemble* silent;
  const Ensemble* other;
  std::string missing;  // "method, rtol and atol or dt"
};
// Where a difference beyond rounding may therefore be a method's own error: beside a solution by adaptive steps, whose
// tolerance decides its error, or one of another program. Beside our fixed steps a port is taken to make them too.
std::optional<SilentSolver> silent_on_solver(const Ensemble& a, const Ensemble& b);

}  // namespace lockstep::agreement
