// Compiled several times with other flags, LOCKSTEP_VARIANT naming each: plain loops over trajectories that a compiler
// vectorises as it likes. No C++ library here: an inline function compiled for AVX-512 might be the one the linker
// keeps.
#define LOCKSTEP_JOIN2(a, b) a##b
#define LOCKSTEP_JOIN(a, b) LOCKSTEP_JOIN2(a, b)

namespace {

constexpr int kBlock = 64;  // trajectories that advance together

template <class T>
void slope(const T u[3][kBlock], T sigma, T rho, T beta, T du[3][kBlock]) {
  for (int i = 0; i < kBlock; ++i) du[0][i] = sigma * (u[1][i] - u[0][i]);
  for (int i = 0; i < kBlock; ++i) du[1][i] = u[0][i] * (rho - u[2][i]) - u[1][i];
  for (int i = 0; i < kBlock; ++i) du[2][i] = u[0][i] * u[1][i] - beta * u[2][i];
}

template <class T>
void step(T u[3][kBlock], T h, T sigma, T rho, T beta) {
  T k1[3][kBlock], k2[3][kBlock], k3[3][kBlock], k4[3][kBlock], v[3][kBlock];
  slope(u, sigma, rho, beta, k1);
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < kBlock; ++i) v[c][i] = u[c][i] + h / 2 * k1[c][i];
  slope(v, sigma, rho, beta, k2);
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < kBlock; ++i) v[c][i] = u[c][i] + h / 2 * k2[c][i];
  slope(v, sigma, rho, beta, k3);
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < kBlock; ++i) v[c][i] = u[c][i] + h * k3[c][i];
  slope(v, sigma, rho, beta, k4);
  for (int c = 0; c < 3; ++c)
    for (int i = 0; i < kBlock; ++i) u[c][i] = u[c][i] + h / 6 * (k1[c][i] + 2 * k2[c][i] + 2 * k3[c][i] + k4[c][i]);
}

// initial [trajectory][3], parameters sigma rho beta, save_steps [points], states [trajectory][points][3].
template <class T>
void solve(const double* initial, long trajectories, const double* parameters, double dt, const long* save_steps,
           long points, double* states) {
  const T sigma = static_cast<T>(parameters[0]), rho = static_cast<T>(parameters[1]);
  const T beta = static_cast<T>(parameters[2]), h = static_cast<T>(dt);
  for (long first = 0; first < trajectories; first += kBlock) {
    const long count = trajectories - first < kBlock ? trajectories - first : kBlock;
    T u[3][kBlock] = {};
    for (long i = 0; i < count; ++i)
      for (int c = 0; c < 3; ++c) u[c][i] = static_cast<T>(initial[(first + i) * 3 + c]);
    long done = 0;
    for (long k = 0; k < points; ++k) {
      for (; done < save_steps[k]; ++done) step(u, h, sigma, rho, beta);
      for (long i = 0; i < count; ++i)
        for (int c = 0; c < 3; ++c) states[((first + i) * points + k) * 3 + c] = static_cast<double>(u[c][i]);
    }
  }
}

}  // namespace

extern "C" {
void LOCKSTEP_JOIN(compiled_f64_, LOCKSTEP_VARIANT)(const double* initial, long trajectories, const double* parameters,
                                                    double dt, const long* save_steps, long points, double* states) {
  solve<double>(initial, trajectories, parameters, dt, save_steps, points, states);
}
void LOCKSTEP_JOIN(compiled_f32_, LOCKSTEP_VARIANT)(const double* initial, long trajectories, const double* parameters,
                                                    double dt, const long* save_steps, long points, double* states) {
  solve<float>(initial, trajectories, parameters, dt, save_steps, points, states);
}
}
