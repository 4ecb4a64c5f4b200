// One body about a fixed centre: q' = v, v' = -gm q / |q|^3.
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct Kepler {
  static constexpr int kComponents = 4;
  static constexpr int kParameters = 1;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* p, typename L::V* du) {
    const auto x = u[0], y = u[1];
    const auto r2 = L::fma(x, x, L::mul(y, y));
    const auto pull = L::neg(L::div(p[0], L::mul(r2, L::sqrt(r2))));
    du[0] = u[2];
    du[1] = u[3];
    du[2] = L::mul(pull, x);
    du[3] = L::mul(pull, y);
  }

  static SystemInfo info() {
    return {.name = "kepler",
            .title = "Kepler problem in the plane",
            .source =
                "Hairer, Lubich & Wanner 2006, Geometric Numerical Integration, I.2; eccentricity 1/2, one revolution",
            .components = {"x", "y", "vx", "vy"},
            .parameters = {"gm"},
            .default_parameters = {1},
            .default_initial_state = {0.5, 0, 0, 1.7320508075688772},
            .default_end_time = 6.283185307179586};
  }
};
