// Members of a solution by its own problem, solved again, and whether that problem gives what the solution holds.
#pragma once

#include <functional>
#include <optional>

#include "lockstep/agreement/certificate.h"
#include "lockstep/agreement/ensemble.h"
#include "lockstep/agreement/verdict.h"
#include "lockstep/core/precision.h"

namespace lockstep::agreement {

// Where the unperturbed solve of the sampled trajectories gives other bits than the solution holds: an error, or told
// in Certificate::other_bits.
enum class OtherBits { refuse, tell };

// Members are of the precision that is claimed by the coarser of two solutions, and compared with one of the finer
// one's, so that they show what a right solution in the one is apart from a right one in the other.
struct SolvedAgain {
  std::optional<Precision> members;    // else the solution's own
  std::optional<Precision> reference;  // else the solution's own
  OtherBits other_bits = OtherBits::refuse;
};
// What a comparison of the two asks for.
SolvedAgain solved_for(const Ensemble& a, const Ensemble& b, OtherBits other_bits);

// Certificates of the sampled trajectories of `whose`, by their numbers there.
using SolveMembers = std::function<Certificate(Precision, const CertificateOptions&)>;

// The members that `which` asks for, and the unperturbed solution as their base. The sampled trajectories are first
// solved unperturbed: only a problem that gives the solution's own bits is the one it is about. Products of cuBLASLt
// and of tensor cores have bits of their own, which no solve gives again: there is no base then, and nothing is asked.
// Throws Error (unsupported) for other bits where those are refused.
Certificate solve_again(const Ensemble& whose, const CertificateOptions& which, const SolvedAgain& how,
                        const SolveMembers& solve);

// What Settings::examine returns: members by a's problem, or by b's where a's cannot be solved (another program's
// file). Where neither can, throws what the first threw; Error (cancelled) at once.
Settings::Examined examine_by(const std::function<Certificate()>& a, const std::function<Certificate()>& b);

// What Settings::solved_by returns: one trajectory's problem in a, or in b where a's cannot be had. Throws likewise.
Settings::OwnProblem own_problem_by(const std::function<Settings::OwnProblem()>& a,
                                    const std::function<Settings::OwnProblem()>& b);

}  // namespace lockstep::agreement
