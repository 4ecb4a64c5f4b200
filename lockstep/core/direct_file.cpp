#include "lockstep/core/direct_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <new>
#include <string>
#include <system_error>

#include "lockstep/core/detail/write_at.h"
#include "lockstep/core/error.h"

namespace lockstep {
namespace {

constexpr std::size_t kLeastDirect = std::size_t{64} << 10;  // below, a request costs more than a copy
constexpr std::size_t kHugePage = std::size_t{2} << 20;

[[noreturn]] void fail(const std::filesystem::path& path, int error_number, const std::string& expected) {
  throw Error(ErrorKind::file, {path.string(), std::generic_category().message(error_number), expected,
                                "check the disk's free space and health"});
}

}  // namespace

void PageBuffer::fit(std::size_t bytes, std::size_t phase) {
  if (memory_ && bytes <= capacity_) {
    size_ = bytes;
    phase_ = phase % kPage;
    return;
  }
  *this = {};  // gives its memory back first
  const std::size_t needed = bytes + kPage;
  const std::size_t alignment = needed >= kHugePage ? kHugePage : kPage;
  const std::size_t whole = (needed + alignment - 1) / alignment * alignment;
  memory_.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, whole)));
  if (!memory_) throw std::bad_alloc();
  capacity_ = whole - kPage;
  size_ = bytes;
  phase_ = phase % kPage;
  // A hint: pages of 2 MiB take a five-hundredth of the faults. Where it is refused nothing changes.
  if (alignment == kHugePage) ::madvise(memory_.get(), whole, MADV_HUGEPAGE);
}

void PageBuffer::Free::operator()(std::byte* p) const noexcept { std::free(p); }

DirectFile::DirectFile(const std::filesystem::path& path) : path_(path) {
  cached_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (cached_ < 0) fail(path, errno, "a file to write into");
  direct_ = ::open(path.c_str(), O_WRONLY | O_CLOEXEC | O_DIRECT);
}

DirectFile::~DirectFile() {
  if (direct_ >= 0) ::close(direct_);
  if (cached_ >= 0) ::close(cached_);
}

void DirectFile::write(std::span<const std::byte> bytes, std::uint64_t offset) {
  constexpr std::size_t kPage = PageBuffer::kPage;
  const auto address = reinterpret_cast<std::uintptr_t>(bytes.data());
  const std::size_t head = (kPage - offset % kPage) % kPage;
  const bool in_phase = address % kPage == offset % kPage;
  if (direct_ < 0 || !in_phase || bytes.size() < head + kLeastDirect) return write_cached(bytes, offset);
  const std::size_t pages = (bytes.size() - head) / kPage * kPage;
  write_cached(bytes.first(head), offset);
  if (!write_pages(bytes.subspan(head, pages), offset + head)) {
    write_cached(bytes.subspan(head, pages), offset + head);
  }
  write_cached(bytes.subspan(head + pages), offset + head + pages);
}

// False where the file system turns out to have no direct writes; what was written is written again then.
bool DirectFile::write_pages(std::span<const std::byte> bytes, std::uint64_t offset) {
  for (std::size_t done = 0; done < bytes.size();) {
    const ssize_t written =
        ::pwrite(direct_, bytes.data() + done, bytes.size() - done, static_cast<off_t>(offset + done));
    if (written < 0 && errno == EINTR) continue;
    // Its block may be larger than a page; and a write cut short may leave a rest that is not a multiple of it.
    const bool not_offered = written < 0 && (errno == EINVAL || errno == EOPNOTSUPP);
    if (not_offered || (written >= 0 && written % static_cast<ssize_t>(PageBuffer::kPage) != 0)) {
      ::close(direct_);
      direct_ = -1;
      return false;
    }
    if (written <= 0) fail(path_, written < 0 ? errno : EIO, "to write " + std::to_string(bytes.size()) + " bytes");
    done += static_cast<std::size_t>(written);
    direct_bytes_ += static_cast<std::uint64_t>(written);
  }
  return true;
}

void DirectFile::write_cached(std::span<const std::byte> bytes, std::uint64_t offset) {
  if (!detail::write_at(cached_, bytes, offset))
    fail(path_, errno, "to write " + std::to_string(bytes.size()) + " bytes");
  // The disk begins now, so that the next fdatasync finds little left to do.
  if (bytes.size() >= kLeastDirect) {
    ::sync_file_range(cached_, static_cast<off_t>(offset), static_cast<off_t>(bytes.size()), SYNC_FILE_RANGE_WRITE);
  }
}

}  // namespace lockstep
