// Zip archives in memory, as far as model files are ones: members stored or deflated, no encryption, below 4 GiB.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lockstep::nn::detail {

// Reads the directory at the archive's end (APPNOTE.TXT 6.3.10, sections 4.3.12 and 4.3.16). Keeps a view of the bytes,
// which must outlive it. Everything damaged is an Error (model) naming the archive or the member.
class ZipArchive {
 public:
  ZipArchive(std::span<const std::byte> bytes, std::string source);

  bool has(const std::string& member) const { return members_.contains(member); }
  // The member's content, its checksum compared. No more memory is taken than deflate's best packing allows for the
  // bytes that are there.
  std::vector<std::byte> read(const std::string& member) const;

 private:
  struct Member {
    std::uint16_t flags = 0, method = 0;
    std::uint32_t checksum = 0;
    std::size_t packed = 0, size = 0, offset = 0;
  };
  std::uint32_t number(std::size_t offset, int bytes) const;  // little-endian
  void read_directory();
  std::span<const std::byte> packed_bytes(const Member& member, const std::string& where) const;

  std::span<const std::byte> bytes_;
  std::string source_;
  std::map<std::string, Member> members_;
};

}  // namespace lockstep::nn::detail
