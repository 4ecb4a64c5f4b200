// Pictures of one result file against another of the same problem: a net's solution against the truth.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/plot/figures.h"

namespace lockstep::cli {

// Which component of `truth` is each of `file`'s, by name; by place where one of them has made-up names (u0, u1, ...).
struct SameComponents {
  std::vector<std::optional<std::size_t>> in_truth;  // [component of file]
  std::string note;                                  // what stands in one of them alone; empty: nothing
  std::vector<std::size_t> of_file() const;          // those that both have
};

// Throws Error (invalid_argument) when the files have no component in common, or other trajectories or save points.
SameComponents require_comparable(const ode::ResultFile& file, const ode::ResultFile& truth);

// Components over time, a panel each: `file` as lines over `truth` as wide grey ones, for a few trajectories.
// Of many components that both have, the first few unless `options` names others.
Figure overlay(const ode::ResultFile& file, const ode::ResultFile& truth, const SameComponents& same,
               const FigureOptions& options);

// Distance between the two over time, of all trajectories: median and 90 %, those that left the net's training range
// apart from those that did not. The distance is the root mean square over the components that both have. No script
// where nothing that is finite in both differs.
Figure distance(const ode::ResultFile& file, const ode::ResultFile& truth, const SameComponents& same,
                const FigureOptions& options);

}  // namespace lockstep::cli
