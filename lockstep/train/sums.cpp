#include "lockstep/train/sums.h"

#include <bit>
#include <cmath>
#include <cstddef>

#include "lockstep/train/detail/update_kernels.h"

namespace lockstep::train {
namespace {

constexpr std::size_t kChunk = 4096;

template <class T>
double dot_of(const T* a, const T* b, std::size_t n, detail::ChunkDot<T> chunk) {
  if (n <= kChunk) return chunk(a, b, n);
  const std::size_t half = std::bit_floor((n - 1) / kChunk) * kChunk;
  return dot_of(a, b, half, chunk) + dot_of(a + half, b + half, n - half, chunk);
}
template <class T>
double dot_of(std::span<const T> a, std::span<const T> b) {
  return dot_of(a.data(), b.data(), a.size(), detail::chunk_dot<T>(best_cpu_target()));
}

}  // namespace

double dot(std::span<const float> a, std::span<const float> b) { return dot_of(a, b); }
double dot(std::span<const double> a, std::span<const double> b) { return dot_of(a, b); }
double norm(std::span<const float> a) { return std::sqrt(dot(a, a)); }
double norm(std::span<const double> a) { return std::sqrt(dot(a, a)); }

}  // namespace lockstep::train
