#include "lockstep/core/aligned_buffer.h"

#include <cstring>
#include <new>
#ifdef __linux__
#include <sys/mman.h>
#endif

namespace lockstep::detail {
namespace {

#ifdef __linux__
constexpr std::size_t kHugePage = std::size_t{2} << 20;
// Below, a call of the system costs more than the pages it saves.
constexpr std::size_t kLeastPages = 2 * kHugePage;

std::size_t whole_pages(std::size_t bytes) { return (bytes + kHugePage - 1) / kHugePage * kHugePage; }
#endif

}  // namespace

std::byte* allocate_zeros(std::size_t bytes) {
#ifdef __linux__
  if (bytes >= kLeastPages) {
    const std::size_t whole = whole_pages(bytes);
    if (whole < bytes || whole + kHugePage < whole) throw std::bad_alloc();
    void* const mapped = ::mmap(nullptr, whole + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    // What lies before the first and after the last whole page goes back.
    const std::size_t over = reinterpret_cast<std::size_t>(mapped) % kHugePage,
                      before = over == 0 ? 0 : kHugePage - over;
    std::byte* const memory = static_cast<std::byte*>(mapped) + before;
    if (before > 0) ::munmap(mapped, before);
    ::munmap(memory + whole, kHugePage - before);
    ::madvise(memory, whole, MADV_HUGEPAGE);  // a hint: where it is refused pages are small
    return memory;
  }
#endif
  auto* const memory = static_cast<std::byte*>(::operator new (bytes, std::align_val_t{kAlignment}));
  std::memset(memory, 0, bytes);
  return memory;
}

void release_zeros(std::byte* memory, std::size_t bytes) noexcept {
#ifdef __linux__
  if (bytes >= kLeastPages) {
    ::munmap(memory, whole_pages(bytes));
    return;
  }
#endif
  ::operator delete (memory, std::align_val_t{kAlignment});
}

}  // namespace lockstep::detail
