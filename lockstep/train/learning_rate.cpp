#include "lockstep/train/learning_rate.h"

#include <algorithm>
#include <array>

#include "lockstep/core/names.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/core/text.h"
#include "lockstep/kernels/math/math.h"
#include "lockstep/train/detail/positive.h"

namespace lockstep::train {
namespace {

constexpr std::array<std::string_view, 4> kScheduleNames{"constant", "cosine", "step", "plateau"};

// base^n by squaring: products alone, the same bits everywhere.
double integer_power(double base, std::int64_t n) {
  double power = 1;
  for (; n > 0; n /= 2) {
    if (n % 2 == 1) power *= base;
    base *= base;
  }
  return power;
}

void require_count(const char* field, std::int64_t value, std::int64_t least) {
  if (value < least) detail::refuse(field, std::to_string(value), "at least " + std::to_string(least));
}

}  // namespace

std::span<const std::string_view> schedule_names() { return kScheduleNames; }

std::string_view to_string(Schedule schedule) { return kScheduleNames[static_cast<std::size_t>(schedule)]; }

Schedule parse_schedule(const std::string& field, std::string_view name) {
  const auto found = std::find(kScheduleNames.begin(), kScheduleNames.end(), name);
  if (found == kScheduleNames.end()) throw unknown_name(field, name, kScheduleNames);
  return static_cast<Schedule>(found - kScheduleNames.begin());
}

void LearningRateOptions::validate() const {
  const StandardArithmetic arithmetic;
  detail::require_positive("learning_rate.rate", rate);
  require_count("learning_rate.warm_up", warm_up, 0);
  detail::require_not_negative("learning_rate.floor", floor);
  if (schedule == Schedule::cosine) {
    require_count("learning_rate.total", total, 1);
    if (warm_up >= total) {
      detail::refuse("learning_rate.warm_up", std::to_string(warm_up),
                     "fewer iterations than the total of " + std::to_string(total));
    }
    if (!(final_fraction >= 0 && final_fraction <= 1)) {
      detail::refuse("learning_rate.final_fraction", number_text(final_fraction), "a number from 0 to 1");
    }
  }
  if (schedule == Schedule::step || schedule == Schedule::plateau) {
    if (!(factor > 0 && factor < 1)) {
      detail::refuse("learning_rate.factor", number_text(factor), "a number above 0 and below 1");
    }
    if (schedule == Schedule::step) require_count("learning_rate.every", every, 1);
    if (schedule == Schedule::plateau) require_count("learning_rate.patience", patience, 1);
    detail::require_fraction("learning_rate.improvement", improvement);
  }
}

LearningRate::LearningRate(const LearningRateOptions& options) : options_(options) { options_.validate(); }

double LearningRate::rate(std::int64_t iteration) const {
  const StandardArithmetic arithmetic;
  const LearningRateOptions& o = options_;
  if (iteration < o.warm_up) return o.rate * (static_cast<double>(iteration + 1) / static_cast<double>(o.warm_up));
  double scale = 1;
  switch (o.schedule) {
    case Schedule::constant:
      break;
    case Schedule::cosine: {
      const double passed = static_cast<double>(iteration - o.warm_up) / static_cast<double>(o.total - o.warm_up);
      constexpr double kPi = 3.141592653589793;
      const double half_wave = 0.5 * (1 + math::cos(kPi * std::min(passed, 1.0)));
      scale = o.final_fraction + (1 - o.final_fraction) * half_wave;
      break;
    }
    case Schedule::step:
      scale = integer_power(o.factor, (iteration - o.warm_up) / o.every);
      break;
    case Schedule::plateau:
      scale = plateau_.scale;
      break;
  }
  return std::max(o.rate * scale, o.floor);
}

void LearningRate::observe(std::optional<double> loss) {
  const StandardArithmetic arithmetic;
  if (options_.schedule != Schedule::plateau) return;
  ++plateau_.since_best;
  if (!loss) return;
  if (*loss < plateau_.best * (1 - options_.improvement) || plateau_.best > std::numeric_limits<double>::max()) {
    plateau_.best = *loss;
    plateau_.since_best = 0;
  } else if (plateau_.since_best >= options_.patience) {
    plateau_.scale *= options_.factor;
    plateau_.since_best = 0;
  }
}

}  // namespace lockstep::train
