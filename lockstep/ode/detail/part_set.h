// The parts of one ensemble, checked to belong together, and what the file made of them looks like.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/ode/merge.h"
#include "lockstep/ode/result_file.h"

namespace lockstep::ode {

// Where one part's rows of a dataset lie in the whole.
struct PartRows {
  std::size_t part = 0;  // index in PartSet::parts
  std::size_t first = 0;
  hdf5::Shape shape;  // of the part's dataset
};

struct DatasetPlan {
  std::string name;  // within the file: "state", "problem/end_time"
  hdf5::ElementType type;
  hdf5::Shape shape;                // of the whole
  std::optional<std::size_t> axis;  // the dimension along which parts follow each other; without: the same in all
  std::vector<PartRows> rows;       // with an axis: every part that has some; without: the first alone
  std::vector<std::string> scales;  // [dimension], names; "" for none
  bool is_scale = false;
  Attributes attributes;
};

// A group below the root: the same in all parts.
struct GroupPlan {
  std::string name;
  Attributes attributes;
};

struct PartSet {
  std::vector<EnsemblePart> parts;
  std::vector<GroupPlan> groups;
  std::vector<DatasetPlan> datasets;
  Attributes attributes;  // of the whole
  std::int64_t committed = 0;
};

// Throws as arrange_parts() does.
PartSet plan_whole(std::span<const std::filesystem::path> paths, Unfinished unfinished);

}  // namespace lockstep::ode
