#include "lockstep/core/hash.h"

#include <array>
#include <bit>
#include <cstdint>

#define XXH_INLINE_ALL
#include <xxhash.h>

static_assert(std::endian::native == std::endian::little,
              "digests and file formats take the machine's bytes as they are");

namespace lockstep {
namespace {

std::string hex_of(XXH128_hash_t hash) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, hash);
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (const unsigned char byte : canonical.digest) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

}  // namespace

struct ContentHash::State {
  XXH3_state_t xxh3;
};

ContentHash::ContentHash() : state_(std::make_unique<State>()) {
  XXH3_INITSTATE(&state_->xxh3);
  XXH3_128bits_reset(&state_->xxh3);
}
ContentHash::ContentHash(ContentHash&&) noexcept = default;
ContentHash& ContentHash::operator=(ContentHash&&) noexcept = default;
ContentHash::~ContentHash() = default;

ContentHash& ContentHash::add(std::span<const std::byte> bytes) {
  const std::uint64_t length = bytes.size();
  XXH3_128bits_update(&state_->xxh3, &length, sizeof length);
  XXH3_128bits_update(&state_->xxh3, bytes.data(), bytes.size());
  return *this;
}

std::string ContentHash::hex() const { return hex_of(XXH3_128bits_digest(&state_->xxh3)); }

std::string content_digest(std::span<const std::byte> bytes) {
  return hex_of(XXH3_128bits(bytes.data(), bytes.size()));
}

}  // namespace lockstep
