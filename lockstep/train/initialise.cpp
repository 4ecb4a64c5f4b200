#include "lockstep/train/initialise.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "lockstep/core/names.h"
#include "lockstep/core/random.h"
#include "lockstep/core/standard_arithmetic.h"
#include "lockstep/train/sums.h"

namespace lockstep::train {
namespace {

constexpr std::array<std::string_view, 8> kNames{"zeros",     "glorot_uniform", "glorot_normal", "he_uniform",
                                                 "he_normal", "lecun_uniform",  "lecun_normal",  "orthogonal"};
// Of a seed's random numbers: ensembles take the streams from 0 on.
constexpr std::uint32_t kWeightStream = 0x77;

bool is_uniform(Initialisation initialisation) {
  return initialisation == Initialisation::glorot_uniform || initialisation == Initialisation::he_uniform ||
         initialisation == Initialisation::lecun_uniform;
}

double variance(Initialisation initialisation, double outputs, double inputs) {
  switch (initialisation) {
    case Initialisation::glorot_uniform:
    case Initialisation::glorot_normal:
      return 2 / (inputs + outputs);
    case Initialisation::he_uniform:
    case Initialisation::he_normal:
      return 2 / inputs;
    case Initialisation::lecun_uniform:
    case Initialisation::lecun_normal:
      return 1 / inputs;
    default:
      return 1;
  }
}

// Gram-Schmidt, each vector twice ("twice is enough", Giraud et al., 2005: orthogonal to rounding). Normal vectors
// made orthonormal this way are distributed by the Haar measure (Mezzadri, Notices AMS 54, 2007, 592): no sign is to
// be corrected, as the diagonal of R is positive.
void make_orthonormal(std::vector<std::vector<double>>& vectors) {
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    std::span<double> v = vectors[i];
    for (int pass = 0; pass < 2; ++pass) {
      for (std::size_t j = 0; j < i; ++j) {
        const std::span<const double> u = vectors[j];
        const double share = dot(u, v);
        for (std::size_t k = 0; k < v.size(); ++k) v[k] -= share * u[k];
      }
    }
    const double length = norm(v);
    for (double& x : v) x /= length;
  }
}

}  // namespace

std::span<const std::string_view> initialisation_names() { return kNames; }

std::string_view to_string(Initialisation initialisation) { return kNames[static_cast<std::size_t>(initialisation)]; }

Initialisation parse_initialisation(const std::string& field, std::string_view name) {
  const auto found = std::find(kNames.begin(), kNames.end(), name);
  if (found == kNames.end()) throw unknown_name(field, name, kNames);
  return static_cast<Initialisation>(found - kNames.begin());
}

void initialise(std::span<double> weights, std::size_t outputs, std::size_t inputs, Initialisation initialisation,
                std::uint64_t seed, std::uint32_t layer) {
  const Random random(seed, kWeightStream);
  const double deviation =
      std::sqrt(variance(initialisation, static_cast<double>(outputs), static_cast<double>(inputs)));
  const double half_width = std::sqrt(3.0) * deviation;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (initialisation == Initialisation::zeros) {
      weights[i] = 0;
    } else if (is_uniform(initialisation)) {
      weights[i] = half_width * (2 * random.uniform(i, layer) - 1);
    } else {
      weights[i] = deviation * random.normal(i, layer);
    }
  }
  if (initialisation != Initialisation::orthogonal) return;
  const bool rows = outputs <= inputs;
  std::vector<std::vector<double>> vectors(std::min(outputs, inputs), std::vector<double>(std::max(outputs, inputs)));
  const auto weight = [&](std::size_t vector, std::size_t element) -> double& {
    return rows ? weights[vector * inputs + element] : weights[element * inputs + vector];
  };
  for (std::size_t v = 0; v < vectors.size(); ++v) {
    for (std::size_t e = 0; e < vectors[v].size(); ++e) vectors[v][e] = weight(v, e);
  }
  make_orthonormal(vectors);
  for (std::size_t v = 0; v < vectors.size(); ++v) {
    for (std::size_t e = 0; e < vectors[v].size(); ++e) weight(v, e) = vectors[v][e];
  }
}

void initialise(Mlp& mlp, Initialisation initialisation, std::uint64_t seed) {
  const StandardArithmetic arithmetic;
  for (std::size_t i = 0; i < mlp.layers.size(); ++i) {
    DenseLayer& layer = mlp.layers[i];
    layer.weights.resize(layer.outputs * layer.inputs);
    initialise(layer.weights, layer.outputs, layer.inputs, initialisation, seed, static_cast<std::uint32_t>(i));
    layer.bias.assign(layer.outputs, 0);
  }
}

}  // namespace lockstep::train
