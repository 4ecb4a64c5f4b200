// How far right ports take single trajectories, as a ratio to the farthest of their own perturbed members, by the
// number of members that tell something (detail/own_members.h): docs/validation.md, "One trajectory among many". All
// trajectories of random ensembles are examined, not only the farthest. Usage: agreement_own_members_tail [ensembles]
// [trajectories]
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/agreement/detail/own_members.h"
#include "lockstep/agreement/testing/compiled_solver.h"
#include "lockstep/agreement/testing/ensembles.h"
#include "lockstep/agreement/testing/foreign_solver.h"
#include "lockstep/agreement/verdict.h"

namespace lockstep::agreement {
namespace {

using testing::ForeignLorenz;
using testing::Rounding;

constexpr std::array<double, 4> kLevels{3, 10, 30, 100};

struct Tail {
  std::size_t cases = 0;  // trajectories and times
  std::array<std::size_t, kLevels.size()> above{};
  double largest = 0;
};
using Tails = std::array<Tail, kOwnMembers + 1>;  // by the number of witnesses

double distance(const double* x, const double* y, const Scale& scale) {
  double largest = 0;
  for (std::size_t c = 0; c < scale.components(); ++c)
    largest = std::max(largest, std::abs(x[c] - y[c]) / scale.size[c]);
  return largest;
}

template <class T>
void examine(std::uint64_t seed, std::size_t trajectories, Tails& tails, std::array<std::size_t, kLevels.size()>& any) {
  const ode::Problem problem = testing::lorenz(trajectories, 25, seed);
  const ode::Options options = testing::fixed_rk4(kPrecisionOf<T>);
  const HeldEnsemble a(problem, numbers_of(ode::solve(problem, options)));
  std::vector<std::size_t> all(trajectories);
  std::iota(all.begin(), all.end(), std::size_t{0});
  const Certificate members = make_certificate(problem, options, {.chosen = all, .members = kOwnMembers, .seed = 5});
  std::vector<Numbers> ports{testing::solve_rk4<T, Rounding::contracted, ForeignLorenz>(problem, testing::kStep),
                             testing::solve_rk4<T, Rounding::reversed, ForeignLorenz>(problem, testing::kStep)};
  for (const testing::CompiledSolver& solver : testing::compiled_solvers()) {
    ports.push_back(sizeof(T) == 8 ? solver.solve_f64(problem, testing::kStep)
                                   : solver.solve_f32(problem, testing::kStep));
  }
  const Scale scale = measure_scale(a);
  const std::size_t points = a.save_points();
  const std::vector<double> ours = a.states(0, trajectories);
  for (std::size_t i = 0; i < trajectories; ++i) {
    std::vector<double> largest(ports.size(), 0);
    for (std::size_t k = 1; k < points; ++k) {
      const double* at = &ours[(i * points + k) * 3];
      std::vector<double> of_members;
      for (std::size_t m = 0; m < kOwnMembers; ++m) {
        of_members.push_back(distance(members.states_of(m, i) + k * 3, at, scale));
      }
      double farthest = *std::ranges::max_element(of_members);
      if (farthest >= kDecisive) break;
      for (std::size_t c = 0; c < 3; ++c) {
        farthest =
            std::max(farthest, 4 * epsilon_of(kPrecisionOf<T>) * scale.largest_so_far[k * 3 + c] / scale.size[c]);
      }
      Tail& tail = tails[witnesses(of_members)];
      for (std::size_t p = 0; p < ports.size(); ++p) {
        const double ratio = distance(&ports[p].states[(i * points + k) * 3], at, scale) / farthest;
        ++tail.cases;
        tail.largest = std::max(tail.largest, ratio);
        largest[p] = std::max(largest[p], ratio);
        for (std::size_t l = 0; l < kLevels.size(); ++l) tail.above[l] += ratio > kLevels[l] ? 1 : 0;
      }
    }
    for (const double ratio : largest) {
      for (std::size_t l = 0; l < kLevels.size(); ++l) any[l] += ratio > kLevels[l] ? 1 : 0;
    }
  }
}

template <class T>
void run(int ensembles, std::size_t trajectories) {
  Tails tails{};
  std::array<std::size_t, kLevels.size()> any{};
  for (int i = 0; i < ensembles; ++i) examine<T>(static_cast<std::uint64_t>(1000 + i), trajectories, tails, any);
  std::printf("float%zu, %d ensembles of %zu\n| n | cases | > 3 | > 10 | > 30 | > 100 | largest | allowed |\n",
              8 * sizeof(T), ensembles, trajectories);
  for (std::size_t n = 0; n < tails.size(); ++n) {
    if (tails[n].cases == 0) continue;
    std::printf("| %zu | %zu |", n, tails[n].cases);
    for (const std::size_t above : tails[n].above) std::printf(" %zu |", above);
    std::printf(" %.3g | %.3g |\n", tails[n].largest, allowed_alone(n, trajectories));
  }
  std::printf("trajectories at any time:");
  for (const std::size_t count : any) std::printf(" %zu", count);
  std::printf("\n");
}

}  // namespace
}  // namespace lockstep::agreement

int main(int argc, char** argv) {
  const int ensembles = argc > 1 ? std::atoi(argv[1]) : 10;
  const std::size_t trajectories = argc > 2 ? static_cast<std::size_t>(std::atol(argv[2])) : 10'000;
  lockstep::agreement::run<double>(ensembles, trajectories);
  lockstep::agreement::run<float>(ensembles, trajectories);
  return 0;
}
