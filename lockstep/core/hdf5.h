// HDF5 files as far as Lockstep needs them: groups, datasets of numbers and strings, attributes, dimension scales.
// The library's C headers stay out of sight; every failure is an Error (file) naming the file and the object.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lockstep/core/pending_file.h"

// Threads: a distribution's HDF5 is not safe for concurrent calls, so each function here takes one process-wide
// lock. Objects may be used from any thread, one at a time each. HDF5's own error printing is off during our calls
// and left as the program had it outside them.
namespace lockstep::hdf5 {

using Shape = std::vector<std::size_t>;  // slowest dimension first; empty: a scalar

template <class T>
concept Number = std::same_as<T, float> || std::same_as<T, double> || std::same_as<T, std::uint8_t> ||
    std::same_as<T, std::int32_t> || std::same_as<T, std::int64_t>;

enum class Kind { integer, real, string, other };

struct ElementType {
  Kind kind = Kind::other;
  std::size_t bytes = 0;  // of one element; of the pointer for strings of variable length
  bool is_unsigned = false;
};
std::string to_string(ElementType type);  // "float32", "int64", "uint16", "string", ...

// Integers are stored as int64, numbers as float64, bytes as uint8, strings as UTF-8 of variable length, lists as one
// dimension.
using AttributeValue = std::variant<std::string, std::int64_t, double, std::vector<std::string>,
                                    std::vector<std::int64_t>, std::vector<double>, std::vector<std::uint8_t>>;

// An open HDF5 identifier, closed at the end of its life.
class Handle {
 public:
  explicit Handle(std::int64_t id = -1) noexcept : id_(id) {}
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, -1)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }
  ~Handle() { close(); }
  std::int64_t id() const noexcept { return id_; }
  void close() noexcept;

 private:
  std::int64_t id_;
};

// Where an object lies: the same for all the names that it has.
struct Place {
  std::string file;
  std::uint64_t address = 0;
  auto operator<=>(const Place&) const = default;
};

// What files, groups and datasets have in common: a name and attributes.
class Object {
 public:
  // "FILE:/group/dataset", as it stands in messages.
  const std::string& name() const noexcept { return name_; }
  Place place() const;

  bool has_attribute(const std::string& attribute) const;
  std::vector<std::string> attribute_names() const;  // ascending
  // Replaces an attribute of that name.
  void set_attribute(const std::string& attribute, const AttributeValue& value);
  template <std::integral I>
  void set_attribute(const std::string& attribute, I value) {
    set_attribute(attribute, AttributeValue(static_cast<std::int64_t>(value)));
  }
  // As stored; nothing where HDF5 holds a type that AttributeValue has no room for (references, compounds).
  std::optional<AttributeValue> attribute(const std::string& attribute) const;
  // Whether AttributeValue says all of it: numbers or text, of at most one dimension.
  bool is_value(const std::string& attribute) const;
  // As `from` has it, whatever its type and shape. Throws where it refers to another object of its file.
  void copy_attribute(const Object& from, const std::string& attribute);

  // As the named type; integers serve as numbers, whole numbers as integers, scalars as lists of one and the reverse.
  // Throw when missing or of another type.
  std::string string_attribute(const std::string& attribute) const;
  std::int64_t integer_attribute(const std::string& attribute) const;
  double number_attribute(const std::string& attribute) const;
  std::vector<std::string> string_list_attribute(const std::string& attribute) const;
  std::vector<double> number_list_attribute(const std::string& attribute) const;

 protected:
  friend class Group;  // which names others
  Object(Handle handle, std::string name) : handle_(std::move(handle)), name_(std::move(name)) {}
  std::int64_t id() const noexcept { return handle_.id(); }

  Handle handle_;
  std::string name_;
};

// An array of one element type. A hyperslab is the box [start, start + count) of it, row-major in memory.
class Dataset : public Object {
 public:
  Shape shape() const;
  ElementType type() const;
  std::size_t size() const;  // elements
  bool is_null() const;      // HDF5's null shape, of no elements: not that of a scalar

  // All of it, or a hyperslab. Reading into float or double converts any number; reading into an integer type
  // needs stored integers no wider than it. Throws before allocating when the box does not lie inside the shape,
  // or when the size claimed cannot be in a file of this length.
  template <Number T>
  std::vector<T> read() const;
  template <Number T>
  std::vector<T> read(const Shape& start, const Shape& count) const;
  // Into the caller's memory, as long as the box has elements. With a stride the box [start, start + count * stride)
  // is read in steps: every stride[d]-th element along dimension d (empty: each).
  template <Number T>
  void read_into(std::span<T> values, const Shape& start, const Shape& count, const Shape& stride = {}) const;
  std::vector<std::string> read_strings() const;
  // Integers and reals of any type as they are stored, not converted; start and count are empty for a scalar.
  void read_stored(std::span<std::byte> values, const Shape& start, const Shape& count) const;
  void write_stored(std::span<const std::byte> values, const Shape& start, const Shape& count);

  // values.size() must be the number of elements written.
  template <Number T>
  void write(std::span<const T> values);
  template <Number T>
  void write(std::span<const T> values, const Shape& start, const Shape& count);
  // Hands this dataset's raw data and metadata to the operating system.
  void flush();
  // Where in the file the numbers begin, when they lie there one after the other as memory holds them: T contiguous,
  // unfiltered, in this machine's byte order, wholly inside the file. Nothing for other datasets.
  template <Number T>
  std::optional<std::uint64_t> offset_in_file() const;

  // Dimension scales, as netCDF and xarray read them: `scale` names the positions along `dimension`.
  void make_scale(const std::string& dimension_name);
  void attach_scale(std::size_t dimension, const Dataset& scale);
  bool is_scale() const;
  // For each dimension the name of the dataset that is its scale, "" where it has none. A scale names itself.
  std::vector<std::string> scale_names() const;
  // For each dimension all its scales; none for a dataset that is a scale itself.
  std::vector<std::vector<Place>> scale_places() const;

  // The files a virtual dataset takes its numbers from, as it names them; none for other datasets.
  std::vector<std::string> source_files() const;

 private:
  friend class Group;
  using Object::Object;
  void transfer(bool writing, void* data, std::int64_t memory_type, const Shape* start, const Shape* count,
                const Shape* stride = nullptr) const;
  void transfer_stored(bool writing, void* data, std::size_t bytes, const Shape& start, const Shape& count) const;
};

// A whole dataset of another file that stands in a virtual dataset as the box beginning at `start`.
struct VirtualSource {
  std::string file;  // relative to the folder of the file with the virtual dataset
  std::string dataset;
  Shape start;
  Shape shape;
};

struct DatasetOptions {
  // Space is reserved when the dataset is made, so that a later write cannot fail for want of room in the file's
  // tables. Without a fill value the space is left as it is until written.
  std::optional<double> fill;
  Shape chunk;  // empty: contiguous
  int deflate =
      0;  // 1 to 9: chunks are shuffled (bytes of equal weight side by side) and deflated; space comes as used
};

// What a group has under a name: an object, or a link to one elsewhere, which may lead nowhere.
enum class MemberKind { group, dataset, type, soft_link, external_link, other };
struct Member {
  std::string name;
  MemberKind kind = MemberKind::other;
};

class Group : public Object {
 public:
  bool has(const std::string& member) const;
  std::vector<Member> members() const;  // all, ascending
  // Those that are groups or datasets, and links that lead to one: names, ascending. Groups may hold each other.
  std::vector<std::string> groups() const;
  std::vector<std::string> datasets() const;

  Group group(const std::string& member) const;
  Group create_group(const std::string& member);
  Dataset dataset(const std::string& member) const;
  // Its name goes. The space that it took serves others until the file is closed, and is lost then.
  void remove(const std::string& member);
  // One more name for an object of the same file.
  void link(const std::string& member, const Object& to);
  // The soft or external link that another group, of another file perhaps, has under the same name.
  void copy_link(const Group& from, const std::string& member);
  std::string linked_file(const std::string& member) const;  // of an external link, as it names it
  // False where the dataset's numbers lie in another file than this group: by an external link, external storage or as
  // a virtual dataset. Files of strangers may name any file of the machine.
  bool holds(const Dataset& dataset) const;
  template <Number T>
  Dataset create_dataset(const std::string& member, const Shape& shape, const DatasetOptions& options = {});
  // Of the type and shape of a dataset of numbers, whatever they are, for read_stored() and write_stored().
  Dataset create_like(const std::string& member, const Dataset& pattern, const DatasetOptions& options = {});
  // A dataset that shows parts of other files. HDF5 reads `fill` where no source lies, and where a file is missing.
  template <Number T>
  Dataset create_virtual(const std::string& member, const Shape& shape, std::span<const VirtualSource> sources, T fill);
  // UTF-8 strings of variable length, of one dimension or of the given shape.
  Dataset create_strings(const std::string& member, std::span<const std::string> values);
  Dataset create_strings(const std::string& member, std::span<const std::string> values, const Shape& shape);

 protected:
  using Object::Object;

 private:
  Dataset create(const std::string& member, std::int64_t type, const Shape& shape, const DatasetOptions& options);
  std::vector<std::string> leading_to(int wanted_type) const;
};

// The root group, and the file it stands for.
class File : public Group {
 public:
  enum class Access { read, update };

  // Throws when the path is missing, no HDF5 file, or damaged.
  static File open(const std::filesystem::path& path, Access access = Access::read);
  // A file that lies in memory, to be read; `name` stands for its path in messages. The bytes are copied.
  static File open_image(std::span<const std::byte> bytes, const std::string& name);
  // A new file under a temporary name beside `path`; publish() gives it its name, and without that it vanishes
  // with this object. Throws at once when `path` exists (unless told to replace it) or the folder is not writable.
  // With `expected_bytes` it throws when the disk has no room for so many.
  static File create(const std::filesystem::path& path, Existing existing = Existing::refuse,
                     std::uintmax_t expected_bytes = 0);
  // The same with a pending file of the caller's making; one that was resumed is opened for update.
  static File create(PendingFile pending, std::uintmax_t expected_bytes);
  static File resume(PendingFile pending);
  // True when the file begins like HDF5 (the signature may stand at 0, 512, 1024, ...).
  static bool recognises(const std::filesystem::path& path);

  // Where the file is meant to be.
  const std::filesystem::path& path() const noexcept { return path_; }
  // Where it is now.
  std::filesystem::path current_path() const;
  // Flushes, waits for the disk, and renames into place. Writing may go on afterwards, or the file be closed before.
  void publish();
  // Hands all buffered data to the operating system.
  void flush();
  // Takes disk space for everything allocated so far in a new file; see PendingFile::reserve().
  void reserve_space();
  // flush(), then waits until the disk has it: what follows is later on the disk too.
  void sync();
  // Gives a new pending file its visible name and lets it outlive this object: see PendingFile::resumable().
  void reveal();
  bool hidden() const noexcept { return pending_ && pending_->hidden(); }
  void keep() noexcept;
  // After a failed write: whatever the library still holds is dropped, so that the file stays as the disk has it and
  // closing it does not fail.
  void abandon() noexcept;
  // Flushes and closes; throws what a destructor would have to swallow. Objects of this file must be gone.
  void close();

 private:
  File(Handle root, Handle file, std::string name, std::filesystem::path path, std::optional<PendingFile> pending);

  std::filesystem::path path_;
  std::optional<PendingFile> pending_;
  Handle file_;
};

}  // namespace lockstep::hdf5
