// Seven stars of masses 1 to 7 in the plane, attracting each other; components x1..x7, y1..y7, then their velocities.
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct Pleiades {
  static constexpr int kComponents = 28;
  static constexpr int kParameters = 0;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* /*p*/, typename L::V* du) {
    using V = typename L::V;
    using T = typename L::T;
    constexpr int n = 7;
    for (int i = 0; i < n; ++i) {
      du[i] = u[2 * n + i];
      du[n + i] = u[3 * n + i];
      du[2 * n + i] = L::zero();
      du[3 * n + i] = L::zero();
    }
    // Each pair once, i < j ascending: x_i'' = sum_j m_j (x_j - x_i) / r_ij^3.
    for (int i = 0; i < n; ++i) {
      for (int j = i + 1; j < n; ++j) {
        const V dx = L::sub(u[j], u[i]), dy = L::sub(u[n + j], u[n + i]);
        const V r2 = L::fma(dx, dx, L::mul(dy, dy));
        const V pull = L::div(L::set(1), L::mul(r2, L::sqrt(r2)));
        const V by_j = L::mul(L::set(T(j + 1)), pull), by_i = L::mul(L::set(T(i + 1)), pull);
        du[2 * n + i] = L::fma(by_j, dx, du[2 * n + i]);
        du[3 * n + i] = L::fma(by_j, dy, du[3 * n + i]);
        du[2 * n + j] = L::nfma(by_i, dx, du[2 * n + j]);
        du[3 * n + j] = L::nfma(by_i, dy, du[3 * n + j]);
      }
    }
  }

  static SystemInfo info() {
    return {.name = "pleiades",
            .title = "Pleiades",
            .source = "Hairer, Norsett & Wanner I, II.10 (10.3)",
            .components =
                [] {
                  std::vector<std::string> names;
                  for (const char* quantity : {"x", "y", "vx", "vy"}) {
                    for (int i = 1; i <= 7; ++i) names.push_back(std::string(quantity) + std::to_string(i));
                  }
                  return names;
                }(),
            .parameters = {},
            .default_parameters = {},
            .default_initial_state = {3, 3, -1, -3, 2, -2,   2,    3, -3, 2, 0,     0, -4, 4,
                                      0, 0, 0,  0,  0, 1.75, -1.5, 0, 0,  0, -1.25, 1, 0,  0},
            .default_end_time = 3};
  }
};
