#include "lockstep/train/lbfgs.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>

#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/train/detail/lower.h"
#include "lockstep/train/detail/positive.h"
#include "lockstep/train/sums.h"

namespace lockstep::train {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

template <class T>
std::span<const T> view(const std::vector<T>& v) {
  return v;
}

// The loss along a line, x + alpha d.
template <class T>
struct Point {
  double alpha = 0;
  double loss = kInfinity;
  double slope = 0;  // d loss / d alpha
  std::vector<T> parameters;
  std::vector<T> gradient;
};

template <class T>
class Line {
 public:
  Line(const Point<T>& start, std::vector<T> direction, const Objective<T>& objective, const LbfgsOptions& options)
      : start_(start), direction_(std::move(direction)), objective_(objective), options_(options) {}

  // The best point found; the start where there is none below it.
  Point<T> search(double first_alpha) {
    Point<T> low = start_;
    double alpha = first_alpha;
    while (evaluations_ < options_.max_evaluations) {
      Point<T> trial = evaluate(alpha);
      if (too_high(trial) || (low.alpha > 0 && trial.loss >= low.loss)) return zoom(std::move(low), std::move(trial));
      if (flat(trial)) return trial;
      if (trial.slope >= 0) return zoom(std::move(trial), std::move(low));
      const double next = cubic_minimum(low, trial);
      // Grows at least by a fifth, at most fourfold.
      alpha = std::clamp(next > trial.alpha ? next : 4 * trial.alpha, 1.2 * trial.alpha, 4 * trial.alpha);
      low = std::move(trial);
    }
    return low;
  }
  int evaluations() const { return evaluations_; }

 private:
  bool too_high(const Point<T>& p) const {
    return !(p.loss <= start_.loss + options_.sufficient_decrease * p.alpha * start_.slope);
  }
  bool flat(const Point<T>& p) const { return std::fabs(p.slope) <= -options_.curvature * start_.slope; }

  Point<T> evaluate(double alpha) {
    ++evaluations_;
    Point<T> p;
    p.alpha = alpha;
    p.parameters = start_.parameters;
    p.gradient.resize(p.parameters.size());
    const T factor = static_cast<T>(alpha);
    for (std::size_t i = 0; i < direction_.size(); ++i) p.parameters[i] += factor * direction_[i];
    p.loss = objective_(p.parameters, p.gradient);
    p.slope = dot(view(p.gradient), view(direction_));
    if (!std::isfinite(p.loss) || !std::isfinite(p.slope)) p.loss = kInfinity;
    return p;
  }

  // Nocedal & Wright eq. 3.59: the minimiser of the cubic with both points' losses and slopes. NaN when there is none.
  static double cubic_minimum(const Point<T>& a, const Point<T>& b) {
    const double d1 = a.slope + b.slope - 3 * (a.loss - b.loss) / (a.alpha - b.alpha);
    const double root = std::sqrt(d1 * d1 - a.slope * b.slope);
    const double d2 = b.alpha > a.alpha ? root : -root;
    return b.alpha - (b.alpha - a.alpha) * ((b.slope + d2 - d1) / (b.slope - a.slope + 2 * d2));
  }

  // Between `low`, the lowest point with sufficient decrease, and `high` lies one that is also flat enough.
  Point<T> zoom(Point<T> low, Point<T> high) {
    while (evaluations_ < options_.max_evaluations) {
      const double width = high.alpha - low.alpha;
      double alpha = low.alpha + 0.5 * width;
      if (high.loss < kInfinity) {
        // A tenth of the interval is kept from either end, so that it shrinks.
        const double share = (cubic_minimum(low, high) - low.alpha) / width;
        if (std::isfinite(share)) alpha = low.alpha + std::clamp(share, 0.1, 0.9) * width;
      }
      if (alpha == low.alpha || alpha == high.alpha) break;
      Point<T> trial = evaluate(alpha);
      if (too_high(trial) || trial.loss >= low.loss) {
        high = std::move(trial);
      } else {
        if (flat(trial)) return trial;
        if (trial.slope * width >= 0) high = std::move(low);
        low = std::move(trial);
      }
    }
    return low;
  }

  const Point<T>& start_;
  std::vector<T> direction_;
  const Objective<T>& objective_;
  const LbfgsOptions& options_;
  int evaluations_ = 0;
};

// -H g, H the inverse Hessian that the history stands for.
template <class T>
std::vector<T> direction(const std::deque<LbfgsPair<T>>& pairs, const std::vector<T>& gradient) {
  std::vector<T> d(gradient.size());
  for (std::size_t i = 0; i < d.size(); ++i) d[i] = -gradient[i];
  if (pairs.empty()) return d;
  std::vector<double> share(pairs.size());
  for (std::size_t k = pairs.size(); k-- > 0;) {
    share[k] = pairs[k].inverse_curvature * dot(view(pairs[k].step), view(d));
    const T factor = static_cast<T>(share[k]);
    for (std::size_t i = 0; i < d.size(); ++i) d[i] -= factor * pairs[k].change[i];
  }
  const LbfgsPair<T>& last = pairs.back();
  const T scale = static_cast<T>(1 / (last.inverse_curvature * dot(view(last.change), view(last.change))));
  for (T& x : d) x *= scale;
  for (std::size_t k = 0; k < pairs.size(); ++k) {
    const double back = pairs[k].inverse_curvature * dot(view(pairs[k].change), view(d));
    const T factor = static_cast<T>(share[k] - back);
    for (std::size_t i = 0; i < d.size(); ++i) d[i] += factor * pairs[k].step[i];
  }
  return d;
}

// Without a history nothing tells how far the gradient leads: as far as it is long, but no further than a parameter's
// usual size of 1, and not so little that rounding swallows the step.
double first_step(double gradient_norm) {
  constexpr double kShortest = 1e-3;
  return std::clamp(gradient_norm, kShortest, 1.0) / gradient_norm;
}

// By the pairs' quadratic model a whole step lowers the loss by half the slope: here by less than it rounds. With as
// many pairs as there are parameters that matter the model has seen all directions, and what is found further on are
// roundings of the loss; with fewer a flat direction may be unseen.
template <class T>
bool at_the_minimum(const Point<T>& start, std::size_t pairs) {
  constexpr double kRounding = std::numeric_limits<T>::epsilon() / 2;
  const auto unused = std::count(start.gradient.begin(), start.gradient.end(), T{0});
  return pairs + static_cast<std::size_t>(unused) >= start.parameters.size() &&
         -0.5 * start.slope < kRounding * std::fabs(start.loss);
}

// Only pairs of clearly positive curvature keep H positive definite; 1e-10 is far below what the Wolfe conditions
// leave, and only rounding or an unfinished line search comes near it.
template <class T>
void remember(LbfgsState<T>& state, const Point<T>& from, const Point<T>& to, std::size_t most) {
  LbfgsPair<T> pair{std::vector<T>(to.parameters.size()), std::vector<T>(to.parameters.size()), 0};
  for (std::size_t i = 0; i < to.parameters.size(); ++i) {
    pair.step[i] = to.parameters[i] - from.parameters[i];
    pair.change[i] = to.gradient[i] - from.gradient[i];
  }
  const double curvature = dot(view(pair.step), view(pair.change));
  if (!(curvature > 1e-10 * norm(view(pair.step)) * norm(view(pair.change)))) return;
  pair.inverse_curvature = 1 / curvature;
  if (!std::isfinite(pair.inverse_curvature)) return;
  if (state.pairs.size() == most) state.pairs.pop_front();
  state.pairs.push_back(std::move(pair));
}

}  // namespace

std::string_view to_string(LbfgsStatus status) {
  switch (status) {
    case LbfgsStatus::advanced:
      return "advanced";
    case LbfgsStatus::converged:
      return "converged";
    case LbfgsStatus::stalled:
      break;
  }
  return "stalled";
}

void LbfgsOptions::validate() const {
  if (history < 1) detail::refuse("lbfgs.history", std::to_string(history), "at least 1");
  if (max_evaluations < 1) detail::refuse("lbfgs.max_evaluations", std::to_string(max_evaluations), "at least 1");
  if (!(0 < sufficient_decrease && sufficient_decrease < curvature && curvature < 1)) {
    detail::refuse("lbfgs.sufficient_decrease and lbfgs.curvature",
                   number_text(sufficient_decrease) + " and " + number_text(curvature),
                   "0 < sufficient_decrease < curvature < 1");
  }
}

template <class T>
Lbfgs<T>::Lbfgs(const LbfgsOptions& options) : options_(options) {
  options_.validate();
}

template <class T>
LbfgsReport Lbfgs<T>::step(std::span<T> parameters, const Objective<T>& objective) {
  const StandardArithmetic arithmetic;
  LbfgsReport report;
  Point<T> start;
  start.parameters.assign(parameters.begin(), parameters.end());
  if (state_.gradient.size() != parameters.size()) {
    state_ = {};
    start.gradient.resize(parameters.size());
    start.loss = objective(parameters, start.gradient);
    ++report.evaluations;
  } else {
    start.gradient = state_.gradient;
    start.loss = state_.loss;
  }
  report.loss = start.loss;
  report.gradient_norm = norm(view(start.gradient));
  if (!std::isfinite(start.loss) || !std::isfinite(report.gradient_norm)) {
    detail::refuse("lbfgs", detail::loss_text(start.loss, report.gradient_norm), "finite numbers at the start",
                   "start from other parameters");
  }
  report.status = LbfgsStatus::converged;
  if (report.gradient_norm > 0) {
    report.status = LbfgsStatus::stalled;
    while (report.status == LbfgsStatus::stalled) {
      std::vector<T> d = direction(state_.pairs, start.gradient);
      start.slope = dot(view(start.gradient), view(d));
      const bool along_gradient = state_.pairs.empty();
      if (start.slope < 0 && std::isfinite(start.slope)) {
        if (at_the_minimum(start, state_.pairs.size())) break;
        Line<T> line(start, std::move(d), objective, options_);
        const double first = along_gradient ? first_step(report.gradient_norm) : 1;
        Point<T> best = line.search(first);
        report.evaluations += line.evaluations();
        if (best.alpha > 0 && detail::is_lower<T>(best.loss, start.loss)) {
          remember(state_, start, best, options_.history);
          report.status = LbfgsStatus::advanced;
          report.step = best.alpha;
          start = std::move(best);
        }
      }
      if (along_gradient) break;
      if (report.status == LbfgsStatus::stalled) state_.pairs.clear();
    }
  }
  std::copy(start.parameters.begin(), start.parameters.end(), parameters.begin());
  report.loss = state_.loss = start.loss;
  state_.gradient = std::move(start.gradient);
  report.gradient_norm = norm(view(state_.gradient));
  return report;
}

template class Lbfgs<float>;
template class Lbfgs<double>;

}  // namespace lockstep::train
