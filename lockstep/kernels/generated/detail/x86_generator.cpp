#include "lockstep/kernels/generated/detail/x86_generator.h"

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "lockstep/kernels/generated/detail/constant_pool.h"
#include "lockstep/kernels/generated/detail/next_reads.h"
#include "lockstep/kernels/generated/detail/register_moves.h"
#include "lockstep/kernels/generated/detail/x86_encoder.h"
#include "lockstep/kernels/generated/detail/x86_opcodes.h"
#include "lockstep/kernels/tile.h"

namespace lockstep::generated {
namespace {

using Value = LaneProgram::Value;

constexpr int kNone = -1;

// One walk over the program. A value that finds no register leaves the one whose next use is farthest (Belady 1966);
// constants, loaded rows and what was stored are then read again where they lie, others from a slot of the stack.
class Generator {
 public:
  Generator(const LaneProgram& program, Precision precision, X86Registers registers)
      : program_(program),
        f64_(precision == Precision::f64),
        wide_(registers == X86Registers::avx512),
        row_bytes_((registers == X86Registers::one_lane ? 1 : kTileLanes) * number_bytes()),
        opcodes_{f64_, wide_, registers == X86Registers::one_lane},
        encoder_(registers),
        pool_(precision, wide_),
        values_(program.instructions().size()),
        holder_(wide_ ? 32 : 15, kNone),  // of AVX2's sixteen the last holds masks
        locked_(holder_.size(), false),
        calls_(std::ranges::any_of(program.instructions(),
                                   [](const LaneInstruction& instruction) { return is_call(instruction.op); })) {}

  GeneratedCode run() {
    NextReads reads = next_reads(program_);
    next_ = std::move(reads.next);
    for (std::size_t v = 0; v < values_.size(); ++v) values_[v].next = reads.first[v];
    const std::size_t frame = encoder_.enter();
    load_bases();
    const std::size_t outer = encoder_.size();
    bases_forgotten();
    if (calls_) {
      encoder_.load_pointer(Gpr::rax, Gpr::rbp, kRepeatsAt);
      encoder_.store_pointer(Gpr::rax, Gpr::rbp, kRepeatAt);
    } else {
      encoder_.load_pointer(Gpr::rdx, Gpr::rbp, kRepeatsAt);
    }
    load_carried();
    const std::size_t inner = encoder_.size();
    bases_forgotten();
    for (now_ = 0; now_ < values_.size(); ++now_) emit(program_.instructions()[now_]);
    carry_back();
    count_down(Gpr::rdx, kRepeatAt);
    encoder_.jump_back_if_not_zero(inner);
    store_carried();
    for (std::size_t base = 0; base < bases_.size(); ++base) advance(bases_[base]);
    count_down(Gpr::rsi, kStepAt);
    encoder_.jump_back_if_not_zero(outer);
    encoder_.zero_upper();
    encoder_.leave();
    const int frame_bytes = (slots_ + 1) * register_bytes() + 64;
    encoder_.patch(frame, frame_bytes);
    GeneratedCode made{pool_.take(), {}, static_cast<std::size_t>(frame_bytes)};
    made.code = encoder_.finish(made.pool.size());
    return made;
  }

 private:
  struct State {
    std::uint32_t next = kNever;  // instruction that reads it
    int reg = kNone;
    int slot = kNone;
    bool is_carried = false;  // in a register from the start
    bool in_row = false;      // `row` holds it
    LanePlace row;
  };

  // Of a program that calls functions, which keep no register: where counters and the arrays' addresses lie in the
  // frame, from rbp. The first is X86Encoder::enter()'s. There are 96 bytes below rbp.
  static constexpr int kRepeatsAt = -8, kRepeatAt = -16, kStepAt = -24, kBasesAt = -32;
  struct Base {
    Gpr gpr = Gpr::rax;
    int at = 0;  // in the frame
    bool is_used = false, is_known = false;
  };

  int register_bytes() const { return wide_ ? 64 : 32; }
  int number_bytes() const { return f64_ ? 8 : 4; }

  void load_bases() {
    constexpr std::array<Gpr, LaneProgram::kMostBases> kGprs = {Gpr::rax, Gpr::rcx, Gpr::r8, Gpr::r9,
                                                                Gpr::r10, Gpr::r11, Gpr::rdi};  // where they come from
    std::array<bool, LaneProgram::kMostBases> used{};
    for (const LaneInstruction& instruction : program_.instructions()) {
      if (instruction.op == LaneOp::load || instruction.op == LaneOp::store) used.at(instruction.place.base) = true;
    }
    for (std::size_t base = 0, taken = 0; base < used.size(); ++base) {
      if (!used[base]) continue;
      const int at = kBasesAt - 8 * static_cast<int>(taken);
      const Gpr gpr = kGprs[taken++];
      bases_[base] = {gpr, at, true, true};
      encoder_.load_pointer(gpr, Gpr::rdi, static_cast<int>(base) * 8);
      if (calls_) encoder_.store_pointer(gpr, Gpr::rbp, at);
    }
    if (calls_) encoder_.store_pointer(Gpr::rsi, Gpr::rbp, kStepAt);
  }
  void bases_forgotten() {
    for (Base& base : bases_) base.is_known = !calls_;
  }
  void advance(const Base& base) {
    if (!base.is_used) return;
    const int bytes = register_bytes() * program_.together();
    if (calls_) {
      encoder_.add_in_memory(Gpr::rbp, base.at, bytes);
    } else {
      encoder_.add(base.gpr, bytes);
    }
  }
  void count_down(Gpr counter, int at) {
    if (calls_) {
      encoder_.decrement_in_memory(Gpr::rbp, at);
    } else {
      encoder_.decrement(counter);
    }
  }

  // ---- values carried from one repetition to the next: the first registers hold them where each begins

  const LaneInstruction& load_of(const LaneProgram::Carried& carried) const {
    return program_.instructions()[carried.loaded];
  }
  // Where they are few enough to leave registers to the rest; otherwise they pass through their rows.
  bool stays_in_registers() const { return 2 * program_.carried().size() <= holder_.size(); }

  void load_carried() {
    if (!stays_in_registers()) return;
    for (int reg = 0; const auto& carried : program_.carried()) {
      encoder_.vector(opcodes_.load(), reg, 0, row_operand(load_of(carried).place));
      values_[carried.loaded].is_carried = true;
      if (read_later(values_[carried.loaded])) hold(carried.loaded, reg);
      ++reg;
    }
  }
  void carry_back() {
    if (!stays_in_registers()) {
      for (const auto& carried : program_.carried()) store(carried.made, load_of(carried).place);
      return;
    }
    std::vector<RegisterMove> moves;
    for (std::size_t i = 0; i < program_.carried().size(); ++i) {
      const int from = values_[program_.carried()[i].made].reg, to = static_cast<int>(i);
      if (from != kNone && from != to) moves.push_back({from, to});
    }
    for (const auto& [from, to] : as_copies(moves, static_cast<int>(program_.carried().size()))) {
      copy_register(to, from);
    }
    for (std::size_t i = 0; i < program_.carried().size(); ++i) {
      const Value made = program_.carried()[i].made;
      if (values_[made].reg == kNone) load(static_cast<int>(i), made, memory_of(made));
    }
  }
  void store_carried() {
    if (!stays_in_registers()) return;
    for (int reg = 0; const auto& carried : program_.carried()) {
      encoder_.vector(opcodes_.store(), reg++, 0, row_operand(load_of(carried).place));
    }
  }
  void copy_register(int to, int from) { encoder_.vector(opcodes_.copy(), to, 0, Operand::vector(from)); }

  // ---- where values are

  static bool read_later(const State& value) { return value.next != kNever; }
  bool is_constant(Value v) const { return program_.instructions()[v].op == LaneOp::constant; }
  // Whether this is the last instruction that reads it.
  bool ends_here(Value v) const { return next_after(v) == kNever; }
  // Of a value that this one reads, the next that does.
  std::uint32_t next_after(Value v) const {
    if (now_ >= values_.size()) return kNever;
    const auto& read = program_.instructions()[now_].read;
    return next_[now_][read[0] == v ? 0 : read[1] == v ? 1 : 2];
  }

  Operand memory_of(Value v) {
    const State& value = values_[v];
    if (is_constant(v)) return pool_.number(program_.instructions()[v].number);
    if (value.in_row) return row_operand(value.row);
    return Operand::memory(Gpr::rsp, value.slot * register_bytes());
  }
  Operand row_operand(LanePlace place) {
    const int row = static_cast<int>(place.row) * row_bytes_;
    Base& base = bases_[place.base];
    if (!base.is_known) encoder_.load_pointer(base.gpr, Gpr::rbp, base.at);
    base.is_known = true;
    return Operand::memory(base.gpr, row + place.beside * register_bytes());
  }

  int allocate() {
    int best = kNone;
    std::uint32_t farthest = 0;
    for (int r = 0; r < static_cast<int>(holder_.size()); ++r) {
      const auto at = static_cast<std::size_t>(r);
      if (locked_[at]) continue;
      if (holder_[at] == kNone) return r;
      const std::uint32_t use = values_[static_cast<Value>(holder_[at])].next;
      if (best != kNone && use <= farthest) continue;
      best = r;
      farthest = use;
    }
    const auto v = static_cast<Value>(holder_[static_cast<std::size_t>(best)]);
    if (read_later(values_[v])) keep_in_memory(v);
    free_register(v);
    return best;
  }
  // Of a value in a register: in a slot, unless it can be read elsewhere.
  void keep_in_memory(Value v) {
    State& value = values_[v];
    if (value.in_row || value.slot != kNone || is_constant(v)) return;
    value.slot = new_slot();
    encoder_.vector(opcodes_.store(), value.reg, 0, Operand::memory(Gpr::rsp, value.slot * register_bytes()));
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
      encoder_.vector(opcodes_.load(), reg, 0, from);
    }
  }
  void broadcast(int reg, Operand from, int mask) {
    from.broadcast = false;
    encoder_.vector(opcodes_.broadcast(), reg, 0, from, -1, mask, mask != 0);
  }
  // As an instruction's last source: from memory where that saves a register and no later load.
  Operand source(Value v) {
    constexpr std::uint32_t kSoon = 24;
    const State& value = values_[v];
    if (value.reg == kNone && (is_constant(v) || next_after(v) == kNever || next_after(v) - now_ > kSoon)) {
      return memory_of(v);
    }
    return Operand::vector(in_register(v));
  }

  // ---- instructions

  void emit(const LaneInstruction& instruction) {
    const Value made = now_;
    const auto [a, b, c] = std::to_array(instruction.read);
    if (instruction.op != LaneOp::store && !read_later(values_[made])) return;
    switch (instruction.op) {
      case LaneOp::constant:  // read where it is used
        return;
      case LaneOp::load:
        if (values_[made].is_carried) return;
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
        encoder_.vector(opcodes_.arithmetic(instruction.op), result({a}), 0, from);
        break;
      }
      case LaneOp::floor:
      case LaneOp::round: {
        const Operand from = source(a);
        encoder_.vector(opcodes_.to_whole(), result({a}), 0, from, X86Opcodes::rounding(instruction.op));
        break;
      }
      case LaneOp::absolute:
      case LaneOp::negate: {
        const int from = in_register(a);
        const bool negates = instruction.op == LaneOp::negate;
        encoder_.vector(negates ? opcodes_.bit_xor() : opcodes_.bit_and(), result({a}), from,
                        negates ? pool_.sign_bit() : pool_.all_but_sign_bit());
        break;
      }
      case LaneOp::fma:
      case LaneOp::nfma:
        multiply_add(instruction.op, a, b, c);
        break;
      case LaneOp::keep_nan: {
        const int first = in_register(a), second = in_register(b);
        compare(second, Operand::vector(second), Predicate::unordered);
        blend(result({a, b}), first, Operand::vector(second));
        break;
      }
      case LaneOp::less:
      case LaneOp::less_or_equal:
      case LaneOp::equal: {
        const int first = in_register(a);
        const Operand second = source(b);
        const Predicate how = X86Opcodes::predicate(instruction.op);
        if (wide_) {
          compare(first, second, how);
          broadcast(result({a, b}), pool_.number(1), 1);
        } else {
          const int to = result({a, b});
          encoder_.vector(opcodes_.compare(), to, first, second, static_cast<int>(how));
          encoder_.vector(opcodes_.bit_and(), to, to, pool_.number(1));
        }
        break;
      }
      case LaneOp::select: {
        const int chooser = in_register(a);
        const int no = in_register(c);
        const Operand yes = source(b);
        compare(chooser, pool_.number(0), Predicate::not_equal);
        blend(result({a, b, c}), no, yes);
        break;
      }
      case LaneOp::function:
      case LaneOp::function_of_two:
      case LaneOp::function_of_three:
        call(instruction);
        break;
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
      if (value.next == now_) value.next = next_[now_][static_cast<std::size_t>(k)];
      if (read_later(value)) continue;
      free_register(v);
      if (value.slot != kNone) free_slots_.push_back(std::exchange(value.slot, kNone));
    }
  }

  void binary(LaneOp op, Value first, Value second) {
    const int s1 = in_register(first);
    const Operand s2 = source(second);
    encoder_.vector(opcodes_.arithmetic(op), result({first, second}), s1, s2);
  }

  // Into the mask register: k1, or of AVX2 the last vector register.
  void compare(int first, Operand second, Predicate how) {
    encoder_.vector(opcodes_.compare(), wide_ ? 1 : 15, first, second, static_cast<int>(how));
  }
  void blend(int to, int no, Operand yes) {
    if (wide_) {
      encoder_.vector(opcodes_.blend(), to, no, yes, -1, 1);
    } else {
      encoder_.vector(opcodes_.blend(), to, no, yes, 15 << 4);
    }
  }

  void multiply_add(LaneOp op, Value a, Value b, Value c) {
    const auto form = [&](FmaForm which) { return opcodes_.fma(which, op); };
    const auto ends = [&](Value v) { return values_[v].reg != kNone && ends_here(v); };
    // The factor most likely to come from memory last.
    if (values_[a].reg == kNone && (values_[b].reg != kNone || is_constant(a))) std::swap(a, b);
    const int first = in_register(a);
    if (ends(c) && c != a && c != b) {
      lock(c, true);
      const Operand second = source(b);
      result_ = values_[c].reg;
      encoder_.vector(form(FmaForm::k231), result_, first, second);
      return;
    }
    if (ends(a) && a != b && a != c) {
      if (values_[c].reg == kNone && values_[b].reg != kNone) {
        const int second = in_register(b);
        const Operand sum = source(c);
        result_ = first;
        encoder_.vector(form(FmaForm::k213), first, second, sum);
      } else {
        const int sum = in_register(c);
        const Operand second = source(b);
        result_ = first;
        encoder_.vector(form(FmaForm::k132), first, sum, second);
      }
      return;
    }
    if (ends(b) && a != b && b != c) {
      const int second = in_register(b);
      const Operand sum = source(c);
      result_ = second;
      encoder_.vector(form(FmaForm::k213), second, first, sum);
      return;
    }
    lock(c, true);
    const Operand second = source(b);
    result_ = allocate();
    if (values_[c].reg != kNone) {
      copy_register(result_, values_[c].reg);
    } else {
      load(result_, c, memory_of(c));
    }
    encoder_.vector(form(FmaForm::k231), result_, first, second);
  }

  // The first registers hold arguments, the first of them the result.
  void call(const LaneInstruction& instruction) {
    const int count = operands_of(instruction.op);
    std::vector<RegisterMove> moves;
    for (int k = 0; k < count; ++k) {
      const int from = values_[instruction.read[k]].reg;
      if (from != kNone && from != k) moves.push_back({from, k});
    }
    for (const int held : holder_) {
      if (held == kNone) continue;
      const auto v = static_cast<Value>(held);
      const bool is_read_here = values_[v].next == now_;
      if (is_read_here ? !ends_here(v) : read_later(values_[v])) keep_in_memory(v);
    }
    for (const auto& [from, to] : as_copies(moves, count)) copy_register(to, from);
    for (int k = 0; k < count; ++k) {
      const Value v = instruction.read[k];
      if (values_[v].reg == kNone) load(k, v, memory_of(v));
    }
    for (std::size_t reg = 0; reg < holder_.size(); ++reg) {
      if (holder_[reg] != kNone) free_register(static_cast<Value>(holder_[reg]));
    }
    const LaneFunction& function = program_.functions()[instruction.function];
    if (function.context != nullptr) encoder_.set_pointer(Gpr::rdi, function.context.get());
    encoder_.set_pointer(Gpr::rax, function.code);
    encoder_.call(Gpr::rax);
    bases_forgotten();
    result_ = 0;
  }

  void store(Value v, LanePlace place) {
    if (const auto found = lies_in_.find(place); found != lies_in_.end() && found->second != v) {
      // What lay there is kept elsewhere where something will read it.
      State& before = values_[found->second];
      if (read_later(before) && before.reg == kNone && before.slot == kNone) in_register(found->second);
      lock(found->second, false);
      before.in_row = false;
    }
    encoder_.vector(opcodes_.store(), in_register(v), 0, row_operand(place));
    lies_in_[place] = v;
    State& value = values_[v];
    if (!value.in_row && !is_constant(v)) {
      value.in_row = true;
      value.row = place;
    }
    lock(v, false);
    if (now_ < values_.size()) done(program_.instructions()[now_]);
  }

  const LaneProgram& program_;
  bool f64_, wide_;
  int row_bytes_;
  X86Opcodes opcodes_;
  X86Encoder encoder_;
  ConstantPool pool_;
  std::vector<State> values_;
  std::vector<std::array<std::uint32_t, 3>> next_;  // NextReads::next
  std::vector<int> holder_;                         // [register]: the value it holds
  std::vector<bool> locked_;
  bool calls_;
  std::array<Base, LaneProgram::kMostBases> bases_{};
  std::map<LanePlace, Value> lies_in_;
  std::vector<int> free_slots_;
  int slots_ = 0;
  int result_ = kNone;
  std::uint32_t now_ = 0;
};

}  // namespace

GeneratedCode generate_x86(const LaneProgram& program, Precision precision, X86Registers registers) {
  return Generator(program, precision, registers).run();
}

}  // namespace lockstep::generated
