// The words of an expression.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/nn/equations.h"

namespace lockstep::nn::detail {

struct Token {
  enum class Kind { number, name, symbol, end };
  Kind kind = Kind::end;
  std::string_view text;   // of the source; symbols: + - * / ^ ( ) [ ] , . < <= > >= == !=
  std::size_t offset = 0;  // in bytes
  double number = 0;

  bool is(std::string_view symbol) const { return kind == Kind::symbol && text == symbol; }
  std::string quoted() const { return kind == Kind::end ? "the end" : '"' + std::string(text) + '"'; }
};

// One text, token by token. Letters of other alphabets are letters: any byte above 127 is.
class Tokens {
 public:
  explicit Tokens(const Equation& source);

  const Token& now() const { return now_; }
  Token take();  // this one; moves on
  bool take_if(std::string_view symbol);
  void expect(std::string_view symbol, const std::string& what);  // or throws: expected `what`
  // The text from a token on to the present one.
  std::string_view text_since(const Token& begin) const;
  [[noreturn]] void refuse(const Token& at, std::string found, std::string expected, std::string remedy = {}) const;

 private:
  void read();
  void read_number();

  const Equation& source_;
  std::size_t next_ = 0;
  Token now_;
};

// What to write for a sign of print in a name, a long minus or a dot for products, which is a letter like any other
// here, and for a character that looks like another or like nothing; empty where there is none.
std::string keyboard_remedy(std::string_view name);

// What to write where one of the known names looks the same but for letters of print or of another script: the sign
// micro and the Greek letter mu, the Greek and the Latin A. Empty where none does.
std::string look_alike_remedy(std::string_view name, std::span<const std::string_view> known);

}  // namespace lockstep::nn::detail
