#include "lockstep/kernels/graph/detail/schedule.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <optional>
#include <utility>

#include "lockstep/kernels/graph/detail/analysis.h"
#include "lockstep/kernels/graph/detail/layout.h"

namespace lockstep::graph {
namespace {

constexpr std::size_t kNone = Analysis::kNone;

class Scheduling {
 public:
  Scheduling(const Graph& graph, PortRowsLie lie)
      : graph_(graph), lent_(lie == PortRowsLie::with_the_caller), know_(graph) {}

  Schedule run() {
    place_.assign(know_.widths.size(), {kNone, 0});
    for (std::size_t value = 0; value < inputs(); ++value) {
      if (!know_.needed(value)) continue;
      place_[value] = {layout_.add(know_.widths[value], 0), 0};
      if (lent_) layout_.lend(place_[value].area, static_cast<Layout::Base>(kInputBase + value));
      layout_.extend(place_[value].area, know_.last[value]);
    }
    for (std::size_t value = inputs(); value < know_.widths.size(); ++value) {
      if (know_.needed(value)) add_node(value);
    }
    const bool output_lent = lent_ && lend_output();
    made_.rows = layout_.allocate();
    for (Pending& pending : pending_) {
      pending.step.out = layout_.row(pending.out);
      pending.step.out_base = layout_.base(pending.out);
      locate(pending.step.a, pending.a);
      locate(pending.step.b, pending.b);
      locate(pending.step.c, pending.c);
      made_.steps.push_back(std::move(pending.step));
    }
    for (std::size_t port = 0; !lent_ && port < inputs(); ++port) {
      if (know_.needed(port)) made_.loads.push_back({port, layout_.row(place_[port])});
    }
    for (std::size_t port = 0; !output_lent && port < graph_.outputs.size(); ++port) {
      const Place place = place_[graph_.outputs[port].value];
      made_.stores.push_back({port, layout_.row(place), layout_.base(place)});
    }
    note_last_reads();
    summarise();
    return std::move(made_);
  }

 private:
  using Place = Layout::Place;
  struct Pending {  // a step whose rows are not yet known
    ScheduledStep step;
    Place out, a{kNone, 0}, b{kNone, 0}, c{kNone, 0};
  };

  void locate(ScheduledOperand& operand, Place place) const {
    if (place.area == kNone) return;
    operand.row = layout_.row(place);
    operand.base = layout_.base(place);
  }

  // The output port's value is made where the caller wants it; else, where it is an input or a part of something, it is
  // copied there.
  bool lend_output() {
    const std::size_t value = graph_.outputs[0].value;
    const Place place = layout_.resolve(place_[value]);
    const bool whole = layout_.rows(place.area) == know_.widths[value] && layout_.base(place) == 0;
    if (whole) layout_.lend(place.area, kOutputBase);
    return whole;
  }

  std::size_t inputs() const { return know_.inputs(); }
  const Node& node(std::size_t value) const { return know_.node(value); }
  std::size_t time(std::size_t value) const { return know_.time(value); }
  template <class Op>
  const Op* as(std::size_t value) const {
    return know_.as<Op>(value);
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
    if (layout_.base(outer) != 0) return {};
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

  void add_node(std::size_t value) {
    std::visit([&](const auto& operation) { add_operation(value, operation); }, node(value).operation);
  }

  ScheduledStep step(std::size_t value, std::size_t width) const {
    ScheduledStep step;
    step.node = &node(value);
    step.width = width;
    return step;
  }

  void append(std::size_t value, ScheduledStep step) {
    Pending pending{std::move(step), place_[value]};
    const std::vector<std::size_t>& read = node(value).inputs;
    if (!read.empty() && pending.step.a.constants == nullptr) pending.a = place_[read[0]];
    if (read.size() > 1 && pending.step.b.constants == nullptr) pending.b = place_[read[1]];
    if (read.size() > 2) pending.c = place_[read[2]];
    made_.cost += 4 * static_cast<double>(pending.step.width);
    pending_.push_back(std::move(pending));
  }

  void add_elementwise(std::size_t value, ScheduledStep step) {
    place_[value] = in_place_or_fresh(value);
    append(value, std::move(step));
  }

  // Those that read one value and make as many features.
  template <class Op>
  void add_operation(std::size_t value, const Op&) {
    add_elementwise(value, step(value, know_.widths[value]));
  }

  void add_operation(std::size_t value, const Dense&) {
    const auto group = know_.groups.find(value);
    if (group == know_.groups.end()) return;  // merged into an earlier one
    ScheduledStep dense = step(value, 0);
    dense.activation = know_.activation_of(value);
    for (const std::size_t layer : group->second) {
      dense.layers.push_back(&node(layer));
      dense.width += as<Dense>(layer)->outputs;
    }
    const std::size_t area = layout_.add(dense.width, time(value));
    std::size_t offset = 0;
    for (const std::size_t layer : group->second) {
      const std::size_t made = know_.made_by(layer);
      place_[made] = {area, offset};
      layout_.extend(area, know_.last[made]);
      offset += as<Dense>(layer)->outputs;
    }
    made_.cost += static_cast<double>(dense.width * (as<Dense>(value)->inputs + 4));
    pending_.push_back({std::move(dense), {area, 0}, place_[node(value).inputs[0]]});
  }

  void add_operation(std::size_t value, const Activate& activate) {
    const std::size_t read = node(value).inputs[0];
    if (as<Dense>(read) != nullptr && know_.fused[read] == value) return;
    if (activate.activation.kind == ActivationKind::identity) return same_rows(value, read, 0);
    add_elementwise(value, step(value, know_.widths[value]));
  }

  void add_operation(std::size_t value, const Constant&) {
    if (know_.constant_only[value]) return;
    place_[value] = fresh(value, know_.widths[value]);
    append(value, step(value, know_.widths[value]));
  }

  // `value` is another name for rows of `operand`, `offset` after its first.
  void same_rows(std::size_t value, std::size_t operand, std::size_t offset) {
    place_[value] = {place_[operand].area, place_[operand].offset + offset};
    layout_.extend(place_[value].area, know_.last[value]);
    ++renamed_;
  }

  void add_operation(std::size_t value, const Columns& columns) {
    bool adjacent = true;
    for (std::size_t i = 1; i < columns.indices.size(); ++i) {
      adjacent = adjacent && columns.indices[i] == columns.indices[i - 1] + 1;
    }
    if (adjacent) return same_rows(value, node(value).inputs[0], columns.indices[0]);
    place_[value] = fresh(value, know_.widths[value]);
    append(value, step(value, columns.indices.size()));
  }

  // Its operands' rows one after another: theirs already, or those that each of them is given from the beginning; what
  // lies elsewhere for good is copied.
  void add_operation(std::size_t value, const Concatenate&) {
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
      const bool whole = layout_.resolve(place).area == place.area && layout_.base(place) == 0 &&
                         layout_.rows(place.area) == know_.widths[part];
      if (whole && place.area != place_[value].area) {
        layout_.join(place.area, place_[value].area, offset);
        ++renamed_;
      } else {
        ScheduledStep copy = step(value, know_.widths[part]);
        copy.copies = true;
        pending_.push_back({std::move(copy), {place_[value].area, offset}, place});
      }
      offset += know_.widths[part];
    }
  }

  std::size_t operand_step(std::size_t value, std::size_t operand) const {
    return know_.widths[operand] == 1 && know_.widths[value] != 1 ? 0 : 1;
  }

  // Two vectors element by element, at most one of them constants.
  void add_operation(std::size_t value, const Binary&) {
    const std::size_t a = node(value).inputs[0], b = node(value).inputs[1];
    const Constant *first = as<Constant>(a), *second = as<Constant>(b);
    ScheduledStep both = step(value, know_.widths[value]);
    if (second != nullptr && first == nullptr) both.b = {second, node(b).name};
    if (first != nullptr && second == nullptr) both.a = {first, node(a).name};
    both.read_once = know_.readers[value] == 1;
    both.a.step = operand_step(value, a);
    both.b.step = operand_step(value, b);
    add_elementwise(value, std::move(both));
  }

  void add_operation(std::size_t value, const Choose&) {
    ScheduledStep chosen = step(value, know_.widths[value]);
    chosen.a.step = operand_step(value, node(value).inputs[0]);
    chosen.b.step = operand_step(value, node(value).inputs[1]);
    add_elementwise(value, std::move(chosen));
  }

  void add_operation(std::size_t value, const Select&) {
    ScheduledStep selected = step(value, know_.widths[value]);
    selected.a.step = operand_step(value, node(value).inputs[0]);
    selected.b.step = operand_step(value, node(value).inputs[1]);
    selected.c.step = operand_step(value, node(value).inputs[2]);
    add_elementwise(value, std::move(selected));
  }

  void add_operation(std::size_t value, const Reduce&) {
    place_[value] = fresh(value, 1);
    append(value, step(value, know_.widths[node(value).inputs[0]]));
  }

  void add_operation(std::size_t value, const Interpolate& table) {
    place_[value] = fresh(value, table.outputs);
    append(value, step(value, table.outputs));
    // A number gathered costs some eight multiply-adds: one in each round of the search, and each coefficient.
    const std::size_t rounds = static_cast<std::size_t>(std::bit_width(table.knots.size() - 1)) + 1;
    made_.cost += 8 * static_cast<double>(rounds + table.outputs * table.powers());
  }

  void note_last_reads() {
    made_.last_read.assign(made_.rows, Schedule::kNeverRead);
    const auto note = [&](std::uint8_t base, std::size_t row, std::size_t width, std::size_t reader) {
      if (base == kTileBase) std::fill_n(made_.last_read.begin() + static_cast<std::ptrdiff_t>(row), width, reader);
    };
    for (std::size_t i = 0; i < made_.steps.size(); ++i) {
      const ScheduledStep& step = made_.steps[i];
      const ScheduledOperand* const operands[] = {&step.a, &step.b, &step.c};
      const std::vector<std::size_t>& read = step.node->inputs;
      const std::size_t count = step.copies ? 1 : std::min(read.size(), std::size(operands));
      for (std::size_t o = 0; o < count; ++o) {
        if (operands[o]->constants != nullptr) continue;
        note(operands[o]->base, operands[o]->row, step.copies ? step.width : know_.widths[read[o]], i);
      }
    }
    for (const auto& [port, row, base] : made_.stores) note(base, row, graph_.outputs[port].width, made_.steps.size());
  }

  [[gnu::cold]] void summarise() {
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
    made_.summary = count(graph_.nodes.size(), "node") + " in " + count(made_.steps.size(), "step");
    for (const std::string& part : parts) made_.summary += "; " + part;
  }

  const Graph& graph_;
  bool lent_;  // ports' rows are the caller's
  Schedule made_;
  Analysis know_;
  Layout layout_;
  std::vector<Place> place_;  // of each value
  std::vector<Pending> pending_;
  std::size_t renamed_ = 0;
};

}  // namespace

Schedule schedule(const Graph& graph, PortRowsLie lie) { return Scheduling(graph, lie).run(); }

DenseLayer merged_layer(const ScheduledStep& step) {
  DenseLayer all;
  all.inputs = std::get<Dense>(step.node->operation).inputs;
  all.activation = step.activation;
  for (const Node* const node : step.layers) {
    const Dense& dense = std::get<Dense>(node->operation);
    all.outputs += dense.outputs;
    all.weights.insert(all.weights.end(), dense.weights.begin(), dense.weights.end());
    all.bias.insert(all.bias.end(), dense.bias.begin(), dense.bias.end());
  }
  return all;
}

}  // namespace lockstep::graph
