// The arithmetic of state and weights. Time and step size are float64 in either.
#pragma once

#include <string_view>

namespace lockstep {

enum class Precision { f32, f64 };

constexpr std::string_view to_string(Precision precision) { return precision == Precision::f32 ? "f32" : "f64"; }

template <class T>
inline constexpr Precision kPrecisionOf = sizeof(T) == 4 ? Precision::f32 : Precision::f64;

}  // namespace lockstep
