// Plan files: a model that was read, checked and folded once, with the precision and instruction set it is meant for. A
// host loads one in less than the time of reading a model: no parser, no format of others, one checksum.
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

// The versions written and read: 2 of models with guarded calls, 1 of all others. Plan files are made anew from the
// model, not kept.
inline constexpr std::uint32_t kPlanFileVersion = 1, kPlanFileVersionWithCalls = 2;

struct PlanFile {
  Model model;  // without metadata and notes; provenance is that of the model's file
  Precision precision = Precision::f32;
  CpuTarget target = CpuTarget::scalar;
};

// Written for any target, whether this machine has it or not. Throws Error (model) for an invalid model, (file) when
// the file cannot be written.
void write_plan(const std::filesystem::path& path, const PlanFile& plan, Existing existing = Existing::refuse);
std::vector<std::byte> plan_bytes(const PlanFile& plan);

// What the file holds, for any machine; compile<float> or compile<double> of `model` for `target`, as `precision` says,
// is the plan. Throws Error (file) when the file cannot be read, (unsupported) for another version, (model) when it was
// damaged. For running it here, require_cpu_target(plan.target) refuses a machine without that instruction set.
PlanFile read_plan(const std::filesystem::path& path);
PlanFile read_plan(std::span<const std::byte> bytes, const std::string& source);

// Do the bytes begin like a plan file?
bool is_plan_file(std::span<const std::byte> bytes);

}  // namespace lockstep::nn
