// Text that a terminal may be given, whoever wrote it.
#pragma once

#include <string>
#include <string_view>

namespace lockstep {

enum class LineBreaks {
  keep,    // and tabs: compilers' logs are shown whole
  escape,  // names are one line
};

// Names come from files that may be damaged or hostile: what would end the text early or steer the terminal (control
// characters of ASCII, and of Unicode in UTF-8) is shown as \xNN.
std::string printable(std::string_view text, LineBreaks breaks);

}  // namespace lockstep
