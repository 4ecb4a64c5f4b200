// Predator and prey: x' = x (alpha - beta y), y' = y (delta x - gamma).
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct LotkaVolterra {
  static constexpr int kComponents = 2;
  static constexpr int kParameters = 4;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* p, typename L::V* du) {
    const auto x = u[0], y = u[1];
    const auto alpha = p[0], beta = p[1], gamma = p[2], delta = p[3];
    du[0] = L::mul(x, L::nfma(beta, y, alpha));
    du[1] = L::mul(y, L::fma(delta, x, L::neg(gamma)));
  }

  static SystemInfo info() {
    return {.name = "lotka_volterra",
            .title = "Lotka-Volterra",
            .source = "Lotka 1925, Volterra 1926; Hairer, Norsett & Wanner I, I.16 (16.1)",
            .components = {"prey", "predator"},
            .parameters = {"alpha", "beta", "gamma", "delta"},
            .default_parameters = {1.5, 1, 3, 1},
            .default_initial_state = {1, 1},
            .default_end_time = 10};
  }
};
