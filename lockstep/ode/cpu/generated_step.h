// A step of any method together with a right-hand side that is arithmetic and calls alone, as machine code generated
// when a solve begins: its stages stay in registers, as those of the systems in inlined.cpp do. The same bits as the
// general kernels.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "lockstep/kernels/generated/lane_code.h"
#include "lockstep/ode/cpu/inlined.h"
#include "lockstep/ode/detail/graph_inputs.h"

namespace lockstep::ode::cpu {

// The arrays that the code is handed.
enum GeneratedBase : std::uint8_t {
  kStateBase,
  kNewStateBase,
  kStagesBase,
  kParametersBase,
  kStepBase,   // a row: the step's size
  kErrorBase,  // float64: error_squared; float32: rows of the two sums of squares and of the checks
  kTimesBase,  // a row for each stage, where time is read
};

// One step as code for several numbers of registers that take turns, the most first. What is left of a tile by one goes
// to the next; the last takes all of its rest. Three go to code for four, which takes no longer than two and one: the
// fourth register, of the same tile, holds no trajectories.
class TurnsOfCode {
 public:
  // Null adds nothing.
  void add(std::shared_ptr<const LaneCode> code) {
    if (code != nullptr) codes_.push_back(std::move(code));
  }
  bool empty() const { return codes_.empty(); }

  template <class T>
  void run(const std::array<T*, LaneProgram::kMostBases>& bases, std::size_t registers, std::size_t lanes,
           std::size_t repeats = 1) const {
    for (std::size_t i = 0, first = 0; i < codes_.size() && first < registers; ++i) {
      const std::size_t left = registers - first, together = codes_[i]->together();
      const bool takes_all = i + 1 == codes_.size() || (together == 4 && left % 4 == 3);
      const std::size_t taken = takes_all ? left : left / together * together;
      if (taken == 0) continue;
      std::array<T*, LaneProgram::kMostBases> from = bases;
      for (T*& base : from) base += base == nullptr ? 0 : first * lanes;
      codes_[i]->run(from.data(), taken, repeats);
      first += taken;
    }
  }

 private:
  std::vector<std::shared_ptr<const LaneCode>> codes_;
};

// The right-hand side's code for one lane (ArithmeticTile::one_lane()), and what its inputs are.
struct OneLaneCode {
  std::shared_ptr<const LaneCode> code;
  std::vector<detail::GraphSource> sources;  // [input]
};

// Either the code of whole steps, or of the right-hand side for one trajectory alone.
template <class T>
struct GeneratedStep {
  OneLaneCode one_lane;
  TurnsOfCode attempt;
  // One fixed step from state and first stage, in kStateBase and kStagesBase, to the next ones in their place. Empty
  // where time is read, or where steps are not fixed.
  TurnsOfCode fixed;
  bool reads_time = false;
};

// A trajectory alone has one component beside another in a register, from so many on: with fewer, the copies cost
// more than they save.
inline constexpr std::size_t kFewestPacked = 16;

template <class T>
bool takes_one_lane(const StepSettings<T>& settings, std::size_t components) {
  return settings.one_lane && components >= kFewestPacked;
}

// Null where the right-hand side is not arithmetic alone, the step would be long, or no code can be had. `settings` is
// the solve's. The right-hand side keeps it for the next solve with them.
template <class T>
std::shared_ptr<const GeneratedStep<T>> generate_step(const StepSettings<T>& settings, std::size_t components,
                                                      CpuTarget target);

// What earlier solves with this right-hand side and settings left.
template <class T>
struct KeptStep {
  bool possible = false;  // false: generate_step() gives nothing
  std::shared_ptr<const GeneratedStep<T>> code;
  std::int64_t steps = 0;  // of tiles, that they made without it
};
template <class T>
KeptStep<T> kept_step(const StepSettings<T>& settings, std::size_t components);
// Adds to KeptStep::steps.
template <class T>
void note_kept_steps(const StepSettings<T>& settings, std::size_t components, std::int64_t steps);

// What calls the code of StepSettings::generated.
template <class T>
const InlinedKernels<T>& generated_kernels(CpuTarget target);

}  // namespace lockstep::ode::cpu
