// Lowering: drops what no output needs, fuses activations into the layers before them, merges layers that read one
// value, lets columns and concatenations be places instead of copies, and lists the steps that are left.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "lockstep/core/error.h"
#include "lockstep/kernels/graph/detail/analysis.h"
#include "lockstep/kernels/graph/detail/dense_step.h"
#include "lockstep/kernels/graph/detail/layout.h"
#include "lockstep/kernels/graph/detail/program.h"

namespace lockstep::graph {
namespace {

constexpr std::size_t kNone = Analysis::kNone;

template <class T>
class Lowering {
 public:
  Lowering(const Graph& graph, CpuTarget target) : graph_(graph), kernels_(kernels_for<T>(target)), know_(graph) {
    require_cpu_target(target);
    program_.kernels = &mlp::kernels_for<T>(target);
    program_.target = target;
    program_.inputs = graph.inputs;
    program_.outputs = graph.outputs;
  }

  Program<T> run() {
    place_.assign(know_.widths.size(), {kNone, 0});
    for (std::size_t value = 0; value < inputs(); ++value) {
      if (!know_.needed(value)) continue;
      place_[value] = {layout_.add(know_.widths[value], 0), 0};
      layout_.extend(place_[value].area, know_.last[value]);
    }
    for (std::size_t value = inputs(); value < know_.widths.size(); ++value) {
      if (know_.needed(value)) lower_node(value);
    }
    program_.rows = layout_.allocate();
    for (Pending& pending : pending_) {
      pending.step.out = layout_.row(pending.out);
      if (pending.a.area != kNone) pending.step.a.row = layout_.row(pending.a);
      if (pending.b.area != kNone) pending.step.b.row = layout_.row(pending.b);
      if (pending.c.area != kNone) pending.step.c.row = layout_.row(pending.c);
      program_.steps.push_back(pending.step);
    }
    for (std::size_t port = 0; port < inputs(); ++port) {
      if (know_.needed(port)) program_.loads.push_back({port, layout_.row(place_[port])});
    }
    for (std::size_t port = 0; port < graph_.outputs.size(); ++port) {
      program_.stores.push_back({port, layout_.row(place_[graph_.outputs[port].value])});
    }
    summarise();
    return std::move(program_);
  }

 private:
  using Place = Layout::Place;
  struct Pending {  // a step whose rows are not yet known
    Step<T> step;
    Place out, a{kNone, 0}, b{kNone, 0}, c{kNone, 0};
  };

  std::size_t inputs() const { return know_.inputs(); }
  const Node& node(std::size_t value) const { return know_.node(value); }
  std::size_t time(std::size_t value) const { return know_.time(value); }
  template <class Op>
  const Op* as(std::size_t value) const {
    return know_.as<Op>(value);
  }

  // ---- numbers

  T rounded(double value, const std::string& field) const {
    const T result = static_cast<T>(value);
    if (std::isfinite(value) && !std::isfinite(result)) {
      throw Error(ErrorKind::model,
                  {field, std::to_string(value), "a number that fits in float32", "evaluate the net in float64"});
    }
    return result;
  }

  const T* keep(const std::vector<double>& values, const std::string& field) {
    AlignedBuffer<T> buffer(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      buffer[i] = rounded(values[i], field + "[" + std::to_string(i) + "]");
    }
    program_.numbers.push_back(std::move(buffer));
    return program_.numbers.back().data();
  }

  template <class List>
  const std::uint32_t* keep_indices(const List& values) {
    program_.indices.emplace_back(values.begin(), values.end());
    return program_.indices.back().data();
  }

  // ---- places

  // A new area for `value`, from its own time to its last.
  Place fresh(std::size_t value, std::size_t rows) {
    const std::size_t area = layout_.add(rows, time(value));
    layout_.extend(area, know_.last[value]);
    return {area, 0};
  }

  // The rows of `operand` where `value` may overwrite them: nobody needs them later, and they hold nothing else.
  std::optional<Place> reusable(std::size_t value, std::size_t operand) const {
    const Place place = place_[operand];
    if (place.area == kNone || know_.widths[operand] != know_.widths[value]) return {};
    const Place outer = layout_.resolve(place);
    if (outer.area != place.area || layout_.rows(outer.area) != know_.widths[value]) return {};
    if (layout_.last(outer.area) > time(value) || know_.last[operand] > time(value)) return {};
    for (const std::size_t other : node(value).inputs) {
      if (other != operand && place_[other].area != kNone && layout_.resolve(place_[other]).area == outer.area)
        return {};
    }
    return place;
  }

  // For operations that read a feature before they write it, and none after.
  Place in_place_or_fresh(std::size_t value) {
    for (const std::size_t operand : node(value).inputs) {
      if (const auto place = reusable(value, operand)) {
        layout_.extend(place->area, know_.last[value]);
        return *place;
      }
    }
    return fresh(value, know_.widths[value]);
  }

  // ---- steps

  void lower_node(std::size_t value) {
    std::visit([&](const auto& operation) { lower_operation(value, operation); }, node(value).operation);
  }

  Step<T> step(StepFunction<T> run, std::size_t width) const {
    Step<T> step;
    step.run = run;
    step.width = width;
    return step;
  }

  void append(std::size_t value, Step<T> step) {
    Pending pending{step, place_[value]};
    const std::vector<std::size_t>& read = node(value).inputs;
    if (!read.empty() && step.a.constants == nullptr) pending.a = place_[read[0]];
    if (read.size() > 1 && step.b.constants == nullptr) pending.b = place_[read[1]];
    if (read.size() > 2) pending.c = place_[read[2]];
    program_.cost += 4 * static_cast<double>(step.width);
    pending_.push_back(pending);
  }

  void elementwise(std::size_t value, Step<T> step) {
    place_[value] = in_place_or_fresh(value);
    append(value, step);
  }

  void lower_operation(std::size_t value, const Dense&) {
    const auto group = know_.groups.find(value);
    if (group == know_.groups.end()) return;  // merged into an earlier one
    Mlp mlp;
    DenseLayer& all = mlp.layers.emplace_back();
    all.inputs = as<Dense>(value)->inputs;
    all.activation = know_.activation_of(value);
    for (const std::size_t layer : group->second) {
      const Dense& dense = *as<Dense>(layer);
      all.outputs += dense.outputs;
      all.weights.insert(all.weights.end(), dense.weights.begin(), dense.weights.end());
      all.bias.insert(all.bias.end(), dense.bias.begin(), dense.bias.end());
    }
    const std::size_t area = layout_.add(all.outputs, time(value));
    std::size_t offset = 0;
    for (const std::size_t layer : group->second) {
      const std::size_t made = know_.made_by(layer);
      place_[made] = {area, offset};
      layout_.extend(area, know_.last[made]);
      offset += as<Dense>(layer)->outputs;
    }
    program_.layers.push_back(std::make_unique<mlp::Packed<T>>(pack_named(mlp, node(value).name)));
    const mlp::Packed<T>& packed = *program_.layers.back();
    Step<T> dense = step(dense_step<T>, all.outputs);
    dense.layer = &packed;
    program_.scratch = std::max(program_.scratch, dense_scratch(packed));
    program_.cost += static_cast<double>(all.outputs * (all.inputs + 4));
    pending_.push_back({dense, {area, 0}, place_[node(value).inputs[0]]});
  }

  mlp::Packed<T> pack_named(const Mlp& mlp, const std::string& name) const {
    try {
      return mlp::pack<T>(mlp, program_.target);
    } catch (const Error& error) {  // only a number that does not fit into T is left to be found
      throw Error(error.kind(), {name + " (" + error.field() + ")", error.found(), error.expected(), error.remedy()});
    }
  }

  void lower_operation(std::size_t value, const Activate& activate) {
    const std::size_t read = node(value).inputs[0];
    if (as<Dense>(read) != nullptr && know_.fused[read] == value) return;
    if (activate.activation.kind == ActivationKind::identity) return same_rows(value, read, 0);
    if (activate.activation.kind == ActivationKind::relu) {
      Step<T> relu = step(binary(BinaryKind::maximum, 1), know_.widths[value]);
      relu.b = {keep({0}, node(value).name), 0, 0};
      return elementwise(value, relu);
    }
    Step<T> pass = step(kernels_.activate, know_.widths[value]);
    pass.activation = program_.kernels->activation(activate.activation.kind);
    pass.numbers[0] = rounded(activate.activation.alpha, node(value).name + ".alpha");
    elementwise(value, pass);
  }

  void lower_operation(std::size_t value, const Standardise& standardise) {
    Step<T> scaled = step(kernels_.standardise, know_.widths[value]);
    scaled.first = keep(standardise.shift, node(value).name + ".shift");
    scaled.second = keep(standardise.scale, node(value).name + ".scale");
    elementwise(value, scaled);
  }

  void lower_operation(std::size_t value, const Rescale& rescale) {
    Step<T> scaled = step(kernels_.rescale, know_.widths[value]);
    scaled.first = keep(rescale.scale, node(value).name + ".scale");
    scaled.second = keep(rescale.shift, node(value).name + ".shift");
    elementwise(value, scaled);
  }

  void lower_operation(std::size_t value, const Constant& constant) {
    if (know_.constant_only[value]) return;
    Step<T> fill = step(kernels_.fill, know_.widths[value]);
    fill.a.constants = keep(constant.values, node(value).name);
    place_[value] = fresh(value, know_.widths[value]);
    append(value, fill);
  }

  // `value` is another name for rows of `operand`, `offset` after its first.
  void same_rows(std::size_t value, std::size_t operand, std::size_t offset) {
    place_[value] = {place_[operand].area, place_[operand].offset + offset};
    layout_.extend(place_[value].area, know_.last[value]);
    ++renamed_;
  }

  void lower_operation(std::size_t value, const Columns& columns) {
    bool adjacent = true;
    for (std::size_t i = 1; i < columns.indices.size(); ++i) {
      adjacent = adjacent && columns.indices[i] == columns.indices[i - 1] + 1;
    }
    if (adjacent) return same_rows(value, node(value).inputs[0], columns.indices[0]);
    Step<T> copy = step(kernels_.columns, columns.indices.size());
    copy.indices = keep_indices(columns.indices);
    place_[value] = fresh(value, know_.widths[value]);
    append(value, copy);
  }

  // Its operands' rows one after another: theirs already, or those that each of them is given from the beginning; what
  // lies elsewhere for good is copied.
  void lower_operation(std::size_t value, const Concatenate&) {
    const std::vector<std::size_t>& parts = node(value).inputs;
    const Place first = layout_.resolve(place_[parts[0]]);
    std::size_t offset = 0;
    bool adjacent = true;
    for (const std::size_t part : parts) {
      const Place place = layout_.resolve(place_[part]);
      adjacent = adjacent && place.area == first.area && place.offset == first.offset + offset;
      offset += know_.widths[part];
    }
    if (adjacent) return same_rows(value, parts[0], 0);
    place_[value] = fresh(value, know_.widths[value]);
    offset = 0;
    for (const std::size_t part : parts) {
      const Place place = place_[part];
      const bool whole = layout_.resolve(place).area == place.area && layout_.rows(place.area) == know_.widths[part];
      if (whole && place.area != place_[value].area) {
        layout_.join(place.area, place_[value].area, offset);
        ++renamed_;
      } else {
        std::vector<std::uint32_t> all(know_.widths[part]);
        for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint32_t>(i);
        Step<T> copy = step(kernels_.columns, all.size());
        copy.indices = keep_indices(all);
        pending_.push_back({copy, {place_[value].area, offset}, place});
      }
      offset += know_.widths[part];
    }
  }

  void lower_operation(std::size_t value, const Unary& unary) {
    elementwise(value, step(kernels_.unary[static_cast<std::size_t>(unary.kind)], know_.widths[value]));
  }

  void lower_operation(std::size_t value, const Clip& clip) {
    Step<T> clipped = step(kernels_.clip, know_.widths[value]);
    clipped.numbers = {rounded(clip.minimum, node(value).name), rounded(clip.maximum, node(value).name), 0};
    elementwise(value, clipped);
  }

  void lower_operation(std::size_t value, const DeadZone& zone) {
    const std::string& name = node(value).name;
    Step<T> thresholded = step(kernels_.dead_zone, know_.widths[value]);
    thresholded.numbers = {rounded(zone.lower, name), rounded(zone.upper, name), rounded(zone.bias, name)};
    elementwise(value, thresholded);
  }

  StepFunction<T> binary(BinaryKind kind, std::size_t constants) const {
    return kernels_.binary[static_cast<std::size_t>(kind)][constants];
  }

  std::size_t operand_step(std::size_t value, std::size_t operand) const {
    return know_.widths[operand] == 1 && know_.widths[value] != 1 ? 0 : 1;
  }

  void lower_operation(std::size_t value, const Binary& operation) {
    const std::size_t a = node(value).inputs[0], b = node(value).inputs[1];
    const Constant *first = as<Constant>(a), *second = as<Constant>(b);
    const bool constants_second = second != nullptr && first == nullptr;
    const bool constants_first = first != nullptr && second == nullptr;
    Step<T> both = step(binary(operation.kind, constants_second ? 1 : constants_first ? 2 : 0), know_.widths[value]);
    if (constants_second) both.b.constants = keep(second->values, node(b).name);
    if (constants_first) both.a.constants = keep(first->values, node(a).name);
    both.a.step = operand_step(value, a);
    both.b.step = operand_step(value, b);
    elementwise(value, both);
  }

  void lower_operation(std::size_t value, const Choose& choose) {
    Step<T> chosen = step(kernels_.choose, know_.widths[value]);
    chosen.indices = keep_indices(choose.mask);
    chosen.a.step = operand_step(value, node(value).inputs[0]);
    chosen.b.step = operand_step(value, node(value).inputs[1]);
    elementwise(value, chosen);
  }

  void lower_operation(std::size_t value, const Select&) {
    Step<T> selected = step(kernels_.select, know_.widths[value]);
    selected.a.step = operand_step(value, node(value).inputs[0]);
    selected.b.step = operand_step(value, node(value).inputs[1]);
    selected.c.step = operand_step(value, node(value).inputs[2]);
    elementwise(value, selected);
  }

  void lower_operation(std::size_t value, const Chain& chain) {
    Step<T> through = step(kernels_.chain[static_cast<std::size_t>(chain.activation.kind)], know_.widths[value]);
    through.numbers[0] = rounded(chain.activation.alpha, node(value).name + ".alpha");
    elementwise(value, through);
  }

  void lower_operation(std::size_t value, const Softmax& softmax) {
    elementwise(value, step(kernels_.softmax[static_cast<std::size_t>(softmax.kind)], know_.widths[value]));
  }

  void lower_operation(std::size_t value, const Reduce& reduce) {
    const std::size_t width = know_.widths[node(value).inputs[0]];
    place_[value] = fresh(value, 1);
    append(value, step(kernels_.reduce[static_cast<std::size_t>(reduce.kind)], width));
  }

  void lower_operation(std::size_t value, const LayerNormalise& normalise) {
    Step<T> normalised = step(kernels_.layer_normalise, know_.widths[value]);
    normalised.first = keep(normalise.scale, node(value).name + ".scale");
    normalised.second = keep(normalise.shift, node(value).name + ".shift");
    normalised.numbers[0] = rounded(normalise.epsilon, node(value).name + ".epsilon");
    elementwise(value, normalised);
  }

  void summarise() {
    std::vector<std::string> parts;
    const auto count = [](std::size_t number, const char* what) {
      return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
    };
    if (know_.fused_activations > 0)
      parts.push_back(count(know_.fused_activations, "activation") + " fused into layers");
    if (know_.merged_layers > 0) {
      parts.push_back(std::to_string(know_.merged_layers) + " layers that read one value merged into " +
                      std::to_string(know_.merged_into));
    }
    if (renamed_ > 0) parts.push_back(count(renamed_, "value") + " selected or joined without a copy");
    if (know_.dropped_nodes > 0) parts.push_back(count(know_.dropped_nodes, "node") + " dropped that no output needs");
    program_.summary = count(graph_.nodes.size(), "node") + " in " + count(program_.steps.size(), "step");
    for (const std::string& part : parts) program_.summary += "; " + part;
  }

  const Graph& graph_;
  const Kernels<T>& kernels_;
  Program<T> program_;
  Analysis know_;
  Layout layout_;
  std::vector<Place> place_;  // of each value
  std::vector<Pending> pending_;
  std::size_t renamed_ = 0;
};

}  // namespace

template <class T>
Program<T> lower(const Graph& graph, CpuTarget target) {
  return Lowering<T>(graph, target).run();
}

template Program<float> lower<float>(const Graph&, CpuTarget);
template Program<double> lower<double>(const Graph&, CpuTarget);

}  // namespace lockstep::graph
