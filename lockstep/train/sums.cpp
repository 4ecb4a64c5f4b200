#include "lockstep/train/sums.h"

#include <bit>
#include <cmath>
#include <cstddef>

namespace lockstep::train {
namespace {

constexpr std::size_t kChunk = 4096;
constexpr std::size_t kSlots = 16;

template <class T>
double dot_of_chunk(const T* a, const T* b, std::size_t n) {
  double slots[kSlots] = {};
  std::size_t i = 0;
  for (; i + kSlots <= n; i += kSlots) {
    for (std::size_t s = 0; s < kSlots; ++s) slots[s] += static_cast<double>(a[i + s]) * static_cast<double>(b[i + s]);
  }
  for (std::size_t s = 0; i + s < n; ++s) slots[s] += static_cast<double>(a[i + s]) * static_cast<double>(b[i + s]);
  for (std::size_t width = kSlots / 2; width > 0; width /= 2) {
    for (std::size_t s = 0; s < width; ++s) slots[s] += slots[s + width];
  }
  return slots[0];
}

template <class T>
double dot_of(const T* a, const T* b, std::size_t n) {
  if (n <= kChunk) return dot_of_chunk(a, b, n);
  const std::size_t half = std::bit_floor((n - 1) / kChunk) * kChunk;
  return dot_of(a, b, half) + dot_of(a + half, b + half, n - half);
}

}  // namespace

double dot(std::span<const float> a, std::span<const float> b) { return dot_of(a.data(), b.data(), a.size()); }
double dot(std::span<const double> a, std::span<const double> b) { return dot_of(a.data(), b.data(), a.size()); }
double norm(std::span<const float> a) { return std::sqrt(dot(a, a)); }
double norm(std::span<const double> a) { return std::sqrt(dot(a, a)); }

}  // namespace lockstep::train
