// Files and folders that a program means to remove or rename before it ends, for the signal that ends it earlier.
#pragma once

#include <filesystem>
#include <utility>

namespace lockstep {

namespace detail {
struct NotedName;
}

// A name that is noted while this lives, of any number of them; pending files note theirs by themselves. Names of more
// than four thousand characters are not kept, nor any where memory is out. Any threads may note and forget names of
// their own side by side.
class TemporaryName {
 public:
  TemporaryName() = default;
  explicit TemporaryName(const std::filesystem::path& path) noexcept;
  TemporaryName(TemporaryName&& other) noexcept : noted_(std::exchange(other.noted_, nullptr)) {}
  TemporaryName& operator=(TemporaryName&& other) noexcept {
    std::swap(noted_, other.noted_);
    return *this;
  }
  ~TemporaryName() { forget(); }
  void forget() noexcept;

 private:
  detail::NotedName* noted_ = nullptr;
};

// Removes all that are noted, files before folders. May be called by a handler of signals, beside threads that note and
// forget. What it has removed stays noted in vain.
void remove_temporary_names() noexcept;

}  // namespace lockstep
