// The events of a result file that is being written. How many there will be is not known before the solve, and no table
// of the file may change while it can be killed: until it is finished they lie in a file of their own beside it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "lockstep/ode/event_log.h"

namespace lockstep::ode {

// Trajectories' events in any order of trajectories, each with its digest, so that what a kill or a loss of power cut
// short is known for it. Of a trajectory that was added twice the later ones count. One thread at a time.
class EventJournal {
 public:
  // "NAME.part.events" of "NAME.part".
  static std::filesystem::path name_beside(const std::filesystem::path& unfinished);

  enum class Begin { anew, resume, look };
  // Of so many trajectories. Resumed, it goes on behind what is whole, and is empty where there is none. For those who
  // look it is what is whole by now, to be read alone, and has to be there. Throws Error (file), as all functions do.
  EventJournal(std::filesystem::path path, std::size_t trajectories, Begin begin);
  ~EventJournal();
  EventJournal(const EventJournal&) = delete;
  EventJournal& operator=(const EventJournal&) = delete;

  // Those of trajectories first, first + 1, ...
  void append(std::size_t first, std::span<const TrajectoryEvents> rows);
  // Waits until the disk has what was appended.
  void sync();
  // The file goes: what it held is elsewhere, or nobody's.
  void remove() noexcept;

  std::size_t trajectories() const { return places_.size(); }
  bool holds(std::size_t trajectory) const { return places_[trajectory].offset != 0; }
  std::size_t count(std::size_t trajectory) const { return places_[trajectory].count; }
  // After sync().
  TrajectoryEvents read(std::size_t trajectory) const;

 private:
  struct Place {
    std::uint64_t offset = 0;  // of its first event, in bytes; 0: not held
    std::size_t count = 0;
  };
  void read_all(Begin begin);
  void note(std::span<const std::uint64_t> words, std::uint64_t offset);
  void write_record();

  std::filesystem::path path_;
  int file_;
  std::uint64_t size_ = 0;            // of what is written and whole
  std::vector<Place> places_;         // [trajectory]
  std::vector<std::uint64_t> words_;  // of the next record
};

}  // namespace lockstep::ode
