// Files and folders that a program means to remove or rename before it ends, for the signal that ends it earlier.
#pragma once

#include <filesystem>

namespace lockstep {

// Pending files are noted by themselves. A folder is noted before what lies in it. Names beyond the first few, or of
// more than a thousand characters, are not kept.
void note_temporary_name(const std::filesystem::path& path) noexcept;
void forget_temporary_name(const std::filesystem::path& path) noexcept;

// Removes all that are noted, the latest first. May be called by a handler of signals.
void remove_temporary_names() noexcept;

}  // namespace lockstep
