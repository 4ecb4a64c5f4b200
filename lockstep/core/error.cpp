#include "lockstep/core/error.h"

#include <utility>

#include "lockstep/core/printable.h"

namespace lockstep {
namespace {

std::string message(const Error::Parts& parts) {
  std::string text = printable(parts.field, LineBreaks::escape);  // a name, of a file perhaps
  const auto add = [&](const char* separator, const char* word, const std::string& part) {
    if (part.empty()) return;
    if (!text.empty()) text += separator;
    text += word + part;
  };
  add(": ", "found ", parts.found);
  add(parts.found.empty() ? ": " : ", ", "expected ", parts.expected);
  add("; ", "", parts.remedy);
  return printable(text, LineBreaks::keep);
}

}  // namespace

Error::Error(ErrorKind kind, Parts parts) : std::runtime_error(message(parts)), kind_(kind), parts_(std::move(parts)) {}

}  // namespace lockstep
