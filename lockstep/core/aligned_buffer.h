// Owned, 64-byte aligned memory for numbers: one cache line, one AVX-512 register.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <span>
#include <type_traits>

namespace lockstep {

inline constexpr std::size_t kAlignment = 64;

// Host memory, zero-filled, fixed size, movable. T is trivially copyable.
template <class T>
class AlignedBuffer {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size)
      : data_(size == 0 ? nullptr : static_cast<T*>(::operator new(size * sizeof(T), std::align_val_t{kAlignment}))),
        size_(size) {
    for (std::size_t i = 0; i < size; ++i) data_.get()[i] = T{};
  }

  T* data() noexcept { return data_.get(); }
  const T* data() const noexcept { return data_.get(); }
  std::size_t size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  T& operator[](std::size_t i) noexcept { return data_.get()[i]; }
  const T& operator[](std::size_t i) const noexcept { return data_.get()[i]; }
  std::span<T> span() noexcept { return {data(), size_}; }
  std::span<const T> span() const noexcept { return {data(), size_}; }

 private:
  struct Free {
    void operator()(T* p) const noexcept { ::operator delete(p, std::align_val_t{kAlignment}); }
  };
  std::unique_ptr<T, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace lockstep
