// Files that appear under their name whole or not at all, and never over somebody's results by accident.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace lockstep {

enum class Existing {
  refuse,   // an Error when the file is there
  replace,  // the old file stays until the new one is complete
};

// A file being written under a temporary name in its folder: ".NAME.part-...".
class PendingFile {
 public:
  // Creates the temporary file, empty. Throws Error (file) when `target` exists (unless it may be replaced), is no
  // regular file, or its folder is missing or not writable.
  PendingFile(const std::filesystem::path& target, Existing existing);
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&& other) noexcept;
  ~PendingFile();  // removes the temporary file unless published

  const std::filesystem::path& temporary() const noexcept { return temporary_; }
  const std::filesystem::path& target() const noexcept { return target_; }
  bool published() const noexcept { return temporary_.empty(); }

  // Takes disk space for `bytes` of content, so that a full disk is an Error (file) now and not after hours of work.
  // Where the file system cannot promise space, what is free is compared with what is needed. The file's size grows
  // to `bytes` where it was smaller.
  void reserve(std::uintmax_t bytes);

  // Waits until the disk has the content, then renames. With Existing::refuse a file that has appeared under the
  // name meanwhile is an Error and stays as it is. Descriptors open on the file stay valid.
  void publish();

 private:
  std::filesystem::path target_;
  std::filesystem::path temporary_;
  Existing existing_;
};

// The whole content in one go.
void write_file(const std::filesystem::path& path, std::span<const std::byte> content,
                Existing existing = Existing::refuse);

}  // namespace lockstep
