#include "lockstep/ode/detail/event_journal.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>

#include "lockstep/core/detail/write_at.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hash.h"

namespace lockstep::ode {
namespace {

namespace fs = std::filesystem;

// A record: this, then for each trajectory its number, how many events it has, and of each the time and the reset.
struct RecordHead {
  char digest[32];      // of the words behind
  std::uint64_t words;  // how many
};
constexpr std::size_t kRecordWords = std::size_t{1} << 19;  // in memory at most, but for one trajectory's own
constexpr std::size_t kWordsOfEvent = 2;

[[noreturn]] void fail(const fs::path& path, const std::string& expected) {
  const std::string found = errno == 0 ? "a file that ends before" : std::generic_category().message(errno);
  throw Error(ErrorKind::file, {path.string(), found, expected, "make room there and continue with --resume"});
}

// False with errno, 0 where the file ends.
bool read_at(int file, void* to, std::size_t bytes, std::uint64_t offset) {
  errno = 0;
  for (char* at = static_cast<char*>(to); bytes > 0;) {
    const ssize_t got = ::pread(file, at, bytes, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    at += got;
    bytes -= static_cast<std::size_t>(got);
    offset += static_cast<std::uint64_t>(got);
  }
  return true;
}

[[noreturn]] void refuse_unreadable(const fs::path& path) {
  throw Error(ErrorKind::file, {path.string(), std::generic_category().message(errno),
                                "the events of the unfinished file beside it", "check its permissions"});
}

int flags_of(EventJournal::Begin begin) {
  if (begin == EventJournal::Begin::look) return O_RDONLY;
  return O_RDWR | O_CREAT | (begin == EventJournal::Begin::anew ? O_TRUNC : 0);
}

RecordHead head_of(std::span<const std::uint64_t> words) {
  RecordHead head{{}, words.size()};
  const std::string digest = content_digest(std::as_bytes(words));
  std::copy_n(digest.begin(), std::min(digest.size(), sizeof head.digest), head.digest);
  return head;
}

}  // namespace

fs::path EventJournal::name_beside(const fs::path& unfinished) {
  fs::path name = unfinished;
  name += ".events";
  return name;
}

EventJournal::EventJournal(fs::path path, std::size_t trajectories, Begin begin)
    : path_(std::move(path)), file_(::open(path_.c_str(), flags_of(begin) | O_CLOEXEC, 0666)), places_(trajectories) {
  if (file_ < 0 && begin == Begin::look) refuse_unreadable(path_);
  if (file_ < 0) fail(path_, "a file that can be written");
  if (begin != Begin::anew) read_all(begin);
}

EventJournal::~EventJournal() { ::close(file_); }

// What follows the last whole record was never counted on: it goes, but where its writer may be at work.
void EventJournal::read_all(Begin begin) {
  const std::uint64_t end = fs::file_size(path_);
  RecordHead head{};
  std::vector<std::uint64_t> words;
  while (end - size_ >= sizeof head && read_at(file_, &head, sizeof head, size_)) {
    if (head.words > (end - size_ - sizeof head) / sizeof(std::uint64_t)) break;
    words.resize(head.words);
    if (!read_at(file_, words.data(), words.size() * sizeof(std::uint64_t), size_ + sizeof head)) break;
    if (std::memcmp(&head, head_of(words).digest, sizeof head.digest) != 0) break;
    note(words, size_ + sizeof head);
    size_ += sizeof head + words.size() * sizeof(std::uint64_t);
  }
  if (begin == Begin::resume && ::ftruncate(file_, static_cast<off_t>(size_)) != 0)
    fail(path_, "a file that can be written");
}

void EventJournal::note(std::span<const std::uint64_t> words, std::uint64_t offset) {
  for (std::size_t at = 0; at + 2 <= words.size();) {
    const std::size_t trajectory = words[at], count = words[at + 1];
    at += 2;
    if (count > (words.size() - at) / kWordsOfEvent) return;  // of no writer of ours
    if (trajectory < places_.size()) places_[trajectory] = {offset + at * sizeof(std::uint64_t), count};
    at += count * kWordsOfEvent;
  }
}

void EventJournal::append(std::size_t first, std::span<const TrajectoryEvents> rows) {
  for (const TrajectoryEvents& events : rows) {
    words_.push_back(first++);
    words_.push_back(events.size());
    for (const ResetEvent& event : events) {
      words_.push_back(std::bit_cast<std::uint64_t>(event.time));
      words_.push_back(static_cast<std::uint64_t>(event.reset));
    }
    if (words_.size() >= kRecordWords) write_record();
  }
}

void EventJournal::write_record() {
  const RecordHead head = head_of(words_);
  const std::size_t bytes = words_.size() * sizeof(std::uint64_t);
  using lockstep::detail::write_at;
  if (!write_at(file_, std::as_bytes(std::span(&head, 1)), size_) ||
      !write_at(file_, std::as_bytes(std::span(words_)), size_ + sizeof head))
    fail(path_, "to write " + std::to_string(bytes) + " more bytes");
  note(words_, size_ + sizeof head);
  size_ += sizeof head + bytes;
  words_.clear();
}

void EventJournal::sync() {
  if (!words_.empty()) write_record();
  if (::fdatasync(file_) != 0 && errno != EINVAL) fail(path_, "the content on the disk");
}

void EventJournal::remove() noexcept { ::unlink(path_.c_str()); }

TrajectoryEvents EventJournal::read(std::size_t trajectory) const {
  const Place& place = places_[trajectory];
  std::vector<std::uint64_t> words(place.count * kWordsOfEvent);
  if (!read_at(file_, words.data(), words.size() * sizeof(std::uint64_t), place.offset))
    fail(path_, "the events of trajectory " + std::to_string(trajectory));
  TrajectoryEvents events(place.count);
  for (std::size_t i = 0; i < events.size(); ++i)
    events[i] = {std::bit_cast<double>(words[2 * i]), static_cast<std::int32_t>(words[2 * i + 1])};
  return events;
}

}  // namespace lockstep::ode
