#include "lockstep/cli/training_data.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/testing/message_of.h"

namespace lockstep::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsNan;

class TrainingDataTest : public testing::Test {
 protected:
  TrainingDataTest() {
    folder_ = std::filesystem::path(testing::TempDir()) /
              (std::string("training_data_") + testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~TrainingDataTest() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) { std::ofstream(folder_ / name) << text; }
  TrainingFile file(const std::string& data) {
    return parse_training_file("[net]\nhidden = [4]\n[training]\n[data]\n" + data, folder_ / "train.toml");
  }
  std::string message_of(const std::string& data, bool trajectories) {
    return lockstep::message_of([&] {
      if (trajectories) {
        load_trajectories(file(data));
      } else {
        load_regression(file(data));
      }
    });
  }
  std::filesystem::path folder_;
};

const std::string kRegression = "file = \"t.csv\"\ninputs = [\"b\", \"a\"]\ntargets = [\"c\"]\n";
const std::string kTrajectory = "file = \"t.csv\"\ntime = \"t\"\nstates = [\"x\"]\n";

TEST_F(TrainingDataTest, columns_are_taken_in_the_order_asked) {
  write("t.csv", "a,b,c\n1,2,3\n4,5,6\n");
  const RegressionData data = load_regression(file(kRegression));
  EXPECT_THAT(data.training.inputs, ElementsAre(2, 1, 5, 4));
  EXPECT_THAT(data.training.targets, ElementsAre(3, 6));
  EXPECT_EQ(data.validation.rows(), 0u);
}

TEST_F(TrainingDataTest, the_split_is_a_partition_that_the_seed_decides) {
  std::string text = "a,b,c\n";
  for (int i = 0; i < 50; ++i) text += std::to_string(i) + ",0,0\n";
  write("t.csv", text);
  const RegressionData data = load_regression(file(kRegression + "validation = 0.2\n"));
  EXPECT_EQ(data.training.rows(), 40u);
  EXPECT_EQ(data.validation.rows(), 10u);
  std::vector<int> seen(50);
  for (const RegressionTable* table : {&data.training, &data.validation}) {
    for (std::size_t i = 0; i < table->rows(); ++i) ++seen[static_cast<std::size_t>(table->inputs[2 * i + 1])];
  }
  EXPECT_EQ(seen, std::vector<int>(50, 1));
  EXPECT_EQ(load_regression(file(kRegression + "validation = 0.2\n")).training.inputs, data.training.inputs);
}

TEST_F(TrainingDataTest, numbers_whose_squares_float64_cannot_hold_are_refused) {
  for (const std::string size : {"e200", "e-310"}) {
    write("t.csv", "a,b,c\n1,2,3" + size + "\n4,5,6" + size + "\n");
    const std::string told =
        "c of up to 6" + std::string(size == "e200" ? "e+200" : "e-310") +
        ", expected sizes from 1e-150 to 1e150, whose squares float64 holds; give c in another unit";
    EXPECT_THAT(message_of(kRegression, false), HasSubstr(": data.targets: found " + told));
    EXPECT_THAT(message_of("file = \"t.csv\"\ninputs = \"c\"\ntargets = \"a\"\n", false),
                HasSubstr(": data.inputs: found " + told));
    EXPECT_THAT(message_of("file = \"t.csv\"\ntime = \"a\"\nstates = \"c\"\n", true),
                HasSubstr(": data.states: found " + told));
  }
  write("t.csv", "a,b,c\n1,2,1e-310\n4,5,1e-310\n");  // nothing is learned from it
  EXPECT_EQ(message_of(kRegression, false), "no error");
  write("t.csv", "a,b,c\n1,2,3e-150\n4,5,6e149\n");
  EXPECT_EQ(message_of(kRegression, false), "no error");
}

TEST_F(TrainingDataTest, a_column_of_texts_names_the_trajectories) {
  const std::string runs = kTrajectory + "trajectory = \"run\"\n";
  write("t.csv", "run,t,x\nA12,0,5\nA12,1,6\nB \"7\",0,7\nB \"7\",3,8\n\"C, late\",0,1\n\"C, late\",1,2\n");
  const TrajectoryTable all = load_trajectories(file(runs)).training;
  EXPECT_THAT(all.names, ElementsAre("A12", "B \"7\"", "C, late"));
  const TrajectoryData split = load_trajectories(file(runs + "validation = 0.34\n"));
  ASSERT_EQ(split.validation.names.size(), 1u);
  EXPECT_EQ(split.validation.name(0), all.names[split.validation.numbers[0]]);
  // Rows in the order of time: those of a run go together, in the order in which runs first appear.
  write("t.csv", "run,t,x\nB7,0,7\nA12,0,5\nA12,1,6\nB7,1,8\n");
  const TrajectoryTable mixed = load_trajectories(file(runs)).training;
  EXPECT_THAT(mixed.names, ElementsAre("B7", "A12"));
  EXPECT_THAT(mixed.states, ElementsAre(7, 8, 5, 6));
  // A label that comes back for another experiment is told, by the file's line.
  write("t.csv", "run,t,x\n1,0,5\n1,1,6\n2,0,7\n2,1,7\n1,0,5\n1,1,6\n");
  EXPECT_THAT(
      message_of(runs, true),
      HasSubstr("t.csv:6: found time 0 after 1 in trajectory 1, expected times that ascend within a trajectory; "
                "sort its rows by the time, or give another experiment a name of its own"));
  write("t.csv", "run,t,x\nA12,0,5\nB7,0,7\nB7,1,7\n");
  EXPECT_THAT(message_of(runs, true),
              HasSubstr("t.csv:2: found a trajectory of 1 point of A12, expected at least 2; leave it out"));
  // So does one of numbers, or of both.
  write("t.csv", "run,t,x\nA12,0,5\nA12,1,6\n7,0,7\n7,3,8\n20240101001,0,1\n20240101001,1,2\n");
  EXPECT_THAT(load_trajectories(file(runs)).training.names, ElementsAre("A12", "7", "20240101001"));
}

TEST_F(TrainingDataTest, trajectories_of_which_nothing_is_left_are_errors) {
  const std::string runs = kTrajectory + "trajectory = \"run\"\n";
  write("t.csv", "run,t,x\n1,0,5\n1,1,6\n2,0,7\n2,3,NA\n2,4,\n");
  EXPECT_THAT(message_of(runs, true), HasSubstr("t.csv:6: found nothing measured after the first point"));
  write("t.csv", "run,t,x\n1,0,5\n1,1,6\n2,0,\n2,3,\n");
  EXPECT_THAT(message_of(runs, true), HasSubstr("t.csv:4, component x: found NaN, expected a complete state"));
  write("t.csv", "t,x\n0,5\n1,\n2,6\n");
  EXPECT_EQ(load_trajectories(file(kTrajectory)).training.states.size(), 3u);
  EXPECT_THAT(message_of(kTrajectory + "missing = \"refuse\"\n", true), HasSubstr("t.csv:3, column x: found an empty"));
}

TEST_F(TrainingDataTest, first_points_may_lack_numbers_where_every_phase_frees_the_starts) {
  const auto trained = [&](const std::string& more, const std::string& phases, const char* states = "\"x\"") {
    const std::string text =
        "[net]\nhidden = []\n[data]\nfile = \"t.csv\"\ntime = \"t\"\ntrajectory = \"run\"\n"
        "states = [" +
        std::string(states) + "]\n" + more + phases;
    return lockstep::message_of([&] { load_trajectories(parse_training_file(text, folder_ / "train.toml")); });
  };
  write("t.csv", "run,t,x\n1,0,5\n1,1,6\n2,0,\n2,3,8\n2,4,9\n");
  EXPECT_EQ(trained("", "[training]\nphases = \"noisy\"\n"), "no error");
  EXPECT_EQ(trained("", "[[phase]]\nsegment = 1\ncontinuity = 1\n[[phase]]\ncontinuity = 1\n"), "no error");
  for (const char* phases : {"[training]\nphases = \"recommended\"\n", "[training]\niterations = 3\n",
                             "[[phase]]\ncontinuity = 1\n[[phase]]\nsegment = 1\n"}) {
    EXPECT_THAT(trained("", phases),
                HasSubstr("t.csv:4, component x: found NaN, expected a complete state, from which "
                          "the trajectory starts; train the starts as well, by phases = \"noisy\""));
  }
  write("t.csv", "run,t,x\n1,0,\n1,1,6\nB,0,\nB,3,8\nB,4,9\n");
  EXPECT_THAT(trained("validation = 0.5\n", "[training]\nphases = \"noisy\"\n"),
              HasSubstr("validation: found no x at the first point of trajectory "));
  write("t.csv", "run,t,x,y\n1,0,,\n1,1,6,\n2,0,,\n2,3,8,\n");
  EXPECT_THAT(trained("", "[training]\nphases = \"noisy\"\n", "\"x\", \"y\""),
              HasSubstr("states: found no number of y in any trajectory to train on"));
}

TEST_F(TrainingDataTest, trajectories_of_a_csv_are_told_apart_by_their_column) {
  write("t.csv", "run,t,x\n1,0,5\n1,1,6\n2,0,7\n2,3,8\n");
  const TrajectoryData data = load_trajectories(file(kTrajectory + "trajectory = \"run\"\n"));
  EXPECT_EQ(data.training.trajectories(), 2u);
  EXPECT_THAT(data.training.times, ElementsAre(0, 1, 0, 3));
  EXPECT_THAT(data.training.states, ElementsAre(5, 6, 7, 8));
}

TEST_F(TrainingDataTest, times_that_do_not_ascend_name_the_line) {
  write("t.csv", "t,x\n0,1\n0.5,1\n0.5,2\n");
  EXPECT_THAT(message_of(kTrajectory, true), HasSubstr("t.csv:4: found time 0.5 after 0.5"));
}

TEST_F(TrainingDataTest, trajectories_of_a_csv_may_differ_in_length_and_miss_states) {
  const std::string keys = kTrajectory + "trajectory = \"run\"\n";
  write("t.csv", "run,t,x\n1,0,5\n1,1,6\n2,0,7\n2,3,\n2,4,nan\n2,5,8\n");
  const TrajectoryTable table = load_trajectories(file(keys)).training;
  EXPECT_THAT(table.lengths, ElementsAre(2, 4));
  EXPECT_THAT(table.times, ElementsAre(0, 1, 0, 3, 4, 5));
  EXPECT_THAT(table.states, ElementsAre(5, 6, 7, IsNan(), IsNan(), 8));
  write("t.csv", "run,t,x\n1,0,5\n1,1,6\n2,0,7\n");
  EXPECT_THAT(message_of(keys, true), HasSubstr("t.csv:4: found a trajectory of 1"));
  write("t.csv", "run,t,x\n1,0,5\n1,1,6\n2,0,\n2,3,8\n");
  EXPECT_THAT(message_of(keys, true), HasSubstr("t.csv:4, component x: found NaN, expected a complete state"));
  write("t.csv", "run,t,x\n1,0,5\n1,,6\n");
  EXPECT_THAT(message_of(keys, true), HasSubstr("t.csv:3, column t: found none"));
  write("t.csv", "run,t,x\n1,0,5\n1,1,6\n2,0,7\n2,0,8\n");
  EXPECT_THAT(message_of(keys, true), HasSubstr("t.csv:5: found time 0 after 0"));
}

// Beside whole trajectories: one whose times end, one whose states end, one that misses a number on its way.
TEST_F(TrainingDataTest, trajectories_of_hdf5_end_where_nan_fills_them_up) {
  {
    hdf5::File target = hdf5::File::create(folder_ / "t.h5");
    target.create_dataset<double>("time", {3, 3}).write<double>(std::vector<double>{0, 1, 2, 0, 2, NAN, 0, 3, 4});
    target.create_dataset<double>("state", {3, 3, 2})
        .write<double>(std::vector<double>{1, 2, 3, NAN, 5, 6, 7, 8, 9, 10, NAN, NAN, 13, 14, NAN, 16, NAN, NAN});
    target.create_dataset<double>("bad", {3, 3}).write<double>(std::vector<double>{0, 1, 2, 0, NAN, 3, 0, 3, 4});
    target.create_dataset<double>("short", {3, 3}).write<double>(std::vector<double>{0, 1, 2, 0, NAN, NAN, 0, 3, 4});
    target.publish();
  }
  const TrajectoryTable table = load_trajectories(file("file = \"t.h5\"\n[ode]\n")).training;
  EXPECT_THAT(table.lengths, ElementsAre(3, 2, 2));
  EXPECT_THAT(table.times, ElementsAre(0, 1, 2, 0, 2, 0, 3));
  EXPECT_THAT(table.states, ElementsAre(1, 2, 3, IsNan(), 5, 6, 7, 8, 9, 10, 13, 14, IsNan(), 16));
  const std::string states = "file = \"t.h5\"\nstates = \"state\"\n";
  EXPECT_THAT(message_of(states + "time = \"short\"\n", true), HasSubstr("state, trajectory 1: found 1 points"));
  const std::string x = "file = \"t.h5\"\ntime = \"bad\"\n";
  EXPECT_THAT(message_of(x + "states = [\"time\", \"time\"]\n", true), HasSubstr("time, trajectory 1: found 1 points"))
      << "its last state has no time, the one before no time either";
  EXPECT_THAT(message_of(x + "states = [\"bad\", \"short\"]\n", true),
              HasSubstr("bad, trajectory 1, point 1: found NaN"));
}

TEST_F(TrainingDataTest, the_split_and_the_digest_know_lengths) {
  const std::string keys = kTrajectory + "trajectory = \"run\"\n";
  std::string text = "run,t,x\n";
  for (int i = 0; i < 5; ++i) {
    for (int t = 0; t < 2 + i; ++t)
      text += std::to_string(i) + "," + std::to_string(t) + "," + std::to_string(i) + "\n";
  }
  write("t.csv", text);
  const TrajectoryData data = load_trajectories(file(keys + "validation = 0.4\n"));
  ASSERT_EQ(data.validation.trajectories(), 2u);
  for (const TrajectoryTable* table : {&data.training, &data.validation}) {
    std::size_t row = 0;
    for (std::size_t i = 0; i < table->trajectories(); row += table->lengths[i++]) {
      EXPECT_EQ(table->lengths[i], 2 + table->number(i));
      EXPECT_EQ(static_cast<double>(table->number(i)), table->states[row]);
    }
    EXPECT_EQ(row, table->states.size());
  }
  write("t.csv", "run,t,x\n1,0,5\n1,1,6\n1,2,7\n2,3,8\n2,4,9\n");
  const std::string digest = load_trajectories(file(keys)).digest;
  write("t.csv", "run,t,x\n1,0,5\n1,1,6\n2,2,7\n2,3,8\n2,4,9\n");
  EXPECT_NE(load_trajectories(file(keys)).digest, digest);
}

TEST_F(TrainingDataTest, trajectories_are_kept_that_are_listed) {
  write("t.csv", "run,t,x\na,0,1\na,1,2\nb,0,3\nb,1,4\nc,0,5\nc,1,6\n");
  const std::string runs = kTrajectory + "trajectory = \"run\"\n";
  const TrajectoryData data = load_trajectories(file(runs + "validation = [\"b\"]\n"));
  EXPECT_THAT(data.training.names, ElementsAre("a", "c"));
  EXPECT_THAT(data.validation.names, ElementsAre("b"));
  EXPECT_THAT(data.validation.states, ElementsAre(3, 4));
  EXPECT_THAT(message_of(runs + "validation = [\"d\"]\n", true), HasSubstr("data.validation[0]: found \"d\", expected "
                                                                           "a trajectory of the data: a, b, c"));
  EXPECT_THAT(message_of(runs + "validation = [\"b\", \"b\"]\n", true), HasSubstr("\"b\" a second time"));
  EXPECT_THAT(message_of(runs + "validation = [\"a\", \"b\", \"c\"]\n", true), HasSubstr("one at least to train on"));
  EXPECT_THAT(message_of(runs + "validation = []\n", true), HasSubstr("no trajectory"));
  // Numbers of a column are its labels; without a column trajectories are counted.
  write("t.csv", "run,t,x\n7,0,1\n7,1,2\n9,0,3\n9,1,4\n");
  EXPECT_THAT(load_trajectories(file(runs + "validation = [9]\n")).validation.states, ElementsAre(3, 4));
  EXPECT_THAT(message_of(runs + "validation = [1]\n", true), HasSubstr("a trajectory of the data: 7, 9"));
  EXPECT_THAT(message_of(kRegression + "validation = [1]\n", false), HasSubstr("validation_file"));
}

TEST_F(TrainingDataTest, trajectories_of_a_file_of_their_own_are_kept) {
  const std::string runs = kTrajectory + "trajectory = \"run\"\nvalidation_file = \"more.csv\"\n";
  write("t.csv", "run,t,x\n1,0,1\n1,1,2\n2,0,3\n2,1,4\n");
  write("more.csv", "run,t,x\n2,0,5\n2,2,6\n2,3,7\n");
  const TrajectoryData data = load_trajectories(file(runs));
  EXPECT_THAT(data.training.states, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(data.validation.states, ElementsAre(5, 6, 7));
  EXPECT_THAT(data.validation.lengths, ElementsAre(3));
  EXPECT_EQ(data.validation.number(0), 0u);
  // Impulses of a label go to all that bear it, in either file.
  const TrajectoryData dosed =
      load_trajectories(file(runs + "[[impulses]]\nfile = \"doses.csv\"\n" +
                             (write("doses.csv", "run,t,component,change\n1,0.5,x,1\n2,0.25,x,2\n"), "")));
  EXPECT_EQ(dosed.training.impulses[1].at(0).change, 2);
  EXPECT_EQ(dosed.validation.impulses[0].at(0).change, 2);
  // What is kept is part of what a checkpoint belongs to.
  const std::string digest = data.digest;
  write("t.csv", "run,t,x\n1,0,1\n1,1,2\n");
  write("more.csv", "run,t,x\n2,0,3\n2,1,4\n2,0,5\n2,2,6\n2,3,7\n");
  EXPECT_THAT(message_of(runs, true), HasSubstr("more.csv"));  // times must ascend
  write("more.csv", "run,t,x\n2,0,3\n2,1,4\n3,0,5\n3,2,6\n3,3,7\n");
  EXPECT_NE(load_trajectories(file(runs)).digest, digest);
  EXPECT_THAT(message_of(runs + "validation = 0.5\n", true), HasSubstr("one of them"));
  write("more.csv", "run,t,y\n2,0,3\n2,1,4\n");
  EXPECT_THAT(message_of(runs, true), HasSubstr("found \"x\", expected one of run, t, y"));
}

TEST_F(TrainingDataTest, impulses_go_where_their_trajectories_go) {
  std::string text = "run,t,x\n";
  for (int run = 0; run < 8; ++run) {
    for (int point = 0; point < 3; ++point)
      text += std::to_string(run) + "," + std::to_string(point) + "," + std::to_string(run) + "\n";
  }
  write("t.csv", text);
  const TrainingFile training = file(kTrajectory + "trajectory = \"run\"\nvalidation = 0.25\n");
  TrajectoryTable table{.component_names = {"x"}, .lengths = std::vector<std::size_t>(8, 3)};
  for (std::size_t row = 0; row < 24; ++row) {
    table.times.push_back(static_cast<double>(row % 3));
    table.states.push_back(static_cast<double>(row / 3));
  }
  const std::string digest = split(training, table).digest;
  for (std::size_t run = 0; run < 8; ++run)
    table.impulses.emplace_back(run % 3, ode::Impulse{0.5, 0, static_cast<double>(run)});
  const TrajectoryData data = split(training, table);
  EXPECT_NE(data.digest, digest);
  for (const TrajectoryTable* of : {&data.training, &data.validation}) {
    ASSERT_EQ(of->impulses.size(), of->trajectories());
    for (std::size_t i = 0; i < of->trajectories(); ++i)
      EXPECT_EQ(of->impulses[i], table.impulses[of->number(i)]) << of->number(i);
  }
  table.impulses[7][0].factor = 0;
  EXPECT_NE(split(training, table).digest, data.digest);
}

TEST_F(TrainingDataTest, impulses_are_at_the_measurements_that_roundings_keep_apart) {
  std::string text = "run,t,x\n";
  for (const char* run : {"1", "2"}) {
    for (int point = 0; point <= 10; ++point) text += std::string(run) + "," + std::to_string(point) + "e-1,0\n";
  }
  write("t.csv", text);
  const TrajectoryData data =
      load_trajectories(file(kTrajectory + "trajectory = \"run\"\nvalidation = [2]\n[[impulses]]\n"
                                           "component = \"x\"\nchange = 1\nevery = 0.1\n"));
  for (const TrajectoryTable* table : {&data.training, &data.validation}) {
    ASSERT_EQ(table->impulses.at(0).size(), 10u);
    for (const ode::Impulse& impulse : table->impulses[0]) EXPECT_THAT(table->times, testing::Contains(impulse.time));
  }
}

TEST_F(TrainingDataTest, impulses_are_of_all_trajectories_or_of_those_that_rows_name) {
  const std::string runs = kTrajectory + "trajectory = \"run\"\n";
  const auto impulses = [&](const std::string& tables) {
    std::vector<std::vector<std::vector<double>>> numbers;
    for (const auto& of : load_trajectories(file(runs + tables)).training.impulses) {
      numbers.emplace_back();
      for (const auto& [time, component, change, factor] : of)
        numbers.back().push_back({time, static_cast<double>(component), change, factor});
    }
    return numbers;
  };
  using Rows = std::vector<std::vector<double>>;
  write("t.csv", "run,t,x\nann,0,5\nann,4,6\nbob,1,7\nbob,3,8\n");
  EXPECT_THAT(impulses(""), testing::IsEmpty());
  EXPECT_THAT(impulses("[[impulses]]\ncomponent = \"x\"\nchange = [1, 2]\nevery = 2\n"),
              ElementsAre(Rows{{0, 0, 1, 1}, {2, 0, 1, 1}}, Rows{{1, 0, 2, 1}}));
  // Columns are called as the data's, or as everywhere.
  for (const char* names : {"run,t", "trajectory,time", "trajectory,t"}) {
    write("d.csv", std::string(names) + ",change\nbob,2,5\nann,3,1\nann,0,2\n");
    EXPECT_THAT(impulses("[[impulses]]\nfile = \"d.csv\"\ncomponent = 0\n"),
                ElementsAre(Rows{{0, 0, 2, 1}, {3, 0, 1, 1}}, Rows{{2, 0, 5, 1}}))
        << names;
  }
  const auto refused = [&](const std::string& rows) {
    write("d.csv", "run,t,component,change\n" + rows);
    return message_of(runs + "[[impulses]]\nfile = \"d.csv\"\n", true);
  };
  EXPECT_THAT(refused("bub,2,x,5\n"),
              HasSubstr("d.csv:2, column run: found \"bub\", expected a trajectory of the data: "
                        "ann, bob; did you mean \"bob\"?"));
  EXPECT_THAT(refused("bob,2,y,5\n"), HasSubstr("d.csv:2, column component: found \"y\", expected one of x"));
  EXPECT_THAT(refused("bob,9,x,5\n"), HasSubstr("give times in the unit of t in the data"));
  write("d.csv", "run,t,component,change\nbob,2,x,5\nbob,3,x,5\n");
  EXPECT_THAT(load_trajectories(file(runs + "[[impulses]]\nfile = \"d.csv\"\n")).notes,
              ElementsAre(HasSubstr("1 of 2 impulses of ")));
  // Of a column of numbers these are the labels; without one trajectories are counted.
  write("t.csv", "run,t,x\n102,0,5\n102,4,6\n101,0,7\n101,3,8\n");
  write("d.csv", "run,t,change\n101,2,5\n");
  EXPECT_THAT(impulses("[[impulses]]\nfile = \"d.csv\"\ncomponent = 0\n"), ElementsAre(Rows{}, Rows{{2, 0, 5, 1}}));
  EXPECT_THAT(refused("1,2,x,5\n"), HasSubstr("found \"1\", expected a trajectory of the data: 102, 101"));
  EXPECT_THAT(message_of(kRegression + "[[impulses]]\ncomponent = 0\nchange = 1\ntimes = 1\n", false),
              HasSubstr("train.toml:8: impulses: found impulses in a regression"));
}

TEST_F(TrainingDataTest, hdf5_datasets_are_read_and_nan_named_by_row) {
  {
    hdf5::File target = hdf5::File::create(folder_ / "t.h5");
    const std::vector<float> x{1, 2, 3, 4, 5, NAN}, y{1, 2, 3};
    target.create_dataset<float>("x", {3, 2}).write<float>(x);
    target.create_dataset<float>("y", {3}).write<float>(y);
    target.create_dataset<float>("u", {2, 3, 1}).write<float>(std::vector<float>{1, 2, 3, 4, 5, INFINITY});
    target.create_dataset<float>("good", {3, 2}).write<float>(std::vector<float>{1, 2, 3, 4, 5, 6});
    target.publish();
  }
  const std::string base = "file = \"t.h5\"\ntargets = \"y\"\n";
  EXPECT_THAT(message_of(base + "inputs = \"x\"\n", false), HasSubstr("x, row 2, column 1: found NaN"));
  EXPECT_THAT(message_of("file = \"t.h5\"\ntime = \"y\"\nstates = \"u\"\n", true),
              HasSubstr("u, trajectory 1, point 2, component 0: found infinity"));
  EXPECT_THAT(message_of(base + "inputs = \"god\"\n", false), HasSubstr("did you mean \"good\"?"));
  const RegressionData data = load_regression(file(base + "inputs = \"good\"\n"));
  EXPECT_EQ(data.training.rows(), 3u);
  EXPECT_THAT(data.training.input_names, ElementsAre("x0", "x1"));
}

TEST_F(TrainingDataTest, datasets_of_one_column_each_stand_side_by_side) {
  {
    hdf5::File target = hdf5::File::create(folder_ / "t.h5");
    hdf5::Group group = target.create_group("core");
    group.create_dataset<float>("te", {2}).write<float>(std::vector<float>{1, 2});
    group.create_dataset<double>("n", {2, 2}).write<double>(std::vector<double>{3, 4, 5, 6});
    target.create_dataset<float>("flux", {2}).write<float>(std::vector<float>{7, 8});
    target.create_dataset<float>("long", {3}).write<float>(std::vector<float>{7, 8, 9});
    target.publish();
  }
  const std::string base = "file = \"t.h5\"\ntargets = \"flux\"\n";
  const RegressionData data = load_regression(file(base + "inputs = [\"core/te\", \"core/n\"]\n"));
  EXPECT_THAT(data.training.input_names, ElementsAre("core/te", "core/n0", "core/n1"));
  EXPECT_THAT(data.training.inputs, ElementsAre(1, 3, 4, 2, 5, 6));
  EXPECT_THAT(message_of(base + "inputs = [\"core/te\", \"long\"]\n", false),
              HasSubstr("long: found 3 rows, expected 2 as "));
  EXPECT_THAT(message_of(base + "inputs = \"te\"\n", false), HasSubstr("expected one of flux, long, core/n, core/te"));
}

TEST_F(TrainingDataTest, components_may_have_a_dataset_each) {
  {
    hdf5::File target = hdf5::File::create(folder_ / "t.h5");
    target.create_dataset<double>("t", {3}).write<double>(std::vector<double>{0, 1, 2});
    target.create_dataset<double>("x", {2, 3}).write<double>(std::vector<double>{1, 2, 3, 4, 5, 6});
    target.create_dataset<double>("y", {2, 3}).write<double>(std::vector<double>{10, 20, 30, 40, 50, 60});
    target.create_dataset<double>("z", {3}).write<double>(std::vector<double>{1, 2, 3});
    target.publish();
  }
  const std::string base = "file = \"t.h5\"\ntime = \"t\"\n";
  const TrajectoryData data = load_trajectories(file(base + "states = [\"x\", \"y\"]\n"));
  EXPECT_EQ(data.training.trajectories(), 2u);
  EXPECT_THAT(data.training.states, ElementsAre(1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60));
  EXPECT_THAT(data.training.component_names, ElementsAre("x", "y"));
  EXPECT_EQ(load_trajectories(file(base + "states = [\"z\", \"z\"]\n")).training.trajectories(), 1u);
  EXPECT_THAT(load_trajectories(file(base + "states = \"z\"\n")).training.states, ElementsAre(1, 2, 3));
  EXPECT_THAT(message_of(base + "states = [\"x\", \"z\"]\n", true), HasSubstr("z: found [1, 3], expected [2, 3] as "));
}

TEST_F(TrainingDataTest, trajectories_keep_the_numbers_they_have_in_the_file) {
  std::string text = "run,t,x\n";
  for (int i = 0; i < 5; ++i)
    text += std::to_string(i) + ",0," + std::to_string(i) + "\n" + std::to_string(i) + ",1,0\n";
  write("t.csv", text);
  const TrajectoryData data = load_trajectories(file(kTrajectory + "trajectory = \"run\"\nvalidation = 0.4\n"));
  ASSERT_EQ(data.training.trajectories(), 3u);
  for (const TrajectoryTable* table : {&data.training, &data.validation}) {
    for (std::size_t i = 0; i < table->trajectories(); ++i) {
      EXPECT_EQ(static_cast<double>(table->number(i)), table->states[2 * i]);
    }
  }
}

TEST_F(TrainingDataTest, a_result_file_gives_states_times_and_names) {
  {
    hdf5::File target = hdf5::File::create(folder_ / "t.h5");
    target.create_dataset<double>("state", {2, 2, 1}).write<double>(std::vector<double>{1, 2, 3, 4});
    target.create_dataset<double>("time", {2}).write<double>(std::vector<double>{0, 1});
    target.create_strings("component", std::vector<std::string>{"x"});
    target.publish();
  }
  const TrajectoryData data = load_trajectories(file("file = \"t.h5\"\n[ode]\n"));
  EXPECT_EQ(data.training.trajectories(), 2u);
  EXPECT_THAT(data.training.times, ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(data.training.component_names, ElementsAre("x"));
}

TEST_F(TrainingDataTest, states_without_names_are_called_as_the_equations_or_the_system_call_them) {
  {
    hdf5::File target = hdf5::File::create(folder_ / "t.h5");
    target.create_dataset<double>("state", {2, 2, 2}).write<double>(std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8});
    target.create_dataset<double>("state3", {2, 3}).write<double>(std::vector<double>{1, 2, 3, 4, 5, 6});
    target.create_dataset<double>("time", {2}).write<double>(std::vector<double>{0, 1});
    target.publish();
  }
  const auto names = [&](const std::string& text) {
    return load_trajectories(parse_training_file(text, folder_ / "train.toml")).training.component_names;
  };
  const std::string data = "[training]\n[data]\nfile = \"t.h5\"\n";
  const std::string equations =
      "[rhs.equations]\nprey = \"k * prey\"\npredator = \"-predator\"\n[rhs.parameters]\n"
      "k = { start = 1 }\n";
  EXPECT_THAT(names(equations + data + "starts = { predator = 3 }\n"), ElementsAre("prey", "predator"));
  EXPECT_THAT(
      names("[ode]\nsystem = \"lorenz\"\nparameters = { rho = { start = 20 } }\n" + data + "states = \"state3\"\n"),
      ElementsAre("x", "y", "z"));
  EXPECT_THAT(names("[net]\nhidden = [4]\n" + data + "[ode]\n"), ElementsAre("u0", "u1"));
  EXPECT_THAT(names(equations + data + "states = \"state3\"\n"), ElementsAre("u0", "u1", "u2"));  // refused later on
}

TEST_F(TrainingDataTest, a_missing_file_is_named) {
  EXPECT_THAT(message_of(kRegression, false), HasSubstr("no file "));
}

TEST(Scaling, standard_and_min_max_map_columns_as_they_say) {
  const std::vector<double> values{1, 7, 3, 7};
  const InputScaling standard = input_scaling(Normalisation::standard, values, 2);
  EXPECT_THAT(standard.shift, ElementsAre(2, 7));
  EXPECT_THAT(standard.scale, ElementsAre(1, 1));
  const OutputScaling min_max = output_scaling(Normalisation::min_max, {0, 10}, 1);
  EXPECT_THAT(min_max.shift, ElementsAre(5));
  EXPECT_THAT(min_max.scale, ElementsAre(5));
  EXPECT_TRUE(input_scaling(Normalisation::none, values, 2).shift.empty());
}

// A net that fits a closed orbit goes around beside it, by its error.
TEST_F(TrainingDataTest, ranges_reach_a_hundredth_of_their_width_beyond_the_data) {
  const std::vector<nn::Feature> found = features({"a", "b", "c"}, {1, 7, NAN, 3, 7, NAN});
  EXPECT_DOUBLE_EQ(found[0].minimum, 0.98);
  EXPECT_DOUBLE_EQ(found[0].maximum, 3.02);
  EXPECT_EQ(found[1].minimum, 7);
  EXPECT_EQ(found[1].maximum, 7);
  EXPECT_EQ(found[2].minimum, -std::numeric_limits<double>::infinity());
}

}  // namespace
}  // namespace lockstep::cli
