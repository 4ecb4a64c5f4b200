// When a writer of results waits for the disk, and in which order files get their names: what is left after a failure
// of power depends on that alone.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lockstep/core/error.h"
#include "lockstep/ode/result_file.h"
#include "lockstep/ode/result_writer.h"
#include "lockstep/ode/testing/result_files.h"

namespace {

struct Log {
  std::mutex mutex;
  std::vector<std::string> calls;  // "sync NAME" of a file or folder, "NAME -> NAME"

  void add(std::string call) {
    const std::lock_guard lock(mutex);
    calls.push_back(std::move(call));
  }
  std::vector<std::string> taken() {
    const std::lock_guard lock(mutex);
    return std::exchange(calls, {});
  }
};
Log& log() {
  static Log the_log;
  return the_log;
}

std::string name_of(const std::filesystem::path& path) { return path.filename().string(); }
std::string name_of(int descriptor) {
  return name_of(std::filesystem::read_symlink("/proc/self/fd/" + std::to_string(descriptor)));
}

}  // namespace

// In the place of the C library's, for all that is linked into this program.
extern "C" int fsync(int descriptor) {
  log().add("sync " + name_of(descriptor));
  return static_cast<int>(::syscall(SYS_fsync, descriptor));
}
extern "C" int fdatasync(int descriptor) {
  log().add("sync " + name_of(descriptor));
  return static_cast<int>(::syscall(SYS_fdatasync, descriptor));
}
extern "C" int rename(const char* from, const char* to) noexcept {
  log().add(name_of(std::filesystem::path(from)) + " -> " + name_of(std::filesystem::path(to)));
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0u));
}
extern "C" int renameat2(int, const char* from, int, const char* to, unsigned flags) noexcept {
  log().add(name_of(std::filesystem::path(from)) + " -> " + name_of(std::filesystem::path(to)));
  return static_cast<int>(::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, flags));
}

namespace lockstep::ode {
namespace {

using namespace testing;
using ::testing::ElementsAre;
using ::testing::StartsWith;

class ResultSyncs : public ResultFiles {
 protected:
  ResultSyncs() { log().taken(); }
  std::string folder() const { return "sync " + folder_.filename().string(); }
};

// Until a new file has its visible name, which takes a quarter of a second; false after ten.
bool is_shown(const std::filesystem::path& unfinished) {
  for (int i = 0; i < 1000; ++i) {
    std::error_code none;
    if (std::filesystem::file_size(unfinished, none) > 0 && !none) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

TEST_F(ResultSyncs, a_solve_that_is_soon_over_waits_for_the_file_and_its_folder_once) {
  const Problem problem = growing_ensemble(40, 3);
  // A machine that is busy for a quarter of a second shows the file: then the next run is looked at.
  std::vector<std::string> calls;
  for (int attempt = 0; attempt < 20 && calls.size() != 4; ++attempt) {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand(), Existing::replace);
    log().taken();
    write_all<float>(writer, problem, 16, 1, 1);
    writer.finish({{"seconds", 1.5}});
    calls = log().taken();
  }
  EXPECT_THAT(calls, ElementsAre("sync .a.h5.part.new", ".a.h5.part.new -> a.h5.part", "a.h5.part -> a.h5", folder()));
  EXPECT_EQ(files(), 1u);
  const ResultFile file(path("a.h5"));
  EXPECT_EQ(file.states<float>(39, 1)[2], static_cast<float>(number(39, 0, 2)));
  EXPECT_EQ(file.records(0, 40)[7].status, Status::success);
  EXPECT_EQ(count_cancelled(hdf5::File::open(path("a.h5"))), 0u);
}

TEST_F(ResultSyncs, a_file_is_shown_when_the_disk_has_it_and_again_before_statuses_count) {
  const Problem problem = growing_ensemble(200, 3);
  ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand());
  ASSERT_TRUE(is_shown(path("a.h5.part")));
  EXPECT_THAT(log().taken(), ElementsAre("sync .a.h5.part.new", ".a.h5.part.new -> a.h5.part"));
  write_rows<float>(writer, problem, 0, 200);
  writer.finish({});
  // The rows, then all with their statuses. The folder after the name.
  EXPECT_THAT(log().taken(), ElementsAre("sync a.h5.part", "sync a.h5.part", "a.h5.part -> a.h5", folder()));
}

TEST_F(ResultSyncs, a_writer_that_ends_early_shows_its_file_when_the_disk_has_it) {
  const Problem problem = growing_ensemble(200, 3);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand());
    write_rows<float>(writer, problem, 20, 90);
  }
  const auto calls = log().taken();
  ASSERT_GE(calls.size(), 2u);
  EXPECT_EQ(calls[0], "sync .a.h5.part.new");
  EXPECT_EQ(calls[1], ".a.h5.part.new -> a.h5.part");
  EXPECT_EQ(count_cancelled(hdf5::File::open(path("a.h5.part"))), 130u);
}

TEST_F(ResultSyncs, a_file_that_is_left_unfinished_is_on_the_disk_under_its_visible_name) {
  for (const bool with_rows : {false, true}) {
    const Problem problem = growing_ensemble(200, 3);
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand(), Existing::replace);
    if (with_rows) write_rows<float>(writer, problem, 20, 90);
    log().taken();
    EXPECT_EQ(writer.leave({}), path("a.h5.part"));
    const auto calls = log().taken();
    ASSERT_FALSE(calls.empty());
    EXPECT_THAT(calls.front(), StartsWith("sync "));
    EXPECT_EQ(count_cancelled(hdf5::File::open(path("a.h5.part"))), with_rows ? 130u : 200u);
  }
}

// The target's name is taken while a short solve runs: what it found is kept beside it.
TEST_F(ResultSyncs, a_name_that_is_taken_meanwhile_leaves_the_whole_file_beside_it) {
  const Problem problem = growing_ensemble(40, 3);
  {
    ResultWriter writer(path("a.h5"), problem, Precision::f32, by_hand());
    write_all<float>(writer, problem, 16, 1, 1);
    std::ofstream(path("a.h5")) << "another's";
    EXPECT_THROW(writer.finish({}), Error);
  }
  EXPECT_EQ(std::filesystem::file_size(path("a.h5")), 9u);
  EXPECT_EQ(count_cancelled(hdf5::File::open(path("a.h5.part"))), 0u);
  EXPECT_EQ(files(), 2u);
}

}  // namespace
}  // namespace lockstep::ode
