// Right-hand sides written as text, "sigma * (y - x)", with nets called by name inside them. They become a model of the
// operations that nets are made of, so that whatever takes a model takes equations: solves and their gradients,
// exported headers, plan files.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/kernels/graph/weights.h"
#include "lockstep/nn/model.h"

namespace lockstep::nn {

struct Equation {
  std::string name;
  std::string text;
  std::string where;  // what messages call it; empty: its name
};

// The language is that of docs/problem_file.md: + - * / ^, comparisons, functions, numbers, names, "net(a, b).output".
struct Equations {
  std::vector<Equation> equations;    // one for each component of the state, in order: its derivative by time
  std::vector<Equation> definitions;  // names that stand for expressions, in any order
  struct Parameter {
    std::string name;
    std::optional<double> value;  // where a trajectory is given none
  };
  std::vector<Parameter> parameters;
  struct Net {
    std::string name;
    Model model;
    std::string where = {};  // what messages call it; empty: models
  };
  std::vector<Net> nets;  // and tables
};

// A text that is no expression, or not one of these names. The field ends with the column.
class ExpressionError : public Error {
 public:
  ExpressionError(Parts parts, std::string_view text, std::size_t offset);

  // The line in question and, below it, a caret where it goes wrong.
  const std::string& excerpt() const noexcept { return excerpt_; }

 private:
  std::string excerpt_;
};

// The model du/dt = f(u, p, t): input ports "u", then "p" and "t" where there are parameters and where time is read;
// one output port "du". Operations are rounded one by one, in the order in which they are written; parts of numbers
// alone are evaluated in float64. A call that is written twice is computed once. The metadata keep text and defaults,
// `calls` what the called nets were trained on: guarded_calls.h makes use of it.
// Throws ExpressionError, or Error (invalid_argument) for names that clash, (model) for an invalid net.
Model equations(const Equations& system);

// f(u, p, t) of expressions over the names of `system`, whose own texts are not read but for definitions: output port
// "value", a feature for each expression; `calls` as of equations().
Model expressions(std::span<const Equation> functions, const Equations& system);
Model expression(const Equation& function, const Equations& system);

// How the texts call a net that has yet to be made. One output may be taken as it is, several by index or by name.
struct NetCalls {
  std::vector<std::string> inputs;   // their texts in its first call, " ..." behind one that differs in another
  std::vector<std::string> outputs;  // by index; the names, where it is called by names
  std::size_t calls = 0;             // with differing inputs; those not counted whose inputs hold what such nets give
  Model read;                        // f(u, p, t): what these calls read, output port "inputs" [call][input]
  bool reads_nets = false;           // there are calls that are not counted
};
// One for each of `nets`, which are not among the system's. Throws as equations(), and where one is not called.
std::vector<NetCalls> net_calls(const Equations& system, std::span<const std::string> nets);

// For ode::NetOptions: of equations(system), the weights of these nets are trained, one after another, which all calls
// of a net share; the others' are kept.
graph::WeightPlaces weight_places(const Model& equations, const Equations& system,
                                  std::span<const std::string> trained);

// What an expression of numbers alone is: "8/3".
double constant_expression(const Equation& constant);

// Whether a text over the names of `system` is a number, whatever state, parameters and time are. A parameter called e
// is no constant.
bool is_constant(const Equation& function, const Equations& system);

// The defaults that a model of equations keeps, one for each feature of its port "p"; empty for other models.
std::vector<std::optional<double>> parameter_defaults(const Model& model);

}  // namespace lockstep::nn
