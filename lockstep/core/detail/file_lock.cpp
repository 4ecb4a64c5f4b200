#include "lockstep/core/detail/file_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep::detail {
namespace {

struct flock whole_file() {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  return whole;
}

}  // namespace

FileLock::FileLock(const std::filesystem::path& path, Create create)
    : descriptor_(::open(path.c_str(), O_RDWR | O_CLOEXEC | (create == Create::yes ? O_CREAT : 0), 0666)) {
  if (descriptor_ < 0) return;
  struct flock whole = whole_file();
  // Of the open file description: closing another descriptor of the file, as HDF5 does, leaves it in force.
  const bool taken = ::fcntl(descriptor_, F_OFD_SETLK, &whole) != 0 && (errno == EAGAIN || errno == EACCES);
  locked_ = !taken;
}

FileLock::~FileLock() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

bool FileLock::is_named(const std::filesystem::path& path) const {
  struct stat by_name {
  }, open{};
  return ::stat(path.c_str(), &by_name) == 0 && ::fstat(descriptor_, &open) == 0 && by_name.st_ino == open.st_ino &&
         by_name.st_dev == open.st_dev;
}

bool FileLock::is_taken(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return false;
  struct flock whole = whole_file();
  const bool known = ::fcntl(descriptor, F_OFD_GETLK, &whole) == 0;
  ::close(descriptor);
  return known && whole.l_type != F_UNLCK;
}

}  // namespace lockstep::detail
