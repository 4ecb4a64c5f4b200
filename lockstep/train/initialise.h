// Weights to start a training from: each a function of seed, layer and place alone, the same bits everywhere.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "lockstep/kernels/mlp/mlp.h"

namespace lockstep::train {

// Variances of the weights of a layer with i inputs and o outputs; `normal` is the whole normal distribution, not a
// truncated one, and `uniform` the interval around zero with that variance.
enum class Initialisation {
  zeros,
  glorot_uniform,  // 2 / (i + o): Glorot & Bengio, AISTATS 2010, eq. 16
  glorot_normal,
  he_uniform,  // 2 / i, for relu and its kin: He et al., ICCV 2015, eq. 10
  he_normal,
  lecun_uniform,  // 1 / i: LeCun, Bottou, Orr & Mueller, "Efficient BackProp", 1998, eq. 16
  lecun_normal,
  orthogonal,  // rows or columns, the fewer, orthonormal, by the Haar measure: Saxe et al., ICLR 2014
};

std::string_view to_string(Initialisation initialisation);
std::span<const std::string_view> initialisation_names();
// Throws Error (invalid_argument) that lists the names and suggests the nearest.
Initialisation parse_initialisation(const std::string& field, std::string_view name);

// Fills weights [output][input] of layer number `layer`. `weights` holds outputs * inputs numbers.
void initialise(std::span<double> weights, std::size_t outputs, std::size_t inputs, Initialisation initialisation,
                std::uint64_t seed, std::uint32_t layer);

// Every layer's weights; biases become zero, scaling stays.
void initialise(Mlp& mlp, Initialisation initialisation, std::uint64_t seed);

}  // namespace lockstep::train
