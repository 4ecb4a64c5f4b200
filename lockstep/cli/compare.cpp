#include "lockstep/cli/compare.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <set>
#include <span>
#include <type_traits>

#include "lockstep/agreement/comparable.h"
#include "lockstep/agreement/table_difference.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hdf5_text.h"
#include "lockstep/core/read_ahead.h"

namespace lockstep::cli {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{4} << 20;

template <class T>
bool same(T a, T b) {
  using Bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<Bits>(a) == std::bit_cast<Bits>(b) || (std::isnan(a) && std::isnan(b));
}

// Rows [first, first + count) of arrays [trajectory][time][component].
struct Piece {
  std::size_t first = 0;
  std::size_t count = 0;
  std::size_t times = 0;
  std::size_t components = 0;
};

void add_pair(ArrayDifference& difference, const Place& place) {
  const bool finite_a = std::isfinite(place.a);
  const bool finite_b = std::isfinite(place.b);
  ++difference.different;
  if (!difference.first) difference.first = place;
  if (!difference.earliest || place.time < difference.earliest->time) difference.earliest = place;
  if (finite_a != finite_b) ++(finite_a ? difference.only_a_finite : difference.only_b_finite);
  if (!finite_a || !finite_b) return;
  const double absolute = std::abs(place.a - place.b);
  const double relative = absolute == 0 ? 0 : absolute / std::max(std::abs(place.a), std::abs(place.b));
  difference.sum_of_squares += absolute * absolute;
  if (!difference.largest_absolute || absolute > difference.max_absolute) {
    difference.max_absolute = absolute;
    difference.largest_absolute = place;
  }
  if (!difference.largest_relative || relative > difference.max_relative) {
    difference.max_relative = relative;
    difference.largest_relative = place;
  }
}

template <class T>
void add_piece(ArrayDifference& difference, const Piece& piece, std::span<const T> a, std::span<const T> b) {
  const std::size_t row = piece.times * piece.components;
  difference.numbers += a.size();
  for (std::size_t i = 0; i < piece.count; ++i) {
    const std::span<const T> row_a = a.subspan(i * row, row);
    const std::span<const T> row_b = b.subspan(i * row, row);
    const std::size_t different_before = difference.different;
    const bool same_bytes = std::memcmp(row_a.data(), row_b.data(), row_a.size_bytes()) == 0;
    // In a loop of its own, which the compiler can vectorise.
    std::size_t finite = 0;
    std::size_t finite_a = 0;
    std::size_t finite_b = 0;
    for (std::size_t j = 0; j < row; ++j) {
      constexpr T kLargest = std::numeric_limits<T>::max();
      const std::size_t a_is = std::abs(row_a[j]) <= kLargest ? 1 : 0;
      const std::size_t b_is = std::abs(row_b[j]) <= kLargest ? 1 : 0;
      finite += a_is & b_is;
      finite_a += a_is;
      finite_b += b_is;
    }
    difference.finite_pairs += finite;
    if (finite_a < row) ++difference.not_finite_a;
    if (finite_b < row) ++difference.not_finite_b;
    for (std::size_t j = 0; !same_bytes && j < row; ++j) {
      if (same(row_a[j], row_b[j])) continue;
      add_pair(difference, {piece.first + i, j / piece.components, j % piece.components, static_cast<double>(row_a[j]),
                            static_cast<double>(row_b[j])});
    }
    if (difference.different != different_before) ++difference.trajectories;
  }
}

template <class T>
struct Rows {
  std::vector<T> state_a, state_b;
  std::vector<T> end_a, end_b;
  std::vector<ode::TrajectoryRecord> records_a, records_b;
};

template <class T>
void read_states(const ode::ResultFile& file, std::size_t first, std::size_t count, std::vector<T>& to) {
  to.resize(count * file.save_points() * file.components());
  const bool widen = sizeof(T) == 8 && file.precision() == Precision::f32;
  if (widen) {  // several times faster than HDF5's conversion
    std::ranges::copy(file.states<float>(first, count), to.begin());
    return;
  }
  file.hdf5()
      .dataset(ode::result_names::kState)
      .read_into(std::span<T>(to), {first, 0, 0}, {count, file.save_points(), file.components()});
}

template <class T>
void add_rows(const ode::ResultFile& a, std::size_t first, const Rows<T>& rows, Comparison& comparison) {
  const std::size_t count = rows.records_a.size();
  add_piece<T>(comparison.state, {first, count, a.save_points(), a.components()}, rows.state_a, rows.state_b);
  add_piece<T>(comparison.end_state, {first, count, 1, a.components()}, rows.end_a, rows.end_b);
  for (std::size_t i = 0; i < count; ++i) {
    const ode::TrajectoryRecord& ra = rows.records_a[i];
    const ode::TrajectoryRecord& rb = rows.records_b[i];
    if (ra.status == ode::Status::cancelled || rb.status == ode::Status::cancelled) ++comparison.unfinished;
    if (ra.accepted != rb.accepted || ra.rejected != rb.rejected || ra.evaluations != rb.evaluations) {
      ++comparison.different_counts;
    }
    if (!same(ra.end_time, rb.end_time) && comparison.different_end_time++ == 0) {
      comparison.first_end_time = first + i;
      comparison.end_time_a = ra.end_time;
      comparison.end_time_b = rb.end_time;
    }
    if (ra.status == rb.status) continue;
    if (comparison.different_status++ == 0) {
      comparison.first_status = first + i;
      comparison.status_a = ra.status;
      comparison.status_b = rb.status;
    }
  }
}

// Whether both hold these tables; files of other programs may leave them out.
bool both_hold(const ode::ResultFile& a, const ode::ResultFile& b, std::initializer_list<const char*> names) {
  return std::ranges::all_of(names, [&](const char* name) { return a.hdf5().has(name) && b.hdf5().has(name); });
}

template <class T>
void compare_numbers(const ode::ResultFile& a, const ode::ResultFile& b, const RunControl& control, Extent extent,
                     Comparison& comparison) {
  const std::size_t trajectories = a.trajectories();
  const std::size_t row_bytes = std::max<std::size_t>(a.save_points() * a.components() * sizeof(T), 1);
  const std::size_t rows = std::clamp<std::size_t>(kPieceBytes / row_bytes, 1, std::size_t{1} << 16);
  namespace names = ode::result_names;
  const bool counts = both_hold(a, b, {names::kAccepted, names::kRejected, names::kEvaluations, names::kEndTime});
  const bool ends = both_hold(a, b, {names::kEndState});
  struct Enough {};
  try {
    read_ahead<Rows<T>>((trajectories + rows - 1) / rows,
                        [&](std::size_t i, Rows<T>& piece) {
                          const std::size_t first = i * rows;
                          const std::size_t count = std::min(rows, trajectories - first);
                          read_states(a, first, count, piece.state_a);
                          read_states(b, first, count, piece.state_b);
                          piece.end_a = a.end_states<T>(first, count);
                          piece.end_b = ends ? b.end_states<T>(first, count) : piece.end_a;
                          piece.records_a = a.records(first, count);
                          piece.records_b = b.records(first, count);
                          for (std::size_t k = 0; k < count && !counts; ++k) {
                            const ode::Status status = piece.records_b[k].status;
                            piece.records_b[k] = piece.records_a[k];
                            piece.records_b[k].status = status;
                          }
                        },
                        [&](std::size_t i, const Rows<T>& piece) {
                          if (control.cancelled())
                            throw Error(ErrorKind::cancelled, {"comparison", "a request to stop", {}, {}});
                          add_rows(a, i * rows, piece, comparison);
                          if (extent == Extent::first_difference && !comparison.same_bits()) throw Enough();
                          if (control.progress) control.progress(i * rows + piece.records_a.size(), trajectories);
                        });
  } catch (const Enough&) {
    // What was looked at so far stands in the comparison.
  }
}

[[noreturn]] void cannot_compare(const ode::ResultFile& a, const ode::ResultFile& b, const std::string& found,
                                 const std::string& expected) {
  throw Error(ErrorKind::invalid_argument, {a.path().string() + " and " + b.path().string(), found, expected,
                                            "compare solutions of one problem at the same save points"});
}

void check_shapes(const ode::ResultFile& a, const ode::ResultFile& b) {
  const auto check = [&](std::size_t in_a, std::size_t in_b, const char* what) {
    if (in_a == in_b) return;
    cannot_compare(a, b, count_text(in_a) + " and " + count_text(in_b) + " " + what,
                   std::string("as many ") + what + " in both");
  };
  check(a.trajectories(), b.trajectories(), "trajectories");
  check(a.save_points(), b.save_points(), "save points");
  check(a.components(), b.components(), "components");
  const bool each = a.times_per_trajectory() || b.times_per_trajectory();
  for (std::size_t i = 0; i < (each ? a.trajectories() : std::min<std::size_t>(a.trajectories(), 1)); ++i) {
    const std::vector<double> in_a = a.times(i);
    const std::vector<double> in_b = b.times(i);
    const auto at = agreement::first_other_time(in_a, in_b);
    if (!at) continue;
    cannot_compare(a, b,
                   "save point " + std::to_string(*at) + " at " + number_text(in_a[*at]) + " and " +
                       number_text(in_b[*at]) + (each ? " in trajectory " + std::to_string(i) : ""),
                   "the same times in both");
  }
}

std::string value_text(const std::optional<hdf5::AttributeValue>& value) { return value ? hdf5::to_text(*value) : "-"; }

// How the files were made; what differs of necessity (the moment, the command) stays out.
void compare_fields(const ode::ResultFile& a, const ode::ResultFile& b, Comparison& comparison) {
  static const std::set<std::string> kNotOfInterest{"history",
                                                    "command",
                                                    "source",
                                                    "seconds",
                                                    "Conventions",
                                                    "title",
                                                    "kernel",
                                                    "engine_reason",
                                                    "accepted_steps",
                                                    "rejected_steps",
                                                    "rhs_evaluations",
                                                    ode::result_names::kIndexFiles,
                                                    ode::result_names::kIndexFirst};
  std::set<std::string> names;
  for (const auto* file : {&a, &b}) {
    for (const std::string& name : file->attribute_names()) names.insert(name);
  }
  for (const std::string& name : names) {
    if (kNotOfInterest.contains(name)) continue;
    const std::string in_a = agreement::as_compared(name, value_text(a.attribute(name)));
    const std::string in_b = agreement::as_compared(name, value_text(b.attribute(name)));
    if (in_a != in_b) comparison.fields.push_back({name, in_a, in_b});
  }
  for (const agreement::TableDifference& one : agreement::compare_tables(a, b))
    comparison.fields.push_back({one.table, one.a, one.b});
}

}  // namespace

double ArrayDifference::root_mean_square() const {
  return finite_pairs == 0 ? 0 : std::sqrt(sum_of_squares / static_cast<double>(finite_pairs));
}

bool Comparison::same_bits() const {
  return same_precision && state.different == 0 && end_state.different == 0 && different_status == 0 &&
         different_end_time == 0 && different_counts == 0 && (!events || events->same());
}

Comparison compare(const ode::ResultFile& a, const ode::ResultFile& b, const RunControl& control, Extent extent) {
  check_shapes(a, b);
  Comparison comparison;
  comparison.same_precision = a.precision() == b.precision();
  if (comparison.same_precision && a.precision() == Precision::f32) {
    compare_numbers<float>(a, b, control, extent, comparison);
  } else {
    compare_numbers<double>(a, b, control, extent, comparison);  // float32 becomes float64 exactly
  }
  if (a.keeps_events() && b.keeps_events() && (extent == Extent::whole || comparison.same_bits())) {
    const agreement::StoredEnsemble first(a.path()), second(b.path());
    comparison.events = agreement::compare_events(first, second, control);
  }
  compare_fields(a, b, comparison);
  return comparison;
}

}  // namespace lockstep::cli
