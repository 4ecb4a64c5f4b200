// Lowering for a CPU: the steps of the schedule as calls of one instruction set's kernels, their numbers rounded.
#include <algorithm>
#include <array>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/kernels/graph/detail/dense_step.h"
#include "lockstep/kernels/graph/detail/knots.h"
#include "lockstep/kernels/graph/detail/program.h"
#include "lockstep/kernels/graph/detail/schedule.h"

namespace lockstep::graph {
namespace {

template <class T>
class Lowering {
 public:
  // `target` is one of this machine's.
  Lowering(const Graph& graph, CpuTarget target, PortRowsLie lie, GenerateSteps generate)
      : graph_(graph), lie_(lie), generate_(generate), kernels_(kernels_for<T>(target)) {
    program_.kernels = &mlp::kernels_for<T>(target);
    program_.target = target;
  }

  Program<T> run() {
    Schedule schedule = graph::schedule(graph_, lie_);
    program_.inputs = graph_.inputs;
    program_.outputs = graph_.outputs;
    program_.loads = std::move(schedule.loads);
    program_.stores = schedule.stores;
    program_.rows = schedule.rows;
    program_.cost = schedule.cost;
    program_.summary = std::move(schedule.summary);
    // As long as a tile's values lie in a part of the fastest cache, steps over all its lanes cost the fewest calls.
    constexpr std::size_t kMostBytes = 16384;
    program_.whole_tiles = lie_ == PortRowsLie::with_the_caller && program_.rows * kTileLanes * sizeof(T) <= kMostBytes;
    const std::vector<ScheduledStep>& steps = schedule.steps;
    std::size_t generated = 0, without_code = generate_ == nullptr ? steps.size() : 0;  // up to which step
    for (std::size_t i = 0; i < steps.size(); ++i) {
      if (i >= without_code) {
        const GeneratedSteps made = generate_(graph_, schedule, i, program_.target);
        if (made.code != nullptr) {
          add_code(made);
          generated += made.count;
          i += made.count - 1;
          continue;
        }
        without_code = i + made.count;
      }
      add_step(steps[i]);
    }
    if (generated > 0) {
      program_.summary += "; machine code generated for " + std::to_string(generated) + " of " +
                          std::to_string(steps.size()) + " steps";
    }
    pair_layers();
    if (lie_ == PortRowsLie::in_the_tile) choose_rests(schedule, mlp::wide_pipes(program_.target), program_);
    program_.constant_rows = AlignedBuffer<T>(constant_rows_.size());
    std::copy(constant_rows_.begin(), constant_rows_.end(), program_.constant_rows.data());
    return std::move(program_);
  }

 private:
  void add_step(const ScheduledStep& scheduled) {
    Step<T> step;
    step.width = scheduled.width;
    step.out = scheduled.out;
    step.out_base = scheduled.out_base;
    step.a = operand(scheduled.a);
    step.b = operand(scheduled.b);
    step.c = operand(scheduled.c);
    if (scheduled.copies) {
      step.run = kernels_.copy;
      step.by_sample = kernels_.by_sample.copy;
    } else {
      std::visit([&](const auto& operation) { bind(step, scheduled, operation); }, scheduled.node->operation);
    }
    if (program_.whole_tiles) take_whole_rows(step, scheduled);
    program_.steps.push_back(step);
    program_.step_nodes.push_back(number_of(scheduled.node));
  }

  void add_code(const GeneratedSteps& generated) {
    program_.codes.push_back(generated.code);
    if (generated.all != nullptr) program_.stores.clear();
    program_.arithmetic = generated.all;
    Step<T> step;
    step.run = [](const Step<T>& made, const Tile<T>& tile) { made.code->run(tile.bases.data(), tile.registers); };
    step.code = generated.code.get();
    program_.steps.push_back(step);
    before_ = nullptr;
  }

  // The rows' own kernel, where there is one for them; and one for this step and the one before it together, where
  // nothing else reads what that makes. It is the step just before, so that what it reads still stands where it stood.
  void take_whole_rows(Step<T>& step, const ScheduledStep& scheduled) {
    const ScheduledStep* const before = std::exchange(before_, nullptr);
    const auto* binary = scheduled.copies ? nullptr : std::get_if<Binary>(&scheduled.node->operation);
    if (binary == nullptr || static_cast<std::size_t>(binary->kind) >= kernels_.whole_rows.size()) return;
    if (step.width > 1 && (step.a.step != 1 || step.b.step != 1)) return;
    for (Operand<T>* operand : {&step.a, &step.b}) {
      if (operand->constants == nullptr) continue;
      const T* const numbers = std::exchange(operand->constants, nullptr);
      operand->base = kConstantBase;
      operand->row = constant_rows_.size() / kTileLanes;
      for (std::size_t i = 0; i < step.width; ++i) constant_rows_.insert(constant_rows_.end(), kTileLanes, numbers[i]);
    }
    step.run = kernels_.whole_rows[static_cast<std::size_t>(binary->kind)];
    if (step.width > 1 || binary->kind > BinaryKind::multiply) return;
    if (before != nullptr && before->read_once) {
      const Step<T>& first = program_.steps.back();
      const auto is_first = [&](const Operand<T>& o) { return o.base == first.out_base && o.row == first.out; };
      if (is_first(step.a) != is_first(step.b)) {
        const bool right = is_first(step.b);
        step.c = right ? step.a : step.b;
        step.a = first.a;
        step.b = first.b;
        step.run = kernels_.paired_rows[static_cast<std::size_t>(std::get<Binary>(before->node->operation).kind)]
                                       [static_cast<std::size_t>(binary->kind)][right ? 1 : 0];
        program_.steps.pop_back();
        return;
      }
    }
    before_ = &scheduled;
  }

  // A layer whose outputs are just what the step after it multiplies may leave its tanh to that one.
  void pair_layers() {
    for (std::size_t i = 0; i + 1 < program_.steps.size(); ++i) {
      Step<T>&step = program_.steps[i], &next = program_.steps[i + 1];
      if (step.layer == nullptr || next.layer == nullptr || next.a.row != step.out || next.a.base != step.out_base) {
        continue;
      }
      const auto &layer = step.layer->layers.front(), &reader = next.layer->layers.front();
      if (layer.outputs != reader.inputs || !program_.kernels->defers_tanh(layer, reader)) continue;
      step.leaves_tanh = next.takes_tanh = true;
    }
  }

  static T rounded(double value, const std::string& field) { return round_to<T>(value, field); }

  const T* keep(const std::vector<double>& values, const std::string& field) {
    AlignedBuffer<T> buffer(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      buffer[i] = round_to<T>(values[i], field, i);
    }
    program_.numbers.push_back(std::move(buffer));
    return program_.numbers.back().data();
  }

  template <class List>
  const std::uint32_t* keep_indices(const List& values) {
    program_.indices.emplace_back(values.begin(), values.end());
    return program_.indices.back().data();
  }

  Operand<T> operand(const ScheduledOperand& from) {
    const bool one = from.constants != nullptr && from.constants->values.size() == 1;
    if (one) rounded(from.constants->values[0], from.name);  // refuses a number that has no place in a list
    const T* constants = from.constants == nullptr ? nullptr : keep(from.constants->values, from.name);
    return {constants, from.row, from.step, from.base};
  }

  StepFunction<T> binary(BinaryKind kind, std::size_t constants) const {
    return kernels_.binary[static_cast<std::size_t>(kind)][constants];
  }

  // Each sets what its kernel reads besides operands.

  void bind(Step<T>& step, const ScheduledStep& scheduled, const Dense&) {
    Mlp mlp;
    mlp.layers.push_back(merged_layer(scheduled));
    program_.layers.push_back(std::make_unique<mlp::Packed<T>>(pack_named(mlp, scheduled.node->name)));
    std::vector<std::size_t>& nodes = program_.layer_nodes.emplace_back();
    for (const Node* const node : scheduled.layers) nodes.push_back(number_of(node));
    step.run = dense_step<T>;
    step.by_sample = dense_by_sample<T>;
    step.layer = program_.layers.back().get();
    program_.scratch = std::max(program_.scratch, dense_scratch(*step.layer));
  }

  std::size_t number_of(const Node* node) const { return static_cast<std::size_t>(node - graph_.nodes.data()); }

  mlp::Packed<T> pack_named(const Mlp& mlp, const std::string& name) const {
    const mlp::PackedLayer<T>* before = program_.layers.empty() ? nullptr : &program_.layers.back()->layers.front();
    if (before != nullptr && before->outputs != mlp.inputs()) before = nullptr;
    try {
      return mlp::pack<T>(mlp, program_.target, mlp::PackedNumbers::own, before);
    } catch (const Error& error) {  // only a number that does not fit into T is left to be found
      throw Error(error.kind(), {name + " (" + error.field() + ")", error.found(), error.expected(), error.remedy()});
    }
  }

  void bind(Step<T>& step, const ScheduledStep& scheduled, const Activate& activate) {
    if (activate.activation.kind == ActivationKind::relu) {
      step.run = binary(BinaryKind::maximum, 1);
      step.by_sample = kernels_.by_sample.binary[static_cast<std::size_t>(BinaryKind::maximum)];
      step.b = {keep({0}, scheduled.node->name), 0, 0};
      return;
    }
    step.run = kernels_.activate;
    step.by_sample = kernels_.by_sample.activate;
    step.activation = program_.kernels->activation(activate.activation.kind);
    step.numbers[0] = rounded(activate.activation.alpha, scheduled.node->name + ".alpha");
  }

  void bind(Step<T>& step, const ScheduledStep& scheduled, const Standardise& standardise) {
    step.run = kernels_.standardise;
    step.by_sample = kernels_.by_sample.standardise;
    step.first = keep(standardise.shift, scheduled.node->name + ".shift");
    step.second = keep(standardise.scale, scheduled.node->name + ".scale");
  }

  void bind(Step<T>& step, const ScheduledStep& scheduled, const Rescale& rescale) {
    step.run = kernels_.rescale;
    step.by_sample = kernels_.by_sample.rescale;
    step.first = keep(rescale.scale, scheduled.node->name + ".scale");
    step.second = keep(rescale.shift, scheduled.node->name + ".shift");
  }

  void bind(Step<T>& step, const ScheduledStep& scheduled, const Constant& constant) {
    step.run = kernels_.fill;
    step.by_sample = kernels_.by_sample.copy;
    step.a.constants = keep(constant.values, scheduled.node->name);
  }

  void bind(Step<T>& step, const ScheduledStep&, const Columns& columns) {
    step.run = kernels_.columns;
    step.by_sample = kernels_.by_sample.columns;
    step.indices = keep_indices(columns.indices);
  }

  void bind(Step<T>&, const ScheduledStep&, const Concatenate&) {}  // its parts are copies, or nothing

  void bind(Step<T>& step, const ScheduledStep&, const Unary& unary) {
    step.run = kernels_.unary[static_cast<std::size_t>(unary.kind)];
    step.by_sample = kernels_.by_sample.unary[static_cast<std::size_t>(unary.kind)];
  }

  void bind(Step<T>& step, const ScheduledStep& scheduled, const Clip& clip) {
    const std::string& name = scheduled.node->name;
    step.run = kernels_.clip;
    step.by_sample = kernels_.by_sample.clip;
    step.numbers = {rounded(clip.minimum, name), rounded(clip.maximum, name), 0};
  }

  void bind(Step<T>& step, const ScheduledStep& scheduled, const DeadZone& zone) {
    const std::string& name = scheduled.node->name;
    step.run = kernels_.dead_zone;
    step.by_sample = kernels_.by_sample.dead_zone;
    step.numbers = {rounded(zone.lower, name), rounded(zone.upper, name), rounded(zone.bias, name)};
  }

  void bind(Step<T>& step, const ScheduledStep& scheduled, const Interpolate& table) {
    const std::string& name = scheduled.node->name;
    const std::vector<T> knots = padded_knots<T>(table, name);
    step.run = kernels_.interpolate;
    step.numbers = {knots.front(), knots[table.knots.size() - 1], 0};
    step.indices = keep_indices(std::array{table.knots.size(), knots.size(), table.powers()});
    program_.numbers.emplace_back(knots.size());
    std::copy(knots.begin(), knots.end(), program_.numbers.back().data());
    step.first = program_.numbers.back().data();
    step.second = keep(table.coefficients, name + ".coefficients");
  }

  void bind(Step<T>& step, const ScheduledStep&, const Binary& operation) {
    step.run = binary(operation.kind, step.b.constants != nullptr ? 1 : step.a.constants != nullptr ? 2 : 0);
    step.by_sample = kernels_.by_sample.binary[static_cast<std::size_t>(operation.kind)];
  }

  void bind(Step<T>& step, const ScheduledStep&, const Choose& choose) {
    step.run = kernels_.choose;
    step.by_sample = kernels_.by_sample.choose;
    step.indices = keep_indices(choose.mask);
  }

  void bind(Step<T>& step, const ScheduledStep&, const Select&) {
    step.run = kernels_.select;
    step.by_sample = kernels_.by_sample.select;
  }

  void bind(Step<T>& step, const ScheduledStep& scheduled, const Chain& chain) {
    step.run = kernels_.chain[static_cast<std::size_t>(chain.activation.kind)];
    step.numbers[0] = rounded(chain.activation.alpha, scheduled.node->name + ".alpha");
  }

  void bind(Step<T>& step, const ScheduledStep&, const Softmax& softmax) {
    step.run = kernels_.softmax[static_cast<std::size_t>(softmax.kind)];
    step.by_sample = kernels_.by_sample.softmax[static_cast<std::size_t>(softmax.kind)];
  }

  void bind(Step<T>& step, const ScheduledStep&, const Reduce& reduce) {
    step.run = kernels_.reduce[static_cast<std::size_t>(reduce.kind)];
    step.by_sample = kernels_.by_sample.reduce[static_cast<std::size_t>(reduce.kind)];
  }

  void bind(Step<T>& step, const ScheduledStep& scheduled, const LayerNormalise& normalise) {
    const std::string& name = scheduled.node->name;
    step.run = kernels_.layer_normalise;
    step.by_sample = kernels_.by_sample.layer_normalise;
    step.first = keep(normalise.scale, name + ".scale");
    step.second = keep(normalise.shift, name + ".shift");
    step.numbers[0] = rounded(normalise.epsilon, name + ".epsilon");
  }

  const Graph& graph_;
  PortRowsLie lie_;
  GenerateSteps generate_;
  const Kernels<T>& kernels_;
  Program<T> program_;
  std::vector<T> constant_rows_;
  const ScheduledStep* before_ = nullptr;  // the step before, where it may be joined with the next
};

}  // namespace

template <class T>
Program<T> lower(const Graph& graph, CpuTarget target, PortRowsLie lie, GenerateSteps generate) {
  require_cpu_target(target);
  return Lowering<T>(graph, target, lie, generate).run();
}

template Program<float> lower<float>(const Graph&, CpuTarget, PortRowsLie, GenerateSteps);
template Program<double> lower<double>(const Graph&, CpuTarget, PortRowsLie, GenerateSteps);

}  // namespace lockstep::graph
