// A driven beam: x'' = gamma cos(omega t) - delta x' - alpha x - beta x^3. Depends on time.
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct Duffing {
  static constexpr int kComponents = 2;
  static constexpr int kParameters = 5;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(typename L::V t, const typename L::V* u, const typename L::V* p,
                                        typename L::V* du) {
    const auto x = u[0], v = u[1];
    const auto delta = p[0], alpha = p[1], beta = p[2], gamma = p[3], omega = p[4];
    const auto stiffness = L::fma(beta, L::mul(x, x), alpha);
    du[0] = v;
    du[1] = L::nfma(stiffness, x, L::nfma(delta, v, L::mul(gamma, lane_cos<L>(L::mul(omega, t)))));
  }

  static SystemInfo info() {
    return {.name = "duffing",
            .title = "Duffing oscillator, driven",
            .source = "Guckenheimer & Holmes 1983, Nonlinear Oscillations, 2.2; omega 1, chaotic from gamma 0.3 on",
            .components = {"x", "v"},
            .parameters = {"delta", "alpha", "beta", "gamma", "omega"},
            .default_parameters = {0.25, -1, 1, 0.3, 1},
            .default_initial_state = {1, 0},
            .default_end_time = 50,
            .reads_time = true};
  }
};
