// Reads expressions over the names of a system into nodes: precedence climbing, one operator at a time.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/nn/detail/equation_graph.h"
#include "lockstep/nn/detail/equation_tokens.h"
#include "lockstep/nn/equations.h"

namespace lockstep::nn::detail {

class EquationReader {
 public:
  using Value = EquationGraph::Value;

  // Keeps the system, and puts its nodes into `graph`. Throws Error for names that clash or are none.
  EquationReader(const Equations& system, EquationGraph& graph);

  Value read(const Equation& equation);
  void read_definitions();  // all of them, needed or not
  bool reads_time() const { return time_at_.has_value(); }
  std::size_t time_at() const { return *time_at_; }  // its offset where it is read first

  // A net that is called but not there: its calls are noted, what they give is unknown.
  struct OpenNet {
    std::string name;
    std::size_t width = 0;                  // inputs; 0: not called yet
    std::vector<std::string> input_names;   // their texts in the first call, others noted by " ..."
    std::vector<std::vector<Value>> calls;  // inputs of those that differ and are known
    bool reads_unknown = false;             // there are others, with what open nets give in their inputs
    std::vector<std::string> outputs;
    bool by_name = false;
  };
  // Throws Error for a name that is taken.
  void open(const std::string& name);
  const std::vector<OpenNet>& opened() const { return open_; }

 private:
  enum class What { component, parameter, definition };
  struct Name {
    What what;
    std::size_t index;
  };
  struct Definition {
    bool begun = false, done = false;
    Value value;
  };
  // While one of these lives, the text is nested one deeper; throws where that is too deep.
  class Deeper;

  // ---- equation_reader.cpp
  void require_free_net_name(const std::string& name, std::size_t nets, const std::string& where = {}) const;
  void add_name(const std::string& name, const std::string& where, Name meaning);
  Value expression(Tokens& tokens, int binding);
  Value operand(Tokens& tokens);
  Value combine(std::string_view symbol, const Value& a, const Value& b);
  Value one_or_zero(Value value);   // notes that it is nothing else
  Value truth(const Value& value);  // 1 where it is not 0, else 0
  Value opposite(const Value& value);
  Value power(const Value& base, const Value& exponent);
  Value checked(Tokens& tokens, const Token& at, Value value);
  Value named(Tokens& tokens, const Token& name);
  Value definition(Tokens& tokens, const Token& name, std::size_t index);
  [[noreturn]] void unknown(Tokens& tokens, const Token& name) const;

  // ---- equation_calls.cpp
  Value called(Tokens& tokens, const Token& name);
  Value function(Tokens& tokens, const Token& name, const std::vector<Value>& inputs);
  Value open_output(Tokens& tokens, const Token& name, OpenNet& net, const std::vector<Value>& inputs,
                    const std::vector<std::string>& texts);
  Value net_output(Tokens& tokens, const Token& name, const Equations::Net& net, const std::vector<Value>& inputs,
                   const std::vector<std::string>& texts);

  const Equations& system_;
  EquationGraph& graph_;
  std::map<std::string, Name, std::less<>> names_;
  std::vector<Definition> definitions_;
  std::vector<OpenNet> open_;
  std::set<std::string, std::less<>> ones_and_zeros_;  // nodes of which nothing else comes
  int depth_ = 0;
  std::optional<std::size_t> time_at_;
};

}  // namespace lockstep::nn::detail
