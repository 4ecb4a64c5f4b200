// Roessler's attractor: x' = -y - z, y' = x + a y, z' = b + z (x - c).
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct Rossler {
  static constexpr int kComponents = 3;
  static constexpr int kParameters = 3;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* p, typename L::V* du) {
    const auto x = u[0], y = u[1], z = u[2];
    du[0] = L::neg(L::add(y, z));
    du[1] = L::fma(p[0], y, x);
    du[2] = L::fma(z, L::sub(x, p[2]), p[1]);
  }

  static SystemInfo info() {
    return {.name = "rossler",
            .title = "Roessler 1976",
            .source = "Roessler 1976, Phys. Lett. A 57, 397-398",
            .components = {"x", "y", "z"},
            .parameters = {"a", "b", "c"},
            .default_parameters = {0.2, 0.2, 5.7},
            .default_initial_state = {1, 1, 1},
            .default_end_time = 50};
  }
};
