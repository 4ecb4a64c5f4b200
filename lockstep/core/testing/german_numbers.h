// For tests of what a host program's locale must not change: one that writes 0,5 for 0.5, as desktop toolkits set.
#pragma once

#include <clocale>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace lockstep {

// The C library writes decimal commas from now on. The locale is compiled in `folder` where the machine has none; false
// where that fails, too.
inline bool set_german_numbers(const std::filesystem::path& folder) {
  for (const char* name : {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8"}) {
    if (std::setlocale(LC_NUMERIC, name) != nullptr) return true;
  }
  std::filesystem::create_directories(folder);
  const std::string command = "localedef -i de_DE -f ISO-8859-1 " + (folder / "de_DE").string() + " >/dev/null 2>&1";
  if (std::system(command.c_str()) != 0) return false;
  ::setenv("LOCPATH", folder.c_str(), 1);
  return std::setlocale(LC_NUMERIC, "de_DE") != nullptr;
}

}  // namespace lockstep
