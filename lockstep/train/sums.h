// Sums over parameters in an order that nothing changes: the same bits on every instruction set.
#pragma once

#include <span>

namespace lockstep::train {

// sum of a[i] b[i] in float64. Chunks of 4,096 elements; in a chunk element i belongs to slot i mod 16, whose products
// are rounded, then added in ascending order; slots, then chunks are added pairwise, halves of a power of two first.
// Sizes must be equal. T is float or double.
double dot(std::span<const float> a, std::span<const float> b);
double dot(std::span<const double> a, std::span<const double> b);

// Square root of dot(a, a). float32 values cannot overflow it; float64 ones above 1e154 do, to infinity.
double norm(std::span<const float> a);
double norm(std::span<const double> a);

}  // namespace lockstep::train
