#include "lockstep/ode/detail/part_set.h"

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>

#include "lockstep/core/error.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/detail/index_check.h"

namespace lockstep::ode {
namespace {

namespace names = result_names;
namespace fs = std::filesystem;

// They say how a part was made, not of what: they may differ between parts.
constexpr std::array<std::string_view, 14> kOfTheRun{"command", "history", "problem_file",  "model",  "source",
                                                     "version", "engine",  "engine_reason", "device", "cpu_target",
                                                     "kernel",  "threads", "host",          "resumed"};
constexpr std::array<std::string_view, 4> kSums{"seconds", "accepted_steps", "rejected_steps", "rhs_evaluations"};
// They place a part in its ensemble or tell of its file, and mean nothing for the whole.
constexpr std::array<std::string_view, 6> kOfThePart{
    "packed",      names::kFirstTrajectory, names::kEnsembleTrajectories,
    names::kShard, names::kIndexFiles,      names::kIndexFirst};
// HDF5's own bookkeeping of dimension scales.
constexpr std::array<std::string_view, 4> kOfScales{"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST"};

bool among(std::string_view name, std::span<const std::string_view> list) {
  return std::ranges::find(list, name) != list.end();
}

[[noreturn]] void refuse_part(const fs::path& path, std::string found, std::string expected, std::string remedy = {}) {
  throw Error(ErrorKind::file, {path.string(), std::move(found), std::move(expected), std::move(remedy)});
}

std::string text_of(const std::optional<hdf5::AttributeValue>& value) {
  struct Text {
    std::string operator()(const std::string& text) const { return text; }
    std::string operator()(std::int64_t number) const { return std::to_string(number); }
    std::string operator()(double number) const { return number_text(number); }
    std::string operator()(const std::vector<std::string>&) const { return "a list"; }
    std::string operator()(const std::vector<std::int64_t>&) const { return "a list"; }
    std::string operator()(const std::vector<double>&) const { return "a list"; }
    std::string operator()(const std::vector<std::uint8_t>&) const { return "a list"; }
  };
  return value ? std::visit(Text{}, *value) : "none";
}

std::string rows_text(std::size_t first, std::size_t end) {
  if (end == first + 1) return "trajectory " + std::to_string(first);
  return "trajectories " + std::to_string(first) + " to " + std::to_string(end - 1);
}

EnsemblePart describe(const fs::path& path, const ResultFile& file) {
  EnsemblePart part{path, file.first_trajectory(), file.trajectories(), file.first_trajectory() + file.trajectories()};
  if (const auto total = file.attribute(names::kEnsembleTrajectories)) {
    const auto* number = std::get_if<std::int64_t>(&*total);
    if (number == nullptr || *number < static_cast<std::int64_t>(part.total)) {
      refuse_part(path, std::string(names::kEnsembleTrajectories) + " " + text_of(total),
                  "at least " + std::to_string(part.total), "check that the file is whole and was written by lockstep");
    }
    part.total = static_cast<std::size_t>(*number);
  }
  part.unfinished = count_cancelled(file.hdf5());
  return part;
}

// Neighbours must touch, and all of them fill the ensemble.
void check_cover(const std::vector<EnsemblePart>& parts) {
  const std::size_t total = parts.front().total;
  for (const EnsemblePart& part : parts) {
    if (part.total != total) {
      refuse_part(part.path, "a part of an ensemble of " + std::to_string(part.total) + " trajectories",
                  std::to_string(total) + " as in " + parts.front().path.string(), "give the parts of one run");
    }
  }
  const auto gap = [&](std::size_t first, std::size_t end) {
    refuse_part(parts.front().path.string() + " and the other parts", "no file with " + rows_text(first, end),
                "all " + std::to_string(total) + " trajectories of the ensemble", "give the missing part too");
  };
  std::size_t next = 0;
  const EnsemblePart* before = nullptr;
  for (const EnsemblePart& part : parts) {
    if (part.count == 0) continue;
    if (part.first < next) {
      refuse_part(part.path,
                  rows_text(part.first, std::min(next, part.first + part.count)) + ", which " + before->path.string() +
                      " holds too",
                  "each trajectory in one file", "leave one of the two out");
    }
    if (part.first > next) gap(next, part.first);
    next = part.first + part.count;
    before = &part;
  }
  if (next < total) gap(next, total);
}

// What a merged file could not hold as it is must not be lost without a word.
void require_value(const hdf5::Object& object, const std::string& name) {
  if (object.is_value(name)) return;
  throw Error(ErrorKind::file, {object.name() + "@" + name, "another type or shape",
                                "numbers or text, of at most one dimension", "remove the attribute or store it so"});
}

// An attribute of the whole from those of the parts.
class AttributeTable {
 public:
  // Throws where attributes that must agree do not, naming up to three of them.
  void add(const ResultFile& file) {
    std::map<std::string, hdf5::AttributeValue> mine;
    for (const std::string& name : file.attribute_names()) {
      require_value(file.hdf5(), name);
      const auto value = file.attribute(name);
      if (value && !among(name, kOfThePart)) mine.emplace(name, *value);
    }
    if (first_.empty()) {
      first_ = file.path();
      values_ = mine;
      return;
    }
    check_equal(file.path(), mine);
    for (const auto& [name, value] : mine) merge(name, value);
  }

  Attributes all() const { return {values_.begin(), values_.end()}; }

 private:
  using Values = std::map<std::string, hdf5::AttributeValue>;

  void check_equal(const fs::path& path, const Values& mine) const {
    std::set<std::string> all;
    for (const auto* values : {&values_, &mine}) {
      for (const auto& entry : *values) all.insert(entry.first);
    }
    std::string found, expected;
    int differing = 0;
    const auto value = [](const Values& values, const std::string& name) {
      const auto place = values.find(name);
      return place == values.end() ? std::nullopt : std::optional(place->second);
    };
    const auto digest = value(mine, names::kProblemDigest);
    const bool same_problem = digest && digest == value(values_, names::kProblemDigest);
    for (const std::string& name : all) {
      if (among(name, kOfTheRun) || among(name, kSums)) continue;
      if (same_problem && among(name, names::kProblemInWords)) continue;
      if (value(values_, name) == value(mine, name) || ++differing > 3) continue;
      found += (found.empty() ? "" : ", ") + name + " " + text_of(value(mine, name));
      expected += (expected.empty() ? "" : ", ") + text_of(value(values_, name));
    }
    if (differing == 0) return;
    if (differing > 3) found += " and " + std::to_string(differing - 3) + " more attributes that differ";
    refuse_part(path, found, expected + " as in " + first_.string(), "give the parts of one run");
  }

  void merge(const std::string& name, const hdf5::AttributeValue& value) {
    const auto place = values_.find(name);
    if (place == values_.end()) {
      values_.emplace(name, value);
      return;
    }
    hdf5::AttributeValue& mine = place->second;
    if (mine.index() != value.index()) return;
    if (among(name, kSums)) {
      if (auto* number = std::get_if<double>(&mine)) *number += std::get<double>(value);
      if (auto* number = std::get_if<std::int64_t>(&mine)) *number += std::get<std::int64_t>(value);
    } else if (name == "threads") {
      if (auto* number = std::get_if<std::int64_t>(&mine)) *number = std::max(*number, std::get<std::int64_t>(value));
    } else if (name != "command" && name != "history" && !among(name, names::kProblemInWords) && mine != value) {
      auto* text = std::get_if<std::string>(&mine);
      const auto* other = std::get_if<std::string>(&value);
      if (text != nullptr && (", " + *text + ", ").find(", " + *other + ", ") == std::string::npos) {
        *text += ", " + *other;
      }
    }
  }

  fs::path first_;
  Values values_;
};

// The dimension that counts trajectories, of the ensemble or of a certificate's sample.
std::optional<std::size_t> row_axis(const std::vector<std::string>& scales) {
  for (std::size_t i = 0; i < scales.size(); ++i) {
    if (scales[i] == names::kTrajectory || scales[i].ends_with("_trajectory")) return i;
  }
  return std::nullopt;
}

bool same_content(const hdf5::Dataset& a, const hdf5::Dataset& b) {
  if (a.shape() != b.shape() || a.type().kind != b.type().kind || a.type().bytes != b.type().bytes) return false;
  if (a.type().kind == hdf5::Kind::string) return a.read_strings() == b.read_strings();
  if (a.type().kind == hdf5::Kind::integer && a.type().bytes == 1) {
    return a.read<std::uint8_t>() == b.read<std::uint8_t>();
  }
  return a.type().kind == hdf5::Kind::integer ? a.read<std::int64_t>() == b.read<std::int64_t>()
                                              : a.read<double>() == b.read<double>();
}

std::string shape_text(const hdf5::ElementType& type, const hdf5::Shape& shape) {
  std::string text = to_string(type) + " [";
  for (std::size_t i = 0; i < shape.size(); ++i) text += (i == 0 ? "" : ", ") + std::to_string(shape[i]);
  return text + "]";
}

Attributes attributes_of(const hdf5::Object& object) {
  Attributes attributes;
  for (const std::string& name : object.attribute_names()) {
    if (among(name, kOfScales)) continue;
    require_value(object, name);
    if (const auto value = object.attribute(name)) attributes.emplace_back(name, *value);
  }
  return attributes;
}

DatasetPlan plan_of(const hdf5::Dataset& dataset, const std::string& name) {
  DatasetPlan plan;
  plan.name = name;
  plan.type = dataset.type();
  plan.shape = dataset.shape();
  plan.scales = dataset.scale_names();
  plan.is_scale = dataset.is_scale();
  plan.axis = row_axis(plan.scales);
  plan.attributes = attributes_of(dataset);
  if (plan.axis) plan.shape[*plan.axis] = 0;
  return plan;
}

// The datasets of a group; `prefix` is its name and a slash, or nothing for the root.
void add_datasets(std::vector<DatasetPlan>& plans, const ResultFile& file, const hdf5::Group& group,
                  const std::string& prefix, std::size_t part, const std::vector<EnsemblePart>& parts) {
  for (const std::string& member : group.datasets()) {
    const std::string name = prefix + member;
    if (name == names::kCommitted) continue;
    const hdf5::Dataset dataset = group.dataset(member);
    auto plan = std::ranges::find(plans, name, &DatasetPlan::name);
    if (plan == plans.end()) {
      plans.push_back(plan_of(dataset, name));
      plan = plans.end() - 1;
    }
    hdf5::Shape shape = dataset.shape();
    const auto other_part = [&] {
      return " as in " + parts[plan->rows.empty() ? 0 : plan->rows.front().part].path.string();
    };
    if (!plan->axis) {
      if (plan->rows.empty()) {
        plan->rows.push_back({part, 0, shape});
      } else if (!same_content(hdf5::File::open(parts[plan->rows.front().part].path).dataset(name), dataset)) {
        refuse_part(file.path(), "other values of " + name, "the same" + other_part(), "give the parts of one run");
      }
      continue;
    }
    hdf5::Shape expected = plan->shape;
    const bool same_rank = shape.size() == expected.size();
    if (same_rank) expected[*plan->axis] = shape[*plan->axis];
    if (!same_rank || shape != expected || dataset.type().kind != plan->type.kind ||
        dataset.type().bytes != plan->type.bytes) {
      refuse_part(file.path(), name + " " + shape_text(dataset.type(), shape),
                  shape_text(plan->type, expected) + other_part(), "give the parts of one run");
    }
    plan->rows.push_back({part, plan->shape[*plan->axis], shape});
    plan->shape[*plan->axis] += shape[*plan->axis];
  }
}

// Of a reset's group: its models say the same to the bit.
Attributes without_words(Attributes attributes) {
  std::erase_if(attributes, [](const auto& attribute) { return attribute.first == "text"; });
  return attributes;
}

// Those of a group and the ones in them, each after the one it lies in; `prefix` as for datasets, `above` the places of
// the group and of those that it lies in.
void add_groups(PartSet& set, const ResultFile& file, const hdf5::Group& parent, const std::string& prefix,
                std::size_t part, std::vector<hdf5::Place> above) {
  above.push_back(parent.place());
  for (const std::string& member : parent.groups()) {
    const std::string name = prefix + member;
    const hdf5::Group group = parent.group(member);
    if (std::ranges::find(above, group.place()) != above.end())
      refuse_part(file.path(), "a group that holds itself, as " + name, "groups that end", "remove that link");
    Attributes attributes = attributes_of(group);
    const auto known = std::ranges::find(set.groups, name, &GroupPlan::name);
    if (known == set.groups.end()) {
      set.groups.push_back({name, attributes});
    } else if (without_words(known->attributes) != without_words(std::move(attributes))) {
      refuse_part(file.path(), "other attributes of group " + name, "the same in all parts",
                  "give the parts of one run");
    }
    add_datasets(set.datasets, file, group, name + "/", part, set.parts);
    add_groups(set, file, group, name + "/", part, above);
  }
}

}  // namespace

PartSet plan_whole(std::span<const fs::path> paths, Unfinished unfinished) {
  if (paths.empty()) throw Error(ErrorKind::invalid_argument, {"parts", "no file", "result files of one run", {}});
  PartSet set;
  for (const fs::path& path : paths) {
    const ResultFile file(path);
    if (file.index_files().empty()) {
      set.parts.push_back(describe(path, file));
      continue;
    }
    for (const std::string& name : file.index_files()) {
      const fs::path behind = folder_behind(path) / name;
      set.parts.push_back(describe(behind, ResultFile(behind)));
    }
  }
  std::ranges::stable_sort(set.parts, {}, &EnsemblePart::first);
  AttributeTable attributes;
  for (const EnsemblePart& part : set.parts) attributes.add(ResultFile(part.path));
  check_cover(set.parts);
  for (std::size_t i = 0; i < set.parts.size(); ++i) {
    const EnsemblePart& part = set.parts[i];
    if (part.unfinished > 0 && unfinished == Unfinished::refuse) {
      refuse_part(part.path, std::to_string(part.unfinished) + " trajectories that were not finished",
                  "all of them finished", "solve that part to its end, or accept cancelled trajectories");
    }
    set.committed += static_cast<std::int64_t>(part.count - part.unfinished);
    const ResultFile file(part.path);
    add_datasets(set.datasets, file, file.hdf5(), "", i, set.parts);
    add_groups(set, file, file.hdf5(), "", i, {});
  }
  set.attributes = attributes.all();
  return set;
}

}  // namespace lockstep::ode
