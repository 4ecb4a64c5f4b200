// Numbers along an axis, so that neighbouring ticks can be told apart: where all of them are near a large number
// (101325 Pa and a little, seconds since 1970), a round one is taken off and told in the axis' label.
#pragma once

#include <cstddef>
#include <limits>
#include <string>

namespace lockstep::cli {

struct Extent {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  void cover(double value);  // numbers that are not finite are left out
};

enum class Scaling { linear, logarithmic };

class Axis {
 public:
  Axis() = default;
  explicit Axis(Extent extent, Scaling scaling = Scaling::linear);  // nothing is taken off a logarithmic one

  double offset() const { return offset_; }  // what is taken off, 0 where the range is wide enough
  // What is drawn of a value. Where all differ by rounding alone, one number.
  double shown(double value) const;
  void append(std::string& row, double value) const;
  // "pressure (Pa)", "pressure − 101325 (Pa)"; of a name too long for so many characters in all, the beginning.
  std::string label(const std::string& name, const std::string& unit, std::size_t most = 1000) const;
  // How wide the widest tick label is, in pixels of a picture.
  double tick_pixels() const;

 private:
  Extent extent_;
  double offset_ = 0;
  bool constant_ = false;
  Scaling scaling_ = Scaling::linear;
};

}  // namespace lockstep::cli
