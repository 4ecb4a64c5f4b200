#include "lockstep/core/printable.h"

namespace lockstep {

std::string printable(std::string_view text, LineBreaks breaks) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string shown;
  // Those of Unicode, U+0080 to U+009F, are two bytes in UTF-8, and steer terminals too.
  const auto upper_control = [&](std::size_t i) {
    return i + 1 < text.size() && text[i] == '\xc2' && static_cast<unsigned char>(text[i + 1]) >= 0x80 &&
           static_cast<unsigned char>(text[i + 1]) < 0xa0;
  };
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool keeps = breaks == LineBreaks::keep && (text[i] == '\n' || text[i] == '\t');
    const bool control = (byte < 0x20 && !keeps) || byte == 0x7f || upper_control(i) || (i > 0 && upper_control(i - 1));
    if (!control) {
      shown += text[i];
      continue;
    }
    shown += "\\x";
    shown += kDigits[byte >> 4];
    shown += kDigits[byte & 15];
  }
  return shown;
}

}  // namespace lockstep
