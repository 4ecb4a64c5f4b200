#include "lockstep/ode/detail/gradient_engine.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <optional>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/ode/cpu/adjoint_tile.h"
#include "lockstep/ode/cpu/engine.h"

namespace lockstep::ode::detail {
namespace {

// Trajectories are summed in at most this many groups of whole tiles, whose sums meet in a tree: the problem alone
// decides the order, not the threads.
constexpr std::size_t kMostGroups = 64;

class DiscardingSink : public SolutionSink {
 public:
  DiscardingSink(Solution& solution) : solution_(solution) {}
  SolutionBlock acquire(std::size_t first, std::size_t count) override { return solution_.block(first, count); }
  void commit(const SolutionBlock&) override {}

 private:
  Solution& solution_;
};

// What a group of tiles adds to the sums over trajectories.
struct GroupSum {
  double loss = 0;
  std::size_t left_out = 0;
  std::vector<double> weights;
  std::vector<double> parameters;  // where all share them

  void add(const GroupSum& other) {
    loss += other.loss;
    left_out += other.left_out;
    for (std::size_t i = 0; i < weights.size(); ++i) weights[i] += other.weights[i];
    for (std::size_t i = 0; i < parameters.size(); ++i) parameters[i] += other.parameters[i];
  }
};

template <class T>
class Engine final : public GradientEngine {
 public:
  Engine(Problem problem, Options options, Loss loss, GradientOptions gradient_options)
      : GradientEngine(std::move(problem), std::move(options), std::move(loss), std::move(gradient_options)),
        plan_(cpu::plan(problem_, options_)),
        rhs_(lower_differentiable<T>(*problem_.rhs, plan_.target)),
        tiles_((problem_.trajectories() + kTileLanes - 1) / kTileLanes),
        tiles_per_group_((tiles_ + kMostGroups - 1) / kMostGroups),
        groups_(tiles_ == 0 ? 0 : (tiles_ + tiles_per_group_ - 1) / tiles_per_group_),
        weights_(rhs_->weights()) {
    plan_.threads = std::max(1, std::min(plan_.threads, static_cast<int>(groups_)));
    workers_.resize(static_cast<std::size_t>(plan_.threads));
    for (std::size_t group = 0; group < groups_; ++group) {
      sums_.emplace_back().weights.resize(weights_.size());
      if (shares_parameters()) sums_.back().parameters.resize(problem_.rhs->parameters());
    }
    const std::size_t count = problem_.trajectories();
    gradients_.weights.resize(weights_.size());
    gradients_.initial_states.resize(problem_.initial_states.size());
    gradients_.parameters.resize(problem_.parameters.size());
    gradients_.records.resize(count);
    if (gradient_options_.keep == GradientOptions::Keep::steps) gradients_.steps.resize(count);
    worker(0);
  }

  std::size_t weights() const override { return weights_.size(); }
  void set_weights(std::span<const double> weights) override {
    std::transform(weights.begin(), weights.end(), weights_.begin(), [](double w) { return static_cast<T>(w); });
    rhs_->set_weights(weights_);
  }

  const Gradients& evaluate(const RunControl& control) override {
    prepare_common_steps(control);
    const auto* ensemble = std::get_if<EnsembleLoss>(&loss_);
    std::optional<double> ensemble_loss;
    if (ensemble != nullptr) {
      states_.resize(problem_.trajectories() * row());
      states_bar_.assign(states_.size(), 0.0);
      for_each_group(control, [&](Worker& worker, std::size_t tile) { collect_states(worker, tile); });
      ensemble_loss = (*ensemble)(states_, states_bar_);
    }
    for_each_group(control, [&](Worker& worker, std::size_t tile) { differentiate(worker, tile); });
    for (std::size_t stride = 1; stride < groups_; stride *= 2) {
      for (std::size_t i = 0; i + stride < groups_; i += 2 * stride) sums_[i].add(sums_[i + stride]);
    }
    if (groups_ != 0) {
      gradients_.loss = ensemble_loss.value_or(sums_[0].loss);
      gradients_.left_out = sums_[0].left_out;
      gradients_.weights = sums_[0].weights;
      if (shares_parameters()) gradients_.parameters = sums_[0].parameters;
    }
    if (gradient_options_.failed == FailedTrajectories::stop && gradients_.left_out != 0) refuse_failure();
    return gradients_;
  }

  std::vector<std::string> explain() const override {
    const cpu::RecordPlan& plan = workers_[0]->tile.plan();
    const std::size_t stages = workers_[0]->stages;
    const double step_bytes = static_cast<double>(stages * problem_.rhs->components() * kTileLanes * sizeof(T)) +
                              (plan.keep_recorded ? static_cast<double>(stages * rhs_->record_bytes()) : 0.0);
    std::vector<std::string> sentences;
    sentences.push_back("a discrete adjoint: accepted steps are recorded and transposed, their sizes are constants");
    sentences.push_back("each of " + std::to_string(plan_.threads) + " threads keeps the stages of up to " +
                        std::to_string(plan.segment_steps) + " steps of 32 trajectories, " +
                        std::to_string(static_cast<std::size_t>(step_bytes)) + " bytes a step" +
                        (plan.keep_recorded ? ", hidden activations included" : ""));
    sentences.push_back("longer solves keep up to " + std::to_string(plan.most_checkpoints) +
                        " checkpoints and compute the steps between them again");
    if (!plan.keep_recorded && rhs_->record_bytes() != 0) {
      sentences.push_back("hidden activations are computed again on the way back");
    }
    return sentences;
  }

 private:
  // A thread's own.
  struct Worker {
    Worker(const Problem& problem, const Options& options, const DifferentiableTile<T>& rhs, CpuTarget target,
           std::size_t bytes, std::size_t row)
        : tile(problem, options, rhs, target, bytes),
          stages(tile.kept_stages()),
          states(row),
          bar(row),
          states_bar(kTileLanes * row),
          gradient(rhs.weights()) {}
    cpu::AdjointTile<T> tile;
    std::size_t stages;
    std::vector<double> states, bar;  // of one trajectory
    std::vector<T> states_bar;        // [lane][time][component]
    AlignedBuffer<T> gradient;        // [weight]
    GroupSum* sum = nullptr;
  };

  std::size_t row() const { return problem_.save_points() * problem_.rhs->components(); }
  bool shares_parameters() const {
    return problem_.trajectories() > 1 && problem_.parameters.size() == problem_.rhs->parameters();
  }

  Worker& worker(int thread) {
    auto& slot = workers_[static_cast<std::size_t>(thread)];
    if (!slot) {
      slot = std::make_unique<Worker>(problem_, options_, *rhs_, plan_.target,
                                      gradient_options_.memory_bytes / static_cast<std::size_t>(plan_.threads), row());
    }
    return *slot;
  }

  // body(worker, tile) for all tiles, those of a group in order.
  template <class Body>
  void for_each_group(const RunControl& control, const Body& body) {
    std::atomic<std::size_t> next{0};
    run_on_threads(plan_.threads, [&](int thread) {
      Worker& mine = worker(thread);
      for (std::size_t group = next++; group < groups_; group = next++) {
        mine.sum = &sums_[group];
        mine.sum->loss = 0;
        mine.sum->left_out = 0;
        std::fill(mine.sum->weights.begin(), mine.sum->weights.end(), 0.0);
        std::fill(mine.sum->parameters.begin(), mine.sum->parameters.end(), 0.0);
        const std::size_t end = std::min(tiles_, (group + 1) * tiles_per_group_);
        for (std::size_t tile = group * tiles_per_group_; tile < end; ++tile) {
          if (control.cancelled()) throw Error(ErrorKind::cancelled, {.found = "a gradient stopped by its caller"});
          body(mine, tile);
        }
      }
    });
  }

  // With common control the steps are found first, by the engine itself.
  void prepare_common_steps(const RunControl& control) {
    if (options_.control != StepControl::common) return;
    Solution solution(options_.precision, problem_.trajectories(), problem_.rhs->components(), problem_.save_times,
                      problem_.save_times_per_trajectory);
    DiscardingSink sink(solution);
    common_steps_.clear();
    cpu::advance_together<T>(problem_, options_, plan_, sink, control, &common_steps_, rhs_);
    common_ends_.assign(solution.records().begin(), solution.records().end());
  }

  int forward(Worker& worker, std::size_t tile) {
    const std::size_t first = tile * kTileLanes;
    const std::size_t lanes = std::min<std::size_t>(kTileLanes, problem_.trajectories() - first);
    std::span<const TrajectoryRecord> ends;
    if (options_.control == StepControl::common) ends = std::span(common_ends_).subspan(first, lanes);
    worker.tile.forward(first, static_cast<int>(lanes), common_steps_, ends);
    return static_cast<int>(lanes);
  }

  void collect_states(Worker& worker, std::size_t tile) {
    const int lanes = forward(worker, tile);
    const auto states = worker.tile.states();
    for (std::size_t i = 0; i < static_cast<std::size_t>(lanes) * row(); ++i) {
      states_[tile * kTileLanes * row() + i] = static_cast<double>(states[i]);
    }
  }

  // Loss and cotangents of the saved states of one trajectory; zeros where it failed.
  void differentiate_loss(Worker& worker, std::size_t trajectory, int lane, bool good) {
    T* const out = worker.states_bar.data() + static_cast<std::size_t>(lane) * row();
    if (!good) {
      std::fill_n(out, row(), T(0));
      return;
    }
    const double* bar = worker.bar.data();
    if (std::holds_alternative<EnsembleLoss>(loss_)) {
      bar = states_bar_.data() + trajectory * row();
    } else {
      const T* states = worker.tile.states().data() + static_cast<std::size_t>(lane) * row();
      std::copy_n(states, row(), worker.states.data());
      std::fill(worker.bar.begin(), worker.bar.end(), 0.0);
      worker.sum->loss += trajectory_loss(loss_, trajectory, worker.states, worker.bar, problem_.rhs->components());
    }
    for (std::size_t i = 0; i < row(); ++i) out[i] = static_cast<T>(bar[i]);
  }

  void differentiate(Worker& worker, std::size_t tile) {
    const int lanes = forward(worker, tile);
    const std::size_t first = tile * kTileLanes;
    const std::size_t n = problem_.rhs->components(), m = problem_.rhs->parameters();
    std::fill(worker.states_bar.begin(), worker.states_bar.end(), T(0));
    for (int lane = 0; lane < lanes; ++lane) {
      const std::size_t trajectory = first + static_cast<std::size_t>(lane);
      gradients_.records[trajectory] = worker.tile.record(lane);
      const bool good = worker.tile.record(lane).status == Status::success;
      if (!good) ++worker.sum->left_out;
      differentiate_loss(worker, trajectory, lane, good);
      if (!gradients_.steps.empty()) gradients_.steps[trajectory] = worker.tile.steps_of(lane);
    }
    std::fill_n(worker.gradient.data(), worker.gradient.size(), T(0));
    worker.tile.backward(worker.states_bar, worker.gradient.empty() ? nullptr : worker.gradient.data());
    for (std::size_t i = 0; i < worker.gradient.size(); ++i) {
      worker.sum->weights[i] += static_cast<double>(worker.gradient[i]);
    }
    for (int lane = 0; lane < lanes; ++lane) {
      const std::size_t trajectory = first + static_cast<std::size_t>(lane);
      for (std::size_t c = 0; c < n; ++c) {
        gradients_.initial_states[trajectory * n + c] = static_cast<double>(worker.tile.initial_state_bar(lane, c));
      }
      for (std::size_t i = 0; i < m; ++i) {
        const double bar = static_cast<double>(worker.tile.parameter_bar(lane, i));
        if (shares_parameters()) {
          worker.sum->parameters[i] += bar;
        } else {
          gradients_.parameters[trajectory * m + i] = bar;
        }
      }
    }
  }

  [[noreturn]] void refuse_failure() const {
    for (std::size_t i = 0; i < gradients_.records.size(); ++i) {
      const TrajectoryRecord& record = gradients_.records[i];
      if (record.status == Status::success) continue;
      throw Error(ErrorKind::invalid_argument,
                  {.field = "trajectory " + std::to_string(i),
                   .found = std::string(to_string(record.status)) + " at t = " + std::to_string(record.end_time),
                   .expected = "every trajectory to reach its end",
                   .remedy = "leave failed trajectories out, or begin from other weights"});
    }
    throw Error(ErrorKind::invalid_argument, {.field = "trajectories", .found = "one that failed"});
  }

  cpu::EnginePlan plan_;
  std::shared_ptr<DifferentiableTile<T>> rhs_;
  std::size_t tiles_, tiles_per_group_, groups_;
  std::vector<T> weights_;
  std::vector<std::unique_ptr<Worker>> workers_;  // [thread], made when first needed
  std::vector<GroupSum> sums_;                    // [group]
  std::vector<AcceptedStep> common_steps_;
  std::vector<TrajectoryRecord> common_ends_;
  std::vector<double> states_, states_bar_;  // [trajectory][time][component], for a loss over all of them
  Gradients gradients_;
};

}  // namespace

void GradientEngine::set_initial_states(std::span<const double> states) {
  const bool finite = std::all_of(states.begin(), states.end(), [](double x) { return std::isfinite(x); });
  if (states.size() != problem_.initial_states.size() || !finite) {
    throw Error(ErrorKind::invalid_argument,
                {.field = "initial_states",
                 .found = finite ? std::to_string(states.size()) + " numbers" : "numbers that are not finite",
                 .expected = std::to_string(problem_.initial_states.size()) + " finite numbers"});
  }
  std::copy(states.begin(), states.end(), problem_.initial_states.begin());
}

double trajectory_loss(const Loss& loss, std::size_t trajectory, std::span<const double> states,
                       std::span<double> gradient, std::size_t components) {
  if (const auto* callback = std::get_if<TrajectoryLoss>(&loss)) return (*callback)(trajectory, states, gradient);
  const SquaredError& squares = std::get<SquaredError>(loss);
  const double* targets = squares.targets.data() + trajectory * states.size();
  // Eight sums side by side, added in halves.
  double sums[8] = {};
  for (std::size_t i = 0; i < states.size(); ++i) {
    const double weight = squares.scale * (squares.weights.empty() ? 1.0 : squares.weights[i % components]);
    const double difference = states[i] - targets[i];
    sums[i % 8] = std::fma(weight * difference, difference, sums[i % 8]);
    gradient[i] = 2 * weight * difference;
  }
  for (int half = 4; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) sums[i] += sums[i + half];
  }
  return sums[0];
}

std::unique_ptr<GradientEngine> make_gradient_engine(Problem problem, Options options, Loss loss,
                                                     GradientOptions gradient_options) {
  if (options.precision == Precision::f32) {
    return std::make_unique<Engine<float>>(std::move(problem), std::move(options), std::move(loss),
                                           std::move(gradient_options));
  }
  return std::make_unique<Engine<double>>(std::move(problem), std::move(options), std::move(loss),
                                          std::move(gradient_options));
}

}  // namespace lockstep::ode::detail
