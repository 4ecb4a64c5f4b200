// A lane type that writes C instead of computing: the library's own function templates, instantiated with it, become
// the text of functions with the same operations in the same order. So an exported header has no second set of
// formulas.
//
// In all emitted text `$` stands for the header's prefix ("closure_"), `@` for the same in capitals, `~` for what
// tells functions of one precision from those of the other ("_f32", "_f64", or nothing where C++ overloads them).
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/core/text.h"
#include "lockstep/kernels/math/reduce_pi.h"

namespace lockstep::nn::detail {

// The shortest literal that a C compiler reads as exactly this number.
template <class T>
std::string c_literal(T x) {
  if (!std::isfinite(x)) throw std::logic_error("c_literal: a number that C has no literal for");
  std::string text = number_text(x);
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return sizeof(T) == 4 ? text + "f" : text;
}

// Statements of the function being written; each operation met before is named again, not repeated.
class CRecorder {
 public:
  CRecorder() : outer_(current_) { current_ = this; }
  ~CRecorder() { current_ = outer_; }
  CRecorder(const CRecorder&) = delete;
  CRecorder& operator=(const CRecorder&) = delete;

  static CRecorder& current() { return *current_; }

  // The name that holds the expression's value.
  std::string name_of(const std::string& type, const std::string& expression) {
    const auto [place, is_new] = names_.try_emplace(expression, "t" + std::to_string(names_.size()));
    if (is_new) {
      statements_.push_back({place->second, "  const " + type + " " + place->second + " = " + expression + ";\n"});
    }
    return place->second;
  }
  std::string table(const float* numbers) {
    const auto [place, is_new] = tables_.try_emplace(numbers, "table" + std::to_string(tables_.size()));
    if (is_new) {
      std::string text = "  static const float " + place->second + "[16] = {";
      for (int i = 0; i < 16; ++i) {
        text += (i == 0 ? "" : i % 8 == 0 ? ",\n      " : ", ") + c_literal(numbers[i]);
      }
      statements_.push_back({place->second, text + "};\n"});
    }
    return place->second;
  }
  // Those that `result` needs, in their order.
  std::string statements(const std::string& result) const {
    std::set<std::string> needed = words(result);
    std::string text;
    for (auto statement = statements_.rbegin(); statement != statements_.rend(); ++statement) {
      if (!needed.contains(statement->name)) continue;
      needed.merge(words(statement->text));
      text.insert(0, statement->text);
    }
    return text;
  }

 private:
  static inline thread_local CRecorder* current_ = nullptr;
  // Runs of letters and digits.
  static std::set<std::string> words(const std::string& text) {
    std::set<std::string> all;
    std::string word;
    for (const char c : text + " ") {
      if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_') {
        word += c;
      } else if (!word.empty()) {
        all.insert(std::move(word));
        word.clear();
      }
    }
    return all;
  }

  struct Statement {
    std::string name, text;
  };
  CRecorder* outer_;
  std::vector<Statement> statements_;
  std::map<std::string, std::string> names_;
  std::map<const float*, std::string> tables_;
};

// The interface of ScalarLane. Numbers, masks and integers are texts of C expressions without side effects; integers
// are unsigned in the text.
template <class Number>
struct CLane {
  struct Text {
    std::string text;
  };
  struct V : Text {};
  struct M : Text {};
  struct I : Text {};
  using T = Number;
  using TI = typename lockstep::detail::IntOf<T>::type;

  static constexpr bool kSingle = sizeof(T) == 4;
  static constexpr const char* kType = kSingle ? "float" : "double";
  static constexpr const char* kInteger = kSingle ? "uint32_t" : "uint64_t";

  static V set(T x) {
    if (!std::isfinite(x)) {
      const auto bits = std::bit_cast<std::make_unsigned_t<TI>>(x);
      return {{std::string("$from_bits~((") + kInteger + ")" + std::to_string(bits) + (kSingle ? "u)" : "ull)")}};
    }
    return {{std::signbit(x) ? "(" + c_literal(x) + ")" : c_literal(x)}};
  }
  static V zero() { return set(T(0)); }
  static V add(V a, V b) { return number(a.text + " + " + b.text); }
  static V sub(V a, V b) { return number(a.text + " - " + b.text); }
  static V mul(V a, V b) { return number("$mul~(" + a.text + ", " + b.text + ")"); }
  static V div(V a, V b) { return number("$div~(" + a.text + ", " + b.text + ")"); }
  static V sqrt(V a) { return number("$sqrt~(" + a.text + ")"); }
  static V neg(V a) { return {{"(-" + a.text + ")"}}; }
  static V abs(V a) { return number("$abs~(" + a.text + ")"); }
  static V floor(V a) { return number("$round_down~(" + a.text + ")"); }
  static V round(V a) { return number("$round_to_even~(" + a.text + ")"); }
  static V fma(V a, V b, V c) { return number("$fma~(" + a.text + ", " + b.text + ", " + c.text + ")"); }
  static V fms(V a, V b, V c) { return fma(a, b, neg(c)); }
  static V nfma(V a, V b, V c) { return fma(neg(a), b, c); }
  static V copysign(V a, V b) { return number("$copysign~(" + a.text + ", " + b.text + ")"); }
  static V copysign_to_abs(V a, V b) { return copysign(a, b); }
  static V min(V a, V b) { return number(b.text + " < " + a.text + " ? " + b.text + " : " + a.text); }
  static V max(V a, V b) { return number(b.text + " > " + a.text + " ? " + b.text + " : " + a.text); }

  static M lt(V a, V b) { return {{"(" + a.text + " < " + b.text + ")"}}; }
  static M le(V a, V b) { return {{"(" + a.text + " <= " + b.text + ")"}}; }
  static M eq(V a, V b) { return {{"(" + a.text + " == " + b.text + ")"}}; }
  static M both(M a, M b) { return {{"(" + a.text + " && " + b.text + ")"}}; }
  static M either(M a, M b) { return {{"(" + a.text + " || " + b.text + ")"}}; }
  static M negate(M a) { return {{"(!" + a.text + ")"}}; }
  static V select(M m, V yes, V no) { return number(m.text + " ? " + yes.text + " : " + no.text); }
  // Rare cases are written out; the select that follows keeps them from being computed.
  static bool any(M) { return true; }
  template <class F>
  static V map(V a, F f) {
    const T probe = T(0x1p40);
    for (const int quarter_turns : {0, 1}) {
      if (f(probe) != math::reduce_huge_angle(probe, quarter_turns)) continue;
      return {{"$reduce_huge_angle~(" + a.text + ", " + std::to_string(quarter_turns) + ")"}};
    }
    throw std::logic_error("CLane::map: an unknown function");
  }
  static constexpr bool kHasScale = false;

  static I bits(V a) { return integer("$bits~(" + a.text + ")"); }
  static V from_bits(I a) { return number("$from_bits~(" + a.text + ")"); }
  static I int_set(TI a) { return {{std::to_string(std::make_unsigned_t<TI>(a)) + (kSingle ? "u" : "ull")}}; }
  static I int_add(I a, I b) { return integer(a.text + " + " + b.text); }
  static I int_sub(I a, I b) { return integer(a.text + " - " + b.text); }
  static I int_and(I a, I b) { return integer(a.text + " & " + b.text); }
  static I int_or(I a, I b) { return integer(a.text + " | " + b.text); }
  static I int_xor(I a, I b) { return integer(a.text + " ^ " + b.text); }
  template <int k>
  static I shift_left(I a) {
    return integer(a.text + " << " + std::to_string(k));
  }
  template <int k>
  static I shift_right_logical(I a) {
    return integer(a.text + " >> " + std::to_string(k));
  }
  static constexpr bool kLooksUpInOne = true;
  static V lookup16(const float* table, I i) {
    return number(CRecorder::current().table(table) + "[" + i.text + " & 15u]");
  }

 private:
  static V number(const std::string& expression) { return {{CRecorder::current().name_of(kType, expression)}}; }
  static I integer(const std::string& expression) { return {{CRecorder::current().name_of(kInteger, expression)}}; }
};

}  // namespace lockstep::nn::detail
