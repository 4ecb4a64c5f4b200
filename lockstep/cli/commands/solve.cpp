// `lockstep solve`: a problem file in, a result file out.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/agreement/certificate.h"
#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/commands/problem_flags.h"
#include "lockstep/cli/commands/solve_on_ranks.h"
#include "lockstep/cli/ended_early.h"
#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/flag_checks.h"
#include "lockstep/cli/interrupt.h"
#include "lockstep/cli/not_finite.h"
#include "lockstep/cli/out_of_steps.h"
#include "lockstep/cli/problem_file.h"
#include "lockstep/cli/problem_setup.h"
#include "lockstep/cli/progress.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/range_notes.h"
#include "lockstep/cli/ranks.h"
#include "lockstep/cli/shard.h"
#include "lockstep/cli/standstill_notes.h"
#include "lockstep/cli/stored_problem.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/core/pending_file.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/row_selection.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/unfinished_result.h"

namespace lockstep::cli {
namespace {

struct SolveOptions {
  std::filesystem::path problem;
  ProblemOverrides overrides;
  bool quiet = false;
  bool resume = false;
  bool strict = false;
  std::string time_limit;
  bool certificate = false;
  std::string shard;
  std::size_t certificate_samples = agreement::CertificateOptions{}.samples;
};

constexpr const char* kSolveExamples = R"(
Examples:
  lockstep solve lorenz.toml
  lockstep solve lorenz.toml --output /tmp/a.h5 --trajectories 1000 --precision f64
  lockstep solve lorenz.toml --method rk4 --dt 0.001 --overwrite
  lockstep solve lorenz.toml --shard 3/16     the third of sixteen shares, into NAME.shard-03-of-16.h5
  lockstep solve lorenz.toml --certificate    so that validate can judge a port of this run

  lockstep solve lorenz.toml --resume --time-limit 23:50:00    as often as it takes

Flags win over the file's fields; --dt chooses fixed steps. The bits of `state` depend on neither threads nor
instruction set, nor on how often the run was killed and continued. Ctrl-C, SIGTERM and the time limit keep what is
finished and exit with 130, 143 and 124; a second Ctrl-C does not wait. A solve that came to its end exits with 0,
also where trajectories failed (step_too_small, not_finite, too_many_steps): with --strict that is 3. An error is 2.
An earlier file that --overwrite is to replace stays until all are finished: continue with --resume --overwrite. With
--resume a job script may begin, continue and find the work done. Under mpirun or srun each rank solves a share into a
file of its own, and the output is an index of them. docs/problem_file.md lists every key, docs/files.md how runs
survive and are split.)";

// More than this is not filled with NaN when a run is stopped: a queue kills soon after it has asked.
constexpr std::uintmax_t kMostToFill = std::uintmax_t{1} << 30;

std::string trajectories_text(std::size_t count) { return counted_text(count, "trajectory"); }

// Of trajectories that ran out of steps, where tables make these many.
void print_step_limit(const ProblemSetup& setup, const ode::Summary& summary) {
  if (summary.count_of[static_cast<std::size_t>(ode::Status::too_many_steps)] == 0) return;
  for (const std::string& line : setup.step_lines()) std::printf("  %s\n", line.c_str());
}

void print_resets(const ProblemSetup& setup, const ode::Summary& summary, const std::filesystem::path& path) {
  if (setup.resets.empty()) return;
  std::printf("  resets: %s\n", text_of_resets(setup.resets).c_str());
  if (setup.problem.keep_events) {
    const std::size_t events = hdf5::File::open(path).dataset(ode::result_names::kEventTime).size();
    std::printf("  events: %s\n", count_text(events).c_str());
  }
  if (summary.count_of[static_cast<std::size_t>(ode::Status::step_too_small)] == 0) return;
  std::printf("  where they come ever faster, as a ball's last bounces do, let [event] end the trajectory before\n");
}

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) std::fprintf(stderr, "lockstep: note: %s\n", note.c_str());
}

// What guard = "flag" cannot see: it looks at saved states.
void print_unseen(const ProblemSetup& setup) {
  constexpr std::size_t kFew = 20;
  const std::size_t points = setup.problem.save_points();
  if (setup.guard != ode::GuardAction::flag || points > kFew) return;
  std::printf(
      "  guard = flag: only %s of each trajectory looked at, so that excursions from the training range in between are "
      "not seen; take guard = \"stop\", or more save points\n",
      counted_text(points, "saved state").c_str());
}

HasResets has_resets(const ProblemFile& file) { return file.resets.empty() ? HasResets::no : HasResets::yes; }

void print_summary(const ode::Summary& summary, std::size_t earlier, const ode::Options& options, HasResets resets,
                   const std::string& out_of_steps, const std::string& not_finite, const std::string& excursions,
                   const std::string& path, std::uintmax_t bytes) {
  std::size_t total = 0;
  std::string statuses;
  for (int i = 0; i < ode::kStatusCount; ++i) {
    const std::size_t count = summary.count_of[static_cast<std::size_t>(i)];
    total += count;
    if (count == 0) continue;
    statuses += (statuses.empty() ? "" : ", ") + count_text(count) + " " +
                std::string(ode::to_string(static_cast<ode::Status>(i)));
  }
  std::printf("%s: %s\n", trajectories_text(total).c_str(), statuses.c_str());
  for (const ode::Status status : kEndedEarly) {
    if (summary.count_of[static_cast<std::size_t>(status)] == 0) continue;
    const bool explained = status == ode::Status::too_many_steps && !out_of_steps.empty();
    std::string text = explained ? out_of_steps : advice_on(status, options, resets);
    if (status == ode::Status::not_finite && !not_finite.empty()) text += "; " + not_finite;
    std::printf("  %s: %s\n", std::string(ode::to_string(status)).c_str(), text.c_str());
  }
  if (!excursions.empty()) {
    std::printf("  %s: %s\n", std::string(ode::to_string(ode::Status::outside_range)).c_str(), excursions.c_str());
  }
  std::printf("%s accepted, %s rejected, %s of the right-hand side\n",
              counted_text(static_cast<std::size_t>(summary.accepted), "step").c_str(),
              count_text(summary.rejected).c_str(),
              counted_text(static_cast<std::size_t>(summary.evaluations), "evaluation").c_str());
  const std::size_t finished = total - summary.count_of[static_cast<std::size_t>(ode::Status::cancelled)];
  if (finished > earlier) {
    std::printf("%s, %s trajectories/s: %s, %s, %s on %s (%s), %s\n", seconds_text(summary.seconds).c_str(),
                rate_text(static_cast<double>(finished - earlier) / summary.seconds).c_str(), options.method.c_str(),
                to_string(options.control).c_str(), std::string(to_string(options.precision)).c_str(),
                summary.engine.c_str(), summary.cpu_target.c_str(),
                counted_text(static_cast<std::size_t>(summary.threads), "thread").c_str());
  }
  std::printf("%s: %s\n", path.c_str(), size_text(bytes).c_str());
}

std::string finished_text(std::size_t finished, std::size_t total) {
  return count_text(finished) + " of " + trajectories_text(total) + (finished == 1 ? " is" : " are") + " finished";
}

// The exit code of a solve that came to its end. Who reads only that is told of failures where it was asked for.
enum class Told { no, yes };
int code_of(const ode::Summary& summary, bool strict, const std::filesystem::path& path, Told told = Told::yes) {
  if (!strict) return kSuccess;
  std::size_t failed = 0;
  std::string each;
  for (const ode::Status status : kEndedEarly) {
    const std::size_t count = summary.count_of[static_cast<std::size_t>(status)];
    failed += count;
    if (count > 0) each += (each.empty() ? "" : ", ") + count_text(count) + " " + std::string(ode::to_string(status));
  }
  if (failed == 0) return kSuccess;
  if (told == Told::no) return kFailedTrajectories;
  std::fprintf(stderr, "lockstep: %s failed (%s), which --strict does not accept; %s holds them with the others\n",
               trajectories_text(failed).c_str(), each.c_str(), path.c_str());
  return kFailedTrajectories;
}

// Before memory is filled with save points: a number of them that no disk here could hold was a slip.
void require_room_for_states(const ProblemFile& file, const std::filesystem::path& path,
                             const std::optional<Shard>& shard) {
  const auto* points = file.time.save ? std::get_if<EvenlySpaced>(&file.time.save->value) : nullptr;
  if (points == nullptr || points->points < 10'000'000) return;
  std::error_code unknown;
  const auto space = std::filesystem::space(path.has_parent_path() ? path.parent_path() : ".", unknown);
  if (unknown || space.capacity == 0) return;
  const std::size_t trajectories = file.ensemble.trajectories ? file.ensemble.trajectories->value : 1;
  const double element = file.options.precision == Precision::f32 ? 4 : 8;
  const double share = shard ? static_cast<double>(shard->count) : 1;
  const double every = file.output.every ? static_cast<double>(file.output.every->value) : 1;
  const double bytes =  // of one component
      element * static_cast<double>(trajectories) * static_cast<double>(points->points) / (share * every);
  if (bytes <= static_cast<double>(space.capacity)) return;
  throw Error(ErrorKind::invalid_argument,
              {file.time.save->where,
               count_text(points->points) + " save points of " + trajectories_text(trajectories) + ", " +
                   size_text(static_cast<std::uint64_t>(std::min(bytes, 1e18))) + " a component",
               "less than the disk holds, " + size_text(space.capacity), "save fewer points"});
}

std::string text_of_earlier(const ode::UnfinishedResult& left) {
  return left.file.filename().string() + " of an earlier run, where " + finished_text(left.stored, left.trajectories);
}

// NAME.part of a run that was to replace the file.
[[noreturn]] void refuse_beside_finished(const std::filesystem::path& path, const ode::UnfinishedResult& left) {
  throw Error(ErrorKind::file,
              {path.string(), "a file of that name, and beside it " + text_of_earlier(left), "one of the two",
               "continue that run with --resume --overwrite, which replaces the file when all are finished, or "
               "choose another name"});
}

// What is there already, when nobody has said what to do with it.
void refuse_what_is_there(const std::filesystem::path& path) {
  const bool named = std::filesystem::exists(path);
  const auto left = ode::find_unfinished(path);
  if (!named && (!left || left->has_name)) return;
  const bool unfinished = left && !left->complete();
  if (!unfinished) refuse_existing(path);
  if (named && !left->has_name) refuse_beside_finished(path, *left);
  throw Error(ErrorKind::file, {path.string(), text_of_earlier(*left), "none",
                                "continue that run with --resume, or begin anew with --overwrite"});
}

// What --resume cannot continue, where nobody has allowed to replace it.
void refuse_damaged(const std::filesystem::path& path) {
  if (!std::filesystem::is_regular_file(path)) return;  // of which the writer tells
  try {
    const ode::ResultFile file(path);
  } catch (const Error& error) {
    throw Error(ErrorKind::file,
                {path.string(), "a file that is damaged, or no result: " + error.found(), "results to continue",
                 "choose another name, or begin anew with --overwrite instead of --resume"});
  }
}

// Where the problem file does not allow to replace what is there, each run has to be told.
const char* continue_flags(const SolveOptions& options) {
  return options.overrides.overwrite ? "--resume --overwrite" : "--resume";
}

// What --resume found, for people.
void tell(const std::optional<ode::UnfinishedResult>& left, const std::filesystem::path& path, bool can_continue) {
  if (!left) {
    std::fprintf(stderr, "lockstep: nothing of %s to continue: beginning\n", path.c_str());
  } else if (!can_continue) {
    std::fprintf(stderr,
                 "lockstep: one step size for all (control = \"common\") cannot be continued: beginning anew\n");
  } else {
    std::fprintf(stderr, "lockstep: continuing %s: %s\n", left->file.c_str(),
                 finished_text(left->stored, left->trajectories).c_str());
  }
}

bool holds_certificate(const std::filesystem::path& path) {
  return hdf5::File::open(path).has(agreement::kCertificateState);
}

agreement::Certificate certify(const SolveOptions& options, const ProblemSetup& setup, std::uint64_t seed,
                               const Interrupt& interrupt) {
  agreement::CertificateOptions which;
  which.samples = options.certificate_samples;
  which.seed = seed;
  if (setup.part_of) {
    which.first_trajectory = setup.part_of->first_trajectory;
    which.ensemble_trajectories = setup.part_of->trajectories;
  }
  Progress progress("certifying", "trajectories", options.quiet ? Verbosity::quiet : Verbosity::normal);
  const RunControl control{&interrupt.token(), progress.function()};
  return agreement::with_components(agreement::make_certificate(setup.problem, setup.options, which, control),
                                    setup.stored);
}

struct Solved {
  ode::Summary summary;
  std::string excursions;          // from the training range, for people
  std::vector<std::string> notes;  // of what else was found on the way
};

// With statuses as the guard of the net's training range asks.
Solved solve_guarded(const ode::Problem& problem, const ProblemSetup& setup, ode::SolutionSink& sink,
                     const RunControl& control) {
  ode::EndSample ends(sink, problem, setup.options);
  ode::Summary summary;
  std::string excursions;
  if (setup.guard == ode::GuardAction::flag || setup.guard == ode::GuardAction::stop) {
    ode::GuardedSink guarded(ends, problem, setup.options.precision, setup.range, setup.guard);
    summary = ode::solve(problem, setup.options, guarded, control);
    guarded.correct(summary);
    excursions = text_of_excursions(guarded.excursions(), setup);
  } else {
    summary = ode::solve(problem, setup.options, ends, control);
  }
  return {std::move(summary), std::move(excursions), standstill_notes(ends, setup.component_names)};
}

// Solves what is not in the file yet.
Solved solve_open_rows(const ProblemSetup& setup, ode::ResultWriter& writer, const RunControl& control) {
  const std::vector<std::size_t> rows = writer.open_rows();
  if (rows.empty()) return {planned_run(setup), {}};
  if (rows.size() == setup.problem.trajectories()) return solve_guarded(setup.problem, setup, writer, control);
  const ode::Problem open = setup.problem.selection(rows);
  ode::RowSink sink(writer, setup.problem, setup.options.precision, rows);
  return solve_guarded(open, setup, sink, control);
}

// Into the file of its shard where it is one rank's share, which its caller tells of.
int solve(const SolveOptions& options, const std::string& command_line, RankShare* share = nullptr) {
  ProblemFile file = read_problem_file(options.problem);
  apply(options.overrides, file);
  if (!file.output.file) {
    throw Error(ErrorKind::invalid_argument, {file.path.string() + ": output.file", "nothing", "the file to write",
                                              "add [output] with file = \"results.h5\", or --output results.h5"});
  }
  const auto time_limit =
      options.time_limit.empty() ? std::nullopt : std::optional(parse_time_limit(options.time_limit));
  std::optional<Shard> shard;
  if (share != nullptr) shard = share->shard;
  if (!options.shard.empty()) shard = parse_shard(options.shard);
  const std::filesystem::path path = shard && (share != nullptr || !options.overrides.output)
                                         ? shard_path(file.output.file->value, *shard)
                                         : file.output.file->value;
  require_room_for_states(file, path, shard);
  const std::vector<std::filesystem::path> inputs = input_files(file);
  refuse_to_replace(path, inputs);
  refuse_to_replace(file.output.file->value, inputs);  // the index of shares
  require_result_name(file.output.file->value, file.output.file->where);
  Existing existing = file.output.overwrite ? Existing::replace : Existing::refuse;
  PendingFile::require_no_writer(path);
  if (!options.resume && existing == Existing::refuse) refuse_what_is_there(path);
  ProblemSetup setup = set_up(file);
  if (!options.quiet) print_notes(setup.notes);
  if (shard) keep_shard(setup, *shard);
  ode::ResultMetadata metadata{setup.title, setup.stored_names(), setup.parameter_names,
                               describe_problem(file, setup, command_line)};
  metadata.components = setup.stored;
  metadata.must_match = deciding_attributes();
  metadata.part_of = setup.part_of;
  metadata.reset_texts = texts_of_resets(setup.resets);
  if (options.certificate) {
    metadata.attributes.emplace_back("certificate_samples", static_cast<std::int64_t>(options.certificate_samples));
  }
  const auto describe = [&](hdf5::File& to) {
    store_problem(to, file, setup);
    describe_units(to, setup);
  };
  metadata.more = describe;
  for (auto& attribute : describe_run(planned_run(setup))) metadata.attributes.push_back(std::move(attribute));

  auto left = options.resume ? ode::find_unfinished(path) : std::nullopt;
  if (options.resume && !left && existing == Existing::refuse) refuse_damaged(path);
  if (left) ode::check_continues(*left, setup.problem, setup.options.precision, metadata);
  if (left && options.certificate && !holds_certificate(left->file)) {
    throw Error(ErrorKind::file, {left->file.string(), "no certificate", "one, as --certificate asks",
                                  "leave out --certificate, or begin anew with --overwrite instead of --resume"});
  }
  const bool can_continue = !left || left->complete() || setup.options.control != ode::StepControl::common;
  if (left && left->complete() && left->has_name) {
    if (share != nullptr) {
      share->summary = planned_run(setup);
      share->summary.add(left->totals);
      share->earlier = left->stored;
    } else if (!options.quiet) {
      std::printf("%s: %s: nothing to do\n", path.c_str(), finished_text(left->stored, left->trajectories).c_str());
    }
    return share != nullptr ? kSuccess : code_of(left->totals, options.strict, path);
  }
  const bool certify_now = options.certificate && (!left || !can_continue);
  if (!can_continue) {
    // The file of a run that was stopped lies beside NAME.part where one that began anew in its place was killed.
    const auto named = left->has_name ? left : ode::find_named(path);
    if (named && !named->complete()) {
      ode::check_continues(*named, setup.problem, setup.options.precision, metadata);
      existing = Existing::replace;
    }
  }
  if (left && !left->has_name && existing == Existing::refuse && std::filesystem::exists(path))
    refuse_beside_finished(path, *left);
  if (options.resume && !options.quiet) tell(left, path, can_continue);
  if (!can_continue) left.reset();

  const Interrupt interrupt(time_limit);
  if (certify_now) {
    try {
      metadata.more = [&, certificate = certify(options, setup, file.ensemble.seed, interrupt)](hdf5::File& to) {
        describe(to);
        agreement::write_certificate(to, certificate);
      };
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::cancelled) throw;
      if (share == nullptr) std::fprintf(stderr, "lockstep: stopped before the first trajectory: nothing written\n");
      return interrupt.exit_code();
    }
  }
  const Leftover unfinished = left                                              ? Leftover::resume
                              : options.resume || existing == Existing::replace ? Leftover::discard
                                                                                : Leftover::refuse;
  ode::ResultWriter writer(path, setup.problem, setup.options.precision, std::move(metadata), existing, unfinished);
  // An earlier file, which only a whole one is to replace. One that is continued is no longer called so.
  const bool is_there = std::filesystem::exists(path);
  const ode::StoredBefore& earlier = writer.stored_before();
  if (earlier.without_events > 0 && !options.quiet) {
    std::fprintf(stderr, "lockstep: the events of %s are missing (%s.part.events): solving %s again\n",
                 trajectories_text(earlier.without_events).c_str(), path.c_str(),
                 earlier.without_events == 1 ? "it" : "them");
  }
  if (share != nullptr) share->ready();
  Solved solved;
  {
    Progress progress(shard ? "solving share " + shard->text() : "solving", "trajectories",
                      options.quiet ? Verbosity::quiet : Verbosity::normal);
    solved = solve_open_rows(setup, writer, {&interrupt.token(), progress.function()});
  }
  ode::Summary& summary = solved.summary;
  summary.add(earlier.totals);
  if (share != nullptr) {
    share->summary = summary;
    share->earlier = earlier.trajectories;
  }
  const std::size_t total = setup.problem.trajectories();
  const std::size_t open = summary.count_of[static_cast<std::size_t>(ode::Status::cancelled)];
  if (open > 0 && (is_there || writer.open_bytes() > kMostToFill)) {
    const std::filesystem::path kept = writer.leave(describe_run(summary));
    if (share != nullptr) return interrupt.exit_code();
    std::fprintf(stderr, "lockstep: stopped: %s and in %s; %scontinue with %s\n",
                 finished_text(total - open, total).c_str(), kept.c_str(),
                 is_there ? (path.string() + " is the earlier file still; ").c_str() : "", continue_flags(options));
    return interrupt.exit_code();
  }
  const std::uintmax_t bytes = writer.finish(describe_run(summary));
  if (share != nullptr) return open == 0 ? kSuccess : interrupt.exit_code();
  if (!options.quiet) {
    std::string out_of_steps;
    if (setup.options.control != ode::StepControl::fixed &&
        summary.count_of[static_cast<std::size_t>(ode::Status::too_many_steps)] > 0) {
      out_of_steps = explain_out_of_steps(setup.problem, setup.options, path, {&interrupt.token(), {}});
      drop_what_is_told(out_of_steps, solved.notes);
    }
    const std::string not_finite =
        summary.count_of[static_cast<std::size_t>(ode::Status::not_finite)] == 0
            ? std::string()
            : first_not_finite(setup.problem, setup.options, setup.component_names, setup.stored, path);
    print_summary(summary, earlier.trajectories, setup.options, has_resets(file), out_of_steps, not_finite,
                  solved.excursions, path.string(), bytes);
    print_step_limit(setup, summary);
    print_resets(setup, summary, path);
    if (!setup.impulses.empty()) std::printf("  impulses: %s\n", setup.impulses.c_str());
    print_unseen(setup);
    print_notes(solved.notes);
  }
  if (open == 0) return code_of(summary, options.strict, path);
  std::fprintf(stderr, "lockstep: stopped: %s and in %s; continue with --resume\n",
               finished_text(total - open, total).c_str(), path.c_str());
  return interrupt.exit_code();
}

int solve_shares(const SolveOptions& options, const std::string& command_line) {
  RanksRun run;
  SolveOptions mine = options;
  mine.quiet = options.quiet || launch().rank != 0;
  run.quiet = options.quiet;
  run.resume = options.resume;
  run.continue_with = continue_flags(options);
  run.command_line = command_line;
  ProblemFile file;
  try {
    file = read_problem_file(options.problem);
    apply(options.overrides, file);
  } catch (const Error&) {
    // Every share will find the same, and one tells it.
  }
  if (file.options.threads == 0) mine.overrides.threads = threads_of_a_rank();
  if (file.output.file) run.whole = file.output.file->value;
  run.existing = file.output.overwrite ? Existing::replace : Existing::refuse;
  run.solve_share = [&](RankShare& share) { return solve(mine, command_line, &share); };
  run.report = [&](const ode::Summary& all, std::size_t earlier, std::uintmax_t bytes) {
    print_summary(all, earlier, file.options, has_resets(file), {}, {}, {}, run.whole.string(), bytes);
    std::printf("an index of %zu files beside it, one of each rank; `lockstep merge` makes one file of them\n",
                launch().count);
  };
  run.code_of = [&](const ode::Summary& all, bool tells) {
    return code_of(all, options.strict, run.whole, tells ? Told::yes : Told::no);
  };
  return solve_on_ranks(run);
}

}  // namespace

void add_solve(CLI::App& app, Chosen& chosen) {
  const auto options = std::make_shared<SolveOptions>();
  CLI::App* command = app.add_subcommand("solve", "solve the ensemble a problem file describes into an HDF5 file");
  command->add_option("PROBLEM.toml", options->problem, "the problem file")->required();
  command->add_option("-o,--output", options->overrides.output, "file to write, instead of output.file")
      ->check(file_name());
  command->add_flag("--overwrite", options->overrides.overwrite, "replace an existing output");
  command->add_flag("--resume", options->resume, "continue what an earlier run of the same problem has left, if any");
  command->add_flag("--strict", options->strict, "exit with 3 where a trajectory failed; the file is written as ever");
  command->add_option("--time-limit", options->time_limit, "stop after so long and keep what is finished")
      ->type_name("SECONDS|HH:MM:SS");
  command
      ->add_option("--shard", options->shard,
                   "solve share I of N alone, same bits; `lockstep merge` puts the shares together")
      ->type_name("I/N");
  command->add_flag("-q,--quiet", options->quiet, "print errors only");
  command->add_flag("--certificate", options->certificate,
                    "also store perturbed members, for validate to know what rounding does");
  const CLI::Option* samples =
      command->add_option("--certificate-samples", options->certificate_samples, "trajectories to perturb")
          ->transform(whole_number(1))
          ->capture_default_str();
  add_problem_flags(*command, options->overrides);
  command->footer(std::string(kSolveExamples) + "\n");
  command->callback([&chosen, options, samples] {
    if (samples->count() > 0 && !options->certificate) {
      throw Error(ErrorKind::invalid_argument,
                  {"--certificate-samples", std::to_string(options->certificate_samples) + " without --certificate",
                   "the two together", "add --certificate to store one, or leave both out"});
    }
    chosen.run = [options, line = chosen.command_line] {
      const bool ranks = options->shard.empty() && launch().count > 1;
      return ranks ? solve_shares(*options, line) : solve(*options, line);
    };
  });
}

}  // namespace lockstep::cli
