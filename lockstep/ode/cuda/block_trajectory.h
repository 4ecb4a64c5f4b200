// One trajectory of a tile whose right-hand side a block of threads evaluates together: Trajectory cut open at its
// evaluations. Neighbours in a tile need not be in step: each says where it wants the next evaluation, whatever that is
// for, so that a trajectory that ends makes room for another at once and no evaluation of the tile is idle.
#pragma once

#include "lockstep/ode/cuda/scheme.h"
#include "lockstep/ode/cuda/trajectory.h"

namespace lockstep::ode::cuda {

// A derivative that is evaluated elsewhere, for states of at most most_components.
template <int most_components, class T>
class OutsideDerivative {
 public:
  static constexpr int kMostComponents = most_components;
  static constexpr int kMostParameters = 0;
  static constexpr int kMostGathered = 64;
  explicit LOCKSTEP_HOST_DEVICE OutsideDerivative(int components) : components_(components) {}
  LOCKSTEP_HOST_DEVICE int components() const { return components_; }
  // Trajectory names it; BlockTrajectory sees to it that it is never called.
  template <class U, class Du>
  LOCKSTEP_HOST_DEVICE void evaluate(double, const U&, const T*, const Du&) const {}

 private:
  int components_;
};

// What a trajectory waits for.
enum class Wanted { nothing, first, trial, stage, interpolant, renewal };

// Between evaluations: all of a BlockTrajectory that is not in its Memory.
template <class T>
struct SavedTrajectory {
  Progress<T> progress;
  Wanted wanted;
  int stage;
  LOCKSTEP_HOST_DEVICE bool busy() const { return wanted != Wanted::nothing; }
};

//   start(take);
//   while (busy()) { evaluate at argument(0 ...), time() into derivatives(); resume(take); }
//
// `take` gives the next trajectory nobody has taken, or one past the last.
// Derivative is an OutsideDerivative, with or without an event of its own.
template <class T, class Derivative, class Memory = ThreadMemory<T, TableScheme<T>, Derivative>>
class BlockTrajectory {
 public:
  using Saved = SavedTrajectory<T>;

  LOCKSTEP_HOST_DEVICE BlockTrajectory(const Ensemble<T>& ensemble, const StepRules<T>& rules,
                                       const EventRule<T>& event, const TableScheme<T>& scheme,
                                       const Derivative& derivative)
      : count_(ensemble.count), scheme_(scheme), trajectory_(ensemble, rules, event, scheme, derivative) {}
  LOCKSTEP_HOST_DEVICE BlockTrajectory(const Ensemble<T>& ensemble, const StepRules<T>& rules,
                                       const EventRule<T>& event, const TableScheme<T>& scheme,
                                       const Derivative& derivative, const Memory& memory)
      : count_(ensemble.count), scheme_(scheme), trajectory_(ensemble, rules, event, scheme, derivative, memory) {}

  static LOCKSTEP_HOST_DEVICE Saved idle() { return {{}, Wanted::nothing, 0}; }
  LOCKSTEP_HOST_DEVICE Saved save() const { return {trajectory_.progress(), wanted_, stage_}; }
  LOCKSTEP_HOST_DEVICE void restore(const Saved& saved) {
    wanted_ = saved.wanted;
    stage_ = saved.stage;
    if (busy()) trajectory_.restore(saved.progress);
  }

  LOCKSTEP_HOST_DEVICE bool busy() const { return wanted_ != Wanted::nothing; }

  // Where the next evaluation is wanted.
  LOCKSTEP_HOST_DEVICE T argument(int c) const {
    if (wanted_ == Wanted::first || wanted_ == Wanted::renewal) return trajectory_.state()[c];
    if (wanted_ == Wanted::interpolant) return trajectory_.interpolant_argument(stage_, c);
    return trajectory_.stage_state()[c];
  }
  LOCKSTEP_HOST_DEVICE double time() const {
    if (wanted_ == Wanted::first || wanted_ == Wanted::renewal) return trajectory_.start_time();
    if (wanted_ == Wanted::trial) return trajectory_.trial_time();
    return trajectory_.stage_time(stage_);
  }
  LOCKSTEP_HOST_DEVICE const T* parameters() const { return trajectory_.parameters(); }
  // Where its result belongs.
  LOCKSTEP_HOST_DEVICE typename Memory::Row derivatives() { return trajectory_.stage(stage_); }

  // Takes the next trajectory, if there is one.
  template <class Take>
  LOCKSTEP_HOST_DEVICE void start(const Take& take) {
    const std::int64_t next = take();
    wanted_ = next < count_ ? Wanted::first : Wanted::nothing;
    stage_ = 0;
    if (next < count_) trajectory_.load(next);
  }

  // Goes on with the result of the evaluation: to where the next one is wanted, of this trajectory or another.
  template <class Take>
  LOCKSTEP_HOST_DEVICE void resume(const Take& take) {
    if (!go_on()) start(take);
  }

 private:
  // False when the trajectory has ended.
  LOCKSTEP_HOST_DEVICE bool go_on() {
    switch (wanted_) {
      case Wanted::first:
        if (!trajectory_.start()) return false;
        if (trajectory_.needs_trial()) {
          trajectory_.prepare_trial();
          wanted_ = Wanted::trial;
          stage_ = 1;
          return true;
        }
        break;
      case Wanted::trial:
        trajectory_.finish_trial();
        break;
      case Wanted::stage: {
        if (stage_ + 1 < scheme_.stages()) {
          trajectory_.prepare_stage(++stage_);
          return true;
        }
        const auto verdict = trajectory_.judge();
        using Verdict = decltype(verdict);
        if (verdict == Verdict::ended) return false;
        if (verdict == Verdict::accepted && trajectory_.needs_interpolant()) {
          wanted_ = Wanted::interpolant;
          stage_ = scheme_.stages();
          return true;
        }
        if (!trajectory_.conclude(verdict == Verdict::accepted)) return false;
        if (verdict == Verdict::accepted && trajectory_.behind_jump()) return renew();
        break;
      }
      case Wanted::interpolant:
        if (stage_ + 1 < scheme_.stages() + scheme_.interpolant_stages()) {
          ++stage_;
          return true;
        }
        trajectory_.finish_interpolant();
        if (!trajectory_.conclude(true)) return false;
        if (trajectory_.behind_jump()) return renew();
        break;
      case Wanted::renewal:
        trajectory_.finish_renewal();
        break;
      case Wanted::nothing:
        return false;
    }
    trajectory_.propose();
    trajectory_.prepare_stage(stage_ = 1);
    wanted_ = Wanted::stage;
    return true;
  }

  LOCKSTEP_HOST_DEVICE bool renew() {
    wanted_ = Wanted::renewal;
    stage_ = 0;
    return true;
  }

  std::int64_t count_;
  const TableScheme<T>& scheme_;
  Trajectory<T, TableScheme<T>, Derivative, Memory> trajectory_;
  Wanted wanted_ = Wanted::nothing;
  int stage_ = 0;
};

}  // namespace lockstep::ode::cuda
