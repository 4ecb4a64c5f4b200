// Files that appear under their name whole or not at all, and never over somebody's results by accident.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

#include "lockstep/core/detail/file_lock.h"
#include "lockstep/core/temporary_names.h"

namespace lockstep {

enum class Existing {
  refuse,   // an Error when the file is there
  replace,  // the old file stays until the new one is complete
};

// What becomes of the unfinished file that a killed writer left.
enum class Leftover {
  refuse,   // an Error that says it is there
  discard,  // written anew
  resume,   // its content is kept and added to
};

// A file being written under a temporary name in its folder: ".NAME.part-...", gone when its writer ends. Or, when it
// is worth keeping, "NAME.part" (see resumable()).
class PendingFile {
 public:
  // Creates the temporary file, empty. Throws Error (file) when `target` exists (unless it may be replaced), is no
  // regular file, or its folder is missing or not writable.
  PendingFile(const std::filesystem::path& target, Existing existing);

  // A file that outlives a killed writer: "NAME.part", locked while somebody writes it, so that a second writer of the
  // same target gets an Error (file). A new one is made as ".NAME.part.new" and appears as "NAME.part" in reveal(),
  // whole from the first moment. With Leftover::resume and no such file, one that already has the target's name is
  // taken back: it becomes "NAME.part" again. Locks need a file system that has them (NFS and Lustre may not).
  static PendingFile resumable(const std::filesystem::path& target, Existing existing, Leftover unfinished);
  static std::filesystem::path unfinished_name(const std::filesystem::path& target);  // "folder/NAME.part"
  // The same Error where somebody is writing the target, before any work.
  static void require_no_writer(const std::filesystem::path& target);

  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&& other) noexcept;
  ~PendingFile();  // removes the temporary file unless published or kept

  // The temporary file holds what an earlier writer left.
  bool resumed() const noexcept { return resumed_; }
  // Gives a new resumable file its visible name; nothing for other files. Whoever must find it whole after a failure of
  // power calls sync() before.
  void reveal();
  bool hidden() const noexcept { return !placeholder_.empty(); }  // a new resumable file before reveal()
  // From now on the temporary file outlives this object.
  void keep() noexcept { kept_ = true; }
  // Waits until the disk has what was handed to the operating system.
  void sync() const;

  const std::filesystem::path& temporary() const noexcept { return temporary_; }
  const std::filesystem::path& target() const noexcept { return target_; }
  bool published() const noexcept { return temporary_.empty(); }
  // Of the disk that takes the file; the largest number where the file system does not say.
  std::uintmax_t available_bytes() const;

  // Takes disk space for `bytes` of content, so that a full disk is an Error (file) now and not after hours of work.
  // Where the file system cannot promise space, what is free is compared with what is needed. The file's size grows
  // to `bytes` where it was smaller.
  void reserve(std::uintmax_t bytes);
  // The same Error where there is no such room, but takes nothing: for those who are about to empty the file, which
  // would have to give all of it back.
  void require_room(std::uintmax_t bytes);

  // Waits until the disk has the content, then reveals and renames. With Existing::refuse a file that has appeared
  // under the name meanwhile is an Error and stays as it is; one that is replaced passes its permissions on.
  // Descriptors open on the file stay valid.
  void publish();

 private:
  PendingFile() = default;
  void check_target(const std::filesystem::path& asked_for);
  void take_mode(int descriptor) const;
  std::filesystem::path folder() const;
  void swap(PendingFile& other) noexcept;

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  Existing existing_ = Existing::refuse;
  bool resumed_ = false;
  bool kept_ = false;
  std::filesystem::path placeholder_;  // holds the name and the lock until reveal()
  detail::FileLock placeholder_lock_;
  detail::FileLock lock_;  // on the temporary file
  TemporaryName noted_, placeholder_noted_;
};

// The whole content in one go.
void write_file(const std::filesystem::path& path, std::span<const std::byte> content,
                Existing existing = Existing::refuse);

}  // namespace lockstep
