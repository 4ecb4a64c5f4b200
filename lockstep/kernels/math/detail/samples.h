// Arguments to test elementary functions with.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

namespace lockstep::math {

// Every stride-th bit pattern of float32 (an odd stride visits all residues), then the numbers near which functions
// have their edges.
inline std::vector<float> all_floats_by(uint32_t stride) {
  std::vector<float> x;
  for (uint64_t bits = 0; bits <= 0xffffffff; bits += stride) x.push_back(std::bit_cast<float>(uint32_t(bits)));
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float v :
       {0.0f,       1e-45f, 1e-40f, 0x1p-126f, 0x1p-24f, 0.5f,    0.70710677f, 1.0f,      1.5707963f,    3.0f,
        3.1415927f, 9.02f,  14.8f,  17.3f,     20.0f,    64.0f,   87.33654f,   88.02969f, 88.72284f,     103.97208f,
        110.0f,     127.0f, 128.0f, 149.0f,    150.0f,   0x1p17f, 0x1p23f,     0x1p24f,   3.4028235e38f, infinity}) {
    for (const float s : {v, -v}) {
      for (const float n : {s, std::nextafter(s, infinity), std::nextafter(s, -infinity)}) x.push_back(n);
    }
  }
  x.push_back(std::numeric_limits<float>::quiet_NaN());
  return x;
}

// A third each: any bit pattern; magnitudes from 2^-40 to 2^12, evenly in the exponent; evenly within +-40. Then edges.
inline std::vector<double> double_samples(std::size_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<double> x;
  for (std::size_t i = 0; i < count; ++i) {
    const uint64_t bits = random();
    const double unit = double(bits >> 11) * 0x1p-53;
    if (i % 3 == 0) x.push_back(std::bit_cast<double>(bits));
    if (i % 3 == 1) x.push_back(std::ldexp(bits & 1 ? 1 + unit : -1 - unit, int(random() % 52) - 40));
    if (i % 3 == 2) x.push_back(80 * unit - 40);
  }
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double v : {0.0,
                         5e-324,
                         1e-310,
                         0x1p-1022,
                         0x1p-53,
                         0.5,
                         0.70710678118654752,
                         1.0,
                         1.5707963267948966,
                         3.0,
                         3.1415926535897932,
                         19.1,
                         36.8,
                         39.2,
                         512.0,
                         708.3964185322641,
                         709.782712893384,
                         744.4400719213812,
                         745.1332191019412,
                         755.0,
                         1023.0,
                         1024.0,
                         1074.0,
                         1075.0,
                         0x1p29,
                         0x1p52,
                         0x1p53,
                         1.7976931348623157e308,
                         infinity}) {
    for (const double s : {v, -v}) {
      for (const double n : {s, std::nextafter(s, infinity), std::nextafter(s, -infinity)}) x.push_back(n);
    }
  }
  x.push_back(std::numeric_limits<double>::quiet_NaN());
  return x;
}

}  // namespace lockstep::math
