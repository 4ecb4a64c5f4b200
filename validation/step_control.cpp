// What the constants of the step size control cost: every adaptive method on the published problems at many
// tolerances, under our constants and others', compared at equal error. The table of docs/numerics.md.
//   build/bin/step_control            (float64; --f32 for float32)
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/numerics.h"
#include "lockstep/ode/state_function.h"
#include "oracle.h"

namespace lockstep::validation {
namespace {

// h_new = h safety err^(-b1/k) err_old^(b2/k), err_old at least `floor`, `first` before the first step.
struct Control {
  const char* name;
  double safety, b1, b2;
  double first = 1, floor = 1e-2;
};
constexpr std::array kControls{
    Control{"0.7, 0.4, safety 0.9, memory from 1e-4", 0.9, 0.7, 0.4, 1e-4, 1e-4},
    Control{"1, 0, safety 0.9 (integral alone)", 0.9, 1, 0},
    Control{"0.85, 0.2, safety 0.9, memory from 1e-4", 0.9, 0.85, 0.2, 1e-4, 1e-4},
    Control{"1, 0, safety 0.8", 0.8, 1, 0},
    Control{"0.85, 0.2, safety 0.85", 0.85, 0.85, 0.2},
    Control{"0.85, 0.2, safety 0.8", 0.8, 0.85, 0.2},
    Control{"0.775, 0.3, safety 0.85", 0.85, 0.775, 0.3},
    Control{"0.775, 0.3, safety 0.8", 0.8, 0.775, 0.3},
};

struct Run {
  double tolerance, error;  // error NaN: not finished
  int evaluations = 0, accepted = 0, rejected = 0;
};

// One trajectory of a published problem in precision T, plainly.
template <class T>
class Solver {
 public:
  Solver(const PublishedProblem& published, const ode::Tableau& tableau)
      : problem_(published.problem),
        tableau_(tableau),
        power_(ode::scalar::error_power(tableau.error_order, !tableau.error3.empty())),
        function_(ode::lower<T>(*problem_.rhs, CpuTarget::scalar)),
        components_(problem_.rhs->components()),
        in_(components_ * kTileLanes),
        out_(components_ * kTileLanes),
        parameters_(std::max<std::size_t>(1, problem_.parameters.size()) * kTileLanes),
        workspace_(function_->workspace_bytes()),
        k_(static_cast<std::size_t>(tableau.stages), std::vector<T>(components_)) {
    for (std::size_t i = 0; i < problem_.parameters.size(); ++i) {
      parameters_[i * kTileLanes] = static_cast<T>(problem_.parameters[i]);
    }
  }

  Run solve(double tolerance, const Control& control, const std::vector<double>& truth) {
    constexpr int kMostAttempts = 60'000;
    run_ = {tolerance, NAN};
    double t = problem_.start_times.empty() ? 0 : problem_.start_times[0];
    const double end = problem_.end_times[0];
    std::vector<T> y(problem_.initial_states.begin(), problem_.initial_states.end());
    evaluate(t, y, k_[0]);
    double h = first_step(t, end, y, tolerance), old = control.first;
    const double k = power_;
    for (bool after_rejection = false; t != end;) {
      if (run_.accepted + run_.rejected == kMostAttempts) return run_;
      const bool last = end - t <= 1.01 * h;
      if (last) h = end - t;
      const std::vector<T> y1 = stages(t, last ? end : t + h, h, y);
      const double norm = error_norm(h, y, y1, tolerance);
      const double error = norm < 1e15 ? std::max(norm, 1e-15) : 1e15;
      double factor = control.safety * std::pow(error, -control.b1 / k);
      if (error <= 1) {
        factor = std::min(factor * std::pow(old, control.b2 / k), after_rejection ? 1.0 : 10.0);
        old = std::max(error, control.floor);
        t = last ? end : t + h;
        y = y1;
        std::swap(k_[0], k_.back());
        ++run_.accepted;
      } else {
        factor = std::min(factor, 1.0);
        ++run_.rejected;
      }
      after_rejection = error > 1;
      h *= std::max(factor, 0.2);
      if (t != end && t + h == t) return run_;
    }
    double size = 0, difference = 0;
    for (std::size_t c = 0; c < components_; ++c) {
      size = std::max(size, std::abs(truth[c]));
      difference = std::max(difference, std::abs(static_cast<double>(y[c]) - truth[c]));
    }
    run_.error = difference / size;
    return run_;
  }

 private:
  void evaluate(double t, const std::vector<T>& u, std::vector<T>& derivative) {
    ++run_.evaluations;
    time_[0] = t;
    for (std::size_t c = 0; c < components_; ++c) in_[c * kTileLanes] = u[c];
    function_->evaluate({time_.data(), in_.data(), parameters_.data(), out_.data(), 1}, workspace_.data());
    for (std::size_t c = 0; c < components_; ++c) derivative[c] = out_[c * kTileLanes];
  }

  T weighted(const double* weights, std::size_t count, std::size_t c) const {
    T sum = 0;
    for (std::size_t j = 0; j < count; ++j) sum += static_cast<T>(weights[j]) * k_[j][c];
    return sum;
  }

  std::vector<T> stages(double t, double t_new, double h, const std::vector<T>& y) {
    std::vector<T> u(y.size());
    const auto width = static_cast<std::size_t>(tableau_.stages + tableau_.interpolant_stages);
    for (std::size_t i = 1; i < k_.size(); ++i) {
      for (std::size_t c = 0; c < y.size(); ++c) {
        u[c] = y[c] + static_cast<T>(h) * weighted(&tableau_.a[i * width], i, c);
      }
      evaluate(i + 1 == k_.size() ? t_new : t + tableau_.c[i] * h, u, k_[i]);
    }
    return u;
  }

  double error_norm(double h, const std::vector<T>& y, const std::vector<T>& y1, double tolerance) const {
    const auto square = [&](std::span<const double> weights) {
      double sum = 0;
      for (std::size_t c = 0; c < y.size(); ++c) {
        const double error = h * weighted(weights.data(), weights.size(), c);
        const double q = error / (tolerance + tolerance * std::max(std::abs(y[c]), std::abs(y1[c])));
        sum += q * q / static_cast<double>(y.size());
      }
      return sum;
    };
    const double e = square(tableau_.error);
    return tableau_.error3.empty() ? std::sqrt(e) : e / std::sqrt(std::max(e + 0.01 * square(tableau_.error3), 1e-300));
  }

  // Hairer, Norsett & Wanner I, II.4, "Starting Step Size".
  double first_step(double t, double end, const std::vector<T>& y, double tolerance) {
    const auto norm = [&](auto value) {
      double sum = 0;
      for (std::size_t c = 0; c < y.size(); ++c) {
        const double q = static_cast<double>(value(c)) / (tolerance + tolerance * std::abs(static_cast<double>(y[c])));
        sum += q * q / static_cast<double>(y.size());
      }
      return std::sqrt(sum);
    };
    const double d0 = norm([&](std::size_t c) { return y[c]; });
    const double d1 = norm([&](std::size_t c) { return k_[0][c]; });
    const double trial = std::min(end - t, d0 < 1e-5 || d1 < 1e-5 ? 1e-6 : 0.01 * d0 / d1);
    std::vector<T> u(y), f(y.size());
    for (std::size_t c = 0; c < y.size(); ++c) u[c] += static_cast<T>(trial) * k_[0][c];
    evaluate(t + trial, u, f);
    const double d2 = norm([&](std::size_t c) { return f[c] - k_[0][c]; }) / trial;
    const double steepest = std::max(d1, d2);
    const double h1 = steepest <= 1e-15 ? std::max(1e-6, trial * 1e-3) : std::pow(0.01 / steepest, 1.0 / power_);
    return std::min({100 * trial, h1, end - t});
  }

  const ode::Problem& problem_;
  const ode::Tableau& tableau_;
  double power_;  // of the step size, by which the estimate goes
  std::shared_ptr<const ode::TileFunction<T>> function_;
  std::size_t components_;
  AlignedBuffer<T> in_, out_, parameters_;
  AlignedBuffer<std::byte> workspace_;
  AlignedBuffer<double> time_{kTileLanes};
  std::vector<std::vector<T>> k_;
  Run run_{};
};

// log10 of the evaluations that each control takes for the same error on one problem, up to a common constant: with
// x = log10 error and y = log10 evaluations, y = offset + a x + b x^2, a and b common to all controls (least squares).
// Where in a tolerance a run's end error happens to fall is chance; some 30 tolerances average it out. Empty where
// a control has too few runs above the rounding errors.
std::vector<double> work_at_equal_error(const std::vector<std::vector<Run>>& runs, double rounding) {
  struct Sums {
    double n = 0, x = 0, xx = 0, y = 0;
  };
  const auto counts = [&](const Run& run) { return run.error > rounding && run.error < 0.1; };
  std::vector<Sums> means;
  double xx = 0, xq = 0, qq = 0, xy = 0, qy = 0;
  for (const auto& list : runs) {
    Sums s;
    for (const Run& run : list) {
      if (!counts(run)) continue;
      const double x = std::log10(run.error);
      s.n += 1, s.x += x, s.xx += x * x, s.y += std::log10(run.evaluations);
    }
    if (s.n < 5) return {};
    s.x /= s.n, s.xx /= s.n, s.y /= s.n;
    for (const Run& run : list) {
      if (!counts(run)) continue;
      const double x = std::log10(run.error), dx = x - s.x, dq = x * x - s.xx, dy = std::log10(run.evaluations) - s.y;
      xx += dx * dx, xq += dx * dq, qq += dq * dq, xy += dx * dy, qy += dq * dy;
    }
    means.push_back(s);
  }
  const double determinant = xx * qq - xq * xq;
  const double a = (xy * qq - qy * xq) / determinant, b = (qy * xx - xy * xq) / determinant;
  std::vector<double> offsets;
  for (const Sums& s : means) offsets.push_back(s.y - a * s.x - b * s.xx);
  return offsets;
}

template <class T>
void compare(const std::string& method, double finest, double rounding) {
  const std::size_t controls = kControls.size();
  std::vector<double> work(controls), cost(controls), ratio(controls), accepted(controls), rejected(controls);
  std::vector<double> worst(controls, -1e9);
  double problems = 0;
  std::vector<double> pairs(controls);
  for (const PublishedProblem& published : published_problems()) {
    if (published.name == "pleiades") continue;  // as long as all others together
    const auto truth = read_oracle_value(LOCKSTEP_ORACLE, published.name).end_state;
    Solver<T> solver(published, ode::method(method));
    std::vector<std::vector<Run>> runs(controls);
    for (double digits = 3; digits <= finest; digits += 0.25) {
      for (std::size_t i = 0; i < controls; ++i) {
        runs[i].push_back(solver.solve(std::pow(10, -digits), kControls[i], truth));
      }
    }
    const std::vector<double> offsets = work_at_equal_error(runs, rounding);
    if (offsets.empty()) continue;
    problems += 1;
    for (std::size_t i = 0; i < controls; ++i) {
      work[i] += offsets[i] - offsets[0];
      worst[i] = std::max(worst[i], offsets[i] - offsets[0]);
      for (std::size_t j = 0; j < runs[i].size(); ++j) {
        if (!(runs[i][j].error > 0) || !(runs[0][j].error > 0)) continue;
        cost[i] += std::log10(static_cast<double>(runs[i][j].evaluations) / runs[0][j].evaluations);
        ratio[i] += std::log10(std::max(runs[i][j].error, 1e-16) / runs[i][j].tolerance);
        pairs[i] += 1;
        accepted[i] += runs[i][j].accepted;
        rejected[i] += runs[i][j].rejected;
      }
    }
  }
  for (std::size_t i = 0; i < controls; ++i) {
    std::printf("%-8s %-40s %6.3f %6.3f %10.3f %9.1f %% %10.1f\n", method.c_str(), kControls[i].name,
                std::pow(10, work[i] / problems), std::pow(10, worst[i]), std::pow(10, cost[i] / pairs[i]),
                100 * rejected[i] / (accepted[i] + rejected[i]), std::pow(10, ratio[i] / pairs[i]));
  }
}

}  // namespace
}  // namespace lockstep::validation

int main(int count, char** arguments) {
  using namespace lockstep;
  const bool f32 = count > 1 && std::string(arguments[1]) == "--f32";
  std::printf(
      "k beta1, k beta2: evaluations at equal error (mean over problems, worst), at equal tolerance; attempts\n"
      "rejected; error at the end / tolerance. Ratios to the first row of each method.\n");
  for (const auto name : ode::explicit_method_names()) {
    const std::string method(name);
    const ode::Tableau& tableau = ode::method(name);
    if (tableau.error_order == 0) continue;
    // Errors near rounding say nothing of the control: 1e-13, and 3e-6 in float32.
    if (f32) {
      validation::compare<float>(method, 7, 3e-6);
    } else {
      validation::compare<double>(method, tableau.order < 4 ? 6 : 10, 1e-13);
    }
  }
}
