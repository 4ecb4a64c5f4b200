// A ring of weather: u_i' = (u_i+1 - u_i-2) u_i-1 - u_i + forcing.
// No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct Lorenz96 {
  static constexpr int kComponents = 40;
  static constexpr int kParameters = 1;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(const typename L::V* u, const typename L::V* p, typename L::V* du) {
    constexpr int n = kComponents;
    const auto site = [&](int before_that, int before, int i, int next) {
      du[i] = L::fma(L::sub(u[next], u[before_that]), u[before], L::sub(p[0], u[i]));
    };
    site(n - 2, n - 1, 0, 1);
    site(n - 1, 0, 1, 2);
    for (int i = 2; i < n - 1; ++i) site(i - 2, i - 1, i, i + 1);
    site(n - 3, n - 2, n - 1, 0);
  }

  static SystemInfo info() {
    return {
        .name = "lorenz96",
        .title = "Lorenz 1996, 40 sites",
        .source =
            "Lorenz 1996, Predictability: a problem partly solved, equation 1, J = 40; state: Lorenz & Emanuel 1998",
        .components =
            [] {
              std::vector<std::string> names;
              for (int i = 1; i <= kComponents; ++i) names.push_back(std::string("u") + std::to_string(i));
              return names;
            }(),
        .parameters = {"forcing"},
        .default_parameters = {8},
        .default_initial_state =
            [] {
              std::vector<double> state(kComponents, 8.0);
              state[19] = 8.01;
              return state;
            }(),
        .default_end_time = 10};
  }
};
