#include "bindings/python/agreement.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/python/solution.h"
#include "bindings/python/watched.h"
#include "lockstep/agreement/certificate.h"
#include "lockstep/agreement/ensemble.h"
#include "lockstep/agreement/report.h"
#include "lockstep/agreement/solved_again.h"
#include "lockstep/agreement/verdict.h"
#include "lockstep/cli/stored_problem.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hdf5_text.h"
#include "lockstep/core/matrix_precision.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

using agreement::Certificate;
using agreement::CertificateOptions;

// One of the two: a file or a solution in memory.
class GivenSide {
 public:
  explicit GivenSide(const nb::object& given) {
    if (nb::isinstance<Solved>(given)) {
      solved_ = nb::cast<std::shared_ptr<Solved>>(given);
    } else {
      path_ = nb::cast<std::filesystem::path>(given);
    }
  }

  // Reads; without Python's lock. A solution in memory says of itself what its file would.
  const agreement::Ensemble& open(const char* name) {
    if (ensemble_) return *ensemble_;
    if (solved_) {
      agreement::Numbers numbers = agreement::numbers_of(solved_->solution);
      numbers.name = name;
      numbers.component_names = solved_->written->setup.component_names;
      for (const auto& [field, value] : solved_->attributes()) {
        numbers.provenance.emplace_back(field, hdf5::to_text(value));
      }
      ensemble_ = std::make_unique<agreement::HeldEnsemble>(solved_->problem(), std::move(numbers));
    } else {
      ensemble_ = std::make_unique<agreement::StoredEnsemble>(path_);
    }
    return *ensemble_;
  }

  // Members of the trajectories that `which` names. Throws Error where they cannot be solved, or, where that is
  // refused, where its own numbers do not come out: they may have been changed since.
  Certificate members(CertificateOptions which, const agreement::SolvedAgain& how, const RunControl& control) const {
    if (!solved_) return cli::recompute_certificate(ode::ResultFile(path_), which, control, how);
    const auto solve = [&](Precision precision, const CertificateOptions& members) {
      ode::Options options = solved_->options();
      options.precision = precision;
      return agreement::make_certificate(solved_->problem(), options, members, control);
    };
    return agreement::solve_again(*ensemble_, which, how, solve);
  }

  // One trajectory's problem, to be solved from a state of its own on. Throws Error where it cannot be.
  agreement::Settings::OwnProblem own_problem(std::size_t trajectory, Precision precision,
                                              const RunControl& control) const {
    if (!solved_) return cli::own_problem(ode::ResultFile(path_), trajectory, precision, control);
    ode::Options options = solved_->options();
    options.precision = precision;
    return {solved_->problem().part(trajectory, 1), std::move(options), control};
  }

  // How far rounding alone drives its trajectories apart, by solving some of them again. Nothing where that is not
  // possible, and why not.
  std::optional<Certificate> certify(MatrixPrecision mode, const agreement::SolvedAgain& how, const RunControl& control,
                                     std::string& why_not) const {
    try {
      return members({.matrix_precision = mode}, how, control);
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::cancelled) throw;
      why_not = error.what();
      return std::nullopt;
    }
  }

 private:
  std::shared_ptr<Solved> solved_;
  std::filesystem::path path_;
  std::unique_ptr<agreement::Ensemble> ensemble_;
};

using Of = agreement::Settings::Of;

// With one step for all, each member is a solve of all of them.
std::size_t own_members(const agreement::Ensemble& of) {
  const auto facts = of.provenance();
  const bool common = std::ranges::find(facts, std::pair<std::string, std::string>("control", "common")) != facts.end();
  return common ? CertificateOptions{}.members : agreement::kOwnMembers;
}

agreement::Verdict judge(GivenSide& a, GivenSide& b, agreement::Settings settings, const RunControl& control) {
  const agreement::Ensemble &first = a.open("a"), &second = b.open("b");
  const MatrixPrecision mode = agreement::matrix_precision_of(first, second);
  // The farthest trajectories by members of their own: of a's problem, or of b's where a's cannot be solved.
  settings.examine = [&](const std::vector<std::size_t>& trajectories) -> agreement::Settings::Examined {
    const auto by = [&](const GivenSide& side, const agreement::Ensemble& of, agreement::OtherBits other_bits) {
      return side.members({.chosen = trajectories, .members = own_members(of), .matrix_precision = mode},
                          agreement::solved_for(first, second, other_bits), control);
    };
    return agreement::examine_by([&] { return by(a, first, agreement::OtherBits::tell); },
                                 [&] { return by(b, second, agreement::OtherBits::refuse); });
  };
  settings.solved_by = [&](std::size_t trajectory) {
    const auto by = [&](const GivenSide& side) {
      return side.own_problem(trajectory, agreement::coarser_precision(first, second), control);
    };
    return agreement::own_problem_by([&] { return by(a); }, [&] { return by(b); });
  };
  const auto fields = agreement::compare_fields(first, second);
  const bool comparable = fields.empty() || !fields.front().forbids;
  const bool anew =
      comparable && first.precision() != second.precision() && !agreement::brings_certificate(first, second);
  agreement::Verdict verdict;
  if (!anew || settings.lyapunov) verdict = agreement::judge(first, second, settings, control);
  const bool knows_spread = settings.lyapunov && mode == MatrixPrecision::f32;
  const bool forbidden = !verdict.fields.empty() && verdict.fields.front().forbids;
  if (verdict.outcome != agreement::Outcome::undecided || forbidden || knows_spread ||
      agreement::brings_certificate(first, second)) {
    return verdict;
  }
  const agreement::SolvedAgain how = agreement::solved_for(first, second, agreement::OtherBits::refuse);
  std::vector<std::string> why_not;
  for (const auto& [of, side] : {std::pair(Of::a, &a), std::pair(Of::b, &b)}) {
    why_not.emplace_back();
    settings.certificate = side->certify(mode, how, control, why_not.back());
    settings.certificate_of = of;
    if (settings.certificate) return agreement::judge(first, second, settings, control);
  }
  if (anew) verdict = agreement::judge(first, second, settings, control);
  verdict.reasons.insert(verdict.reasons.end(), why_not.begin(), why_not.end());
  return verdict;
}

const char* outcome_text(agreement::Outcome outcome) {
  switch (outcome) {
    case agreement::Outcome::agree:
      return "agree";
    case agreement::Outcome::disagree:
      return "disagree";
    case agreement::Outcome::undecided:
      break;
  }
  return "undecided";
}

// What was found. The text of its evidence, which has numbers of each save point, is made for who asks.
class Judged {
 public:
  Judged(std::string a, std::string b, agreement::Verdict verdict)
      : a_(std::move(a)), b_(std::move(b)), verdict_(std::move(verdict)) {}

  const char* outcome() const { return outcome_text(verdict_.outcome); }
  bool same_bits() const { return verdict_.same_bits; }
  const std::string& sentence() const { return verdict_.sentence; }
  const std::vector<std::string>& reasons() const { return verdict_.reasons; }
  std::string json() const {
    const nb::gil_scoped_release others_may_run;
    return agreement::verdict_json(a_, b_, verdict_);
  }

 private:
  std::string a_, b_;
  agreement::Verdict verdict_;
};

nb::tuple validate(const nb::object& first, const nb::object& second, std::optional<double> lyapunov,
                   const std::optional<std::filesystem::path>& report) {
  GivenSide a(first), b(second);
  agreement::Verdict verdict;
  std::optional<std::filesystem::path> page;
  const nb::object stopped = run_watched(nb::none(), [&](const RunControl& control) {
    agreement::Settings settings;
    settings.lyapunov = lyapunov;
    verdict = judge(a, b, settings, control);
    if (report) page = agreement::write_report(*report, a.open("a"), b.open("b"), verdict);
  });
  return nb::make_tuple(Judged(a.open("a").name(), b.open("b").name(), std::move(verdict)), page, stopped);
}

}  // namespace

void bind_agreement(nb::module_& module) {
  nb::class_<Judged>(module, "Judged")
      .def_prop_ro("outcome", &Judged::outcome)
      .def_prop_ro("same_bits", &Judged::same_bits)
      .def_prop_ro("sentence", &Judged::sentence)
      .def_prop_ro("reasons", &Judged::reasons)
      .def("json", &Judged::json);
  module.def("validate", &validate, nb::arg("a"), nb::arg("b"), nb::arg("lyapunov").none(), nb::arg("report").none());
}

}  // namespace lockstep::python
