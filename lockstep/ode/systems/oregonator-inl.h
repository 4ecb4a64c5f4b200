// The Belousov-Zhabotinskii reaction: x' = s (y + x (1 - q x - y)), y' = (z - (1 + x) y)/s, z' = w (x - z). Stiff.
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct Oregonator {
  static constexpr int kComponents = 3;
  static constexpr int kParameters = 3;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* p, typename L::V* du) {
    const auto x = u[0], y = u[1], z = u[2];
    const auto s = p[0], q = p[1], w = p[2];
    const auto one = L::set(1);
    du[0] = L::mul(s, L::fma(x, L::sub(L::nfma(q, x, one), y), y));
    du[1] = L::div(L::nfma(L::add(one, x), y, z), s);
    du[2] = L::mul(w, L::sub(x, z));
  }

  static SystemInfo info() {
    return {.name = "oregonator",
            .title = "Oregonator",
            .source = "Field & Noyes 1974; Hairer & Wanner II, IV.10 (10.4)",
            .components = {"x", "y", "z"},
            .parameters = {"s", "q", "w"},
            .default_parameters = {77.27, 8.375e-6, 0.161},
            .default_initial_state = {1, 2, 3},
            .default_end_time = 360};
  }
};
