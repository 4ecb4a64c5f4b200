#include "lockstep/ode/pack.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/standard_arithmetic.h"

namespace lockstep::ode {
namespace {

namespace fs = std::filesystem;
namespace names = result_names;

constexpr std::size_t kLeastBytes = std::size_t{1} << 16;        // of a dataset that is worth chunks
constexpr std::size_t kPackedChunkBytes = std::size_t{1} << 19;  // HDF5 keeps 1 MiB of chunks at hand
constexpr std::size_t kPackedBytes = std::size_t{8} << 20;       // of memory
constexpr const char* kPacked = "packed";

// What H5DSset_scale and H5DSattach_scale write: made anew, for they hold addresses within the old file.
constexpr std::array<std::string_view, 2> kScaleItself{"CLASS", "NAME"};
constexpr std::array<std::string_view, 2> kScaleLinks{"DIMENSION_LIST", "REFERENCE_LIST"};

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

bool in_one_folder(const fs::path& a, const fs::path& b) {
  std::error_code unknown;
  return fs::equivalent(fs::absolute(a).parent_path(), fs::absolute(b).parent_path(), unknown);
}

class Packing {
 public:
  Packing(const hdf5::File& from, hdf5::File& to, const PackOptions& options, const RunControl& control)
      : from_(from), to_(to), options_(options), control_(control), stays_(in_one_folder(from.path(), to.path())) {}

  void copy_all() {
    total_ = 2 * count_bytes(from_);
    copy_group(from_, to_, {});
    attach_scales();
    copy_attributes(from_, to_);
    for (const auto& [name, value] : options_.attributes) to_.set_attribute(name, value);
    to_.set_attribute(kPacked, "shuffle, deflate " + std::to_string(options_.level));
    to_.flush();
  }

  // From the file, not from what HDF5 still holds: `written` was opened anew.
  void verify(const hdf5::File& written) { compare_group(from_, written); }

 private:
  // Of each object once, however many names it has. Refuses what would not come over whole.
  std::uintmax_t count_bytes(const hdf5::Group& group) {
    if (!counted_.insert(group.place()).second) return 0;
    std::uintmax_t bytes = 0;
    for (const auto& [name, kind] : group.members()) {
      const auto refuse = [&, &name = name](const std::string& found, const std::string& remedy) {
        throw Error(ErrorKind::file, {group.name() + (group.name().ends_with('/') ? "" : "/") + name, found,
                                      "what can be copied whole: groups, numbers, texts, links", remedy});
      };
      switch (kind) {
        case hdf5::MemberKind::group:
          bytes += count_bytes(group.group(name));
          break;
        case hdf5::MemberKind::dataset: {
          const hdf5::Dataset dataset = group.dataset(name);
          if (!counted_.insert(dataset.place()).second) break;
          if (!group.holds(dataset))
            refuse("a dataset whose numbers lie in another file", "copy them into this one first");
          if (dataset.type().kind == hdf5::Kind::other)
            refuse("a dataset of " + to_string(dataset.type()), "remove it first");
          bytes += dataset.size() * dataset.type().bytes;
          break;
        }
        case hdf5::MemberKind::soft_link:
          break;
        case hdf5::MemberKind::external_link:
          // As the file names it, it would be looked for beside the new file.
          if (!stays_ && fs::path(group.linked_file(name)).is_relative())
            refuse("a link to " + group.linked_file(name) + " beside this file",
                   "pack it into the same folder, or remove the link");
          break;
        case hdf5::MemberKind::type:
          refuse("a named datatype", "remove it first");
          break;
        case hdf5::MemberKind::other:
          refuse("a link of a kind of its own", "remove it first");
      }
    }
    return bytes;
  }

  // An object that has been copied under another name: the copy gets this one too.
  bool link_again(const hdf5::Object& source, hdf5::Group& to, const std::string& name) {
    const auto copied = copies_.find(source.place());
    if (copied == copies_.end()) return false;
    const std::string& path = copied->second.path;
    if (path.empty()) {
      to.link(name, to_);
    } else if (copied->second.is_group) {
      to.link(name, to_.group(path));
    } else {
      to.link(name, to_.dataset(path));
    }
    return true;
  }

  // `path`: the group's within the file, with a slash at its end, or nothing for the root.
  void copy_group(const hdf5::Group& from, hdf5::Group& to, const std::string& path) {
    copies_.insert({from.place(), {path, true}});
    for (const auto& [name, kind] : from.members()) {
      if (kind == hdf5::MemberKind::dataset) {
        const hdf5::Dataset source = from.dataset(name);
        if (link_again(source, to, name)) continue;
        copy_dataset(source, to, name);
        copies_.insert({source.place(), {path + name, false}});
      } else if (kind == hdf5::MemberKind::group) {
        const hdf5::Group source = from.group(name);
        if (link_again(source, to, name)) continue;
        hdf5::Group target = to.create_group(name);
        copy_group(source, target, path + name + "/");
        copy_attributes(source, target);
      } else {
        to.copy_link(from, name);
      }
    }
  }

  void copy_dataset(const hdf5::Dataset& source, hdf5::Group& to, const std::string& name) {
    const hdf5::Shape shape = source.shape();
    const std::size_t element = source.type().bytes;
    const bool texts = source.type().kind == hdf5::Kind::string;
    hdf5::DatasetOptions how;
    if (!texts && !shape.empty() && product(shape, 0) * element >= kLeastBytes) {
      how.chunk = chunk_of(shape, element);
      how.deflate = options_.level;
    }
    hdf5::Dataset target = texts && !source.is_null() ? to.create_strings(name, source.read_strings(), shape)
                                                      : to.create_like(name, source, how);
    if (!texts) {
      in_pieces(source, how.chunk,
                [&](std::span<const std::byte> values, const hdf5::Shape& start, const hdf5::Shape& count) {
                  target.write_stored(values, start, count);
                });
    }
    if (source.is_scale()) target.make_scale(source.has_attribute("NAME") ? source.string_attribute("NAME") : name);
    copy_attributes(source, target, source.is_scale());
  }

  // Reads a dataset of numbers in pieces of whole chunks, as its file has them.
  template <class Use>
  void in_pieces(const hdf5::Dataset& source, const hdf5::Shape& chunk, const Use& use) {
    const hdf5::Shape shape = source.shape();
    const std::size_t element = source.type().bytes;
    if (product(shape, 0) == 0 || source.is_null()) return;
    std::vector<std::byte> values;
    const auto piece = [&](const hdf5::Shape& start, const hdf5::Shape& count) {
      values.resize(product(count, 0) * element);
      source.read_stored(values, start, count);
      use(values, start, count);
      done_ += values.size();
      if (control_.progress) control_.progress(static_cast<std::size_t>(done_), static_cast<std::size_t>(total_));
      if (control_.cancelled()) throw Error(ErrorKind::cancelled, {from_.path().string(), "a request to stop", {}, {}});
    };
    if (shape.empty()) return piece({}, {});
    const std::size_t row = product(shape, 1) * element;
    const std::size_t step = chunk.empty() ? 1 : chunk[0];
    const std::size_t rows = std::max(kPackedBytes / row / step * step, step);
    for (std::size_t first = 0; first < shape[0]; first += rows) {
      hdf5::Shape start(shape.size(), 0), count = shape;
      start[0] = first;
      count[0] = std::min(rows, shape[0] - first);
      piece(start, count);
    }
  }

  static void copy_attributes(const hdf5::Object& from, hdf5::Object& to, bool of_scale = false) {
    for (const std::string& name : from.attribute_names()) {
      if (std::ranges::find(kScaleLinks, name) != kScaleLinks.end()) continue;
      if (of_scale && std::ranges::find(kScaleItself, name) != kScaleItself.end()) continue;
      to.copy_attribute(from, name);
    }
  }

  // Once all of them are there.
  void attach_scales() {
    for (const auto& [place, copy] : copies_) {
      if (copy.is_group) continue;
      const hdf5::Dataset source = from_.dataset(copy.path);
      hdf5::Dataset target = to_.dataset(copy.path);
      const std::vector<std::vector<hdf5::Place>> scales = source.scale_places();
      for (std::size_t dimension = 0; dimension < scales.size(); ++dimension) {
        for (const hdf5::Place& scale : scales[dimension]) {
          const auto copied = copies_.find(scale);
          if (copied == copies_.end()) {
            throw Error(ErrorKind::file, {source.name(), "a dimension scale that lies in no group of the file",
                                          "one that does", "detach it first"});
          }
          target.attach_scale(dimension, to_.dataset(copied->second.path));
        }
      }
    }
  }

  void compare_group(const hdf5::Group& a, const hdf5::Group& b) {
    if (!compared_.insert(a.place()).second) return;
    const std::vector<hdf5::Member> members = a.members(), written = b.members();
    const auto same_member = [](const hdf5::Member& x, const hdf5::Member& y) {
      return x.name == y.name && x.kind == y.kind;
    };
    if (!std::ranges::equal(members, written, same_member)) refuse_copy(b, a);
    for (const auto& [name, kind] : members) {
      if (kind == hdf5::MemberKind::group) compare_group(a.group(name), b.group(name));
      if (kind != hdf5::MemberKind::dataset) continue;
      const hdf5::Dataset source = a.dataset(name), copy = b.dataset(name);
      if (!compared_.insert(source.place()).second) continue;
      bool same = source.shape() == copy.shape() && source.is_null() == copy.is_null();
      if (source.type().kind == hdf5::Kind::string) {
        same = same && (source.is_null() || source.read_strings() == copy.read_strings());
      } else {
        const hdf5::Shape shape = source.shape();
        std::vector<std::byte> again;
        in_pieces(source, shape.empty() ? shape : chunk_of(shape, source.type().bytes),
                  [&](std::span<const std::byte> values, const hdf5::Shape& start, const hdf5::Shape& count) {
                    again.resize(values.size());
                    copy.read_stored(again, start, count);
                    same = same && std::ranges::equal(again, values);
                  });
      }
      if (!same) refuse_copy(copy, source);
    }
  }

  [[noreturn]] static void refuse_copy(const hdf5::Object& copy, const hdf5::Object& source) {
    throw Error(ErrorKind::file, {copy.name(), "other bits than were written", "those of " + source.name(),
                                  "check the disk and the memory of this machine"});
  }

  struct Copy {
    std::string path;  // within both files
    bool is_group = false;
  };

  const hdf5::File& from_;
  hdf5::File& to_;
  const PackOptions& options_;
  const RunControl& control_;
  std::uintmax_t total_ = 0;
  std::uintmax_t done_ = 0;
  bool stays_;                          // in its folder
  std::map<hdf5::Place, Copy> copies_;  // of what lies where in the source
  std::set<hdf5::Place> counted_, compared_;
};

}  // namespace

Packed pack(const fs::path& source, const fs::path& target, const PackOptions& options, const RunControl& control) {
  const StandardReading arithmetic;
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
