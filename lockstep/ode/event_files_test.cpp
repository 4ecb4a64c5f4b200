// Events in result files: written by any number of threads, by writers that are killed or stopped and go on, merged,
// packed, read in part, and refused where they are damaged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/merge.h"
#include "lockstep/ode/pack.h"
#include "lockstep/ode/read_solution.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/row_selection.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/bouncing_balls.h"
#include "lockstep/ode/testing/jumps.h"
#include "lockstep/ode/testing/result_files.h"
#include "lockstep/ode/unfinished_result.h"

namespace lockstep::ode {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing::ResultFiles;
using EventFiles = ResultFiles;

// Balls with no bounce to a few; of the lowest ones' more than times tell apart.
Problem bouncing(std::size_t count) {
  Problem problem = testing::balls(count);
  for (std::size_t i = 0; i < count; ++i) problem.initial_states[4 * i] = i % 7 == 3 ? 30 : 0.05 + 0.01 * (i % 50);
  problem.keep_events = true;
  return problem;
}

ResultMetadata balls_metadata() {
  return {.title = "Balls",
          .component_names = {"x", "v", "n", "last"},
          .parameter_names = {"bounce"},
          .reset_texts = {"v becomes -p v where x falls through 0"}};
}

void solve_rows(ResultWriter& writer, const Problem& problem, const Options& options,
                const std::vector<std::size_t>& rows) {
  RowSink sink(writer, problem, options.precision, rows);
  solve(problem.selection(rows), options, sink);
}

std::vector<std::size_t> range(std::size_t first, std::size_t end, std::size_t stride = 1) {
  std::vector<std::size_t> rows;
  for (; first < end; first += stride) rows.push_back(first);
  return rows;
}

void write(const fs::path& path, const Problem& problem, const Options& options, ResultMetadata metadata) {
  ResultWriter writer(path, problem, options.precision, std::move(metadata));
  solve(problem, options, writer);
  writer.finish({});
}

TEST_F(EventFiles, hold_what_the_solution_holds) {
  for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{33}, std::size_t{1009}}) {
    const Problem problem = bouncing(count);
    const std::string name = std::to_string(count) + ".h5";
    Options options;
    options.threads = 2;
    write(path(name), problem, options, balls_metadata());
    const EventLog expected = solve(problem).event_log();
    const ResultFile file(path(name));
    ASSERT_TRUE(file.keeps_events());
    EXPECT_EQ(file.events(0, count), expected);
    EXPECT_EQ(read_solution(file).event_log(), expected);
    EXPECT_THAT(file.hdf5().dataset("event_reset").string_list_attribute("resets"),
                ElementsAre("v becomes -p v where x falls through 0"));
    EXPECT_FALSE(fs::exists(path(name + ".part.events")));
  }
  EXPECT_EQ(files(), 4u);
}

TEST_F(EventFiles, are_read_in_part) {
  const Problem problem = bouncing(100);
  write(path("a.h5"), problem, {}, balls_metadata());
  const Solution all = solve(problem);
  const ResultFile file(path("a.h5"));
  for (const auto& [first, count, stride] :
       {std::tuple<std::size_t, std::size_t, std::size_t>{10, 30, 1}, {3, 97, 7}, {99, 1, 1}, {100, 0, 1}}) {
    const Solution part = read_solution(file, {.trajectories = {first, count, stride}, .components = {"v"}});
    ASSERT_TRUE(part.keeps_events());
    for (std::size_t i = 0; i < part.trajectories(); ++i)
      EXPECT_TRUE(std::ranges::equal(part.events(i), all.events(first + i * stride))) << first << " " << i;
  }
}

TEST_F(EventFiles, are_absent_where_nobody_asked) {
  Problem problem = bouncing(10);
  problem.keep_events = false;
  write(path("a.h5"), problem, {}, balls_metadata());
  const ResultFile file(path("a.h5"));
  EXPECT_FALSE(file.keeps_events());
  EXPECT_FALSE(file.hdf5().has("event_trajectory"));
  EXPECT_EQ(file.events(0, 10), EventLog{});
  EXPECT_FALSE(read_solution(file).keeps_events());
}

TEST_F(EventFiles, do_not_depend_on_the_components_that_are_stored) {
  const Problem problem = bouncing(200);
  ResultMetadata metadata = balls_metadata();
  metadata.component_names = {"n"};
  metadata.components = {2};
  write(path("a.h5"), problem, {}, metadata);
  EXPECT_EQ(ResultFile(path("a.h5")).events(0, 200), solve(problem).event_log());
}

// Killed, left, completed with cancelled trajectories, and gone on with each time: what an uninterrupted run writes.
TEST_F(EventFiles, of_a_run_that_was_stopped_again_and_again_are_those_of_one) {
  const Problem problem = bouncing(700);
  const Options options;
  const auto resume = [&] {
    return ResultWriter(path("a.h5"), problem, options.precision, balls_metadata(), Existing::refuse, Leftover::resume);
  };
  {
    ResultWriter writer(path("a.h5"), problem, options.precision, balls_metadata());
    solve_rows(writer, problem, options, range(500, 560));
  }
  EXPECT_TRUE(fs::exists(path("a.h5.part.events")));
  const EventLog expected = solve(problem).event_log();
  const auto expect_of = [&](const ResultFile& file, const auto& finished) {
    ASSERT_TRUE(file.keeps_events());
    const EventLog found = file.events(0, 700);
    for (std::size_t i = 0; i < 700; ++i) {
      ASSERT_TRUE(
          std::ranges::equal(found.times_of(i), finished(i) ? expected.times_of(i) : std::span<const double>{}));
      ASSERT_EQ(found.count(i), finished(i) ? expected.count(i) : 0) << i;
    }
    EXPECT_EQ(file.events(520, 3).times_of(1).size(), found.count(521));
  };
  // An unfinished file's lie beside it, where its readers find them.
  {
    const ResultFile unfinished(path("a.h5.part"));
    expect_of(unfinished, [](std::size_t i) { return i >= 500 && i < 560; });
    EXPECT_EQ(read_solution(unfinished).event_log(), unfinished.events(0, 700));
  }
  {
    ResultWriter writer = resume();
    EXPECT_EQ(writer.open_rows().size(), 640u);
    solve_rows(writer, problem, options, range(0, 300, 3));
    EXPECT_EQ(writer.leave({}), path("a.h5.part"));
  }
  expect_of(ResultFile(path("a.h5.part")),
            [](std::size_t i) { return (i >= 500 && i < 560) || (i < 300 && i % 3 == 0); });
  {
    ResultWriter writer = resume();
    EXPECT_EQ(writer.open_rows().size(), 540u);
    solve_rows(writer, problem, options, range(650, 700));
    writer.finish({});  // the others are cancelled, and have none
  }
  EXPECT_EQ(files(), 1u);
  const EventLog some = ResultFile(path("a.h5")).events(0, 700);
  for (std::size_t i = 0; i < 700; ++i) {
    const bool solved = (i >= 500 && i < 560) || (i < 300 && i % 3 == 0) || i >= 650;
    ASSERT_EQ(some.count(i), solved ? expected.count(i) : 0) << i;
  }
  {
    ResultWriter writer = resume();
    EXPECT_EQ(writer.open_rows().size(), 490u);
    solve_rows(writer, problem, options, range(1, 20));  // and once more
  }
  // The file has datasets of when it was finished in part, but what counts lies beside it.
  expect_of(ResultFile(path("a.h5.part")),
            [](std::size_t i) { return i < 20 || (i >= 500 && i < 560) || (i < 300 && i % 3 == 0) || i >= 650; });
  EXPECT_EQ(files(), 2u);
  // Without it the datasets' count, of which a kill while it is begun leaves nothing else.
  fs::rename(path("a.h5.part.events"), path("aside"));
  std::ofstream(path("a.h5.part.events")).close();
  expect_of(ResultFile(path("a.h5.part")),
            [](std::size_t i) { return (i >= 500 && i < 560) || (i < 300 && i % 3 == 0) || i >= 650; });
  fs::rename(path("aside"), path("a.h5.part.events"));
  {
    ResultWriter writer = resume();
    solve_rows(writer, problem, options, writer.open_rows());
    writer.finish({});
  }
  EXPECT_EQ(files(), 1u);
  const ResultFile file(path("a.h5"));
  EXPECT_EQ(file.events(0, 700), expected);
  const auto records = file.records(0, 700);
  EXPECT_TRUE(std::ranges::none_of(records, [](const auto& r) { return r.status == Status::cancelled; }));
}

// Trajectories in the journal's records that are whole among its first `end` bytes: as many as a writer had in a
// quarter of a second. A record: a digest of 32 bytes, how many words follow, and these.
std::size_t trajectories_of_records(const fs::path& journal, std::uintmax_t end) {
  std::ifstream file(journal, std::ios::binary);
  std::size_t count = 0;
  for (std::uintmax_t at = 0; at + 40 <= end;) {
    std::uint64_t size = 0;
    file.seekg(static_cast<std::streamoff>(at + 32));
    if (!file.read(reinterpret_cast<char*>(&size), 8) || at + 40 + 8 * size > end) break;
    std::vector<std::uint64_t> words(size);
    file.read(reinterpret_cast<char*>(words.data()), static_cast<std::streamsize>(8 * size));
    // Its number, how many events it has, and two words of each.
    for (std::size_t i = 0; i + 2 <= words.size(); i += 2 + 2 * words[i + 1]) ++count;
    at += 40 + 8 * size;
  }
  return count;
}

// Where its events are lost, or cut short, a trajectory is solved again.
TEST_F(EventFiles, that_were_lost_are_found_again) {
  const Problem problem = bouncing(300);
  const Options options;
  const EventLog expected = solve(problem).event_log();
  const fs::path journal = path("a.h5.part.events");
  for (const std::uintmax_t left : {std::uintmax_t{0}, std::uintmax_t{20}, std::uintmax_t{700}}) {
    {
      ResultWriter writer(path("a.h5"), problem, options.precision, balls_metadata(), Existing::replace);
      solve_rows(writer, problem, options, range(0, 100));
    }
    {
      ResultWriter writer(path("a.h5"), problem, options.precision, balls_metadata(), Existing::replace,
                          Leftover::resume);
      solve_rows(writer, problem, options, range(100, 200));
    }
    std::uintmax_t first_record = 0;
    {
      std::ifstream file(journal, std::ios::binary);
      file.seekg(32);
      file.read(reinterpret_cast<char*>(&first_record), 8);
    }
    ASSERT_EQ(trajectories_of_records(journal, fs::file_size(journal)), 200u);
    std::size_t kept = 0;
    if (left == 0) {
      fs::remove(journal);
    } else if (left == 20) {
      kept = trajectories_of_records(journal, 40 + 8 * first_record);
      std::fstream file(journal, std::ios::binary | std::ios::in | std::ios::out);
      file.seekp(static_cast<std::streamoff>(40 + 8 * first_record + 60));  // within the second record
      file.put('?');
    } else {
      fs::resize_file(journal, 40 + 8 * first_record + left);
      kept = trajectories_of_records(journal, 40 + 8 * first_record + left);
    }
    ResultWriter writer(path("a.h5"), problem, options.precision, balls_metadata(), Existing::replace,
                        Leftover::resume);
    EXPECT_EQ(writer.open_rows().size(), 300 - kept) << left;
    EXPECT_TRUE(left == 0 ? kept == 0 : kept > 0 && kept < 200) << kept << " of " << left;
    solve_rows(writer, problem, options, writer.open_rows());
    writer.finish({});
    EXPECT_EQ(ResultFile(path("a.h5")).events(0, 300), expected) << left;
    fs::remove(path("a.h5"));
  }
}

// Killed while its last datasets were being written: what they hold then is not asked.
TEST_F(EventFiles, that_a_kill_left_half_written_are_written_again) {
  const Problem problem = bouncing(50);
  const EventLog expected = solve(problem).event_log();
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, balls_metadata());
    solve_rows(writer, problem, {}, range(0, 50));
  }
  {
    hdf5::File file = hdf5::File::open(path("a.h5.part"), hdf5::File::Access::update);
    file.create_dataset<double>("event_time", {7}).write<double>(std::vector<double>(7));
    file.create_dataset<std::int32_t>("event_reset", {7}).write<std::int32_t>(std::vector<std::int32_t>(7));
    file.create_dataset<std::int64_t>("event_trajectory", {7})
        .write<std::int64_t>(std::vector<std::int64_t>{5, 5, 0, 99, -1, 0, 0});
  }
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, balls_metadata(), Existing::refuse, Leftover::resume);
    EXPECT_TRUE(writer.open_rows().empty());
    writer.finish({});
  }
  EXPECT_EQ(ResultFile(path("a.h5")).events(0, 50), expected);
}

TEST_F(EventFiles, of_a_run_that_began_anew_are_its_own) {
  const Problem problem = bouncing(90);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, balls_metadata());
    solve_rows(writer, problem, {}, range(0, 90));
  }
  Problem other = bouncing(90);
  other.keep_events = false;
  {
    ResultWriter writer(path("a.h5"), other, Precision::f32, balls_metadata(), Existing::replace);
    EXPECT_FALSE(fs::exists(path("a.h5.part.events")));
    solve(other, {}, writer);
    writer.finish({});
  }
  EXPECT_EQ(files(), 1u);
  {
    ResultWriter writer(path("b.h5"), problem, Precision::f32, balls_metadata());
    EXPECT_TRUE(fs::exists(path("b.h5.part.events")));
  }  // nothing was solved: nothing stays
  EXPECT_EQ(files(), 1u);
}

// As where the disk is full.
TEST_F(EventFiles, of_a_run_that_could_not_begin_leave_nothing) {
  const Problem problem = bouncing(7);
  ResultMetadata metadata = balls_metadata();
  metadata.more = [](hdf5::File& file) { throw Error(ErrorKind::file, {file.path().string(), "no room", "room", {}}); };
  EXPECT_THROW(ResultWriter(path("a.h5"), problem, Precision::f64, std::move(metadata)), Error);
  EXPECT_EQ(files(), 0u);
}

TEST_F(EventFiles, of_parts_are_merged_indexed_and_packed) {
  const Problem problem = bouncing(2000);
  const EventLog expected = solve(problem).event_log();
  write(path("whole.h5"), problem, {}, balls_metadata());
  std::vector<fs::path> parts;
  for (const auto& [first, count] : {std::pair<std::size_t, std::size_t>{0, 3}, {3, 1}, {4, 1996}}) {
    ResultMetadata metadata = balls_metadata();
    metadata.part_of = {.first_trajectory = first, .trajectories = 2000, .parameters_per_trajectory = true};
    parts.push_back(path(std::to_string(first) + ".h5"));
    write(parts.back(), problem.part(first, count), {}, metadata);
  }
  EXPECT_EQ(ResultFile(parts[1]).events(0, 1).times, std::vector<double>{});  // the ball from 30 m
  EXPECT_THAT(ResultFile(parts[2]).hdf5().dataset("event_trajectory").read<std::int64_t>({0}, {1}), ElementsAre(4));
  merge_parts(parts, path("merged.h5"));
  index_parts(parts, path("index.h5"));
  pack(path("whole.h5"), path("packed.h5"));
  for (const char* name : {"merged.h5", "index.h5", "packed.h5"}) {
    const ResultFile file(path(name));
    EXPECT_EQ(file.events(0, 2000), expected) << name;
    EXPECT_EQ(file.events(5, 700).times.size(), expected.first[705] - expected.first[5]) << name;
    EXPECT_THAT(file.hdf5().dataset("event_time").scale_names(), ElementsAre("event_trajectory"));
  }
}

TEST_F(EventFiles, that_are_damaged_are_refused) {
  const Problem problem = bouncing(20);
  write(path("a.h5"), problem, {}, balls_metadata());
  {
    hdf5::File file = hdf5::File::open(path("a.h5"), hdf5::File::Access::update);
    file.dataset("event_trajectory").write<std::int64_t>(std::vector<std::int64_t>{9}, {0}, {1});
  }
  EXPECT_THAT(message_of([&] { ResultFile(path("a.h5")).events(0, 20); }),
              HasSubstr("event_trajectory: found number 0 out of order, expected ascending numbers of trajectories"));
  {
    hdf5::File file = hdf5::File::open(path("a.h5"), hdf5::File::Access::update);
    file.remove("event_reset");
    file.create_dataset<std::int32_t>("event_reset", {3});
  }
  EXPECT_THAT(message_of([&] { ResultFile(path("a.h5")); }), HasSubstr("event_reset: found shape 3, expected "));
}

}  // namespace
}  // namespace lockstep::ode
