#include "lockstep/cli/ensemble_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "lockstep/cli/ensemble_files.h"
#include "lockstep/core/error.h"
#include "lockstep/core/hdf5.h"
#include "lockstep/core/testing/message_of.h"

namespace lockstep::cli {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

const ColumnNames kXyz{"component", {"x", "y", "z"}, {}};

EnsembleValues parse(const std::string& value, const std::filesystem::path& folder = "folder") {
  const TomlValue file = parse_toml("v = " + value + "\n", "f.toml");
  return parse_ensemble_values(*file.find("v"), folder);
}

EnsembleMatrix draw_from(const std::string& value, std::size_t trajectories, const ColumnNames& columns = kXyz,
                         std::uint64_t seed = 1) {
  return draw(parse(value), trajectories, columns, {seed, 0});
}

std::string message(const std::string& value, std::size_t trajectories = 4, const ColumnNames& columns = kXyz) {
  return message_of([&] { draw_from(value, trajectories, columns); });
}

TEST(EnsembleValues, one_row_serves_all) {
  const EnsembleMatrix matrix = draw_from("[1, 2.5, 3]", 4);
  EXPECT_EQ(matrix.rows, 1u);
  EXPECT_THAT(matrix.values, ElementsAre(1, 2.5, 3));
}

TEST(EnsembleValues, numbers_may_be_expressions_of_numbers) {
  EXPECT_THAT(draw_from("['1/3', 2, '2*pi']", 4).values, ElementsAre(1.0 / 3, 2, 2 * 3.141592653589793));
  EXPECT_THAT(draw_from("{x='8/3', y={linspace=[0, '1/4']}, z=['1/2', 1]}", 2).values,
              ElementsAre(8.0 / 3, 0, 0.5, 8.0 / 3, 0.25, 1));
  EXPECT_THAT(message("['1/q', 2, 3]"), AllOf(HasSubstr("f.toml:1: v[0], column 3: found \"q\""), HasSubstr("pi")));
  EXPECT_THAT(message("[true, 2, 3]"), HasSubstr("f.toml:1: v[0]: found true, expected a number"));
}

TEST(EnsembleValues, of_listed_rows_the_first_are_taken) {
  EXPECT_EQ(listed_rows(parse("[[1,2,3],[4,5,6],[7,8,9]]")), 3u);
  EXPECT_THAT(draw_from("[[1,2,3],[4,5,6],[7,8,9]]", 2).values, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(message("[[1,2,3],[4,5,6]]"), HasSubstr("f.toml:1: v: found 2 rows, expected at least 4"));
}

TEST(EnsembleValues, a_trajectory_is_the_same_in_an_ensemble_of_any_size) {
  for (const char* value : {"{normal={mean=[1,0,0], std=0.1}}", "{box={low=-1, high=[1,2,3]}}"}) {
    const EnsembleMatrix small = draw_from(value, 5);
    const EnsembleMatrix large = draw_from(value, 101);
    ASSERT_EQ(small.values.size(), 15u);
    for (std::size_t i = 0; i < small.values.size(); ++i) EXPECT_EQ(small.values[i], large.values[i]) << value;
    EXPECT_NE(small.values, draw_from(value, 5, kXyz, 2).values) << value;
  }
}

TEST(EnsembleValues, a_distribution_by_name_draws_the_numbers_of_the_distribution_for_all) {
  const EnsembleMatrix all = draw_from("{box={low=0, high=2}}", 7);
  const EnsembleMatrix named = draw_from("{x={box=[0,2]}, y={box=[0,2]}, z={box=[0,2]}}", 7);
  EXPECT_EQ(all.values, named.values);
}

TEST(EnsembleValues, distributions_have_the_moments_they_name) {
  // Standard errors with n = 40,000 numbers: mean sigma / 200, variance about sqrt(2) sigma^2 / 200; five of them.
  constexpr std::size_t kCount = 40000;
  const ColumnNames one{"component", {"x"}, {}};
  const auto moments = [&](const std::string& value) {
    const EnsembleMatrix matrix = draw_from(value, kCount, one);
    double sum = 0;
    double squares = 0;
    for (const double x : matrix.values) sum += x;
    for (const double x : matrix.values) squares += (x - sum / kCount) * (x - sum / kCount);
    return std::pair(sum / kCount, squares / kCount);
  };
  const auto [normal_mean, normal_variance] = moments("{normal={mean=3, std=2}}");
  EXPECT_NEAR(normal_mean, 3, 5 * 2.0 / 200);
  EXPECT_NEAR(normal_variance, 4, 5 * std::sqrt(2.0) * 4 / 200);
  // Of kurtosis 8.9: a standard error of the variance of sqrt(7.9) / 200 of it.
  const double log_mean = 2 * std::exp(0.125), log_variance = 4 * std::exp(0.25) * (std::exp(0.25) - 1);
  const auto [lognormal_mean, lognormal_variance] = moments("{lognormal={median=2, sigma=0.5}}");
  EXPECT_NEAR(lognormal_mean, log_mean, 5 * std::sqrt(log_variance) / 200);
  EXPECT_NEAR(lognormal_variance, log_variance, 5 * std::sqrt(7.9) * log_variance / 200);
  const auto [box_mean, box_variance] = moments("{box={low=-1, high=3}}");
  EXPECT_NEAR(box_mean, 1, 5 * std::sqrt(16.0 / 12) / 200);
  EXPECT_NEAR(box_variance, 16.0 / 12, 5 * std::sqrt(2.0) * (16.0 / 12) / 200);
}

TEST(EnsembleValues, linspace_has_both_ends) {
  const ColumnNames rho{"parameter", {"rho"}, {}};
  EXPECT_THAT(draw_from("{linspace=[0, 21]}", 4, rho).values, ElementsAre(0, 7, 14, 21));
  EXPECT_THAT(draw_from("{linspace={low=2, high=3}}", 1, rho).values, ElementsAre(2));
}

TEST(EnsembleValues, logspace_gives_decades_as_people_write_them) {
  const ColumnNames rho{"parameter", {"rho"}, {}};
  EXPECT_THAT(draw_from("{logspace=[0.001, 100]}", 6, rho).values, ElementsAre(0.001, 0.01, 0.1, 1, 10, 100));
  EXPECT_THAT(draw_from("{logspace=[2e-6, 2000]}", 10, rho).values,
              ElementsAre(2e-6, 2e-5, 2e-4, 2e-3, 0.02, 0.2, 2, 20, 200, 2000));
  EXPECT_THAT(draw_from("{logspace=[1e300, 1e-300]}", 3, rho).values, ElementsAre(1e300, 1, 1e-300));
  EXPECT_THAT(draw_from("{logspace={low=5, high=7}}", 1, rho).values, ElementsAre(5));
  // Neighbours have one ratio, (7 / 3)^(1 / 999), to the rounding of 15 digits in each: at most 5e-15.
  const std::vector<double> dense = draw_from("{logspace=[3, 7]}", 1000, rho).values;
  const double ratio = std::pow(7.0 / 3, 1.0 / 999);
  for (std::size_t i = 1; i < dense.size(); ++i) EXPECT_NEAR(dense[i] / dense[i - 1], ratio, 1.1e-14) << i;
  EXPECT_EQ(dense.back(), 7);
  EXPECT_THAT(
      message("{logspace=[-2, 2]}", 5, rho),
      HasSubstr("v.logspace: found -2, expected numbers above 0: the ends themselves, and not their exponents"));
  EXPECT_THAT(message("{logspace={low=[1, 0], high=2}}", 5, {"parameter", {"a", "b"}, {}}), HasSubstr("found 0, "));
}

TEST(EnsembleValues, a_number_of_points_is_a_number_of_rows) {
  const ColumnNames rho{"parameter", {"rho"}, {}};
  EXPECT_EQ(listed_rows(parse("{rho={linspace=[0, 1, 5]}}")), 5u);
  EXPECT_EQ(listed_rows(parse("{logspace={low=1, high=10, points=7}}")), 7u);
  EXPECT_EQ(where_spread(parse("{rho={linspace=[0, 1, 5]}}")), "");
  EXPECT_THAT(draw_from("{rho={linspace=[0, 1, 5]}}", 3, rho).values, ElementsAre(0, 0.25, 0.5));
  EXPECT_THAT(
      message("{rho={linspace=[0, 1, 5]}}", 6, rho),
      HasSubstr("v.rho.linspace: found 5 rows, expected at least 6, one for each trajectory; leave the number of "
                "points out, or raise it"));
  EXPECT_THAT(message("{rho={linspace=[0, 1, 2.5]}}", 2, rho),
              HasSubstr("v.rho.linspace[2]: found 2.5, expected a number of points, an integer of 1 or more"));
  EXPECT_THAT(message("{rho={linspace=[0, 1, 2, 3]}}", 2, rho), HasSubstr("expected [low, high], [low, high, points]"));
  EXPECT_THAT(message("{rho={box=[0, 1, 2]}}", 2, rho), HasSubstr("expected [low, high], or {low"));
}

TEST(EnsembleValues, names_left_out_take_their_defaults) {
  const ColumnNames columns{"parameter", {"sigma", "rho", "beta"}, {10.0, std::nullopt, 2.5}};
  EXPECT_THAT(draw_from("{rho={linspace=[0, 1]}}", 2, columns).values, ElementsAre(10, 0, 2.5, 10, 1, 2.5));
  EXPECT_THAT(draw_from("{rho=[5, 6]}", 2, columns).values, ElementsAre(10, 5, 2.5, 10, 6, 2.5));
  EXPECT_THAT(message("{sigma=1}", 2, columns), HasSubstr("found no value for rho, expected one for each parameter"));
  EXPECT_THAT(message("{rhoo=1}", 2, columns),
              HasSubstr("v.rhoo: found an unknown parameter, expected one of sigma, rho, beta; did you mean \"rho\"?"));
}

TEST(EnsembleValues, two_numbers_for_many_trajectories_may_have_been_a_range) {
  const ColumnNames columns{"parameter", {"q", "H"}, {0.1, 40.0}};
  EXPECT_EQ(message("{q=[0.05, 0.2]}", 5, columns),
            "f.toml:1: v.q: found 2 rows, expected at least 5, one for each trajectory; for a range write q = { box = "
            "[0.05, 0.2] }");
  EXPECT_THAT(message("{q=[1, 2, 3]}", 5, columns), HasSubstr("; lower the number of trajectories"));
  EXPECT_THAT(message("{Q={box=[1, 2]}}", 5, columns),
              HasSubstr("v.Q: found an unknown parameter, expected one of q, H; did you mean \"q\"?"));
  EXPECT_THAT(message("{uniform={low=1, high=2}}", 5, columns),
              HasSubstr("; write box for uniform numbers: { box = {"));
}

TEST(EnsembleValues, a_wrong_width_names_the_columns) {
  EXPECT_EQ(message("[1, 2]"), "f.toml:1: v: found 2 numbers, expected 3 numbers, one for each component (x, y, z)");
  EXPECT_THAT(message("{normal={mean=[1,2], std=1}}"), HasSubstr("found 2 numbers, expected 3 numbers"));
  EXPECT_THAT(message("{normal={mean=1, std=-1}}"), HasSubstr("v.normal.std: found -1, expected a standard deviation"));
  EXPECT_THAT(message("{lognormal={median=[1,2], sigma=1}}"), HasSubstr("found 2 numbers, expected 3 numbers"));
  EXPECT_THAT(message("{lognormal={median=0, sigma=1}}"), HasSubstr("v.lognormal.median: found 0, expected a median"));
  EXPECT_THAT(message("{gamma={shape=2}}"), HasSubstr("; of distributions there are normal, lognormal and box"));
}

TEST(EnsembleValues, other_words_for_sweeps_are_answered_with_ours) {
  const ColumnNames rho{"parameter", {"rho"}, {}};
  EXPECT_THAT(
      message("{rho={geomspace=[20, 30]}}", 5, rho),
      AllOf(HasSubstr("f.toml:1: v.rho.geomspace: found an unknown way to give numbers, expected one of normal, "
                      "lognormal, box, linspace, logspace, file, dataset, columns; "),
            HasSubstr("write logspace = [low, high], from low to high themselves")));
  EXPECT_THAT(message("{rho={loguniform=[20, 30]}}", 5, rho), HasSubstr("; of logarithms there are lognormal"));
  EXPECT_THAT(message("{rho={uniform=[20, 30]}}", 5, rho), HasSubstr("; write box for uniform numbers"));
  EXPECT_THAT(message("{rho={linspac=[20, 30]}}", 5, rho), HasSubstr("; did you mean \"linspace\"?"));
  EXPECT_THAT(message("{rho={x={box=[20, 30]}}}", 5, rho), HasSubstr("v.rho.x: found an unknown way to give numbers"));
  EXPECT_THAT(message("{geomspace=[20, 30]}", 5, rho), HasSubstr("v.geomspace: found an unknown parameter"));
  EXPECT_EQ(where_spread(parse("{rho={linspace=[20, 30]}, sigma=10}")), "f.toml:1: v.rho.linspace");
  EXPECT_EQ(where_spread(parse("{linspace={low=[20, 1], high=30}}")), "f.toml:1: v.linspace");
  EXPECT_EQ(where_spread(parse("{rho={box=[20, 30]}, sigma=[10, 11]}")), "");
}

TEST(EnsembleValues, datasets_are_rows_or_one_row) {
  const std::filesystem::path path = std::filesystem::path(testing::TempDir()) / "ensemble_values_test.h5";
  {
    hdf5::File file = hdf5::File::create(path, Existing::replace);
    const std::vector<double> numbers{1, 2, 3, 4, 5, 6};
    file.create_dataset<double>("rows", {2, 3}).write<double>(numbers);
    file.create_dataset<double>("none", {0, 3});
    file.create_dataset<double>("row", {3}).write<double>(std::span(numbers).first(3));
    file.publish();
  }
  const auto load = [&](const std::string& dataset) {
    return load_files(parse("{file=\"ensemble_values_test.h5\", dataset=\"" + dataset + "\"}", testing::TempDir()),
                      "component");
  };
  EXPECT_EQ(listed_rows(load("rows")), 2u);
  EXPECT_THAT(draw(load("rows"), 2, kXyz, {}).values, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(draw(load("row"), 2, kXyz, {}).values, ElementsAre(1, 2, 3));
  EXPECT_THROW(load("nothing"), Error);
  EXPECT_THAT(message_of([&] { draw(load("none"), 1, kXyz, {}); }),
              HasSubstr("found 0 rows, expected at least 1, one for each trajectory; give one"));
  const EnsembleValues named = load_files(
      parse("{x={file=\"ensemble_values_test.h5\", dataset=\"row\"}, y=0, z=0}", testing::TempDir()), "component");
  EXPECT_EQ(listed_rows(named), 3u);
  std::filesystem::remove(path);
}

TEST(EnsembleValues, columns_of_a_dataset_that_the_file_names_go_by_their_names) {
  const std::filesystem::path folder = testing::TempDir(), path = folder / "ensemble_values_named.h5";
  {
    hdf5::File file = hdf5::File::create(path, Existing::replace);
    const std::vector<double> numbers{3, 9, 1, 2, 6, 8, 4, 5};
    const std::vector<std::string> names{"z", "w", "x", "y"}, made_up{"u0", "u1", "u2"};
    hdf5::Dataset scale = file.create_strings("name", names), unnamed = file.create_strings("unnamed", made_up);
    scale.make_scale("name");
    unnamed.make_scale("unnamed");
    hdf5::Dataset rows = file.create_dataset<double>("rows", {2, 4}), row = file.create_dataset<double>("row", {4}),
                  three = file.create_dataset<double>("three", {2, 3}),
                  one = file.create_dataset<double>("one", {2, 1});
    rows.write<double>(numbers);
    row.write<double>(std::span(numbers).first(4));
    three.write<double>(std::span(numbers).first(6));
    one.write<double>(std::span(numbers).first(2));
    rows.attach_scale(1, scale);
    row.attach_scale(0, scale);
    three.attach_scale(1, unnamed);
    file.create_dataset<double>("beside", {1, 2}).write<double>(std::span(numbers).first(2));
    file.create_strings("component", std::vector<std::string>{"b", "a"});
    file.publish();
  }
  const auto load = [&](const std::string& dataset, const std::string& columns = "") {
    return load_files(parse("{file=\"ensemble_values_named.h5\", dataset=\"" + dataset + "\"" + columns + "}", folder),
                      "component");
  };
  EXPECT_EQ(listed_rows(load("rows")), 2u);
  EXPECT_THAT(draw(load("rows"), 2, kXyz, {}).values, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_EQ(listed_rows(load("row")), std::nullopt);
  EXPECT_THAT(draw(load("row"), 2, kXyz, {}).values, ElementsAre(1, 2, 3));
  EXPECT_THAT(draw(load("rows", ", columns=[\"w\", \"x\", \"x\"]"), 1, kXyz, {}).values, ElementsAre(9, 1, 1));
  EXPECT_THAT(draw(load("three"), 1, kXyz, {}).values, ElementsAre(3, 9, 1)) << "u0, u1, u2 are no names";
  EXPECT_THAT(draw(load("rows"), 1, {"component", {"u0", "u1", "u2", "u3"}, {}}, {}).values, ElementsAre(3, 9, 1, 2));
  EXPECT_THAT(draw(load("beside"), 1, {"component", {"a", "b"}, {}}, {}).values, ElementsAre(9, 3));
  const ColumnNames rates{"parameter", {"x", "k"}, {std::nullopt, 9.0}};
  EXPECT_THAT(draw(load("rows"), 2, rates, {}).values, ElementsAre(1, 9, 4, 9));
  const EnsembleValues single =
      load_files(parse("{x={file=\"ensemble_values_named.h5\", dataset=\"rows\", columns=\"w\"},"
                       " y={file=\"ensemble_values_named.h5\", dataset=\"rows\"},"
                       " z={file=\"ensemble_values_named.h5\", dataset=\"one\"}}",
                       folder),
                 "component");
  EXPECT_THAT(draw(single, 2, kXyz, {}).values, ElementsAre(9, 2, 3, 8, 5, 9));

  EXPECT_THAT(
      message_of([&] {
        draw(load("rows"), 2, {"component", {"S", "I", "R", "D"}, {}}, {});
      }),
      AllOf(HasSubstr("f.toml:1: v: found no column \"S\" in "),
            HasSubstr("ensemble_values_named.h5:/rows, expected one of z, w, x, y; say which to take: columns = "
                      "[..], one for each component")));
  EXPECT_THAT(message_of([&] { load("one", ", columns=[\"x\"]"); }), HasSubstr("/one, which names none"));
  std::filesystem::remove(path);
}

TEST(EnsembleValues, tables_give_a_row_to_each_trajectory_by_the_names_of_their_columns) {
  const std::filesystem::path folder = testing::TempDir();
  std::ofstream(folder / "ensemble_values_test.csv") << "# measured\nz, id, x, y\n3, 7, 1, 2\n6, 8, 4, 5\n";
  const auto load = [&](const std::string& value) { return load_files(parse(value, folder), "component"); };
  const EnsembleValues by_name = load("{file=\"ensemble_values_test.csv\"}");
  EXPECT_EQ(listed_rows(by_name), 2u);
  EXPECT_THAT(draw(by_name, 2, kXyz, {}).values, ElementsAre(1, 2, 3, 4, 5, 6));
  EXPECT_THAT(draw(load("{file=\"ensemble_values_test.csv\", columns=[\"id\", \"z\", \"z\"]}"), 1, kXyz, {}).values,
              ElementsAre(7, 3, 3));
  EXPECT_THAT(draw(load("{x={file=\"ensemble_values_test.csv\", columns=\"id\"}, y=0, z=0}"), 2, kXyz, {}).values,
              ElementsAre(7, 0, 0, 8, 0, 0));
  const ColumnNames rates{"parameter", {"x", "k"}, {std::nullopt, 9.0}};
  EXPECT_THAT(draw(by_name, 2, rates, {}).values, ElementsAre(1, 9, 4, 9));

  const auto refusal = [&](const EnsembleValues& values, std::size_t trajectories, const ColumnNames& columns) {
    try {
      draw(values, trajectories, columns, {});
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(refusal(by_name, 3, kXyz), HasSubstr("f.toml:1: v: found 2 rows, expected at least 3"));
  EXPECT_THAT(refusal(by_name, 2, {"component", {"x", "w"}, {}}), HasSubstr("found no column \"w\" in "));
  EXPECT_THAT(refusal(by_name, 2, {"component", {"x", "w"}, {}}),
              HasSubstr("expected one of z, id, x, y; say which to take: columns = [..], one for each component"));
  EXPECT_THAT(refusal(by_name, 2, {"parameter", {"K"}, {1.0}}), HasSubstr("no column \"K\"")) << "not all defaults";
  EXPECT_THAT(refusal(load("{file=\"ensemble_values_test.csv\", columns=[\"x\"]}"), 2, kXyz),
              HasSubstr("found 1 number"));
  EXPECT_THROW(load("{file=\"absent.csv\"}"), Error);
  std::filesystem::remove(folder / "ensemble_values_test.csv");
}

TEST(EnsembleValues, what_contradicts_itself_is_refused) {
  const auto refusal = [](const std::string& value) {
    try {
      listed_rows(parse(value));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_THAT(refusal("{x=[1,2,3], y=[1,2], z=0}"),
              HasSubstr("v.y: found 2 rows, expected 3 as f.toml:1: v.x lists; set ensemble.trajectories"));
  EXPECT_THAT(refusal("{x={box=[1,-1]}, y=0, z=0}"), HasSubstr("v.x.box: found low = 1 above high = -1"));
  EXPECT_THAT(refusal("{box={low=[0,0,1], high=0.5}}"), HasSubstr("v.box: found low = 1 above high = 0.5"));
  EXPECT_EQ(refusal("{box={low=[0,0], high=[1,1,1]}}"), "no error") << "its width is judged when it is drawn";
  EXPECT_EQ(refusal("{box={low=[], high=1}}"), "no error");
  EXPECT_THAT(refusal("{file=\"a\", columns=[]}"), HasSubstr("v.columns: found an empty array"));
}

}  // namespace
}  // namespace lockstep::cli
