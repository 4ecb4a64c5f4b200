// The message of an error: its parts in order, and safe to print whatever a file called its things.
#include "lockstep/core/error.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "lockstep/core/printable.h"

namespace lockstep {
namespace {

using namespace std::string_literals;

TEST(ErrorTest, MessageHoldsThePartsInOrderAndLeavesOutEmptyOnes) {
  EXPECT_STREQ(Error(ErrorKind::model, {"rtol", "-1", "a positive number", "set it"}).what(),
               "rtol: found -1, expected a positive number; set it");
  EXPECT_STREQ(Error(ErrorKind::model, {"rtol", "", "a positive number", ""}).what(),
               "rtol: expected a positive number");
  EXPECT_STREQ(Error(ErrorKind::model, {"", "nothing", "", ""}).what(), "found nothing");
}

// Found by the plan file's fuzz target: the name began with a zero byte, and the message was empty.
TEST(ErrorTest, ControlCharactersFromAFileNeitherEndTheMessageNorReachATerminal) {
  const Error error(ErrorKind::model, {"\0\x1b[2J\x7f"s, "line\n\ttwo",
                                       "gr\xc3\xbc"
                                       "n",
                                       ""});
  EXPECT_STREQ(error.what(),
               "\\x00\\x1b[2J\\x7f: found line\n\ttwo, expected gr\xc3\xbc"
               "n");
  EXPECT_EQ(error.field(), "\0\x1b[2J\x7f"s);
}

TEST(ErrorTest, PrintableTextHasNoControlCharactersOfUnicodeEither) {
  EXPECT_EQ(printable("a\xc2\x9b[2Jb", LineBreaks::keep), "a\\xc2\\x9b[2Jb");  // U+009B begins a sequence
  EXPECT_EQ(printable("\xc2\xa0\xc2\xb5m \xc3\x9f", LineBreaks::keep), "\xc2\xa0\xc2\xb5m \xc3\x9f");
  EXPECT_EQ(printable("\xc2", LineBreaks::keep), "\xc2");
}

TEST(ErrorTest, ANameIsOneLine) {
  EXPECT_STREQ(Error(ErrorKind::file, {"a\nb.toml", "no such file", "", ""}).what(),
               "a\\x0ab.toml: found no such file");
  EXPECT_EQ(printable("x\nprovenance\t\r", LineBreaks::escape), "x\\x0aprovenance\\x09\\x0d");
}

}  // namespace
}  // namespace lockstep
