// Code of steps that a right-hand side keeps: who solves again with the same method and tolerances waits for it once.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "lockstep/ode/cpu/tile_state.h"

namespace lockstep::ode::cpu {

// For one right-hand side, lowered for one instruction set. Any thread may call its functions.
template <class T>
class KeptSteps {
 public:
  // All that code depends on beside the right-hand side.
  struct Key {
    const Tableau* method;
    T rtol;
    std::vector<T> atol;
    bool fixed, keep_stages;
    bool few;       // StepSettings::few, where the code is another then
    bool one_lane;  // takes_one_lane()

    bool operator==(const Key&) const = default;
  };
  struct Kept {
    std::shared_ptr<const GeneratedStep<T>> code;  // null: not made
    std::int64_t steps = 0;                        // of tiles, that solves made without it
    bool refused = false;                          // there is none to be had
  };

  Kept find(const Key& key) const {
    const std::lock_guard lock(mutex_);
    const auto entry = std::ranges::find(entries_, key, &Entry::key);
    return entry == entries_.end() ? Kept{} : entry->kept;
  }
  void keep(const Key& key, std::shared_ptr<const GeneratedStep<T>> code) {
    const std::lock_guard lock(mutex_);
    entry_of(key).kept.code = std::move(code);
  }
  void refuse(const Key& key) {
    const std::lock_guard lock(mutex_);
    entry_of(key).kept.refused = true;
  }
  void add_steps(const Key& key, std::int64_t steps) {
    const std::lock_guard lock(mutex_);
    entry_of(key).kept.steps += steps;
  }

 private:
  struct Entry {
    Key key;
    Kept kept;
  };
  // Some 10 to 50 kB each; who tries many tolerances shall not collect them all.
  static constexpr std::size_t kMostEntries = 8;

  Entry& entry_of(const Key& key) {
    const auto entry = std::ranges::find(entries_, key, &Entry::key);
    if (entry != entries_.end()) return *entry;
    if (entries_.size() == kMostEntries) entries_.erase(entries_.begin());
    return entries_.emplace_back(Entry{key, {}});
  }

  mutable std::mutex mutex_;
  std::vector<Entry> entries_;  // oldest first
};

}  // namespace lockstep::ode::cpu
