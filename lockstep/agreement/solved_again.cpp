#include "lockstep/agreement/solved_again.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep::agreement {
namespace {

bool has_bits_of_its_own(const Ensemble& ensemble) {
  const auto fields = ensemble.provenance();
  return std::ranges::any_of(fields, [](const auto& field) {
    return !field.second.empty() &&
           (field.first == "products" || (field.first == "matrix_precision" && field.second != "f32"));
  });
}

// What a gives, or else b, and which it was. Where neither can, what a said.
template <class Result>
std::pair<Result, Settings::Of> by_either(const std::function<Result()>& a, const std::function<Result()>& b) {
  try {
    return {a(), Settings::Of::a};
  } catch (const Error& error) {
    if (error.kind() == ErrorKind::cancelled) throw;
    try {
      return {b(), Settings::Of::b};
    } catch (const Error& other) {
      if (other.kind() == ErrorKind::cancelled) throw;
    }
    throw;
  }
}

}  // namespace

SolvedAgain solved_for(const Ensemble& a, const Ensemble& b, OtherBits other_bits) {
  if (a.precision() == b.precision()) return {{}, {}, other_bits};
  return {Precision::f32, Precision::f64, other_bits};
}

Certificate solve_again(const Ensemble& whose, const CertificateOptions& which, const SolvedAgain& how,
                        const SolveMembers& solve) {
  CertificateOptions unperturbed = which;
  unperturbed.members = 1;
  unperturbed.ulps = 0;
  const Precision own = whose.precision();
  std::vector<double> base;
  std::optional<std::size_t> other_bits;
  if (!has_bits_of_its_own(whose)) {
    Certificate again = solve(own, unperturbed);
    other_bits = first_of_other_bits(whose, again);
    base = std::move(again.states);
  }
  if (other_bits && how.other_bits == OtherBits::refuse) {
    throw Error(
        ErrorKind::unsupported,
        {whose.name(),
         "other numbers than its problem gives when solved again (trajectory " + std::to_string(*other_bits) + ")",
         "the same bits, to know that it is the same problem", "solve again with --certificate"});
  }
  if (how.reference.value_or(own) != own) base = solve(*how.reference, unperturbed).states;
  Certificate certificate = solve(how.members.value_or(own), which);
  certificate.base = std::move(base);
  certificate.other_bits = other_bits;
  return certificate;
}

Settings::Examined examine_by(const std::function<Certificate()>& a, const std::function<Certificate()>& b) {
  auto [members, of] = by_either(a, b);
  return {std::move(members), of};
}

Settings::OwnProblem own_problem_by(const std::function<Settings::OwnProblem()>& a,
                                    const std::function<Settings::OwnProblem()>& b) {
  return by_either(a, b).first;
}

}  // namespace lockstep::agreement
