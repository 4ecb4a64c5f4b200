// A nerve cell's spikes: v' = v - v^3/3 - w + current, w' = (v + a - b w)/tau.
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct FitzhughNagumo {
  static constexpr int kComponents = 2;
  static constexpr int kParameters = 4;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* p, typename L::V* du) {
    const auto v = u[0], w = u[1];
    const auto a = p[0], b = p[1], tau = p[2], current = p[3];
    const auto third_v2 = L::div(L::mul(v, v), L::set(3));
    du[0] = L::add(L::sub(L::nfma(third_v2, v, v), w), current);
    du[1] = L::div(L::nfma(b, w, L::add(v, a)), tau);
  }

  static SystemInfo info() {
    return {.name = "fitzhugh_nagumo",
            .title = "FitzHugh-Nagumo",
            .source = "FitzHugh 1961, Biophys. J. 1, 445-466; Nagumo, Arimoto & Yoshizawa 1962",
            .components = {"v", "w"},
            .parameters = {"a", "b", "tau", "current"},
            .default_parameters = {0.7, 0.8, 12.5, 0.5},
            .default_initial_state = {-1, 1},
            .default_end_time = 100};
  }
};
