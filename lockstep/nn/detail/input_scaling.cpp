#include "lockstep/nn/detail/input_scaling.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

namespace lockstep::nn::detail {

std::optional<InputScaling> as_input_scaling(std::vector<double> scale, const std::vector<double>& term,
                                             std::span<double> weights, std::span<double> bias) {
  if (std::ranges::all_of(term, [](double number) { return number == 0; })) return {};
  const std::size_t width = scale.size();
  std::vector<double> shift;
  for (std::size_t k = 0; k < width; ++k) shift.push_back(0 - term[k] * scale[k]);
  const auto held = [](double number) { return std::fabs(number) > 1e-30 && std::fabs(number) < 1e30; };
  const auto held_or_zero = [&](double number) { return number == 0 || held(number); };
  if (!std::ranges::all_of(scale, held) || !std::ranges::all_of(shift, held_or_zero)) return {};
  for (std::size_t k = 0; k < width; ++k) {
    const double rounded = static_cast<float>(shift[k]), left = (rounded - shift[k]) / scale[k];
    for (std::size_t j = 0; j < bias.size(); ++j) {
      double& weight = weights[j * width + k];
      bias[j] += weight * left;
      if (scale[k] < 0) weight = -weight;
    }
    shift[k] = rounded;
    scale[k] = std::fabs(scale[k]);
  }
  return InputScaling{std::move(shift), std::move(scale)};
}

}  // namespace lockstep::nn::detail
