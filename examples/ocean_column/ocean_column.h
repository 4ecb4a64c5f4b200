// The ocean that all hosts of this example advance, but for the closure: grid, initial state, one step, budget,
// checksum. float32 throughout; every host does the same operations in the same order, so that all give the same bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#ifdef __CUDACC__
#define OCEAN_CALL __host__ __device__ inline
#else
#define OCEAN_CALL inline
#endif

namespace ocean {

constexpr int kLevels = 32;
constexpr float kDepth = 10;       // m, of a level
constexpr float kTimeStep = 3600;  // s
constexpr float kExchange = kTimeStep / kDepth;
constexpr float kSpread = 0.002f;  // of a difference between horizontal neighbours, a step

// Longitudes x (periodic) by latitudes y (walls at both ends) by levels, the surface first: T[level][y][x], as ocean
// models keep it. Levels lie a little more than a power of two apart, as halos make them in a model.
struct Grid {
  int nx = 256, ny = 256;
  OCEAN_CALL std::ptrdiff_t columns() const { return std::ptrdiff_t(nx) * ny; }
  OCEAN_CALL std::ptrdiff_t level_stride() const { return columns() + 16; }
};
using Field = std::vector<float>;

// -1 at the southern wall, 1 at the northern one.
OCEAN_CALL float latitude(const Grid& grid, int y) { return float(2 * y + 1 - grid.ny) / float(grid.ny); }

// Kelvin a step that the sun gives to the first level, or the sky takes: 200 W/m2 at the equator, in all nothing.
OCEAN_CALL float surface_heating(const Grid& grid, int y) {
  const float s = latitude(grid, y);
  return kExchange * 5e-5f * (1 - 3 * s * s);
}

// Warm above, cold below, less so towards the poles, and a little uneven.
inline Field initial_state(const Grid& grid) {
  Field t(std::size_t(kLevels * grid.level_stride()));
  for (int k = 0; k < kLevels; ++k) {
    for (int y = 0; y < grid.ny; ++y) {
      const float s = latitude(grid, y), z = (float(k) + 0.5f) * (1 / 12.0f), surface = 26 * (1 - s * s);
      for (int x = 0; x < grid.nx; ++x) {
        const float uneven = float((7 * x + 13 * y + 5 * k) % 64) * (1 / 640.0f);
        t[std::size_t(k * grid.level_stride() + std::ptrdiff_t(y) * grid.nx + x)] = 2 + surface / (1 + z * z) + uneven;
      }
    }
  }
  return t;
}

// The cell's new temperature from fluxes through its faces: what leaves one cell enters its neighbour, in the same bits
// but for the sign, so that heat is conserved to the rounding of these sums.
OCEAN_CALL float advanced(float here, float west, float east, float south, float north, float above, float below,
                          float heating) {
  const float vertical = kExchange * (above - below) + heating;
  const float horizontal = kSpread * (((east - here) - (here - west)) + ((north - here) - (here - south)));
  return here + (vertical + horizontal);
}

// Row y of level k of the new state.
inline void advance_row(const Grid& grid, const float* t, const float* flux, int k, int y, float* next) {
  const int nx = grid.nx;
  const std::ptrdiff_t row = k * grid.level_stride() + std::ptrdiff_t(y) * nx;
  const float* here = t + row;
  const float* south = y > 0 ? here - nx : here;
  const float* north = y + 1 < grid.ny ? here + nx : here;
  const float* above = k > 0 ? flux + row - grid.level_stride() : nullptr;
  const float* below = k + 1 < kLevels ? flux + row : nullptr;
  const float heating = k == 0 ? surface_heating(grid, y) : 0;
  const auto cell = [&](int west, int x, int east) {
    next[row + x] = advanced(here[x], here[west], here[east], south[x], north[x], above ? above[x] : 0,
                             below ? below[x] : 0, heating);
  };
  cell(nx - 1, 0, nx > 1 ? 1 : 0);
  for (int x = 1; x < nx - 1; ++x) cell(x - 1, x, x + 1);
  if (nx > 1) cell(nx - 2, nx - 1, 0);
}

inline double heat(const Grid& grid, const Field& t) {
  double sum = 0;
  for (int k = 0; k < kLevels; ++k)
    for (std::ptrdiff_t c = 0; c < grid.columns(); ++c) sum += double(t[std::size_t(k * grid.level_stride() + c)]);
  return sum;
}
inline double heating_of_a_step(const Grid& grid) {
  double sum = 0;
  for (int y = 0; y < grid.ny; ++y) sum += double(surface_heating(grid, y)) * grid.nx;
  return sum;
}

inline std::uint64_t checksum(const Grid& grid, const Field& t) {
  std::uint64_t sum = 0;
  for (int k = 0; k < kLevels; ++k) {
    for (std::ptrdiff_t c = 0; c < grid.columns(); ++c) {
      std::uint32_t bits;
      std::memcpy(&bits, &t[std::size_t(k * grid.level_stride() + c)], sizeof bits);
      sum += bits * std::uint64_t((c + 31 * k) % 251 + 1);
    }
  }
  return sum;
}

}  // namespace ocean
