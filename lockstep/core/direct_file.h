// Large numbers of bytes on their way to a file without a stop in the page cache: no copy, no processor time of note,
// and nothing left to wait for when the disk is asked whether it has them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace lockstep {

// Memory whose address is `phase` past a multiple of the page size. Where a file's bytes [offset, ...) come from such
// memory with phase = offset modulo the page size, whole pages of the file are whole pages of memory, as direct writes
// want them. Movable, not initialised.
class PageBuffer {
 public:
  static constexpr std::size_t kPage = 4096;

  PageBuffer() = default;
  PageBuffer(std::size_t bytes, std::size_t phase) { fit(bytes, phase); }
  // Another size and phase in the same memory where it is large enough, which pages already taken make cheap; in new
  // memory otherwise. The content is lost.
  void fit(std::size_t bytes, std::size_t phase);

  std::byte* data() noexcept { return memory_.get() + phase_; }
  const std::byte* data() const noexcept { return memory_.get() + phase_; }
  std::size_t size() const noexcept { return size_; }
  std::size_t phase() const noexcept { return phase_; }

 private:
  struct Free {
    void operator()(std::byte* p) const noexcept;
  };
  std::unique_ptr<std::byte[], Free> memory_;
  std::size_t capacity_ = 0;  // whatever the phase
  std::size_t size_ = 0;
  std::size_t phase_ = 0;
};

// Writes into an existing file at any offset. Whole pages go to the disk directly where the file system offers that
// and memory and file have the same phase; the rest goes by way of the page cache, and on to the disk at once where it
// is much. Either way the bytes are durable after the next fdatasync of the file, by any descriptor.
class DirectFile {
 public:
  // Throws Error (file) where the file cannot be opened for writing.
  explicit DirectFile(const std::filesystem::path& path);
  DirectFile(const DirectFile&) = delete;
  DirectFile& operator=(const DirectFile&) = delete;
  ~DirectFile();

  // Throws Error (file) with the system's words, "No space left on device" among them. One thread at a time.
  void write(std::span<const std::byte> bytes, std::uint64_t offset);
  // Bytes that went past the page cache so far.
  std::uint64_t direct_bytes() const noexcept { return direct_bytes_; }

 private:
  bool write_pages(std::span<const std::byte> bytes, std::uint64_t offset);
  void write_cached(std::span<const std::byte> bytes, std::uint64_t offset);

  std::filesystem::path path_;
  int cached_ = -1;
  int direct_ = -1;  // -1 where the file system has no direct writes
  std::uint64_t direct_bytes_ = 0;
};

}  // namespace lockstep
