#include "lockstep/kernels/graph/detail/lane_run.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "lockstep/kernels/graph/detail/called_functions.h"

namespace lockstep::graph {
namespace {

using Value = LaneProgram::Value;

struct RowAt {
  std::uint8_t base;
  std::size_t row;

  auto operator<=>(const RowAt&) const = default;
};

template <class T>
class LaneRun {
 public:
  // `stored_by`: the number of the step that stores a row, of those that something after the run reads.
  LaneRun(const std::map<RowAt, std::size_t>& stored_by, CpuTarget target) : stored_by_(stored_by), target_(target) {}

  void add(const ScheduledStep& step, std::size_t number);
  void store_as(RowAt row, RowAt place) { program_.store(value_at(row), place_of(place)); }

  LaneProgram take() { return std::move(program_); }

 private:
  struct Elements;

  static LanePlace place_of(RowAt row) { return {row.base, 0, static_cast<std::uint32_t>(row.row)}; }
  Value value_at(RowAt row);
  Value number(double value, const std::string& field);
  // At once, and not at the run's end, until when it would take a place on the stack.
  void make(RowAt row, Value value) {
    made_[row] = value;
    const auto found = stored_by_.find(row);
    if (found != stored_by_.end() && found->second == now_) program_.store(value, place_of(row));
  }

  const std::map<RowAt, std::size_t>& stored_by_;
  CpuTarget target_;
  std::size_t now_ = 0;
  LaneProgram program_;
  std::map<RowAt, Value> made_;
};

// What takes operations alone. The rest of what code is generated for calls functions.
struct IsArithmetic {
  bool operator()(const Standardise&) const { return true; }
  bool operator()(const Rescale&) const { return true; }
  bool operator()(const Constant&) const { return true; }
  bool operator()(const Columns&) const { return true; }
  bool operator()(const Clip&) const { return true; }
  bool operator()(const DeadZone&) const { return true; }
  bool operator()(const Choose&) const { return true; }
  bool operator()(const Select&) const { return true; }
  bool operator()(const Reduce&) const { return true; }
  bool operator()(const Activate& activate) const { return activate.activation.kind == ActivationKind::relu; }
  bool operator()(const Unary& unary) const {
    return unary.kind == UnaryKind::square_root || unary.kind == UnaryKind::absolute ||
           unary.kind == UnaryKind::negate || unary.kind == UnaryKind::reciprocal || is_in_steps(unary.kind);
  }
  bool operator()(const Binary& binary) const { return binary.kind != BinaryKind::power; }
  bool operator()(const Chain& chain) const {
    return chain.activation.kind == ActivationKind::identity || chain_reads_value(chain.activation.kind);
  }
  template <class Other>
  bool operator()(const Other&) const {
    return false;
  }
};

// As in math/modulo-inl.h; what a divisor known now makes of itself is made now.
Value modulo(LaneProgram& program, Value x, Value y) {
  const LaneInstruction given = program.instructions()[y];  // which grow below
  const bool known = given.op == LaneOp::constant, below = known && given.number < 0;
  const Value zero = program.constant(0);
  const Value size = known ? program.constant(std::fabs(given.number)) : program.apply(LaneOp::absolute, y);
  const Value negative = known ? zero : program.apply(LaneOp::less, y, zero);
  const auto with_sign = [&](Value of) {
    if (known) return below ? program.apply(LaneOp::negate, of) : of;
    return program.apply(LaneOp::select, negative, program.apply(LaneOp::negate, of), of);
  };
  const auto where = [&](LaneOp op, Value a, Value b, Value yes, Value no) {
    return program.apply(LaneOp::select, program.apply(op, a, b), yes, no);
  };
  const Value along = with_sign(x);
  const Value q = program.apply(LaneOp::floor, program.divide(along, size));
  Value r = program.apply(LaneOp::nfma, q, size, along);
  r = where(LaneOp::equal, q, zero, along, r);
  r = where(LaneOp::less, size, r, zero, r);
  r = where(LaneOp::less, r, zero, program.add(r, size), r);
  r = where(LaneOp::less_or_equal, r, zero, zero, r);
  return with_sign(r);
}

Value binary(LaneProgram& program, BinaryKind kind, Value a, Value b) {
  switch (kind) {
    case BinaryKind::add:
      return program.add(a, b);
    case BinaryKind::subtract:
      return program.apply(LaneOp::subtract, a, b);
    case BinaryKind::multiply:
      return program.multiply(a, b);
    case BinaryKind::divide:
      return program.divide(a, b);
    case BinaryKind::minimum:
      return program.apply(LaneOp::keep_nan, program.apply(LaneOp::minimum, a, b), b);
    case BinaryKind::maximum:
      return program.apply(LaneOp::keep_nan, program.apply(LaneOp::maximum, a, b), b);
    case BinaryKind::less:
      return program.apply(LaneOp::less, a, b);
    case BinaryKind::less_or_equal:
      return program.apply(LaneOp::less_or_equal, a, b);
    case BinaryKind::modulo:
      return modulo(program, a, b);
    default:
      return program.apply(LaneOp::equal, a, b);
  }
}

bool is_arithmetic(const ScheduledStep& step) {
  constexpr std::size_t kMostFeatures = 64;
  return step.width <= kMostFeatures && (step.copies || std::visit(IsArithmetic{}, step.node->operation));
}

// A loop over more features, or over a table's search for each of them, costs less than calls.
bool is_called(const ScheduledStep& step) {
  constexpr std::size_t kMostFeatures = 16, kMostColumns = 2;
  if (!kCallsFunctions || step.copies || step.width > kMostFeatures || is_arithmetic(step)) return false;
  const Operation& operation = step.node->operation;
  if (std::holds_alternative<Interpolate>(operation)) return step.width <= kMostColumns;
  return std::holds_alternative<Activate>(operation) || std::holds_alternative<Unary>(operation) ||
         std::holds_alternative<Binary>(operation) || std::holds_alternative<Chain>(operation);
}

// What each operation makes of a step's features, as in lane_operations-inl.h and tile_operations-inl.h.
template <class T>
struct LaneRun<T>::Elements {
  LaneRun& run;
  LaneProgram& program;
  const ScheduledStep& step;

  Value read(const ScheduledOperand& operand, std::size_t i) const {
    const std::size_t at = i * operand.step;
    if (operand.constants != nullptr && operand.constants->values.size() == 1) {
      return run.number(operand.constants->values[at], operand.name);
    }
    if (operand.constants != nullptr) return number(operand.constants->values[at], operand.name, at);
    return run.value_at({operand.base, operand.row + at});
  }
  Value a(std::size_t i) const { return read(step.a, i); }
  Value b(std::size_t i) const { return read(step.b, i); }
  Value c(std::size_t i) const { return read(step.c, i); }
  Value number(double value, const std::string& field, std::size_t i) const {
    return run.number(value, field + "[" + std::to_string(i) + "]");
  }
  template <class F>
  void each(const F& f) const {
    for (std::size_t i = 0; i < step.width; ++i) run.make({step.out_base, step.out + i}, f(i));
  }

  void operator()(const Standardise& s) const {
    const std::string& name = step.node->name;
    each([&](std::size_t i) {
      const Value difference = program.apply(LaneOp::subtract, a(i), number(s.shift[i], name + ".shift", i));
      return program.divide(difference, number(s.scale[i], name + ".scale", i));
    });
  }
  void operator()(const Rescale& s) const {
    const std::string& name = step.node->name;
    each([&](std::size_t i) {
      return program.fma(a(i), number(s.scale[i], name + ".scale", i), number(s.shift[i], name + ".shift", i));
    });
  }
  void operator()(const Constant& constant) const {
    if (constant.values.size() == 1)
      return each([&](std::size_t) { return run.number(constant.values[0], step.node->name); });
    each([&](std::size_t i) { return number(constant.values[i], step.node->name, i); });
  }
  void operator()(const Columns& columns) const {
    each([&](std::size_t i) { return run.value_at({step.a.base, step.a.row + columns.indices[i]}); });
  }
  void operator()(const Activate& activate) const {
    if (activate.activation.kind == ActivationKind::relu) {
      return each([&](std::size_t i) { return program.apply(LaneOp::maximum, a(i), program.constant(0)); });
    }
    const Value alpha = run.number(activate.activation.alpha, step.node->name + ".alpha");
    const LaneFunction function = called_function<T>(activate.activation.kind, run.target_);
    each([&](std::size_t i) { return program.call(LaneOp::function_of_two, function, a(i), alpha); });
  }
  void operator()(const Unary& unary) const {
    if (!IsArithmetic{}(unary)) {
      const LaneFunction function = called_function<T>(unary.kind, run.target_);
      return each([&](std::size_t i) { return program.call(LaneOp::function, function, a(i)); });
    }
    each([&](std::size_t i) {
      switch (unary.kind) {
        case UnaryKind::square_root:
          return program.apply(LaneOp::square_root, a(i));
        case UnaryKind::absolute:
          return program.apply(LaneOp::absolute, a(i));
        case UnaryKind::negate:
          return program.apply(LaneOp::negate, a(i));
        case UnaryKind::floor:
          return program.apply(LaneOp::floor, a(i));
        case UnaryKind::round:
          return program.apply(LaneOp::round, a(i));
        default:
          return program.divide(program.constant(1), a(i));
      }
    });
  }
  void operator()(const Clip& clip) const {
    const Value low = run.number(clip.minimum, step.node->name), high = run.number(clip.maximum, step.node->name);
    each(
        [&](std::size_t i) { return program.apply(LaneOp::minimum, program.apply(LaneOp::maximum, a(i), low), high); });
  }
  void operator()(const DeadZone& zone) const {
    const std::string& name = step.node->name;
    const Value lower = run.number(zone.lower, name), upper = run.number(zone.upper, name),
                bias = run.number(zone.bias, name), zero = program.constant(0);
    each([&](std::size_t i) {
      const Value x = a(i);
      const Value inside = program.apply(LaneOp::keep_nan, zero, x);
      const Value below =
          program.apply(LaneOp::select, program.apply(LaneOp::less, x, lower), program.add(x, bias), inside);
      return program.apply(LaneOp::select, program.apply(LaneOp::less, upper, x),
                           program.apply(LaneOp::subtract, x, bias), below);
    });
  }
  void operator()(const Binary& operation) const {
    if (operation.kind == BinaryKind::power) {
      const LaneFunction function = called_power<T>(run.target_);
      return each([&](std::size_t i) { return program.call(LaneOp::function_of_two, function, a(i), b(i)); });
    }
    each([&](std::size_t i) { return binary(program, operation.kind, a(i), b(i)); });
  }
  void operator()(const Choose& choose) const {
    each([&](std::size_t i) { return choose.mask[i] != 0 ? a(i) : b(i); });
  }
  void operator()(const Select&) const {
    each([&](std::size_t i) { return program.apply(LaneOp::select, a(i), b(i), c(i)); });
  }
  void operator()(const Reduce& reduce) const {
    Value sum = a(0);
    for (std::size_t i = 1; i < step.width; ++i) {
      const bool extreme = reduce.kind == ReduceKind::minimum || reduce.kind == ReduceKind::maximum;
      const BinaryKind least = reduce.kind == ReduceKind::minimum ? BinaryKind::minimum : BinaryKind::maximum;
      sum = binary(program, extreme ? least : BinaryKind::add, sum, a(i));
    }
    if (reduce.kind == ReduceKind::mean) {
      sum = program.divide(sum, program.constant(static_cast<double>(static_cast<T>(step.width))));
    }
    run.make({step.out_base, step.out}, sum);
  }
  void operator()(const Interpolate& table) const {
    each([&](std::size_t i) {
      return program.call(LaneOp::function, called_table<T>(table, step.node->name, i, run.target_), a(0));
    });
  }
  void operator()(const Chain& chain) const {
    if (!IsArithmetic{}(chain)) {
      const Value alpha = run.number(chain.activation.alpha, step.node->name + ".alpha");
      const LaneFunction function = called_chain<T>(chain.activation.kind, run.target_);
      return each([&](std::size_t i) { return program.call(LaneOp::function_of_three, function, a(i), b(i), alpha); });
    }
    each([&](std::size_t i) {
      switch (chain.activation.kind) {
        case ActivationKind::relu:
          return program.apply(LaneOp::select, program.apply(LaneOp::less, program.constant(0), b(i)), a(i),
                               program.constant(0));
        case ActivationKind::tanh:
          return program.multiply(a(i), program.apply(LaneOp::nfma, b(i), b(i), program.constant(1)));
        case ActivationKind::sigmoid:
          return program.multiply(a(i), program.apply(LaneOp::nfma, b(i), b(i), b(i)));
        default:
          return a(i);
      }
    });
  }
  template <class Other>
  void operator()(const Other&) const {}  // not arithmetic
};

template <class T>
void LaneRun<T>::add(const ScheduledStep& step, std::size_t number) {
  now_ = number;
  const Elements elements{*this, program_, step};
  if (step.copies) return elements.each([&](std::size_t i) { return elements.a(i); });
  std::visit(elements, step.node->operation);
}

template <class T>
LaneProgram::Value LaneRun<T>::value_at(RowAt row) {
  const auto found = made_.find(row);
  return found != made_.end() ? found->second : program_.load(place_of(row));
}

template <class T>
LaneProgram::Value LaneRun<T>::number(double value, const std::string& field) {
  return program_.constant(static_cast<double>(round_to<T>(value, field)));
}

// The end of the steps from `first` on that make one piece of code.
std::size_t run_end(const std::vector<ScheduledStep>& steps, std::size_t first) {
  constexpr std::size_t kMostFeatures = 4096;
  std::size_t end = first;
  for (std::size_t features = 0; end < steps.size() && (is_arithmetic(steps[end]) || is_called(steps[end])); ++end) {
    features += steps[end].width;
    if (features > kMostFeatures) break;
  }
  // A function by itself has a loop of its own, but where it is all.
  const bool is_all = first == 0 && end == steps.size();
  return !is_all && end == first + 1 && is_called(steps[first]) ? first : end;
}

// The steps from `first` to before `end`.
template <class T>
GeneratedSteps generate_run(const Graph& graph, const Schedule& schedule, std::size_t first, std::size_t end,
                            CpuTarget target) {
  const std::vector<ScheduledStep>& steps = schedule.steps;
  const bool all = first == 0 && end == steps.size();
  const auto is_read_later = [&](std::size_t row) {
    return !all && schedule.last_read[row] != Schedule::kNeverRead && schedule.last_read[row] >= end;
  };
  std::map<RowAt, std::size_t> stored_by;
  for (std::size_t i = first; i < end; ++i) {
    const std::size_t made = std::holds_alternative<Reduce>(steps[i].node->operation) ? 1 : steps[i].width;
    for (std::size_t row = steps[i].out; row < steps[i].out + made; ++row) {
      if (steps[i].out_base == kOutputBase || is_read_later(row)) stored_by[{steps[i].out_base, row}] = i;
    }
  }
  LaneRun<T> run(stored_by, target);
  for (std::size_t i = first; i < end; ++i) run.add(steps[i], i);
  for (const auto& [port, row, base] : schedule.stores) {
    for (std::size_t c = 0; c < graph.outputs[port].width && all; ++c) run.store_as({base, row + c}, {kOutputBase, c});
  }
  auto program = std::make_shared<const LaneProgram>(run.take());
  auto code = LaneCode::compile(*program, kPrecisionOf<T>, target);
  if (code == nullptr) return {};
  return {end - first, std::move(code), all ? std::move(program) : nullptr};
}

}  // namespace

template <class T>
GeneratedSteps generate_steps(const Graph& graph, const Schedule& schedule, std::size_t first, CpuTarget target) {
  if (!LaneCode::available(target)) return {schedule.steps.size() - first};
  const std::size_t most = run_end(schedule.steps, first);
  // Where more values wait than the stack has room for, half as many steps leave fewer waiting.
  for (std::size_t end = most; end > first; end = first + (end - first) / 2) {
    if (GeneratedSteps made = generate_run<T>(graph, schedule, first, end, target); made.code != nullptr) return made;
  }
  return {std::max(most - first, std::size_t{1})};
}

template GeneratedSteps generate_steps<float>(const Graph&, const Schedule&, std::size_t, CpuTarget);
template GeneratedSteps generate_steps<double>(const Graph&, const Schedule&, std::size_t, CpuTarget);

}  // namespace lockstep::graph
