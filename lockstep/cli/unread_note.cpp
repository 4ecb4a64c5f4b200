#include "lockstep/cli/unread_note.h"

#include <string_view>

#include "lockstep/cli/text.h"
#include "lockstep/nn/unread_names.h"

namespace lockstep::cli {

std::vector<nn::Equation> texts_of(const std::optional<EventSection>& event, std::span<const ResetSection> resets) {
  std::vector<nn::Equation> texts;
  if (event && event->function) texts.push_back(*event->function);
  for (const ResetSection& reset : resets) {
    if (reset.event.function) texts.push_back(*reset.event.function);
    texts.insert(texts.end(), reset.to.begin(), reset.to.end());
  }
  return texts;
}

std::optional<std::string> unread_note(const nn::Equations& system, std::span<const nn::Equation> others) {
  const std::vector<std::string> unread = nn::unread_names(system, others);
  if (unread.empty()) return std::nullopt;
  const bool one = unread.size() == 1;
  return list_text(std::vector<std::string_view>(unread.begin(), unread.end())) + (one ? " is" : " are") +
         " read by nothing: no equation, definition, event or reset names " + (one ? "it" : "them");
}

}  // namespace lockstep::cli
