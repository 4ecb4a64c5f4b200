// A star in a galaxy's potential: x'' = -x - 2 x y, y'' = -y - x^2 + y^2.
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct HenonHeiles {
  static constexpr int kComponents = 4;
  static constexpr int kParameters = 0;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* /*p*/, typename L::V* du) {
    const auto x = u[0], y = u[1];
    const auto two_x = L::add(x, x);
    du[0] = u[2];
    du[1] = u[3];
    du[2] = L::neg(L::fma(two_x, y, x));
    du[3] = L::fma(y, y, L::neg(L::fma(x, x, y)));
  }

  static SystemInfo info() {
    return {.name = "henon_heiles",
            .title = "Henon-Heiles",
            .source = "Henon & Heiles 1964, Astron. J. 69, 73-79, equations 9 and 11",
            .components = {"x", "y", "vx", "vy"},
            .parameters = {},
            .default_parameters = {},
            .default_initial_state = {0, 0.1, 0.5, 0},
            .default_end_time = 100};
  }
};
