#include "lockstep/nn/detail/zip.h"

#include <zlib.h>

#include <algorithm>
#include <memory>

#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

constexpr std::size_t kEndRecord = 22, kDirectoryEntry = 46, kLocalHeader = 30;
constexpr std::uint32_t kEndMark = 0x06054b50, kEntryMark = 0x02014b50, kLocalMark = 0x04034b50;
constexpr std::uint16_t kEncrypted = 1, kStored = 0, kDeflated = 8;
constexpr std::size_t kBestPacking = 1032;  // of deflate

constexpr const char* kCopyAgain = "save or copy the file again";

// The whole of a raw deflate stream, which must come to exactly `size` bytes.
std::vector<std::byte> inflate_all(std::span<const std::byte> packed, std::size_t size, const std::string& where) {
  std::vector<std::byte> result(size);
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) throw std::bad_alloc();
  const std::unique_ptr<z_stream, int (*)(z_stream*)> closing(&stream, &inflateEnd);
  std::byte none{};
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  stream.next_out = reinterpret_cast<Bytef*>(size == 0 ? &none : result.data());
  stream.avail_out = static_cast<uInt>(size);
  if (inflate(&stream, Z_FINISH) != Z_STREAM_END || stream.total_out != size) {
    refuse(where, "damaged compressed data", std::to_string(size) + " bytes", kCopyAgain);
  }
  return result;
}

}  // namespace

ZipArchive::ZipArchive(std::span<const std::byte> bytes, std::string source)
    : bytes_(bytes), source_(std::move(source)) {
  read_directory();
}

std::uint32_t ZipArchive::number(std::size_t offset, int bytes) const {
  std::uint32_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | std::to_integer<std::uint32_t>(bytes_[offset + i]);
  return value;
}

void ZipArchive::read_directory() {
  const auto damaged = [&](const char* found) { refuse(source_, found, "a whole zip archive", kCopyAgain); };
  if (bytes_.size() < kEndRecord) damaged("too few bytes");
  // The record at the end may be followed by a comment of up to 64 KiB.
  std::size_t end = bytes_.size() - kEndRecord;
  const std::size_t last = end - std::min<std::size_t>(end, 0xffff);
  while (number(end, 4) != kEndMark || end + kEndRecord + number(end + 20, 2) != bytes_.size()) {
    if (end-- == last) damaged("no directory at its end (truncated)");
  }
  const std::size_t count = number(end + 10, 2), size = number(end + 12, 4), start = number(end + 16, 4);
  if (start > end || size > end - start) damaged("a directory outside the file");
  std::size_t at = start;
  for (std::size_t i = 0; i < count; ++i) {
    if (start + size - at < kDirectoryEntry || number(at, 4) != kEntryMark) damaged("a damaged directory");
    const std::size_t name = number(at + 28, 2), extra = number(at + 30, 2), comment = number(at + 32, 2);
    if (start + size - at - kDirectoryEntry < name + extra + comment) damaged("a damaged directory");
    const Member member{static_cast<std::uint16_t>(number(at + 8, 2)),
                        static_cast<std::uint16_t>(number(at + 10, 2)),
                        number(at + 16, 4),
                        number(at + 20, 4),
                        number(at + 24, 4),
                        number(at + 42, 4)};
    const auto* text = reinterpret_cast<const char*>(bytes_.data() + at + kDirectoryEntry);
    if (!members_.emplace(std::string(text, name), member).second) damaged("two members of one name");
    at += kDirectoryEntry + name + extra + comment;
  }
}

std::span<const std::byte> ZipArchive::packed_bytes(const Member& member, const std::string& where) const {
  const auto outside = [&] { refuse(where, "content outside the archive", "a whole zip archive", kCopyAgain); };
  if (member.offset > bytes_.size() || bytes_.size() - member.offset < kLocalHeader) outside();
  if (number(member.offset, 4) != kLocalMark) refuse(where, "no header before its content", "one", kCopyAgain);
  const std::size_t skipped = kLocalHeader + number(member.offset + 26, 2) + number(member.offset + 28, 2);
  const std::size_t left = bytes_.size() - member.offset;
  if (skipped > left || member.packed > left - skipped) outside();
  return bytes_.subspan(member.offset + skipped, member.packed);
}

std::vector<std::byte> ZipArchive::read(const std::string& name) const {
  const std::string where = source_ + ": " + name;
  const auto found = members_.find(name);
  if (found == members_.end()) refuse(where, "no such member of the archive", "one", "");
  const Member& member = found->second;
  if ((member.flags & kEncrypted) != 0) refuse(where, "an encrypted member", "a plain one", "save it without password");
  const std::span<const std::byte> packed = packed_bytes(member, where);
  std::vector<std::byte> content;
  if (member.method == kStored) {
    if (member.size != member.packed) refuse(where, "two sizes for the same bytes", "one", kCopyAgain);
    content.assign(packed.begin(), packed.end());
  } else if (member.method == kDeflated) {
    if (member.size / kBestPacking > member.packed) {
      refuse(where,
             std::to_string(member.size) + " bytes claimed for " + std::to_string(member.packed) + " packed ones",
             "a size that deflate can reach", kCopyAgain);
    }
    content = inflate_all(packed, member.size, where);
  } else {
    refuse(where, "compression method " + std::to_string(member.method), "stored or deflated", "save it by Keras");
  }
  const auto checksum = crc32_z(0, reinterpret_cast<const Bytef*>(content.data()), content.size());
  if (checksum != member.checksum)
    refuse(where, "a checksum that does not fit its content", "one that does", kCopyAgain);
  return content;
}

}  // namespace lockstep::nn::detail
