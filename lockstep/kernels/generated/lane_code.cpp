#include "lockstep/kernels/generated/lane_code.h"

#include <cstdlib>
#include <cstring>
#include <string_view>

#if defined(__x86_64__) && defined(__linux__)
#define LOCKSTEP_GENERATES_CODE 1
#include <sys/mman.h>
#include <unistd.h>

#include "lockstep/kernels/generated/detail/x86_generator.h"
#else
#define LOCKSTEP_GENERATES_CODE 0
#endif

namespace lockstep {

bool LaneCode::available(CpuTarget target) {
  if (!LOCKSTEP_GENERATES_CODE || (target != CpuTarget::avx2 && target != CpuTarget::avx512)) return false;
  const char* const wish = std::getenv("LOCKSTEP_GENERATED_CODE");
  return wish == nullptr || std::string_view(wish) != "off";
}

#if LOCKSTEP_GENERATES_CODE

std::shared_ptr<const LaneCode> LaneCode::compile(const LaneProgram& program, Precision precision, CpuTarget target) {
  constexpr std::size_t kMostInstructions = 65536;  // a second-level cache's share at some eight bytes each
  constexpr std::size_t kMostStack = 32768;
  if (!available(target) || program.instructions().size() > kMostInstructions) return nullptr;
  const generated::GeneratedCode made = generated::generate_x86(program, precision, target == CpuTarget::avx512);
  if (made.frame > kMostStack) return nullptr;
  const std::size_t start = made.pool.size(), bytes = start + made.code.size();
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t mapped = (bytes + page - 1) / page * page;
  // Written first, executable afterwards, never both.
  void* const memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const to = static_cast<std::uint8_t*>(memory);
  if (!made.pool.empty()) std::memcpy(to, made.pool.data(), made.pool.size());
  std::memcpy(to + start, made.code.data(), made.code.size());
  if (mprotect(memory, mapped, PROT_READ | PROT_EXEC) != 0) {
    munmap(memory, mapped);
    return nullptr;
  }
  return std::shared_ptr<const LaneCode>(new LaneCode(memory, mapped, to + start, bytes, program));
}

LaneCode::~LaneCode() { munmap(memory_, mapped_); }

#else

std::shared_ptr<const LaneCode> LaneCode::compile(const LaneProgram&, Precision, CpuTarget) { return nullptr; }
LaneCode::~LaneCode() = default;

#endif

}  // namespace lockstep
