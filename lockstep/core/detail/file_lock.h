// One writer at a time: an advisory lock on a file, held by an open descriptor and gone with its process.
#pragma once

#include <filesystem>
#include <utility>

namespace lockstep::detail {

// Readers need no lock: HDF5's own is of another kind (flock), so that a growing file can be looked at.
class FileLock {
 public:
  enum class Create { yes, no };

  FileLock() = default;  // holds nothing
  // Opens and locks. locked() is false when somebody else has the lock, opened() when the file cannot be opened (errno
  // tells why). A file system without locks counts as locked.
  FileLock(const std::filesystem::path& path, Create create);
  FileLock(FileLock&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, -1)), locked_(std::exchange(other.locked_, false)) {}
  FileLock& operator=(FileLock&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    std::swap(locked_, other.locked_);
    return *this;
  }
  ~FileLock();

  bool opened() const noexcept { return descriptor_ >= 0; }
  bool locked() const noexcept { return locked_; }
  int descriptor() const noexcept { return descriptor_; }
  // Whether `path` is still the name of the file that is open here.
  bool is_named(const std::filesystem::path& path) const;
  // Whether somebody else has the lock on this file; takes none. False where there is no file, or no locks.
  static bool is_taken(const std::filesystem::path& path);

 private:
  int descriptor_ = -1;
  bool locked_ = false;
};

}  // namespace lockstep::detail
