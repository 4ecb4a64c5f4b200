#include "lockstep/nn/detail/equation_tokens.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "lockstep/nn/detail/equation_names.h"

namespace lockstep::nn::detail {
namespace {

constexpr std::size_t kLongest = 8192;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What to write for a sign of programming languages that is none here.
std::string sign_remedy(std::string_view rest) {
  if (rest.starts_with('!')) return "write not c for !c";
  if (rest.starts_with('&')) return "write a and b";
  if (rest.starts_with("||")) return "write a or b";
  if (rest.starts_with('|')) return "write abs(x), or a or b";
  if (rest.starts_with('?')) return "write if(c, a, b) for c ? a : b";
  if (rest.starts_with("<>")) return "write a != b for a <> b";
  if (rest.starts_with("//")) return "write floor(a / b) for a // b";
  return {};
}

// The characters of a text in UTF-8; of a damaged one what can be read.
std::vector<std::uint32_t> characters_of(std::string_view text) {
  std::vector<std::uint32_t> characters;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const std::size_t more = byte >= 0xf0 ? 3 : byte >= 0xe0 ? 2 : byte >= 0xc0 ? 1 : 0;
    if (more == 0 && byte < 0x80) characters.push_back(byte);
    if (more == 0 || i + more >= text.size()) continue;
    std::uint32_t code = byte & (0x3fU >> more);
    for (std::size_t k = 1; k <= more; ++k) code = code << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3fU);
    i += more;
    characters.push_back(code);
  }
  return characters;
}

std::string code_text(std::uint32_t code) {
  std::array<char, 8> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), code, 16).ptr;
  std::string hex(digits.data(), end);
  std::ranges::transform(hex, hex.begin(), [](char c) { return c >= 'a' ? static_cast<char>(c - 'a' + 'A') : c; });
  return "U+" + std::string(hex.size() < 4 ? 4 - hex.size() : 0, '0') + hex;
}

// The first character of `text` that is neither ASCII nor a Latin or Greek letter, as "U+0445"; of a damaged one
// nothing.
std::string strange_character(std::string_view text) {
  for (const std::uint32_t code : characters_of(text)) {
    if (code < 0x80 || (code >= 0xc0 && code < 0x250) || (code >= 0x370 && code < 0x400)) continue;
    return code_text(code);
  }
  return {};
}

// Of letters that look the same one.
std::uint32_t as_it_looks(std::uint32_t code) {
  static constexpr std::array<std::pair<std::uint32_t, char>, 15> kGreek{{{0x391, 'A'},
                                                                          {0x392, 'B'},
                                                                          {0x395, 'E'},
                                                                          {0x396, 'Z'},
                                                                          {0x397, 'H'},
                                                                          {0x399, 'I'},
                                                                          {0x39a, 'K'},
                                                                          {0x39c, 'M'},
                                                                          {0x39d, 'N'},
                                                                          {0x39f, 'O'},
                                                                          {0x3a1, 'P'},
                                                                          {0x3a4, 'T'},
                                                                          {0x3a5, 'Y'},
                                                                          {0x3a7, 'X'},
                                                                          {0x3bf, 'o'}}};
  for (const auto& [greek, latin] : kGreek) {
    if (code == greek) return static_cast<std::uint32_t>(latin);
  }
  return code == 0xb5 ? 0x3bc : code;  // micro and mu
}

}  // namespace

Tokens::Tokens(const Equation& source) : source_(source) {
  if (source.text.size() > kLongest) {
    refuse(Token{}, std::to_string(source.text.size()) + " bytes", "at most " + std::to_string(kLongest),
           "give names to its parts, as definitions");
  }
  read();
}

Token Tokens::take() {
  const Token taken = now_;
  read();
  return taken;
}

bool Tokens::take_if(std::string_view symbol) {
  if (!now_.is(symbol)) return false;
  read();
  return true;
}

void Tokens::expect(std::string_view symbol, const std::string& what) {
  if (!take_if(symbol)) refuse(now_, now_.quoted(), what);
}

std::string_view Tokens::text_since(const Token& begin) const {
  std::string_view text = std::string_view(source_.text).substr(begin.offset, now_.offset - begin.offset);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  return text;
}

void Tokens::refuse(const Token& at, std::string found, std::string expected, std::string remedy) const {
  const std::string name = source_.where.empty() ? source_.name : source_.where;
  throw ExpressionError({name, std::move(found), std::move(expected), std::move(remedy)}, source_.text, at.offset);
}

void Tokens::read() {
  static constexpr std::array<std::string_view, 19> kSymbols{"<=", ">=", "==", "!=", "+", "-", "*", "/", "%", "^",
                                                             "(",  ")",  "[",  "]",  ",", ".", "<", ">", "="};
  const std::string_view text = source_.text;
  while (next_ < text.size() && is_space(text[next_])) ++next_;
  now_ = {Token::Kind::end, {}, next_, 0};
  if (next_ == text.size()) return;
  const char c = text[next_];
  if (is_digit(c) || (c == '.' && next_ + 1 < text.size() && is_digit(text[next_ + 1]))) return read_number();
  std::size_t end = next_;
  if (begins_name(c)) {
    while (end < text.size() && (begins_name(text[end]) || is_digit(text[end]))) ++end;
    now_.kind = Token::Kind::name;
  } else {
    const auto symbol =
        std::ranges::find_if(kSymbols, [&](std::string_view s) { return text.substr(next_).starts_with(s); });
    if (symbol == kSymbols.end()) {
      refuse(now_, '"' + std::string(1, c) + '"', "a number, a name, or an operator", sign_remedy(text.substr(next_)));
    }
    end += symbol->size();
    now_.kind = Token::Kind::symbol;
  }
  now_.text = text.substr(next_, end - next_);
  if (const std::string_view rest = text.substr(next_); rest.starts_with("<>") || rest.starts_with("//")) {
    refuse(now_, '"' + std::string(rest.substr(0, 2)) + '"', "an operator", sign_remedy(rest));
  }
  if (now_.text == "=") refuse(now_, "\"=\"", "an expression", "write == to compare");
  next_ = end;
}

void Tokens::read_number() {
  const std::string_view rest = std::string_view(source_.text).substr(next_);
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), now_.number);
  const auto length = static_cast<std::size_t>(end - rest.data());
  now_.kind = Token::Kind::number;
  now_.text = rest.substr(0, length);
  if (error != std::errc() || !std::isfinite(now_.number)) {
    refuse(now_, now_.quoted(), "a number that float64 has", "");
  }
  if (length < rest.size() && begins_name(rest[length])) {
    refuse(now_, '"' + std::string(rest.substr(0, length + 1)) + '"', "an operator after the number",
           "write " + std::string(now_.text) + " * ...");
  }
  next_ += length;
}

std::string keyboard_remedy(std::string_view name) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kSigns{{{"\u2212", "-"},
                                                                                         {"\u2013", "-"},
                                                                                         {"\u00d7", "*"},
                                                                                         {"\u00b7", "*"},
                                                                                         {"\u22c5", "*"},
                                                                                         {"\u00f7", "/"},
                                                                                         {"\u00b2", "^2"},
                                                                                         {"\u00b3", "^3"},
                                                                                         {"\u2264", "<="},
                                                                                         {"\u2265", ">="},
                                                                                         {"\u03c0", "pi"},
                                                                                         {"\u221a", "sqrt(...)"}}};
  for (const auto& [sign, word] : kSigns) {
    if (name.find(sign) != name.npos) return "write " + std::string(word) + " for " + std::string(sign);
  }
  if (name.find("\u2260") != name.npos) return "write a != b for a \u2260 b";
  const std::string code = strange_character(name);
  return code.empty() ? ""
                      : "it has the character " + code + ", which may look like another or like nothing: type it anew";
}

std::string look_alike_remedy(std::string_view name, std::span<const std::string_view> known) {
  const std::vector<std::uint32_t> written = characters_of(name);
  for (const std::string_view other : known) {
    const std::vector<std::uint32_t> meant = characters_of(other);
    if (!std::ranges::equal(written, meant, {}, as_it_looks, as_it_looks)) continue;
    const auto [one, two] = std::ranges::mismatch(written, meant);
    if (one == written.end()) continue;
    return "it has the character " + code_text(*one) + " where the known name has " + code_text(*two) +
           ", which looks the same: write one of them in both";
  }
  return {};
}

}  // namespace lockstep::nn::detail
