#include "lockstep/nn/unread_names.h"

#include <string_view>
#include <unordered_set>

#include "lockstep/nn/detail/equation_tokens.h"

namespace lockstep::nn {

std::vector<std::string> unread_names(const Equations& system, std::span<const Equation> others) {
  std::unordered_set<std::string_view> read;
  const auto look_at = [&read](const Equation& expression) {
    detail::Tokens tokens(expression);
    bool is_output = false;  // "drag" of "net(v).drag"
    for (detail::Token token = tokens.take(); token.kind != detail::Token::Kind::end; token = tokens.take()) {
      if (token.kind == detail::Token::Kind::name && !is_output) read.insert(token.text);
      is_output = token.is(".");
    }
  };
  for (const auto& texts :
       {std::span<const Equation>(system.equations), std::span<const Equation>(system.definitions), others}) {
    for (const Equation& expression : texts) look_at(expression);
  }
  std::vector<std::string> unread;
  const auto look_for = [&](const std::string& name) {
    if (!read.contains(name)) unread.push_back(name);
  };
  for (const Equations::Parameter& parameter : system.parameters) look_for(parameter.name);
  for (const Equation& definition : system.definitions) look_for(definition.name);
  return unread;
}

}  // namespace lockstep::nn
