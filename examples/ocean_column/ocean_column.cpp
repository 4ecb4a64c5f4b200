// A three-dimensional ocean whose vertical mixing is a net, evaluated in place on the model's own array at every step.
//   ocean_column closure.safetensors --columns 256 256 --steps 240 --timing
//   ocean_column closure.safetensors --columns 64 128 --steps 720 --draw ocean.png
#include <omp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "benchmarks/fma_peak.h"
#include "examples/ocean_column/ocean_column.h"
#include "lockstep/cli/plot/gnuplot.h"
#include "lockstep/nn/compile.h"
#include "lockstep/nn/load.h"

namespace {

using namespace lockstep;
using ocean::Field;
using ocean::Grid;
using ocean::kLevels;

struct Arguments {
  std::string model = "examples/ocean_column/closure.safetensors", draw;
  std::vector<int> columns = {256, 256};
  int steps = 24, threads = 1;
  bool timing = false;
};

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Times {
  double closure = 0, step = 0;                // s, all steps
  double closure_best = 1e9, step_best = 1e9;  // s, the shortest
};

// One step. The closure reads the 32 temperatures of each column and writes its 31 fluxes where the model keeps them.
void step(const Grid& grid, const Plan<float>& closure, const Field& t, Field& flux, Field& next, int threads,
          Times& times) {
  const double start = seconds();
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int y = 0; y < grid.ny; ++y) {
    const std::ptrdiff_t row = std::ptrdiff_t(y) * grid.nx;
    const auto columns = static_cast<std::size_t>(grid.nx);
    closure.evaluate(MatrixView<const float>{t.data() + row, columns, kLevels, 1, grid.level_stride()},
                     MatrixView<float>{flux.data() + row, columns, kLevels - 1, 1, grid.level_stride()});
  }
  const double closed = seconds();
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int y = 0; y < grid.ny; ++y) {
    for (int k = 0; k < kLevels; ++k) ocean::advance_row(grid, t.data(), flux.data(), k, y, next.data());
  }
  const double end = seconds();
  times.closure += closed - start;
  times.step += end - start;
  times.closure_best = std::min(times.closure_best, closed - start);
  times.step_best = std::min(times.step_best, end - start);
}

// A section from wall to wall, every latitude by every level.
std::string section(const Grid& grid, const Field& t, const char* name) {
  std::string rows = std::string("$") + name + " << EOD\n";
  for (int k = 0; k < kLevels; ++k) {
    for (int y = 0; y < grid.ny; ++y) {
      char line[80];
      std::snprintf(
          line, sizeof line, "%.4f %.1f %.4f\n", 60 * static_cast<double>(ocean::latitude(grid, y)),
          (k + 0.5) * static_cast<double>(ocean::kDepth),
          static_cast<double>(t[std::size_t(k * grid.level_stride() + std::ptrdiff_t(y) * grid.nx + grid.nx / 2)]));
      rows += line;
    }
    rows += "\n";
  }
  return rows + "EOD\n";
}

void draw(const Grid& grid, const Field& before, const Field& after, int steps, const std::string& path) {
  char days[40];
  std::snprintf(days, sizeof days, "after %.0f days", steps * static_cast<double>(ocean::kTimeStep) / 86400);
  const std::string script =
      section(grid, before, "before") + section(grid, after, "after") +
      "set multiplot layout 1,2\nset yrange [320:0]\nset xrange [-60:60]\nset cbrange [0:32]\nunset key\n"
      "set xlabel 'latitude (degrees)'\nset ylabel 'depth (m)'\nset cblabel 'temperature (degC)'\nset xtics 30\n"
      "set palette defined (0 '#0b3c5d', 0.35 '#328cc1', 0.6 '#d9e5d6', 0.8 '#f2b134', 1 '#c0392b')\n"
      "set title 'at the start'\nplot $before using 1:2:3 with image\n"
      "set title " +
      cli::gnuplot_text(days) + "\nplot $after using 1:2:3 with image\nunset multiplot\n";
  cli::draw(script, path, path.ends_with(".svg") ? cli::PictureFormat::svg : cli::PictureFormat::png, {1800, 700});
  std::printf("drew %s\n", path.c_str());
}

int run(const Arguments& arguments) {
  const Grid grid{arguments.columns[0], arguments.columns[1]};
  const auto closure = nn::compile<float>(nn::load(arguments.model));
  if (closure.inputs() != kLevels || closure.outputs() != kLevels - 1) {
    std::fprintf(stderr, "ocean_column: the closure takes %zu temperatures and gives %zu fluxes, not 32 and 31\n",
                 closure.inputs(), closure.outputs());
    return 2;
  }
  const Field start = ocean::initial_state(grid);
  Field t = start, next = start, flux(start.size());
  const double before = ocean::heat(grid, t);
  Times times;
  for (int i = 0; i < arguments.steps; ++i) {
    step(grid, closure, t, flux, next, arguments.threads, times);
    std::swap(t, next);
  }
  // Each step rounds a cell three times, by at most 2^-24 of less than 64 K: a bound that chance never comes near.
  const double expected = before + arguments.steps * ocean::heating_of_a_step(grid);
  const double error = std::fabs(ocean::heat(grid, t) - expected) / before;
  const double bound = 3 * 0x1p-24 * 64 * arguments.steps * kLevels * static_cast<double>(grid.columns()) / before;
  std::printf("%d x %d columns, %d levels, %d steps: heat is %.1e of itself from its budget\n", grid.nx, grid.ny,
              kLevels, arguments.steps, error);
  std::printf("checksum %" PRIu64 "\n", ocean::checksum(grid, t));
  if (arguments.timing && arguments.steps > 0) {
    const double columns = static_cast<double>(grid.columns());
    const double operations = 2.0 * (32 * 128 + 128 * 128 + 128 * 31) * columns;
    const double peak = arguments.threads * benchmarks::fma_peak(Precision::f32, closure.cpu_target());
    std::printf(
        "shortest step %.1f ms, %.0f ns a column; the closure's share %.0f %%: %.0f ns, %.0f %% of the FMA peak\n",
        times.step_best * 1e3, times.step_best / columns * 1e9, 100 * times.closure_best / times.step_best,
        times.closure_best / columns * 1e9, 100 * operations / times.closure_best / 1e9 / peak);
    std::printf("all steps %.2f s, the closure's share %.0f %%\n", times.step, 100 * times.closure / times.step);
  }
  if (!arguments.draw.empty()) draw(grid, start, t, arguments.steps, arguments.draw);
  if (error <= bound) return 0;
  std::fprintf(stderr, "ocean_column: the heat budget is off by more than rounding explains\n");
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  Arguments arguments;
  CLI::App app("An ocean whose vertical mixing is a net, evaluated in place.", "ocean_column");
  app.add_option("MODEL", arguments.model, "a net of 32 temperatures and 31 fluxes")->capture_default_str();
  app.add_option("--columns", arguments.columns, "longitudes and latitudes")
      ->expected(2)
      ->check(CLI::Range(1, 8192))
      ->capture_default_str();
  app.add_option("--steps", arguments.steps, "hours")->check(CLI::Range(0, 1000000))->capture_default_str();
  app.add_option("--threads", arguments.threads, "the same bits for any number")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app.add_flag("--timing", arguments.timing, "print what a step costs, and the closure's share of the FMA peak");
  app.add_option("--draw", arguments.draw, "picture of the section before and after (.png or .svg)");
  CLI11_PARSE(app, argc, argv);
  try {
    return run(arguments);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ocean_column: %s\n", error.what());
    return 2;
  }
}
