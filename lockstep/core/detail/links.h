// Symbolic links, followed by hand: to what is not there yet, too.
#pragma once

#include <filesystem>
#include <system_error>

namespace lockstep {

// What a path leads to. A chain of links that is too long, or cannot be read, is left where that shows.
inline std::filesystem::path behind_links(std::filesystem::path path) {
  constexpr int kMostLinks = 16;
  std::error_code ignored;
  for (int links = 0; links < kMostLinks && std::filesystem::is_symlink(path, ignored); ++links) {
    const std::filesystem::path next = std::filesystem::read_symlink(path, ignored);
    if (ignored) break;
    path = next.is_absolute() ? next : path.parent_path() / next;
  }
  return path;
}

}  // namespace lockstep
