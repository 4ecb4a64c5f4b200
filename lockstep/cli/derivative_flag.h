// --derivative of `lockstep export` and `lockstep compile`.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>

#include "lockstep/nn/model.h"

namespace lockstep::cli {

void add_derivative(CLI::App& command, std::optional<std::string>& derivative);

// The model, or its derivative of that name.
nn::Model with_derivative(nn::Model model, const std::optional<std::string>& derivative);

}  // namespace lockstep::cli
