#include "lockstep/core/random.h"

#include <bit>
#include <cmath>
#include <span>

namespace lockstep {
namespace {

double horner(std::span<const double> coefficients, double x) {
  double sum = coefficients.back();
  for (std::size_t i = coefficients.size() - 1; i-- > 0;) sum = sum * x + coefficients[i];
  return sum;
}

// ln x for normal x > 0, by 2 atanh(s), s = (m - 1) / (m + 1), m the mantissa in [sqrt(1/2), sqrt(2)): |s| < 0.1716,
// so the first term left out, 2 s^25 / 25, is below 1e-20. Not libm's log: its bits differ between libraries.
// Core cannot use the kernels' functions; nothing but the quantile needs this.
double natural_log(double x) {
  std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  bits = (bits & 0x000FFFFFFFFFFFFF) | 0x3FF0000000000000;
  double m = std::bit_cast<double>(bits);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1);
  const double s2 = s * s;
  double series = 0;
  for (int k = 23; k >= 3; k -= 2) series = (series + 1.0 / k) * s2;
  constexpr double kLn2High = 0x1.62e42feep-1,
                   kLn2Low = 0x1.a39ef35793c76p-33;  // high part has 32 bits: e * it is exact
  return exponent * kLn2High + (2 * s + (2 * s * series + exponent * kLn2Low));
}

}  // namespace

double normal_quantile(double p) {
  // Each pair: numerator and denominator (constant term 1) in ascending powers, table of AS 241.
  static constexpr double kCentre[2][8] = {
      {3.3871328727963666080e0, 1.3314166789178437745e2, 1.9715909503065514427e3, 1.3731693765509461125e4,
       4.5921953931549871457e4, 6.7265770927008700853e4, 3.3430575583588128105e4, 2.5090809287301226727e3},
      {1, 4.2313330701600911252e1, 6.8718700749205790830e2, 5.3941960214247511077e3, 2.1213794301586595867e4,
       3.9307895800092710610e4, 2.8729085735721942674e4, 5.2264952788528545610e3}};
  static constexpr double kTail[2][8] = {
      {1.42343711074968357734e0, 4.63033784615654529590e0, 5.76949722146069140550e0, 3.64784832476320460504e0,
       1.27045825245236838258e0, 2.41780725177450611770e-1, 2.27238449892691845833e-2, 7.74545014278341407640e-4},
      {1, 2.05319162663775882187e0, 1.67638483018380384940e0, 6.89767334985100004550e-1, 1.48103976427480074590e-1,
       1.51986665636164571966e-2, 5.47593808499534494600e-4, 1.05075007164441684324e-9}};
  static constexpr double kFarTail[2][8] = {
      {6.65790464350110377720e0, 5.46378491116411436990e0, 1.78482653991729133580e0, 2.96560571828504891230e-1,
       2.65321895265761230930e-2, 1.24266094738807843860e-3, 2.71155556874348757815e-5, 2.01033439929228813265e-7},
      {1, 5.99832206555887937690e-1, 1.36929880922735805310e-1, 1.48753612908506148525e-2, 7.86869131145613259100e-4,
       1.84631831751005468180e-5, 1.42151175831644588870e-7, 2.04426310338993978564e-15}};
  const double q = p - 0.5;
  if (std::fabs(q) <= 0.425) {
    const double r = 0.180625 - q * q;
    return q * (horner(kCentre[0], r) / horner(kCentre[1], r));
  }
  const double r = std::sqrt(-natural_log(q < 0 ? p : 1 - p));
  const double magnitude = r <= 5 ? horner(kTail[0], r - 1.6) / horner(kTail[1], r - 1.6)
                                  : horner(kFarTail[0], r - 5) / horner(kFarTail[1], r - 5);
  return q < 0 ? -magnitude : magnitude;
}

}  // namespace lockstep
