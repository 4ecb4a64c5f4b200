// Gradients by the discrete adjoint on the CPU: tiles of trajectories are solved and transposed on threads, and what
// they add is summed in an order that the problem alone decides.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/core/parallel.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/cpu/adjoint_sample.h"
#include "lockstep/ode/cpu/adjoint_tile.h"
#include "lockstep/ode/cpu/engine.h"
#include "lockstep/ode/cpu/long_steps.h"
#include "lockstep/ode/detail/gradient_engine.h"
#include "lockstep/ode/methods.h"

namespace lockstep::ode::detail {
namespace {

// Trajectories are summed in at most this many groups of whole tiles, whose sums meet in a tree: the problem alone
// decides the order, not the threads.
constexpr std::size_t kMostGroups = 64;

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
        rhs_(*problem_.rhs, method(options_.method), plan_.target),
        tiles_((problem_.trajectories() + kTileLanes - 1) / kTileLanes),
        tiles_per_group_((tiles_ + kMostGroups - 1) / kMostGroups),
        groups_(tiles_ == 0 ? 0 : (tiles_ + tiles_per_group_ - 1) / tiles_per_group_),
        weight_count_(rhs_.function->weights()),
        has_own_weights_(rhs_.begins_with_own_weights()) {
    plan_.threads = std::max(1, std::min(plan_.threads, static_cast<int>(groups_)));
    workers_.resize(static_cast<std::size_t>(plan_.threads));
    sums_.resize(groups_);
    const std::size_t count = problem_.trajectories();
    if (groups_ == 0) gradients_.weights.resize(weight_count_);
    gradients_.initial_states.resize(problem_.initial_states.size());
    gradients_.parameters.resize(problem_.parameters.size());
    gradients_.records.resize(count);
    if (gradient_options_.keep == GradientOptions::Keep::steps) gradients_.steps.resize(count);
    order_.resize(groups_);
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    worker(0);
  }

  std::size_t weights() const override { return weight_count_; }
  void set_weights(std::span<const double> weights) override {
    has_own_weights_ = false;
    weights_.resize(weight_count_);
    std::transform(weights.begin(), weights.end(), weights_.begin(), [](double w) { return static_cast<T>(w); });
    rhs_.set_weights(weights_);
  }
  void set_own_weights() override {
    if (has_own_weights_) return;
    GradientEngine::set_own_weights();
    has_own_weights_ = true;
  }

  const Gradients& evaluate(const RunControl& control, Derivatives derivatives) override {
    derivatives_ = derivatives;
    common_ = find_common_steps<T>(problem_, options_, plan_, rhs_, control);
    long_steps_.clear();
    const auto* ensemble = std::get_if<EnsembleLoss>(&loss_);
    std::optional<double> ensemble_loss;
    if (ensemble != nullptr) {
      states_.resize(problem_.trajectories() * row());
      states_bar_.assign(states_.size(), 0.0);
      for_each_group(control, [&](Worker& worker, std::size_t tile) { collect_states(worker, tile); });
      ensemble_loss = (*ensemble)(states_, states_bar_);
    }
    for_each_group(control, [&](Worker& worker, std::size_t tile) { differentiate(worker, tile); });
    order_groups();
    for (std::size_t stride = 1; stride < groups_; stride *= 2) {
      for (std::size_t i = 0; i + stride < groups_; i += 2 * stride) sums_[i].add(sums_[i + stride]);
    }
    if (groups_ != 0) {
      gradients_.loss = ensemble_loss.value_or(sums_[0].loss);
      gradients_.left_out = sums_[0].left_out;
      if (derivatives_ == Derivatives::all) gradients_.weights.swap(sums_[0].weights);
      if (derivatives_ == Derivatives::all && shares_parameters()) gradients_.parameters = sums_[0].parameters;
    }
    if (gradient_options_.check_steps) {
      gradients_.unresolved =
          cpu::find_unresolved<T>(problem_, options_, rhs_, plan_.target, common_, long_steps_, control);
    }
    if (gradient_options_.failed == FailedTrajectories::stop && gradients_.left_out != 0) refuse_failure();
    return gradients_;
  }
  Gradients take() override { return std::move(gradients_); }

  void take_trajectories() override {
    for (const std::unique_ptr<Worker>& worker : workers_) {
      if (!worker) continue;
      worker->tile.take_trajectories();
      choose_sample(*worker);
    }
  }

  std::vector<std::string> explain() const override {
    const cpu::RecordPlan& plan = workers_[0]->tile.plan();
    const std::size_t stages = workers_[0]->stages;
    const double step_bytes = static_cast<double>(stages * problem_.rhs->components() * kTileLanes * sizeof(T)) +
                              (plan.keep_recorded ? static_cast<double>(stages * rhs_.function->record_bytes()) : 0.0);
    std::vector<std::string> sentences;
    if (workers_[0]->sample) {
      sentences.push_back(
          "trajectories are taken one by one, vectorised over neurons, and keep every activation; one "
          "that needs more than 32 MiB for that goes the way of larger ensembles:");
    }
    sentences.push_back("a discrete adjoint: accepted steps are recorded and transposed, their sizes are constants");
    sentences.push_back((plan_.threads == 1 ? "one thread" : "each of " + std::to_string(plan_.threads) + " threads") +
                        " keeps the stages of up to " + std::to_string(plan.segment_steps) +
                        " steps of 32 trajectories, " + std::to_string(static_cast<std::size_t>(step_bytes)) +
                        " bytes a step" + (plan.keep_recorded ? ", hidden activations included" : ""));
    sentences.push_back("longer solves keep up to " + std::to_string(plan.most_checkpoints) +
                        " checkpoints and compute the steps between them again");
    if (!plan.keep_recorded && rhs_.function->record_bytes() != 0) {
      sentences.push_back("hidden activations are computed again on the way back");
    }
    return sentences;
  }

 private:
  // A thread's own.
  struct Worker {
    Worker(const Problem& problem, const Options& options, const cpu::DifferentiableRhs<T>& rhs, CpuTarget target,
           std::size_t bytes, std::size_t row)
        : tile(problem, options, rhs, target, bytes),
          stages(tile.kept_stages()),
          states(row),
          bar(row),
          states_bar(kTileLanes * row + kSlack),
          gradient(rhs.function->weights()) {}
    static constexpr std::size_t kSlack = 1024;  // numbers past the end that may be read
    cpu::AdjointTile<T> tile;
    std::optional<cpu::AdjointSample<T>> sample;  // where trajectories are taken one by one
    std::size_t stages;
    std::vector<double> states, bar;  // of one trajectory
    std::vector<T> states_bar;        // [lane][time][component]
    AlignedBuffer<T> gradient;        // [weight]
    GroupSum* sum = nullptr;
    const CancelToken* cancel = nullptr;

    void stop_if_cancelled() const {
      if (cancel == nullptr || !cancel->requested()) return;
      throw Error(ErrorKind::cancelled, {.found = "a gradient stopped by its caller"});
    }
  };

  static bool counts(Status status) { return status == Status::success || status == Status::terminated; }
  bool is_differentiated(Status status) const {
    return counts(status) || gradient_options_.failed == FailedTrajectories::count_until_then;
  }
  std::size_t row() const { return problem_.save_points() * problem_.rhs->components(); }
  bool shares_parameters() const {
    return problem_.trajectories() > 1 && problem_.parameters.size() == problem_.rhs->parameters();
  }

  Worker& worker(int thread) {
    auto& slot = workers_[static_cast<std::size_t>(thread)];
    if (!slot) {
      slot = std::make_unique<Worker>(problem_, options_, rhs_, plan_.target, bytes_of_thread(), row());
      choose_sample(*slot);
      if (gradient_options_.check_steps) slot->tile.note_long_steps();
    }
    return *slot;
  }
  std::size_t bytes_of_thread() const {
    return gradient_options_.memory_bytes / static_cast<std::size_t>(plan_.threads);
  }
  void choose_sample(Worker& worker) const {
    const bool has_ends = problem_.event || !problem_.resets.empty() || std::holds_alternative<EndLoss>(loss_);
    // Taken one by one they may need all that a sample's records may take.
    const bool suits = !has_ends && bytes_of_thread() >= cpu::SampleWork<T>::kMostBytes &&
                       cpu::AdjointSample<T>::suits(problem_, options_, *rhs_.function, worker.tile.has_stops());
    if (!suits) {
      worker.sample.reset();
    } else if (!worker.sample) {
      worker.sample.emplace(problem_, options_, *rhs_.function->sample(), plan_.target);
    }
  }

  // body(worker, tile) for all tiles, those of a group in order.
  template <class Body>
  void for_each_group(const RunControl& control, const Body& body) {
    std::atomic<std::size_t> next{0};
    run_on_threads(plan_.threads, [&](int thread) {
      Worker& mine = worker(thread);
      mine.tile.stop_when(control.cancel);
      mine.cancel = control.cancel;
      for (std::size_t place = next++; place < groups_; place = next++) {
        const std::size_t group = order_[place];
        mine.sum = &sums_[group];
        mine.sum->loss = 0;
        mine.sum->left_out = 0;
        mine.sum->weights.assign(weight_count_, 0.0);
        mine.sum->parameters.assign(shares_parameters() ? problem_.rhs->parameters() : 0, 0.0);
        const std::size_t end = std::min(tiles_, (group + 1) * tiles_per_group_);
        for (std::size_t tile = group * tiles_per_group_; tile < end; ++tile) {
          mine.stop_if_cancelled();
          body(mine, tile);
        }
      }
    });
  }

  // The next evaluation, whose weights will differ little, begins with the groups that took the most steps: the short
  // ones at the end keep all threads busy to it. Sums do not depend on the order.
  void order_groups() {
    std::vector<std::int64_t> steps(groups_, 0);
    for (std::size_t tile = 0; tile < tiles_; ++tile) {
      const std::size_t first = tile * kTileLanes, end = std::min(problem_.trajectories(), first + kTileLanes);
      std::int64_t slowest = 0;
      for (std::size_t i = first; i < end; ++i) {
        const TrajectoryRecord& record = gradients_.records[i];
        slowest = std::max(slowest, std::int64_t{record.accepted} + record.rejected);
      }
      steps[tile / tiles_per_group_] += slowest;
    }
    std::stable_sort(order_.begin(), order_.end(), [&](std::size_t a, std::size_t b) { return steps[a] > steps[b]; });
  }

  int forward(Worker& worker, std::size_t tile) {
    const std::size_t first = tile * kTileLanes;
    const std::size_t lanes = std::min<std::size_t>(kTileLanes, problem_.trajectories() - first);
    worker.tile.forward(first, static_cast<int>(lanes), common_.steps, common_.ends_of(first, lanes));
    return static_cast<int>(lanes);
  }

  void collect_states(Worker& worker, std::size_t tile) {
    const std::size_t first = tile * kTileLanes;
    const auto keep = [&](std::size_t trajectory, const T* states) {
      std::copy_n(states, row(), states_.begin() + static_cast<std::ptrdiff_t>(trajectory * row()));
    };
    std::size_t done = 0;
    while (worker.sample && done < problem_.trajectories() && worker.sample->forward(done)) {
      keep(done, worker.sample->states().data());
      ++done;
    }
    if (worker.sample && done == problem_.trajectories()) return;
    const int lanes = forward(worker, tile);
    for (int lane = 0; lane < lanes; ++lane) {
      keep(first + static_cast<std::size_t>(lane),
           worker.tile.states().data() + static_cast<std::size_t>(lane) * row());
    }
  }

  // Loss and cotangents [time][component] of the saved states of one trajectory; zeros where it failed.
  // `tile_lane`: where the trajectory is in the worker's tile; none when it was taken alone.
  void differentiate_loss(Worker& worker, std::size_t trajectory, const T* states, const TrajectoryRecord& record,
                          T* out, std::optional<int> tile_lane = {}) {
    gradients_.records[trajectory] = record;
    const std::size_t n = problem_.rhs->components();
    const std::size_t reached = (tile_lane ? worker.tile.saved(*tile_lane) : worker.sample->saved()) * n;
    if (!counts(record.status)) ++worker.sum->left_out;
    if (!is_differentiated(record.status)) {
      std::fill_n(out, row(), T(0));
    } else if (const auto* squares = std::get_if<SquaredError>(&loss_)) {
      worker.sum->loss +=
          adjoint_.squared_error(states, squares->targets.data() + trajectory * row(), loss_weights_of(trajectory),
                                 loss_thresholds_of(trajectory), reached, out);
    } else if (const auto* callback = std::get_if<TrajectoryLoss>(&loss_)) {
      std::copy_n(states, row(), worker.states.data());
      std::fill(worker.bar.begin(), worker.bar.end(), 0.0);
      worker.sum->loss += (*callback)(trajectory, worker.states, worker.bar);
      std::transform(worker.bar.begin(), worker.bar.end(), out, [](double x) { return static_cast<T>(x); });
    } else if (const auto* end_loss = std::get_if<EndLoss>(&loss_)) {
      std::copy_n(states, row(), worker.states.data());
      std::fill(worker.bar.begin(), worker.bar.end(), 0.0);
      std::vector<double> end_state(n), end_bar(n);
      for (std::size_t c = 0; c < n; ++c) end_state[c] = static_cast<double>(worker.tile.end_state(*tile_lane, c));
      EndSlopes slopes{worker.bar, end_bar, 0};
      worker.sum->loss += (*end_loss)(trajectory, worker.states,
                                      {record.status == Status::terminated, record.end_time, end_state}, slopes);
      worker.tile.set_end_bar(*tile_lane, end_bar, slopes.end_time);
      std::transform(worker.bar.begin(), worker.bar.end(), out, [](double x) { return static_cast<T>(x); });
    } else {
      std::transform(states_bar_.begin() + static_cast<std::ptrdiff_t>(trajectory * row()),
                     states_bar_.begin() + static_cast<std::ptrdiff_t>((trajectory + 1) * row()), out,
                     [](double x) { return static_cast<T>(x); });
    }
    std::fill(out + reached, out + row(), T(0));
  }

  void differentiate(Worker& worker, std::size_t tile) {
    std::fill_n(worker.gradient.data(), worker.gradient.size(), T(0));
    if (!worker.sample || !differentiate_samples(worker)) differentiate_tile(worker, tile);
    for (std::size_t i = 0; i < worker.gradient.size() && derivatives_ == Derivatives::all; ++i) {
      worker.sum->weights[i] += static_cast<double>(worker.gradient[i]);
    }
  }

  // False when a trajectory is too long for its record: the tile keeps checkpoints.
  bool differentiate_samples(Worker& worker) {
    for (std::size_t trajectory = 0; trajectory < problem_.trajectories(); ++trajectory) {
      worker.stop_if_cancelled();
      if (!worker.sample->forward(trajectory)) {
        long_steps_.clear();
        worker.sum->loss = 0;
        worker.sum->left_out = 0;
        std::fill(worker.sum->parameters.begin(), worker.sum->parameters.end(), 0.0);
        std::fill_n(worker.gradient.data(), worker.gradient.size(), T(0));
        return false;
      }
      T* const bar = worker.states_bar.data();
      differentiate_loss(worker, trajectory, worker.sample->states().data(), worker.sample->record(), bar);
      if (gradient_options_.check_steps) long_steps_.offer(worker.sample->long_steps().data());
      if (derivatives_ == Derivatives::none) continue;
      if (!gradients_.steps.empty()) gradients_.steps[trajectory] = worker.sample->steps();
      const bool good = is_differentiated(worker.sample->record().status);
      if (good) worker.sample->backward(bar, worker.gradient.data());
      keep_inputs(
          worker, trajectory, [&](std::size_t c) { return good ? worker.sample->initial_state_bar(c) : T(0); },
          [&](std::size_t i) { return good ? worker.sample->parameter_bar(i) : T(0); });
    }
    return true;
  }

  void differentiate_tile(Worker& worker, std::size_t tile) {
    const int lanes = forward(worker, tile);
    std::fill(worker.states_bar.begin(), worker.states_bar.end(), T(0));
    for (int lane = 0; lane < lanes; ++lane) {
      const std::size_t trajectory = tile * kTileLanes + static_cast<std::size_t>(lane);
      const std::size_t at = static_cast<std::size_t>(lane) * row();
      differentiate_loss(worker, trajectory, worker.tile.states().data() + at, worker.tile.record(lane),
                         worker.states_bar.data() + at, lane);
      if (gradient_options_.check_steps) long_steps_.offer(worker.tile.long_steps(lane));
      if (!gradients_.steps.empty()) gradients_.steps[trajectory] = worker.tile.steps_of(lane);
    }
    if (derivatives_ == Derivatives::none) return;
    worker.tile.backward(worker.states_bar, worker.gradient.empty() ? nullptr : worker.gradient.data());
    for (int lane = 0; lane < lanes; ++lane) {
      keep_inputs(
          worker, tile * kTileLanes + static_cast<std::size_t>(lane),
          [&](std::size_t c) { return worker.tile.initial_state_bar(lane, c); },
          [&](std::size_t i) { return worker.tile.parameter_bar(lane, i); });
    }
  }

  void keep_inputs(Worker& worker, std::size_t trajectory, const auto& state_bar, const auto& parameter_bar) {
    const std::size_t n = problem_.rhs->components(), m = problem_.rhs->parameters();
    for (std::size_t c = 0; c < n; ++c) {
      gradients_.initial_states[trajectory * n + c] = static_cast<double>(state_bar(c));
    }
    for (std::size_t i = 0; i < m; ++i) {
      const auto bar = static_cast<double>(parameter_bar(i));
      if (shares_parameters()) {
        worker.sum->parameters[i] += bar;
      } else {
        gradients_.parameters[trajectory * m + i] = bar;
      }
    }
  }

  [[noreturn]] void refuse_failure() const {
    for (std::size_t i = 0; i < gradients_.records.size(); ++i) {
      const TrajectoryRecord& record = gradients_.records[i];
      if (counts(record.status)) continue;
      throw Error(ErrorKind::invalid_argument,
                  {.field = "trajectory " + std::to_string(i),
                   .found = std::string(to_string(record.status)) + " at t = " + number_text(record.end_time),
                   .expected = "every trajectory to reach its end",
                   .remedy = "leave failed trajectories out, or begin from other weights"});
    }
    throw Error(ErrorKind::invalid_argument, {.field = "trajectories", .found = "one that failed"});
  }

  cpu::EnginePlan plan_;
  const cpu::AdjointKernels<T>& adjoint_ = cpu::adjoint_kernels<T>(plan_.target);
  cpu::DifferentiableRhs<T> rhs_;
  std::size_t tiles_, tiles_per_group_, groups_;
  std::size_t weight_count_;
  bool has_own_weights_;                          // the function's, in what it was made into
  std::vector<T> weights_;                        // that were set
  std::vector<std::unique_ptr<Worker>> workers_;  // [thread], made when first needed
  std::vector<GroupSum> sums_;                    // [group]
  std::vector<std::size_t> order_;                // in which groups are begun
  CommonSteps common_;
  cpu::LongSteps<T> long_steps_;                // where somebody asks for them
  Derivatives derivatives_ = Derivatives::all;  // of this evaluation
  std::vector<double> states_, states_bar_;     // [trajectory][time][component], for a loss over all of them
  Gradients gradients_;
};

}  // namespace

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
