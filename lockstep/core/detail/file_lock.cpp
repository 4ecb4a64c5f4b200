#include "lockstep/core/detail/file_lock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace lockstep::detail {

FileLock::FileLock(const std::filesystem::path& path, Create create)
    : descriptor_(::open(path.c_str(), O_RDWR | O_CLOEXEC | (create == Create::yes ? O_CREAT : 0), 0666)) {
  if (descriptor_ < 0) return;
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
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

}  // namespace lockstep::detail
