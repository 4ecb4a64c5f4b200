// HDF5 files: opened, made under a temporary name, flushed, published.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <system_error>

#include "lockstep/core/detail/hdf5_call.h"
#include "lockstep/core/direct_file.h"
#include "lockstep/core/hdf5.h"

namespace lockstep::hdf5 {
namespace {

using detail::Call;
using detail::check;
using detail::creation_properties;
using detail::opened;

namespace fs = std::filesystem;

}  // namespace

File::File(Handle root, Handle file, std::string name, fs::path path, std::optional<PendingFile> pending)
    : Group(std::move(root), std::move(name)),
      path_(std::move(path)),
      pending_(std::move(pending)),
      file_(std::move(file)) {}

bool File::recognises(const fs::path& path) {
  constexpr std::array<char, 8> kSignature = {'\x89', 'H', 'D', 'F', '\r', '\n', '\x1a', '\n'};
  // A device has no end where the search would stop, and a pipe waits for somebody who writes.
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  std::ifstream stream(path, std::ios::binary);
  std::array<char, 8> found{};
  for (std::streamoff offset = 0; stream.seekg(offset) && stream.read(found.data(), found.size());
       offset = offset == 0 ? 512 : 2 * offset) {
    if (found == kSignature) return true;
  }
  return false;
}

File File::open(const fs::path& path, Access access) {
  const Call call;
  std::error_code reason;
  const fs::file_status status = fs::status(path, reason);
  if (status.type() == fs::file_type::none) {
    throw Error(ErrorKind::file,
                {path.string(), reason.message(), "an HDF5 file", "check the path and its permissions"});
  }
  if (!fs::exists(status)) {
    throw Error(ErrorKind::file, {path.string(), "no such file", "an HDF5 file", "check the path"});
  }
  if (!fs::is_regular_file(status))
    throw Error(ErrorKind::file, {path.string(), "no regular file", "an HDF5 file", ""});
  if (!std::ifstream(path, std::ios::binary)) {
    throw Error(ErrorKind::file, {path.string(), "no permission to read it", "a readable file", ""});
  }
  if (fs::file_size(path, reason) == 0 && !reason) {
    throw Error(ErrorKind::file, {path.string(), "an empty file", "an HDF5 file", "check what was to write it"});
  }
  if (!recognises(path)) {
    throw Error(ErrorKind::file, {path.string(), "no HDF5 signature", "an HDF5 file", "check the path"});
  }
  Handle file = opened(H5Fopen(path.c_str(), access == Access::read ? H5F_ACC_RDONLY : H5F_ACC_RDWR, H5P_DEFAULT),
                       path.string(), "a whole HDF5 file");
  Handle root = opened(H5Gopen2(file.id(), "/", H5P_DEFAULT), path.string(), "a whole HDF5 file");
  return File(std::move(root), std::move(file), path.string() + ":/", path, std::nullopt);
}

File File::open_image(std::span<const std::byte> bytes, const std::string& name) {
  const Call call;
  const Handle access = opened(H5Pcreate(H5P_FILE_ACCESS), name, "a property list");
  constexpr std::size_t kGrowth = 1 << 16;  // not used: the file is read only
  check(H5Pset_fapl_core(access.id(), kGrowth, false), name, "a file in memory");
  // HDF5 copies the image, and takes a pointer to non-const all the same.
  check(H5Pset_file_image(access.id(), const_cast<std::byte*>(bytes.data()), bytes.size()), name, "a file in memory");
  Handle file = opened(H5Fopen(name.c_str(), H5F_ACC_RDONLY, access.id()), name, "a whole HDF5 file");
  Handle root = opened(H5Gopen2(file.id(), "/", H5P_DEFAULT), name, "a whole HDF5 file");
  return File(std::move(root), std::move(file), name + ":/", name, std::nullopt);
}

namespace {

// How files of ours are written.
Handle writing_access(const std::string& object) {
  Handle properties = opened(H5Pcreate(H5P_FILE_ACCESS), object, "a property list");
  // They are guarded by PendingFile's lock. HDF5's own would keep readers out while the file grows.
#if H5_VERSION_GE(1, 12, 1) || (H5_VERSION_GE(1, 10, 7) && !H5_VERSION_GE(1, 11, 0))
  check(H5Pset_file_locking(properties.id(), false, true), object, "to open it without a lock");
#endif
  // Parts of a dataset go to the file as they are. HDF5 would read the 64 kB around each first, to gather neighbours:
  // ours come in long rows, and the system gathers as well.
  check(H5Pset_sieve_buf_size(properties.id(), 0), object, "to write without a buffer");
  // What is long begins with a page of the file, as direct writes want it. Chunks of packed files are shorter.
  constexpr hsize_t kLong = hsize_t{1} << 20;
  check(H5Pset_alignment(properties.id(), kLong, PageBuffer::kPage), object, "to align it");
  return properties;
}

}  // namespace

File File::create(const fs::path& path, Existing existing, std::uintmax_t expected_bytes) {
  return create(PendingFile(path, existing), expected_bytes);
}

File File::create(PendingFile pending, std::uintmax_t expected_bytes) {
  const Call call;
  const fs::path path = pending.target();
  // Before HDF5 has the file: it does not survive a disk that is too full to close it.
  pending.require_room(expected_bytes);
  const Handle properties = creation_properties(H5P_FILE_CREATE, path.string());
  const Handle access = writing_access(path.string());
  Handle file = opened(H5Fcreate(pending.temporary().c_str(), H5F_ACC_TRUNC, properties.id(), access.id()),
                       path.string(), "to create the file");
  Handle root = opened(H5Gopen2(file.id(), "/", H5P_DEFAULT), path.string(), "a root group");
  return File(std::move(root), std::move(file), path.string() + ":/", path, std::move(pending));
}

File File::resume(PendingFile pending) {
  const Call call;
  const fs::path target = pending.target();
  const std::string name = pending.temporary().string();
  const Handle access = writing_access(name);
  Handle file = opened(H5Fopen(name.c_str(), H5F_ACC_RDWR, access.id()), name, "a whole HDF5 file");
  Handle root = opened(H5Gopen2(file.id(), "/", H5P_DEFAULT), name, "a whole HDF5 file");
  return File(std::move(root), std::move(file), name + ":/", target, std::move(pending));
}

void File::flush() {
  const Call call;
  check(H5Fflush(file_.id(), H5F_SCOPE_LOCAL), path_.string(), "to flush it");
}

void File::sync() {
  flush();
  if (pending_) pending_->sync();
}

void File::reveal() {
  if (pending_) pending_->reveal();
}

void File::keep() noexcept {
  if (pending_) pending_->keep();
}

void File::abandon() noexcept {
  const Call call;
  void* handle = nullptr;
  // Memory can be lengthened, as HDF5 does to files it closes, but obeys a limit on their size; /dev/null cannot and
  // does not. Files that meet such a limit had all their space allocated before.
  rlimit limit{};
  const bool limited = ::getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
  int nowhere = limited ? -1 : ::memfd_create("abandoned", MFD_CLOEXEC);
  if (nowhere < 0) nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (nowhere < 0) return;
  if (H5Fget_vfd_handle(file_.id(), H5P_DEFAULT, &handle) >= 0 && handle != nullptr) {
    ::dup2(nowhere, *static_cast<int*>(handle));  // the default driver's handle is its descriptor
  }
  ::close(nowhere);
}

void File::reserve_space() {
  try {
    flush();
    hsize_t bytes = 0;
    {
      const Call call;
      check(H5Fget_filesize(file_.id(), &bytes), path_.string(), "its size");
    }
    if (pending_) pending_->reserve(bytes);
  } catch (const Error&) {
    abandon();
    throw;
  }
}

fs::path File::current_path() const { return pending_ && !pending_->published() ? pending_->temporary() : path_; }

void File::publish() {
  if (file_.id() >= 0) flush();
  if (pending_) pending_->publish();
}

void File::close() {
  const Call call;
  if (file_.id() < 0) return;
  flush();
  handle_.close();
  const ssize_t others = H5Fget_obj_count(file_.id(), H5F_OBJ_ALL | H5F_OBJ_LOCAL) - 1;
  if (others != 0) {
    handle_ = opened(H5Gopen2(file_.id(), "/", H5P_DEFAULT), path_.string(), "a root group");
    throw Error(ErrorKind::invalid_argument, {path_.string(), std::to_string(others) + " objects of it in use", "none",
                                              "end their lives before closing the file"});
  }
  file_.close();
}

}  // namespace lockstep::hdf5
