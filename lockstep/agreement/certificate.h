// How far rounding alone drives an ensemble's trajectories apart: some of them solved again from initial states a few
// units in the last place away. Kept in the result file, it lets anybody judge a port later without solving anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "lockstep/core/hdf5.h"
#include "lockstep/core/matrix_precision.h"
#include "lockstep/core/precision.h"
#include "lockstep/core/run_control.h"
#include "lockstep/ode/options.h"
#include "lockstep/ode/problem.h"

namespace lockstep::agreement {

// Names within a result file.
inline constexpr const char* kCertificateState = "certificate_state";            // T [member][sample][time][component]
inline constexpr const char* kCertificateTrajectory = "certificate_trajectory";  // i64 [sample], as in `trajectory`
inline constexpr const char* kCertificateMember = "certificate_member";          // i64 [member], 0, 1, 2, ...

struct Certificate {
  Precision precision = Precision::f64;  // of the solve; a unit in the last place is this precision's
  int ulps = 4;  // each initial state component moved by so many or more (fewer than twice as many), up or down
  // Other than f32: in each member the nets' weights are moved, too, as far as this mode may round them and what they
  // are multiplied with.
  MatrixPrecision matrix_precision = MatrixPrecision::f32;
  std::size_t members = 0;                // perturbed copies of each sampled trajectory
  std::size_t save_points = 0;            // a trajectory
  std::size_t components = 0;             // of a state
  std::vector<std::size_t> trajectories;  // [sample], ascending
  std::vector<double> states;             // [member][sample][time][component]
  // What the members are compared with: the unperturbed solution, [sample][time][component]. Empty: the states of the
  // solution that the certificate is of.
  std::vector<double> base;
  // The first trajectory of which that solution holds other bits than solving its problem again gave.
  std::optional<std::size_t> other_bits = {};

  std::size_t samples() const { return trajectories.size(); }
  // Of one member of one sampled trajectory: [time][component].
  const double* states_of(std::size_t member, std::size_t sample) const {
    return states.data() + (member * samples() + sample) * save_points * components;
  }
};

// For judging single trajectories by members of their own, of which some come to the same numbers.
inline constexpr std::size_t kOwnMembers = 16;

struct CertificateOptions {
  std::size_t samples = 64;  // trajectories, evenly spaced over the ensemble; all of them where there are fewer
  std::vector<std::size_t> chosen = {};  // these instead, ascending, where not empty
  std::size_t members = 8;
  int ulps = 4;            // at least; 0: not perturbed at all
  std::uint64_t seed = 0;  // decides which components go up and which down, and how far
  // The coarser of this and the options' own is what the members' nets are perturbed by.
  MatrixPrecision matrix_precision = MatrixPrecision::f32;
  // Where the problem is a part of an ensemble: the number its first trajectory has there, and how many that has (0:
  // the problem is all of it). The part gets its share of the whole ensemble's certificate, which may be none.
  std::size_t first_trajectory = 0;
  std::size_t ensemble_trajectories = 0;
};

// Solves the perturbed members as `options` says. With common step control every trajectory is perturbed and solved
// `members` times, for there the whole ensemble decides the steps. Components that are zero move by the ulps of the
// state's largest component. Under a matrix precision other than f32 each member has weights of its own: see
// detail/rounded_nets.h. Throws as ode::solve does, and Error (cancelled) at the caller's request.
Certificate make_certificate(const ode::Problem& problem, const ode::Options& options,
                             const CertificateOptions& which = {}, const RunControl& control = {});

// The same of some components, by index and in their order; of all where none is named.
Certificate with_components(Certificate certificate, const std::vector<std::size_t>& components);

// The trajectories a certificate samples: i * trajectories / samples, all of them where there are fewer. Ascending.
std::vector<std::size_t> evenly_spaced(std::size_t trajectories, std::size_t samples);

// Adds the certificate's datasets to a file that is being written, the attribute first_trajectory of a part set.
void write_certificate(hdf5::File& file, const Certificate& certificate);

// Nothing when the file holds none, or no sample. Throws Error (file) when its shapes do not fit.
std::optional<Certificate> read_certificate(const std::filesystem::path& path);

}  // namespace lockstep::agreement
