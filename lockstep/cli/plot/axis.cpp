#include "lockstep/cli/plot/axis.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "lockstep/cli/plot/canvas.h"
#include "lockstep/cli/text.h"

namespace lockstep::cli {
namespace {

// Ticks have six digits. A range narrower than this part of its numbers would leave them three.
constexpr double kNarrow = 1e-3;
// Narrower still, and there is nothing to see but the rounding of a constant.
constexpr double kRounding = 16 * std::numeric_limits<double>::epsilon();

// The least multiple of a power of ten as large as the range that lies in it, or the last one below.
double round_number(const Extent& extent) {
  // Subnormal ranges would ask for more than the largest power of ten, whose multiples they do not reach.
  constexpr int kLeast = -std::numeric_limits<double>::max_exponent10;
  const int power = std::max(static_cast<int>(std::ceil(std::log10(extent.high - extent.low))), kLeast);
  const double unit = std::pow(10.0, std::abs(power));
  const auto units = [&](double value) { return power < 0 ? value * unit : value / unit; };
  const double above = std::ceil(units(extent.low));
  const double count = above <= units(extent.high) ? above : std::floor(units(extent.low));
  return power < 0 ? count / unit : count * unit;
}

// Of the pictures' font, as far as numbers need it.
double width_of(const std::string& text) {
  double pixels = 0;
  for (const char c : text) pixels += c == '.' ? 8.5 : c == '-' ? 9.5 : c == '+' ? 22 : 16.5;
  return pixels;
}

}  // namespace

void Extent::cover(double value) {
  if (!std::isfinite(value)) return;
  low = std::min(low, value);
  high = std::max(high, value);
}

Axis::Axis(Extent extent, Scaling scaling) : extent_(extent), scaling_(scaling) {
  if (scaling == Scaling::logarithmic || !(extent.low <= extent.high)) return;
  const double size = std::max(std::abs(extent.low), std::abs(extent.high)), range = extent.high - extent.low;
  constant_ = range < kRounding * size;
  if (!constant_ && range < kNarrow * size) offset_ = round_number(extent);
}

double Axis::shown(double value) const {
  if (!std::isfinite(value)) return value;
  return constant_ ? extent_.low : value - offset_;
}

void Axis::append(std::string& row, double value) const { append_number(row, shown(value)); }

std::string Axis::label(const std::string& name, const std::string& unit, std::size_t most) const {
  std::string off;
  if (offset_ != 0) {
    char digits[64];
    const auto end =
        std::to_chars(digits, digits + sizeof digits, std::abs(offset_), std::chars_format::general, 15).ptr;
    off = (offset_ > 0 ? " − " : " + ") + std::string(digits, end);
  }
  const std::string whole = with_unit(name + off, unit);
  constexpr std::size_t kLeast = 4;  // of the name
  const std::size_t around = whole.size() - name.size();
  return with_unit(shortened(name, around + kLeast < most ? most - around : kLeast) + off, unit);
}

double Axis::tick_pixels() const {
  if (!(extent_.low <= extent_.high)) return 0;
  if (scaling_ == Scaling::logarithmic) return std::max(width_of("0.0001"), width_of(rounded_text(extent_.high, 3)));
  const double low = shown(extent_.low), high = shown(extent_.high), range = high - low;
  double widest = std::max(width_of(rounded_text(low, 3)), width_of(rounded_text(high, 3)));
  if (!(range > 0)) return widest;
  const double unit = std::pow(10.0, std::floor(std::log10(range / 5)));
  const double room = 0.06 * range;  // the figures leave it
  for (const double factor : {1.0, 2.0, 5.0}) {
    const double step = factor * unit;
    if (range / step > 12) continue;
    for (double k = std::ceil((low - room) / step); k * step <= high + room; ++k) {
      widest = std::max(widest, width_of(rounded_text(k * step, 6)));
    }
  }
  return widest;
}

}  // namespace lockstep::cli
