// Arithmetic over lanes as a list of operations, straight down: what machine code is generated from. Every operation is
// rounded by itself, in the order written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace lockstep {

// Each makes one value of a register's lanes from those of earlier ones.
enum class LaneOp : std::uint8_t {
  constant,
  load,   // a register of a row
  store,  // a into a register of a row; makes nothing
  add,
  subtract,
  multiply,
  divide,
  fma,   // a b + c, rounded once
  nfma,  // c - a b, rounded once
  square_root,
  absolute,
  negate,
  floor,
  round,     // to the nearest whole number, halves to the even one
  minimum,   // b < a ? b : a
  maximum,   // b > a ? b : a
  keep_nan,  // b where that is NaN, else a
  less,      // 1 or 0; 0 where either is NaN, as the next two
  less_or_equal,
  equal,
  select,  // a != 0 ? b : c, b where a is NaN
  // Of a; of a and b; of a, b and c: code that is called. See LaneProgram::call().
  function,
  function_of_two,
  function_of_three,
};

// How many values `op` reads.
constexpr int operands_of(LaneOp op) {
  switch (op) {
    case LaneOp::constant:
    case LaneOp::load:
      return 0;
    case LaneOp::store:
    case LaneOp::square_root:
    case LaneOp::absolute:
    case LaneOp::negate:
    case LaneOp::floor:
    case LaneOp::round:
    case LaneOp::function:
      return 1;
    case LaneOp::fma:
    case LaneOp::nfma:
    case LaneOp::select:
    case LaneOp::function_of_three:
      return 3;
    default:
      return 2;
  }
}

// Rows of kTileLanes numbers lie one after another in arrays, which are handed over when code runs: row `row` of array
// `base`. Different arrays do not overlap. Registers are those beside one another in a row.
struct LanePlace {
  std::uint8_t base = 0;
  std::uint8_t beside = 0;
  std::uint32_t row = 0;

  auto operator<=>(const LanePlace&) const = default;
};

// Clang hands wide registers over as the flags of the whole file say, not the function's own instruction set: built by
// it nothing can be called, and such operations stay steps of their own.
#ifdef __clang__
inline constexpr bool kCallsFunctions = false;
#else
inline constexpr bool kCallsFunctions = true;
#endif

// Code on whole registers, of the precision and instruction set that the program is compiled for: a function of the
// System V convention that is handed the context and the values, and returns what it makes of them.
struct LaneFunction {
  const void* code = nullptr;
  std::shared_ptr<const void> context = {};

  bool operator==(const LaneFunction&) const = default;
};

struct LaneInstruction {
  LaneOp op;
  std::uint32_t read[3] = {};
  LanePlace place = {};  // of load and store
  double number = 0;     // of constant
  std::uint32_t function = 0;  // of LaneProgram::functions()
};

constexpr bool is_call(LaneOp op) {
  return op == LaneOp::function || op == LaneOp::function_of_two || op == LaneOp::function_of_three;
}

class LaneProgram {
 public:
  static constexpr std::size_t kMostBases = 7;
  using Value = std::uint32_t;

  // `together` registers of each row are in the program; the code goes over a tile in steps of as many.
  explicit LaneProgram(int together = 1) : together_(together) {}

  Value constant(double number) {
    const auto [found, is_new] = constants_.try_emplace(bits(number), Value{});
    if (is_new) found->second = append({.op = LaneOp::constant, .number = number});
    return found->second;
  }
  Value load(LanePlace place) {
    const auto [found, is_new] = rows_.try_emplace(place, Value{});
    if (is_new) found->second = append({.op = LaneOp::load, .place = place});
    return found->second;
  }
  void store(Value value, LanePlace place) {
    rows_[place] = value;
    append({.op = LaneOp::store, .read = {value, 0, 0}, .place = place});
  }
  // Where the code repeats: `made` becomes what `loaded` is the next time, and lies in that one's place at the end.
  // Nothing else is stored there.
  void carry(Value loaded, Value made) { carried_.push_back({loaded, made}); }
  Value apply(LaneOp op, Value a, Value b = 0, Value c = 0) { return append({.op = op, .read = {a, b, c}}); }
  // `op` is one of the functions'; only in programs that hold for one instruction set.
  Value call(LaneOp op, LaneFunction function, Value a, Value b = 0, Value c = 0) {
    std::uint32_t number = 0;
    while (number < functions_.size() && !(functions_[number] == function)) ++number;
    if (number == functions_.size()) functions_.push_back(std::move(function));
    return append({.op = op, .read = {a, b, c}, .function = number});
  }

  Value add(Value a, Value b) { return apply(LaneOp::add, a, b); }
  Value multiply(Value a, Value b) { return apply(LaneOp::multiply, a, b); }
  Value divide(Value a, Value b) { return apply(LaneOp::divide, a, b); }
  Value fma(Value a, Value b, Value c) { return apply(LaneOp::fma, a, b, c); }

  int together() const { return together_; }
  // A value's number is its instruction's.
  const std::vector<LaneInstruction>& instructions() const { return instructions_; }
  const std::vector<LaneFunction>& functions() const { return functions_; }
  struct Carried {
    Value loaded, made;
  };
  const std::vector<Carried>& carried() const { return carried_; }

 private:
  static std::uint64_t bits(double number) {
    std::uint64_t all;
    __builtin_memcpy(&all, &number, sizeof all);
    return all;
  }
  Value append(LaneInstruction instruction) {
    instructions_.push_back(instruction);
    return static_cast<Value>(instructions_.size() - 1);
  }

  int together_;
  std::vector<LaneInstruction> instructions_;
  std::vector<LaneFunction> functions_;
  std::vector<Carried> carried_;
  std::map<std::uint64_t, Value> constants_;
  std::map<LanePlace, Value> rows_;  // what lies there, where that is known
};

}  // namespace lockstep
