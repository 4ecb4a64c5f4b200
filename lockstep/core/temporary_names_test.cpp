#include "lockstep/core/temporary_names.h"

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/core/pending_file.h"
#include "lockstep/core/testing/test_folder.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class TemporaryNamesTest : public testing::Test {
 protected:
  fs::path made(const std::string& name) const {
    std::ofstream(folder_ / name) << "text";
    return folder_ / name;
  }

  TestFolder folder_{"names"};
};

TEST_F(TemporaryNamesTest, any_number_of_pending_files_go) {
  std::vector<PendingFile> files;
  for (int i = 0; i < 50; ++i) {
    files.emplace_back(folder_ / ("a" + std::to_string(i)), Existing::refuse);
    files.push_back(PendingFile::resumable(folder_ / ("b" + std::to_string(i)), Existing::refuse, Leftover::refuse));
  }
  EXPECT_EQ(folder_.files(), 150u);  // a resumable one holds its name, too
  remove_temporary_names();
  EXPECT_EQ(folder_.files(), 0u);
}

TEST_F(TemporaryNamesTest, what_is_forgotten_published_or_revealed_stays) {
  {
    PendingFile published(folder_ / "a", Existing::refuse);
    PendingFile revealed = PendingFile::resumable(folder_ / "b", Existing::refuse, Leftover::refuse);
    TemporaryName name(made("c"));
    const TemporaryName last = std::move(name);
    { const TemporaryName forgotten(made("d")); }
    published.publish();
    revealed.reveal();
    remove_temporary_names();
    EXPECT_TRUE(fs::exists(folder_ / "a") && fs::exists(folder_ / "b.part") && fs::exists(folder_ / "d"));
    EXPECT_FALSE(fs::exists(folder_ / "c"));
    made("c");
    revealed.keep();
  }
  remove_temporary_names();
  EXPECT_EQ(folder_.files(), 4u);
}

TEST_F(TemporaryNamesTest, a_folder_goes_with_what_lies_in_it) {
  TemporaryName before(made("before"));
  const fs::path folder = folder_ / "folder";
  fs::create_directory(folder);
  const TemporaryName noted(folder);
  before.forget();
  const TemporaryName in_folder(made("folder/file"));  // where the file before was noted
  remove_temporary_names();
  EXPECT_FALSE(fs::exists(folder));
  EXPECT_TRUE(fs::exists(folder_ / "before"));
}

TEST_F(TemporaryNamesTest, threads_note_and_forget_beside_a_removal) {
  const fs::path kept = made("kept");
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([&, thread] {
      // Those of one thread begin as those of another end: a torn one would be the name of the file that is kept.
      const fs::path own = folder_ / (thread % 2 == 0 ? "kepx" : "xxxt");
      while (!stop) {
        const TemporaryName first(own), second(own);
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    const fs::path file = made("file");
    const TemporaryName name(file);
    remove_temporary_names();
    ASSERT_FALSE(fs::exists(file)) << i;
  }
  stop = true;
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(fs::exists(kept));
}

}  // namespace
}  // namespace lockstep
