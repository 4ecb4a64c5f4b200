// Lorenz' model of convection: x' = sigma (y - x), y' = x (rho - z) - y, z' = x y - beta z.
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct Lorenz {
  static constexpr int kComponents = 3;
  static constexpr int kParameters = 3;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* p, typename L::V* du) {
    const auto x = u[0], y = u[1], z = u[2];
    const auto sigma = p[0], rho = p[1], beta = p[2];
    du[0] = L::mul(sigma, L::sub(y, x));
    du[1] = L::fms(x, L::sub(rho, z), y);
    du[2] = L::fms(x, y, L::mul(beta, z));
  }

  static SystemInfo info() {
    return {.name = "lorenz",
            .title = "Lorenz 1963",
            .source = "Lorenz 1963, J. Atmos. Sci. 20, 130-141, equations 25 to 27",
            .components = {"x", "y", "z"},
            .parameters = {"sigma", "rho", "beta"},
            .default_parameters = {10, 28, 8.0 / 3},
            .default_initial_state = {1, 1, 1},
            .default_end_time = 20};
  }
};
