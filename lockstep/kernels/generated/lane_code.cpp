#include "lockstep/kernels/generated/lane_code.h"

#include <cstdlib>
#include <cstring>
#include <optional>
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

namespace {

std::optional<generated::GeneratedCode> generate(const LaneProgram& program, Precision precision,
                                                 generated::X86Registers registers) {
  constexpr std::size_t kMostInstructions = 65536;  // a second-level cache's share at some eight bytes each
  constexpr std::size_t kMostStack = 32768;
  if (program.instructions().size() > kMostInstructions) return std::nullopt;
  generated::GeneratedCode made = generated::generate_x86(program, precision, registers);
  if (made.frame > kMostStack) return std::nullopt;
  return made;
}

}  // namespace

std::shared_ptr<const LaneCode> LaneCode::compile(const LaneProgram& program, Precision precision, CpuTarget target) {
  if (!available(target)) return nullptr;
  const auto registers = target == CpuTarget::avx512 ? generated::X86Registers::avx512 : generated::X86Registers::avx2;
  const auto made = generate(program, precision, registers);
  return made ? map(program, made->pool, made->code) : nullptr;
}

std::shared_ptr<const LaneCode> LaneCode::compile_one_lane(const LaneProgram& program, Precision precision,
                                                           CpuTarget target) {
  if (!available(target)) return nullptr;
  const auto made = generate(program, precision, generated::X86Registers::one_lane);
  return made ? map(program, made->pool, made->code) : nullptr;
}

std::shared_ptr<const LaneCode> LaneCode::map(const LaneProgram& program, std::span<const std::uint8_t> pool,
                                              std::span<const std::uint8_t> code) {
  const std::size_t start = pool.size(), bytes = start + code.size();
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const std::size_t mapped = (bytes + page - 1) / page * page;
  // Written first, executable afterwards, never both.
  void* const memory = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  auto* const to = static_cast<std::uint8_t*>(memory);
  if (!pool.empty()) std::memcpy(to, pool.data(), pool.size());
  std::memcpy(to + start, code.data(), code.size());
  if (mprotect(memory, mapped, PROT_READ | PROT_EXEC) != 0) {
    munmap(memory, mapped);
    return nullptr;
  }
  return std::shared_ptr<const LaneCode>(new LaneCode(memory, mapped, to + start, bytes, program));
}

LaneCode::~LaneCode() { munmap(memory_, mapped_); }

#else

std::shared_ptr<const LaneCode> LaneCode::compile(const LaneProgram&, Precision, CpuTarget) { return nullptr; }
std::shared_ptr<const LaneCode> LaneCode::compile_one_lane(const LaneProgram&, Precision, CpuTarget) { return nullptr; }
LaneCode::~LaneCode() = default;

#endif

}  // namespace lockstep
