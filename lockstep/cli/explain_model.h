// `lockstep explain` of a model or plan file: what lowering makes of the net, and how long an evaluation takes here.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/cli/problem_file.h"

namespace lockstep::cli {

// Does the path hold a net, rather than a problem's text? Throws Error (file) when it cannot be read.
bool holds_a_net(const std::filesystem::path& path);

// Prints it. Of `overrides` a net takes precision and cpu_target. Throws Error (invalid_argument) for others and for
// activations of a plan file, (model, file, unsupported) when the file cannot be used here.
void explain_model(const std::filesystem::path& path, const ProblemOverrides& overrides,
                   const std::optional<std::string>& activations);

}  // namespace lockstep::cli
