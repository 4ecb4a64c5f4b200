// Writers that end early, are watched at work, or go on with what another began.
#include "lockstep/ode/unfinished_result.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/row_selection.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/result_files.h"

namespace lockstep::ode {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ResultFiles, a_writer_that_ends_early_leaves_what_was_committed) {
  const Problem problem = growing_ensemble(1000, 3);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand());
    write_rows<float>(writer, problem, 100, 200);
  }
  EXPECT_FALSE(fs::exists(path("a.h5")));
  EXPECT_THROW(ResultWriter(path("a.h5"), problem, Precision::f32, by_hand()), Error);
  const auto left = find_unfinished(path("a.h5"));
  ASSERT_TRUE(left);
  EXPECT_EQ(left->file, path("a.h5.part"));
  EXPECT_EQ(left->stored, 100u);
  EXPECT_EQ(left->totals.count_of[static_cast<std::size_t>(Status::not_finite)], 20u);
  EXPECT_FALSE(left->complete());
  EXPECT_EQ(ResultFile(left->file).states<float>(150, 1)[2], static_cast<float>(number(150, 0, 2)));
}

TEST_F(ResultFiles, a_file_written_in_parts_is_the_file_written_at_once) {
  // Rows of 48 kB: several chunks.
  const Problem problem = growing_ensemble(613, 4001);
  {
    ResultWriter whole(path("whole.h5"), problem, Precision::f32, by_hand());
    write_all<float>(whole, problem, 613, 1, 1);
    whole.finish({});
  }
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand());
    write_rows<float>(writer, problem, 500, 550);  // killed
  }
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand(), Existing::refuse, Leftover::resume);
    EXPECT_EQ(writer.open_rows().size(), 563u);
    write_rows<float>(writer, problem, 0, 40);
    EXPECT_EQ(writer.leave({}), path("a.h5.part"));  // stopped, too large to complete
  }
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand(), Existing::refuse, Leftover::resume);
    write_rows<float>(writer, problem, 600, 613);
    writer.finish({});  // stopped, and completed with NaN
    EXPECT_EQ(files(), 2u);
  }
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand(), Existing::refuse, Leftover::resume);
    EXPECT_FALSE(fs::exists(path("a.h5")));
    const std::vector<std::size_t> rows = writer.open_rows();
    EXPECT_EQ(rows.size(), 510u);
    EXPECT_EQ(rows.front(), 40u);
    const Problem open = problem.selection(rows);
    ASSERT_EQ(open.trajectories(), 510u);
    RowSink sink(writer, problem, Precision::f32, rows);
    for (std::size_t first = 0; first < 510; first += 34) {
      const SolutionBlock block = sink.acquire(first, 34);
      SolutionBlock there = block;
      for (std::size_t i = 0; i < 34; ++i) {  // fill() goes by the whole problem's numbers
        there.first = rows[first + i];
        there.count = 1;
        fill<float>(there, problem.save_points());
        there.state = static_cast<float*>(there.state) + 4001 * kComponents;
        there.end_state = static_cast<float*>(there.end_state) + kComponents;
        ++there.records;
      }
      sink.commit(block);
    }
    writer.finish({});
  }
  const ResultFile whole(path("whole.h5")), parts(path("a.h5"));
  EXPECT_TRUE(whole.states<float>(0, 613) == parts.states<float>(0, 613));
  EXPECT_TRUE(whole.end_states<float>(0, 613) == parts.end_states<float>(0, 613));
  const auto a = whole.records(0, 613), b = parts.records(0, 613);
  for (std::size_t i = 0; i < 613; ++i) {
    EXPECT_EQ(a[i].status, b[i].status) << i;
    EXPECT_EQ(a[i].accepted, b[i].accepted) << i;
    EXPECT_EQ(a[i].end_time, b[i].end_time) << i;
  }
  EXPECT_EQ(std::get<std::int64_t>(*parts.attribute("resumed")), 3);
  EXPECT_THAT(hdf5::File::open(path("a.h5")).dataset("committed").read<std::int64_t>(), ElementsAre(613));
}

// An engine's block with one slow trajectory. Its others are handed in twice, by halves.
class SlowBlock {
 public:
  SlowBlock(SolutionSink& sink, std::size_t first, std::size_t count, std::size_t slow)
      : sink_(sink), block_(sink.acquire(first, count)), handed_in_(count, 0) {
    for (std::size_t row = 0; row < count; ++row) {
      if (row != slow) (row % 2 == 0 ? halves_[0] : halves_[1]).push_back(row);
    }
  }
  void hand_in(std::size_t half, std::size_t save_points) {
    const SolutionBlock all = block_;
    fill<float>(all, save_points);
    const std::vector<std::size_t>& rows = halves_[half];
    sink_.hand_in(block_, rows);
    for (const std::size_t row : rows) handed_in_[row] = 1;
    block_.handed_in = handed_in_.data();
  }
  void commit() { sink_.commit(block_); }

 private:
  SolutionSink& sink_;
  SolutionBlock block_;
  std::vector<std::uint8_t> handed_in_;
  std::vector<std::size_t> halves_[2];
};

// What a file holds while it grows. HDF5 opens no file a second time in one process in another way: a copy serves.
ResultFile look_at(const fs::path& file) {
  const fs::path copy = file.string() + ".copy";
  fs::copy_file(file, copy, fs::copy_options::overwrite_existing);
  return ResultFile(copy);
}

std::size_t stored_in(const fs::path& file, std::size_t trajectories) {
  if (fs::file_size(file) == 0) return 0;  // it only holds the name yet
  const auto records = look_at(file).records(0, trajectories);
  return static_cast<std::size_t>(
      std::ranges::count_if(records, [](const auto& record) { return record.status != Status::cancelled; }));
}

// Within docs/files.md's second; a busy machine gets ten.
bool become_stored(const fs::path& file, std::size_t trajectories, std::size_t expected) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (stored_in(file, trajectories) < expected) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return stored_in(file, trajectories) == expected;
}

TEST_F(ResultFiles, finished_rows_are_stored_before_their_block_is) {
  // Rows of 48 kB, 64 a chunk: the first block lies within one, the second across three.
  constexpr std::size_t kPoints = 4001;
  const Problem problem = growing_ensemble(300, kPoints);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand());
    ASSERT_NE(writer.wishes(), nullptr);
    SlowBlock within(writer, 10, 40, 7), across(writer, 100, 101, 50);
    within.hand_in(0, kPoints);
    EXPECT_TRUE(become_stored(path("a.h5.part"), 300, 20));
    across.hand_in(1, kPoints);
    across.hand_in(0, kPoints);
    EXPECT_TRUE(become_stored(path("a.h5.part"), 300, 120));
    within.hand_in(1, kPoints);
    EXPECT_TRUE(become_stored(path("a.h5.part"), 300, 139));
    EXPECT_EQ(look_at(path("a.h5.part")).records(150, 1)[0].status, Status::cancelled);
    across.commit();
    within.commit();
    EXPECT_TRUE(become_stored(path("a.h5.part"), 300, 141));
    for (const auto& [first, end] : {std::pair{0, 10}, {50, 100}, {201, 300}}) {
      write_rows<float>(writer, problem, static_cast<std::size_t>(first), static_cast<std::size_t>(end));
    }
    writer.finish({});
  }
  {
    ResultWriter whole(path("whole.h5"), problem, Precision::f32, by_hand());
    write_all<float>(whole, problem, 300, 1, 1);
    whole.finish({});
  }
  EXPECT_TRUE(ResultFile(path("a.h5")).states<float>(0, 300) == ResultFile(path("whole.h5")).states<float>(0, 300));
  EXPECT_THAT(hdf5::File::open(path("a.h5")).dataset("committed").read<std::int64_t>(), ElementsAre(300));
}

// The engine's part: one trajectory that goes on and on among 399 that end at once.
TEST_F(ResultFiles, a_slow_trajectory_holds_up_none_of_its_block) {
  Problem problem = growing_ensemble(400, 1);
  problem.save_times = {1};
  problem.end_times.assign(400, 1);
  problem.end_times[200] = 1e9;
  Options options;
  options.max_steps = 1'000'000'000;
  options.threads = 1;
  CancelToken stop;
  bool stored = false;
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand());
    std::jthread watch([&] {
      stored = become_stored(path("a.h5.part"), 400, 399);
      stop.request();
    });
    solve(problem, options, writer, {&stop, {}});
  }
  EXPECT_TRUE(stored);
  const ResultFile file(path("a.h5.part"));
  EXPECT_EQ(file.records(200, 1)[0].status, Status::cancelled);
  const Solution whole = [&] {
    problem.end_times[200] = 1;
    return solve(problem, options);
  }();
  const std::vector<float> states = file.states<float>(0, 400);
  for (std::size_t i = 0; i < 400; ++i) {
    if (i == 200) continue;
    ASSERT_EQ(states[i * kComponents], static_cast<float>(whole.state(i, 0, 0))) << i;
    ASSERT_EQ(file.records(i, 1)[0].accepted, whole.record(i).accepted) << i;
  }
}

TEST_F(ResultFiles, selections_of_rows_and_components_hand_finished_rows_on) {
  constexpr std::size_t kPoints = 3;
  const Problem problem = growing_ensemble(300, kPoints);
  std::vector<std::size_t> rows;  // 0 to 49 together, then every third
  for (std::size_t i = 0; i < 300; ++i) {
    if (i < 50 || i % 3 == 0) rows.push_back(i);
  }
  ResultMetadata two = by_hand();
  two.components = {2, 0};
  two.component_names = {"z", "x"};
  ResultWriter writer(path("a.h5"), problem, Precision::f32, two);
  RowSink sink(writer, problem, Precision::f32, rows);
  EXPECT_EQ(sink.wishes(), writer.wishes());
  SlowBlock together(sink, 0, 50, 49), apart(sink, 50, 60, 0);
  together.hand_in(1, kPoints);
  apart.hand_in(1, kPoints);
  EXPECT_TRUE(become_stored(path("a.h5.part"), 300, 24 + 30));
  together.hand_in(0, kPoints);
  together.commit();
  apart.hand_in(0, kPoints);
  apart.commit();
  EXPECT_TRUE(become_stored(path("a.h5.part"), 300, 110));
  const ResultFile file = look_at(path("a.h5.part"));
  // fill() goes by the numbers within the selection.
  EXPECT_THAT(file.states<float>(rows[61], 1), ElementsAre(number(61, 0, 2), number(61, 0, 0), number(61, 1, 2),
                                                           number(61, 1, 0), number(61, 2, 2), number(61, 2, 0)));
  EXPECT_THAT(file.end_states<float>(30, 1), ElementsAre(number(30, 100, 2), number(30, 100, 0)));
  EXPECT_EQ(file.records(rows[109], 1)[0].accepted, 109);
}

TEST_F(ResultFiles, a_file_of_another_run_is_not_continued) {
  const Problem problem = growing_ensemble(100, 3);
  ResultMetadata described = by_hand();
  described.must_match = {"method", "rtol"};
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, described);
    write_rows<float>(writer, problem, 0, 50);
  }
  const auto message = [&](const Problem& other, Precision precision, const ResultMetadata& about) -> std::string {
    return message_of([&] { ResultWriter(path("a.h5"), other, precision, about, Existing::refuse, Leftover::resume); });
  };
  ResultMetadata changed = described;
  changed.attributes = {{"method", "by machine"}, {"rtol", 1e-9}};
  EXPECT_THAT(
      message(problem, Precision::f32, changed),
      HasSubstr("a.h5.part: found results of another run: method by hand, rtol 0.001, expected method by machine, "
                "rtol 1e-09; undo the change"));
  EXPECT_THAT(message(problem, Precision::f64, described), HasSubstr("precision f32, expected precision f64"));
  EXPECT_THAT(message(growing_ensemble(99, 3), Precision::f32, described),
              HasSubstr("trajectories 100, expected trajectories 99"));
  EXPECT_THAT(message(growing_ensemble(100, 4), Precision::f32, described),
              HasSubstr("save points 3, expected save points 4"));
  Problem other = problem;
  other.initial_states[3 * 71 + 1] = 0.125;
  EXPECT_THAT(message(other, Precision::f32, described), HasSubstr("initial y of trajectory 71"));
  other = problem;
  other.parameters = {-2};
  EXPECT_THAT(message(other, Precision::f32, described), HasSubstr("rate -1, expected rate -2"));
  other = problem;
  other.save_times[1] /= 2;
  EXPECT_THAT(message(other, Precision::f32, described), HasSubstr("save point 1"));
  other = problem;
  other.impulses = {{0.5, 1, 3}};
  EXPECT_THAT(message(other, Precision::f32, described), HasSubstr("impulses none, expected impulses 1 shared"));
  EXPECT_EQ(find_unfinished(path("a.h5"))->stored, 50u) << "the file stays as it was";
}

TEST_F(ResultFiles, a_file_with_other_impulses_is_not_continued) {
  Problem problem = growing_ensemble(100, 3);
  const auto refused = [&](const Problem& now) -> std::string {
    return message_of(
        [&] { ResultWriter(path("a.h5"), now, Precision::f32, by_hand(), Existing::refuse, Leftover::resume); });
  };
  const auto begin = [&] {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand(), Existing::replace, Leftover::discard);
    write_rows<float>(writer, problem, 0, 50);
  };
  problem.impulses = {{0.5, 1, 3}, {0.75, 1, 0, 0.5}};
  begin();
  EXPECT_EQ(refused(problem), "no error");
  Problem other = problem;
  other.impulses[1].factor = 0.25;
  EXPECT_THAT(refused(other), HasSubstr("impulse 1: factor 0.5, expected impulse 1: factor 0.25"));
  other = problem;
  other.impulses.pop_back();
  EXPECT_THAT(refused(other), HasSubstr("impulses 2 shared, expected impulses 1 shared"));
  problem.impulses = {{0.5, 1, 3}, {0.75, 1, 0, 0.5}, {0.25, 0, 1}};
  problem.first_impulse.assign(101, 3);
  std::fill_n(problem.first_impulse.begin(), 60, 0);
  problem.first_impulse[60] = 2;  // two of trajectory 59, one of trajectory 60
  begin();
  EXPECT_EQ(refused(problem), "no error");
  other = problem;
  other.impulses[2].time = 0.125;
  EXPECT_THAT(refused(other), HasSubstr("impulse 0 of trajectory 60: time 0.25, expected"));
  other = problem;
  other.first_impulse[60] = 1;
  EXPECT_THAT(refused(other), HasSubstr("impulses of trajectory 59 2, expected impulses of trajectory 59 1"));
}

TEST_F(ResultFiles, a_damaged_unfinished_file_is_not_taken_for_nothing) {
  std::ofstream(path("a.h5.part")) << "not HDF5";
  const Problem problem = growing_ensemble(10, 2);
  try {
    ResultWriter(path("a.h5"), problem, Precision::f32, by_hand(), Existing::refuse, Leftover::resume);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("a.h5.part: found no HDF5 signature, expected a file that can be continued; "
                                        "remove"));
  }
}

}  // namespace
}  // namespace lockstep::ode
