// The bytes of the few x86 instructions that generated code consists of: VEX with 256-bit registers for AVX2, EVEX with
// 512-bit ones for AVX-512, or with single numbers (Intel, Software Developer's Manual, volume 2, 2.3 and 2.7).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

namespace lockstep::generated {

enum class Gpr : std::uint8_t { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11 };

// What an instruction reads last: a register, memory at a general register's address, or the pool of constants.
struct Operand {
  enum class Kind : std::uint8_t { vector, memory, pool } kind = Kind::vector;
  int number = 0;       // vector: of the register; memory: displacement; pool: offset
  Gpr base = Gpr::rax;  // memory
  bool broadcast = false;

  static Operand vector(int number) { return {Kind::vector, number, Gpr::rax, false}; }
  static Operand memory(Gpr base, int displacement) { return {Kind::memory, displacement, base, false}; }
};

// An instruction by its map (1: 0F, 2: 0F38, 3: 0F3A), mandatory prefix (0: none, 1: 66, 2: F3, 3: F2), W bit and
// opcode.
struct Opcode {
  std::uint8_t map, prefix, w, code;
};

// What registers hold: sixteen lanes of float32, eight, or one number, in the lowest place.
enum class X86Registers : std::uint8_t { avx512, avx2, one_lane };

class X86Encoder {
 public:
  explicit X86Encoder(X86Registers registers)
      : wide_(registers == X86Registers::avx512), single_(registers == X86Registers::one_lane) {}

  // reg, vvvv, last: destination, first source, second source. For unary ones vvvv is 0. `mask` and `zeroing`: of EVEX.
  void vector(Opcode op, int reg, int vvvv, Operand last, int immediate = -1, int mask = 0, bool zeroing = false) {
    if (wide_) {
      evex(op, reg, vvvv, last, mask, zeroing);
    } else {
      vex(op, reg, vvvv, last);
    }
    byte(op.code);
    address(reg, last, immediate >= 0);
    if (immediate >= 0) byte(static_cast<unsigned>(immediate));
  }

  void zero_upper() { bytes({0xC5, 0xF8, 0x77}); }
  void load_pointer(Gpr to, Gpr base, int displacement) {  // mov to, [base + displacement]
    const unsigned t = number(to), b = number(base);
    bytes({0x48 | (t >> 3) << 2 | b >> 3, 0x8B, 0x80 | (t & 7) << 3 | (b & 7)});
    word(displacement);
  }
  void store_pointer(Gpr from, Gpr base, int displacement) {  // mov [base + displacement], from
    const unsigned f = number(from), b = number(base);
    bytes({0x48 | (f >> 3) << 2 | b >> 3, 0x89, 0x80 | (f & 7) << 3 | (b & 7)});
    word(displacement);
  }
  // mov to, address
  void set_pointer(Gpr to, const void* address) {
    bytes({0x48 | number(to) >> 3, 0xB8 | (number(to) & 7)});
    const std::size_t at = size();
    code_.resize(at + sizeof address);
    std::memcpy(&code_[at], &address, sizeof address);
  }
  void call(Gpr to) {
    if (number(to) > 7) byte(0x41);
    bytes({0xFF, 0xD0 | (number(to) & 7)});
  }
  void add_in_memory(Gpr base, int displacement, int value) {  // add qword [base + displacement], value
    bytes({0x48 | number(base) >> 3, 0x81, 0x80 | (number(base) & 7)});
    word(displacement);
    word(value);
  }
  void decrement_in_memory(Gpr base, int displacement) {  // dec qword [base + displacement]
    bytes({0x48 | number(base) >> 3, 0xFF, 0x88 | (number(base) & 7)});
    word(displacement);
  }
  void add(Gpr to, int value) {
    bytes({0x48 | number(to) >> 3, 0x81, 0xC0 | (number(to) & 7)});
    word(value);
  }
  void decrement(Gpr to) { bytes({0x48 | number(to) >> 3, 0xFF, 0xC8 | (number(to) & 7)}); }
  void jump_back_if_not_zero(std::size_t to) {
    bytes({0x0F, 0x85});
    word(static_cast<int>(static_cast<std::ptrdiff_t>(to) - static_cast<std::ptrdiff_t>(size()) - 4));
  }
  // A stack frame of 64-byte aligned slots; returns where its size is written later. [rbp - 8] holds rdx.
  std::size_t enter() {
    bytes({0x55, 0x48, 0x89, 0xE5, 0x48, 0x81, 0xEC});  // push rbp; mov rbp, rsp; sub rsp, size
    const std::size_t at = size();
    word(0);
    bytes({0x48, 0x83, 0xE4, 0xC0, 0x48, 0x89, 0x55, 0xF8});  // and rsp, -64; mov [rbp - 8], rdx
    return at;
  }
  void leave() { bytes({0xC9, 0xC3}); }
  void patch(std::size_t at, int value) { std::memcpy(&code_[at], &value, sizeof value); }

  std::size_t size() const { return code_.size(); }

  // The code to stand `start` bytes after the pool.
  const std::vector<std::uint8_t>& finish(std::size_t start) {
    for (const Reference& r : references_) {
      patch(r.at, r.offset - static_cast<int>(start + r.end));
    }
    return code_;
  }

 private:
  struct Reference {  // to the pool, relative to the instruction's end
    std::size_t at, end;
    int offset;
  };

  static unsigned number(Gpr gpr) { return static_cast<unsigned>(gpr); }
  void byte(unsigned value) { code_.push_back(static_cast<std::uint8_t>(value)); }
  void bytes(std::initializer_list<unsigned> values) {
    for (const unsigned value : values) byte(value);
  }
  void word(int value) {
    const std::size_t at = size();
    code_.resize(at + 4);
    patch(at, value);
  }

  // Bit `bit` of the register or base that the last operand names, as prefixes have it: inverted.
  static unsigned last_bit(Operand last, int bit) {
    const unsigned n = last.kind == Operand::Kind::vector   ? static_cast<unsigned>(last.number)
                       : last.kind == Operand::Kind::memory ? number(last.base)
                                                            : 0;
    return (n >> bit & 1) ^ 1;
  }

  void evex(Opcode op, int reg, int vvvv, Operand last, int mask, bool zeroing) {
    const auto r = static_cast<unsigned>(reg), v = static_cast<unsigned>(vvvv);
    const bool is_vector = last.kind == Operand::Kind::vector;
    byte(0x62);
    byte((~r >> 3 & 1) << 7 | (is_vector ? last_bit(last, 4) : 1) << 6 | last_bit(last, 3) << 5 | (~r >> 4 & 1) << 4 |
         op.map);
    byte(unsigned{op.w} << 7 | (~v & 15) << 3 | 4 | op.prefix);
    byte((zeroing ? 0x80u : 0u) | 0x40 | (last.broadcast ? 0x10u : 0u) | (~v >> 4 & 1) << 3 |
         static_cast<unsigned>(mask));
  }

  void vex(Opcode op, int reg, int vvvv, Operand last) {
    const auto r = static_cast<unsigned>(reg), v = static_cast<unsigned>(vvvv);
    const unsigned tail = (~v & 15) << 3 | (single_ ? 0u : 4u) | op.prefix;  // L: 256 bits
    if (op.map == 1 && op.w == 0 && last_bit(last, 3) == 1) {
      bytes({0xC5, (~r >> 3 & 1) << 7 | tail});
    } else {
      bytes({0xC4, (~r >> 3 & 1) << 7 | 1 << 6 | last_bit(last, 3) << 5 | op.map, unsigned{op.w} << 7 | tail});
    }
  }

  void address(int reg, Operand last, bool immediate_follows) {
    const unsigned r = (static_cast<unsigned>(reg) & 7) << 3;
    if (last.kind == Operand::Kind::vector) return byte(0xC0 | r | (static_cast<unsigned>(last.number) & 7));
    if (last.kind == Operand::Kind::pool) {
      byte(r | 5);
      references_.push_back({size(), size() + 4 + (immediate_follows ? 1 : 0), last.number});
      return word(0);
    }
    const unsigned base = number(last.base) & 7;
    const int unit = wide_ ? 64 : 1;  // short displacements of EVEX count registers
    const bool is_short = last.number % unit == 0 && last.number / unit >= -128 && last.number / unit < 128;
    byte((is_short ? 0x40 : 0x80) | r | base);
    if (last.base == Gpr::rsp) byte(0x24);
    if (is_short) return byte(static_cast<unsigned>(last.number / unit) & 255);
    word(last.number);
  }

  bool wide_, single_;
  std::vector<std::uint8_t> code_;
  std::vector<Reference> references_;
};

}  // namespace lockstep::generated
