#include "lockstep/ode/pack.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep::ode {
namespace {

namespace fs = std::filesystem;
namespace names = result_names;

constexpr std::size_t kLeastBytes = std::size_t{1} << 16;        // of a dataset that is worth chunks
constexpr std::size_t kPackedChunkBytes = std::size_t{1} << 19;  // HDF5 keeps 1 MiB of chunks at hand
constexpr std::size_t kPackedBytes = std::size_t{8} << 20;       // of memory
constexpr const char* kPacked = "packed";

// What H5DSset_scale and H5DSattach_scale write: made anew, for they hold addresses within the old file.
constexpr std::array<std::string_view, 4> kScaleAttributes{"CLASS", "NAME", "DIMENSION_LIST", "REFERENCE_LIST"};

// Calls function(T{}) with the element type.
template <class Function>
auto with_type(const hdf5::Dataset& dataset, const Function& function) {
  const hdf5::ElementType type = dataset.type();
  const bool real = type.kind == hdf5::Kind::real;
  const bool integer = type.kind == hdf5::Kind::integer;
  if (real && type.bytes == 4) return function(float{});
  if (real && type.bytes == 8) return function(double{});
  if (integer && type.bytes == 1) return function(std::uint8_t{});
  if (integer && type.bytes == 4) return function(std::int32_t{});
  if (integer && type.bytes == 8) return function(std::int64_t{});
  throw Error(ErrorKind::file, {dataset.name(), to_string(type), "a type that result files have", {}});
}

std::size_t product(const hdf5::Shape& shape, std::size_t from) {
  std::size_t elements = 1;
  for (std::size_t i = from; i < shape.size(); ++i) elements *= shape[i];
  return elements;
}

// Whole rows of the slowest dimension as long as they fit; of longer rows a part of the next dimension.
hdf5::Shape chunk_of(const hdf5::Shape& shape, std::size_t element_bytes) {
  hdf5::Shape chunk = shape;
  if (product(shape, 0) == 0) return chunk;  // nothing to cut
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::size_t row = product(chunk, i + 1) * element_bytes;
    chunk[i] = std::clamp<std::size_t>(kPackedChunkBytes / row, 1, shape[i]);
    if (row <= kPackedChunkBytes) break;
  }
  return chunk;
}

// Another where the file was written, or another has taken its place; all zero where there is none.
using Stamp = std::array<std::int64_t, 5>;
Stamp stamp_of(const fs::path& path) {
  struct stat about {};
  if (::stat(path.c_str(), &about) != 0) return {};
  return {static_cast<std::int64_t>(about.st_dev), static_cast<std::int64_t>(about.st_ino), about.st_size,
          about.st_mtim.tv_sec, about.st_mtim.tv_nsec};
}

class Packing {
 public:
  Packing(const hdf5::File& from, hdf5::File& to, const PackOptions& options, const RunControl& control)
      : from_(from), to_(to), options_(options), control_(control) {}

  void copy_all() {
    total_ = 2 * count_bytes(from_);
    copy_group(from_, to_);
    copy_scales();
    copy_attributes(from_, to_);
    for (const auto& [name, value] : options_.attributes) to_.set_attribute(name, value);
    to_.set_attribute(kPacked, "shuffle, deflate " + std::to_string(options_.level));
    to_.flush();
  }

  // From the file, not from what HDF5 still holds: `written` was opened anew.
  void verify(const hdf5::File& written) { compare_group(from_, written); }

 private:
  static std::uintmax_t count_bytes(const hdf5::Group& group) {
    std::uintmax_t bytes = 0;
    for (const std::string& name : group.datasets()) {
      const hdf5::Dataset dataset = group.dataset(name);
      bytes += dataset.size() * dataset.type().bytes;
    }
    for (const std::string& name : group.groups()) bytes += count_bytes(group.group(name));
    return bytes;
  }

  void copy_group(const hdf5::Group& from, hdf5::Group& to) {
    for (const std::string& name : from.datasets()) copy_dataset(from.dataset(name), to, name);
    for (const std::string& name : from.groups()) {
      const hdf5::Group source = from.group(name);
      hdf5::Group target = to.create_group(name);
      copy_group(source, target);
      copy_attributes(source, target);
    }
  }

  void copy_dataset(const hdf5::Dataset& source, hdf5::Group& to, const std::string& name) {
    if (source.type().kind == hdf5::Kind::string) {
      hdf5::Dataset target = to.create_strings(name, source.read_strings(), source.shape());
      copy_attributes(source, target);
      return;
    }
    with_type(source, [&]<class T>(T) {
      const hdf5::Shape shape = source.shape();
      hdf5::DatasetOptions how;
      if (!shape.empty() && product(shape, 0) * sizeof(T) >= kLeastBytes) {
        how.chunk = chunk_of(shape, sizeof(T));
        how.deflate = options_.level;
      }
      hdf5::Dataset target = to.create_dataset<T>(name, shape, how);
      in_pieces<T>(source, how.chunk,
                   [&](const std::vector<T>& values, const hdf5::Shape& start, const hdf5::Shape& count) {
                     if (shape.empty()) {
                       target.template write<T>(values);
                     } else {
                       target.template write<T>(values, start, count);
                     }
                   });
      copy_attributes(source, target);
    });
  }

  // Reads a dataset in pieces of whole chunks.
  template <class T, class Use>
  void in_pieces(const hdf5::Dataset& source, const hdf5::Shape& chunk, const Use& use) {
    const hdf5::Shape shape = source.shape();
    if (shape.empty()) return use(source.read<T>(), {}, {});
    if (product(shape, 0) == 0) return;
    const std::size_t row = product(shape, 1) * sizeof(T);
    const std::size_t step = chunk.empty() ? 1 : chunk[0];
    const std::size_t rows = std::max(kPackedBytes / row / step * step, step);
    std::vector<T> values;
    for (std::size_t first = 0; first < shape[0]; first += rows) {
      hdf5::Shape start(shape.size(), 0), count = shape;
      start[0] = first;
      count[0] = std::min(rows, shape[0] - first);
      values.resize(product(count, 0));
      source.read_into<T>(values, start, count);
      use(values, start, count);
      done_ += values.size() * sizeof(T);
      if (control_.progress) control_.progress(static_cast<std::size_t>(done_), static_cast<std::size_t>(total_));
      if (control_.cancelled()) throw Error(ErrorKind::cancelled, {from_.path().string(), "a request to stop", {}, {}});
    }
  }

  static void copy_attributes(const hdf5::Object& from, hdf5::Object& to) {
    for (const std::string& name : from.attribute_names()) {
      if (std::ranges::find(kScaleAttributes, name) != kScaleAttributes.end()) continue;
      to.copy_attribute(from, name);
    }
  }

  void copy_scales() {
    std::map<std::string, hdf5::Dataset> scales;
    for (const std::string& name : from_.datasets()) {
      if (!from_.dataset(name).is_scale()) continue;
      scales.emplace(name, to_.dataset(name)).first->second.make_scale(name);
    }
    attach_scales(from_, to_, scales);
  }

  // Those of the groups' datasets lie in the root group, too.
  static void attach_scales(const hdf5::Group& from, const hdf5::Group& to,
                            const std::map<std::string, hdf5::Dataset>& scales) {
    for (const std::string& name : from.datasets()) {
      const hdf5::Dataset source = from.dataset(name);
      if (source.is_scale()) continue;
      hdf5::Dataset target = to.dataset(name);
      const std::vector<std::string> of_dimensions = source.scale_names();
      for (std::size_t i = 0; i < of_dimensions.size(); ++i) {
        if (!of_dimensions[i].empty()) target.attach_scale(i, scales.at(of_dimensions[i]));
      }
    }
    for (const std::string& name : from.groups()) attach_scales(from.group(name), to.group(name), scales);
  }

  void compare_group(const hdf5::Group& a, const hdf5::Group& b) {
    for (const std::string& name : a.datasets()) {
      const hdf5::Dataset source = a.dataset(name), copy = b.dataset(name);
      bool same = source.shape() == copy.shape();
      if (source.type().kind == hdf5::Kind::string) {
        same = same && source.read_strings() == copy.read_strings();
      } else {
        with_type(source, [&]<class T>(T) {
          const hdf5::Shape shape = source.shape();
          std::vector<T> again;
          in_pieces<T>(source, shape.empty() ? shape : chunk_of(shape, sizeof(T)),
                       [&](const std::vector<T>& values, const hdf5::Shape& start, const hdf5::Shape& count) {
                         again.resize(values.size());
                         if (shape.empty()) {
                           again = copy.read<T>();
                         } else {
                           copy.read_into<T>(again, start, count);
                         }
                         // Bits, so that NaN is NaN.
                         same = same && std::memcmp(again.data(), values.data(), values.size() * sizeof(T)) == 0;
                       });
        });
      }
      if (!same) {
        throw Error(ErrorKind::file, {copy.name(), "other bits than were written", "those of " + source.name(),
                                      "check the disk and the memory of this machine"});
      }
    }
    for (const std::string& name : a.groups()) compare_group(a.group(name), b.group(name));
  }

  const hdf5::File& from_;
  hdf5::File& to_;
  const PackOptions& options_;
  const RunControl& control_;
  std::uintmax_t total_ = 0;
  std::uintmax_t done_ = 0;
};

}  // namespace

Packed pack(const fs::path& source, const fs::path& target, const PackOptions& options, const RunControl& control) {
  if (options.level < 1 || options.level > 9) {
    throw Error(ErrorKind::invalid_argument, {"level", std::to_string(options.level), "1 to 9", {}});
  }
  const Stamp stamp = stamp_of(source);
  const ResultFile whole(source);
  if (!whole.index_files().empty()) {
    throw Error(ErrorKind::invalid_argument,
                {source.string(), "an index of other files", "a file with numbers of its own",
                 "merge its parts first: lockstep merge"});
  }
  if (source.extension() == ".part") {
    throw Error(ErrorKind::invalid_argument, {source.string(), "the unfinished file of a run", "a finished one",
                                              "let the run end, or continue it with lockstep solve --resume"});
  }
  if (whole.attribute(kPacked)) {
    throw Error(ErrorKind::invalid_argument, {source.string(),
                                              "a file that is packed already (" + whole.text_attribute(kPacked) + ")",
                                              "one that is not",
                                              {}});
  }
  if (const std::size_t open = count_cancelled(whole.hdf5()); open > 0) {
    throw Error(ErrorKind::invalid_argument,
                {source.string(), std::to_string(open) + " trajectories that were not finished", "all of them finished",
                 "continue it with lockstep solve --resume, which it could not be when packed"});
  }
  Packed packed;
  packed.bytes_before = fs::file_size(source);
  hdf5::File file = hdf5::File::create(target, options.existing, packed.bytes_before);
  Packing packing(whole.hdf5(), file, options, control);
  try {
    packing.copy_all();
    file.close();
    packing.verify(hdf5::File::open(file.current_path()));
  } catch (const Error&) {
    file.abandon();
    throw;
  }
  packed.bytes_after = fs::file_size(file.current_path());
  std::error_code absent;  // the target, where it is another file
  packed.stayed = packed.bytes_after >= packed.bytes_before && fs::equivalent(source, target, absent);
  if (stamp_of(source) != stamp) {
    file.abandon();
    throw Error(ErrorKind::file, {source.string(), "a file that was written while it was packed",
                                  "the one that was read", "pack it again when nothing writes it"});
  }
  if (!packed.stayed) file.publish();
  return packed;
}

}  // namespace lockstep::ode
