// Tiles of random numbers, and the claim every tile function must meet. For tests.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/kernels/mlp/mlp.h"
#include "lockstep/ode/state_function.h"

namespace lockstep::ode {

// A tile of random numbers and its outputs.
template <class T>
struct Tile {
  AlignedBuffer<double> t{kTileLanes};
  AlignedBuffer<T> in, parameters, out;

  explicit Tile(const StateFunction& f, unsigned seed = 7)
      : in(f.components() * kTileLanes), parameters(f.parameters() * kTileLanes), out(f.outputs() * kTileLanes) {
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> number(-3, 3);
    for (double& x : t.span()) x = number(random);
    for (T& x : in.span()) x = T(number(random));
    for (T& x : parameters.span()) x = T(number(random));
  }

  void evaluate(const StateFunction& f, CpuTarget target, int lanes = kTileLanes) {
    const auto lowered = lower<T>(f, target);
    AlignedBuffer<std::byte> workspace(lowered->workspace_bytes());
    for (T& x : out.span()) x = T(-77);
    lowered->evaluate({t.data(), in.data(), parameters.empty() ? nullptr : parameters.data(), out.data(), lanes},
                      workspace.data());
  }
  T output(std::size_t row, int lane) const { return out[row * kTileLanes + std::size_t(lane)]; }
};

template <class T>
bool same_bits(T a, T b) {
  return std::memcmp(&a, &b, sizeof(T)) == 0;
}

// Every target, number of lanes and place must give what one trajectory alone gets from the scalar target.
template <class T>
void expect_same_bits_everywhere(const StateFunction& f) {
  const Tile<T> inputs(f);
  for (const CpuTarget target : available_cpu_targets()) {
    for (const int lanes : {1, 5, 31, 32}) {
      Tile<T> tile(f);
      tile.evaluate(f, target, lanes);
      for (int lane = 0; lane < lanes; ++lane) {
        Tile<T> alone(f, 99);
        alone.t[0] = inputs.t[std::size_t(lane)];
        const auto copy = [lane](const AlignedBuffer<T>& from, AlignedBuffer<T>& to) {
          for (std::size_t i = 0; i < from.size(); i += kTileLanes) to[i] = from[i + std::size_t(lane)];
        };
        copy(inputs.in, alone.in);
        copy(inputs.parameters, alone.parameters);
        alone.evaluate(f, CpuTarget::scalar, 1);
        for (std::size_t row = 0; row < f.outputs(); ++row) {
          ASSERT_TRUE(same_bits(tile.output(row, lane), alone.output(row, 0)))
              << to_string(target) << " lane " << lane << " of " << lanes << " row " << row << ": "
              << tile.output(row, lane) << " not " << alone.output(row, 0);
        }
      }
    }
  }
}

// inputs-5-outputs with tanh, numbers from a fixed generator.
inline Mlp small_net(std::size_t inputs, std::size_t outputs) {
  std::mt19937 random(3);
  std::uniform_real_distribution<float> number(-1, 1);
  Mlp mlp;
  const auto add = [&](std::size_t in, std::size_t out, ActivationKind kind) {
    DenseLayer layer{in, out, std::vector<double>(in * out), std::vector<double>(out), {kind}};
    for (double& w : layer.weights) w = number(random);
    for (double& b : layer.bias) b = number(random);
    mlp.layers.push_back(layer);
  };
  add(inputs, 5, ActivationKind::tanh);
  add(5, outputs, ActivationKind::identity);
  return mlp;
}

}  // namespace lockstep::ode
