// Ensembles solved whole and in parts: what the parts make together, and what is said of parts that do not fit.
#include "lockstep/ode/merge.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/ode/read_solution.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/rhs.h"
#include "lockstep/ode/solve.h"

namespace lockstep::ode {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

enum class Doses { none, shared, as_many, some };

struct Variant {
  std::size_t trajectories = 101;
  bool own_parameters = true;
  bool own_times = false;
  Precision precision = Precision::f32;
  Doses doses = Doses::none;
};

Problem ensemble(const Variant& variant) {
  Problem problem;
  problem.rhs = system("lorenz");
  for (std::size_t i = 0; i < variant.trajectories; ++i) {
    const double shift = 0.001 * static_cast<double>(i);
    problem.initial_states.insert(problem.initial_states.end(), {1 + shift, 0, 20});
    if (variant.own_parameters || i == 0) {
      problem.parameters.insert(problem.parameters.end(), {10, 28 + shift, 8.0 / 3});
    }
  }
  problem.end_times = {1};
  problem.save_times = {0, 0.25, 1};
  if (variant.own_times) {
    problem.save_times.clear();
    for (std::size_t i = 0; i < variant.trajectories; ++i) {
      const double shift = 0.001 * static_cast<double>(i);
      problem.save_times.insert(problem.save_times.end(), {shift, 0.5 + shift, 1});
    }
    problem.save_times_per_trajectory = true;
  }
  if (variant.doses == Doses::shared) problem.impulses = {{0.5, 0, 1}, {0.25, 2, 0, 0.5}};
  if (variant.doses == Doses::as_many || variant.doses == Doses::some) {
    problem.first_impulse = {0};
    for (std::size_t i = 0; i < variant.trajectories; ++i) {
      // The first 40 have none, so that a part has none.
      const std::size_t count = variant.doses == Doses::as_many ? 2 : i < 40 ? 0 : i % 3;
      for (std::size_t k = 0; k < count; ++k)
        problem.impulses.push_back({0.25 + 0.25 * static_cast<double>(k), k, 0.01 * static_cast<double>(i)});
      problem.first_impulse.push_back(problem.impulses.size());
    }
  }
  return problem;
}

class Merge : public ::testing::Test {
 protected:
  Merge()
      : folder_(fs::path(::testing::TempDir()) /
                ("merge_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()))) {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~Merge() override { fs::remove_all(folder_); }

  fs::path path(const std::string& name) const { return folder_ / name; }

  // Solves trajectories [first, first + count) of the ensemble.
  fs::path solve_part(const std::string& name, const Variant& variant, std::size_t first, std::size_t count,
                      const Attributes& more = {}) {
    const Problem whole = ensemble(variant);
    const Problem part = whole.part(first, count);
    Options options;
    options.precision = variant.precision;
    ResultMetadata metadata{"Lorenz", {"x", "y", "z"}, {"sigma", "rho", "beta"}, {{"method", std::string("tsit5")}}};
    metadata.attributes.emplace_back("problem_digest", std::string("d1"));
    metadata.attributes.emplace_back("command", "solve " + name);
    for (const auto& [key, value] : more) {
      std::erase_if(metadata.attributes, [&key = key](const auto& entry) { return entry.first == key; });
      metadata.attributes.emplace_back(key, value);
    }
    if (count != variant.trajectories) {
      metadata.part_of = ResultMetadata::PartOf{first, variant.trajectories, variant.own_parameters};
      metadata.part_of->impulses = impulse_form(whole);
    }
    ResultWriter writer(path(name), part, variant.precision, metadata);
    const Summary summary = solve(part, options, writer);
    writer.finish({{"accepted_steps", summary.accepted}, {"cpu_target", "on " + name}});
    return path(name);
  }
  // Parts that end at the given trajectories.
  std::vector<fs::path> solve_parts(const Variant& variant, const std::vector<std::size_t>& ends) {
    std::vector<fs::path> parts;
    std::size_t first = 0;
    for (const std::size_t end : ends) {
      parts.push_back(solve_part("part-" + std::to_string(parts.size() + 1) + ".h5", variant, first, end - first));
      first = end;
    }
    return parts;
  }
  std::string merge_message(const std::vector<fs::path>& parts) const {
    const std::string message = message_of([&] { merge_parts(parts, path("whole.h5")); });
    EXPECT_FALSE(fs::exists(path("whole.h5")));
    return message;
  }

  fs::path folder_;
};

std::vector<std::byte> bytes_of(const hdf5::Dataset& dataset) {
  const auto bytes = [](const auto& values) {
    std::vector<std::byte> result(values.size() * sizeof values[0]);
    if (!values.empty()) std::memcpy(result.data(), values.data(), result.size());
    return result;
  };
  const hdf5::ElementType type = dataset.type();
  if (type.kind == hdf5::Kind::real) {
    return type.bytes == 4 ? bytes(dataset.read<float>()) : bytes(dataset.read<double>());
  }
  if (type.kind == hdf5::Kind::integer) return bytes(dataset.read<std::int64_t>());
  std::string all;
  for (const std::string& text : dataset.read_strings()) all += text + '\n';
  return bytes(all);
}

// Every dataset: type, shape, scales, attributes and content.
void expect_same_datasets(const fs::path& a_path, const fs::path& b_path) {
  const hdf5::File a = hdf5::File::open(a_path), b = hdf5::File::open(b_path);
  ASSERT_EQ(a.datasets(), b.datasets());
  for (const std::string& name : a.datasets()) {
    const hdf5::Dataset in_a = a.dataset(name), in_b = b.dataset(name);
    EXPECT_EQ(to_string(in_a.type()), to_string(in_b.type())) << name;
    EXPECT_EQ(in_a.shape(), in_b.shape()) << name;
    EXPECT_EQ(in_a.scale_names(), in_b.scale_names()) << name;
    EXPECT_EQ(in_a.attribute_names(), in_b.attribute_names()) << name;
    EXPECT_TRUE(bytes_of(in_a) == bytes_of(in_b)) << name;
  }
}

TEST_F(Merge, parts_make_the_whole_runs_file) {
  for (const bool own_parameters : {false, true}) {
    for (const bool own_times : {false, true}) {
      for (const Precision precision : {Precision::f32, Precision::f64}) {
        const Variant variant{101, own_parameters, own_times, precision};
        const fs::path whole = solve_part("run.h5", variant, 0, 101);
        // A part of one trajectory, one of a tile and one, the rest; given out of order.
        std::vector<fs::path> parts = solve_parts(variant, {1, 34, 101});
        std::rotate(parts.begin(), parts.begin() + 1, parts.end());
        merge_parts(parts, path("merged.h5"));
        index_parts(parts, path("index.h5"));
        expect_same_datasets(whole, path("merged.h5"));
        expect_same_datasets(whole, path("index.h5"));
        for (const auto& file : fs::directory_iterator(folder_)) fs::remove(file);
      }
    }
  }
}

TEST_F(Merge, impulses_of_parts_make_those_of_the_whole) {
  for (const Doses doses : {Doses::shared, Doses::as_many, Doses::some}) {
    Variant variant;
    variant.doses = doses;
    const fs::path whole = solve_part("run.h5", variant, 0, 101);
    const std::vector<fs::path> parts = solve_parts(variant, {1, 34, 101});
    merge_parts(parts, path("merged.h5"));
    index_parts(parts, path("index.h5"));
    expect_same_datasets(whole, path("merged.h5"));
    expect_same_datasets(whole, path("index.h5"));
    const Problem problem = ensemble(variant);
    for (const char* name : {"merged.h5", "index.h5", "part-3.h5"}) {
      const ResultFile file(path(name));
      const Impulses read = file.impulses(50 - file.first_trajectory(), 1);
      const auto expected = problem.impulses_of(50);
      ASSERT_EQ(read.impulses.size(), expected.size()) << name;
      for (std::size_t k = 0; k < expected.size(); ++k) {
        EXPECT_EQ(read.impulses[k].time, expected[k].time);
        EXPECT_EQ(read.impulses[k].change, expected[k].change);
      }
    }
    for (const auto& file : fs::directory_iterator(folder_)) fs::remove(file);
  }
  // Of others they are refused.
  Variant variant;
  variant.doses = Doses::shared;
  const fs::path first = solve_part("part-1.h5", variant, 0, 50);
  variant.doses = Doses::as_many;
  EXPECT_THAT(merge_message({first, solve_part("part-2.h5", variant, 50, 51)}),
              HasSubstr("other values of impulse_change, expected the same as in"));
}

TEST_F(Merge, attributes_of_the_whole_sum_up_the_parts) {
  const Variant variant;
  const fs::path whole = solve_part("run.h5", variant, 0, 101);
  merge_parts(solve_parts(variant, {50, 101}), path("merged.h5"), {.attributes = {{"command", std::string("merge")}}});
  const ResultFile file(path("merged.h5"));
  EXPECT_EQ(file.text_attribute("method"), "tsit5");
  EXPECT_EQ(file.text_attribute("command"), "merge");
  EXPECT_EQ(file.text_attribute("cpu_target"), "on part-1.h5, on part-2.h5");
  EXPECT_EQ(file.attribute("accepted_steps"), ResultFile(whole).attribute("accepted_steps"));
  EXPECT_FALSE(file.attribute("first_trajectory"));
  EXPECT_FALSE(file.attribute("ensemble_trajectories"));
}

TEST_F(Merge, an_index_stands_for_its_parts_and_moves_with_them) {
  const Variant variant;
  const fs::path whole = solve_part("run.h5", variant, 0, 101);
  fs::create_directories(path("run/parts"));
  std::vector<fs::path> parts = solve_parts(variant, {50, 101});
  for (fs::path& part : parts) {
    fs::rename(part, path("run/parts") / part.filename());
    part = path("run/parts") / part.filename();
  }
  index_parts(parts, path("run/whole.h5"));
  fs::rename(path("run"), path("moved"));
  const ResultFile index(path("moved/whole.h5"));
  EXPECT_THAT(index.index_files(), ElementsAre("parts/part-1.h5", "parts/part-2.h5"));
  expect_same_datasets(whole, path("moved/whole.h5"));
  const std::vector<fs::path> only_index{path("moved/whole.h5")};
  merge_parts(only_index, path("merged.h5"));
  expect_same_datasets(whole, path("merged.h5"));
  const Solution solution = read_solution(path("moved/whole.h5"), {.trajectories = {45, 10}});
  EXPECT_EQ(solution.state(7, 2, 1), read_solution(whole).state(52, 2, 1));
}

TEST_F(Merge, a_part_missing_behind_an_index_is_an_error_that_names_it) {
  const Variant variant;
  const std::vector<fs::path> parts = solve_parts(variant, {50, 80, 101});
  index_parts(parts, path("whole.h5"));
  fs::rename(parts[1], path("elsewhere.h5"));
  const auto open = [&] { ResultFile file(path("whole.h5")); };
  EXPECT_THAT(message_of(open), AllOf(HasSubstr("whole.h5: found no file " + parts[1].string()),
                                      HasSubstr("trajectories 50 to 79"), HasSubstr("solve that part again")));
  solve_part("part-2.h5", variant, 50, 30, {{"problem_digest", std::string("d2")}});
  EXPECT_THAT(message_of(open), HasSubstr("part-2.h5: found another file than"));
  fs::remove(parts[1]);
  solve_part("part-2.h5", variant, 51, 29);
  EXPECT_THAT(message_of(open), HasSubstr("part-2.h5: found another file than"));
  fs::rename(path("elsewhere.h5"), parts[1]);
  EXPECT_EQ(message_of(open), "no error");
}

TEST_F(Merge, an_index_whose_parts_have_changed_asks_to_be_made_anew) {
  const std::vector<fs::path> parts = solve_parts({}, {50, 101});
  const auto set_status = [&](Status status) {
    hdf5::File part = hdf5::File::open(parts[1], hdf5::File::Access::update);
    part.dataset("status").write<std::uint8_t>(std::vector<std::uint8_t>(2, static_cast<std::uint8_t>(status)), {10},
                                               {2});
  };
  const auto open = [&] { ResultFile file(path("whole.h5")); };
  set_status(Status::cancelled);
  index_parts(parts, path("whole.h5"), {.unfinished = Unfinished::accept});
  EXPECT_EQ(message_of(open), "no error");
  set_status(Status::success);
  EXPECT_THAT(message_of(open), AllOf(HasSubstr("whole.h5: found an index of parts that have changed since"),
                                      HasSubstr("101 finished trajectories in them, expected 99"),
                                      HasSubstr("lockstep merge --index --overwrite")));
  index_parts(parts, path("whole.h5"), {.existing = Existing::replace});
  EXPECT_EQ(message_of(open), "no error");
  {
    hdf5::File part = hdf5::File::open(parts[0], hdf5::File::Access::update);
    part.set_attribute("accepted_steps", part.integer_attribute("accepted_steps") + 1);
  }
  EXPECT_THAT(message_of(open), HasSubstr(" accepted steps in them, expected "));
}

TEST_F(Merge, gaps_and_overlaps_are_named_with_their_trajectories) {
  const Variant variant;
  std::vector<fs::path> parts = solve_parts(variant, {50, 80, 101});
  EXPECT_THAT(merge_message({parts[0], parts[2]}),
              HasSubstr("found no file with trajectories 50 to 79, expected all 101 trajectories of the ensemble"));
  EXPECT_THAT(merge_message({parts[1], parts[2]}), HasSubstr("found no file with trajectories 0 to 49"));
  EXPECT_THAT(merge_message({parts[0], parts[1]}), HasSubstr("found no file with trajectories 80 to 100"));
  fs::copy_file(parts[1], path("copy.h5"));
  EXPECT_THAT(merge_message({parts[0], parts[1], path("copy.h5"), parts[2]}),
              AllOf(HasSubstr("copy.h5: found trajectories 50 to 79, which"), HasSubstr("part-2.h5 holds too")));
  EXPECT_THAT(merge_message({parts[0], solve_part("wide.h5", variant, 49, 52)}),
              HasSubstr("wide.h5: found trajectory 49, which"));
  EXPECT_THAT(merge_message({}), HasSubstr("parts: found no file"));
}

TEST_F(Merge, parts_of_another_run_are_named_with_what_differs) {
  const Variant variant;
  const fs::path first = solve_part("a.h5", variant, 0, 50);
  const auto with = [&](const Variant& other, const Attributes& more) {
    fs::remove(path("b.h5"));
    return merge_message({first, solve_part("b.h5", other, 50, other.trajectories - 50, more)});
  };
  EXPECT_THAT(with(variant, {{"method", std::string("rk4")}}),
              AllOf(HasSubstr("b.h5: found method rk4, expected tsit5 as in"), HasSubstr("a.h5")));
  EXPECT_THAT(with(variant, {{"problem_digest", std::string("d2")}}),
              HasSubstr("found problem_digest d2, expected d1"));
  EXPECT_THAT(with(variant, {{"rtol", 1e-3}}), HasSubstr("expected none as in"));
  EXPECT_THAT(with({.trajectories = 102}, {}),
              HasSubstr("b.h5: found a part of an ensemble of 102 trajectories, expected 101"));
  EXPECT_THAT(with({.precision = Precision::f64}, {}),
              HasSubstr("b.h5: found end_state float64 [51, 3], expected float32"));
  EXPECT_THAT(with({.own_parameters = false}, {}), HasSubstr("b.h5: found parameters float64 [3], expected float64"));
  Variant times = variant;
  times.own_times = true;
  EXPECT_THAT(with(times, {}), HasSubstr("b.h5: found"));
}

TEST_F(Merge, foreign_cut_and_newer_files_are_named_for_what_they_are) {
  const Variant variant;
  std::vector<fs::path> parts = solve_parts(variant, {50, 101});
  std::ofstream(path("text.h5")) << "not HDF5";
  EXPECT_THAT(merge_message({parts[0], path("text.h5")}), HasSubstr("text.h5: found no HDF5 signature"));
  hdf5::File::create(path("other.h5")).publish();
  EXPECT_THAT(merge_message({parts[0], path("other.h5")}), HasSubstr("an HDF5 file without results of an ensemble"));
  EXPECT_THAT(merge_message({parts[0], path("no.h5")}), HasSubstr("no.h5: found no such file"));
  fs::copy_file(parts[1], path("cut.h5"));
  fs::resize_file(path("cut.h5"), fs::file_size(parts[1]) / 2);
  EXPECT_THAT(merge_message({parts[0], path("cut.h5")}), HasSubstr("cut.h5: found"));
  {
    hdf5::File newer = hdf5::File::open(parts[1], hdf5::File::Access::update);
    newer.set_attribute("lockstep_format", "ensemble 2");
  }
  EXPECT_THAT(merge_message(parts), HasSubstr("part-2.h5: found format \"ensemble 2\", expected \"ensemble 1\""));
}

TEST_F(Merge, unfinished_parts_are_refused_unless_accepted) {
  const Variant variant;
  std::vector<fs::path> parts = solve_parts(variant, {50, 101});
  {
    hdf5::File part = hdf5::File::open(parts[1], hdf5::File::Access::update);
    const std::vector<std::uint8_t> cancelled(2, static_cast<std::uint8_t>(Status::cancelled));
    part.dataset("status").write<std::uint8_t>(cancelled, {10}, {2});
  }
  EXPECT_THAT(merge_message(parts), HasSubstr("part-2.h5: found 2 trajectories that were not finished"));
  merge_parts(parts, path("whole.h5"), {.unfinished = Unfinished::accept});
  EXPECT_EQ(ResultFile(path("whole.h5")).records(60, 1)[0].status, Status::cancelled);
  EXPECT_THAT(hdf5::File::open(path("whole.h5")).dataset("committed").read<std::int64_t>(), ElementsAre(99));
}

TEST_F(Merge, an_existing_file_and_the_parts_themselves_are_never_overwritten_by_accident) {
  const Variant variant;
  const std::vector<fs::path> parts = solve_parts(variant, {50, 101});
  std::ofstream(path("whole.h5")) << "precious";
  EXPECT_THAT(message_of([&] { merge_parts(parts, path("whole.h5")); }),
              HasSubstr("whole.h5: found a file of that name"));
  EXPECT_THAT(message_of([&] { merge_parts(parts, parts[0], {.existing = Existing::replace}); }),
              HasSubstr("part-1.h5: found one of the parts"));
  EXPECT_THAT(message_of([&] { index_parts(parts, parts[0], {.existing = Existing::replace}); }),
              HasSubstr("part-1.h5: found one of the parts"));
  merge_parts(parts, path("whole.h5"), {.existing = Existing::replace});
  EXPECT_EQ(ResultFile(path("whole.h5")).trajectories(), 101u);
}

TEST_F(Merge, a_request_to_stop_leaves_nothing_behind) {
  const std::vector<fs::path> parts = solve_parts({}, {50, 101});
  CancelToken cancel;
  cancel.request();
  EXPECT_THROW(merge_parts(parts, path("whole.h5"), {}, {&cancel, {}}), Error);
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 2);
}

}  // namespace
}  // namespace lockstep::ode
