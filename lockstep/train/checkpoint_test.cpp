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
