// --derivative of `lockstep export` and `lockstep compile`.
#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <string>

#include "lockstep/nn/model.h"

namespace lockstep::cli {

void add_derivative(CLI::App& command, std::optional<std::string>& derivative);

// load_model(), or the derivative of that name of what it loads; errors about either name the file.
nn::Model load_with_derivative(const std::filesystem::path& path, const std::optional<std::string>& activations,
                               const std::optional<std::string>& derivative);

}  // namespace lockstep::cli
