// Angles far from 0 brought near it exactly enough: the slow path of sin and cos (Payne & Hanek 1983), in integers.
#pragma once

#ifndef __CUDACC_RTC__
#include <cmath>
#include <cstdint>
#include <cstring>
#endif

#include "lockstep/kernels/lane/scalar_lane.h"

namespace lockstep::math {

// r with sin r = sin(x + quarter_turns pi/2) and |r| <= pi/2, right to about half an ulp, for |x| >= 2^12 and
// quarter_turns 0 or 1. NaN for infinities and NaN; x itself below 2^12, where callers do not want it.
//
// x = M 2^e. Bits of 1/pi whose product with M 2^e is a multiple of 2 do not matter; of the others the first 192 leave
// an error below 2^-138 in x/pi mod 2, and no double comes closer to a multiple of pi than about 2^-62.
LOCKSTEP_HOST_DEVICE double reduce_huge_angle(double x, int quarter_turns) {
  __extension__ using Wide = unsigned __int128;
  // 64 zero bits, then 1/pi.
  constexpr uint64_t kInversePi[] = {0x0000000000000000, 0x517cc1b727220a94, 0xfe13abe8fa9a6ee0, 0x6db14acc9e21c820,
                                     0xff28b1d5ef5de2b0, 0xdb92371d2126e970, 0x0324977504e8c90e, 0x7f0ef58e5894d39f,
                                     0x74411afa975da242, 0x74ce38135a2fbf20, 0x9cc8eb1cc1a99cfa, 0x4e422fc5defc941d,
                                     0x8ffc4bffef02cc07, 0xf79788c5ad05368f, 0xb69b3f6793e584db, 0xa7a31fb34f2ff516,
                                     0xba93dd63f5f2f8bd, 0x9e839cfbc5294975, 0x35fdafd88fc6ae84, 0x2b0198237e3db5d5,
                                     0xf867de104d7a1b0e};
  using L = ScalarLane<double>;
  const uint64_t bits = uint64_t(L::bits(x));
  const int biased = int(bits >> 52 & 0x7ff);
  if (biased == 0x7ff) return x - x;
  if (biased < 1023 + 12) return x;
  const uint64_t m = (bits & ((uint64_t(1) << 52) - 1)) | uint64_t(1) << 52;

  // The 192 bits of 1/pi from weight 2^-e on, most significant word first.
  const int start = biased - 1075 + 63;  // e - 1 zero-based, after the leading zeros
  const int word = start / 64, shift = start % 64;
  uint64_t p[3];
  for (int i = 0; i < 3; ++i) {
    p[i] = kInversePi[word + i] << shift | (shift == 0 ? 0 : kInversePi[word + i + 1] >> (64 - shift));
  }
  // M p mod 2^192, in units of 2^-191: the highest bit is the parity of floor(x/pi), the rest its fraction.
  const Wide low = Wide(m) * p[2];
  const Wide middle = Wide(m) * p[1] + uint64_t(low >> 64);
  uint64_t high = m * p[0] + uint64_t(middle >> 64);
  uint64_t mid = uint64_t(middle), last = uint64_t(low);
  if (quarter_turns != 0) high += uint64_t(1) << 62;

  // Fraction to the nearest integer: bit 62 of high says whether that is the next one.
  bool odd = high >> 63 != 0;
  high <<= 1;
  high |= mid >> 63;
  mid = mid << 1 | last >> 63;
  last <<= 1;
  const bool up = high >> 63 != 0;
  if (up) {  // fraction - 1, as a magnitude
    odd = !odd;
    high = ~high;
    mid = ~mid;
    last = ~last;
  }
  bool negative = up != odd;
  if (quarter_turns == 0 && bits >> 63 != 0) negative = !negative;

  // The leading 106 bits as two doubles, times pi as two doubles.
  int scale = 0;
  while (high >> 63 == 0 && scale < 128) {
    high = high << 1 | mid >> 63;
    mid = mid << 1 | last >> 63;
    last <<= 1;
    ++scale;
  }
  const double head = double(high >> 11) * 0x1p-53;
  const double tail = double((high & 0x7ff) << 42 | mid >> 22) * 0x1p-106;
  const double pi_high = 0x1.921fb54442d18p+1, pi_low = 0x1.1a62633145c07p-53;
  const double product = head * pi_high;
  const double rest = L::fma(head, pi_high, -product) + L::fma(head, pi_low, tail * pi_high);
  const double power = L::from_bits(int64_t(uint64_t(1023 - scale) << 52));
  const double r = (product + rest) * power;
  return negative ? -r : r;
}

LOCKSTEP_HOST_DEVICE float reduce_huge_angle(float x, int quarter_turns) {
  return float(reduce_huge_angle(double(x), quarter_turns));
}

}  // namespace lockstep::math
