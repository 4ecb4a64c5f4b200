// x' = v, v' = -omega^2 x: u(t) is a rotation, known exactly.
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct HarmonicOscillator {
  static constexpr int kComponents = 2;
  static constexpr int kParameters = 1;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* p, typename L::V* du) {
    du[0] = u[1];
    du[1] = L::neg(L::mul(L::mul(p[0], p[0]), u[0]));
  }

  static SystemInfo info() {
    return {.name = "harmonic_oscillator",
            .title = "harmonic oscillator",
            .source = "x = x0 cos(omega t) + v0/omega sin(omega t)",
            .components = {"x", "v"},
            .parameters = {"omega"},
            .default_parameters = {1},
            .default_initial_state = {1, 0},
            .default_end_time = 10};
  }
};
