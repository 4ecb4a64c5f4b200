// A satellite of the Earth and Moon in their rotating frame (the restricted three-body problem), mu the Moon's mass.
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct Arenstorf {
  static constexpr int kComponents = 4;
  static constexpr int kParameters = 1;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* p, typename L::V* du) {
    using V = typename L::V;
    const V mu = p[0], rest = L::sub(L::set(1), mu);
    const V x = u[0], y = u[1];
    const V to_earth = L::add(x, mu), to_moon = L::sub(x, rest);
    const V y2 = L::mul(y, y);
    const V earth2 = L::fma(to_earth, to_earth, y2);
    const V moon2 = L::fma(to_moon, to_moon, y2);
    const V earth = L::div(rest, L::mul(earth2, L::sqrt(earth2)));
    const V moon = L::div(mu, L::mul(moon2, L::sqrt(moon2)));
    du[0] = u[2];
    du[1] = u[3];
    // x'' = x + 2 y' - earth (x + mu) - moon (x - mu'),  y'' = y - 2 x' - (earth + moon) y
    du[2] = L::nfma(moon, to_moon, L::nfma(earth, to_earth, L::fma(L::set(2), u[3], x)));
    du[3] = L::nfma(L::add(earth, moon), y, L::nfma(L::set(2), u[2], y));
  }

  static SystemInfo info() {
    return {.name = "arenstorf",
            .title = "Arenstorf orbit",
            .source = "Arenstorf 1963; Hairer, Norsett & Wanner I, II.0 (0.1), one period",
            .components = {"x", "y", "vx", "vy"},
            .parameters = {"mu"},
            .default_parameters = {0.012277471},
            .default_initial_state = {0.994, 0, 0, -2.00158510637908252240537862224},
            .default_end_time = 17.0652165601579625588917206249};
  }
};
