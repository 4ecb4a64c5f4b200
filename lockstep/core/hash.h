// A short name for content: what a model or a problem was, to be found again in the files made from it.
#pragma once

#include <concepts>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>

namespace lockstep {

// XXH3, 128 bits (Y. Collet's xxHash). Equal content gives equal digests on every machine; it guards against
// accidents, not against forgery. Parts are fed in order; each carries its length, so ("ab", "c") and ("a", "bc")
// differ.
class ContentHash {
 public:
  ContentHash();
  ContentHash(ContentHash&&) noexcept;
  ContentHash& operator=(ContentHash&&) noexcept;
  ~ContentHash();

  ContentHash& add(std::span<const std::byte> bytes);
  ContentHash& add(std::string_view text) { return add(std::as_bytes(std::span(text))); }
  // The values' bytes, as a little-endian machine holds them.
  template <class T>
  requires std::is_arithmetic_v<T> ContentHash& add(std::span<const T> values) { return add(std::as_bytes(values)); }

  // 32 hexadecimal digits. More may be added afterwards.
  std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The plain digest of bytes, as `xxh128sum` prints it.
std::string content_digest(std::span<const std::byte> bytes);

}  // namespace lockstep
