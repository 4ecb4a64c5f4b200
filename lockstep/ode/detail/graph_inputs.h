// What the input ports of a net as a right-hand side take, in their order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "lockstep/kernels/graph/graph.h"
#include "lockstep/kernels/tile.h"

namespace lockstep::ode::detail {

enum class GraphSource { state, parameters, time };

// A run of rows of the tile.
struct GraphPiece {
  GraphSource source;
  std::size_t first;
  std::size_t count;
};
using GraphPieces = std::vector<GraphPiece>;

// The ports' rows one after another; returns where they end.
template <class T>
T* gather_inputs(const GraphPieces& pieces, const double* t, const T* in, const T* parameters, T* row) {
  for (const GraphPiece& piece : pieces) {
    if (piece.source == GraphSource::time) {
      for (int lane = 0; lane < kTileLanes; ++lane) row[lane] = T(t[lane]);
      row += kTileLanes;
    } else {
      const T* from = piece.source == GraphSource::state ? in : parameters;
      row = std::copy_n(from + piece.first * kTileLanes, piece.count * kTileLanes, row);
    }
  }
  return row;
}

// Whether each input port takes one piece from the first row on: then its rows are read where they lie.
inline bool lie_in_place(const graph::Graph& graph, const GraphPieces& pieces) {
  const auto fills = [](const GraphPiece& piece, const graph::Port& port) {
    return piece.first == 0 && piece.count == port.width;
  };
  return std::ranges::equal(pieces, graph.inputs, fills);
}

// Such ports' rows, rows[port]; of time, which is float64, copied to `time`, [lane].
template <class T>
void place_inputs(const GraphPieces& pieces, const double* t, const T* in, const T* parameters, T* time,
                  const T** rows) {
  for (const GraphPiece& piece : pieces) {
    *rows++ = piece.source == GraphSource::state ? in : piece.source == GraphSource::parameters ? parameters : time;
    for (int lane = 0; piece.source == GraphSource::time && lane < kTileLanes; ++lane)
      time[lane] = static_cast<T>(t[lane]);
  }
}

}  // namespace lockstep::ode::detail
