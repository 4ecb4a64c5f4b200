// A graph as the list of steps that a tile goes through, and the table of kernels they call.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lockstep/core/aligned_buffer.h"
#include "lockstep/kernels/generated/lane_code.h"
#include "lockstep/kernels/graph/detail/schedule.h"
#include "lockstep/kernels/graph/plan.h"
#include "lockstep/kernels/graph/tile_plan.h"
#include "lockstep/kernels/mlp/detail/packed.h"

namespace lockstep::graph {

// The samples that go through the whole net together: values lie in rows, [feature][lane]; or, of a few samples, as
// [sample][feature], for which a tile of stride 1 stands, whose rows are the first sample's numbers.
template <class T>
struct Tile {
  // Of rows: the tile's own; of a tile plan the output's, those of five inputs, and constants.
  std::array<T*, 8> bases;
  std::size_t stride;               // numbers between rows: as many lanes as a full tile has
  std::size_t registers;            // of lanes in use, one or two where there are layers
  std::size_t samples;              // in them; the lanes beyond hold numbers that nobody wants
  T* scratch;                       // for layers evaluated sample by sample
  std::size_t between_samples = 0;  // numbers, where features lie one after another
};

// What a step reads: rows of the tile, or numbers that are the same for all samples.
template <class T>
struct Operand {
  const T* constants = nullptr;  // null: rows
  std::size_t row = 0;
  std::size_t step = 1;  // 0 where one feature meets every one of the other operand
  std::uint8_t base = 0;
};

inline constexpr std::uint8_t kConstantBase = 7;  // in no generated code

template <class T>
T* rows_at(const Tile<T>& tile, std::uint8_t base, std::size_t row) {
  return tile.bases[base] + row * tile.stride;
}

template <class T>
struct Step {
  void (*run)(const Step&, const Tile<T>&) = nullptr;
  void (*by_sample)(const Step&, const Tile<T>&) = nullptr;  // where features lie one after another; null: in no way
  std::size_t width = 0;                                     // features read, or made where they are more
  std::size_t out = 0;                                       // row of the first feature made
  std::uint8_t out_base = 0;
  Operand<T> a, b, c;
  std::array<T, 3> numbers{};              // bounds and the like
  const T* first = nullptr;                // lists over the features
  const T* second = nullptr;               //
  const std::uint32_t* indices = nullptr;  // columns; masks; counts
  const mlp::Packed<T>* layer = nullptr;   // of one layer
  bool takes_tanh = false;                 // in full tiles: of the dense step before, which leaves it to this one
  bool leaves_tanh = false;                // to the dense step that follows
  mlp::ActivationPass<T> activation = nullptr;
  const LaneCode* code = nullptr;  // of what several steps of the schedule were
};

template <class T>
using StepFunction = void (*)(const Step<T>&, const Tile<T>&);

// Steps over samples whose features lie one after another, mlp::kMostLanes at most. Null for what is too rare to be
// worth its code: power, tables, the softmax's logarithm, derivatives.
template <class T>
struct SampleKernels {
  std::array<StepFunction<T>, kUnaryKinds> unary;
  std::array<StepFunction<T>, kBinaryKinds> binary;  // of rows and constants alike
  std::array<StepFunction<T>, 2> softmax;
  std::array<StepFunction<T>, 4> reduce;
  StepFunction<T> standardise, rescale, clip, dead_zone, layer_normalise, choose, select, columns;
  StepFunction<T> copy;  // rows of a, or its constants
  StepFunction<T> activate;
};

// What one instruction set offers for one precision.
template <class T>
struct Kernels {
  std::array<StepFunction<T>, kUnaryKinds> unary;                   // [UnaryKind]
  std::array<std::array<StepFunction<T>, 3>, kBinaryKinds> binary;  // [BinaryKind][rows both, constants second, first]
  // Rows of whole tiles, kTileLanes apart and in each: add to maximum; and add, subtract, multiply in pairs, c being
  // what the second reads beside the first's result, [first][second][result is the second's left, right operand].
  std::array<StepFunction<T>, 6> whole_rows;
  std::array<std::array<std::array<StepFunction<T>, 2>, 3>, 3> paired_rows;
  std::array<StepFunction<T>, 2> softmax;  // [SoftmaxKind]
  std::array<StepFunction<T>, 4> reduce;   // [ReduceKind]
  StepFunction<T> standardise;             // first: shift, second: scale
  StepFunction<T> rescale;                 // first: scale, second: shift
  StepFunction<T> clip;                    // numbers: minimum, maximum
  StepFunction<T> dead_zone;               // numbers: lower, upper, bias
  StepFunction<T> layer_normalise;         // first: scale, second: shift, numbers: epsilon
  StepFunction<T> interpolate;  // first: knots, second: coefficients, numbers: ends, indices: knots, padded, powers
  StepFunction<T> choose;       // indices: 1 for a, 0 for b
  StepFunction<T> select;       // a != 0 ? b : c
  StepFunction<T> columns;      // indices into a
  StepFunction<T> copy;         // rows of a
  StepFunction<T> fill;         // a: constants
  StepFunction<T> activate;     // numbers: alpha
  std::array<StepFunction<T>, 18> chain;  // [ActivationKind], a times the derivative at b, alpha
  SampleKernels<T> by_sample;             // null where a register is a number
};

// Defined in kernels_f32.cpp and kernels_f64.cpp.
template <class T>
const Kernels<T>& kernels_for(CpuTarget target);

template <class T>
struct Program {
  const mlp::Kernels<T>* kernels;
  CpuTarget target;
  std::vector<Port> inputs, outputs;
  std::vector<PortRows> loads;   // input ports that something reads
  std::vector<PortRows> stores;  // all output ports
  std::vector<Step<T>> steps;
  std::vector<std::size_t> step_nodes;  // whose operations they carry out; of plans that have their ports' rows
  std::size_t rows = 0;                 // of a tile
  std::size_t scratch = 0;              // numbers
  double cost = 0;                      // of one sample in numbers of fused multiply-adds, roughly
  std::array<mlp::Rest, mlp::kMostLanes> rest{};  // [samples], less than a strip; of plans that have their ports' rows
  std::size_t most_by_sample = 0;                 // of any rest
  std::size_t between_samples = 0;                // numbers
  bool whole_tiles = false;        // of a tile plan: what is no layer goes over kTileLanes lanes at a time
  AlignedBuffer<T> constant_rows;  // [row][kTileLanes], then
  std::string summary;
  // What the steps point into.
  std::vector<std::unique_ptr<mlp::Packed<T>>> layers;
  std::vector<std::vector<std::size_t>>
      layer_nodes;  // of each of them: the graph's dense nodes that are one layer here
  std::vector<AlignedBuffer<T>> numbers;
  std::vector<std::vector<std::uint32_t>> indices;
  std::vector<std::shared_ptr<const LaneCode>> codes;
  std::shared_ptr<const LaneProgram> arithmetic;  // of a tile plan that is one run of arithmetic: all of it

  // Numbers of a tile's rows or of the samples that go together without one; scratch follows them.
  std::size_t value_numbers() const { return std::max(rows * kernels->strip(), most_by_sample * between_samples); }
  std::size_t workspace_numbers() const { return value_numbers() + scratch; }
};

// Features of all of them.
inline std::size_t widths_of(const std::vector<Port>& ports) {
  std::size_t sum = 0;
  for (const Port& port : ports) sum += port.width;
  return sum;
}

// For people.
template <class T>
std::string description_of(const Program<T>& program);

// Chooses for every number of samples that fill no tile the way that counts as the cheapest, where all steps have both:
// the same bits either way.
template <class T>
void choose_rests(const Schedule& schedule, mlp::WidePipes pipes, Program<T>& program);

// Steps of a schedule from one on, at least one, that became machine code, or of which none is to be had.
struct GeneratedSteps {
  std::size_t count = 0;
  std::shared_ptr<const LaneCode> code = {};  // null: no code
  // Where they are all the steps: the program, which stores the output port.
  std::shared_ptr<const LaneProgram> all = {};
};
using GenerateSteps = GeneratedSteps (*)(const Graph& graph, const Schedule& schedule, std::size_t first,
                                         CpuTarget target);

// `generate`, where ports' rows lie with the caller: handed over so that programs without such plans carry no
// generator.
template <class T>
Program<T> lower(const Graph& graph, CpuTarget target, PortRowsLie lie = PortRowsLie::in_the_tile,
                 GenerateSteps generate = nullptr);

}  // namespace lockstep::graph

namespace lockstep {
template <class T>
struct GraphPlan<T>::Packed : graph::Program<T> {};
template <class T>
struct GraphTilePlan<T>::Packed : graph::Program<T> {};
}  // namespace lockstep
