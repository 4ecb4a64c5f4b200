// Which way samples take that do not fill a tile: registers of lanes, or registers of features. All give the same bits;
// this is about time only.
#include <algorithm>
#include <type_traits>
#include <variant>
#include <vector>

#include "lockstep/kernels/graph/detail/dense_step.h"
#include "lockstep/kernels/graph/detail/program.h"

namespace lockstep::graph {
namespace {

// Costs count as those of layers do (kernels/mlp/detail/schedule.cpp): fused multiply-adds of one register, of which a
// core begins two a cycle.
constexpr std::size_t kStep = 20;       // a step's call
constexpr std::size_t kSample = 10;     // a sample's part of it where registers run over features
constexpr std::size_t kSum = 8;         // a feature of a sum, which waits for the one before
constexpr std::size_t kSideBySide = 8;  // samples whose sums go on at one time
constexpr std::size_t kSimple = 2;      // a register through a step: load, operation, store
constexpr std::size_t kDivision = 8;
constexpr std::size_t kFunction = 20;  // an elementary function

struct Costs {
  std::size_t each = kSimple;  // a register
  std::size_t sums = 0;        // that run through the features
};

Costs costs_of(const Operation& operation) {
  return std::visit(
      []<class Op>(const Op& op) -> Costs {
        if constexpr (std::is_same_v<Op, Activate>) {
          return {op.activation.kind == ActivationKind::relu ? kSimple : kFunction};
        } else if constexpr (std::is_same_v<Op, Unary>) {
          const bool simple = op.kind == UnaryKind::absolute || op.kind == UnaryKind::negate || is_in_steps(op.kind);
          const bool divides = op.kind == UnaryKind::square_root || op.kind == UnaryKind::reciprocal;
          return {simple ? kSimple : divides ? kDivision : kFunction};
        } else if constexpr (std::is_same_v<Op, Binary>) {
          return {op.kind == BinaryKind::divide ? kDivision : op.kind == BinaryKind::modulo ? kFunction : kSimple};
        } else if constexpr (std::is_same_v<Op, Standardise>) {
          return {kDivision};
        } else if constexpr (std::is_same_v<Op, Reduce>) {
          return {0, 1};
        } else if constexpr (std::is_same_v<Op, Softmax>) {
          return {kFunction + kDivision, 2};
        } else if constexpr (std::is_same_v<Op, LayerNormalise>) {
          return {3 * kSimple, 2};
        } else {
          return {};
        }
      },
      operation);
}

// Of each step that is no layer; of layers and copies those of a simple one.
std::vector<Costs> costs_of(const Schedule& schedule) {
  std::vector<Costs> costs;
  for (const ScheduledStep& step : schedule.steps) {
    costs.push_back(step.copies ? Costs{} : costs_of(step.node->operation));
  }
  return costs;
}

std::size_t divided_up(std::size_t count, std::size_t by) { return (count + by - 1) / by; }

template <class T>
std::size_t tile_cost(const std::vector<Costs>& of_steps, const Program<T>& program, std::size_t registers,
                      std::size_t samples, mlp::WidePipes pipes) {
  const std::size_t moved = widths_of(program.inputs) + widths_of(program.outputs);
  // Lanes that are not full are filled and emptied number by number.
  const bool full = samples == registers * program.kernels->lanes;
  std::size_t cost = moved * (full ? kSimple * registers : samples);
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step<T>& step = program.steps[i];
    if (step.layer != nullptr) {
      cost += mlp::layer_tile_cost(step.layer->layers.front(), registers, pipes);
      continue;
    }
    const Costs& costs = of_steps[i];
    cost += kStep + step.width * registers * (costs.each + kSum * costs.sums);
  }
  return cost;
}

template <class T>
std::size_t sample_cost(const std::vector<Costs>& of_steps, const Program<T>& program, std::size_t samples,
                        mlp::WidePipes pipes) {
  if (samples == 0) return 0;
  const std::size_t lanes = program.kernels->lanes;
  std::size_t bytes = 0;  // of one of two copies of the weights
  for (const auto& layer : program.layers) bytes += layer->weights.size() * sizeof(T) / 2;
  const std::size_t ports = program.inputs.size() + program.outputs.size();
  const std::size_t moved = widths_of(program.inputs) + widths_of(program.outputs);
  std::size_t cost = samples * (ports * kSample + divided_up(moved, lanes) * kSimple);
  for (std::size_t i = 0; i < program.steps.size(); ++i) {
    const Step<T>& step = program.steps[i];
    if (step.layer != nullptr) {
      const auto& layer = step.layer->layers.front();
      cost += mlp::layer_row_cost(layer, *program.kernels, samples, bytes, pipes);
      cost += samples * (kSample + kSimple * divided_up(layer.outputs, lanes));
      continue;
    }
    const Costs& costs = of_steps[i];
    cost += kStep + samples * (kSample + divided_up(step.width, lanes) * costs.each);
    cost += costs.sums * step.width * kSum * divided_up(samples, kSideBySide);
  }
  return cost;
}

}  // namespace

template <class T>
void choose_rests(const Schedule& schedule, mlp::WidePipes pipes, Program<T>& program) {
  const std::size_t lanes = program.kernels->lanes;
  const std::vector<Costs> costs = costs_of(schedule);
  bool by_sample = lanes > 1;
  for (const Step<T>& step : program.steps) by_sample = by_sample && step.by_sample != nullptr;
  for (std::size_t samples = 1; samples < program.kernels->strip(); ++samples) {
    std::size_t best = ~std::size_t(0);
    for (std::size_t registers = 0; registers <= 2; ++registers) {
      const std::size_t in_lanes = std::min(samples, registers * lanes), rest = samples - in_lanes;
      if (rest > 0 && !by_sample) continue;
      const std::size_t cost = (registers == 0 ? 0 : tile_cost(costs, program, registers, in_lanes, pipes)) +
                               sample_cost(costs, program, rest, pipes);
      if (cost >= best) continue;
      best = cost;
      program.rest[samples] = {static_cast<std::uint8_t>(registers), static_cast<std::uint8_t>(rest)};
    }
    program.most_by_sample = std::max<std::size_t>(program.most_by_sample, program.rest[samples].rows);
  }
  if (program.most_by_sample == 0) return;
  // Samples a large power of two apart would fight for the same lines of the cache.
  constexpr std::size_t kLine = kAlignment / sizeof(T);
  program.between_samples = round_up(program.rows, kLine);
  if (program.between_samples % (8 * kLine) == 0) program.between_samples += kLine;
  for (const auto& layer : program.layers) {
    program.scratch = std::max(program.scratch, program.most_by_sample * dense_sample_scratch(*layer));
  }
}

template void choose_rests<float>(const Schedule&, mlp::WidePipes, Program<float>&);
template void choose_rests<double>(const Schedule&, mlp::WidePipes, Program<double>&);

}  // namespace lockstep::graph
