// Published end values and other programs' references, in float64 at tight tolerances and in float32 at its own.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/nn/model.h"
#include "lockstep/nn/safetensors.h"
#include "lockstep/ode/function.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"
#include "reference.h"

namespace lockstep {
namespace {

using validation::all_states;
using validation::largest_difference;
using validation::Reference;
using validation::tight;

const std::string kData = LOCKSTEP_TEST_DATA "/";

ode::Problem default_problem(const std::string& name) {
  const ode::SystemInfo& info = ode::system_info(name);
  return {.rhs = ode::system(name),
          .initial_states = info.default_initial_state,
          .parameters = info.default_parameters,
          .end_times = {info.default_end_time}};
}

// Mazzia & Magherini, Test Set for Initial Value Problem Solvers, release 2.4, problem PLEI: x and y, then the
// velocities, at t = 3. Close encounters on the way magnify errors.
TEST(ReferenceValues, pleiades) {
  const std::vector<double> reference{
      0.3706139143970502,  3.237284092057233,   -3.222559032418324,  0.6597091455775310, 0.3425581707156584,
      1.562172101400631,   -0.7003092922212495, -3.943437585517392,  -3.271380973972550, 5.225081843456543,
      -2.590612434977470,  1.198213693392275,   -0.2429682344935824, 1.091449240428980,  3.417003806314313,
      1.354584501625501,   -2.590065597810775,  2.025053734714242,   -1.155815100160448, -0.8072988170223021,
      0.5952396354208710,  -3.741244961234010,  0.3773459685750630,  0.9386858869551073, 0.3667922227200571,
      -0.3474046353808490, 2.344915448180937,   -1.947020434263292};
  const Reference pleiades(default_problem("pleiades"), reference);
  pleiades.expect_convergence();
  pleiades.expect_within_bound(tight("bs3", 1e-9));
}

// Hairer, Norsett & Wanner I, II.0: after one period the satellite is where it was.
TEST(ReferenceValues, the_arenstorf_orbit_closes) {
  const ode::Problem problem = default_problem("arenstorf");
  Reference(problem, problem.initial_states).expect_convergence();
}

TEST(ReferenceValues, the_kepler_orbit_closes) {
  const ode::Problem problem = default_problem("kepler");
  const Reference closed(problem, problem.initial_states);
  closed.expect_convergence();
  closed.expect_within_bound(tight("bs3", 1e-8));
  closed.expect_within_bound({.method = "tsit5", .precision = Precision::f32});
}

// Van der Pol with eps = 1e-6 at t = 2: Hairer & Wanner II, IV.10. Stiff: an explicit method takes steps h of about
// 3 eps. Errors of v die out at the rate 1/eps; those of x stay, each at most h times v's, which is held at the
// tolerance times 1 + |v| = 2: over 2/h steps that adds up to 4 tolerances, and v follows x with slope
// |d(x/(1 - x^2))/dx| < 2 where 1.5 < x < 2.
TEST(ReferenceValues, van_der_pol_at_a_stiffness_that_costs_a_million_steps) {
  const ode::Rhs stiff = ode::function<2, 1>("van der pol, eps", [](auto, const auto& u, const auto& p, auto& du) {
    du[0] = u[1];
    du[1] = ((1 - u[0] * u[0]) * u[1] - u[0]) / p[0];
  });
  const ode::Problem problem{.rhs = stiff, .initial_states = {2, 0}, .parameters = {1e-6}, .end_times = {2}};
  const ode::Solution solution = ode::solve(problem, tight("tsit5", 1e-8));
  EXPECT_GT(solution.record(0).accepted, 500'000);
  EXPECT_LT(largest_difference(all_states(solution), {1.706167732170483, -0.8928097010247975}), 8e-8);
}

// The end states of the classic ensemble (rho from 0 to 21, t = 1), by SciPy's DOP853 at 1e-13 (testdata/README.md).
TEST(ReferenceValues, lorenz_ensemble_over_rho) {
  const auto file = hdf5::File::open(kData + "lorenz_rho_0_21.reference.h5");
  ode::Problem problem{.rhs = ode::system("lorenz"), .end_times = {1}};
  for (const double rho : file.dataset("rho").read<double>()) {
    problem.initial_states.insert(problem.initial_states.end(), {1, 0, 0});
    problem.parameters.insert(problem.parameters.end(), {10, rho, 8.0 / 3});
  }
  const Reference ensemble(problem, file.dataset("y_end").read<double>());
  ensemble.expect_convergence();
  ensemble.expect_within_bound(tight("bs3", 1e-8));
  ensemble.expect_within_bound({.method = "tsit5", .precision = Precision::f32});
}

// A trained net as right-hand side, states saved at 101 times: SciPy's DOP853 at 1e-13 with the float32 weights taken
// as exact (testdata/README.md).
TEST(ReferenceValues, trajectories_of_a_trained_lorenz_net) {
  const auto file = hdf5::File::open(kData + "lorenz_tanh_3_100_3.trajectories.h5");
  const std::vector<double> times = file.dataset("t").read<double>();
  const ode::Problem problem{
      .rhs = ode::net(nn::to_mlp(nn::read_safetensors(kData + "lorenz_tanh_3_100_3.safetensors"))),
      .initial_states = file.dataset("y0").read<double>(),
      .end_times = {times.back()},
      .save_times = times};
  // The last saved time is the end, which all_states() lists once more.
  const std::vector<double> saved = file.dataset("y").read<double>();
  std::vector<double> reference;
  for (std::size_t i = 0; i < problem.trajectories(); ++i) {
    const auto row = saved.begin() + std::ptrdiff_t(i * times.size() * 3);
    const auto row_end = row + std::ptrdiff_t(times.size() * 3);
    reference.insert(reference.end(), row, row_end);
    reference.insert(reference.end(), row_end - 3, row_end);
  }
  const Reference trajectories(problem, reference);
  trajectories.expect_convergence();
  trajectories.expect_within_bound({.method = "tsit5", .precision = Precision::f32});
}

}  // namespace
}  // namespace lockstep
