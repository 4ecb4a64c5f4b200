// Owned, 64-byte aligned memory for numbers: one cache line, one AVX-512 register.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>

namespace lockstep {

inline constexpr std::size_t kAlignment = 64;

namespace detail {

// Host memory, zero-filled, aligned to kAlignment; throws std::bad_alloc. From 4 MiB on it comes from the system as it
// is first touched, in pages of 2 MiB where those are to be had: the thread that writes a page first clears it, and
// nobody clears it twice.
std::byte* allocate_zeros(std::size_t bytes);
void release_zeros(std::byte* memory, std::size_t bytes) noexcept;

}  // namespace detail

// Host memory, zero-filled, fixed size, movable. A T of zero bytes is T's zero.
template <class T>
class AlignedBuffer {
  static_assert(std::is_arithmetic_v<T> || std::is_same_v<T, std::byte>);

 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size)
      : data_(size == 0 ? nullptr : reinterpret_cast<T*>(detail::allocate_zeros(size * sizeof(T))), Free{size}) {}
  AlignedBuffer(AlignedBuffer&& other) noexcept : data_(std::exchange(other.data_, {})) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    data_ = std::exchange(other.data_, {});
    return *this;
  }
  ~AlignedBuffer() = default;

  T* data() noexcept { return data_.get(); }
  const T* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return data_.get_deleter().size; }
  bool empty() const noexcept { return size() == 0; }
  T& operator[](std::size_t i) noexcept { return data_.get()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_.get()[i]; }
  std::span<T> span() noexcept { return {data(), size()}; }
  std::span<const T> span() const noexcept { return {data(), size()}; }

 private:
  struct Free {
    std::size_t size = 0;
    void operator()(T* p) const noexcept { detail::release_zeros(reinterpret_cast<std::byte*>(p), size * sizeof(T)); }
  };
  std::unique_ptr<T, Free> data_;
};

}  // namespace lockstep
