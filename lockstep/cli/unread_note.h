// A note on parameters and definitions that are there for nothing.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "lockstep/cli/event_section.h"
#include "lockstep/cli/resets_section.h"
#include "lockstep/nn/equations.h"

namespace lockstep::cli {

// The expressions that events and resets are made of.
std::vector<nn::Equation> texts_of(const std::optional<EventSection>& event, std::span<const ResetSection> resets);

// "k is read by nothing: no equation, definition, event or reset names it"; none where all are read. `others`: what
// reads them beside the system's own texts.
std::optional<std::string> unread_note(const nn::Equations& system, std::span<const nn::Equation> others);

}  // namespace lockstep::cli
