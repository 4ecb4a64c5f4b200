// The writer fed by hand, block by block, and what the reader finds afterwards.
#include "lockstep/ode/result_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/no_threads.h"
#include "lockstep/ode/pack.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/testing/result_files.h"

namespace lockstep::ode {
namespace {

namespace fs = std::filesystem;
using namespace testing;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST_F(ResultFiles, what_was_written_is_read_back) {
  const Problem problem = growing_ensemble(100, 7);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f64, by_hand());
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
  const Problem problem = growing_ensemble(613, 4001);
  const auto write = [&](const char* name, std::size_t block, unsigned seed, int threads) {
    ResultWriter writer(path(name), problem, Precision::f32, by_hand());
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
  const Problem problem = growing_ensemble(trajectories, 1);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand());
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
  const Problem problem = growing_ensemble(5000, 2);
  ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand());
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
  const Problem problem = growing_ensemble(10, 2);
  { ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand()); }
  EXPECT_EQ(files(), 0u);
}

TEST_F(ResultFiles, none_is_begun_without_a_thread_to_write_it) {
  const Problem problem = growing_ensemble(10, 2);
  const NoThreads none;
  EXPECT_THAT(
      message_of([&] { ResultWriter(path("a.h5"), problem, Precision::f32, by_hand()); }, ErrorKind::unsupported),
      HasSubstr("expected one that writes the results"));
  EXPECT_EQ(files(), 0u);
}

TEST_F(ResultFiles, what_has_no_name_is_called_by_its_number) {
  const Problem problem = growing_ensemble(3, 2);
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

TEST_F(ResultFiles, an_existing_file_is_refused_and_left_alone) {
  std::ofstream(path("a.h5")) << "precious";
  const Problem problem = growing_ensemble(10, 2);
  EXPECT_THROW(ResultWriter(path("a.h5"), problem, Precision::f32, by_hand()), Error);
  EXPECT_EQ(fs::file_size(path("a.h5")), 8u);
  EXPECT_EQ(files(), 1u);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand(), Existing::replace);
    write_all<float>(writer, problem, 10, 1, 1);
    EXPECT_EQ(fs::file_size(path("a.h5")), 8u) << "the old file stays until the new one is complete";
    writer.finish({});
  }
  EXPECT_EQ(ResultFile(path("a.h5")).trajectories(), 10u);
  EXPECT_EQ(files(), 1u);
}

TEST_F(ResultFiles, times_and_parameters_of_each_trajectory_keep_their_shape) {
  Problem problem = growing_ensemble(3, 2);
  problem.parameters = {1, 2, 3};
  problem.save_times = {0.1, 0.2, 0.3, 0.4, 0.5, 0.6};
  problem.save_times_per_trajectory = true;
  ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand());
  write_all<float>(writer, problem, 2, 1, 1);
  writer.finish({});
  const ResultFile file(path("a.h5"));
  EXPECT_TRUE(file.times_per_trajectory());
  EXPECT_EQ(file.save_points(), 2u);
  EXPECT_THAT(file.times(1), ElementsAre(0.3, 0.4));
  EXPECT_THAT(file.parameters(2), ElementsAre(3));
}

std::vector<std::vector<double>> numbers_of(std::span<const Impulse> impulses) {
  std::vector<std::vector<double>> numbers;
  for (const auto& [time, component, change, factor] : impulses)
    numbers.push_back({time, static_cast<double>(component), change, factor});
  return numbers;
}

// Shared; differing in some numbers, the others once; and of some trajectories more than of others.
TEST_F(ResultFiles, impulses_are_read_back_and_stored_once_where_they_are_shared) {
  const std::vector<Impulse> shared{{0.25, 1, 3, 1}, {0.5, 0, -0.0, 0.5}};
  const auto check = [&](const Problem& problem, const std::string& form, const hdf5::Shape& times,
                         const hdf5::Shape& changes) {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand(), Existing::replace);
    write_all<float>(writer, problem, 2, 1, 1);
    writer.finish({});
    const ResultFile file(path("a.h5"));
    EXPECT_EQ(file.impulse_form().text(), form);
    if (problem.impulses.empty()) {
      EXPECT_FALSE(file.hdf5().has("impulse_time"));
      EXPECT_TRUE(file.impulses(0, 3).impulses.empty());
      return;
    }
    EXPECT_EQ(file.hdf5().dataset("impulse_time").shape(), times);
    EXPECT_EQ(file.hdf5().dataset("impulse_change").shape(), changes);
    for (std::size_t first = 0; first < 3; ++first) {
      for (std::size_t count = 1; first + count <= 3; ++count) {
        const Impulses read = file.impulses(first, count);
        const Problem part = problem.part(first, count);
        EXPECT_EQ(numbers_of(read.impulses), numbers_of(part.impulses)) << form << first << count;
        EXPECT_EQ(read.first, part.first_impulse) << form;
      }
    }
  };
  Problem problem = growing_ensemble(3, 2);
  check(problem, "none", {}, {});
  problem.impulses = shared;
  check(problem, "2 shared", {2}, {2});
  problem.first_impulse = {0, 2, 4, 6};
  problem.impulses = {shared[0], shared[1], shared[0], {0.5, 0, 0.0, 0.5}, shared[0], shared[1]};
  check(problem, "2 of each trajectory's own", {2}, {3, 2});
  problem.impulses[4].time = 0.375;
  check(problem, "2 of each trajectory's own", {3, 2}, {3, 2});
  problem.first_impulse = {0, 0, 4, 6};
  check(problem, "each trajectory's own", {6}, {6});
  problem.first_impulse = {0, 0, 0, 0};
  problem.impulses.clear();
  check(problem, "none", {}, {});
}

TEST_F(ResultFiles, damaged_impulses_are_errors) {
  Problem problem = growing_ensemble(3, 2);
  problem.impulses = {{0.25, 1, 3, 1}, {0.5, 0, 1, 1}, {0.75, 0, 1, 1}};
  problem.first_impulse = {0, 1, 1, 3};
  ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand());
  write_all<float>(writer, problem, 2, 1, 1);
  writer.finish({});
  {
    hdf5::File file = hdf5::File::open(path("a.h5"), hdf5::File::Access::update);
    hdf5::Dataset whose = file.dataset("impulse_trajectory");
    whose.write<std::int64_t>(std::vector<std::int64_t>{0, 2, 1});
  }
  EXPECT_THAT(message_of([&] { ResultFile(path("a.h5")).impulses(0, 3); }),
              HasSubstr("impulse_trajectory: found number 1 out of order"));
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

  const Problem problem = growing_ensemble(50, 3);
  {
    ResultWriter writer(path("whole.h5"), problem, Precision::f64, by_hand());
    write_all<double>(writer, problem, 50, 1, 1);
    writer.finish({});
  }
  fs::copy_file(path("whole.h5"), path("cut.h5"));
  fs::resize_file(path("cut.h5"), fs::file_size(path("whole.h5")) / 2);
  EXPECT_THAT(message("cut.h5"), HasSubstr("cut.h5: found"));
}

TEST_F(ResultFiles, what_was_written_while_it_was_packed_is_not_replaced) {
  const Problem problem = growing_ensemble(5000, 7);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f64, by_hand());
    write_all<double>(writer, problem, 100, 1, 1);
    writer.finish({});
  }
  fs::copy_file(path("a.h5"), path("newer.h5"));
  RunControl control;
  control.progress = [&](std::size_t, std::size_t) {
    if (fs::exists(path("newer.h5"))) fs::rename(path("newer.h5"), path("a.h5"));
  };
  EXPECT_THAT(message_of([&] { pack(path("a.h5"), path("a.h5"), {.existing = Existing::replace}, control); }),
              HasSubstr("a.h5: found a file that was written while it was packed"));
  EXPECT_FALSE(ResultFile(path("a.h5")).attribute("packed"));
  EXPECT_EQ(files(), 1u);
  pack(path("a.h5"), path("a.h5"), {.existing = Existing::replace});
  EXPECT_TRUE(ResultFile(path("a.h5")).attribute("packed"));
}

}  // namespace
}  // namespace lockstep::ode
