// `lockstep validate`: does one result file agree with another, by its bits or up to what rounding explains?
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/agreement/report.h"
#include "lockstep/agreement/table_difference.h"
#include "lockstep/agreement/verdict.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/compare.h"
#include "lockstep/cli/flag_checks.h"
#include "lockstep/cli/interrupt.h"
#include "lockstep/cli/progress.h"
#include "lockstep/cli/stored_problem.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/printable.h"

namespace lockstep::cli {
namespace {

struct ValidateOptions {
  std::filesystem::path a;
  std::filesystem::path b;
  bool quiet = false;
  bool bits = false;
  bool json = false;
  bool stored_only = false;
  std::optional<std::filesystem::path> report;
  std::optional<double> lyapunov;
};

constexpr const char* kValidateExamples = R"(
Examples:
  lockstep solve lorenz.toml --certificate --output a.h5
  lockstep validate a.h5 port.h5 --report verdict    and look at verdict/index.html
  lockstep validate a.h5 port.h5 --lyapunov 0.906    where a.h5 has no certificate
  lockstep validate --bits --quiet avx2.h5 avx512.h5 && echo "same bits"

Is the second file a faithful port of the first? The same bits are; NaN equals NaN, whatever its payload. Otherwise the
two may differ by what rounding explains: while the ensemble's own spread is small, the difference must stay within ten
times it; trajectories may not part too early; statistics of the attractor must agree. docs/validation.md has the
mathematics and how often it errs. That spread comes from the certificate that `solve --certificate` stored; where there
is none, from --lyapunov, or 64 trajectories of A.h5 (or B.h5) are solved again from what the file holds of its problem.
Exit code 0: they agree; 1: they do not; 2: no verdict, for they could not be compared, not all trajectories are
finished in both, or nothing tells how much rounding explains. Where they are of one problem at the same times, by other methods or tolerances or with nothing to
tell, it says how far apart they are and where first.)";

// As many digits as tell any two numbers of the precision apart.
std::string exact(double value, Precision precision) {
  return rounded_text(value, precision == Precision::f32 ? 9 : 17);
}

std::string shown(const std::string& text) { return printable(text, LineBreaks::escape); }

void line(const char* name, const std::string& text) {
  std::printf("  %-18s %s\n", shown(name).c_str(), shown(text).c_str());
}

// Whether all states, ends and statuses agree to the bit, and every trajectory is finished.
bool same_states(const Comparison& comparison) {
  return comparison.state.numbers > 0 && comparison.same_precision && comparison.state.different == 0 &&
         comparison.end_state.different == 0 && comparison.different_status == 0 &&
         comparison.different_end_time == 0 && comparison.unfinished == 0;
}

bool same_events(const Comparison& comparison) { return !comparison.events || comparison.events->same(); }

// How many steps and evaluations a trajectory took: part of the bits, but not of what a port has to give.
enum class Counts { matter, are_told };

class Report {
 public:
  Report(const ode::ResultFile& a, const ode::ResultFile& b, const Comparison& comparison, Counts counts)
      : a_(a),
        b_(b),
        comparison_(comparison),
        counts_(counts),
        precision_(a.precision() == b.precision() ? a.precision() : Precision::f64) {}

  void print() const {
    const std::string shape = count_text(a_.trajectories()) +
                              (a_.trajectories() == 1 ? " trajectory x " : " trajectories x ") +
                              count_text(a_.save_points()) + (a_.save_points() == 1 ? " time x " : " times x ") +
                              std::to_string(a_.components()) + (a_.components() == 1 ? " component" : " components");
    const std::size_t numbers = comparison_.state.numbers;
    if (comparison_.same_bits()) {
      std::printf("same bits: all %s numbers of state agree (%s, %s)\n", count_text(numbers).c_str(), shape.c_str(),
                  precision_ == Precision::f32 ? "float32" : "float64");
    } else if (counts_ == Counts::are_told && same_states(comparison_) && same_events(comparison_)) {
      std::printf("same states: all %s numbers of state agree, but not how many steps were taken (%s)\n",
                  count_text(numbers).c_str(), shape.c_str());
    } else if (comparison_.state.different == 0) {
      std::printf("different: state agrees in all %s numbers, but not what lies around it (%s)\n",
                  count_text(numbers).c_str(), shape.c_str());
    } else {
      std::printf("different: %s of %s numbers of state, in %s (%s)\n", count_text(comparison_.state.different).c_str(),
                  count_text(numbers).c_str(), in_trajectories(comparison_.state.trajectories).c_str(), shape.c_str());
    }
    line("a", made(a_));
    line("b", made(b_));
    if (!comparison_.same_precision) line("precision", "float32 and float64: compared as float64");
    if (comparison_.events) line("events", text_of(*comparison_.events));
    if (!comparison_.same_bits()) print_differences();
    const std::size_t not_finite_a = comparison_.state.not_finite_a;
    const std::size_t not_finite_b = comparison_.state.not_finite_b;
    if (not_finite_a + not_finite_b > 0) {
      line("NaN or infinite", in_trajectories(not_finite_a) + " of a, " + in_trajectories(not_finite_b) + " of b");
    }
    if (comparison_.unfinished > 0) {
      line("unfinished", in_trajectories(comparison_.unfinished) + " cancelled in one file or both");
    }
    print_fields();
  }

 private:
  static std::string in_trajectories(std::size_t number) {
    return count_text(number) + (number == 1 ? " trajectory" : " trajectories");
  }

  static std::string made(const ode::ResultFile& file) {
    const auto add = [&](const char* name) {
      const std::string text = file.text_attribute(name);
      return text.empty() ? std::string() : ", " + text;
    };
    std::string text = file.text_attribute("method") + add("precision") + add("cpu_target");
    const auto threads = file.attribute("threads");
    if (threads && std::holds_alternative<std::int64_t>(*threads)) {
      const std::int64_t number = std::get<std::int64_t>(*threads);
      text += ", " + std::to_string(number) + (number == 1 ? " thread" : " threads");
    }
    return file.path().string() + (text.empty() ? "" : ": " + text);
  }

  std::string place(const Place& place) const {
    const std::vector<double> times = a_.times(place.trajectory);
    return "trajectory " + std::to_string(place.trajectory) + ", time " + std::to_string(place.time) +
           " (t = " + number_text(times[place.time]) + "), component " + a_.component_names()[place.component];
  }
  std::string values(const Place& place) const {
    return exact(place.a, precision_) + " and " + exact(place.b, precision_);
  }

  void print_differences() const {
    const ArrayDifference& state = comparison_.state;
    if (state.largest_absolute) {
      line("largest absolute", rounded_text(state.max_absolute, 3) + " at " + place(*state.largest_absolute) + ": " +
                                   values(*state.largest_absolute));
      line("largest relative", rounded_text(state.max_relative, 3) + " at " + place(*state.largest_relative) + ": " +
                                   values(*state.largest_relative));
      line("root mean square", rounded_text(state.root_mean_square(), 3) + " over all numbers finite in both");
    }
    if (state.first) line("first in the file", place(*state.first) + ": " + values(*state.first));
    if (state.earliest) line("earliest in time", place(*state.earliest) + ": " + values(*state.earliest));
    if (state.only_a_finite + state.only_b_finite > 0) {
      line("not finite",
           count_text(state.only_b_finite) + " numbers in a alone, " + count_text(state.only_a_finite) + " in b alone");
    }
    if (comparison_.end_state.different > 0 && state.different == 0) {
      const Place& end = *comparison_.end_state.first;
      line("end states", in_trajectories(comparison_.end_state.trajectories) + ", first trajectory " +
                             std::to_string(end.trajectory) + ", component " + a_.component_names()[end.component] +
                             ": " + values(end));
    }
    if (comparison_.different_status > 0) {
      line("statuses", in_trajectories(comparison_.different_status) + ", first trajectory " +
                           std::to_string(*comparison_.first_status) + ": " +
                           std::string(to_string(comparison_.status_a)) + " and " +
                           std::string(to_string(comparison_.status_b)));
    }
    if (comparison_.different_end_time > 0) {
      line("end times", in_trajectories(comparison_.different_end_time) + ", first trajectory " +
                            std::to_string(*comparison_.first_end_time) + ": " +
                            exact(comparison_.end_time_a, Precision::f64) + " and " +
                            exact(comparison_.end_time_b, Precision::f64));
    }
    if (comparison_.different_counts > 0) {
      line("steps, evaluations", "other counts in " + in_trajectories(comparison_.different_counts));
    }
  }

  void print_fields() const {
    if (comparison_.fields.empty()) return;
    std::printf("what differs in how they were made:\n");
    for (const FieldDifference& field : comparison_.fields) {
      line(field.field.c_str(), field.a + " and " + field.b);
    }
  }

  const ode::ResultFile& a_;
  const ode::ResultFile& b_;
  const Comparison& comparison_;
  Counts counts_;
  Precision precision_;
};

// What --bits finds, for programs: a verdict's keys where it has the same.
std::string bits_json(const ode::ResultFile& a, const ode::ResultFile& b, const Comparison& comparison) {
  using nlohmann::json;
  const auto number = [](double value) { return std::isfinite(value) ? json(value) : json(nullptr); };
  json result{{"a", a.path().string()},
              {"b", b.path().string()},
              {"exit_code", comparison.same_bits() ? kSuccess : kDifferent},
              {"same_bits", comparison.same_bits()},
              {"numbers", comparison.state.numbers},
              {"different_numbers", comparison.state.different},
              {"different_trajectories", comparison.state.trajectories},
              {"different_end_states", comparison.end_state.trajectories},
              {"different_end_times", comparison.different_end_time},
              {"different_steps", comparison.different_counts},
              {"other_status_trajectories", comparison.different_status},
              {"unfinished_trajectories", comparison.unfinished},
              {"largest_absolute", number(comparison.state.max_absolute)},
              {"largest_relative", number(comparison.state.max_relative)},
              {"differences", json::array()}};
  if (comparison.events) result["different_events"] = comparison.events->trajectories;
  for (const FieldDifference& field : comparison.fields) {
    result["differences"].push_back({{"field", field.field}, {"a", field.a}, {"b", field.b}});
  }
  // Names may hold any bytes; JSON holds UTF-8.
  return result.dump(2, ' ', false, json::error_handler_t::replace);
}

// Of files whose problems are kept otherwise, which of them keeps one that it was not solved with.
void warn_of_wrong_equations(const ode::ResultFile& a, const ode::ResultFile& b, bool quiet) {
  const auto tables = agreement::compare_tables(a, b);
  const auto of_problem = [](const agreement::TableDifference& one) { return one.table.starts_with("problem"); };
  if (quiet || std::ranges::none_of(tables, of_problem)) return;
  for (const ode::ResultFile* file : {&a, &b}) {
    const std::string wrong = wrong_equation(*file);
    if (!wrong.empty()) std::fprintf(stderr, "lockstep: note: %s\n", shown(wrong).c_str());
  }
}

// Bits alone: any difference counts.
int validate_bits(const ValidateOptions& options, const RunControl& control, std::optional<Progress>& progress) {
  const ode::ResultFile a(options.a);
  const ode::ResultFile b(options.b);
  warn_of_wrong_equations(a, b, options.quiet);
  const Comparison comparison = compare(a, b, control);
  progress.reset();  // its line
  if (options.json) {
    std::printf("%s\n", bits_json(a, b, comparison).c_str());
  } else if (!options.quiet) {
    Report(a, b, comparison, Counts::matter).print();
  }
  return comparison.same_bits() ? kSuccess : kDifferent;
}

void print_sentences(const agreement::Verdict& verdict) {
  std::printf("%s\n", shown(verdict.sentence).c_str());
  for (const std::string& reason : verdict.reasons) std::printf("  - %s\n", shown(reason).c_str());
}

void print_verdict(const agreement::Verdict& verdict) {
  print_sentences(verdict);
  if (verdict.fields.empty()) return;
  std::printf("what differs in how they were made:\n");
  for (const agreement::FieldDifference& field : verdict.fields) line(field.field.c_str(), field.a + " and " + field.b);
}

// Puts a certificate computed anew from a, or else from b, into the settings. Returns why there is none, by file.
std::string find_spread(const agreement::StoredEnsemble& a, const agreement::StoredEnsemble& b,
                        const ValidateOptions& options, const Interrupt& interrupt, agreement::Settings& settings,
                        std::optional<Progress>& progress) {
  std::string why_not;
  const auto cannot = [&](const std::string& text) { why_not += "  - " + text + "\n"; };
  if (options.stored_only) {
    cannot("neither file has a certificate that fits, and --stored-only asks for no solve");
    return why_not;
  }
  using Of = agreement::Settings::Of;
  for (const auto& [of, ensemble] : {std::pair(Of::a, &a), std::pair(Of::b, &b)}) {
    try {
      progress.emplace("solving a sample of " + ensemble->name() + " again", "trajectories",
                       options.quiet ? Verbosity::quiet : Verbosity::normal);
      settings.certificate = recompute_certificate(
          ensemble->file(), {.matrix_precision = agreement::matrix_precision_of(a, b)},
          {&interrupt.token(), progress->function()}, agreement::solved_for(a, b, agreement::OtherBits::refuse));
      settings.certificate_of = of;
      why_not.clear();
      break;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::cancelled) throw;
      cannot(error.what());
    }
  }
  progress.emplace("comparing", "trajectories", options.quiet ? Verbosity::quiet : Verbosity::normal);
  return why_not;
}

// Members of single trajectories, by a's problem, or by b's where a is another program's, say.
agreement::Settings::Examined examine(const agreement::StoredEnsemble& a, const agreement::StoredEnsemble& b,
                                      const std::vector<std::size_t>& trajectories, MatrixPrecision mode,
                                      const RunControl& control) {
  const auto by = [&](const agreement::StoredEnsemble& of, agreement::OtherBits other_bits) {
    // With one step for all, each member is a solve of the whole ensemble.
    const bool common = of.file().text_attribute("control") == "common";
    const std::size_t members = common ? agreement::CertificateOptions{}.members : agreement::kOwnMembers;
    return recompute_certificate(of.file(), {.chosen = trajectories, .members = members, .matrix_precision = mode},
                                 control, agreement::solved_for(a, b, other_bits));
  };
  return agreement::examine_by([&] { return by(a, agreement::OtherBits::tell); },
                               [&] { return by(b, agreement::OtherBits::refuse); });
}

// One trajectory's problem in a, or else in b.
agreement::Settings::OwnProblem solved_by(const agreement::StoredEnsemble& a, const agreement::StoredEnsemble& b,
                                          std::size_t trajectory, const RunControl& control) {
  const Precision precision = agreement::coarser_precision(a, b);
  return agreement::own_problem_by([&] { return own_problem(a.file(), trajectory, precision, control); },
                                   [&] { return own_problem(b.file(), trajectory, precision, control); });
}

// One file under two names agrees with itself, which was hardly the question.
void warn_of_one_file(const ValidateOptions& options) {
  std::error_code ignored;
  if (options.quiet || !std::filesystem::equivalent(options.a, options.b, ignored)) return;
  std::fprintf(stderr, "lockstep: note: %s and %s are one file\n", options.a.c_str(), options.b.c_str());
}

int judge(const ValidateOptions& options, const Interrupt& interrupt, std::optional<Progress>& progress) {
  // The bar is another one after a solve.
  const RunControl control{&interrupt.token(), [&progress](std::size_t done, std::size_t total) {
                             if (progress) progress->update(done, total);
                           }};
  const agreement::StoredEnsemble a(options.a);
  const agreement::StoredEnsemble b(options.b);
  warn_of_wrong_equations(a.file(), b.file(), options.quiet);
  const auto fields = agreement::compare_fields(a, b);
  const bool comparable = fields.empty() || !fields.front().forbids;
  const bool only_distance = !comparable && agreement::same_problem(fields);
  // Products rounded to fewer digits are judged by members whose products are rounded so.
  const MatrixPrecision mode = comparable ? agreement::matrix_precision_of(a, b) : MatrixPrecision::f32;
  const bool knows_spread = agreement::brings_certificate(a, b) || (options.lyapunov && mode == MatrixPrecision::f32);
  const bool page_or_json = options.json || options.report;
  agreement::Settings settings;
  settings.lyapunov = options.lyapunov;
  // The bits come first: in the files' own precision, several times faster than the full comparison, and there is
  // nothing more to say where they hold.
  if (comparable && (a.precision() == b.precision() || !knows_spread) && !(page_or_json && knows_spread)) {
    const Comparison comparison =
        compare(a.file(), b.file(), control, knows_spread ? Extent::first_difference : Extent::whole);
    const bool same = same_states(comparison);
    if (same && !page_or_json) {
      progress.reset();
      if (!options.quiet) Report(a.file(), b.file(), comparison, Counts::are_told).print();
      return same_events(comparison) ? kSuccess : kDifferent;
    }
    if (!same && !knows_spread) {
      const std::string why_not = find_spread(a, b, options, interrupt, settings, progress);
      if (!settings.certificate && !page_or_json && !agreement::has_certificate(a, b)) {
        progress.reset();
        if (!options.quiet) Report(a.file(), b.file(), comparison, Counts::are_told).print();
        if (!options.quiet) std::printf("no verdict: nothing tells how much of that is rounding\n%s", why_not.c_str());
        return kFailure;
      }
    }
  }
  if (options.stored_only) {
    settings.not_examined = "--stored-only";
  } else {
    settings.examine = [&](const std::vector<std::size_t>& trajectories) {
      return examine(a, b, trajectories, mode, {&interrupt.token(), {}});
    };
    settings.solved_by = [&](std::size_t trajectory) { return solved_by(a, b, trajectory, {&interrupt.token(), {}}); };
  }
  const agreement::Verdict verdict = agreement::judge(a, b, settings, control);
  if (only_distance && !options.json && !options.quiet) {
    const Comparison comparison = compare(a.file(), b.file(), control);
    progress.reset();
    Report(a.file(), b.file(), comparison, Counts::are_told).print();
    print_sentences(verdict);
  }
  progress.reset();
  if (options.report) {
    const auto page = agreement::write_report(*options.report, a, b, verdict);
    if (!options.quiet) std::fprintf(stderr, "report: %s\n", page.string().c_str());
  }
  if (options.json) {
    std::printf("%s\n", agreement::verdict_json(a, b, verdict).c_str());
  } else if (!options.quiet && !only_distance) {
    print_verdict(verdict);
  }
  return agreement::exit_code(verdict.outcome);
}

int validate(const ValidateOptions& options) {
  const Interrupt interrupt;
  warn_of_one_file(options);
  try {
    std::optional<Progress> progress;
    progress.emplace("comparing", "trajectories", options.quiet ? Verbosity::quiet : Verbosity::normal);
    const RunControl control{&interrupt.token(), progress->function()};
    return options.bits ? validate_bits(options, control, progress) : judge(options, interrupt, progress);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::cancelled) throw;
    std::fprintf(stderr, "lockstep: stopped before the end of the files: no verdict\n");
    return interrupt.exit_code();
  }
}

}  // namespace

void add_validate(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<ValidateOptions>();
  CLI::App* command = app.add_subcommand("validate", "say whether one result file is a faithful port of another");
  command->add_option("A.h5", options->a, "the reference")->required();
  command->add_option("B.h5", options->b, "the port")->required();
  command->add_flag("--bits", options->bits, "compare bits alone; any difference is exit code 1");
  command->add_flag("--json", options->json, "print the verdict, or with --bits what differs, as JSON");
  command->add_option("--report", options->report, "write a page with pictures into this folder")->type_name("DIR");
  command->add_option("--lyapunov", options->lyapunov, "largest Lyapunov exponent, where no file has a certificate")
      ->check(finite_number());
  command->add_flag("--stored-only", options->stored_only, "solve nothing, where no file has a certificate");
  command->add_flag("-q,--quiet", options->quiet, "print nothing, answer by exit code");
  command->footer(std::string(kValidateExamples) + "\n");
  command->callback([&chosen, options] {
    if (options->bits && options->report) {
      throw Error(ErrorKind::invalid_argument, {"--report", "a page of the verdict, of which --bits asks for none",
                                                "one of the two", "leave out --bits"});
    }
    chosen.run = [options] { return validate(*options); };
  });
}

}  // namespace lockstep::cli
