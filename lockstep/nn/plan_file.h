// Plan files: a model that was read, checked and folded once, with the precision and instruction set it is meant for,
// or for the best of whichever machine loads it: the bits are the same. A host loads one in less than the time of
// reading a model: no parser, no format of others, one checksum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "lockstep/core/pending_file.h"
#include "lockstep/core/precision.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn {

// The versions written and read: 3 of plans for any machine, of the others 2 of models with guarded calls and 1 of
// those without. Plan files are made anew from the model, not kept.
inline constexpr std::uint32_t kPlanFileVersion = 1, kPlanFileVersionWithCalls = 2, kPlanFileVersionForAnyMachine = 3;

// Whose instruction set a plan is for.
enum class PlanFor {
  target,       // the one that is named
  any_machine,  // the best of the machine that loads the file
};

struct PlanFile {
  Model model;  // without metadata and notes; provenance is that of the model's file
  Precision precision = Precision::f32;
  CpuTarget target = CpuTarget::scalar;  // of a file for any machine, once read: the best of this one
  PlanFor made_for = PlanFor::target;
};

// Written for any target, whether this machine has it or not. Throws Error (model) for an invalid model, (file) when
// the file cannot be written.
void write_plan(const std::filesystem::path& path, const PlanFile& plan, Existing existing = Existing::refuse);
std::vector<std::byte> plan_bytes(const PlanFile& plan);

// What the file holds, for any machine; compile<float> or compile<double> of `model` for `target`, as `precision` says,
// is the plan. Throws Error (file) when the file cannot be read, (unsupported) for another version, (model) when it was
// damaged. For running it here, require_cpu_target(plan.target) refuses a machine without that instruction set, and
// never a plan for any machine.
PlanFile read_plan(const std::filesystem::path& path);
PlanFile read_plan(std::span<const std::byte> bytes, const std::string& source);

// Do the bytes begin like a plan file?
bool is_plan_file(std::span<const std::byte> bytes);

}  // namespace lockstep::nn
