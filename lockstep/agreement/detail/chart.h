// Line charts and histograms as SVG text, as far as the verdict's page needs them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace lockstep::agreement {

enum class AxisScale { linear, logarithmic };

struct Series {
  std::string name;   // in the legend; "" for none
  std::string style;  // a CSS class of the page: "a", "b", "spread", "limit", "quiet"
  std::vector<double> x;
  std::vector<double> y;  // breaks where not finite, or not positive on a logarithmic axis
};

// A vertical line with words at its top.
struct Marker {
  double x = 0;
  std::string text;
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  AxisScale y_scale = AxisScale::linear;
  std::vector<Series> series;
  std::vector<Marker> markers;
  std::optional<double> y_floor;  // smaller values are drawn here
  int width = 760;
  int height = 340;
};

// An <svg> element without references to anything outside it. Axes cover what is finite.
std::string svg(const Chart& chart);

// Text for HTML and SVG: & < > " escaped.
std::string escaped(const std::string& text);

}  // namespace lockstep::agreement
