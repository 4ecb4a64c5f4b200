// Bytes written past the page cache, by its side and through it, as a plain read finds them.
#include "lockstep/core/direct_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "lockstep/core/error.h"

namespace lockstep {
namespace {

namespace fs = std::filesystem;

class DirectFiles : public ::testing::Test {
 protected:
  DirectFiles()
      : path_(fs::path(::testing::TempDir()) /
              ("direct_file_" + std::string(::testing::UnitTest::GetInstance()->current_test_info()->name()) + '_' +
               std::to_string(getpid()))) {  // several checkouts may be tested at once
    std::ofstream(path_, std::ios::binary) << std::string(kBytes, '.');
  }
  ~DirectFiles() override { fs::remove(path_); }

  std::string content() const {
    std::ifstream stream(path_, std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), {}};
  }

  static constexpr std::size_t kBytes = 1 << 20;
  fs::path path_;
};

TEST_F(DirectFiles, bytes_of_any_phase_length_and_offset_arrive) {
  DirectFile file(path_);
  std::string expected(kBytes, '.');
  for (const std::size_t offset :
       {std::size_t{0}, std::size_t{1}, std::size_t{4095}, std::size_t{4096}, std::size_t{12'345}}) {
    for (const std::size_t length : {std::size_t{0}, std::size_t{1}, std::size_t{4096}, std::size_t{69'631},
                                     std::size_t{69'632}, std::size_t{69'633}, std::size_t{700'001}}) {
      for (const std::size_t phase : {offset, offset + 8}) {
        PageBuffer buffer(length, phase);
        for (std::size_t i = 0; i < length; ++i) {
          buffer.data()[i] = static_cast<std::byte>(i * 31 + offset + 7 * length + phase);
          expected[offset + i] = static_cast<char>(buffer.data()[i]);
        }
        file.write({buffer.data(), length}, offset);
        ASSERT_TRUE(content() == expected) << "offset " << offset << ", length " << length << ", phase " << phase;
      }
    }
  }
}

// Rows that meet inside a page, each written on its own: what the page cache holds of it and what goes past it agree.
TEST_F(DirectFiles, neighbours_share_pages) {
  DirectFile file(path_);
  constexpr std::size_t kPiece = 100'003;
  PageBuffer buffer(kBytes, 0);
  for (std::size_t i = 0; i < kBytes; ++i) buffer.data()[i] = static_cast<std::byte>(i * i >> 5);
  for (const std::size_t first : {1, 3, 5, 7, 9, 0, 2, 4, 6, 8}) {
    file.write({buffer.data() + first * kPiece, kPiece}, first * kPiece);
  }
  const std::string found = content();
  const std::string expected(reinterpret_cast<const char*>(buffer.data()), 10 * kPiece);
  EXPECT_TRUE(found.substr(0, 10 * kPiece) == expected);
  EXPECT_TRUE(found.substr(10 * kPiece) == std::string(kBytes - 10 * kPiece, '.'));
}

TEST_F(DirectFiles, memory_has_the_phase_that_was_asked_for) {
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{5'000'000}}) {
    PageBuffer buffer(bytes, 10'000);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % PageBuffer::kPage, 10'000 % PageBuffer::kPage);
    EXPECT_EQ(buffer.size(), bytes);
    if (bytes > 0) buffer.data()[bytes - 1] = std::byte{1};  // is ours: the sanitizer looks on
  }
}

TEST_F(DirectFiles, memory_serves_another_size_and_phase) {
  PageBuffer buffer(3'000'000, 100);
  const auto page = [&] { return reinterpret_cast<std::uintptr_t>(buffer.data()) / PageBuffer::kPage; };
  const std::uintptr_t first = page();
  for (const std::size_t phase : {0, 1, 4095, 100}) {
    buffer.fit(3'000'000 - phase, phase);
    EXPECT_EQ(page(), first);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(buffer.data()) % PageBuffer::kPage, phase);
    EXPECT_EQ(buffer.size(), 3'000'000 - phase);
    std::memset(buffer.data(), 1, buffer.size());
  }
  buffer.fit(30'000'000, 7);
  std::memset(buffer.data(), 1, buffer.size());
  EXPECT_EQ(buffer.size(), 30'000'000u);
}

TEST_F(DirectFiles, a_file_that_is_not_there_is_an_error) { EXPECT_THROW(DirectFile(path_ / "no_such_file"), Error); }

TEST_F(DirectFiles, a_full_disk_is_an_error_in_the_systems_words) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  DirectFile file("/dev/full");
  PageBuffer buffer(100'000, 0);
  std::fill_n(buffer.data(), buffer.size(), std::byte{0});
  try {
    file.write({buffer.data(), buffer.size()}, 0);
    FAIL() << "written to a full disk";
  } catch (const Error& error) {
    EXPECT_EQ(error.found(), "No space left on device");
  }
}

}  // namespace
}  // namespace lockstep
