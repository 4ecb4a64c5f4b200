// ONNX operators that select, join, turn or repeat the numbers of values of any number of dimensions, [..., batch,
// ...]: each becomes a choice of features, in the order of the result.
#include <algorithm>
#include <numeric>
#include <utility>

#include "lockstep/core/text.h"
#include "lockstep/nn/detail/onnx_dimensions.h"
#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_reader.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {

GraphReader::Dimensions GraphReader::dimensions_of(const Node& node, const Value& value) const {
  if (const auto* tensor = std::get_if<OnnxTensor>(&value)) return {tensor->shape, {}};
  const Data& x = std::get<Data>(value);
  Dimensions result{x.extents, x.batch};
  if (x.rank == 1) result = {{}, 0};
  if (x.rank == 2) result = {{static_cast<std::int64_t>(width(node, x))}, x.turned ? 1 : 0};
  result.extents.insert(result.extents.begin() + static_cast<std::ptrdiff_t>(*result.batch), 1);
  return result;
}

GraphReader::Data GraphReader::with_dimensions(std::size_t step, Dimensions dimensions) {
  const std::size_t batch = *dimensions.batch;
  Extents& extents = dimensions.extents;
  extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(batch));
  if (extents.size() == 1) return {step, 2, batch == 1};
  if (extents.empty()) return {step, 1};
  return {step, 3, false, std::move(extents), batch};
}

std::size_t GraphReader::axis_of(const Node& node, std::int64_t axis, const Dimensions& x) const {
  const auto rank = static_cast<std::int64_t>(x.extents.size());
  if (axis < -rank || axis >= rank) {
    refuse(place(node), "axis " + std::to_string(axis), "one of the " + std::to_string(rank) + " of its operand");
  }
  const auto result = static_cast<std::size_t>(axis < 0 ? axis + rank : axis);
  if (x.batch == result) {
    unsupported(node, "axis " + std::to_string(axis) + " of " + text_of(x) + ", the batch itself",
                "an axis of features: each sample for itself");
  }
  return result;
}

GraphReader::Value GraphReader::pictured(const Node& node, const Value& value, const Picture& picture,
                                         std::optional<std::size_t> batch) {
  if (picture.from.empty()) unsupported(node, "a result of no numbers", "at least one feature");
  if (picture.from.size() > kMostFeatures) {
    unsupported(node, std::to_string(picture.from.size()) + " numbers a sample", "at most 2^20");
  }
  if (const auto* tensor = std::get_if<OnnxTensor>(&value)) {
    OnnxTensor result{picture.extents, {}, tensor->type, false, tensor->whole, tensor->each_sample};
    builder_.work(picture.from.size(), place(node));
    result.values.reserve(picture.from.size());
    for (const std::size_t from : picture.from) result.values.push_back(tensor->values[from]);
    result.holds_batch = tensor->holds_batch && std::ranges::any_of(result.values, is_of_batch);
    return result;
  }
  return with_dimensions(select(node, {std::get<Data>(value).step}, picture.from).step, {picture.extents, batch});
}

Picture GraphReader::picture_of(const Node& node, const Dimensions& x) {
  const auto numbers = numbers_in(x.extents, kMostFeatures);
  if (!numbers) unsupported(node, "a value " + text_of(x), "at most 2^20 numbers");
  builder_.work(*numbers, place(node));
  return whole(x.extents);
}

// Those of Gather, GatherND and the scattering operators, counted from the end where they are negative.
Indices GraphReader::indices_within(const Node& node, const OnnxTensor& tensor, std::int64_t extent) const {
  if (tensor.holds_batch) unsupported(node, "the size of the batch as an index", "fixed numbers");
  Indices result;
  for (const double value : tensor.values) {
    const double index = value < 0 ? value + static_cast<double>(extent) : value;
    if (!(index >= 0 && index < static_cast<double>(extent))) {
      refuse(place(node), "index " + number_text(value), "less than " + std::to_string(extent));
    }
    result.push_back(static_cast<std::size_t>(index));
  }
  return result;
}

std::optional<GraphReader::Values> GraphReader::view(const Node& node) {
  const std::string& op = node.op_type();
  const auto one = [](Value value) {
    Values values;
    values.push_back(std::move(value));
    return values;
  };
  if (op == "Split") return split_dimensions(node);
  if (op == "Concat") return one(concat_dimensions(node));
  if (op == "ScatterND" || op == "ScatterElements") return one(scattered(node));
  const bool viewed = op == "Transpose" || op == "Gather" || op == "GatherND" || op == "Slice" || op == "Tile" ||
                      op == "Pad" || op == "Expand";
  if (!viewed) return {};
  const Value& value = required(node, 0);
  const Dimensions x = dimensions_of(node, value);
  if (op == "Pad") return one(padded(node, value, x));
  if (op == "Expand") return one(expanded(node, value, x));
  Picture picture = picture_of(node, x);
  std::optional<std::size_t> batch = x.batch;
  bool each_sample = false;  // a constant that is repeated for each
  const std::size_t rank = x.extents.size();
  if (op == "Transpose") {
    Indices order(rank);
    std::iota(order.rbegin(), order.rend(), std::size_t{0});
    if (const auto given = whole_numbers(node, "perm", -1)) {
      order.assign(given->begin(), given->end());
      Indices sorted = order;
      std::sort(sorted.begin(), sorted.end());
      Indices all(rank);
      std::iota(all.begin(), all.end(), std::size_t{0});
      if (sorted != all) refuse(place(node), "perm " + text_of(*given), "each dimension of " + text_of(x) + " once");
    }
    if (batch) batch = static_cast<std::size_t>(std::find(order.begin(), order.end(), *batch) - order.begin());
    picture = transposed(picture, order);
  } else if (op == "Gather") {
    const OnnxTensor& wanted = constant_operand(node, 1);
    const std::size_t axis = axis_of(node, integer(node, "axis", 0), x);
    picture = taken(picture, axis, indices_within(node, wanted, x.extents[axis]));
    const auto at = picture.extents.erase(picture.extents.begin() + static_cast<std::ptrdiff_t>(axis));
    picture.extents.insert(at, wanted.shape.begin(), wanted.shape.end());
    if (batch && *batch > axis) *batch += wanted.shape.size() - 1;
  } else if (op == "GatherND") {
    picture = gathered(node, x, picture, batch);
  } else if (op == "Slice") {
    for (const SliceAlong& along : slices_of(node)) {
      const std::int64_t extents = static_cast<std::int64_t>(rank);
      const bool of_batch = batch && (along.axis == static_cast<std::int64_t>(*batch) ||
                                      along.axis == static_cast<std::int64_t>(*batch) - extents);
      if (of_batch && whole_batch(along)) continue;
      const std::size_t axis = axis_of(node, along.axis, x);
      builder_.work(picture.from.size(), place(node));
      picture = taken(picture, axis, sliced(node, along, picture.extents[axis]));
    }
  } else {  // Tile
    const OnnxTensor& repeats = constant_operand(node, 1);
    if (repeats.values.size() != rank) refuse(place(node), "other repeats than dimensions", text_of(x));
    for (std::size_t axis = 0; axis < rank; ++axis) {
      double times = repeats.values[axis];
      // A constant is there once for all samples: repeated for each of them it stays as it is.
      if (repeats.holds_batch && times == kBatchExtent && !batch && x.extents[axis] == 1) {
        times = 1;
        each_sample = true;
      }
      if (times == 1) continue;
      const auto numbers = static_cast<double>(std::max<std::size_t>(picture.from.size(), 1));
      if (batch == axis || !(times >= 1 && times * numbers <= kMostFeatures)) {
        unsupported(node, "repeats along the batch, or of too many numbers", "repeats of features, at most 2^20");
      }
      Indices list;
      for (std::size_t i = 0; i < static_cast<std::size_t>(times); ++i) {
        for (std::size_t at = 0; at < static_cast<std::size_t>(x.extents[axis]); ++at) list.push_back(at);
      }
      picture = taken(picture, axis, list);
    }
  }
  Value result = pictured(node, value, picture, batch);
  if (auto* const tensor = std::get_if<OnnxTensor>(&result); tensor && each_sample) tensor->each_sample = true;
  return one(std::move(result));
}

// Of indices [..., k], each of which names a place in the first k dimensions.
Picture GraphReader::gathered(const Node& node, const Dimensions& x, const Picture& picture,
                              std::optional<std::size_t>& batch) const {
  const OnnxTensor& wanted = constant_operand(node, 1);
  const auto named = wanted.shape.empty() ? 0 : static_cast<std::size_t>(wanted.shape.back());
  if (integer(node, "batch_dims", 0) != 0 || named == 0 || named > x.extents.size() || (batch && *batch < named)) {
    unsupported(node, "indices across the batch", "batch_dims = 0, and indices of dimensions before the batch",
                "select columns by x[:, list] or torch.index_select(x, 1, list)");
  }
  const Indices starts = starts_of(node, wanted, x.extents, named);
  const Indices strides = strides_of(x.extents);
  Picture result{{wanted.shape.begin(), wanted.shape.end() - 1}, {}};
  result.extents.insert(result.extents.end(), x.extents.begin() + static_cast<std::ptrdiff_t>(named), x.extents.end());
  for (const std::size_t start : starts) {
    const auto first = picture.from.begin() + static_cast<std::ptrdiff_t>(start);
    result.from.insert(result.from.end(), first, first + static_cast<std::ptrdiff_t>(strides[named - 1]));
    if (result.from.size() > kMostFeatures) unsupported(node, "more than 2^20 numbers a sample", "fewer");
  }
  if (batch) *batch = *batch - named + wanted.shape.size() - 1;
  return result;
}

// For each list of `named` indices, the first place of what it names.
Indices GraphReader::starts_of(const Node& node, const OnnxTensor& indices, const Extents& extents,
                               std::size_t named) const {
  const Indices strides = strides_of(extents);
  Indices starts(indices.values.size() / named, 0);
  for (std::size_t i = 0; i < named; ++i) {
    OnnxTensor one{{}, {}, indices.type, indices.holds_batch, true};
    for (std::size_t at = 0; at < starts.size(); ++at) one.values.push_back(indices.values[at * named + i]);
    const Indices along = indices_within(node, one, extents[i]);
    for (std::size_t at = 0; at < starts.size(); ++at) starts[at] += along[at] * strides[i];
  }
  return starts;
}

// x with some of its numbers replaced by those of another value.
GraphReader::Value GraphReader::scattered(const Node& node) {
  const Value &value = required(node, 0), &updates = required(node, 2);
  OnnxTensor indices = constant_operand(node, 1);
  Dimensions x = dimensions_of(node, value);
  const Dimensions from = dimensions_of(node, updates);
  Picture picture = picture_of(node, x);
  const std::size_t numbers = picture.from.size(), others = picture_of(node, from).from.size();
  Indices targets;  // of each number of `updates`
  bool of_each_sample = false;
  if (node.op_type() == "ScatterND") {
    const auto named = indices.shape.empty() ? 0 : static_cast<std::size_t>(indices.shape.back());
    of_each_sample = x.batch == 0 && named > 1 && numbers_samples(indices, named);
    if (of_each_sample) {
      const auto* const once = std::get_if<OnnxTensor>(&updates);
      if (once) require_each_sample(node, *once);
      std::ranges::replace(indices.values, kSampleNumber, 0.0);
      indices.holds_batch = false;
    }
    if (named == 0 || named > x.extents.size() || (x.batch && *x.batch < named && !of_each_sample)) {
      unsupported(node, "indices across the batch", "those of dimensions before it",
                  "put columns together by torch.cat or torch.stack");
    }
    const std::size_t run = strides_of(x.extents)[named - 1];
    for (const std::size_t start : starts_of(node, indices, x.extents, named)) {
      for (std::size_t i = 0; i < run && targets.size() <= others; ++i) targets.push_back(start + i);
    }
  } else {
    const std::size_t axis = axis_of(node, integer(node, "axis", 0), {x.extents, x.batch ? x.batch : from.batch});
    if (indices.shape != from.extents || from.extents.size() != x.extents.size()) {
      unsupported(node, "indices " + text_of(indices.shape) + " for " + text_of(from), "one for each number");
    }
    const auto* const once = std::get_if<OnnxTensor>(&updates);
    if (x.batch && once && !once->each_sample && !indices.each_sample && fixed_batch_ != 1) {
      unsupported(node, "updates of the first sample", "of each sample", "expand them to the batch (x.shape[0])");
    }
    for (std::size_t i = 0; i < x.extents.size(); ++i) {
      if (i != axis && from.extents[i] > x.extents[i]) refuse(place(node), "more numbers than there are", text_of(x));
    }
    Indices steps = strides_of(x.extents);
    const std::size_t along = std::exchange(steps[axis], 0);
    targets = places(from.extents, steps);
    const Indices at = indices_within(node, indices, x.extents[axis]);
    for (std::size_t i = 0; i < targets.size(); ++i) targets[i] += at[i] * along;
  }
  if (targets.size() != others) refuse(place(node), "other numbers of indices than of updates", "one for each");
  std::optional<std::size_t> batch = of_each_sample ? x.batch : from.batch;  // where x has it
  // Of ScatterND: [lists of indices, what x has behind the dimensions they name].
  if (batch && node.op_type() == "ScatterND" && !of_each_sample) {
    const std::size_t lists = indices.shape.size() - 1, named = static_cast<std::size_t>(indices.shape.back());
    if (*batch < lists) unsupported(node, "updates " + text_of(from), "the batch behind the dimensions of the indices");
    *batch += named - lists;
  }
  if (batch && (*batch >= x.extents.size() || (x.batch && x.batch != batch))) {
    unsupported(node, text_of(x) + " and " + text_of(from), "alike");
  }
  if (!x.batch) x.batch = batch;  // a constant in which columns are set
  const auto *constant_x = std::get_if<OnnxTensor>(&value), *constant_updates = std::get_if<OnnxTensor>(&updates);
  if (constant_x && constant_updates) {
    for (const OnnxTensor* part : std::initializer_list<const OnnxTensor*>{constant_x, constant_updates, &indices})
      require_fixed(node, *part);
  }
  const auto step = [&](const Value& part) {
    const auto* tensor = std::get_if<OnnxTensor>(&part);
    return tensor ? builder_.constant(tensor->values, place(node)) : std::get<Data>(part).step;
  };
  const auto* reduction = attribute(node, "reduction");
  if (reduction && reduction->s() != "none") {
    if (constant_x && constant_updates) unsupported(node, "reduction = " + reduction->s() + " of constants", "none");
    return scatter_reduced(node, reduction->s(), step(value), step(updates), targets, x);
  }
  for (std::size_t i = 0; i < others; ++i) picture.from[targets[i]] = numbers + i;
  if (constant_x && constant_updates) {
    OnnxTensor both = *constant_x;
    both.values.insert(both.values.end(), constant_updates->values.begin(), constant_updates->values.end());
    return pictured(node, both, picture, {});
  }
  if (!x.batch || (std::holds_alternative<OnnxTensor>(value) && x.extents[*x.batch] != 1)) {
    unsupported(node, "values of which none depends on the input", "columns set in a value");
  }
  const std::size_t both = builder_.operation(Concatenate{}, {step(value), step(updates)}, place(node));
  return pictured(node, Data{both}, picture, x.batch);
}

// Does the first of every `named` indices number the samples, and no other?
bool GraphReader::numbers_samples(const OnnxTensor& indices, std::size_t named) {
  bool each = indices.holds_batch;
  for (std::size_t i = 0; i < indices.values.size(); ++i) {
    each = each && (i % named == 0 ? indices.values[i] == kSampleNumber : !is_of_batch(indices.values[i]));
  }
  return each;
}

// x with numbers added to some of its own, or multiplied by them.
GraphReader::Value GraphReader::scatter_reduced(const Node& node, const std::string& reduction, std::size_t x,
                                                std::size_t updates, const Indices& targets,
                                                const Dimensions& dimensions) {
  const bool adds = reduction == "add";
  if (!adds && reduction != "mul") unsupported(node, "reduction = " + reduction, "none, add or mul");
  if (!dimensions.batch) unsupported(node, "values of which none depends on the input", "columns set in a value");
  const std::size_t others = targets.size(), numbers = *numbers_in(dimensions.extents, kMostFeatures);
  const std::size_t neutral = builder_.constant({adds ? -0.0 : 1.0}, place(node));  // -0: 0 would change -0
  const std::size_t both = builder_.operation(Concatenate{}, {updates, neutral}, place(node));
  std::vector<bool> done(others, false);
  for (std::size_t left = others, rounds = 0; left > 0; ++rounds) {  // a place may be named several times
    if (rounds == 64) unsupported(node, "a place that is named more than 64 times", "fewer");
    Indices from(numbers, others);
    for (std::size_t i = 0; i < others; ++i) {
      if (done[i] || from[targets[i]] != others) continue;
      from[targets[i]] = i;
      done[i] = true;
      --left;
    }
    const std::size_t each = select(node, {both}, std::move(from)).step;
    x = adds ? builder_.sum(x, each, place(node)) : builder_.product(x, each, place(node));
  }
  return with_dimensions(x, dimensions);
}

GraphReader::Values GraphReader::split_dimensions(const Node& node) {
  const Value& value = required(node, 0);
  const Dimensions x = dimensions_of(node, value);
  const std::size_t axis = axis_of(node, integer(node, "axis", 0), x);
  const Picture picture = picture_of(node, x);
  Values parts;
  std::size_t first = 0;
  for (const std::size_t size : split_sizes(node, static_cast<std::size_t>(x.extents[axis]))) {
    Indices list(size);
    std::iota(list.begin(), list.end(), first);
    parts.push_back(pictured(node, value, taken(picture, axis, list), x.batch));
    first += size;
  }
  return parts;
}

GraphReader::Value GraphReader::concat_dimensions(const Node& node) {
  std::vector<Dimensions> parts;
  std::optional<Dimensions> like;
  for (int i = 0; i < node.input_size(); ++i) {
    parts.push_back(dimensions_of(node, required(node, i)));
    if (!like && parts.back().batch) like = parts.back();
  }
  const std::size_t axis = axis_of(node, integer(node, "axis", 1), *like);
  Dimensions result = *like;
  result.extents[axis] = 0;
  std::vector<std::size_t> steps;
  for (int i = 0; i < node.input_size(); ++i) {
    Dimensions& part = parts[static_cast<std::size_t>(i)];
    Extents shape = part.extents;
    if (shape.size() > axis) shape[axis] = like->extents[axis];
    if (shape != like->extents || (part.batch && part.batch != like->batch)) {
      unsupported(node, text_of(part) + " beside " + text_of(*like), "values that differ in the axis alone");
    }
    result.extents[axis] += part.extents[axis];
    const OnnxTensor* tensor = constant(node, i);
    if (tensor && tensor->holds_batch) unsupported(node, "the size of the batch as a number", "fixed numbers");
    if (tensor) require_each_sample(node, *tensor);
    steps.push_back(tensor ? builder_.constant(tensor->values, place(node)) : std::get<Data>(required(node, i)).step);
  }
  if (!numbers_in(result.extents, kMostFeatures))
    unsupported(node, "a value " + text_of(result), "at most 2^20 numbers");
  // Part after part there; here, for each place of the dimensions before the axis, what each part has there.
  const std::size_t inner = strides_of(result.extents)[axis];
  std::size_t outer = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= static_cast<std::size_t>(result.extents[i]);
  Picture picture{result.extents, {}};
  for (std::size_t o = 0; o < outer; ++o) {
    std::size_t before = 0;
    for (const Dimensions& part : parts) {
      const std::size_t run = static_cast<std::size_t>(part.extents[axis]) * inner;
      for (std::size_t i = 0; i < run; ++i) picture.from.push_back(before + o * run + i);
      before += outer * run;
    }
  }
  const std::size_t step =
      steps.size() == 1 ? steps[0] : builder_.operation(Concatenate{}, std::move(steps), place(node));
  return pictured(node, Data{step}, picture, result.batch);
}

// In opset 11 and later the widths and the number are operands.
GraphReader::Value GraphReader::padded(const Node& node, const Value& value, const Dimensions& x) {
  const auto* given = attribute(node, "mode");
  const std::string mode = given ? given->s() : "constant";
  const auto pads = whole_numbers(node, "pads", 1);
  auto axes = whole_numbers(node, "axes", 3);
  if (!axes) {
    axes.emplace(x.extents.size());
    std::iota(axes->begin(), axes->end(), std::int64_t{0});
  }
  if (!pads || pads->size() != 2 * axes->size()) refuse(place(node), "other pads than axes", "two for each axis");
  double number_there = number(node, "value", 0);
  if (operand(node, 2) != nullptr) number_there = single_number(node, constant_operand(node, 2));
  Picture picture = picture_of(node, x);
  const std::size_t numbers = picture.from.size();
  bool any = false;
  for (std::size_t i = 0; i < axes->size(); ++i) {
    const std::int64_t before = (*pads)[i], after = (*pads)[i + axes->size()];
    if (before == 0 && after == 0) continue;
    const std::size_t axis = axis_of(node, (*axes)[i], x);
    const std::int64_t extent = picture.extents[axis];
    if (extent == 0) unsupported(node, "nothing to put numbers around", "at least one number");
    constexpr std::int64_t kMost = std::int64_t{1} << 20;
    if (before < -kMost || after < -kMost || before > kMost || after > kMost) {
      unsupported(node, "more than 2^20 numbers around others", "fewer");
    }
    Indices list;
    for (std::int64_t at = -before; at < extent + after; ++at) {
      std::int64_t from = at;
      if (at < 0 || at >= extent) {
        if (mode == "edge") from = std::clamp(at, std::int64_t{0}, extent - 1);
        if (mode == "wrap") from = (at % extent + extent) % extent;
        if (mode == "reflect") from = at < 0 ? -at : 2 * (extent - 1) - at;
        if (mode != "constant" && (from < 0 || from >= extent)) {
          unsupported(node, mode + " of more numbers than there are", "fewer than " + std::to_string(extent));
        }
      }
      const bool there = from >= 0 && from < extent;
      any = any || !there;
      list.push_back(there ? static_cast<std::size_t>(from) : kNone);
    }
    const std::size_t others = picture.from.size() / static_cast<std::size_t>(extent);
    if (list.size() * others > kMostFeatures) unsupported(node, "more than 2^20 numbers a sample", "fewer");
    picture = taken(picture, axis, list, numbers);
  }
  if (const auto* tensor = std::get_if<OnnxTensor>(&value)) {
    OnnxTensor more = *tensor;
    more.values.push_back(number_there);
    return pictured(node, more, picture, x.batch);
  }
  const std::size_t step = std::get<Data>(value).step;
  if (!any) return pictured(node, value, picture, x.batch);
  const std::size_t both =
      builder_.operation(Concatenate{}, {step, builder_.constant({number_there}, place(node))}, place(node));
  return pictured(node, Data{both}, picture, x.batch);
}

// To a shape that holds the batch where x has it, or 1 there.
GraphReader::Value GraphReader::expanded(const Node& node, const Value& value, const Dimensions& x) {
  const OnnxTensor& wanted = constant_operand(node, 1);
  const std::size_t rank = std::max(wanted.values.size(), x.extents.size());
  const std::size_t ahead = rank - x.extents.size();  // dimensions before those of x
  Extents to;
  for (std::size_t axis = 0; axis < rank; ++axis) {
    const std::int64_t own = axis < ahead ? 1 : x.extents[axis - ahead];
    const std::size_t missing = rank - wanted.values.size();
    const double extent = axis < missing ? 1 : wanted.values[axis - missing];
    const bool of_batch = extent == kBatchExtent;
    if (x.batch && axis == *x.batch + ahead) {
      if (!of_batch && extent != 1 && extent != -1 && !(fixed_batch_ && extent == static_cast<double>(*fixed_batch_))) {
        unsupported(node, "a shape that does not keep the batch", "the batch, or 1, in its place");
      }
      to.push_back(1);
    } else if (of_batch && (x.batch || own != 1)) {
      unsupported(node, "the batch in another place than " + text_of(x) + " has it", "the same place");
    } else if (of_batch || extent == 1 || extent == -1) {  // what is constant is there once for all samples
      to.push_back(own);
    } else if (extent > 1 && extent <= kMostFeatures) {
      to.push_back(static_cast<std::int64_t>(extent));
    } else {
      unsupported(node, "a shape of other extents", "1 to 2^20");
    }
  }
  const auto indices = numbers_in(to, kMostFeatures) ? broadcast(x.extents, to) : std::nullopt;
  if (!indices)
    unsupported(node, text_of(x) + " as another shape", "one that it is broadcast to, of at most 2^20 numbers");
  std::optional<std::size_t> batch = x.batch;
  if (batch) *batch += ahead;
  Value result = pictured(node, value, {std::move(to), *indices}, batch);
  if (auto* const tensor = std::get_if<OnnxTensor>(&result); tensor && wanted.holds_batch) tensor->each_sample = true;
  return result;
}

}  // namespace lockstep::nn::detail
