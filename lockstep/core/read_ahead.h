// Pieces of something large: one is read by a thread of its own while the one before it is looked at, in two buffers
// that are used again and again.
#pragma once

#include <array>
#include <cstddef>
#include <future>

namespace lockstep {

// read(i, buffer) and then use(i, buffer) for i = 0 .. pieces - 1, in order; read(i + 1) runs beside use(i), or after
// it where the system has no thread for it. The first exception of either ends it and is rethrown when no thread is
// running any more.
template <class Buffer, class Read, class Use>
void read_ahead(std::size_t pieces, const Read& read, const Use& use) {
  if (pieces == 0) return;
  std::array<Buffer, 2> buffers;
  read(std::size_t{0}, buffers[0]);
  for (std::size_t i = 0; i < pieces; ++i) {
    std::future<void> next;  // waits when it goes, whatever use() does
    if (i + 1 < pieces) {
      next = std::async(std::launch::async | std::launch::deferred, [&, i] { read(i + 1, buffers[(i + 1) % 2]); });
    }
    use(i, buffers[i % 2]);
    if (next.valid()) next.get();
  }
}

}  // namespace lockstep
