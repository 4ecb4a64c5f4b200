#include "lockstep/cli/commands/solve_on_ranks.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <exception>
#include <new>
#include <numeric>
#include <optional>
#include <string>
#include <vector>

#include "lockstep/cli/commands/commands.h"
#include "lockstep/cli/existing_output.h"
#include "lockstep/cli/provenance.h"
#include "lockstep/cli/ranks.h"
#include "lockstep/cli/text.h"
#include "lockstep/core/error.h"
#include "lockstep/ode/merge.h"

namespace lockstep::cli {
namespace {

struct OtherRankFailed {};
constexpr std::array<int, 3> kStopped{130, 143, 124};  // Ctrl-C, SIGTERM, the time limit

// Counts over all ranks, and the time of the slowest; the rest is this rank's.
ode::Summary sum_over(const Ranks& ranks, ode::Summary summary) {
  std::array<std::int64_t, ode::kStatusCount + 3> values{};
  for (std::size_t i = 0; i < ode::kStatusCount; ++i) values[i] = static_cast<std::int64_t>(summary.count_of[i]);
  values[ode::kStatusCount] = summary.accepted;
  values[ode::kStatusCount + 1] = summary.rejected;
  values[ode::kStatusCount + 2] = summary.evaluations;
  ranks.sum(values);
  std::vector<std::int64_t> nanoseconds(ranks.count());  // each rank has its place
  nanoseconds[ranks.rank()] = static_cast<std::int64_t>(1e9 * summary.seconds);
  ranks.sum(nanoseconds);
  summary.seconds = 1e-9 * static_cast<double>(*std::ranges::max_element(nanoseconds));
  for (std::size_t i = 0; i < ode::kStatusCount; ++i) summary.count_of[i] = static_cast<std::size_t>(values[i]);
  summary.accepted = values[ode::kStatusCount];
  summary.rejected = values[ode::kStatusCount + 1];
  summary.evaluations = values[ode::kStatusCount + 2];
  return summary;
}

// The index that an earlier run of these ranks made is made again; nothing else is touched without --overwrite.
Existing check_index(const RanksRun& run) {
  if (run.existing == Existing::replace || !std::filesystem::exists(run.whole)) return run.existing;
  if (run.resume && hdf5::File::recognises(run.whole) &&
      hdf5::File::open(run.whole).has_attribute(ode::result_names::kIndexFiles)) {
    return Existing::replace;
  }
  refuse_existing(run.whole);
}

std::uintmax_t write_index(const RanksRun& run, std::size_t count, Existing existing) {
  std::vector<std::filesystem::path> parts;
  std::uintmax_t bytes = 0;
  for (std::size_t index = 1; index <= count; ++index) {
    parts.push_back(shard_path(run.whole, {index, count}));
    bytes += std::filesystem::file_size(parts.back());
  }
  ode::MergeOptions options;
  options.existing = existing;
  options.attributes = {{"command", run.command_line}, {"history", history_line(run.command_line)}};
  return bytes + ode::index_parts(parts, run.whole, options);
}

void tell_stopped(const ode::Summary& all, std::size_t count, const std::string& continue_with) {
  const std::size_t total = std::accumulate(all.count_of.begin(), all.count_of.end(), std::size_t{0});
  const std::size_t open = all.count_of[static_cast<std::size_t>(ode::Status::cancelled)];
  std::fprintf(stderr, "lockstep: stopped: %s of %s trajectories are finished; continue with %s on %zu ranks\n",
               count_text(total - open).c_str(), count_text(total).c_str(), continue_with.c_str(), count);
}

void tell(const std::exception_ptr& failure) {
  std::string message;
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    message = "not enough memory; solve fewer trajectories or save points at a time, or on more machines";
  } catch (const std::exception& error) {
    message = error.what();
  }
  std::fprintf(stderr, "lockstep: error: %s\n", one_line(message).c_str());
  std::fflush(stderr);
}

// The same on every rank: any failure, else the reason why some rank stopped.
int common_code(const Ranks& ranks, int mine) {
  if (ranks.first(mine == kFailure) != ranks.count()) return kFailure;
  for (const int code : kStopped) {
    if (ranks.first(mine == code) != ranks.count()) return code;
  }
  return mine;
}

}  // namespace

int solve_on_ranks(const RanksRun& run) {
  std::optional<Ranks> ranks;
  try {
    ranks.emplace();
  } catch (const Error&) {
    if (launch().rank == 0) throw;
    return kFailure;
  }
  const std::size_t count = ranks->count();
  const bool tells = ranks->rank() == 0;
  std::exception_ptr failure;
  bool prepared = false;
  Existing existing = run.existing;
  // Every rank agrees once before the work and once after it, wherever it fails.
  const auto all_prepared = [&](bool failed) {
    prepared = true;
    return ranks->first(failed) == count;
  };
  RankShare share{{ranks->rank() + 1, count}, [&] {
                    if (!all_prepared(false)) throw OtherRankFailed{};
                  }};
  int code = kFailure;
  try {
    if (tells) existing = check_index(run);
    code = run.solve_share(share);
  } catch (const OtherRankFailed&) {
  } catch (...) {
    failure = std::current_exception();
  }
  if (!prepared) {
    const bool all = all_prepared(failure != nullptr);
    if (!all) code = kFailure;
  }
  code = common_code(*ranks, code);
  if (code != kFailure) {
    const ode::Summary all = sum_over(*ranks, share.summary);
    std::array<std::int64_t, 1> earlier{static_cast<std::int64_t>(share.earlier)};
    ranks->sum(earlier);
    if (tells) {
      try {
        if (code == kSuccess) {
          const std::uintmax_t bytes = write_index(run, count, existing);
          if (!run.quiet) run.report(all, static_cast<std::size_t>(earlier[0]), bytes);
        } else {
          tell_stopped(all, count, run.continue_with);
        }
      } catch (...) {
        failure = std::current_exception();
        code = kFailure;
      }
    }
    code = common_code(*ranks, code);
    if (code == kSuccess && run.code_of) code = run.code_of(all, tells);
  }
  if (ranks->first(failure != nullptr) == ranks->rank()) tell(failure);
  // The launcher ends all ranks as soon as one has failed: none leaves before it is told why.
  ranks->first(false);
  return code;
}

}  // namespace lockstep::cli
