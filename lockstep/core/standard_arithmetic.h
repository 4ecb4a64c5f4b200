// The floating-point environment that the same bits need, whatever the host program has set.
#pragma once

#include <atomic>
#include <cstdint>

namespace lockstep {

// While it lives, this thread computes by IEEE 754's defaults: to nearest even, with subnormal numbers, without traps.
// Hosts change that: -ffast-math and some Fortran compilers flush subnormals to zero in the whole process,
// -ffpe-trap=invalid makes a NaN that nobody reads end the program. The host's environment comes back at the end;
// where it is the default nothing is written (a nanosecond or two). Every public call that computes holds one, and so
// does every thread.
class StandardArithmetic {
 public:
#if defined(__x86_64__)
  StandardArithmetic() noexcept : hosts_(__builtin_ia32_stmxcsr()), changed_((hosts_ & kControl) != kDefault) {
    if (changed_) [[unlikely]]
      __builtin_ia32_ldmxcsr(kDefault);
    hold();
  }
  ~StandardArithmetic() {
    hold();
    if (changed_) [[unlikely]]
      __builtin_ia32_ldmxcsr(hosts_);
  }

 private:
  // MXCSR: flush to zero, rounding, masks of the six exceptions, denormals are zero; below them the flags.
  static constexpr std::uint32_t kControl = 0xffc0, kDefault = 0x1f80;
  std::uint32_t hosts_;
#elif defined(__aarch64__)
  StandardArithmetic() noexcept : hosts_(read()), changed_(hosts_ != 0) {
    if (changed_) [[unlikely]]
      write(0);
    hold();
  }
  ~StandardArithmetic() {
    hold();
    if (changed_) [[unlikely]]
      write(hosts_);
  }

 private:
  // FPCR, which holds no flags; 0 is the default of all it controls.
  static std::uint64_t read() noexcept {
    std::uint64_t value;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
  }
  static void write(std::uint64_t value) noexcept { asm volatile("msr fpcr, %0" : : "r"(value) : "memory"); }
  std::uint64_t hosts_;
#else
  StandardArithmetic() noexcept : changed_(false) {}

 private:
#endif
  // Compilers move no arithmetic on memory across this.
  static void hold() noexcept { std::atomic_signal_fence(std::memory_order_seq_cst); }
  bool changed_;

 public:
  StandardArithmetic(const StandardArithmetic&) = delete;
  StandardArithmetic& operator=(const StandardArithmetic&) = delete;
};

// The same, for calls that read numbers from text or convert them in libraries: strtod rounds as the x87 unit is set,
// and so do conversions of long double. Takes some hundred cycles: calls that read files hold one.
class StandardReading {
 public:
#if defined(__x86_64__)
  StandardReading() noexcept {
    asm volatile("fnstenv %0" : "=m"(hosts_) : : "memory");  // and masks its exceptions
    constexpr std::uint16_t kDefault = 0x037f;               // to nearest, 64 bits, nothing trapped
    asm volatile("fldcw %0" : : "m"(kDefault));
  }
  // Its flags with it: what the call raised does not trap in the host.
  ~StandardReading() { asm volatile("fldenv %0" : : "m"(hosts_) : "memory"); }

 private:
  struct Environment {
    std::uint32_t words[7];
  };
  Environment hosts_;
#else
  StandardReading() noexcept = default;

 private:
#endif
  StandardArithmetic arithmetic_;

 public:
  StandardReading(const StandardReading&) = delete;
  StandardReading& operator=(const StandardReading&) = delete;
};

}  // namespace lockstep
