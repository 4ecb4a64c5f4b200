// The ocean of ocean_column.cpp on a GPU. The closure is a header (`lockstep export --cuda-header`) inside the host's
// own kernel, or, where a MODEL is named, the library's, queued on the host's stream. Where there is no card, or no
// nvcc, the header's functions run on the CPU, to the same bits. usage: ocean_column_cuda LONGITUDES LATITUDES STEPS
// [MODEL]
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "closure.cuh"
#include "examples/ocean_column/ocean_column.h"
#ifdef __CUDACC__
#include <functional>

#include "lockstep/kernels/cuda/device_plan.h"
#include "lockstep/nn/load.h"
#endif

using ocean::Field;
using ocean::Grid;
using ocean::kLevels;

#ifdef __CUDACC__

constexpr int kColumns = 64;  // of a block; its threads share them and their hidden values

// Each block reads the temperatures of its columns and writes their fluxes, where the model keeps them.
__global__ void close_columns(Grid grid, const float* t, float* flux) {
  extern __shared__ float scratch[];
  const std::ptrdiff_t first = std::ptrdiff_t(kColumns) * blockIdx.x, left = grid.columns() - first;
  const std::ptrdiff_t stride = grid.level_stride();
  closure_evaluate_group(closure_thread_block(), left < kColumns ? int(left) : kColumns, t + first, 1, stride,
                         flux + first, 1, stride, scratch);
}

// A thread a cell; the blocks of one level follow those of the level above.
__global__ void advance(Grid grid, const float* t, const float* flux, float* next) {
  const std::ptrdiff_t c = std::ptrdiff_t(blockDim.x) * blockIdx.x + threadIdx.x;
  if (c >= grid.columns()) return;
  const int k = blockIdx.y, x = int(c % grid.nx), y = int(c / grid.nx);
  const std::ptrdiff_t stride = grid.level_stride(), row = c - x;
  const float* level = t + k * stride;
  next[k * stride + c] = ocean::advanced(
      level[c], level[row + (x > 0 ? x - 1 : grid.nx - 1)], level[row + (x + 1 < grid.nx ? x + 1 : 0)],
      level[y > 0 ? c - grid.nx : c], level[y + 1 < grid.ny ? c + grid.nx : c], k > 0 ? flux[(k - 1) * stride + c] : 0,
      k + 1 < kLevels ? flux[k * stride + c] : 0, k == 0 ? ocean::surface_heating(grid, y) : 0);
}

static void check(cudaError_t status, const char* what) {
  if (status == cudaSuccess) return;
  std::fprintf(stderr, "ocean_column_cuda: %s: %s\n", what, cudaGetErrorString(status));
  std::exit(1);
}

using Closure = std::function<void(const float* t, float* flux, cudaStream_t stream)>;

// By our own kernel with the header in it.
static Closure closure_of_header(const Grid& grid) {
  const int scratch = closure_scratch(kColumns) * int(sizeof(float));
  check(cudaFuncSetAttribute(close_columns, cudaFuncAttributeMaxDynamicSharedMemorySize, scratch),
        "asking for shared memory");
  return [=](const float* t, float* flux, cudaStream_t stream) {
    const unsigned tiles = unsigned((grid.columns() + kColumns - 1) / kColumns);
    close_columns<<<tiles, 256, scratch, stream>>>(grid, t, flux);
    check(cudaGetLastError(), "launching the closure");
  };
}

// By the library, on views of the model's own arrays.
static Closure closure_of_library(const Grid& grid, const char* model) {
  using lockstep::MatrixView;
  const auto plan = lockstep::cuda::DevicePlan<float>::compile(lockstep::nn::to_mlp(lockstep::nn::load(model)));
  std::printf("%s\n", plan.description().c_str());
  return [=](const float* t, float* flux, cudaStream_t stream) {
    const auto columns = std::size_t(grid.columns());
    plan.enqueue(stream, MatrixView<const float>{t, columns, kLevels, 1, grid.level_stride()},
                 MatrixView<float>{flux, columns, kLevels - 1, 1, grid.level_stride()});
  };
}

static void step(const Grid& grid, const Closure& closure, const float* t, float* flux, float* next,
                 cudaStream_t stream) {
  closure(t, flux, stream);
  advance<<<dim3(unsigned((grid.columns() + 255) / 256), kLevels), 256, 0, stream>>>(grid, t, flux, next);
  check(cudaGetLastError(), "launching a step");
}

static bool run_on_card(const Grid& grid, Field& state, int steps, const char* model) {
  int cards = 0;
  if (cudaGetDeviceCount(&cards) != cudaSuccess || cards == 0) return false;
  const std::size_t bytes = state.size() * sizeof(float);
  float *t, *flux, *next;
  check(cudaMalloc(&t, bytes), "memory for the state");
  check(cudaMalloc(&next, bytes), "memory for the new state");
  check(cudaMalloc(&flux, bytes), "memory for the fluxes");
  check(cudaMemcpy(t, state.data(), bytes, cudaMemcpyHostToDevice), "copying the state");
  const Closure closure = model != nullptr ? closure_of_library(grid, model) : closure_of_header(grid);
  cudaStream_t stream;
  cudaEvent_t begin, end;
  check(cudaStreamCreate(&stream), "a stream");
  check(cudaEventCreate(&begin), "an event");
  check(cudaEventCreate(&end), "an event");
  // A kernel is loaded when it is first asked for, which a graph that is being captured does not allow.
  cudaFuncAttributes loaded;
  check(cudaFuncGetAttributes(&loaded, close_columns), "loading a kernel");
  check(cudaFuncGetAttributes(&loaded, advance), "loading a kernel");
  // There and back again is one graph.
  cudaGraph_t graph;
  cudaGraphExec_t two_steps;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "capturing");
  step(grid, closure, t, flux, next, stream);
  step(grid, closure, next, flux, t, stream);
  check(cudaStreamEndCapture(stream, &graph), "capturing");
  check(cudaGraphInstantiateWithFlags(&two_steps, graph, 0), "a graph");
  check(cudaEventRecord(begin, stream), "timing");
  for (int i = 0; i + 1 < steps; i += 2) check(cudaGraphLaunch(two_steps, stream), "launching two steps");
  if (steps % 2 != 0) step(grid, closure, t, flux, next, stream);
  check(cudaEventRecord(end, stream), "timing");
  check(cudaMemcpyAsync(state.data(), steps % 2 != 0 ? next : t, bytes, cudaMemcpyDeviceToHost, stream),
        "copying back");
  check(cudaStreamSynchronize(stream), "running");
  float milliseconds = 0;
  check(cudaEventElapsedTime(&milliseconds, begin, end), "timing");
  if (steps > 0) std::printf("on the card: %.3f ms a step\n", double(milliseconds) / steps);
  cudaGraphExecDestroy(two_steps);
  cudaGraphDestroy(graph);
  cudaStreamDestroy(stream);
  for (float* array : {t, next, flux}) cudaFree(array);
  return true;
}

#else

static bool run_on_card(const Grid&, Field&, int, const char*) { return false; }

#endif

static void run_on_host(const Grid& grid, Field& t, int steps) {
  Field flux(t.size()), next(t.size());
  for (int i = 0; i < steps; ++i) {
    for (std::ptrdiff_t c = 0; c < grid.columns(); ++c) {
      closure_evaluate(t.data() + c, grid.level_stride(), flux.data() + c, grid.level_stride());
    }
    for (int k = 0; k < kLevels; ++k) {
      for (int y = 0; y < grid.ny; ++y) ocean::advance_row(grid, t.data(), flux.data(), k, y, next.data());
    }
    t.swap(next);
  }
}

static int run(int argc, char** argv) {
  if (argc < 4 || argc > 5 || std::atoi(argv[1]) < 1 || std::atoi(argv[2]) < 1 || std::atoi(argv[3]) < 0) {
    std::fprintf(stderr, "usage: ocean_column_cuda LONGITUDES LATITUDES STEPS [MODEL]\n");
    return 2;
  }
  const Grid grid{std::atoi(argv[1]), std::atoi(argv[2])};
  const int steps = std::atoi(argv[3]);
  Field t = ocean::initial_state(grid);
  const double before = ocean::heat(grid, t);
  if (!run_on_card(grid, t, steps, argc > 4 ? argv[4] : nullptr)) {
    std::printf("no card: the same functions on the CPU\n");
    run_on_host(grid, t, steps);
  }
  const double expected = before + steps * ocean::heating_of_a_step(grid);
  std::printf("%d x %d columns, %d levels, %d steps: heat is %.1e of itself from its budget\n", grid.nx, grid.ny,
              kLevels, steps, std::fabs(ocean::heat(grid, t) - expected) / before);
  std::printf("checksum %" PRIu64 "\n", ocean::checksum(grid, t));
  return 0;
}

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ocean_column_cuda: %s\n", error.what());
    return 2;
  }
}
