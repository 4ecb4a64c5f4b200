// The layout of IEEE 754 formats, and constants, as the elementary functions use them.
#pragma once

namespace lockstep::math {

template <class T>
struct Format;

// kRound: adding it to |x| < 2^(kFractionBits - 2) rounds x to an integer, which the low bits of the sum then hold.
template <>
struct Format<float> {
  static constexpr int kFractionBits = 23;
  static constexpr int kBias = 127;
  static constexpr float kRound = 0x1.8p23f;
  static constexpr int kRoundBits = 0x4b400000;
  static constexpr float kInfinity = __builtin_inff();
  static constexpr float kNaN = __builtin_nanf("");
};
template <>
struct Format<double> {
  static constexpr int kFractionBits = 52;
  static constexpr int kBias = 1023;
  static constexpr double kRound = 0x1.8p52;
  static constexpr long long kRoundBits = 0x4338000000000000;
  static constexpr double kInfinity = __builtin_inf();
  static constexpr double kNaN = __builtin_nan("");
};

// The constants of selu (Klambauer et al. 2017): scale, and scale times alpha.
inline constexpr double kSeluScale = 1.0507009873554804934193349852946;
inline constexpr double kSeluScaleAlpha = 1.7580993408473768599402175208123;

// 1/6 less its rounding to T.
template <class T>
inline constexpr T kSixthLow = sizeof(T) == 4 ? T(-0x1.555556p-28) : T(0x1.5555555555555p-57);

}  // namespace lockstep::math
