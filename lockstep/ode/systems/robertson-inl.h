// Three reacting species whose rates span nine decades: stiff.
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct Robertson {
  static constexpr int kComponents = 3;
  static constexpr int kParameters = 3;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* p, typename L::V* du) {
    const auto slow = L::mul(p[0], u[0]);
    const auto back = L::mul(p[2], L::mul(u[1], u[2]));
    const auto fast = L::mul(p[1], L::mul(u[1], u[1]));
    du[0] = L::sub(back, slow);
    du[1] = L::sub(L::sub(slow, back), fast);
    du[2] = fast;
  }

  static SystemInfo info() {
    return {.name = "robertson",
            .title = "Robertson reaction",
            .source = "Robertson 1966; Hairer & Wanner II, IV.1 (1.4)",
            .components = {"a", "b", "c"},
            .parameters = {"k1", "k2", "k3"},
            .default_parameters = {0.04, 3e7, 1e4},
            .default_initial_state = {1, 0, 0},
            .default_end_time = 0.3};
  }
};
