// A list that lies within itself, on the stack of a call, as long as it is short: calls that promise not to allocate
// put their views there.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace lockstep {

// Up to `kShort` values allocate nothing; beyond that the list moves to memory of its own.
template <class T, std::size_t kShort>
class ShortList {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  void push_back(const T& value) {
    if (size_ < kShort) {
      std::construct_at(here() + size_, value);
    } else {
      if (size_ == kShort) elsewhere_.assign(here(), here() + kShort);
      elsewhere_.push_back(value);
    }
    ++size_;
  }
  void append(std::span<const T> values) {
    for (const T& value : values) push_back(value);
  }

  std::span<T> span() { return {size_ > kShort ? elsewhere_.data() : here(), size_}; }
  std::span<const T> span() const { return const_cast<ShortList*>(this)->span(); }

 private:
  T* here() { return reinterpret_cast<T*>(here_); }

  alignas(T) std::byte here_[kShort * sizeof(T)];
  std::size_t size_ = 0;
  std::vector<T> elsewhere_;
};

}  // namespace lockstep
