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
  return lockstep::message_of([&] { parse_csv(text, "t.csv"); });
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

TEST(Csv, an_unknown_column_is_told_the_nearest) {
  const Table table = parse_csv("density,temperature\n1,2\n", "t.csv");
  try {
    table.column("train.toml:3: data.inputs", "temprature");
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("did you mean \"temperature\""));
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

}  // namespace
}  // namespace lockstep::train
