#include "lockstep/ode/merge.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <type_traits>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/ode/detail/index_check.h"
#include "lockstep/ode/detail/part_set.h"

namespace lockstep::ode {
namespace {

namespace names = result_names;
namespace fs = std::filesystem;

constexpr std::size_t kPieceBytes = std::size_t{8} << 20;

// Calls function(T{}) with the element type.
template <class Function>
auto with_type(const DatasetPlan& plan, const Function& function) {
  const bool real = plan.type.kind == hdf5::Kind::real;
  const bool integer = plan.type.kind == hdf5::Kind::integer;
  if (real && plan.type.bytes == 4) return function(float{});
  if (real && plan.type.bytes == 8) return function(double{});
  if (integer && plan.type.bytes == 1 && plan.type.is_unsigned) return function(std::uint8_t{});
  if (integer && plan.type.bytes == 4 && !plan.type.is_unsigned) return function(std::int32_t{});
  if (integer && plan.type.bytes == 8 && !plan.type.is_unsigned) return function(std::int64_t{});
  throw Error(ErrorKind::file, {plan.name, to_string(plan.type), "a type that result files have", {}});
}

// What HDF5 shows where a file behind an index has gone missing.
template <class T>
T fill_of(const DatasetPlan& plan) {
  if constexpr (std::is_floating_point_v<T>) return std::numeric_limits<T>::quiet_NaN();
  return plan.name == names::kStatus ? static_cast<T>(Status::cancelled) : T{0};
}

std::size_t elements(const hdf5::Shape& shape) {
  std::size_t product = 1;
  for (const std::size_t extent : shape) product *= extent;
  return product;
}

// The new file's datasets of the parts' rows: real or virtual.
class Whole {
 public:
  Whole(hdf5::File& file, const PartSet& set) : file_(file), set_(set) {}

  template <class MakeRows>
  void create(const MakeRows& make_rows) {
    for (const GroupPlan& plan : set_.groups) {
      hdf5::Group group = file_.create_group(plan.name);
      for (const auto& [name, value] : plan.attributes) group.set_attribute(name, value);
    }
    for (const DatasetPlan& plan : set_.datasets) {
      hdf5::Dataset dataset = plan.axis ? make_rows(plan) : create_shared(plan);
      for (const auto& [name, value] : plan.attributes) dataset.set_attribute(name, value);
      if (plan.is_scale) dataset.make_scale(plan.name);
      datasets_.emplace(plan.name, std::move(dataset));
    }
    for (const DatasetPlan& plan : set_.datasets) {
      if (plan.is_scale) continue;
      for (std::size_t i = 0; i < plan.scales.size(); ++i) {
        if (!plan.scales[i].empty()) datasets_.at(plan.name).attach_scale(i, datasets_.at(plan.scales[i]));
      }
    }
    hdf5::Dataset committed = file_.create_dataset<std::int64_t>(names::kCommitted, {});
    committed.write<std::int64_t>(std::vector<std::int64_t>{set_.committed});
    committed.set_attribute("long_name", "trajectories stored");
  }

  void set_attributes(const Attributes& replacing) {
    std::map<std::string, hdf5::AttributeValue> all(set_.attributes.begin(), set_.attributes.end());
    for (const auto& [name, value] : replacing) all.insert_or_assign(name, value);
    for (const auto& [name, value] : all) file_.set_attribute(name, value);
  }

  hdf5::Dataset& dataset(const DatasetPlan& plan) { return datasets_.at(plan.name); }
  void release() { datasets_.clear(); }

 private:
  // The same in every part: copied from the first that has it.
  hdf5::Dataset create_shared(const DatasetPlan& plan) {
    const hdf5::File from = hdf5::File::open(set_.parts[plan.rows.front().part].path);
    const hdf5::Dataset source = from.dataset(plan.name);
    if (plan.type.kind == hdf5::Kind::string)
      return file_.create_strings(plan.name, source.read_strings(), source.shape());
    return with_type(plan, [&]<class T>(T) {
      hdf5::Dataset dataset = file_.create_dataset<T>(plan.name, plan.shape);
      dataset.template write<T>(source.read<T>());
      return dataset;
    });
  }

  hdf5::File& file_;
  const PartSet& set_;
  std::map<std::string, hdf5::Dataset> datasets_;
};

// Copies one part's rows in pieces along the slowest dimension, as they are: no conversion touches a bit.
template <class T, class Report>
void copy_rows(const hdf5::Dataset& from, hdf5::Dataset& to, const DatasetPlan& plan, const PartRows& rows,
               const Report& report) {
  const std::size_t all = elements(rows.shape);
  if (all == 0) return;
  const std::size_t row_bytes = all / rows.shape[0] * sizeof(T);
  const std::size_t piece = std::max<std::size_t>(kPieceBytes / row_bytes, 1);
  std::vector<T> values;
  for (std::size_t first = 0; first < rows.shape[0]; first += piece) {
    hdf5::Shape count = rows.shape;
    count[0] = std::min(piece, rows.shape[0] - first);
    hdf5::Shape source(rows.shape.size(), 0), target(rows.shape.size(), 0);
    source[0] = first;
    target[0] = first;
    target[*plan.axis] += rows.first;
    values.resize(elements(count));
    from.read_into<T>(values, source, count);
    to.write<T>(values, target, count);
    report(values.size() * sizeof(T));
  }
}

std::uintmax_t total_bytes(const PartSet& set) {
  std::uintmax_t bytes = 0;
  for (const DatasetPlan& plan : set.datasets) bytes += elements(plan.shape) * plan.type.bytes;
  return bytes;
}

std::uintmax_t size_of(const fs::path& path) {
  std::error_code ignored;
  const std::uintmax_t size = fs::file_size(path, ignored);
  return ignored ? 0 : size;
}

// The result may replace a file, but none of those it is made from.
void check_target(const PartSet& set, const fs::path& target) {
  for (const EnsemblePart& part : set.parts) {
    std::error_code ignored;
    if (fs::equivalent(part.path, target, ignored)) {
      throw Error(ErrorKind::invalid_argument,
                  {target.string(), "one of the parts", "another file than the parts", "choose another name"});
    }
  }
}

}  // namespace

std::vector<EnsemblePart> arrange_parts(std::span<const fs::path> paths, Unfinished unfinished) {
  const StandardReading arithmetic;
  return plan_whole(paths, unfinished).parts;
}

std::uintmax_t merge_parts(std::span<const fs::path> paths, const fs::path& target, const MergeOptions& options,
                           const RunControl& control) {
  const StandardReading arithmetic;
  const PartSet set = plan_whole(paths, options.unfinished);
  check_target(set, target);
  const std::uintmax_t bytes = total_bytes(set);
  hdf5::File file = hdf5::File::create(target, options.existing, bytes + (std::uintmax_t{1} << 16));
  Whole whole(file, set);
  whole.create([&](const DatasetPlan& plan) {
    return with_type(plan, [&]<class T>(T) { return file.create_dataset<T>(plan.name, plan.shape); });
  });
  whole.set_attributes(options.attributes);
  file.reserve_space();
  std::uintmax_t done = 0;
  const auto report = [&](std::size_t copied) {
    done += copied;
    if (control.progress) control.progress(static_cast<std::size_t>(done), static_cast<std::size_t>(bytes));
    if (control.cancelled()) throw Error(ErrorKind::cancelled, {target.string(), "a request to stop", {}, {}});
  };
  for (std::size_t part = 0; part < set.parts.size(); ++part) {
    const hdf5::File from = hdf5::File::open(set.parts[part].path);
    for (const DatasetPlan& plan : set.datasets) {
      const auto rows = std::ranges::find(plan.rows, part, &PartRows::part);
      if (!plan.axis || rows == plan.rows.end()) continue;
      with_type(plan,
                [&]<class T>(T) { copy_rows<T>(from.dataset(plan.name), whole.dataset(plan), plan, *rows, report); });
    }
  }
  whole.release();
  file.publish();
  file.close();
  return size_of(target);
}

namespace {

// Of datasets that show the rows of the parts' files.
void create_virtual_rows(Whole& whole, hdf5::File& file, const std::vector<std::string>& files) {
  whole.create([&](const DatasetPlan& plan) {
    std::vector<hdf5::VirtualSource> sources;
    for (const PartRows& rows : plan.rows) {
      if (elements(rows.shape) == 0) continue;
      hdf5::Shape start(rows.shape.size(), 0);
      start[*plan.axis] = rows.first;
      sources.push_back({files[rows.part], plan.name, std::move(start), rows.shape});
    }
    return with_type(
        plan, [&]<class T>(T) { return file.create_virtual<T>(plan.name, plan.shape, sources, fill_of<T>(plan)); });
  });
}

}  // namespace

std::uintmax_t index_parts(std::span<const fs::path> paths, const fs::path& target, const MergeOptions& options) {
  const StandardReading arithmetic;
  const PartSet set = plan_whole(paths, options.unfinished);
  check_target(set, target);
  const fs::path folder = folder_behind(fs::absolute(target)).lexically_normal();
  std::vector<std::string> files;
  std::vector<std::int64_t> firsts;
  for (const EnsemblePart& part : set.parts) {
    files.push_back(fs::absolute(part.path).lexically_relative(folder).string());
    firsts.push_back(static_cast<std::int64_t>(part.first));
  }
  hdf5::File file = hdf5::File::create(target, options.existing);
  Whole whole(file, set);
  try {
    create_virtual_rows(whole, file, files);
    whole.set_attributes(options.attributes);
    file.set_attribute(names::kIndexFiles, files);
    file.set_attribute(names::kIndexFirst, firsts);
    file.flush();
  } catch (const Error&) {
    file.abandon();
    throw;
  }
  whole.release();
  file.publish();
  file.close();
  return size_of(target);
}

}  // namespace lockstep::ode
