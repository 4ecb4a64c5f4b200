// A model's file and words about it: loaded, its nodes listed, named in errors.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/precision.h"
#include "lockstep/kernels/cpu_target.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/plan_file.h"
#include "lockstep/nn/safetensors.h"

namespace lockstep::cli {

// Name and text of each node, in the order of computing: "dense 3 -> 100". What a node reads is named where
// it is not the value just before it; output ports follow where one shows another value than the last.
std::vector<std::pair<std::string, std::string>> node_lines(const nn::Model& model);

// "1,234 parameters, float32": how many, and how they are stored; "no parameters".
std::string parameters_text(const nn::Model& model);

// Whether this machine has the instruction set, and what is said before the description of a plan that is for any
// machine, "for the best of any machine, here ", or that this one cannot run, where the description is that of its own
// best one: "for neon, which this machine lacks; here it would be: ".
bool is_available(CpuTarget target);
std::string made_for_text(const nn::PlanFile& plan);

// The error with the file in its field, where it is about the model and does not name the file yet: "net.h5", or
// "net.h5: NODE".
Error naming_file(const Error& error, const std::filesystem::path& path);

// What `work` returns; errors about the model name its file.
template <class Work>
auto in_model_file(const std::filesystem::path& path, Work work) {
  try {
    return work();
  } catch (const Error& error) {
    throw naming_file(error, path);
  }
}

// A model file, or a problem file for the model that its equations are; with the activations that the user gave, if
// any, by the flag or key `given_by`, which messages name.
nn::Model load_model(const std::filesystem::path& path, const std::optional<std::string>& activations,
                     const std::string& given_by = "--activations",
                     nn::UnreadableOutputs unreadable = nn::UnreadableOutputs::refuse);

// The arithmetic that a file asks for: [method] precision of a problem file, which a model file has not: f32.
Precision own_precision(const std::filesystem::path& path);

// What `flag` says (f32 or f64), if it was given; else own_precision().
Precision chosen_precision(const std::optional<std::string>& flag, const std::filesystem::path& path);

// Of --precision.
inline constexpr const char* kPrecisionHelp = "arithmetic: f32 or f64 [f32; of a problem file what [method] says]";

}  // namespace lockstep::cli
