#include "lockstep/cli/derivative_flag.h"

#include "lockstep/cli/flag_checks.h"
#include "lockstep/cli/model_text.h"
#include "lockstep/nn/derivative_model.h"

namespace lockstep::cli {

void add_derivative(CLI::App& command, std::optional<std::string>& derivative) {
  command.add_option("--derivative", derivative, "the net with its derivative: jvp, vjp or jacobian")
      ->check(one_of({"jvp", "vjp", "jacobian"}));
}

nn::Model load_with_derivative(const std::filesystem::path& path, const std::optional<std::string>& activations,
                               const std::optional<std::string>& derivative) {
  nn::Model model = load_model(path, activations);
  if (!derivative) return model;
  return in_model_file(path, [&] { return nn::derivative_model(model, *nn::parse_derivative(*derivative)); });
}

}  // namespace lockstep::cli
