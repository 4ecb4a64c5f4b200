// Learning rates over the iterations of a training: constant, cosine, steps, plateau; with a warm-up before them.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace lockstep::train {

enum class Schedule {
  constant,
  cosine,   // from rate to final_fraction of it along half a cosine (Loshchilov & Hutter, ICLR 2017, eq. 5)
  step,     // times `factor` every `every` iterations
  plateau,  // times `factor` when the loss has not improved for `patience` iterations
};

std::string_view to_string(Schedule schedule);
std::span<const std::string_view> schedule_names();
// Throws Error (invalid_argument) that lists the schedules and suggests the nearest.
Schedule parse_schedule(const std::string& field, std::string_view name);

struct LearningRateOptions {
  Schedule schedule = Schedule::constant;
  double rate = 1e-3;           // > 0
  std::int64_t warm_up = 0;     // iterations over which the rate grows linearly from rate / warm_up
  std::int64_t total = 0;       // cosine: iterations until it is at its end, warm-up included
  double final_fraction = 0;    // cosine, in [0, 1]
  double factor = 0.1;          // step and plateau, in (0, 1)
  std::int64_t every = 1000;    // step
  std::int64_t patience = 100;  // plateau
  double improvement = 1e-4;    // plateau: a loss below (1 - improvement) times the best counts as better
  double floor = 0;             // the rate never falls below this

  // Throws Error (invalid_argument) naming the field.
  void validate() const;
};

// What the plateau schedule remembers; the others depend on the iteration alone.
struct PlateauState {
  double best = std::numeric_limits<double>::infinity();
  std::int64_t since_best = 0;
  double scale = 1;
};

class LearningRate {
 public:
  // Throws like validate().
  explicit LearningRate(const LearningRateOptions& options);

  // For iteration 0, 1, ...
  double rate(std::int64_t iteration) const;
  // To be told of each iteration's loss, once, in order, or of none where the iteration brought none that is new; only
  // the plateau schedule listens.
  void observe(std::optional<double> loss);

  const PlateauState& state() const noexcept { return plateau_; }
  void restore(const PlateauState& state) { plateau_ = state; }

 private:
  LearningRateOptions options_;
  PlateauState plateau_;
};

}  // namespace lockstep::train
