// Machine code generated from a LaneProgram: values stay in registers from one operation to the next. The same bits as
// the operations one by one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "lockstep/core/precision.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/generated/lane_program.h"

namespace lockstep {

// Immutable; any number of threads may run it at once.
class LaneCode {
 public:
  // Null where there is no generator for the target (there is for avx2 and avx512), the system refuses executable
  // memory, the program is too long to be worth it, or the environment says LOCKSTEP_GENERATED_CODE=off.
  static std::shared_ptr<const LaneCode> compile(const LaneProgram& program, Precision precision, CpuTarget target);

  // The same for one lane, with rows of one number each. Up to 16 bytes beyond a row are read. Functions are handed
  // registers whose lowest number is the lane's; the others are any.
  static std::shared_ptr<const LaneCode> compile_one_lane(const LaneProgram& program, Precision precision,
                                                          CpuTarget target);

  // Whether compile() may give something for it.
  static bool available(CpuTarget target);

  LaneCode(const LaneCode&) = delete;
  LaneCode& operator=(const LaneCode&) = delete;
  ~LaneCode();

  // Over the first `registers` registers of the rows, rounded up to whole steps of the program, `repeats` times over
  // each before the next. Rows hold kTileLanes numbers of the program's precision.
  template <class T>
#if defined(__clang__)
  __attribute__((no_sanitize("function")))  // of which Clang 17 and newer look for the type in front of the entry
#endif
  void run(T* const* bases, std::size_t registers, std::size_t repeats = 1) const {
    reinterpret_cast<void (*)(T* const*, std::size_t, std::size_t)>(entry_)(
        bases, (registers + together_ - 1) / together_, repeats);
  }

  std::size_t together() const { return together_; }  // LaneProgram::together()
  std::size_t bytes() const { return bytes_; }  // of code and constants

 private:
  static std::shared_ptr<const LaneCode> map(const LaneProgram& program, std::span<const std::uint8_t> pool,
                                             std::span<const std::uint8_t> code);
  LaneCode(void* memory, std::size_t mapped, void* entry, std::size_t bytes, const LaneProgram& program)
      : memory_(memory),
        mapped_(mapped),
        entry_(entry),
        bytes_(bytes),
        together_(static_cast<std::size_t>(program.together())),
        functions_(program.functions()) {}

  void* memory_;
  std::size_t mapped_;
  void* entry_;
  std::size_t bytes_;
  std::size_t together_;
  std::vector<LaneFunction> functions_;  // whose contexts live as long as what calls them
};

}  // namespace lockstep
