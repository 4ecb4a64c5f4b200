#include "lockstep/core/temporary_names.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <new>
#include <string>

namespace lockstep {
namespace detail {

// One in a list that only grows, so that a handler of signals, which may use neither locks nor memory of its own, can
// follow it at any moment. Whoever brings the state from another one to `changing` or `removing` has the path alone.
struct NotedName {
  static constexpr std::size_t kLongest = 4096;  // with the zero behind it
  enum State { unused, changing, noted, removing, folder };
  std::atomic<int> state{changing};
  std::array<char, kLongest> path{};
  NotedName* next = nullptr;  // as it was when this came first
};

}  // namespace detail

namespace {

using detail::NotedName;

std::atomic<NotedName*> all_noted{nullptr};  // for good: exit() and signals may come at any time
static_assert(std::atomic<int>::is_always_lock_free && std::atomic<NotedName*>::is_always_lock_free);

bool change(NotedName& name, int from, int to) noexcept { return name.state.compare_exchange_strong(from, to); }

NotedName* take_unused() noexcept {
  for (NotedName* name = all_noted.load(); name != nullptr; name = name->next) {
    if (change(*name, NotedName::unused, NotedName::changing)) return name;
  }
  auto* const name = new (std::nothrow) NotedName;
  if (name == nullptr) return nullptr;
  name->next = all_noted.load();
  while (!all_noted.compare_exchange_weak(name->next, name)) {
  }
  return name;
}

}  // namespace

TemporaryName::TemporaryName(const std::filesystem::path& path) noexcept {
  const std::string& text = path.native();
  if (text.size() >= NotedName::kLongest) return;
  noted_ = take_unused();
  if (noted_ == nullptr) return;
  std::copy_n(text.c_str(), text.size() + 1, noted_->path.data());
  noted_->state = NotedName::noted;
}

// What is being removed meanwhile is left to who removes it.
void TemporaryName::forget() noexcept {
  if (noted_ != nullptr) change(*noted_, NotedName::noted, NotedName::unused);
  noted_ = nullptr;
}

void remove_temporary_names() noexcept {
  for (NotedName* name = all_noted.load(); name != nullptr; name = name->next) {
    if (!change(*name, NotedName::noted, NotedName::removing)) continue;
    if (::unlink(name->path.data()) != 0) name->state = NotedName::folder;
  }
  for (NotedName* name = all_noted.load(); name != nullptr; name = name->next) {
    if (change(*name, NotedName::folder, NotedName::removing)) ::rmdir(name->path.data());
  }
}

}  // namespace lockstep
