// A chemical oscillator: x' = a + x^2 y - (b + 1) x, y' = b x - x^2 y.
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct Brusselator {
  static constexpr int kComponents = 2;
  static constexpr int kParameters = 2;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* p, typename L::V* du) {
    const auto x = u[0], y = u[1];
    const auto x2y = L::mul(L::mul(x, x), y);
    const auto bx = L::mul(p[1], x);
    du[0] = L::sub(L::add(p[0], x2y), L::add(bx, x));
    du[1] = L::sub(bx, x2y);
  }

  static SystemInfo info() {
    return {.name = "brusselator",
            .title = "Brusselator",
            .source = "Lefever & Nicolis 1971; Hairer, Norsett & Wanner I, I.16 (16.12), II.0",
            .components = {"x", "y"},
            .parameters = {"a", "b"},
            .default_parameters = {1, 3},
            .default_initial_state = {1.5, 3},
            .default_end_time = 20};
  }
};
