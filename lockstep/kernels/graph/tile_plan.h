// A graph lowered for integrators: it reads a tile's rows where they lie, and writes where they are wanted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "lockstep/kernels/cpu_target.h"
#include "lockstep/kernels/generated/lane_program.h"
#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/tile.h"

namespace lockstep {

// As GraphPlan, with its bits, for single tiles.
template <class T>
class GraphTilePlan {
 public:
  static constexpr std::size_t kMostInputs = 5;

  // Throws Error as GraphPlan::compile, and (unsupported) for more than kMostInputs input ports, or output ports other
  // than one.
  static GraphTilePlan compile(const graph::Graph& graph, CpuTarget target = best_cpu_target());

  std::size_t workspace_bytes() const;

  // Of each input port its rows, [feature][kTileLanes], as of TileView::in; `out` the output port's, overlapping none
  // of them.
  void evaluate(std::span<const T* const> in, T* out, int lanes, std::byte* workspace) const;

  // All that it computes, where code was generated for all of it, for integrators that make it a part of
  // their own: rows of input port i in array kFirstInput + i, those of the output port in kOutput. Else null.
  const LaneProgram* arithmetic() const;
  static constexpr std::uint8_t kOutput = 1, kFirstInput = 2;

  std::string description() const;

  struct Packed;

 private:
  explicit GraphTilePlan(std::shared_ptr<const Packed> packed) : packed_(std::move(packed)) {}
  std::shared_ptr<const Packed> packed_;
};

extern template class GraphTilePlan<float>;
extern template class GraphTilePlan<double>;

}  // namespace lockstep
