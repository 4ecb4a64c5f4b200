#include "lockstep/nn/detail/keras_compositions.h"

#include <array>
#include <cstddef>
#include <utility>

#include "lockstep/nn/detail/composed.h"

namespace lockstep::nn::detail {
namespace {

class Composer {
 public:
  std::size_t add(Operation operation, std::vector<std::size_t> reads) {
    steps.push_back({std::move(operation), std::move(reads)});
    return steps.size() - 1;
  }
  std::size_t number(double value) { return add(Constant{{value}}, {}); }
  std::size_t unary(UnaryKind kind, std::size_t x) { return add(Unary{kind}, {x}); }
  std::size_t binary(BinaryKind kind, std::size_t a, std::size_t b) { return add(Binary{kind}, {a, b}); }
  std::size_t select(std::size_t condition, std::size_t a, std::size_t b) { return add(Select{}, {condition, a, b}); }
  std::size_t activate(const Activation& activation, std::size_t x) { return add(Activate{activation}, {x}); }
  KerasSteps steps;
};

constexpr std::size_t kX = kKerasInput;

}  // namespace

std::optional<KerasSteps> composed_activation(std::string_view name) {
  Composer c;
  if (name == "tanh_shrink") {
    c.binary(BinaryKind::subtract, kX, c.add(Activate{{ActivationKind::tanh}}, {kX}));
  } else if (name == "squareplus") {  // (x + sqrt(x^2 + 4)) / 2
    const std::size_t square = c.add(Activate{{ActivationKind::square}}, {kX});
    const std::size_t sum = c.binary(BinaryKind::add, square, c.number(4));
    const std::size_t root = c.add(Unary{UnaryKind::square_root}, {sum});
    c.binary(BinaryKind::multiply, c.binary(BinaryKind::add, kX, root), c.number(0.5));
  } else if (name == "sparse_plus") {  // 0 below -1, (x + 1)^2 / 4, x above 1: of the clipped x, and what is above 1
    const std::size_t inner = c.add(Clip{-1, 1}, {kX});
    const std::size_t half =
        c.binary(BinaryKind::multiply, c.binary(BinaryKind::add, inner, c.number(1)), c.number(0.5));
    const std::size_t square = c.add(Activate{{ActivationKind::square}}, {half});
    const std::size_t above = c.binary(BinaryKind::subtract, c.add(Clip{.minimum = 1}, {kX}), c.number(1));
    c.binary(BinaryKind::add, square, above);
  } else {
    return {};
  }
  return std::move(c.steps);
}

std::optional<KerasSteps> composed_operation(std::string_view class_name) {
  using Composition = std::size_t (*)(Composer&, const std::size_t&);
  static constexpr std::array<std::pair<std::string_view, Composition>, 11> kCompositions{{{"Tan", &tan_of},
                                                                                           {"Sinh", &sinh_of},
                                                                                           {"Cosh", &cosh_of},
                                                                                           {"Arcsin", &asin_of},
                                                                                           {"Arccos", &acos_of},
                                                                                           {"Arcsinh", &asinh_of},
                                                                                           {"Arccosh", &acosh_of},
                                                                                           {"Arctanh", &atanh_of},
                                                                                           {"Log1p", &log1p_of},
                                                                                           {"Ceil", &ceil_of},
                                                                                           {"Sign", &sign_of}}};
  Composer c;
  if (class_name == "Arctan2") {
    atan2_of(c, kX, kKerasSecondInput);
    return std::move(c.steps);
  }
  for (const auto& [name, composition] : kCompositions) {
    if (class_name != name) continue;
    composition(c, kX);
    return std::move(c.steps);
  }
  return {};
}

KerasSteps rms_normalisation(const std::vector<double>& scale, double epsilon) {
  Composer c;
  const std::size_t square = c.add(Activate{{ActivationKind::square}}, {kX});
  const std::size_t mean = c.add(Reduce{ReduceKind::mean}, {square});
  const std::size_t root = c.add(Unary{UnaryKind::square_root}, {c.binary(BinaryKind::add, mean, c.number(epsilon))});
  const std::size_t normal = c.binary(BinaryKind::divide, kX, root);
  c.add(Rescale{scale, std::vector<double>(scale.size(), 0.0)}, {normal});
  return std::move(c.steps);
}

KerasSteps unit_normalisation() {
  Composer c;
  const std::size_t square = c.add(Activate{{ActivationKind::square}}, {kX});
  const std::size_t norm = c.add(Unary{UnaryKind::square_root}, {c.add(Reduce{ReduceKind::sum}, {square})});
  const std::size_t inverse = c.add(Clip{.maximum = 1e12}, {c.add(Unary{UnaryKind::reciprocal}, {norm})});
  c.binary(BinaryKind::multiply, kX, inverse);
  return std::move(c.steps);
}

KerasSteps group_normalisation(const std::vector<double>& gamma, const std::vector<double>& beta, std::size_t groups,
                               double epsilon) {
  Composer c;
  const std::size_t size = gamma.size() / groups;
  std::vector<std::size_t> parts;
  for (std::size_t first = 0; first < gamma.size(); first += size) {
    const auto part = [&](const std::vector<double>& all) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first);
      return std::vector<double>(begin, begin + static_cast<std::ptrdiff_t>(size));
    };
    Columns columns;
    for (std::size_t i = 0; i < size; ++i) columns.indices.push_back(first + i);
    const std::size_t group = c.add(std::move(columns), {kX});
    parts.push_back(c.add(LayerNormalise{part(gamma), part(beta), epsilon}, {group}));
  }
  c.add(Concatenate{}, parts);
  return std::move(c.steps);
}

}  // namespace lockstep::nn::detail
