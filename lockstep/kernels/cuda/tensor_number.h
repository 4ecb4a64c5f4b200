// The number formats that tensor cores multiply: TF32, bfloat16 and float16, as plain integers, for hosts and tests.
// The device rounds by its own instructions (mma_words.cuh), to the same bits.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

#include "lockstep/kernels/lane/scalar_lane.h"

namespace lockstep::cuda {

// Products of two such numbers are exact in float32 (at most 22 bits of significand), where they do not underflow.
// kTile: inputs that one matrix instruction takes. Each format is a row of 32 bytes then. kUnit: the largest relative
// error of rounding to it in the range of normal numbers; kTiny: the largest absolute one below.
struct Tf32 {  // 8 bits of exponent, 10 of fraction, in the upper 19 bits of a float32
  using Stored = std::uint32_t;
  static constexpr std::string_view kName = "tf32";
  static constexpr int kTile = 8;
  static constexpr double kUnit = 0x1p-11, kTiny = 0x1p-137;

  // To nearest, halves away from zero: cvt.rna.tf32.f32, the only rounding to TF32 that compute capability 8.0 has.
  static LOCKSTEP_HOST_DEVICE Stored round(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7f800000u) == 0x7f800000u) return (bits & 0x7fffffu) != 0 ? 0x7fffe000u : bits;
    return (bits + 0x1000u) & 0xffffe000u;
  }
  static LOCKSTEP_HOST_DEVICE float widen(Stored bits) {
    bits &= 0xffffe000u;  // the rest is not read, as in the device
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }
};

struct Bf16 {  // 8 bits of exponent, 7 of fraction
  using Stored = std::uint16_t;
  static constexpr std::string_view kName = "bf16";
  static constexpr int kTile = 16;
  static constexpr double kUnit = 0x1p-8, kTiny = 0x1p-134;

  // To nearest, halves to even.
  static LOCKSTEP_HOST_DEVICE Stored round(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return static_cast<Stored>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
  }
  static LOCKSTEP_HOST_DEVICE float widen(Stored stored) {
    const std::uint32_t bits = std::uint32_t{stored} << 16;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }
};

struct Fp16 {  // 5 bits of exponent, 10 of fraction: to 65504, normal from 2^-14
  using Stored = std::uint16_t;
  static constexpr std::string_view kName = "fp16";
  static constexpr int kTile = 16;
  static constexpr double kUnit = 0x1p-11, kTiny = 0x1p-25;

  // To nearest, halves to even; what is too large becomes infinite.
  static LOCKSTEP_HOST_DEVICE Stored round(float x) {
    std::uint32_t bits;
    std::memcpy(&bits, &x, sizeof bits);
    const auto sign = static_cast<Stored>(bits >> 16 & 0x8000u);
    bits &= 0x7fffffffu;
    if (bits > 0x7f800000u) return 0x7fff;
    if (bits >= 0x477ff000u) return static_cast<Stored>(sign | 0x7c00u);  // from 65520 on
    if (bits < 0x38800000u) {                                             // below 2^-14: a multiple of 2^-24
      float magnitude;
      std::memcpy(&magnitude, &bits, sizeof magnitude);
      const float shifted = magnitude + 0.5f;  // whose last bit is 2^-24: the addition rounds
      std::memcpy(&bits, &shifted, sizeof bits);
      return static_cast<Stored>(sign | (bits - 0x3f000000u));
    }
    bits += 0xfffu + (bits >> 13 & 1u);
    return static_cast<Stored>(sign | ((bits - 0x38000000u) >> 13));
  }
  static LOCKSTEP_HOST_DEVICE float widen(Stored stored) {
    const std::uint32_t sign = std::uint32_t{stored} >> 15 << 31, exponent = stored >> 10 & 31u;
    std::uint32_t bits = stored & 0x3ffu;
    if (exponent == 0) {
      const float magnitude = static_cast<float>(bits) * 0x1p-24f;
      std::memcpy(&bits, &magnitude, sizeof bits);
    } else {
      bits = (exponent == 31 ? 0xffu : exponent + 112) << 23 | bits << 13;
    }
    bits |= sign;
    float x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
  }
};

// x rounded to a format, as a float32.
template <class Format>
float rounded_to(float x) {
  return Format::widen(Format::round(x));
}

}  // namespace lockstep::cuda
