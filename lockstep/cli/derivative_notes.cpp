#include "lockstep/cli/derivative_notes.h"

#include <cstddef>

#include "lockstep/core/resolved_text.h"
#include "lockstep/core/text.h"
#include "lockstep/ode/trained_parameters.h"

namespace lockstep::cli {

std::string state_jump_text(const std::string& consequence) {
  return "the right-hand side jumps where a state passes a value, as in if(x < 1, ..), and derivatives do not see that "
         "trajectories come there earlier or later: " +
         consequence + "; write a ramp in its place, clamp((x - 1) / width, 0, 1)";
}

std::string moved_jump_text(const std::string& who, const std::string& parameter) {
  return who + " does not see what " + parameter + " does by moving a jump, if(t < " + parameter +
         ", ..): write a ramp in its place, clamp((t - " + parameter + ") / width, 0, 1)";
}

std::string unresolved_text(const ode::UnresolvedDerivatives& of, const std::string& trajectory,
                            const ode::Options& options) {
  const bool fixed = options.control == ode::StepControl::fixed;
  return "steps are too long for them, as that of " + rounded_text(of.h, 3) + " from t = " + resolved_text(of.t, of.h) +
         " of trajectory " + trajectory +
         " is, while its state, at rest there or without what would decay fast, does not show it; take " +
         (fixed ? "dt" : "max_step") + " = " + rounded_text(of.stable_step, 2) + ", or the method rodas5p";
}

std::string unstable_text(const ode::Options& options) {
  const bool fixed = options.control == ode::StepControl::fixed;
  const std::string stiff = options.method == "rodas5p" ? "" : "the method rodas5p where rates differ much, else ";
  return "the steps of these solves are unstable for derivatives; take " + stiff + "shorter steps, by a smaller " +
         (fixed ? "dt" : "rtol or a max_step");
}

std::vector<std::string> derivative_notes(const ode::StateFunction& rhs, const std::vector<std::string>& parameters) {
  std::vector<std::string> notes;
  if (rhs.jumps_at_states()) notes.push_back(state_jump_text("behind one they are wrong"));
  for (std::size_t i = 0; i < rhs.parameters() && rhs.moves_knots(); ++i) {
    if (!ode::moves_a_jump(rhs, i)) continue;
    const std::string name = i < parameters.size() ? parameters[i] : "parameter " + std::to_string(i);
    notes.push_back(moved_jump_text("the derivative by " + name, name));
  }
  return notes;
}

}  // namespace lockstep::cli
