// From what [event] and [[resets]] say to functions of the state, and the forms in which a result file keeps them.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "lockstep/cli/event_section.h"
#include "lockstep/cli/resets_section.h"
#include "lockstep/cli/right_hand_side.h"
#include "lockstep/ode/problem.h"

namespace lockstep::cli {

// The function of an event without the names in it.
struct EventForm {
  std::vector<std::byte> model;  // of an expression, as a plan file; else it is
  std::size_t component = 0;     // less
  double value = 0;
};

struct ResetForm {
  EventForm event;
  std::vector<std::byte> state;  // a plan file
  std::string text;              // for people: "x = 0, v = -0.9 * v where x falls through 0"
};

struct MadeEvent {
  ode::TerminalEvent event;
  EventForm form;
  bool reads_time = false;
  std::vector<std::string> nets;  // with a training range that it calls, each as often as it does
};

struct MadeReset {
  ode::Reset reset;
  ResetForm form;
  bool reads_time = false;        // where it strikes, or what becomes of the state
  std::vector<std::string> nets;  // with a training range that either calls, each as often as they do
};

// Throw Error (invalid_argument) naming file, line and key: a component that there is not, an expression that is none
// or whose sign cannot change.
MadeEvent make_event(const EventSection& section, const NamedRhs& rhs);
MadeReset make_reset(const ResetSection& section, const NamedRhs& rhs);

// "2 resets: v = -v where x falls through 0; ...", "" for none: for people.
std::string text_of_resets(std::span<const ResetForm> resets);
// Those of each.
std::vector<std::string> texts_of_resets(std::span<const ResetForm> resets);

// The functions again. `text` describes what the model makes; throw Error as nn::read_plan() and ode::graph_function().
ode::Rhs function_of(const EventForm& form, const ode::Rhs& rhs, const std::string& text, const std::string& source);
ode::Rhs state_of(const ResetForm& form, const ode::Rhs& rhs, const std::string& source);

}  // namespace lockstep::cli
