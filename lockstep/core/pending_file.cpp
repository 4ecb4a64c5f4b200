#include "lockstep/core/pending_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

#include "lockstep/core/detail/links.h"
#include "lockstep/core/error.h"
#include "lockstep/core/text.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

std::string reason(int error_number) { return std::generic_category().message(error_number); }

[[noreturn]] void fail(const fs::path& path, const std::string& found, const std::string& expected,
                       const std::string& remedy) {
  throw Error(ErrorKind::file, {path.string(), found, expected, remedy});
}

[[noreturn]] void refuse_existing(const fs::path& path) {
  fail(path, "a file of that name", "none", "choose another name, or allow overwriting");
}

[[noreturn]] void refuse_second_writer(const fs::path& target, const fs::path& unfinished) {
  fail(target, "another run that is writing it, as " + unfinished.string(), "one run at a time",
       "wait until it has ended, or choose another name");
}

class Descriptor {
 public:
  Descriptor(const fs::path& path, int flags) : fd_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

// Some file systems cannot sync a folder (EINVAL) and have nothing to wait for then.
void wait_for_disk(const fs::path& path, int flags) {
  const Descriptor file(path, flags);
  if (file.get() < 0 || (::fsync(file.get()) != 0 && errno != EINVAL)) {
    fail(path, reason(errno), "the content on the disk", "check the disk's free space and health");
  }
}

[[noreturn]] void refuse_folder(const fs::path& target, const fs::path& folder) {
  fail(target, "folder " + folder.string() + ": " + reason(errno), "a writable folder",
       "choose another place or change its permissions");
}

// "room for 4,194,304 bytes".
std::string room_text(std::uintmax_t bytes) { return "room for " + grouped_digits(bytes) + " bytes"; }

// What `ulimit -f` allows.
std::string size_limit_text() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return "a limit on the size of files";
  return "a limit of " + std::to_string(limit.rlim_cur) + " bytes on the size of files (ulimit -f)";
}

// Permissions of the file that is to be replaced, if any.
std::optional<mode_t> mode_to_keep(const fs::path& target, Existing existing) {
  struct stat about {};
  if (existing == Existing::refuse || ::stat(target.c_str(), &about) != 0) return std::nullopt;
  return about.st_mode & 0777;
}

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

void PendingFile::check_target(const fs::path& asked_for) {
  std::error_code ignored;
  if (asked_for.empty() || !asked_for.has_filename()) {
    fail(asked_for, "\"" + asked_for.string() + "\"", "a file name", "name a file to write");
  }
  target_ = behind_links(asked_for);  // the file there is replaced, and not the link
  const fs::file_status status = fs::status(target_, ignored);
  if (fs::is_directory(status)) fail(asked_for, "a folder", "a file name", "name a file inside it");
  if (fs::exists(status)) {
    if (existing_ == Existing::refuse) refuse_existing(asked_for);
    if (!fs::is_regular_file(status)) fail(asked_for, "a device or pipe", "a regular file", "choose another name");
  }
  if (!fs::is_directory(folder(), ignored)) {
    fail(asked_for, "no folder " + folder().string(), "an existing folder", "create it first");
  }
}

// Whom the file that is to be replaced does not let read, the new one does not either, from its first byte.
void PendingFile::take_mode(int descriptor) const {
  if (const auto mode = mode_to_keep(target_, existing_)) ::fchmod(descriptor, *mode | S_IRUSR | S_IWUSR);
}

fs::path PendingFile::folder() const { return folder_of(target_); }

PendingFile::PendingFile(const fs::path& target, Existing existing) : existing_(existing) {
  check_target(target);
  static std::atomic<unsigned> counter{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string suffix = std::to_string(::getpid()) + "-" + std::to_string((now / 1000) % 1000000) + "-" +
                               std::to_string(counter.fetch_add(1));
    std::string name = ".";
    name.append(target_.filename().string()).append(".part-").append(suffix);
    fs::path candidate = folder() / name;
    const Descriptor file(candidate, O_CREAT | O_EXCL | O_WRONLY);
    if (file.get() >= 0) {
      take_mode(file.get());
      temporary_ = std::move(candidate);
      noted_ = TemporaryName(temporary_);
      return;
    }
    if (errno != EEXIST) break;
  }
  refuse_folder(target, folder());
}

fs::path PendingFile::unfinished_name(const fs::path& target) {
  fs::path name = behind_links(target);
  name += ".part";
  return name;
}

void PendingFile::require_no_writer(const fs::path& target) {
  const fs::path name = unfinished_name(target);
  if (detail::FileLock::is_taken(name)) refuse_second_writer(target, name);
}

PendingFile PendingFile::resumable(const fs::path& target, Existing existing, Leftover unfinished) {
  PendingFile file;
  file.existing_ = existing;
  const fs::path name = unfinished_name(target);
  std::error_code ignored;
  // A publish() by way of a link may have been killed before it removed the old name.
  if (fs::equivalent(name, behind_links(target), ignored)) fs::remove(name, ignored);
  const std::uintmax_t size_before = fs::file_size(name, ignored);
  const bool nothing_unfinished = ignored || size_before == 0;
  // A file that was given its name unfinished, by a run that was asked to stop.
  const bool take_back = unfinished == Leftover::resume && nothing_unfinished && fs::is_regular_file(target, ignored);
  if (take_back) {
    file.target_ = behind_links(target);
  } else {
    file.check_target(target);
  }
  for (int attempt = 0;; ++attempt) {
    detail::FileLock lock(name, detail::FileLock::Create::yes);
    if (!lock.opened()) refuse_folder(target, file.folder());
    if (!lock.locked() || attempt == 100) refuse_second_writer(target, name);
    // Between opening and locking, the former owner may have renamed or removed it.
    if (!lock.is_named(name)) continue;
    if (fs::file_size(name) > 0) {
      if (unfinished == Leftover::refuse) {
        fail(target, "the unfinished file " + name.string() + " of an earlier run", "none",
             "continue that run (--resume), or allow overwriting to begin anew");
      }
      if (unfinished == Leftover::resume) {
        file.temporary_ = name;
        file.lock_ = std::move(lock);
        file.resumed_ = file.kept_ = true;
        return file;
      }
    }
    file.placeholder_ = name;
    file.placeholder_lock_ = std::move(lock);
    break;
  }
  if (take_back) {
    file.lock_ = detail::FileLock(file.target_, detail::FileLock::Create::no);
    if (!file.lock_.opened()) fail(target, reason(errno), "a file to continue", "check its permissions");
    if (!file.lock_.locked()) fail(target, "another run that is writing it", "one run at a time", "wait for its end");
    if (::rename(file.target_.c_str(), name.c_str()) != 0) {
      fail(target, reason(errno), "to rename it to " + name.string(), "check the folder's permissions");
    }
    file.placeholder_.clear();
    file.placeholder_lock_ = {};
    file.temporary_ = name;
    file.resumed_ = file.kept_ = true;
    return file;
  }
  // Discarding what an earlier run left: its space may be needed.
  fs::resize_file(name, 0, ignored);
  fs::path made = file.folder() / ("." + name.filename().string() + ".new");
  fs::remove(made, ignored);
  file.placeholder_noted_ = TemporaryName(name);
  file.noted_ = TemporaryName(made);
  file.lock_ = detail::FileLock(made, detail::FileLock::Create::yes);
  file.temporary_ = std::move(made);
  if (!file.lock_.opened()) refuse_folder(target, file.folder());
  file.take_mode(file.lock_.descriptor());
  return file;
}

void PendingFile::reveal() {
  if (placeholder_.empty()) return;
  if (::rename(temporary_.c_str(), placeholder_.c_str()) != 0) {
    fail(target_, reason(errno), "to rename " + temporary_.string(), "check the folder's permissions");
  }
  noted_.forget();
  placeholder_noted_.forget();
  temporary_ = std::exchange(placeholder_, fs::path{});
  placeholder_lock_ = {};
}

void PendingFile::sync() const {
  if (published()) return;
  const int failed = lock_.opened() ? (::fdatasync(lock_.descriptor()) != 0 ? errno : 0) : -1;
  if (failed == 0 || failed == EINVAL) return;
  if (failed < 0) return wait_for_disk(temporary_, O_RDONLY);
  fail(target_, reason(failed), "the content on the disk", "check the disk's free space and health");
}

void PendingFile::swap(PendingFile& other) noexcept {
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(existing_, other.existing_);
  std::swap(resumed_, other.resumed_);
  std::swap(kept_, other.kept_);
  std::swap(placeholder_, other.placeholder_);
  std::swap(placeholder_lock_, other.placeholder_lock_);
  std::swap(lock_, other.lock_);
  std::swap(noted_, other.noted_);
  std::swap(placeholder_noted_, other.placeholder_noted_);
}

PendingFile::PendingFile(PendingFile&& other) noexcept { swap(other); }

PendingFile& PendingFile::operator=(PendingFile&& other) noexcept {
  swap(other);
  return *this;
}

PendingFile::~PendingFile() {
  std::error_code ignored;
  if (!temporary_.empty() && !kept_) fs::remove(temporary_, ignored);
  if (!placeholder_.empty()) fs::remove(placeholder_, ignored);
}

std::uintmax_t PendingFile::available_bytes() const {
  std::error_code ignored;
  return fs::space(folder(), ignored).available;
}

void PendingFile::reserve(std::uintmax_t bytes) {
  if (published() || bytes == 0) return;
  // Asked for more than it has, a disk hands out all it has before it says no, and other programs find it full. So it
  // is asked for its room first, and once more when it has written what it may count late.
  std::error_code ignored;
  fs::space_info before = fs::space(folder(), ignored);
  if (before.free < bytes && before.capacity >= bytes) {
    const Descriptor disk(folder(), O_RDONLY | O_DIRECTORY);
    if (disk.get() >= 0) ::syncfs(disk.get());
    before = fs::space(folder(), ignored);
  }
  const auto refuse = [&](const std::string& found) {
    fail(target_, found, room_text(bytes), "free space, choose another disk, or save less");
  };
  if (before.capacity > 0 && before.free < bytes) refuse(room_text(before.available) + " on the disk");
  const Descriptor file(temporary_, O_WRONLY);
  const int failed = file.get() < 0 ? errno : ::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) != 0 ? errno : 0;
  if (failed == 0) return;
  const bool out_of_room = failed == ENOSPC || failed == EDQUOT || failed == EFBIG || before.available < bytes;
  if (!out_of_room) return;  // a file system without fallocate that has room today
  refuse(failed == EFBIG    ? size_limit_text()
         : failed == EDQUOT ? "a quota that is used up"
                            : room_text(before.available) + " on the disk");
}

void PendingFile::require_room(std::uintmax_t bytes) {
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < bytes;
  if (limited || available_bytes() < bytes) reserve(bytes);
}

void PendingFile::publish() {
  if (published()) return;
  wait_for_disk(temporary_, O_RDONLY);
  reveal();  // whole already
  const char* from = temporary_.c_str();
  const char* to = target_.c_str();
  if (const auto mode = mode_to_keep(target_, existing_)) ::chmod(from, *mode);
  // A name that was taken since we looked must not be replaced: rename() alone would. Some file systems cannot rename
  // so (EINVAL) but can link; where neither works, the check at the beginning is the best there is.
  bool done = false;
  if (existing_ == Existing::refuse) {
    done = ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0;
    if (!done && errno != EEXIST && ::link(from, to) == 0) done = ::unlink(from) == 0;
    if (!done && (errno == EEXIST || fs::exists(target_))) refuse_existing(target_);
  }
  if (!done && ::rename(from, to) != 0) {
    fail(target_, reason(errno), "to rename " + temporary_.string(), "check the folder's permissions");
  }
  noted_.forget();
  temporary_.clear();
  wait_for_disk(folder(), O_RDONLY | O_DIRECTORY);
}

void write_file(const fs::path& path, std::span<const std::byte> content, Existing existing) {
  PendingFile pending(path, existing);
  {
    const Descriptor file(pending.temporary(), O_WRONLY);
    std::size_t done = 0;
    while (file.get() >= 0 && done < content.size()) {
      const ssize_t written = ::write(file.get(), content.data() + done, content.size() - done);
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) break;
      done += static_cast<std::size_t>(written);
    }
    if (file.get() < 0 || done < content.size()) {
      fail(path, reason(errno) + " after " + std::to_string(done) + " bytes", room_text(content.size()),
           "free space or choose another disk");
    }
  }
  pending.publish();
}

}  // namespace lockstep
