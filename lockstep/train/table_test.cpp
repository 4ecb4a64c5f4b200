#include "lockstep/train/table.h"

#include <gmock/gmock.h>

#include <cmath>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"

namespace lockstep::train {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string message_of(const std::string& text) {
  return lockstep::message_of([&] {
    const Table table = parse_csv(text, "t.csv");
    for (const std::string& name : table.columns) table.column("field", name);
  });
}

TEST(Csv, names_and_numbers_are_read) {
  const Table table = parse_csv("# made by hand\nx, \"y\",z\n1,2.5,-3e-2\n\n+4,5,6\n", "t.csv");
  EXPECT_THAT(table.columns, ElementsAre("x", "y", "z"));
  EXPECT_EQ(table.rows, 2u);
  EXPECT_THAT(table.values, ElementsAre(1, 2.5, -0.03, 4, 5, 6));
  EXPECT_THAT(table.lines, ElementsAre(3u, 5u));
  EXPECT_EQ(table.column("data.inputs", "z"), 2u);
}

TEST(Csv, files_from_windows_and_with_other_separators_are_read) {
  const Table table = parse_csv("\xEF\xBB\xBFx;y\r\n1;2\r\n", "t.csv");
  EXPECT_THAT(table.columns, ElementsAre("x", "y"));
  EXPECT_THAT(table.values, ElementsAre(1, 2));
  EXPECT_THAT(parse_csv("x\ty\n1\t2", "t.csv").values, ElementsAre(1, 2));
  const Table old_mac = parse_csv("# hours\rx,y\r1,2\r\r3,4\r", "t.csv");
  EXPECT_THAT(old_mac.columns, ElementsAre("x", "y"));
  EXPECT_THAT(old_mac.values, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(old_mac.lines, ElementsAre(3u, 5u));
  EXPECT_THAT(message_of("x,y\r1,2\r3,z\r"), HasSubstr("t.csv:3, column y: found \"z\""));
}

TEST(Csv, every_fault_names_line_and_column) {
  EXPECT_THAT(message_of("x,y\n1,2\n3,nan\n"), HasSubstr("t.csv:3, column y: found \"nan\", expected a finite number"));
  EXPECT_THAT(message_of("x,y\n1,inf\n"), HasSubstr("t.csv:2, column y"));
  EXPECT_THAT(message_of("x,y\n1,\n"), HasSubstr("column y: found an empty field"));
  EXPECT_THAT(message_of("x,y\n1,2a\n"), HasSubstr("found \"2a\""));
  EXPECT_THAT(message_of("x,y\n1,2\n1,2,3\n"), HasSubstr("t.csv:3: found 3 fields, expected 2"));
  EXPECT_THAT(message_of("1,2\n3,4\n"), HasSubstr("t.csv:1: found \"1\", expected the name of a column"));
  EXPECT_THAT(message_of("x,x\n1,2\n"), HasSubstr("two columns called \"x\""));
  EXPECT_THAT(message_of(""), HasSubstr("an empty file"));
  EXPECT_THAT(message_of("x,y\n"), HasSubstr("no rows"));
}

TEST(Csv, quotes_around_numbers_are_dropped_and_other_programs_words_are_missing_numbers) {
  const Table table = parse_csv("\"x\",\"y\"\n\"1.5\",\"NA\"\nN/A,2\nnull,\"\"\n", "t.csv", MissingNumbers::as_nan);
  ASSERT_EQ(table.values.size(), 6u);
  EXPECT_EQ(table(0, 0), 1.5);
  EXPECT_EQ(table(1, 1), 2);
  for (const auto& [row, column] : {std::pair{0, 1}, {1, 0}, {2, 0}, {2, 1}}) {
    EXPECT_TRUE(std::isnan(table(static_cast<std::size_t>(row), static_cast<std::size_t>(column))));
  }
  EXPECT_THAT(message_of("x,y\n1,NA\n"), HasSubstr("t.csv:2, column y: found \"NA\", expected a finite number"));
}

TEST(Csv, what_other_programs_write_otherwise_is_told_how_to_mend) {
  EXPECT_THAT(message_of("x;y\n1;0,79953\n"),
              HasSubstr("found \"0,79953\", expected a finite number; write decimal points"));
  EXPECT_THAT(message_of("t,x\ns,m\n0,1\n"), HasSubstr("found \"s\", expected a finite number; begin a line of units"));
  EXPECT_THAT(message_of("t,x\n2026-10-02T10:00:00.5,1\n"), HasSubstr("; write times as numbers"));
  for (const char* number : {"1e-400", "+1e-400", "-1e400", "1e+400"})
    EXPECT_THAT(message_of("t,x\n0,1\n1," + std::string(number) + "\n"),
                HasSubstr("; float64 holds sizes from 5e-324"));
  EXPECT_EQ(parse_csv("x\n5e-324\n", "t.csv").values.at(0), 5e-324);
  EXPECT_THAT(message_of("t x\n0 1\n"), HasSubstr("; separate columns by commas, semicolons or tabs"));
  EXPECT_THAT(message_of("t,x\n0,1\n1,1,5\n"), HasSubstr("t.csv:3: found 3 fields, expected 2"));
  EXPECT_THAT(message_of("t,x\n0,1\n1,-\n"), HasSubstr("; repair the row or leave it out"));
}

TEST(Csv, columns_of_text_may_stand_beside_those_that_are_used) {
  const Table table = parse_csv("\"\",name,x\n0,\"Smith, Ann\",1\n1,\"the \"\"big\"\", one\",2\n", "t.csv");
  EXPECT_EQ(table.rows, 2u);
  const std::size_t x = table.column("field", "x");
  EXPECT_EQ(table(0, x), 1);
  EXPECT_EQ(table(1, x), 2);
  EXPECT_THAT(lockstep::message_of([&] { table.column("field", "name"); }),
              HasSubstr("t.csv:2, column name: found \"Smith, Ann\", expected a finite number; name a column of "
                        "numbers"));
}

TEST(Csv, runs_are_told_apart_by_numbers_or_texts) {
  const Table table = parse_csv("place,number,x\nA,7,1\nA,7,2\nB,7.5,3\nA,nan,4\n", "t.csv", MissingNumbers::as_nan);
  EXPECT_THAT(table.runs("field", "place"), ElementsAre(0, 0, 1, 2));
  const std::vector<double> numbers = table.runs("field", "number");
  EXPECT_THAT(std::vector<double>(numbers.begin(), numbers.end() - 1), ElementsAre(0, 0, 1));
  EXPECT_TRUE(std::isnan(numbers.back()));
}

TEST(Csv, an_unknown_column_is_told_the_nearest) {
  const Table table = parse_csv("density,temperature\n1,2\n", "t.csv");
  try {
    table.column("train.toml:3: data.inputs", "temprature");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"temperature\""));
  }
}

TEST(Csv, columns_between_spaces_are_told_what_separates_columns) {
  const Table table = parse_csv("t x y\n0 1 2\n", "t.csv");
  try {
    table.column("train.toml:3: data.inputs", "x");
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(
        std::string(error.what()),
        "train.toml:3: data.inputs: found \"x\", expected the only column, \"t x y\"; separate columns by commas, "
        "semicolons or tabs");
  }
}

TEST(ColumnStatistics, a_small_spread_on_a_large_mean_keeps_its_digits) {
  const std::vector<double> values{1e8 + 1, 7, 1e8 + 3, 7};
  const ColumnStatistics first = column_statistics(values, 2, 0), second = column_statistics(values, 2, 1);
  EXPECT_EQ(first.mean, 1e8 + 2);
  EXPECT_EQ(first.deviation, 1);
  EXPECT_EQ(first.minimum, 1e8 + 1);
  EXPECT_EQ(first.maximum, 1e8 + 3);
  EXPECT_EQ(second.deviation, 0);
}

// 60 times 3.7 and its sum by 60 are not the same.
TEST(ColumnStatistics, what_does_not_vary_has_no_deviation) {
  for (const double value : {3.7, 0.1, 300.15, -1e300}) {
    const std::vector<double> values(60, value);
    const ColumnStatistics column = column_statistics(values, 1, 0);
    EXPECT_EQ(column.mean, value);
    EXPECT_EQ(column.deviation, 0);
  }
}

}  // namespace
}  // namespace lockstep::train
