// MatMul and Einsum of values of any dimensions, with constants and with each other. Every dimension has a label; a
// label that both operands and the result have runs along, one that the result lacks is summed over.
#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "lockstep/nn/detail/onnx_dimensions.h"
#include "lockstep/nn/detail/onnx_node.h"
#include "lockstep/nn/detail/onnx_reader.h"
#include "lockstep/nn/detail/refuse.h"

namespace lockstep::nn::detail {
namespace {

constexpr std::size_t kMostVectors = 1024;
constexpr std::size_t kMostProducts = std::size_t{1} << 27, kMostProduced = std::size_t{1} << 24;  // of constants
constexpr int kFree = -1;  // the label of a dimension of 1 that meets others
constexpr const char* kInstead = "write a product of two such values as Mul and ReduceSum over the features";

// The places of an operand at every combination of `labels`, row-major.
Indices along(const std::vector<int>& labels, const Extents& extents, const std::vector<int>& own,
              const Indices& strides) {
  Indices steps(labels.size(), 0);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    for (std::size_t axis = 0; axis < own.size(); ++axis) {
      if (own[axis] == labels[i]) steps[i] += strides[axis];
    }
  }
  return places(extents, steps);
}

bool contains(const std::vector<int>& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

}  // namespace

std::optional<GraphReader::Values> GraphReader::products(const Node& node) {
  Values values;
  if (node.op_type() == "Einsum") {
    values.push_back(einsum(node));
    return values;
  }
  const OnnxTensor *left = constant(node, 0), *right = constant(node, 1);
  const auto* const a = std::get_if<Data>(&required(node, 0));
  const auto* const b = std::get_if<Data>(&required(node, 1));
  const bool matrix = (right && right->shape.size() == 2) || (left && left->shape.size() == 2);
  if (matrix && left && b->rank < 3) return {};
  if (matrix && right && a->rank < 3 && !a->turned) return {};
  if (a && a->rank == 1) return {};
  const Data* const x = right ? a : left ? b : nullptr;
  const bool of_samples = x && x->rank == 3 && x->batch == 0;
  const OnnxTensor* const weights = right ? right : left;
  bool one_matrix = of_samples && weights && weights->shape.size() >= 2 &&
                    weights->shape.size() <= x->extents.size() + 1;  // more would add dimensions before the batch
  for (std::size_t i = 0; one_matrix && i + 2 < weights->shape.size(); ++i) one_matrix = weights->shape[i] == 1;
  const std::size_t features = x ? builder_.width(x->step) : 0;
  if (one_matrix && x->extents.size() >= 2 &&
      features / static_cast<std::size_t>(x->extents[x->extents.size() - (left ? 2 : 1)]) <= 256) {
    values.push_back(product_of_matrices(node));
    return values;
  }
  values.push_back(product_of_any(node));
  return values;
}

// As NumPy does it: the last dimension of the first times the last but one of the second, for each place before them.
GraphReader::Value GraphReader::product_of_any(const Node& node) {
  const Value &first = required(node, 0), &second = required(node, 1);
  const Dimensions a = dimensions_of(node, first), b = dimensions_of(node, second);
  const std::size_t rank_a = a.extents.size(), rank_b = b.extents.size();
  if (rank_a == 0 || rank_b == 0) refuse(place(node), "a number as a factor", "matrices");
  constexpr int kSummed = 0, kRow = 1, kColumn = 2, kBefore = 3;  // labels
  std::vector<int> of_a(rank_a, kFree), of_b(rank_b, kFree);
  of_a[rank_a - 1] = of_b[rank_b - (rank_b > 1 ? 2 : 1)] = kSummed;
  if (rank_a > 1) of_a[rank_a - 2] = kRow;
  if (rank_b > 1) of_b[rank_b - 1] = kColumn;
  const std::size_t ahead_a = rank_a > 2 ? rank_a - 2 : 0, ahead_b = rank_b > 2 ? rank_b - 2 : 0;
  const std::size_t ahead = std::max(ahead_a, ahead_b);
  std::vector<int> kept;
  bool fits = a.batch != rank_a - 1 && b.batch != rank_b - (rank_b > 1 ? 2 : 1);
  for (std::size_t i = 0; i < ahead; ++i) {  // counted from the end
    const int label = kBefore + static_cast<int>(i);
    const bool in_a = i < ahead_a, in_b = i < ahead_b;
    const std::size_t at_a = in_a ? ahead_a - 1 - i : 0, at_b = in_b ? ahead_b - 1 - i : 0;
    const std::int64_t extent_a = in_a ? a.extents[at_a] : 1, extent_b = in_b ? b.extents[at_b] : 1;
    const bool batch_a = in_a && a.batch == at_a, batch_b = in_b && b.batch == at_b;
    fits = fits && (batch_a || batch_b ? extent_a == 1 && extent_b == 1
                                       : extent_a == extent_b || extent_a == 1 || extent_b == 1);
    if (in_a && (extent_a > 1 || batch_a || (extent_b == 1 && !batch_b))) of_a[at_a] = label;
    if (in_b && (extent_b > 1 || batch_b || (extent_a == 1 && !batch_a && !in_a))) of_b[at_b] = label;
    kept.insert(kept.begin(), label);
  }
  if (rank_a > 1) kept.push_back(kRow);
  if (rank_b > 1) kept.push_back(kColumn);
  const std::int64_t summed = a.extents[rank_a - 1];
  if (!fits || summed != b.extents[rank_b - (rank_b > 1 ? 2 : 1)]) {
    unsupported(node, "factors " + text_of(a) + " and " + text_of(b), "matrices of each sample that fit",
                a.batch && b.batch ? kInstead : "transpose one of them, so that features meet features");
  }
  return in_order(node, contracted(node, {first, of_a}, {second, of_b}, kept), kept);
}

// The product, its dimensions in this order.
GraphReader::Value GraphReader::in_order(const Node& node, const Labelled& product, const std::vector<int>& order) {
  if (product.labels == order) return product.value;
  const Dimensions x = dimensions_of(node, product.value);
  Indices axes;
  for (const int label : order) {
    const auto found = std::find(product.labels.begin(), product.labels.end(), label);
    if (found == product.labels.end())
      refuse(place(node), "a dimension of the result that no operand has", "one that one has");
    axes.push_back(static_cast<std::size_t>(found - product.labels.begin()));
  }
  std::optional<std::size_t> batch;
  if (x.batch) {
    const auto found = std::find(axes.begin(), axes.end(), *x.batch);
    if (found == axes.end()) unsupported(node, "a sum over the batch", "each sample for itself");
    batch = static_cast<std::size_t>(found - axes.begin());
  }
  return pictured(node, product.value, transposed(picture_of(node, x), axes), batch);
}

GraphReader::Labelled GraphReader::contracted(const Node& node, const Labelled& a, const Labelled& b,
                                              const std::vector<int>& kept) {
  if (std::holds_alternative<OnnxTensor>(a.value) && std::holds_alternative<Data>(b.value)) {
    return contracted(node, b, a, kept);
  }
  const Dimensions of_a = dimensions_of(node, a.value), of_b = dimensions_of(node, b.value);
  std::map<int, std::int64_t> extents;
  for (const auto& [labels, x] : {std::pair(&a.labels, &of_a), std::pair(&b.labels, &of_b)}) {
    for (std::size_t i = 0; i < labels->size(); ++i) {
      const auto [known, added] = extents.emplace((*labels)[i], x->extents[i]);
      if (!added && known->second != x->extents[i]) {
        unsupported(node, text_of(of_a) + " and " + text_of(of_b), "dimensions of one label that are alike", kInstead);
      }
    }
  }
  extents.erase(kFree);
  std::optional<int> batch;
  for (const auto& [labels, x] : {std::pair(&a.labels, &of_a), std::pair(&b.labels, &of_b)}) {
    if (!x->batch) continue;
    const int label = (*labels)[*x->batch];
    if ((batch && *batch != label) || !contains(kept, label) ||
        std::count(labels->begin(), labels->end(), label) != 1) {
      unsupported(node, text_of(of_a) + " and " + text_of(of_b), "the batch in one place, each sample for itself",
                  kInstead);
    }
    batch = label;
  }
  std::vector<int> both, rows, columns, summed, order;
  for (const auto& [label, extent] : extents) {
    const bool in_a = contains(a.labels, label), in_b = contains(b.labels, label);
    (!contains(kept, label) ? summed : in_a && in_b ? both : in_a ? rows : columns).push_back(label);
  }
  Dimensions result;
  for (const auto* labels : {&both, &rows, &columns}) {
    for (const int label : *labels) {
      if (batch == label) result.batch = order.size();
      order.push_back(label);
      result.extents.push_back(extents[label]);
    }
  }
  Extents all = result.extents;
  for (const int label : summed) all.push_back(extents[label]);
  const bool constants = std::holds_alternative<OnnxTensor>(a.value);
  const auto products = numbers_in(all, constants ? kMostProducts : kMostFeatures);
  if (!products || products == 0 || (constants && !numbers_in(result.extents, kMostProduced))) {
    unsupported(node, "a product of " + text_of(of_a) + " and " + text_of(of_b),
                constants ? "1 to 2^27 products of constants, summed to at most 2^24 numbers"
                          : "1 to 2^20 products of numbers");
  }
  builder_.work(*products / (constants ? 4 : 1), place(node));  // a selection takes as long as four products
  const auto places_of = [&](const std::vector<int>& labels, const Labelled& part, const Dimensions& x) {
    Extents within;
    for (const int label : labels) within.push_back(extents[label]);
    return along(labels, within, part.labels, strides_of(x.extents));
  };
  const Indices both_a = places_of(both, a, of_a), both_b = places_of(both, b, of_b), row = places_of(rows, a, of_a),
                column = places_of(columns, b, of_b), sum_a = places_of(summed, a, of_a),
                sum_b = places_of(summed, b, of_b);
  const std::size_t k = sum_a.size(), made = both_a.size() * row.size() * column.size();
  const auto* const numbers = std::get_if<OnnxTensor>(&b.value);
  if (constants) {
    const auto& factors = std::get<OnnxTensor>(a.value);
    require_fixed(node, factors);
    require_fixed(node, *numbers);
    OnnxTensor product{
        result.extents, {}, std::max(factors.type, numbers->type), false, factors.whole && numbers->whole};
    for (std::size_t e = 0; e < both_a.size(); ++e) {
      for (const std::size_t r : row) {
        for (const std::size_t c : column) {
          double total = 0;
          for (std::size_t i = 0; i < k; ++i) {
            total += factors.values[both_a[e] + r + sum_a[i]] * numbers->values[both_b[e] + c + sum_b[i]];
          }
          product.values.push_back(total);
        }
      }
    }
    check_computed(place(node), product, {});
    return {std::move(product), std::move(order)};
  }
  const Data x{std::get<Data>(a.value).step};
  if (numbers) {
    if (numbers->holds_batch) unsupported(node, "the size of the batch as a number", "fixed numbers");
    if (both_a.size() * row.size() > kMostVectors) {
      unsupported(node, "a product with " + std::to_string(both_a.size() * row.size()) + " vectors a sample",
                  "at most 1024");
    }
    std::vector<std::size_t> parts;
    for (std::size_t e = 0; e < both_a.size(); ++e) {
      OnnxTensor matrix{{static_cast<std::int64_t>(column.size()), static_cast<std::int64_t>(k)}, {}, numbers->type};
      for (const std::size_t c : column) {
        for (const std::size_t i : sum_b) matrix.values.push_back(numbers->values[both_b[e] + c + i]);
      }
      for (const std::size_t r : row) {
        Indices from;
        for (const std::size_t i : sum_a) from.push_back(both_a[e] + r + i);
        parts.push_back(builder_.append(dense(node, select(node, x, std::move(from)), matrix, true)));
      }
    }
    const std::size_t step = parts.size() == 1 ? parts[0] : builder_.operation(Concatenate{}, parts, place(node));
    return {with_dimensions(step, result), std::move(order)};
  }
  Indices from_a, from_b;  // the products of one sum after another, then all sums side by side
  for (std::size_t e = 0; e < both_a.size(); ++e) {
    for (const std::size_t r : row) {
      for (const std::size_t c : column) {
        for (std::size_t i = 0; i < k; ++i) {
          from_a.push_back(both_a[e] + r + sum_a[i]);
          from_b.push_back(both_b[e] + c + sum_b[i]);
        }
      }
    }
  }
  const std::size_t left = select(node, x, std::move(from_a)).step;
  const std::size_t right = select(node, {std::get<Data>(b.value).step}, std::move(from_b)).step;
  const std::size_t made_of = builder_.product(left, right, place(node));
  std::vector<Indices> groups(made, Indices(k));
  for (std::size_t g = 0; g < made; ++g) std::iota(groups[g].begin(), groups[g].end(), g * k);
  return {with_dimensions(reduced(node, made_of, groups, ReduceKind::sum).step, result), std::move(order)};
}

GraphReader::Value GraphReader::einsum(const Node& node) {
  const auto* given = attribute(node, "equation");
  std::string equation = given ? given->s() : "";
  equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
  const auto not_read = [&] {
    unsupported(node, "the equation \"" + equation + "\"", "letters for dimensions, such as \"bi,oi->bo\"",
                "write it with a letter for each dimension, or as matrix products");
  };
  std::vector<std::vector<int>> terms(1);
  std::optional<std::vector<int>> wanted;
  for (std::size_t i = 0; i < equation.size(); ++i) {
    const char c = equation[i];
    if (c == ',' && !wanted) {
      terms.emplace_back();
    } else if (equation.compare(i, 2, "->") == 0 && !wanted) {
      wanted.emplace();
      ++i;
    } else if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) {
      (wanted ? *wanted : terms.back()).push_back(c);
    } else {
      not_read();
    }
  }
  if (terms.size() != static_cast<std::size_t>(node.input_size())) not_read();
  if (!wanted) {  // the labels that are there once, in the order of the alphabet
    std::map<int, int> counts;
    for (const auto& term : terms) {
      for (const int label : term) ++counts[label];
    }
    wanted.emplace();
    for (const auto& [label, count] : counts) {
      if (count == 1) wanted->push_back(label);
    }
  }
  if (std::set<int>(wanted->begin(), wanted->end()).size() != wanted->size()) not_read();
  for (int i = 0; i < node.input_size(); ++i) {
    const Value& value = required(node, i);
    if (dimensions_of(node, value).extents.size() != terms[static_cast<std::size_t>(i)].size()) not_read();
  }
  Labelled product{required(node, 0), terms[0]};
  if (terms.size() == 1) product = contracted(node, product, {OnnxTensor{{}, {1}, WeightType::f16}, {}}, *wanted);
  for (std::size_t i = 1; i < terms.size(); ++i) {
    std::vector<int> kept = *wanted;
    for (std::size_t later = i + 1; later < terms.size(); ++later) {
      kept.insert(kept.end(), terms[later].begin(), terms[later].end());
    }
    product = contracted(node, product, {required(node, static_cast<int>(i)), terms[i]}, kept);
  }
  return in_order(node, product, *wanted);
}

}  // namespace lockstep::nn::detail
