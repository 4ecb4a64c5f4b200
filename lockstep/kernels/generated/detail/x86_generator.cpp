#include "lockstep/kernels/generated/detail/x86_generator.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <map>
#include <utility>

#include "lockstep/kernels/generated/detail/x86_encoder.h"
#include "lockstep/kernels/tile.h"

namespace lockstep::generated {
namespace {

using Value = LaneProgram::Value;

constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
constexpr int kNone = -1;

// One walk over the program. A value that finds no register leaves the one whose next use is farthest (Belady 1966);
// constants, loaded rows and what was stored are then read again where they lie, others from a slot of the stack.
class Generator {
 public:
  Generator(const LaneProgram& program, Precision precision, bool wide)
      : program_(program),
        f64_(precision == Precision::f64),
        wide_(wide),
        encoder_(wide),
        values_(program.instructions().size()),
        holder_(wide ? 32 : 15, kNone),  // of AVX2's sixteen the last holds masks
        locked_(holder_.size(), false) {}

  GeneratedCode run() {
    note_uses();
    const std::size_t frame = encoder_.enter();
    load_bases();
    const std::size_t outer = encoder_.size();
    encoder_.load_pointer(Gpr::rdx, Gpr::rbp, -8);
    const std::size_t inner = encoder_.size();
    for (now_ = 0; now_ < values_.size(); ++now_) emit(program_.instructions()[now_]);
    encoder_.decrement(Gpr::rdx);
    encoder_.jump_back_if_not_zero(inner);
    for (const auto& [base, gpr] : bases_) encoder_.add(gpr, register_bytes() * program_.together());
    encoder_.decrement(Gpr::rsi);
    encoder_.jump_back_if_not_zero(outer);
    encoder_.zero_upper();
    encoder_.leave();
    const int frame_bytes = (slots_ + 1) * register_bytes() + 64;
    encoder_.patch(frame, frame_bytes);
    pool_.resize((pool_.size() + 63) / 64 * 64);
    return {pool_, encoder_.finish(pool_.size()), static_cast<std::size_t>(frame_bytes)};
  }

 private:
  struct State {
    std::vector<std::uint32_t> uses;  // instructions that read it, ascending
    std::size_t next = 0;             // of uses
    int reg = kNone;
    int slot = kNone;
    bool in_row = false;  // `row` holds it
    LanePlace row;
  };

  int register_bytes() const { return wide_ ? 64 : 32; }
  int number_bytes() const { return f64_ ? 8 : 4; }

  // Backwards, so that what nothing reads reads nothing.
  void note_uses() {
    const auto& instructions = program_.instructions();
    for (std::size_t i = instructions.size(); i-- > 0;) {
      if (instructions[i].op != LaneOp::store && values_[i].uses.empty()) continue;
      for (int k = 0; k < operands_of(instructions[i].op); ++k) {
        auto& uses = values_[instructions[i].read[k]].uses;
        if (uses.empty() || uses.back() != i) uses.push_back(static_cast<std::uint32_t>(i));
      }
    }
    for (State& value : values_) std::reverse(value.uses.begin(), value.uses.end());
  }

  void load_bases() {
    constexpr std::array<Gpr, LaneProgram::kMostBases> kGprs = {Gpr::rax, Gpr::rcx, Gpr::r8, Gpr::r9,
                                                                Gpr::r10, Gpr::r11, Gpr::rdi};  // where they come from
    for (const LaneInstruction& instruction : program_.instructions()) {
      if (instruction.op == LaneOp::load || instruction.op == LaneOp::store) {
        bases_.try_emplace(instruction.place.base, Gpr::rax);
      }
    }
    std::size_t next = 0;
    for (auto& [base, gpr] : bases_) {
      gpr = kGprs.at(next++);
      encoder_.load_pointer(gpr, Gpr::rdi, base * 8);
    }
  }

  // ---- where values are

  bool read_later(const State& value) const { return value.next < value.uses.size(); }
  std::uint32_t next_use(const State& value) const { return read_later(value) ? value.uses[value.next] : kNever; }
  bool is_constant(Value v) const { return program_.instructions()[v].op == LaneOp::constant; }
  // Whether this is the last instruction that reads it.
  bool ends_here(Value v) const { return values_[v].uses.back() == now_; }

  Operand memory_of(Value v) {
    const State& value = values_[v];
    if (is_constant(v)) return constant(program_.instructions()[v].number);
    if (value.in_row) return row_operand(value.row);
    return Operand::memory(Gpr::rsp, value.slot * register_bytes());
  }
  Operand row_operand(LanePlace place) const {
    const int row = static_cast<int>(place.row) * kTileLanes * number_bytes();
    return Operand::memory(bases_.at(place.base), row + place.beside * register_bytes());
  }

  int allocate() {
    int best = kNone;
    std::uint32_t farthest = 0;
    for (int r = 0; r < static_cast<int>(holder_.size()); ++r) {
      const auto at = static_cast<std::size_t>(r);
      if (locked_[at]) continue;
      if (holder_[at] == kNone) return r;
      const std::uint32_t use = next_use(values_[static_cast<Value>(holder_[at])]);
      if (best == kNone || use > farthest) std::tie(best, farthest) = std::pair(r, use);
    }
    State& leaving = values_[static_cast<Value>(holder_[static_cast<std::size_t>(best)])];
    const auto v = static_cast<Value>(holder_[static_cast<std::size_t>(best)]);
    if (read_later(leaving) && !leaving.in_row && leaving.slot == kNone && !is_constant(v)) {
      leaving.slot = new_slot();
      encoder_.vector(move(0x11), best, 0, Operand::memory(Gpr::rsp, leaving.slot * register_bytes()));
    }
    free_register(v);
    return best;
  }
  int new_slot() {
    if (free_slots_.empty()) return slots_++;
    const int slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }
  void free_register(Value v) {
    State& value = values_[v];
    if (value.reg == kNone) return;
    holder_[static_cast<std::size_t>(value.reg)] = kNone;
    value.reg = kNone;
  }
  void hold(Value v, int reg) {
    values_[v].reg = reg;
    holder_[static_cast<std::size_t>(reg)] = static_cast<int>(v);
  }
  void lock(Value v, bool on) {
    if (values_[v].reg != kNone) locked_[static_cast<std::size_t>(values_[v].reg)] = on;
  }

  // The value in a register, where it stays until the instruction is done.
  int in_register(Value v) {
    if (values_[v].reg == kNone) {
      const Operand from = memory_of(v);
      const int reg = allocate();
      load(reg, v, from);
      hold(v, reg);
    }
    lock(v, true);
    return values_[v].reg;
  }
  void load(int reg, Value v, Operand from) {
    if (is_constant(v) && wide_) {
      broadcast(reg, from, 0);
    } else {
      encoder_.vector(move(0x10), reg, 0, from);
    }
  }
  void broadcast(int reg, Operand from, int mask) {
    from.broadcast = false;
    encoder_.vector({2, 1, wide_w(), static_cast<std::uint8_t>(f64_ ? 0x19 : 0x18)}, reg, 0, from, -1, mask, mask != 0);
  }
  // As an instruction's last source: from memory where that saves a register and no later load.
  Operand source(Value v) {
    constexpr std::uint32_t kSoon = 24;
    const State& value = values_[v];
    if (value.reg == kNone) {
      const auto after = std::upper_bound(value.uses.begin(), value.uses.end(), now_);
      if (is_constant(v) || after == value.uses.end() || *after - now_ > kSoon) return memory_of(v);
    }
    return Operand::vector(in_register(v));
  }

  // ---- constants

  // The number in every lane: AVX-512 instructions broadcast it themselves.
  Operand constant(double number) {
    return pooled(f64_ ? std::bit_cast<std::uint64_t>(number)
                       : std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(number))});
  }
  Operand pooled(std::uint64_t bits) {
    const auto [found, is_new] = pool_offsets_.try_emplace(bits, static_cast<int>(pool_.size()));
    if (is_new) {
      const int copies = wide_ ? 1 : register_bytes() / number_bytes();
      for (int i = 0; i < copies; ++i) {
        for (int byte = 0; byte < number_bytes(); ++byte) {
          pool_.push_back(static_cast<std::uint8_t>(bits >> (8 * byte)));
        }
      }
    }
    return {Operand::Kind::pool, found->second, Gpr::rax, wide_};
  }

  // ---- instructions

  std::uint8_t wide_w() const { return wide_ && f64_ ? 1 : 0; }
  std::uint8_t prefix() const { return f64_ ? 1 : 0; }
  Opcode move(std::uint8_t code) const { return {1, prefix(), wide_w(), code}; }
  Opcode arithmetic(LaneOp op) const {
    switch (op) {
      case LaneOp::add:
        return move(0x58);
      case LaneOp::subtract:
        return move(0x5C);
      case LaneOp::multiply:
        return move(0x59);
      case LaneOp::divide:
        return move(0x5E);
      case LaneOp::minimum:
        return move(0x5D);
      case LaneOp::maximum:
        return move(0x5F);
      case LaneOp::absolute:
        return move(0x54);
      case LaneOp::negate:
        return move(0x57);
      default:
        return move(0x51);  // square_root
    }
  }
  static int predicate(LaneOp op) { return op == LaneOp::less ? 0x11 : op == LaneOp::less_or_equal ? 0x12 : 0x00; }
  static constexpr int kUnordered = 0x03, kNotEqual = 0x04;

  void emit(const LaneInstruction& instruction) {
    const Value made = now_;
    const auto [a, b, c] = std::to_array(instruction.read);
    if (instruction.op != LaneOp::store && values_[made].uses.empty()) return;
    switch (instruction.op) {
      case LaneOp::constant:  // read where it is used
        return;
      case LaneOp::load:
        values_[made].in_row = true;
        values_[made].row = instruction.place;
        lies_in_[instruction.place] = made;
        return;
      case LaneOp::store:
        return store(a, instruction.place);
      case LaneOp::add:
      case LaneOp::multiply: {
        // Either may come from memory.
        const bool swapped = values_[a].reg == kNone && (values_[b].reg != kNone || is_constant(a));
        binary(instruction.op, swapped ? b : a, swapped ? a : b);
        break;
      }
      case LaneOp::subtract:
      case LaneOp::divide:
        binary(instruction.op, a, b);
        break;
      case LaneOp::minimum:
      case LaneOp::maximum:
        binary(instruction.op, b, a);  // the instruction gives its second source where neither is the smaller
        break;
      case LaneOp::square_root: {
        const Operand from = source(a);
        encoder_.vector(arithmetic(instruction.op), result({a}), 0, from);
        break;
      }
      case LaneOp::absolute:
      case LaneOp::negate: {
        const int from = in_register(a);
        const std::uint64_t sign = f64_ ? std::uint64_t{1} << 63 : std::uint64_t{1} << 31;
        const Operand mask = pooled(instruction.op == LaneOp::negate ? sign : sign - 1);
        encoder_.vector(arithmetic(instruction.op), result({a}), from, mask);
        break;
      }
      case LaneOp::fma:
      case LaneOp::nfma:
        multiply_add(instruction.op, a, b, c);
        break;
      case LaneOp::keep_nan: {
        const int first = in_register(a), second = in_register(b);
        compare(second, Operand::vector(second), kUnordered);
        blend(result({a, b}), first, Operand::vector(second));
        break;
      }
      case LaneOp::less:
      case LaneOp::less_or_equal:
      case LaneOp::equal: {
        const int first = in_register(a);
        const Operand second = source(b);
        if (wide_) {
          compare(first, second, predicate(instruction.op));
          broadcast(result({a, b}), constant(1), 1);
        } else {
          const int to = result({a, b});
          encoder_.vector({1, prefix(), 0, 0xC2}, to, first, second, predicate(instruction.op));
          encoder_.vector(move(0x54), to, to, constant(1));
        }
        break;
      }
      case LaneOp::select: {
        const int chooser = in_register(a);
        const int no = in_register(c);
        const Operand yes = source(b);
        compare(chooser, constant(0), kNotEqual);
        blend(result({a, b, c}), no, yes);
        break;
      }
    }
    done(instruction);
    if (result_ != kNone) {
      hold(made, result_);
      result_ = kNone;
    }
  }

  // A register for what the instruction makes; one of its sources' own where that ends here.
  int result(std::initializer_list<Value> sources) {
    for (const Value v : sources) {
      if (values_[v].reg != kNone && ends_here(v)) return result_ = values_[v].reg;
    }
    return result_ = allocate();
  }

  // Unlocks what the instruction read, and frees what nothing reads later.
  void done(const LaneInstruction& instruction) {
    for (int k = 0; k < operands_of(instruction.op); ++k) {
      const Value v = instruction.read[k];
      State& value = values_[v];
      lock(v, false);
      if (value.next < value.uses.size() && value.uses[value.next] == now_) ++value.next;
      if (read_later(value)) continue;
      free_register(v);
      if (value.slot != kNone) free_slots_.push_back(std::exchange(value.slot, kNone));
    }
  }

  void binary(LaneOp op, Value first, Value second) {
    const int s1 = in_register(first);
    const Operand s2 = source(second);
    encoder_.vector(arithmetic(op), result({first, second}), s1, s2);
  }

  // Into the mask register: k1, or of AVX2 the last vector register.
  void compare(int first, Operand second, int how) {
    encoder_.vector({1, prefix(), wide_w(), 0xC2}, wide_ ? 1 : 15, first, second, how);
  }
  void blend(int to, int no, Operand yes) {
    if (wide_) {
      encoder_.vector({2, 1, wide_w(), 0x65}, to, no, yes, -1, 1);
    } else {
      encoder_.vector({3, 1, 0, static_cast<std::uint8_t>(f64_ ? 0x4B : 0x4A)}, to, no, yes, 15 << 4);
    }
  }

  // The three forms overwrite different sources: 231 adds to the sum, 213 and 132 put it in a factor's place.
  void multiply_add(LaneOp op, Value a, Value b, Value c) {
    const std::uint8_t w = f64_ ? 1 : 0;
    const unsigned negated = op == LaneOp::nfma ? 4 : 0;
    const auto form = [&](unsigned code) { return Opcode{2, 1, w, static_cast<std::uint8_t>(code + negated)}; };
    constexpr unsigned k132 = 0x98, k213 = 0xA8, k231 = 0xB8;
    const auto ends = [&](Value v) { return values_[v].reg != kNone && ends_here(v); };
    // The factor most likely to come from memory last.
    if (values_[a].reg == kNone && (values_[b].reg != kNone || is_constant(a))) std::swap(a, b);
    const int first = in_register(a);
    if (ends(c) && c != a && c != b) {
      lock(c, true);
      const Operand second = source(b);
      result_ = values_[c].reg;
      encoder_.vector(form(k231), result_, first, second);
      return;
    }
    if (ends(a) && a != b && a != c) {
      if (values_[c].reg == kNone && values_[b].reg != kNone) {
        const int second = in_register(b);
        const Operand sum = source(c);
        result_ = first;
        encoder_.vector(form(k213), first, second, sum);
      } else {
        const int sum = in_register(c);
        const Operand second = source(b);
        result_ = first;
        encoder_.vector(form(k132), first, sum, second);
      }
      return;
    }
    if (ends(b) && a != b && b != c) {
      const int second = in_register(b);
      const Operand sum = source(c);
      result_ = second;
      encoder_.vector(form(k213), second, first, sum);
      return;
    }
    lock(c, true);
    const Operand second = source(b);
    result_ = allocate();
    if (values_[c].reg != kNone) {
      encoder_.vector(move(0x28), result_, 0, Operand::vector(values_[c].reg));
    } else {
      load(result_, c, memory_of(c));
    }
    encoder_.vector(form(k231), result_, first, second);
  }

  void store(Value v, LanePlace place) {
    if (const auto found = lies_in_.find(place); found != lies_in_.end() && found->second != v) {
      // What lay there is kept elsewhere where something will read it.
      State& before = values_[found->second];
      if (read_later(before) && before.reg == kNone && before.slot == kNone) in_register(found->second);
      lock(found->second, false);
      before.in_row = false;
    }
    encoder_.vector(move(0x11), in_register(v), 0, row_operand(place));
    lies_in_[place] = v;
    State& value = values_[v];
    if (!value.in_row && !is_constant(v)) {
      value.in_row = true;
      value.row = place;
    }
    done(program_.instructions()[now_]);
  }

  const LaneProgram& program_;
  bool f64_, wide_;
  X86Encoder encoder_;
  std::vector<State> values_;
  std::vector<int> holder_;  // [register]: the value it holds
  std::vector<bool> locked_;
  std::map<std::uint8_t, Gpr> bases_;
  std::map<LanePlace, Value> lies_in_;
  std::map<std::uint64_t, int> pool_offsets_;
  std::vector<std::uint8_t> pool_;
  std::vector<int> free_slots_;
  int slots_ = 0;
  int result_ = kNone;
  std::uint32_t now_ = 0;
};

}  // namespace

GeneratedCode generate_x86(const LaneProgram& program, Precision precision, bool wide) {
  return Generator(program, precision, wide).run();
}

}  // namespace lockstep::generated
