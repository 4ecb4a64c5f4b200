#include "lockstep/core/pending_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>

#include "lockstep/core/error.h"

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

// A link is followed, so that the file behind it is replaced and not the link.
fs::path behind_links(fs::path path) {
  for (int links = 0; links < 16 && fs::is_symlink(fs::symlink_status(path)); ++links) {
    const fs::path next = fs::read_symlink(path);
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path;
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

fs::path folder_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

}  // namespace

PendingFile::PendingFile(const fs::path& target, Existing existing) : existing_(existing) {
  std::error_code ignored;
  if (target.empty() || !target.has_filename()) {
    fail(target, "\"" + target.string() + "\"", "a file name", "name a file to write");
  }
  target_ = behind_links(target);
  const fs::file_status status = fs::status(target_, ignored);
  if (fs::is_directory(status)) fail(target, "a folder", "a file name", "name a file inside it");
  if (fs::exists(status)) {
    if (existing == Existing::refuse) refuse_existing(target);
    if (!fs::is_regular_file(status)) fail(target, "a device or pipe", "a regular file", "choose another name");
  }
  const fs::path folder = folder_of(target_);
  if (!fs::is_directory(folder, ignored)) {
    fail(target, "no folder " + folder.string(), "an existing folder", "create it first");
  }
  static std::atomic<unsigned> counter{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  for (int attempt = 0; attempt < 100; ++attempt) {
    const std::string suffix = std::to_string(::getpid()) + "-" + std::to_string((now / 1000) % 1000000) + "-" +
                               std::to_string(counter.fetch_add(1));
    std::string name = ".";
    name.append(target_.filename().string()).append(".part-").append(suffix);
    fs::path candidate = folder / name;
    const Descriptor file(candidate, O_CREAT | O_EXCL | O_WRONLY);
    if (file.get() >= 0) {
      temporary_ = std::move(candidate);
      return;
    }
    if (errno != EEXIST) break;
  }
  fail(target, "folder " + folder.string() + ": " + reason(errno), "a writable folder",
       "choose another place or change its permissions");
}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, fs::path{})),
      existing_(other.existing_) {}

PendingFile& PendingFile::operator=(PendingFile&& other) noexcept {
  std::swap(target_, other.target_);
  std::swap(temporary_, other.temporary_);
  std::swap(existing_, other.existing_);
  return *this;
}

PendingFile::~PendingFile() {
  std::error_code ignored;
  if (!temporary_.empty()) fs::remove(temporary_, ignored);
}

void PendingFile::reserve(std::uintmax_t bytes) {
  if (published() || bytes == 0) return;
  const Descriptor file(temporary_, O_WRONLY);
  const int failed = file.get() < 0                                                       ? errno
                     : ::fallocate(file.get(), 0, 0, static_cast<off_t>(bytes)) != 0 ? errno
                                                                                     : 0;
  if (failed == 0) return;
  std::error_code ignored;
  const fs::space_info space = fs::space(temporary_, ignored);
  const bool out_of_room = failed == ENOSPC || failed == EDQUOT || failed == EFBIG || space.available < bytes;
  if (!out_of_room) return;  // a file system without fallocate that has room today
  const std::string found = failed == EFBIG    ? "a limit on the size of files"
                            : failed == EDQUOT ? "a quota that is used up"
                                               : "room for " + std::to_string(space.available) + " bytes on the disk";
  fail(target_, found, "room for " + std::to_string(bytes) + " bytes", "free space, choose another disk, or save less");
}

void PendingFile::publish() {
  if (published()) return;
  wait_for_disk(temporary_, O_RDONLY);
  if (existing_ == Existing::refuse) {
    // link() fails when the name is taken: rename() alone would replace a file made since we looked.
    if (::link(temporary_.c_str(), target_.c_str()) == 0) {
      ::unlink(temporary_.c_str());
      temporary_.clear();
    } else if (errno == EEXIST || fs::exists(target_)) {
      refuse_existing(target_);
    }
    // else: a file system without hard links; the check above is the best it offers
  }
  if (!published()) {
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
      fail(target_, reason(errno), "to rename " + temporary_.string(), "check the folder's permissions");
    }
    temporary_.clear();
  }
  wait_for_disk(folder_of(target_), O_RDONLY | O_DIRECTORY);
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
      fail(path, reason(errno) + " after " + std::to_string(done) + " bytes",
           "room for " + std::to_string(content.size()) + " bytes", "free space or choose another disk");
    }
  }
  pending.publish();
}

}  // namespace lockstep
