#include "random_problem.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <random>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "lockstep/core/text.h"
#include "lockstep/kernels/mlp/testing/reference.h"
#include "lockstep/nn/equations.h"
#include "lockstep/nn/table_model.h"
#include "lockstep/ode/cuda/testing/threshold.h"
#include "lockstep/ode/guard.h"
#include "lockstep/ode/methods.h"
#include "lockstep/ode/rhs.h"

namespace lockstep::ode {
namespace {

// Numbers from raw words of the generator: standard distributions differ between libraries.
class Draw {
 public:
  explicit Draw(std::uint64_t seed) : words_(seed) {}
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(words_() % n); }
  std::size_t between(std::size_t low, std::size_t high) { return low + below(high - low + 1); }
  bool one_in(std::size_t n) { return below(n) == 0; }
  double uniform(double low, double high) { return low + (high - low) * static_cast<double>(words_() >> 11) * 0x1p-53; }
  template <class T>
  const T& of(const std::vector<T>& choices) {
    return choices[below(choices.size())];
  }
  // A number that is often a round one: where things coincide, faults live.
  double round_or_not(double low, double high) {
    const double x = uniform(low, high);
    return one_in(2) ? x : std::clamp(std::round(8 * x) / 8, low, high);
  }

 private:
  std::mt19937_64 words_;
};

// Parts in braces are made one after another: of arguments, and of sums, each compiler takes an order of its own, and a
// seed would be another problem.
std::string joined(std::initializer_list<std::string> parts) {
  std::string text;
  for (const std::string& part : parts) text += part;
  return text;
}

constexpr const char* kNames[] = {"a", "b", "c", "d", "f", "g", "h", "k"};

// Expressions over the names of a system of equations.
class Texts {
 public:
  // `functions`: those that are no arithmetic, which become machine code with the method.
  Texts(Draw& draw, const nn::Equations& system, bool functions = true)
      : draw_(draw), system_(system), functions_(functions) {}

  std::string expression(int depth) {
    if (depth == 0) return leaf();
    const auto sub = [&] { return expression(depth - 1); };
    switch (draw_.below(functions_ ? 24 : 13)) {
      case 0:
        return joined({"(", sub(), " + ", sub(), ")"});
      case 1:
        return joined({"(", sub(), " - ", sub(), ")"});
      case 2:
        return joined({"(", sub(), " * ", sub(), ")"});
      case 3:
        return joined({"(", sub(), " / (1 + (", sub(), ")^2))"});
      case 4:
        return joined({"-", leaf()});
      case 5:
        return joined({"sqrt(abs(", sub(), "))"});
      case 6:
        return joined({draw_.of<std::string>({"abs", "floor", "ceil", "round", "square"}), "(", sub(), ")"});
      case 7:
        return joined({draw_.of<std::string>({"min", "max"}), "(", sub(), ", ", sub(), ")"});
      case 8:
        return joined({"if(", condition(), ", ", sub(), ", ", sub(), ")"});
      case 9:
        return joined({"(", sub(), " % ", number(0.5, 3), ")"});
      case 10:
        return joined({"clamp(", sub(), ", -1, ", number(0, 2), ")"});
      case 11:
        return joined({"(", leaf(), ")^", std::to_string(draw_.between(2, 4))});
      case 12:
        return joined({"(", sub(), " / ", leaf(), ")"});  // which may be zero
      case 13:
        return joined({draw_.of<std::string>({"sin", "cos", "tan"}), "(", sub(), ")"});
      case 14:
        return joined({draw_.of<std::string>({"tanh", "sinh", "atan", "asinh", "erf"}), "(", sub(), ")"});
      case 15:
        return joined({draw_.of<std::string>({"sigmoid", "relu", "softplus", "silu", "gelu"}), "(", sub(), ")"});
      case 16:
        return joined({draw_.of<std::string>({"log", "acos", "acosh", "atanh", "cosh"}), "(", leaf(), ")"});
      case 17:
        return joined({"exp(-abs(", sub(), "))"});
      case 18:
        return joined({"log(1 + (", sub(), ")^2)"});
      case 19:
        return joined({"atan2(", sub(), ", ", leaf(), ")"});
      case 20:
        return joined({"abs(", leaf(), ")^", number(0.5, 3)});
      default:
        return call(depth);
    }
  }
  // None with a part of numbers alone that gives no number, such as log(-1), which is refused.
  std::string sound_expression(int depth, const std::string& behind = "") {
    while (true) {
      std::string text = expression(depth) + behind;
      try {
        nn::expression({"drawn", text, ""}, system_);
        return text;
      } catch (const nn::ExpressionError&) {
      }
    }
  }
  std::string condition() {
    const std::string left = draw_.one_in(2) ? "t" : leaf();
    return joined(
        {left, draw_.of<std::string>({" < ", " > ", " <= ", " >= "}), draw_.one_in(2) ? number(-1, 2) : leaf()});
  }
  std::string leaf() {
    const std::size_t n = system_.equations.size(), m = system_.parameters.size();
    const std::size_t i = draw_.below(2 * n + m + 2);
    if (i < 2 * n) return system_.equations[i % n].name;
    if (i < 2 * n + m) return system_.parameters[i - 2 * n].name;
    return i == 2 * n + m ? "t" : number(-2, 2);
  }
  std::string number(double low, double high) { return rounded_text(draw_.round_or_not(low, high), 6); }

 private:
  std::string call(int depth) {
    if (system_.nets.empty()) return leaf();
    const nn::Equations::Net& net = system_.nets[draw_.below(system_.nets.size())];
    const std::size_t inputs = net.model.inputs[0].features.size(), outputs = net.model.outputs[0].features.size();
    std::string text = net.name + "(";
    for (std::size_t i = 0; i < inputs; ++i) {
      text += (i > 0 ? ", " : "") + (inputs == 1 && draw_.one_in(2) ? "t" : expression(std::max(0, depth - 2)));
    }
    text += ")";
    return outputs == 1 ? text : text + "[" + std::to_string(draw_.below(outputs)) + "]";
  }

  Draw& draw_;
  const nn::Equations& system_;
  bool functions_;
};

Activation any_activation(Draw& draw) {
  const std::span<const Activation> all = all_activations();
  return all[draw.below(all.size())];
}

// The net, of small weights, so that it does not blow up.
Mlp any_net(Draw& draw, std::size_t inputs, std::size_t outputs) {
  std::vector<std::size_t> widths{inputs};
  const std::size_t widest = draw.one_in(10) ? 40 : 20;
  for (std::size_t hidden = draw.below(3) + 1; hidden > 0; --hidden) widths.push_back(draw.between(1, widest));
  widths.push_back(outputs);
  const Activation activation = any_activation(draw);
  Mlp mlp = mlp::random_mlp(widths, activation, static_cast<unsigned>(draw.below(1000)));
  if (draw.one_in(3)) mlp::give_scaling(mlp);
  return mlp;
}

nn::Model any_table(Draw& draw) {
  using enum nn::Interpolation;
  nn::FunctionTable table;
  table.interpolation = draw.of<nn::Interpolation>({linear, previous, pchip});
  double at = draw.round_or_not(-1, 0.5);
  for (std::size_t knots = draw.between(2, 9); knots > 0; --knots) {
    table.at.push_back(at);
    at += std::max(0.0625, draw.round_or_not(0.01, 0.6));
  }
  const std::size_t columns = draw.between(1, 2);
  for (std::size_t i = 0; i < columns; ++i) table.outputs.push_back({.name = i == 0 ? "one" : "two", .unit = ""});
  for (std::size_t i = 0; i < columns * table.at.size(); ++i) table.values.push_back(draw.round_or_not(-1, 1));
  return nn::table_model(table);
}

nn::Equations any_equations(Draw& draw) {
  nn::Equations system;
  const std::size_t n = draw.between(1, draw.one_in(6) ? 7 : 3), m = draw.below(3);
  for (std::size_t i = 0; i < m; ++i) system.parameters.push_back({i == 0 ? "p" : "q", {}});
  const bool functions = !draw.one_in(3);
  if (functions && draw.one_in(3)) {
    const std::size_t inputs = draw.between(1, 3), outputs = draw.between(1, 2);
    system.nets.push_back({"net", nn::Model::from_mlp(any_net(draw, inputs, outputs))});
  }
  for (std::size_t i = functions ? draw.below(3) : 0; i > 0; --i)
    system.nets.push_back({i == 1 ? "rain" : "wind", any_table(draw)});
  for (std::size_t i = 0; i < n; ++i) system.equations.push_back({kNames[i], "", ""});
  Texts texts(draw, system, functions);
  for (nn::Equation& equation : system.equations) {
    const int depth = static_cast<int>(draw.between(1, 3));
    const std::string body = texts.sound_expression(depth);
    // Mostly bounded and pulled back to zero; sometimes whatever it is, which may run away.
    const std::string bounded = functions ? "tanh(" + body + ")" : "clamp(" + body + ", -1, 1)";
    equation.text = draw.one_in(4) ? body : "-0.5 * " + equation.name + " + " + bounded;
  }
  return system;
}

// What jumps with the time.
std::string leap(Draw& draw, Texts& texts) {
  const std::string from = texts.number(-1, 1), to = texts.number(-1, 1);
  switch (draw.below(4)) {
    case 0:
      return joined({"if(t < ", texts.number(0, 1), ", ", from, ", ", to, ")"});
    case 1:
      return joined({"if(t % ", texts.number(0.1, 0.7), " < ", texts.number(0.05, 0.4), ", ", from, ", ", to, ")"});
    case 2:
      return joined({"(", from, " * floor(", texts.number(1, 9), " * t))"});
    default:
      return joined({"(", from, " * (t % ", texts.number(0.2, 1), "))"});
  }
}

// A function that is near zero now and then: a component or an expression, less a number.
std::string any_function(Draw& draw, const nn::Equations& system) {
  Texts texts(draw, system);
  const std::string at = texts.number(-1, 1);
  switch (draw.below(6)) {
    case 0:
      return texts.expression(2) + " - " + at;
    case 1:
      return "sin(" + texts.number(1, 20) + " * t) - " + at;
    case 2:  // which leaps with the time
      return joined({system.equations[draw.below(system.equations.size())].name, " - ", leap(draw, texts)});
    case 3:
      return joined({leap(draw, texts), " - ", at, " * ", texts.leaf()});
    default:
      return system.equations[draw.below(system.equations.size())].name + " - " + at;
  }
}

TerminalEvent::Direction any_direction(Draw& draw) {
  using enum EventDirection;
  return draw.of<TerminalEvent::Direction>({either, rising, falling});
}

class Maker {
 public:
  explicit Maker(std::uint64_t seed) : draw_(seed) { say("seed ", seed); }

  RandomProblem make() {
    make_rhs();
    make_options();
    make_ensemble();
    make_events();
    make_impulses();
    return std::move(made_);
  }

 private:
  Problem& problem() { return made_.problem; }
  Options& options() { return made_.options; }
  // Adds a line to the description.
  template <class... Parts>
  void say(const Parts&... parts) {
    const auto add = [&]<class P>(const P& part) {
      if constexpr (std::is_arithmetic_v<P>) {
        made_.description += rounded_text(static_cast<double>(part), 10);
      } else {
        made_.description += part;
      }
    };
    (add(parts), ...);
    made_.description += '\n';
  }

  void make_rhs() {
    switch (draw_.below(6)) {
      case 0:
        make_system();
        break;
      case 1:
        make_net();
        break;
      case 2:
        make_sum();
        break;
      default:
        make_equations();
    }
    // Events and resets are written over the names of components and parameters whatever the right-hand side is.
    if (names_.equations.empty()) {
      for (std::size_t i = 0; i < problem().rhs->components(); ++i) names_.equations.push_back({kNames[i], "0", ""});
    }
  }
  void make_system() {
    std::string_view name = draw_.of(system_names());
    while (system_info(name).components.size() > std::size(kNames)) name = draw_.of(system_names());
    use_system(name, system(name));
    say("system ", name);
  }
  void use_system(std::string_view name, Rhs rhs) {
    const SystemInfo& info = system_info(name);
    problem().rhs = std::move(rhs);
    typical_state_ = info.default_initial_state;
    typical_parameters_ = info.default_parameters;
    span_ = std::min(info.default_end_time, 2.0);
  }
  void make_net() {
    const std::size_t n = draw_.between(1, 5), parameters = draw_.below(3);
    const bool with_time = draw_.one_in(3);
    const Mlp mlp = any_net(draw_, n + parameters + (with_time ? 1 : 0), n);
    problem().rhs = net(mlp, {.name = "net", .with_time = with_time});
    typical_state_.assign(n, 0.7);
    typical_parameters_.assign(parameters, 0.5);
    say(problem().rhs->description(), with_time ? " of the time" : "");
  }
  void make_sum() {
    const std::string_view name = draw_.of<std::string_view>({"lorenz", "van_der_pol", "rossler"});
    const std::size_t n = system_info(name).components.size();
    const Rhs closure = draw_.one_in(2) ? clamp_to_range(net(any_net(draw_, n, n)),
                                                         {std::vector<double>(n, -1), std::vector<double>(n, 2)})
                                        : net(any_net(draw_, n, n));
    use_system(name, sum(system(name), closure));
    say(name, " + ", closure->description());
  }
  void make_equations() {
    names_ = any_equations(draw_);
    problem().rhs = net(nn::to_graph(nn::equations(names_)));
    made_.as_text = true;
    typical_state_.assign(names_.equations.size(), 0.6);
    typical_parameters_.assign(problem().rhs->parameters(), 0.8);
    for (const nn::Equation& equation : names_.equations) say(equation.name, "' = ", equation.text);
    for (const nn::Equations::Net& net : names_.nets) say(net.name, " is ", describe(net.model));
  }
  static std::string describe(const nn::Model& model) {
    return nn::is_table(model) ? "a table" : "a net of " + std::to_string(model.parameter_count()) + " numbers";
  }

  void make_options() {
    options().method = std::string(draw_.of(method_names()));
    if (options().method.starts_with("rkc") && draw_.one_in(2)) options().method = "tsit5";
    options().precision = draw_.one_in(2) ? Precision::f32 : Precision::f64;
    const Tableau& tableau = method(options().method);
    const bool adaptive = tableau.error_order > 0 && !draw_.one_in(5);
    const int order = tableau.order;
    options().rtol = std::pow(10.0, -draw_.uniform(1, order < 4 ? 4 : options().precision == Precision::f32 ? 6 : 9));
    options().atol = options().rtol * (draw_.one_in(3) ? 0.01 : 1);
    if (!adaptive) {
      options().control = StepControl::fixed;
      options().dt = draw_.one_in(2) ? span_ / 32 : span_ * draw_.uniform(0.003, 0.2);
    } else if (draw_.one_in(6)) {
      options().control = StepControl::common;
    }
    if (adaptive && draw_.one_in(5)) options().initial_step = span_ * draw_.uniform(1e-4, 1);
    if (adaptive && draw_.one_in(5)) options().max_step = span_ * draw_.uniform(0.01, 0.6);
    options().max_steps = draw_.one_in(6) ? static_cast<std::int64_t>(draw_.between(1, 40)) : 1000;
    options().stop_at_knots = !draw_.one_in(5);
    if (draw_.one_in(5)) {
      for (std::size_t c = 0; c < problem().rhs->components(); ++c) {
        options().component_atol.push_back(options().atol * draw_.uniform(0.1, 10));
      }
    }
    constexpr const char* kControls[] = {"adaptive", "common", "fixed"};
    say(options().method, " ", to_string(options().precision), " ", kControls[static_cast<int>(options().control)],
        ": rtol ", options().rtol, ", atol ", options().atol, options().component_atol.empty() ? "" : " by component",
        ", dt ", options().dt, ", first step ", options().initial_step.value_or(0), ", longest ",
        options().max_step.value_or(0), ", at most ", options().max_steps);
  }

  void make_ensemble() {
    const std::size_t count =
        draw_.of<std::size_t>({1, 2, 3, 7, 16, 31, 32, 33, 40, made_.as_text ? std::size_t{257} : 34});
    const bool backwards = draw_.one_in(6), common = options().control == StepControl::common;
    const bool starts_differ = !common && draw_.one_in(4), ends_differ = !common && draw_.one_in(4);
    forwards_ = !backwards;
    const double sign = backwards ? -1 : 1, start = draw_.one_in(3) ? draw_.round_or_not(-1, 1) : 0;
    for (std::size_t i = 0; i < count; ++i) {
      for (const double u : typical_state_) {
        const double factor = draw_.uniform(0.7, 1.3);
        problem().initial_states.push_back(u * factor + 0.1 * draw_.round_or_not(-1, 1));
      }
      for (const double p : typical_parameters_) problem().parameters.push_back(p * draw_.uniform(0.8, 1.2));
    }
    problem().start_times.clear();
    for (std::size_t i = 0; i < (starts_differ ? count : 1); ++i) {
      problem().start_times.push_back(start + (starts_differ ? sign * 0.2 * span_ * draw_.round_or_not(0, 1) : 0));
    }
    for (std::size_t i = 0; i < (ends_differ ? count : 1); ++i) {
      // Now and then a trajectory ends where it begins.
      const double length = ends_differ ? std::max(0.0, draw_.round_or_not(-0.1, 1)) : 1;
      problem().end_times.push_back(start + sign * span_ * (0.2 + 0.8 * length));
    }
    if (ends_differ && starts_differ) problem().end_times[0] = problem().start_times[0];
    make_save_times(count, sign);
    say(count, " trajectories from ", problem().start_times[0], starts_differ ? " .." : "", " to ",
        problem().end_times[0], ends_differ ? " .." : "", ", ", problem().save_points(), " save points",
        problem().save_times_per_trajectory ? " of each" : "");
  }
  void make_save_times(std::size_t count, double sign) {
    const auto within = [&](double low, double high, std::size_t points) {
      std::vector<double> times;
      for (std::size_t i = 0; i < points; ++i) times.push_back(draw_.one_in(6) ? high : draw_.uniform(low, high));
      if (points > 1 && draw_.one_in(2)) times[0] = low;
      std::ranges::sort(times);
      times.erase(std::unique(times.begin(), times.end()), times.end());
      if (sign < 0) std::ranges::reverse(times);
      return times;
    };
    const std::size_t points = draw_.below(8);
    const bool of_each = problem().start_times.size() > 1 || problem().end_times.size() > 1;
    if (!of_each) {
      const double a = problem().start_times[0], b = problem().end_times[0];
      problem().save_times = within(std::min(a, b), std::max(a, b), points);
      return;
    }
    problem().save_times_per_trajectory = true;
    for (std::size_t i = 0; i < count; ++i) {
      const double a = problem().start_time(i), b = problem().end_time(i);
      // Rows of one length: where its span has no room for so many different times, its end again would be refused.
      const double step = points > 1 ? (b - a) / static_cast<double>(points - 1) : 0;
      if (a == b) {
        problem().save_times_per_trajectory = false;
        problem().save_times.clear();
        return;
      }
      for (std::size_t k = 0; k < points; ++k) {
        const double t = k + 1 == points ? b : a + step * static_cast<double>(k);
        problem().save_times.push_back(t);
      }
    }
  }

  Rhs function_of(const std::string& text) {
    return graph_function(nn::to_graph(nn::expression({"function", text, ""}, named())), parameters(), text);
  }
  std::size_t parameters() { return problem().rhs->parameters(); }
  const nn::Equations& named() { return names_; }

  void make_events() {
    if (draw_.one_in(3)) {
      const std::size_t component = draw_.below(problem().rhs->components());
      const double value = draw_.round_or_not(-1, 1.5);
      problem().event = TerminalEvent{cuda::threshold(problem().rhs->components(), parameters(), component, value),
                                      any_direction(draw_)};
      std::string text = std::string(kNames[component]) + " at " + rounded_text(value, 6);
      if (draw_.one_in(2)) {
        text = any_function(draw_, named());
        problem().event->function = function_of(text);
        made_.as_text = true;
      }
      say("event ", text, ", direction ", static_cast<int>(problem().event->direction));
    }
    if (!forwards_ || options().control != StepControl::per_trajectory || !draw_.one_in(3)) return;
    for (std::size_t i = draw_.between(1, 3); i > 0; --i) {
      const std::string text = any_function(draw_, named());
      std::vector<nn::Equation> changes;
      std::string becomes;
      const std::size_t struck = draw_.below(named().equations.size());
      for (std::size_t c = 0; c < named().equations.size(); ++c) {
        const std::string& name = named().equations[c].name;
        const std::string change =
            c != struck
                ? name
                : draw_.of<std::string>({"-0.7 * " + name, name + " + 0.5", "0.3", name + " - 1", name + " * t"});
        changes.push_back({name, change, ""});
        if (c == struck) becomes = name + " = " + change;
      }
      problem().resets.push_back(
          {function_of(text), graph_function(nn::to_graph(nn::expressions(changes, named())), parameters(), becomes),
           any_direction(draw_)});
      say("where ", text, ", direction ", static_cast<int>(problem().resets.back().direction), ": ", becomes);
    }
    problem().keep_events = draw_.one_in(2);
  }

  void make_impulses() {
    const auto [first, last] = problem().time_range();
    if (draw_.one_in(4)) {
      for (std::size_t i = draw_.between(1, 4); i > 0; --i) {
        options().stops.push_back(draw_.one_in(4) ? last : draw_.round_or_not(first - 0.1, last + 0.1));
      }
      if (options().control == StepControl::fixed) keep_stops_on_steps();
      say(options().stops.size(), " stops");
    }
    if (!forwards_ || !draw_.one_in(4)) return;
    if (options().control == StepControl::fixed) return;
    const bool of_each = options().control != StepControl::common && draw_.one_in(2);
    const std::size_t rows = of_each ? problem().trajectories() : 1;
    if (of_each) problem().first_impulse = {0};
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t i = draw_.below(4); i > 0; --i) {
        problem().impulses.push_back({.time = draw_.one_in(5) ? first : draw_.round_or_not(first, last),
                                      .component = draw_.below(problem().rhs->components()),
                                      .change = draw_.round_or_not(-0.5, 0.5),
                                      .factor = draw_.one_in(2) ? 1 : draw_.uniform(0.5, 1.1)});
      }
      if (of_each) problem().first_impulse.push_back(problem().impulses.size());
    }
    say(problem().impulses.size(), " impulses", of_each ? " of each" : "");
  }
  // Of fixed steps one must end at each stop, in every trajectory.
  void keep_stops_on_steps() {
    options().stops.clear();
    if (problem().start_times.size() == 1 && forwards_) {
      options().stops.push_back(problem().start_times[0] + 4 * options().dt);
    }
  }

  Draw draw_;
  RandomProblem made_;
  nn::Equations names_;
  std::vector<double> typical_state_, typical_parameters_;
  double span_ = 1;
  bool forwards_ = true;
};

}  // namespace

RandomProblem random_problem(std::uint64_t seed) { return Maker(seed).make(); }

}  // namespace lockstep::ode
