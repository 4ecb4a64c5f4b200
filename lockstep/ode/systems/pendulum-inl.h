// A driven, damped pendulum: angle'' = drive cos(omega t) - angle'/q - sin(angle), time in units of sqrt(l/g).
// Depends on time. No include guard: reach it through systems_hwy-inl.h (SIMD) or systems.h (scalar).

struct Pendulum {
  static constexpr int kComponents = 2;
  static constexpr int kParameters = 3;

  template <class L>
  static LOCKSTEP_LANE_FN void evaluate(typename L::V t, const typename L::V* u, const typename L::V* p,
                                        typename L::V* du) {
    const auto angle = u[0], rate = u[1];
    const auto q = p[0], drive = p[1], omega = p[2];
    const auto torque = L::mul(drive, lane_cos<L>(L::mul(omega, t)));
    du[0] = rate;
    du[1] = L::sub(L::sub(torque, L::div(rate, q)), lane_sin<L>(angle));
  }

  static SystemInfo info() {
    return {.name = "pendulum",
            .title = "pendulum, driven and damped",
            .source = "Baker & Gollub 1990, Chaotic Dynamics, 3.1; chaotic at q 2, drive 1.5, omega 2/3",
            .components = {"angle", "rate"},
            .parameters = {"q", "drive", "omega"},
            .default_parameters = {2, 1.5, 2.0 / 3},
            .default_initial_state = {0.2, 0},
            .default_end_time = 60,
            .reads_time = true};
  }
};
