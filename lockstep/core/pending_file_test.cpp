#include "lockstep/core/pending_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>

#include "lockstep/core/error.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/test_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class PendingFileTest : public testing::Test {
 protected:
  static std::string content(const fs::path& path) {
    std::ifstream stream(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }
  static void write(const fs::path& path, const std::string& text, Existing existing = Existing::refuse) {
    write_file(path, std::as_bytes(std::span(text)), existing);
  }
  template <class Body>
  static std::string message_of(const Body& body) {
    return lockstep::message_of(body, ErrorKind::file);
  }

  TestFolder folder_{"pending"};
};

TEST_F(PendingFileTest, a_file_appears_only_when_published) {
  PendingFile pending(folder_ / "a", Existing::refuse);
  std::ofstream(pending.temporary()) << "text";
  EXPECT_FALSE(fs::exists(folder_ / "a"));
  pending.publish();
  EXPECT_EQ(content(folder_ / "a"), "text");
  EXPECT_EQ(folder_.files(), 1u);
}

TEST_F(PendingFileTest, an_unpublished_file_leaves_nothing_behind) {
  { const PendingFile pending(folder_ / "a", Existing::refuse); }
  EXPECT_EQ(folder_.files(), 0u);
}

TEST_F(PendingFileTest, an_existing_file_is_refused_unless_told) {
  write(folder_ / "a", "old");
  EXPECT_THAT(message_of([&] { write(folder_ / "a", "new"); }),
              HasSubstr("/a: found a file of that name, expected none; choose another name, or allow overwriting"));
  EXPECT_EQ(content(folder_ / "a"), "old");
  write(folder_ / "a", "new", Existing::replace);
  EXPECT_EQ(content(folder_ / "a"), "new");
  EXPECT_EQ(folder_.files(), 1u);
}

TEST_F(PendingFileTest, a_file_made_meanwhile_is_not_overwritten) {
  PendingFile pending(folder_ / "a", Existing::refuse);
  std::ofstream(folder_ / "a") << "somebody else's";
  EXPECT_THAT(message_of([&] { pending.publish(); }), HasSubstr("found a file of that name"));
  EXPECT_EQ(content(folder_ / "a"), "somebody else's");
}

TEST_F(PendingFileTest, a_link_stays_and_the_file_behind_it_is_replaced) {
  write(folder_ / "a", "old");
  fs::create_symlink("a", folder_ / "link");
  write(folder_ / "link", "new", Existing::replace);
  EXPECT_TRUE(fs::is_symlink(folder_ / "link"));
  EXPECT_EQ(content(folder_ / "a"), "new");
}

void fill(const PendingFile& file, const std::string& text) { std::ofstream(file.temporary()) << text; }

TEST_F(PendingFileTest, the_permissions_of_a_replaced_file_stay) {
  const auto mode_of = [](const fs::path& path) { return static_cast<unsigned>(fs::status(path).permissions()); };
  write(folder_ / "a", "old");
  fs::permissions(folder_ / "a", fs::perms(0600));
  {
    PendingFile pending(folder_ / "a", Existing::replace);
    EXPECT_EQ(mode_of(pending.temporary()), 0600u);  // before it holds a byte
    pending.publish();
  }
  EXPECT_EQ(mode_of(folder_ / "a"), 0600u);
  fs::permissions(folder_ / "a", fs::perms(0440));
  {
    PendingFile pending = PendingFile::resumable(folder_ / "a", Existing::replace, Leftover::discard);
    EXPECT_EQ(mode_of(pending.temporary()), 0640u);  // its owner has to write it
    pending.publish();
  }
  EXPECT_EQ(mode_of(folder_ / "a"), 0440u);
}

TEST_F(PendingFileTest, a_resumable_file_appears_whole_and_outlives_its_writer) {
  {
    PendingFile file = PendingFile::resumable(folder_ / "a", Existing::refuse, Leftover::refuse);
    fill(file, "half");
    EXPECT_EQ(fs::file_size(folder_ / "a.part"), 0u) << "not before it is revealed";
    file.reveal();
    EXPECT_EQ(content(folder_ / "a.part"), "half");
    file.keep();
  }
  EXPECT_EQ(folder_.files(), 1u);
  EXPECT_THAT(
      message_of([&] { PendingFile::resumable(folder_ / "a", Existing::refuse, Leftover::refuse); }),
      HasSubstr("/a.part of an earlier run, expected none; continue that run (--resume), or allow overwriting"));
  PendingFile file = PendingFile::resumable(folder_ / "a", Existing::refuse, Leftover::resume);
  EXPECT_TRUE(file.resumed());
  EXPECT_EQ(content(file.temporary()), "half");
  file.publish();
  EXPECT_EQ(content(folder_ / "a"), "half");
  EXPECT_EQ(folder_.files(), 1u);
}

TEST_F(PendingFileTest, a_resumable_file_that_was_not_worth_keeping_leaves_nothing) {
  {
    PendingFile file = PendingFile::resumable(folder_ / "a", Existing::refuse, Leftover::refuse);
    fill(file, "text");
  }
  EXPECT_EQ(folder_.files(), 0u);
  {
    PendingFile file = PendingFile::resumable(folder_ / "a", Existing::refuse, Leftover::refuse);
    file.reveal();
  }
  EXPECT_EQ(folder_.files(), 0u);
}

TEST_F(PendingFileTest, a_second_writer_is_refused) {
  for (const bool revealed : {false, true}) {
    PendingFile first = PendingFile::resumable(folder_ / "a", Existing::refuse, Leftover::refuse);
    fill(first, "first");
    if (revealed) first.reveal();
    for (const Leftover unfinished : {Leftover::refuse, Leftover::discard, Leftover::resume}) {
      EXPECT_THAT(message_of([&] { PendingFile::resumable(folder_ / "a", Existing::replace, unfinished); }),
                  HasSubstr("/a: found another run that is writing it, as"));
    }
    EXPECT_EQ(content(first.temporary()), "first");
  }
}

TEST_F(PendingFileTest, what_a_writer_killed_at_its_beginning_left_is_nothing) {
  std::ofstream(folder_ / "a.part");
  std::ofstream(folder_ / ".a.part.new") << "half made";
  PendingFile file = PendingFile::resumable(folder_ / "a", Existing::refuse, Leftover::resume);
  EXPECT_FALSE(file.resumed());
  fill(file, "whole");
  file.publish();
  EXPECT_EQ(content(folder_ / "a"), "whole");
  EXPECT_EQ(folder_.files(), 1u);
}

TEST_F(PendingFileTest, a_named_file_is_taken_back_to_be_resumed) {
  write(folder_ / "a", "stopped");
  {
    PendingFile file = PendingFile::resumable(folder_ / "a", Existing::refuse, Leftover::resume);
    EXPECT_TRUE(file.resumed());
    EXPECT_EQ(content(folder_ / "a.part"), "stopped");
    EXPECT_FALSE(fs::exists(folder_ / "a")) << "nothing unfinished under the final name";
  }
  EXPECT_EQ(content(folder_ / "a.part"), "stopped") << "what was there is not lost";
}

TEST_F(PendingFileTest, a_name_taken_while_a_resumable_file_grew_is_not_replaced) {
  PendingFile file = PendingFile::resumable(folder_ / "a", Existing::refuse, Leftover::refuse);
  file.reveal();
  std::ofstream(folder_ / "a") << "somebody else's";
  EXPECT_THAT(message_of([&] { file.publish(); }), HasSubstr("found a file of that name"));
  EXPECT_EQ(content(folder_ / "a"), "somebody else's");
}

TEST_F(PendingFileTest, a_file_beyond_the_limit_is_refused_before_it_is_written) {
  struct Limited {  // SIGXFSZ would end the program
    Limited() {
      ::getrlimit(RLIMIT_FSIZE, &before);
      rlimit limit = before;
      limit.rlim_cur = 1'000'000;
      ::setrlimit(RLIMIT_FSIZE, &limit);
      handler = ::signal(SIGXFSZ, SIG_IGN);
    }
    ~Limited() {
      ::setrlimit(RLIMIT_FSIZE, &before);
      ::signal(SIGXFSZ, handler);
    }
    rlimit before{};
    void (*handler)(int);
  } const limited;
  PendingFile file = PendingFile::resumable(folder_ / "a", Existing::refuse, Leftover::refuse);
  EXPECT_THAT(message_of([&] { file.reserve(2'000'000); }),
              HasSubstr("/a: found a limit of 1000000 bytes on the size of files (ulimit -f), expected room for "
                        "2,000,000 bytes"));
  EXPECT_THAT(message_of([&] { file.require_room(2'000'000); }), HasSubstr("found a limit of 1000000 bytes"));
}

TEST_F(PendingFileTest, room_that_is_there_is_not_taken) {
  PendingFile file(folder_ / "a", Existing::refuse);
  file.require_room(1'000'000);
  EXPECT_EQ(fs::file_size(file.temporary()), 0u);
  EXPECT_THAT(message_of([&] { file.require_room(std::uintmax_t{1} << 62); }), HasSubstr("expected room for"));
}

TEST_F(PendingFileTest, a_disk_that_is_too_small_is_not_filled_up_to_find_out) {
  PendingFile file(folder_ / "a", Existing::refuse);
  const std::uintmax_t more = fs::space(folder_.path()).capacity + 1'000'000;
  const std::string message = message_of([&] { file.reserve(more); });
  EXPECT_THAT(message, HasSubstr("bytes on the disk, expected room for"));
  EXPECT_THAT(message, ::testing::Not(HasSubstr("found room for 0 bytes")));
  EXPECT_EQ(fs::file_size(file.temporary()), 0u);
}

TEST_F(PendingFileTest, unusable_places_are_named) {
  EXPECT_THAT(message_of([&] { write(folder_ / "no" / "a", ""); }), HasSubstr("/no, expected an existing folder"));
  EXPECT_THAT(message_of([&] { write(folder_.path(), ""); }), HasSubstr("found a folder, expected a file name"));
  EXPECT_THAT(message_of([&] { write("", ""); }), HasSubstr("expected a file name"));
  EXPECT_THAT(message_of([&] { write("/dev/null", "", Existing::replace); }), HasSubstr("found a device or pipe"));
  if (::geteuid() == 0) GTEST_SKIP() << "root writes anywhere";
  fs::permissions(folder_.path(), fs::perms::owner_read | fs::perms::owner_exec);
  EXPECT_THAT(message_of([&] { write(folder_ / "a", ""); }), HasSubstr("expected a writable folder"));
}

}  // namespace
}  // namespace lockstep
