#include "lockstep/ode/cpu/generated_step.h"

#include <utility>
#include <vector>

#include "lockstep/ode/detail/arithmetic_tile.h"

namespace lockstep::ode::cpu {
namespace {

using detail::ArithmeticTile;
using detail::GraphSource;
using Value = LaneProgram::Value;

// The arithmetic of tile_kernels.cpp, operation by operation, on `together` registers in turns.
template <class T>
class StepProgram {
 public:
  StepProgram(const StepSettings<T>& settings, const ArithmeticTile<T>& rhs, std::size_t components, int together)
      : settings_(settings), tableau_(*settings.tableau), rhs_(rhs), n_(components), program_(together) {
    for (int g = 0; g < together; ++g) {
      Register& r = registers_.emplace_back();
      r.beside = static_cast<std::uint8_t>(g);
      r.h = program_.load(r.at(kStepBase, 0));
      for (std::size_t c = 0; c < n_; ++c) {
        r.y.push_back(program_.load(r.at(kStateBase, c)));
        r.first.push_back(program_.load(r.at(kStagesBase, c)));
      }
      r.k.push_back(r.first);
    }
    const auto stages = static_cast<std::size_t>(tableau_.source->stages);
    for (std::size_t i = 1; i < stages; ++i) {
      for (Register& r : registers_) {
        add_stage(r, i);
        if (settings.keep_stages) store_stage(r, i);
      }
    }
  }

  // What an attempt leaves: the new state, its stage, and the error.
  LaneProgram attempt() {
    for (Register& r : registers_) {
      for (std::size_t c = 0; c < n_; ++c) program_.store(r.y1[c], r.at(kNewStateBase, c));
      if (!settings_.keep_stages) store_stage(r, r.k.size() - 1);
      store_error(r);
    }
    return std::move(program_);
  }

  // The new state and its stage in the place of the old ones.
  LaneProgram fixed() {
    for (const Register& r : registers_) {
      for (std::size_t c = 0; c < n_; ++c) {
        program_.carry(r.y[c], r.y1[c]);
        program_.carry(r.first[c], r.k.back()[c]);
      }
    }
    return std::move(program_);
  }

 private:
  struct Register {
    std::uint8_t beside;
    Value h;
    std::vector<Value> y, y1, first, last_row;
    std::vector<std::vector<Value>> k;  // [stage][component]

    LanePlace at(std::uint8_t base, std::size_t row) const { return {base, beside, static_cast<std::uint32_t>(row)}; }
  };

  Value number(T value) { return program_.constant(static_cast<double>(value)); }

  // Over stages, ascending.
  Value weighted(const Register& r, const StageSum<T>& sum, std::size_t c) {
    Value acc = 0;
    for (std::size_t i = 0; i < sum.terms.size(); ++i) acc = add_term(r, sum, i, c, acc);
    return acc;
  }
  Value add_term(const Register& r, const StageSum<T>& sum, std::size_t i, std::size_t c, Value acc) {
    const Value weight = number(sum.terms[i].weight), k = r.k[sum.terms[i].stage][c];
    return i == 0 ? program_.multiply(weight, k) : program_.fma(weight, k, acc);
  }

  void add_stage(Register& r, std::size_t i) {
    // In methods of few stages the new state's sum grows with each of them, so that nothing waits for them all: after
    // what the next stage waits for, since older instructions go first.
    constexpr std::size_t kFewStages = 5;
    const auto stages = static_cast<std::size_t>(tableau_.source->stages);
    const bool is_last = i + 1 == stages, grows = stages <= kFewStages;
    if (grows && is_last) grow_last_row(r, i - 1);
    std::vector<Value> argument;
    for (std::size_t c = 0; c < n_; ++c) {
      const Value sum = is_last && grows ? r.last_row[c] : weighted(r, tableau_.rows[i], c);
      argument.push_back(program_.fma(r.h, sum, r.y[c]));
    }
    r.k.push_back(evaluate(r, i, argument));
    if (grows && !is_last) grow_last_row(r, i - 1);
    if (is_last) r.y1 = std::move(argument);
  }
  // By stage `newest`.
  void grow_last_row(Register& r, std::size_t newest) {
    const StageSum<T>& row = tableau_.rows[static_cast<std::size_t>(tableau_.source->stages) - 1];
    r.last_row.resize(n_);
    for (std::size_t i = 0; i < row.terms.size(); ++i) {
      if (row.terms[i].stage != newest) continue;
      for (std::size_t c = 0; c < n_; ++c) r.last_row[c] = add_term(r, row, i, c, r.last_row[c]);
    }
  }
  void store_stage(const Register& r, std::size_t i) {
    for (std::size_t c = 0; c < n_; ++c) program_.store(r.k[i][c], r.at(kStagesBase, i * n_ + c));
  }

  // The right-hand side at stage i.
  std::vector<Value> evaluate(const Register& r, std::size_t i, const std::vector<Value>& u) {
    const auto& instructions = rhs_.arithmetic()->instructions();
    std::vector<Value> here(instructions.size()), out(n_);
    for (std::size_t v = 0; v < instructions.size(); ++v) {
      const LaneInstruction& instruction = instructions[v];
      const auto& read = instruction.read;
      switch (instruction.op) {
        case LaneOp::constant:
          here[v] = program_.constant(instruction.number);
          break;
        case LaneOp::load:
          here[v] = input(r, i, u, instruction.place);
          break;
        case LaneOp::store:
          out[instruction.place.row] = here[read[0]];
          break;
        case LaneOp::function:
        case LaneOp::function_of_two:
        case LaneOp::function_of_three:
          here[v] = program_.call(instruction.op, rhs_.arithmetic()->functions()[instruction.function], here[read[0]],
                                  here[read[1]], here[read[2]]);
          break;
        default:
          here[v] = program_.apply(instruction.op, here[read[0]], here[read[1]], here[read[2]]);
      }
    }
    return out;
  }
  Value input(const Register& r, std::size_t stage, const std::vector<Value>& u, LanePlace place) {
    switch (rhs_.source(place.base - ArithmeticTile<T>::kFirstInput)) {
      case GraphSource::state:
        return u[place.row];
      case GraphSource::parameters:
        return program_.load(r.at(kParametersBase, place.row));
      default:
        return program_.load(r.at(kTimesBase, stage));
    }
  }

  Value error_sum(const Register& r, const StageSum<T>& estimate) {
    const Value rtol = number(settings_.rtol);
    Value sum = program_.constant(0);
    for (std::size_t c = 0; c < n_; ++c) {
      const Value largest = program_.apply(LaneOp::maximum, program_.apply(LaneOp::absolute, r.y[c]),
                                           program_.apply(LaneOp::absolute, r.y1[c]));
      const Value scale = program_.fma(rtol, largest, number(settings_.atol[c]));
      const Value q = program_.divide(program_.multiply(r.h, weighted(r, estimate, c)), scale);
      sum = program_.fma(q, q, sum);
    }
    return sum;
  }

  void store_error(const Register& r) {
    const Value zero = program_.constant(0);
    Value check = zero, square = zero, square3 = zero;
    for (std::size_t c = 0; c < n_; ++c) check = program_.fma(r.y1[c], zero, check);
    const bool has_error3 = !tableau_.source->error3.empty();
    if (!settings_.fixed) {
      square = error_sum(r, tableau_.error);
      if (has_error3) square3 = error_sum(r, tableau_.error3);
    }
    if constexpr (sizeof(T) == 4) {
      program_.store(square, r.at(kErrorBase, 0));
      program_.store(square3, r.at(kErrorBase, 1));
      program_.store(check, r.at(kErrorBase, 2));
    } else {
      if (has_error3) square = combined(square, square3);
      const Value over_n = program_.constant(1.0 / static_cast<double>(n_));
      program_.store(program_.fma(square, over_n, check), r.at(kErrorBase, 0));
    }
  }
  // combine_errors() of numerics-inl.h.
  Value combined(Value square5, Value square3) {
    const Value denominator = program_.fma(program_.constant(0.01), square3, square5);
    const Value ratio =
        program_.apply(LaneOp::select, denominator, program_.divide(square5, denominator), program_.constant(0));
    return program_.multiply(square5, ratio);
  }

  const StepSettings<T>& settings_;
  const LoweredTableau<T>& tableau_;
  const ArithmeticTile<T>& rhs_;
  std::size_t n_;
  LaneProgram program_;
  std::vector<Register> registers_;
};

// Null where there is nothing to generate code of.
template <class T>
const ArithmeticTile<T>* arithmetic_of(const StepSettings<T>& settings, std::size_t components) {
  const auto* const rhs = dynamic_cast<const ArithmeticTile<T>*>(settings.rhs);
  if (rhs == nullptr || rhs->arithmetic() == nullptr) return nullptr;
  if (takes_one_lane(settings, components)) return rhs;
  // Some eight bytes each: the code should stay in a part of the second-level cache.
  constexpr std::size_t kMostInstructions = 8192;
  const auto stages = static_cast<std::size_t>(settings.tableau->source->stages);
  const std::size_t length = stages * (rhs->arithmetic()->instructions().size() + components * (stages / 2 + 2));
  return length > kMostInstructions ? nullptr : rhs;
}

template <class T>
bool calls_functions(const ArithmeticTile<T>& rhs) {
  return !rhs.arithmetic()->functions().empty();
}

template <class T>
typename KeptSteps<T>::Key key_of(const StepSettings<T>& settings, const ArithmeticTile<T>& rhs,
                                  std::size_t components) {
  return {settings.tableau->source,
          settings.rtol,
          {settings.atol, settings.atol + components},
          settings.fixed,
          settings.keep_stages,
          settings.few && calls_functions(rhs),
          takes_one_lane(settings, components)};
}

template <class T>
OneLaneCode one_lane_code(const ArithmeticTile<T>& rhs, CpuTarget target) {
  OneLaneCode made{rhs.one_lane(target), {}};
  for (const LaneInstruction& i : rhs.arithmetic()->instructions()) {
    if (i.op != LaneOp::load) continue;
    const std::size_t input = i.place.base - ArithmeticTile<T>::kFirstInput;
    if (input >= made.sources.size()) made.sources.resize(input + 1, GraphSource::state);
    made.sources[input] = rhs.source(input);
  }
  return made;
}

// Numbers of registers that take turns in fixed steps, of which one waits for the one before it.
std::vector<int> turns_of_fixed_steps(bool calls, bool alone, std::size_t components) {
  // The components of one register hide each other's latency. Of two in turns fewer numbers stay in registers: for 40
  // components, Tsit5 in float32, one after the other takes 0.75 of the time of turns, for 8 as long (Zen 5, AVX2 as
  // well; benchmarks/ensemble_sizes).
  constexpr std::size_t kManyComponents = 12;
  if (alone) return {1};
  if (calls) return {4, 2, 1};
  if (components >= kManyComponents) return {1};
  return {2, 1};
}

template <class T>
std::shared_ptr<const GeneratedStep<T>> compile_step(const StepSettings<T>& settings, const ArithmeticTile<T>& rhs,
                                                     std::size_t components, CpuTarget target) {
  auto step = std::make_shared<GeneratedStep<T>>();
  for (const LaneInstruction& i : rhs.arithmetic()->instructions()) {
    step->reads_time |=
        i.op == LaneOp::load && rhs.source(i.place.base - ArithmeticTile<T>::kFirstInput) == GraphSource::time;
  }
  if (takes_one_lane(settings, components)) {
    step->one_lane = one_lane_code(rhs, target);
    return step->one_lane.code == nullptr ? nullptr : step;
  }
  // Out of order, what one register waits for in arithmetic overlaps with the next one's step. A step with functions is
  // longer than a processor looks ahead: registers take turns.
  const bool calls = calls_functions(rhs), alone = calls && settings.few;
  const int lanes = static_cast<int>((target == CpuTarget::avx512 ? 64 : 32) / sizeof(T));
  constexpr std::size_t kMostInTurns = 8192;  // instructions
  const auto compile = [&](const LaneProgram& program) -> std::shared_ptr<const LaneCode> {
    const int together = program.together();
    const bool is_long = calls && together > 1 && program.instructions().size() > kMostInTurns;
    return together * lanes > kTileLanes || is_long ? nullptr : LaneCode::compile(program, kPrecisionOf<T>, target);
  };
  for (const int together : calls && !alone ? std::vector{2, 1} : std::vector{1}) {
    step->attempt.add(compile(StepProgram<T>(settings, rhs, components, together).attempt()));
  }
  if (step->attempt.empty()) return nullptr;
  if (settings.fixed && !step->reads_time) {
    StepSettings<T> inner = settings;
    inner.keep_stages = false;
    for (const int together : turns_of_fixed_steps(calls, alone, components)) {
      step->fixed.add(compile(StepProgram<T>(inner, rhs, components, together).fixed()));
    }
  }
  return step;
}

}  // namespace

template <class T>
std::shared_ptr<const GeneratedStep<T>> generate_step(const StepSettings<T>& settings, std::size_t components,
                                                      CpuTarget target) {
  const ArithmeticTile<T>* const rhs = arithmetic_of(settings, components);
  if (rhs == nullptr || !LaneCode::available(target)) return nullptr;
  const auto key = key_of(settings, *rhs, components);
  const auto kept = rhs->kept_steps().find(key);
  if (kept.code != nullptr || kept.refused) return kept.code;
  auto step = compile_step(settings, *rhs, components, target);
  if (step != nullptr) {
    rhs->kept_steps().keep(key, step);
  } else {
    rhs->kept_steps().refuse(key);
  }
  return step;
}

template <class T>
KeptStep<T> kept_step(const StepSettings<T>& settings, std::size_t components) {
  const ArithmeticTile<T>* const rhs = arithmetic_of(settings, components);
  if (rhs == nullptr) return {};
  auto kept = rhs->kept_steps().find(key_of(settings, *rhs, components));
  return {!kept.refused, std::move(kept.code), kept.steps};
}

template <class T>
void note_kept_steps(const StepSettings<T>& settings, std::size_t components, std::int64_t steps) {
  if (const ArithmeticTile<T>* const rhs = arithmetic_of(settings, components))
    rhs->kept_steps().add_steps(key_of(settings, *rhs, components), steps);
}

template std::shared_ptr<const GeneratedStep<float>> generate_step<float>(const StepSettings<float>&, std::size_t,
                                                                          CpuTarget);
template std::shared_ptr<const GeneratedStep<double>> generate_step<double>(const StepSettings<double>&, std::size_t,
                                                                            CpuTarget);
template KeptStep<float> kept_step<float>(const StepSettings<float>&, std::size_t);
template KeptStep<double> kept_step<double>(const StepSettings<double>&, std::size_t);
template void note_kept_steps<float>(const StepSettings<float>&, std::size_t, std::int64_t);
template void note_kept_steps<double>(const StepSettings<double>&, std::size_t, std::int64_t);

}  // namespace lockstep::ode::cpu
