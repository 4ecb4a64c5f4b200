#include "lockstep/cli/derivative_flag.h"

#include <utility>

#include "lockstep/cli/flag_checks.h"
#include "lockstep/nn/derivative_model.h"

namespace lockstep::cli {

void add_derivative(CLI::App& command, std::optional<std::string>& derivative) {
  command.add_option("--derivative", derivative, "the net with its derivative: jvp, vjp or jacobian")
      ->check(one_of({"jvp", "vjp", "jacobian"}));
}

nn::Model with_derivative(nn::Model model, const std::optional<std::string>& derivative) {
  if (!derivative) return model;
  return nn::derivative_model(model, *nn::parse_derivative(*derivative));
}

}  // namespace lockstep::cli
