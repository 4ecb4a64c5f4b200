#include "lockstep/agreement/detail/chart.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "lockstep/core/text.h"

namespace lockstep::agreement {
namespace {

constexpr double kLeft = 74;  // margins, in pixels
constexpr double kRight = 16;
constexpr double kTop = 52;
constexpr double kBottom = 46;
constexpr int kTicks = 6;

std::string fixed(double value, int decimals) {
  char text[400];  // the largest double takes 309 digits
  return {text, std::to_chars(text, text + sizeof text, value, std::chars_format::fixed, decimals).ptr};
}

struct Axis {
  double least = 0;
  double most = 1;
  AxisScale scale = AxisScale::linear;
  double from = 0;  // pixels
  double to = 1;

  double value(double x) const { return scale == AxisScale::logarithmic ? std::log10(x) : x; }
  bool shows(double x) const { return std::isfinite(x) && (scale == AxisScale::linear || x > 0); }
  double pixel(double x) const { return from + (value(x) - least) / (most - least) * (to - from); }

  struct Tick {
    double pixel;
    std::string text;
  };
  std::vector<Tick> ticks() const {
    std::vector<Tick> result;
    double step = 1;
    if (scale == AxisScale::logarithmic) {
      step = std::max(1.0, std::ceil((most - least) / kTicks));
    } else {
      const double rough = (most - least) / kTicks;
      const double power = std::pow(10, std::floor(std::log10(rough)));
      step = rough / power < 1.5   ? power
             : rough / power < 3.5 ? 2 * power
             : rough / power < 7.5 ? 5 * power
                                   : 10 * power;
    }
    for (double at = std::ceil(least / step - 1e-9) * step; at <= most + 1e-9 * step; at += step) {
      const double clean = std::abs(at) < 1e-9 * step ? 0 : at;
      const std::string text = scale == AxisScale::logarithmic
                                   ? "10<tspan dy='-5' font-size='9'>" + fixed(clean, 0) + "</tspan>"
                                   : rounded_text(clean, 4);
      result.push_back({from + (at - least) / (most - least) * (to - from), text});
    }
    return result;
  }
};

class Drawing {
 public:
  explicit Drawing(const Chart& chart) : chart_(chart) {
    x_ = {0, 1, AxisScale::linear, kLeft, chart.width - kRight};
    y_ = {0, 1, chart.y_scale, chart.height - kBottom, kTop};
    fit(x_, [](const Series& s) -> const std::vector<double>& { return s.x; });
    fit(y_, [](const Series& s) -> const std::vector<double>& { return s.y; });
    if (chart.y_scale == AxisScale::logarithmic) {
      y_.least = std::floor(y_.least);
      y_.most = std::ceil(y_.most);
    }
  }

  std::string text() {
    out_ = "<svg viewBox='0 0 " + std::to_string(chart_.width) + " " + std::to_string(chart_.height) +
           "' role='img' aria-label='" + escaped(chart_.title) + "'>\n<text class='title' x='" + fixed(kLeft, 0) +
           "' y='18'>" + escaped(chart_.title) + "</text>\n";
    axes();
    for (const Marker& marker : chart_.markers) mark(marker);
    for (const Series& series : chart_.series) draw(series);
    legend();
    return out_ + "</svg>\n";
  }

 private:
  template <class Values>
  void fit(Axis& axis, const Values& values) const {
    double least = std::numeric_limits<double>::infinity();
    double most = -least;
    for (const Series& series : chart_.series) {
      for (double v : values(series)) {
        if (&axis == &y_ && chart_.y_floor) v = std::max(v, *chart_.y_floor);
        if (!axis.shows(v)) continue;
        least = std::min(least, axis.value(v));
        most = std::max(most, axis.value(v));
      }
    }
    if (!(least <= most)) return;
    if (least == most) {
      least -= 0.5;
      most += 0.5;
    }
    axis.least = least;
    axis.most = most;
  }

  void line(const char* style, double x1, double y1, double x2, double y2) {
    out_ += std::string("<line class='") + style + "' x1='" + fixed(x1, 1) + "' y1='" + fixed(y1, 1) + "' x2='" +
            fixed(x2, 1) + "' y2='" + fixed(y2, 1) + "'/>\n";
  }
  void words(const char* anchor, double x, double y, const std::string& text, const char* extra = "") {
    out_ += std::string("<text text-anchor='") + anchor + "' x='" + fixed(x, 1) + "' y='" + fixed(y, 1) + "'" + extra +
            ">" + text + "</text>\n";
  }

  void axes() {
    for (const auto& tick : x_.ticks()) {
      line("grid", tick.pixel, y_.from, tick.pixel, y_.to);
      words("middle", tick.pixel, y_.from + 16, tick.text);
    }
    for (const auto& tick : y_.ticks()) {
      line("grid", x_.from, tick.pixel, x_.to, tick.pixel);
      words("end", x_.from - 6, tick.pixel + 4, tick.text);
    }
    words("middle", (x_.from + x_.to) / 2, chart_.height - 8, escaped(chart_.x_label));
    const std::string turn = " transform='rotate(-90 14 " + fixed((y_.from + y_.to) / 2, 0) + ")'";
    words("middle", 14, (y_.from + y_.to) / 2, escaped(chart_.y_label), turn.c_str());
  }

  void mark(const Marker& marker) {
    if (!(marker.x >= x_.least && marker.x <= x_.most)) return;
    const double at = x_.pixel(marker.x);
    line("marker", at, y_.from, at, y_.to);
    const bool left = at > (x_.from + x_.to) / 2;
    words(left ? "end" : "start", at + (left ? -4 : 4), y_.from - 6, escaped(marker.text));
  }

  void draw(const Series& series) {
    std::string path;
    bool pen_down = false;
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      double y = series.y[i];
      if (chart_.y_floor && std::isfinite(y)) y = std::max(y, *chart_.y_floor);
      if (!y_.shows(y) || !x_.shows(series.x[i])) {
        pen_down = false;
        continue;
      }
      path += (pen_down ? "L" : "M") + fixed(x_.pixel(series.x[i]), 1) + " " + fixed(y_.pixel(y), 1);
      pen_down = true;
    }
    out_ += "<path class='line " + series.style + "' d='" + path + "'/>\n";
  }

  void legend() {
    double x = kLeft;
    for (const Series& series : chart_.series) {
      if (series.name.empty()) continue;
      out_ += "<path class='line " + series.style + "' d='M" + fixed(x, 1) + " 36h22'/>\n";
      words("start", x + 27, 40, escaped(series.name));
      x += 44 + 6.3 * static_cast<double>(series.name.size());
    }
  }

  const Chart& chart_;
  Axis x_;
  Axis y_;
  std::string out_;
};

}  // namespace

std::string svg(const Chart& chart) { return Drawing(chart).text(); }

std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

}  // namespace lockstep::agreement
