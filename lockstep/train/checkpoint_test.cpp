#include "lockstep/train/checkpoint.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep::train {
namespace {

using testing::HasSubstr;

class CheckpointTest : public testing::Test {
 protected:
  CheckpointTest() {
    path_ = std::filesystem::path(testing::TempDir()) /
            (std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) + ".h5");
    std::filesystem::remove(path_);
  }
  ~CheckpointTest() override { std::filesystem::remove(path_); }
  std::filesystem::path path_;
  const Identity identity_{{"data", "0123"}, {"options", "4567"}};
};

template <class T>
double bowl(const Place&, std::span<const T> x, std::span<T> g) {
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double w = 1 + static_cast<double>(i), d = static_cast<double>(x[i]) - 0.3 * w;
    sum += w * d * d + std::pow(d, 4);
    g[i] = static_cast<T>(2 * w * d + 4 * d * d * d);
  }
  return sum;
}

std::vector<Phase> phases() {
  return {{.name = "a", .iterations = 6, .learning_rate = {.schedule = Schedule::plateau, .rate = 0.05}},
          {.name = "b", .iterations = 6, .rule = LbfgsOptions{}}};
}

template <class T>
void expect_same_bits_after_every_stop(const std::filesystem::path& path, const Identity& identity) {
  Training<T> whole(phases(), std::vector<T>(5));
  std::vector<TrainingState<T>> states;
  std::vector<CurvePoint> curve;
  while (!whole.finished()) {
    states.push_back(whole.state());
    states.back().left_out = 3;  // of a kind that the bowl does not know: stored as the rest is
    states.back().by_squares = 2;  // likewise
    const IterationReport report = whole.iterate(bowl<T>);
    curve.push_back({report.place.total, report.loss, report.watched, report.gradient_norm, report.learning_rate,
                     static_cast<std::int64_t>(report.place.phase)});
  }
  for (const TrainingState<T>& state : states) {
    write_checkpoint<T>(path, {state, curve, identity});
    const Checkpoint<T> read = read_checkpoint<T>(path, identity);
    ASSERT_EQ(read.curve.size(), curve.size());
    EXPECT_EQ(read.curve.back().loss, curve.back().loss);
    EXPECT_EQ(read.curve.back().phase, curve.back().phase);
    EXPECT_EQ(read.state.left_out, 3);
    EXPECT_EQ(read.state.by_squares, 2);
    EXPECT_EQ(read.state.best_left_out, state.best_left_out);
    Training<T> rest(phases(), std::vector<T>(5));
    rest.restore(read.state);
    while (!rest.finished()) rest.iterate(bowl<T>);
    EXPECT_EQ(rest.state().best, whole.state().best) << state.place.total;
    EXPECT_EQ(rest.best_loss(), whole.best_loss());
  }
}

TEST_F(CheckpointTest, a_float32_training_continues_with_the_same_bits) {
  expect_same_bits_after_every_stop<float>(path_, identity_);
}
TEST_F(CheckpointTest, a_float64_training_continues_with_the_same_bits) {
  expect_same_bits_after_every_stop<double>(path_, identity_);
}

TEST_F(CheckpointTest, other_data_are_refused_by_name) {
  const Training<float> training(phases(), {1.f, 2.f});
  write_checkpoint<float>(path_, {training.state(), {}, identity_});
  try {
    read_checkpoint<float>(path_, {{"data", "other"}, {"options", "4567"}});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr(": data: found 0123 when it was written, other now"));
  }
  EXPECT_THROW(read_checkpoint<double>(path_, identity_), Error);
}

TEST_F(CheckpointTest, options_that_differ_are_named_where_they_are_listed) {
  const Training<float> training(phases(), {1.f, 2.f});
  const Identity before{{"options", "4567"}, {"options in full", "iterations = 50\nrate = 0.01\nseed = 1\n"}};
  Identity now{{"options", "89ab"}, {"options in full", "iterations = 80\nrate = 0.01\nseed = 1\nbatch = 8\n"}};
  const auto refusal = [&](const Identity& with) -> std::string {
    try {
      read_checkpoint<float>(path_, with);
    } catch (const Error& error) {
      return error.what();
    }
    return "read";
  };
  write_checkpoint<float>(path_, {training.state(), {}, before});
  EXPECT_THAT(refusal(now),
              HasSubstr(": options: found iterations = 50 when it was written, iterations = 80, batch = 8 "
                        "now, expected the same options"));
  now["options"] = "4567";  // the digest decides
  EXPECT_EQ(refusal(now), "read");
  // A checkpoint of an earlier version has no list.
  write_checkpoint<float>(path_, {training.state(), {}, {{"options", "4567"}}});
  EXPECT_EQ(refusal(now), "read");
  now["options"] = "89ab";
  EXPECT_THAT(refusal(now), HasSubstr("found 4567 when it was written, 89ab now"));
}

TEST_F(CheckpointTest, a_changed_number_is_noticed) {
  const Training<double> training(phases(), {1, 1234567});
  write_checkpoint<double>(path_, {training.state(), {}, identity_});
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(file)), {});
  const double wanted = 1234567;
  const std::size_t at = bytes.find(std::string(reinterpret_cast<const char*>(&wanted), 8));
  ASSERT_NE(at, std::string::npos);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(1);
  file.close();
  try {
    read_checkpoint<double>(path_, identity_);
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("differs from its digest"));
  }
}

TEST_F(CheckpointTest, a_missing_or_foreign_file_is_an_error) {
  EXPECT_THROW(read_checkpoint<float>(path_, identity_), Error);
  std::ofstream(path_) << "text";
  EXPECT_THROW(read_checkpoint<float>(path_, identity_), Error);
}

}  // namespace
}  // namespace lockstep::train
