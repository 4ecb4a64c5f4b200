// The oscillator of van der Pol: x' = v, v' = mu (1 - x^2) v - x. Stiff for large mu.
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct VanDerPol {
  static constexpr int kComponents = 2;
  static constexpr int kParameters = 1;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* p, typename L::V* du) {
    const auto x = u[0], v = u[1], mu = p[0];
    const auto damping = L::nfma(x, x, L::set(1));  // 1 - x^2
    du[0] = v;
    du[1] = L::fma(L::mul(mu, damping), v, L::neg(x));
  }

  static SystemInfo info() {
    return {.name = "van_der_pol",
            .title = "van der Pol oscillator",
            .source = "van der Pol 1926, Philos. Mag. 7(2), 978-992; Hairer, Norsett & Wanner I, I.16",
            .components = {"x", "v"},
            .parameters = {"mu"},
            .default_parameters = {1},
            .default_initial_state = {2, 0},
            .default_end_time = 20};
  }
};
