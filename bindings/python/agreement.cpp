#include "bindings/python/agreement.h"

#include <nanobind/stl/filesystem.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "bindings/python/solution.h"
#include "bindings/python/watched.h"
#include "lockstep/agreement/certificate.h"
#include "lockstep/agreement/ensemble.h"
#include "lockstep/agreement/report.h"
#include "lockstep/agreement/verdict.h"
#include "lockstep/cli/stored_problem.h"

namespace nb = nanobind;

namespace lockstep::python {
namespace {

// One of the two: a file or a solution in memory.
class Side {
 public:
  explicit Side(const nb::object& given) {
    if (nb::isinstance<Solved>(given)) {
      solved_ = nb::cast<std::shared_ptr<Solved>>(given);
    } else {
      path_ = nb::cast<std::filesystem::path>(given);
    }
  }

  // Reads; without Python's lock.
  const agreement::Ensemble& open(const char* name) {
    if (ensemble_) return *ensemble_;
    if (solved_) {
      agreement::Numbers numbers = agreement::numbers_of(solved_->solution);
      numbers.name = name;
      ensemble_ = std::make_unique<agreement::HeldEnsemble>(solved_->problem(), std::move(numbers));
    } else {
      ensemble_ = std::make_unique<agreement::StoredEnsemble>(path_);
    }
    return *ensemble_;
  }

  // How far rounding alone drives its trajectories apart, by solving some of them again. Nothing where that is not
  // possible, and why not.
  std::optional<agreement::Certificate> certify(const RunControl& control, std::string& why_not) const {
    try {
      if (solved_) return agreement::make_certificate(solved_->problem(), solved_->options(), {}, control);
      return cli::recompute_certificate(ode::ResultFile(path_), {}, control);
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

agreement::Verdict judge(Side& a, Side& b, agreement::Settings settings, const RunControl& control) {
  const agreement::Ensemble &first = a.open("a"), &second = b.open("b");
  agreement::Verdict verdict = agreement::judge(first, second, settings, control);
  if (verdict.same_bits || verdict.outcome != agreement::Outcome::undecided || settings.lyapunov) return verdict;
  std::string why_not;
  using Of = agreement::Settings::Of;
  for (const auto& [of, side] : {std::pair(Of::a, &a), std::pair(Of::b, &b)}) {
    if (first.certificate() || second.certificate()) break;
    settings.certificate = side->certify(control, why_not);
    settings.certificate_of = of;
    if (settings.certificate) return agreement::judge(first, second, settings, control);
    verdict.reasons.push_back(why_not);
  }
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

nb::tuple validate(const nb::object& first, const nb::object& second, std::optional<double> lyapunov,
                   const std::optional<std::filesystem::path>& report) {
  Side a(first), b(second);
  agreement::Verdict verdict;
  std::string json;
  std::optional<std::filesystem::path> page;
  const nb::object stopped = run_watched(nb::none(), [&](const RunControl& control) {
    agreement::Settings settings;
    settings.lyapunov = lyapunov;
    verdict = judge(a, b, settings, control);
    json = agreement::verdict_json(a.open("a"), b.open("b"), verdict);
    if (report) page = agreement::write_report(*report, a.open("a"), b.open("b"), verdict);
  });
  return nb::make_tuple(outcome_text(verdict.outcome), verdict.same_bits, verdict.sentence, verdict.reasons, json, page,
                        stopped);
}

}  // namespace

void bind_agreement(nb::module_& module) {
  module.def("validate", &validate, nb::arg("a"), nb::arg("b"), nb::arg("lyapunov").none(), nb::arg("report").none());
}

}  // namespace lockstep::python
