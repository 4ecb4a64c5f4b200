// The writer fed by hand, block by block, and what the reader finds afterwards.
#include "lockstep/ode/result_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/row_selection.h"
#include "lockstep/ode/solve.h"
#include "lockstep/ode/testing/plain_function.h"
#include "lockstep/ode/unfinished_result.h"

namespace lockstep::ode {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr std::size_t kComponents = 3;

// A folder of its own for each test, so that leftovers are seen.
class ResultFiles : public ::testing::Test {
 protected:
  ResultFiles()
      : folder_(fs::path(::testing::TempDir()) /
                ("result_file_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ResultFiles() override { fs::remove_all(folder_); }

  fs::path path(const std::string& name) const { return folder_ / name; }
  std::size_t files() const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()));
  }

  fs::path folder_;
};

Problem ensemble(std::size_t trajectories, std::size_t save_points) {
  Problem problem;
  problem.rhs = testing::plain_function(kComponents, 1, [](double, auto u, auto p, auto du) {
    for (int i = 0; i < 3; ++i) du(i) = p(0) * u(i);
  });
  problem.initial_states.resize(trajectories * kComponents);
  std::iota(problem.initial_states.begin(), problem.initial_states.end(), 0.0);
  problem.parameters = {-1};
  problem.end_times = {1};
  for (std::size_t i = 0; i < save_points; ++i) {
    problem.save_times.push_back(static_cast<double>(i + 1) / static_cast<double>(save_points));
  }
  return problem;
}

ResultMetadata metadata() {
  return {"A test", {"x", "y", "z"}, {"rate"}, {{"method", std::string("by hand")}, {"rtol", 1e-3}}};
}

// A number that says where it belongs.
double number(std::size_t trajectory, std::size_t time, std::size_t component) {
  return static_cast<double>(trajectory) + static_cast<double>(time) / 128 + static_cast<double>(component) / 4;
}

template <class T>
void fill(const SolutionBlock& block, std::size_t save_points) {
  for (std::size_t i = 0; i < block.count; ++i) {
    const std::size_t trajectory = block.first + i;
    T* state = static_cast<T*>(block.state) + i * save_points * kComponents;
    T* end_state = static_cast<T*>(block.end_state) + i * kComponents;
    for (std::size_t c = 0; c < kComponents; ++c) {
      for (std::size_t t = 0; t < save_points; ++t)
        state[t * kComponents + c] = static_cast<T>(number(trajectory, t, c));
      end_state[c] = static_cast<T>(number(trajectory, 100, c));
    }
    block.records[i] = {trajectory % 5 == 0 ? Status::not_finite : Status::success, static_cast<int>(trajectory), 2, 3,
                        static_cast<double>(trajectory) / 2};
  }
}

// Commits all trajectories in blocks of `block`, in an order shuffled by `seed`, from `threads` threads.
template <class T>
void write_all(ResultWriter& writer, const Problem& problem, std::size_t block, unsigned seed, int threads) {
  std::vector<std::size_t> firsts;
  for (std::size_t first = 0; first < problem.trajectories(); first += block) firsts.push_back(first);
  std::shuffle(firsts.begin(), firsts.end(), std::mt19937(seed));
  std::vector<std::thread> pool;
  for (int thread = 0; thread < threads; ++thread) {
    pool.emplace_back([&, thread] {
      for (std::size_t i = static_cast<std::size_t>(thread); i < firsts.size();
           i += static_cast<std::size_t>(threads)) {
        const SolutionBlock b = writer.acquire(firsts[i], std::min(block, problem.trajectories() - firsts[i]));
        fill<T>(b, problem.save_points());
        writer.commit(b);
      }
    });
  }
  for (std::thread& thread : pool) thread.join();
}

TEST_F(ResultFiles, what_was_written_is_read_back) {
  const Problem problem = ensemble(100, 7);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f64, metadata());
    write_all<double>(writer, problem, 32, 1, 1);
    EXPECT_FALSE(fs::exists(path("a.h5"))) << "the name appears when the file is complete";
    const std::uintmax_t size = writer.finish({{"seconds", 1.5}});
    EXPECT_EQ(size, fs::file_size(path("a.h5")));
  }
  EXPECT_EQ(files(), 1u);
  EXPECT_TRUE(ResultFile::recognises(path("a.h5")));
  const ResultFile file(path("a.h5"));
  EXPECT_EQ(file.precision(), Precision::f64);
  EXPECT_EQ(file.trajectories(), 100u);
  EXPECT_EQ(file.save_points(), 7u);
  EXPECT_THAT(file.component_names(), ElementsAre("x", "y", "z"));
  EXPECT_THAT(file.parameter_names(), ElementsAre("rate"));
  EXPECT_THAT(file.parameters(5), ElementsAre(-1));
  EXPECT_EQ(file.times(0), problem.save_times);
  EXPECT_EQ(file.initial_states(0, 100), problem.initial_states);
  const std::vector<double> states = file.states<double>(31, 3);
  ASSERT_EQ(states.size(), 3u * 7 * kComponents);
  EXPECT_EQ(states[(1 * 7 + 4) * kComponents + 2], number(32, 4, 2));
  EXPECT_EQ(file.end_states<double>(99, 1)[1], number(99, 100, 1));
  const auto records = file.records(10, 2);
  EXPECT_EQ(records[0].status, Status::not_finite);
  EXPECT_EQ(records[1].status, Status::success);
  EXPECT_EQ(records[1].accepted, 11);
  EXPECT_EQ(records[1].rejected, 2);
  EXPECT_EQ(records[1].evaluations, 3);
  EXPECT_EQ(records[1].end_time, 5.5);
  EXPECT_EQ(file.text_attribute("title"), "A test");
  EXPECT_EQ(file.text_attribute("method"), "by hand");
  EXPECT_EQ(std::get<double>(*file.attribute("seconds")), 1.5);
}

TEST_F(ResultFiles, bytes_depend_on_neither_order_nor_blocks_nor_threads) {
  // 4,001 save points: rows of 48 kB, so that several chunks are needed and blocks of 50 lie across their borders.
  const Problem problem = ensemble(613, 4001);
  const auto write = [&](const char* name, std::size_t block, unsigned seed, int threads) {
    ResultWriter writer(path(name), problem, Precision::f32, metadata());
    write_all<float>(writer, problem, block, seed, threads);
    writer.finish({});
    std::ifstream stream(path(name), std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const std::string whole = write("whole.h5", 613, 1, 1);
  EXPECT_TRUE(whole == write("tiles.h5", 32, 2, 1));
  EXPECT_TRUE(whole == write("across.h5", 50, 3, 1));
  EXPECT_TRUE(whole == write("threads.h5", 32, 4, 3));
}

TEST_F(ResultFiles, records_of_many_short_trajectories_leave_memory_before_the_commit) {
  const std::size_t trajectories = 300'007;  // 10 MB of records, written in a fraction of the time between two commits
  const Problem problem = ensemble(trajectories, 1);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, metadata());
    write_all<float>(writer, problem, 4096, 5, 2);
    writer.finish({});
  }
  const ResultFile file(path("a.h5"));
  const auto records = file.records(0, trajectories);
  const auto end_states = file.end_states<float>(0, trajectories);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < trajectories; ++i) {
    const auto number_of = static_cast<int>(i);
    const bool right = records[i].status == (i % 5 == 0 ? Status::not_finite : Status::success) &&
                       records[i].accepted == number_of && records[i].rejected == 2 && records[i].evaluations == 3 &&
                       records[i].end_time == static_cast<double>(i) / 2 &&
                       end_states[3 * i + 2] == static_cast<float>(number(i, 100, 2));
    if (!right && ++wrong < 5) ADD_FAILURE() << "trajectory " << i;
  }
  EXPECT_EQ(wrong, 0u);
}

TEST_F(ResultFiles, trajectories_never_committed_are_cancelled_and_not_a_number) {
  const Problem problem = ensemble(5000, 2);
  ResultWriter writer(path("a.h5"), problem, Precision::f32, metadata());
  const SolutionBlock block = writer.acquire(100, 50);
  fill<float>(block, 2);
  writer.commit(block);
  writer.acquire(4000, 10);  // never committed
  writer.finish({});
  const ResultFile file(path("a.h5"));
  const auto records = file.records(0, 5000);
  const auto states = file.states<float>(0, 5000);
  const auto end_states = file.end_states<float>(0, 5000);
  for (std::size_t i = 0; i < 5000; ++i) {
    const bool committed = i >= 100 && i < 150;
    EXPECT_EQ(records[i].status != Status::cancelled, committed) << i;
    EXPECT_EQ(std::isnan(states[i * 6 + 5]), !committed) << i;
    EXPECT_EQ(std::isnan(end_states[i * 3]), !committed) << i;
  }
  EXPECT_EQ(records[120].accepted, 120);
  EXPECT_THAT(hdf5::File::open(path("a.h5")).dataset("committed").read<std::int64_t>(), ElementsAre(50));
}

TEST_F(ResultFiles, without_finish_nothing_remains) {
  const Problem problem = ensemble(10, 2);
  { ResultWriter writer(path("a.h5"), problem, Precision::f32, metadata()); }
  EXPECT_EQ(files(), 0u);
}

// Commits rows [first, end) of the problem.
template <class T>
void write_rows(ResultWriter& writer, const Problem& problem, std::size_t first, std::size_t end) {
  const SolutionBlock block = writer.acquire(first, end - first);
  fill<T>(block, problem.save_points());
  writer.commit(block);
}

TEST_F(ResultFiles, a_writer_that_ends_early_leaves_what_was_committed) {
  const Problem problem = ensemble(1000, 3);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, metadata());
    write_rows<float>(writer, problem, 100, 200);
  }
  EXPECT_FALSE(fs::exists(path("a.h5")));
  EXPECT_THROW(ResultWriter(path("a.h5"), problem, Precision::f32, metadata()), Error);
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
  const Problem problem = ensemble(613, 4001);
  {
    ResultWriter whole(path("whole.h5"), problem, Precision::f32, metadata());
    write_all<float>(whole, problem, 613, 1, 1);
    whole.finish({});
  }
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, metadata());
    write_rows<float>(writer, problem, 500, 550);  // killed
  }
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, metadata(), Existing::refuse, Leftover::resume);
    EXPECT_EQ(writer.open_rows().size(), 563u);
    write_rows<float>(writer, problem, 0, 40);
    EXPECT_EQ(writer.leave({}), path("a.h5.part"));  // stopped, too large to complete
  }
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, metadata(), Existing::refuse, Leftover::resume);
    write_rows<float>(writer, problem, 600, 613);
    writer.finish({});  // stopped, and completed with NaN
    EXPECT_EQ(files(), 2u);
  }
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, metadata(), Existing::refuse, Leftover::resume);
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
      : sink_(sink), block_(sink.acquire(first, count)), handed_in_(count, 0), slow_(slow) {
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
  std::size_t slow_;
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
  const Problem problem = ensemble(300, kPoints);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, metadata());
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
    ResultWriter whole(path("whole.h5"), problem, Precision::f32, metadata());
    write_all<float>(whole, problem, 300, 1, 1);
    whole.finish({});
  }
  EXPECT_TRUE(ResultFile(path("a.h5")).states<float>(0, 300) == ResultFile(path("whole.h5")).states<float>(0, 300));
  EXPECT_THAT(hdf5::File::open(path("a.h5")).dataset("committed").read<std::int64_t>(), ElementsAre(300));
}

// The engine's part: one trajectory that goes on and on among 399 that end at once.
TEST_F(ResultFiles, a_slow_trajectory_holds_up_none_of_its_block) {
  Problem problem = ensemble(400, 1);
  problem.save_times = {1};
  problem.end_times.assign(400, 1);
  problem.end_times[200] = 1e9;
  Options options;
  options.max_steps = 1'000'000'000;
  options.threads = 1;
  CancelToken stop;
  bool stored = false;
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, metadata());
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

TEST_F(ResultFiles, what_has_no_name_is_called_by_its_number) {
  const Problem problem = ensemble(3, 2);
  ResultMetadata two;
  two.components = {2, 0};
  for (const auto& [file, metadata] : {std::pair("all.h5", ResultMetadata{}), std::pair("two.h5", two)}) {
    ResultWriter writer(path(file), problem, Precision::f64, metadata);
    write_all<double>(writer, problem, 32, 1, 1);
    writer.finish({});
  }
  EXPECT_THAT(ResultFile(path("all.h5")).component_names(), ElementsAre("u0", "u1", "u2"));
  EXPECT_THAT(ResultFile(path("all.h5")).parameter_names(), ElementsAre("p0"));
  EXPECT_THAT(ResultFile(path("two.h5")).component_names(), ElementsAre("u2", "u0"));
  two.component_names = {"z"};
  EXPECT_THAT(message_of([&] { ResultWriter(path("more.h5"), problem, Precision::f64, two); }),
              HasSubstr("component_names: found 1 names, expected 2"));
  EXPECT_FALSE(fs::exists(path("more.h5.part")));
}

TEST_F(ResultFiles, selections_of_rows_and_components_hand_finished_rows_on) {
  constexpr std::size_t kPoints = 3;
  const Problem problem = ensemble(300, kPoints);
  std::vector<std::size_t> rows;  // 0 to 49 together, then every third
  for (std::size_t i = 0; i < 300; ++i) {
    if (i < 50 || i % 3 == 0) rows.push_back(i);
  }
  ResultMetadata two = metadata();
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
  const Problem problem = ensemble(100, 3);
  ResultMetadata described = metadata();
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
  EXPECT_THAT(message(ensemble(99, 3), Precision::f32, described),
              HasSubstr("trajectories 100, expected trajectories 99"));
  EXPECT_THAT(message(ensemble(100, 4), Precision::f32, described), HasSubstr("save points 3, expected save points 4"));
  Problem other = problem;
  other.initial_states[3 * 71 + 1] = 0.125;
  EXPECT_THAT(message(other, Precision::f32, described), HasSubstr("initial y of trajectory 71"));
  other = problem;
  other.parameters = {-2};
  EXPECT_THAT(message(other, Precision::f32, described), HasSubstr("rate -1, expected rate -2"));
  other = problem;
  other.save_times[1] /= 2;
  EXPECT_THAT(message(other, Precision::f32, described), HasSubstr("save point 1"));
  EXPECT_EQ(find_unfinished(path("a.h5"))->stored, 50u) << "the file stays as it was";
}

TEST_F(ResultFiles, a_damaged_unfinished_file_is_not_taken_for_nothing) {
  std::ofstream(path("a.h5.part")) << "not HDF5";
  const Problem problem = ensemble(10, 2);
  try {
    ResultWriter(path("a.h5"), problem, Precision::f32, metadata(), Existing::refuse, Leftover::resume);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("a.h5.part: found no HDF5 signature, expected a file that can be continued; "
                                        "remove"));
  }
}

TEST_F(ResultFiles, an_existing_file_is_refused_and_left_alone) {
  std::ofstream(path("a.h5")) << "precious";
  const Problem problem = ensemble(10, 2);
  EXPECT_THROW(ResultWriter(path("a.h5"), problem, Precision::f32, metadata()), Error);
  EXPECT_EQ(fs::file_size(path("a.h5")), 8u);
  EXPECT_EQ(files(), 1u);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, metadata(), Existing::replace);
    write_all<float>(writer, problem, 10, 1, 1);
    EXPECT_EQ(fs::file_size(path("a.h5")), 8u) << "the old file stays until the new one is complete";
    writer.finish({});
  }
  EXPECT_EQ(ResultFile(path("a.h5")).trajectories(), 10u);
  EXPECT_EQ(files(), 1u);
}

TEST_F(ResultFiles, times_and_parameters_of_each_trajectory_keep_their_shape) {
  Problem problem = ensemble(3, 2);
  problem.parameters = {1, 2, 3};
  problem.save_times = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
  problem.save_times_per_trajectory = true;
  ResultWriter writer(path("a.h5"), problem, Precision::f32, metadata());
  write_all<float>(writer, problem, 2, 1, 1);
  writer.finish({});
  const ResultFile file(path("a.h5"));
  EXPECT_TRUE(file.times_per_trajectory());
  EXPECT_EQ(file.save_points(), 2u);
  EXPECT_THAT(file.times(1), ElementsAre(0.3, 0.4));
  EXPECT_THAT(file.parameters(2), ElementsAre(3));
}

TEST_F(ResultFiles, other_files_are_named_for_what_they_are) {
  const auto message = [&](const std::string& name) -> std::string {
    return message_of([&] { ResultFile file(path(name)); });
  };
  std::ofstream(path("text.h5")) << "not HDF5";
  hdf5::File::create(path("other.h5")).publish();
  EXPECT_THAT(message("text.h5"), HasSubstr("text.h5: found no HDF5 signature"));
  EXPECT_THAT(message("other.h5"), HasSubstr("other.h5: found an HDF5 file without results of an ensemble"));
  EXPECT_THAT(message("other.h5"), HasSubstr("the attribute lockstep_format = \"ensemble 1\" and the datasets state"));
  EXPECT_THAT(message("missing.h5"), HasSubstr("missing.h5: found no such file"));
  EXPECT_FALSE(ResultFile::recognises(path("text.h5")));
  EXPECT_FALSE(ResultFile::recognises(path("other.h5")));

  const Problem problem = ensemble(50, 3);
  {
    ResultWriter writer(path("whole.h5"), problem, Precision::f64, metadata());
    write_all<double>(writer, problem, 50, 1, 1);
    writer.finish({});
  }
  fs::copy_file(path("whole.h5"), path("cut.h5"));
  fs::resize_file(path("cut.h5"), fs::file_size(path("whole.h5")) / 2);
  EXPECT_THAT(message("cut.h5"), HasSubstr("cut.h5: found"));
}

}  // namespace
}  // namespace lockstep::ode
