#include "lockstep/core/hdf5.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <fstream>
#include <thread>

#include "lockstep/core/error.h"
#include "lockstep/core/hdf5_text.h"
#include "lockstep/core/testing/message_of.h"

namespace lockstep::hdf5 {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::AnyOf;
using testing::ElementsAre;
using testing::HasSubstr;

class Hdf5Test : public testing::Test {
 protected:
  Hdf5Test()
      : path_(fs::path(testing::TempDir()) / ("lockstep-" + std::to_string(::getpid()) + "-" +
                                              testing::UnitTest::GetInstance()->current_test_info()->name() + ".h5")) {}
  ~Hdf5Test() override { fs::remove(path_); }

  static std::vector<double> ramp(std::size_t count) {
    std::vector<double> values(count);
    for (std::size_t i = 0; i < count; ++i) values[i] = 0.5 * static_cast<double>(i);
    return values;
  }

  fs::path path_;
};

TEST_F(Hdf5Test, what_is_written_is_read_again) {
  {
    File file = File::create(path_);
    Group group = file.create_group("run");
    Dataset state = group.create_dataset<double>("state", {2, 3, 4});
    state.write<double>(ramp(24));
    group.create_dataset<std::int32_t>("status", {2}).write<std::int32_t>(std::vector<std::int32_t>{7, -1});
    file.create_dataset<std::int64_t>("committed", {}).write<std::int64_t>(std::vector<std::int64_t>{42});
    file.create_strings("names", std::vector<std::string>{"x", "", "temp\u00e9rature"});
    file.publish();
  }
  const File file = File::open(path_);
  EXPECT_THAT(file.groups(), ElementsAre("run"));
  EXPECT_THAT(file.datasets(), ElementsAre("committed", "names"));
  const Dataset state = file.group("run").dataset("state");
  EXPECT_EQ(state.shape(), (Shape{2, 3, 4}));
  EXPECT_EQ(state.read<double>(), ramp(24));
  EXPECT_EQ(state.read<float>()[23], 11.5f);
  EXPECT_EQ(to_string(state.type()), "float64");
  EXPECT_THAT(state.read<double>({1, 0, 2}, {1, 3, 1}), ElementsAre(7, 9, 11));
  EXPECT_THAT(file.dataset("run/status").read<std::int64_t>(), ElementsAre(7, -1));
  EXPECT_THAT(file.dataset("committed").read<std::int64_t>(), ElementsAre(42));
  EXPECT_THAT(file.dataset("names").read_strings(), ElementsAre("x", "", "temp\u00e9rature"));
}

TEST_F(Hdf5Test, members_of_groups_are_looked_for_by_path) {
  File file = File::create(path_);
  file.create_group("run").create_dataset<double>("state", {1});
  file.create_dataset<double>("input", {1});
  for (const char* there : {"run", "run/state", "/run/state", "input"}) EXPECT_TRUE(file.has(there)) << there;
  for (const char* absent : {"walk", "walk/state", "run/speed", "input/x", "run/state/x"}) {
    EXPECT_FALSE(file.has(absent)) << absent;
  }
}

// Wherever sixteen bytes are lost: at one place at least that is the head of a dataset.
TEST_F(Hdf5Test, a_damaged_member_is_named_and_not_left_out) {
  {
    File file = File::create(path_);
    file.create_dataset<double>("state", {4}).write<double>(ramp(4));
    file.publish();
  }
  std::ifstream written(path_, std::ios::binary);
  const std::string whole((std::istreambuf_iterator<char>(written)), {});
  std::size_t named = 0;
  for (std::size_t at = 0; at + 16 <= std::min<std::size_t>(whole.size(), 4096); at += 8) {
    std::string damaged = whole;
    damaged.replace(at, 16, 16, '\0');
    std::ofstream(path_, std::ios::binary) << damaged;
    try {
      File::open(path_).datasets();
    } catch (const Error& error) {
      named += std::string(error.what()).find("state: found") != std::string::npos ? 1 : 0;
    }
  }
  EXPECT_GE(named, 1u);
}

TEST_F(Hdf5Test, attributes_read_as_the_shortest_text) {
  EXPECT_EQ(to_text(std::string("a b")), "a b");
  EXPECT_EQ(to_text(std::int64_t{-7}), "-7");
  EXPECT_EQ(to_text(0.1), "0.1");
  EXPECT_EQ(to_text(std::vector<double>{1e-6, 0.25}), "1e-06, 0.25");
  EXPECT_EQ(to_text(std::vector<std::int64_t>{1, 2}), "1, 2");
  EXPECT_EQ(to_text(std::vector<std::uint8_t>{0, 255}), "0, 255");
  EXPECT_EQ(to_text(std::vector<std::string>{"K", "m/s"}), "K, m/s");
  EXPECT_EQ(to_text(std::vector<double>{}), "");
}

TEST_F(Hdf5Test, rows_written_apart_make_one_dataset) {
  File file = File::create(path_);
  DatasetOptions options;
  options.fill = std::nan("");
  Dataset state = file.create_dataset<float>("state", {3, 2}, options);
  const std::vector<float> last = {5, 6}, first = {1, 2};
  state.write<float>(last, {2, 0}, {1, 2});
  state.write<float>(first, {0, 0}, {1, 2});
  state.flush();
  const std::vector<float> all = state.read<float>();
  EXPECT_THAT(std::vector<float>(all.begin(), all.begin() + 2), ElementsAre(1, 2));
  EXPECT_TRUE(std::isnan(all[2]) && std::isnan(all[3]));
  EXPECT_THAT(std::vector<float>(all.begin() + 4, all.end()), ElementsAre(5, 6));
}

TEST_F(Hdf5Test, a_new_dataset_has_its_space_at_once) {
  File file = File::create(path_);
  file.create_dataset<double>("state", {1000, 1000});
  file.publish();
  EXPECT_GE(fs::file_size(path_), 8'000'000u);
}

TEST_F(Hdf5Test, a_long_dataset_begins_with_a_page_of_the_file) {
  File file = File::create(path_);
  file.create_dataset<double>("short", {3});
  for (const char* name : {"state", "other"}) {
    const auto offset = file.create_dataset<float>(name, {300'001}).offset_in_file<float>();
    ASSERT_TRUE(offset.has_value());
    EXPECT_EQ(*offset % 4096, 0u) << name;
  }
}

TEST_F(Hdf5Test, a_chunked_dataset_reads_like_any_other) {
  File file = File::create(path_);
  DatasetOptions options;
  options.chunk = {2, 5};
  Dataset dataset = file.create_dataset<double>("x", {5, 7}, options);
  dataset.write<double>(ramp(35));
  EXPECT_EQ(dataset.read<double>(), ramp(35));
}

TEST_F(Hdf5Test, writing_goes_on_after_the_file_has_its_name) {
  File file = File::create(path_);
  Dataset dataset = file.create_dataset<double>("x", {2});
  EXPECT_FALSE(fs::exists(path_));
  file.publish();
  EXPECT_TRUE(fs::exists(path_));
  dataset.write<double>(std::vector<double>{1, 2});
  dataset = file.create_dataset<double>("y", {1});
  dataset.write<double>(std::vector<double>{3});
  EXPECT_THAT(message_of([&] { file.close(); }), HasSubstr("found 1 objects of it in use, expected none"));
  dataset = file.dataset("x");
  { const Dataset end = std::move(dataset); }
  file.close();
  EXPECT_THAT(File::open(path_).dataset("y").read<double>(), ElementsAre(3));
}

TEST_F(Hdf5Test, attributes_keep_their_values_and_types) {
  File file = File::create(path_);
  file.set_attribute("title", "Lorenz");
  file.set_attribute("empty", "");
  file.set_attribute("count", 7);
  file.set_attribute("rate", 0.1);
  file.set_attribute("names", std::vector<std::string>{"a", "bc"});
  file.set_attribute("limits", std::vector<double>{-1, 1});
  file.set_attribute("none", std::vector<double>{});
  file.set_attribute("rate", 0.2);
  EXPECT_THAT(file.attribute_names(), ElementsAre("count", "empty", "limits", "names", "none", "rate", "title"));
  EXPECT_EQ(file.string_attribute("title"), "Lorenz");
  EXPECT_EQ(file.string_attribute("empty"), "");
  EXPECT_EQ(file.integer_attribute("count"), 7);
  EXPECT_EQ(file.number_attribute("count"), 7.0);
  EXPECT_EQ(file.number_attribute("rate"), 0.2);
  EXPECT_THAT(file.string_list_attribute("names"), ElementsAre("a", "bc"));
  EXPECT_THAT(file.number_list_attribute("limits"), ElementsAre(-1, 1));
  EXPECT_TRUE(file.number_list_attribute("none").empty());
  const AttributeValue bytes = std::vector<std::uint8_t>{0, 200};
  file.set_attribute("bytes", bytes);
  EXPECT_EQ(file.attribute("bytes"), bytes);
  EXPECT_THAT(file.number_list_attribute("bytes"), ElementsAre(0, 200));
  EXPECT_EQ(file.attribute("count"), AttributeValue(std::int64_t{7}));
  EXPECT_THAT(message_of([&] { file.set_attribute("zero", std::string("a\0b", 3)); }),
              HasSubstr("@zero: found a text with a zero byte"));
  EXPECT_THAT(message_of([&] { file.number_attribute("title"); }),
              HasSubstr(path_.string() + ":/@title: found a string, expected a number"));
  EXPECT_THAT(message_of([&] { file.integer_attribute("rate"); }), HasSubstr("found a number, expected an integer"));
  file.set_attribute("whole", 3.0);
  file.set_attribute("whole in a list", std::vector<double>{-2});
  EXPECT_EQ(file.integer_attribute("whole"), 3);
  EXPECT_EQ(file.integer_attribute("whole in a list"), -2);
  EXPECT_THAT(message_of([&] { file.string_attribute("absent"); }), HasSubstr("@absent: found no such attribute"));
}

TEST_F(Hdf5Test, equal_content_makes_equal_files) {
  const auto bytes = [&] {
    File file = File::create(path_, Existing::replace);
    file.create_group("g").create_dataset<double>("x", {3}).write<double>(ramp(3));
    file.set_attribute("title", "Lorenz");
    file.publish();
    file.close();
    std::ifstream stream(path_, std::ios::binary);
    return std::string(std::istreambuf_iterator<char>(stream), {});
  };
  const std::string first = bytes();
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));  // HDF5's time stamps count seconds
  EXPECT_EQ(first, bytes());
}

TEST_F(Hdf5Test, dimension_scales_are_attached) {
  File file = File::create(path_);
  Dataset state = file.create_dataset<double>("state", {2, 3});
  Dataset time = file.create_dataset<double>("time", {3});
  time.make_scale("time");
  state.attach_scale(1, time);
  EXPECT_EQ(time.string_attribute("CLASS"), "DIMENSION_SCALE");
  EXPECT_TRUE(state.has_attribute("DIMENSION_LIST"));
  EXPECT_EQ(state.attribute("DIMENSION_LIST"), std::nullopt);
  EXPECT_THAT(message_of([&] { state.attach_scale(2, time); }), HasSubstr("to attach dimension scale"));
}

TEST_F(Hdf5Test, datasets_name_their_scales) {
  File file = File::create(path_);
  Dataset x = file.create_dataset<double>("x", {3});
  x.make_scale("x");
  Dataset state = file.create_dataset<double>("state", {2, 3});
  state.attach_scale(1, x);
  EXPECT_TRUE(x.is_scale());
  EXPECT_FALSE(state.is_scale());
  EXPECT_THAT(state.scale_names(), ElementsAre("", "x"));
  EXPECT_THAT(x.scale_names(), ElementsAre("x"));
}

TEST_F(Hdf5Test, boxes_are_read_in_steps) {
  File file = File::create(path_);
  Dataset state = file.create_dataset<double>("state", {5, 4});
  state.write<double>(ramp(20));
  std::vector<double> part(4);
  state.read_into<double>(part, {1, 0}, {2, 2}, {3, 2});
  EXPECT_THAT(part, ElementsAre(2, 3, 8, 9));
  EXPECT_THAT(message_of([&] {
                state.read_into<double>(part, {1, 0}, {2, 2}, {4, 2});
              }),
              HasSubstr("start [1, 0] count [2, 2] stride [4, 2]"));
  EXPECT_THAT(message_of([&] { state.read_into<double>(part, {1, 0}, {2, 2}, {1, 0}); }), HasSubstr("stride [1, 0]"));
  EXPECT_THAT(message_of([&] { state.read_into<double>(part, {0, 0}, {1, 3}); }), HasSubstr("memory for 4 values"));
}

TEST_F(Hdf5Test, virtual_datasets_show_other_files_and_name_them) {
  const fs::path part = path_.parent_path() / (path_.stem().string() + ".part.h5");
  fs::remove(part);
  {
    File file = File::create(part);
    file.create_dataset<double>("state", {2, 3}).write<double>(ramp(6));
    file.publish();
  }
  {
    File file = File::create(path_);
    const std::vector<VirtualSource> sources{{part.filename(), "state", {1, 0}, {2, 3}}};
    file.create_virtual<double>("state", {4, 3}, sources, -1);
    file.publish();
  }
  {
    const File file = File::open(path_);
    EXPECT_THAT(file.dataset("state").source_files(), ElementsAre(part.filename()));
    EXPECT_THAT(file.dataset("state").read<double>(), ElementsAre(-1, -1, -1, 0, 0.5, 1, 1.5, 2, 2.5, -1, -1, -1));
  }
  fs::remove(part);
  // What HDF5 does with a missing file: the reason why readers look whether the sources are there.
  EXPECT_THAT(File::open(path_).dataset("state").read<double>({1, 0}, {1, 3}), ElementsAre(-1, -1, -1));
}

TEST_F(Hdf5Test, boxes_outside_the_shape_and_wrong_counts_are_refused) {
  File file = File::create(path_);
  Dataset x = file.create_dataset<double>("x", {4, 2});
  EXPECT_THAT(message_of([&] {
                x.read<double>({3, 0}, {2, 2});
              }),
              HasSubstr("/x: found start [3, 0] count [2, 2], expected a part of shape [4, 2]"));
  EXPECT_THAT(message_of([&] { x.read<double>({std::size_t(-1), 0}, {2, 2}); }), HasSubstr("a part of shape"));
  EXPECT_THAT(message_of([&] { x.read<double>({0}, {2}); }), HasSubstr("a part of shape [4, 2]"));
  EXPECT_THAT(message_of([&] {
                x.write<double>(ramp(3), {0, 0}, {2, 2});
              }),
              HasSubstr("found 3 values, expected 4 for count [2, 2]"));
  EXPECT_THAT(message_of([&] { x.write<double>(ramp(3)); }), HasSubstr("found 3 values, expected 8 for shape [4, 2]"));
}

TEST_F(Hdf5Test, unsuitable_types_are_refused_by_name) {
  File file = File::create(path_);
  file.create_dataset<double>("real", {1}).write<double>(ramp(1));
  file.create_dataset<std::int64_t>("whole", {1}).write<std::int64_t>(std::vector<std::int64_t>{1});
  file.create_strings("words", std::vector<std::string>{"a"});
  EXPECT_THAT(message_of([&] { file.dataset("real").read<std::int64_t>(); }),
              HasSubstr("/real: found float64, expected integers of at most 64 bits"));
  EXPECT_THAT(message_of([&] { file.dataset("whole").read<std::int32_t>(); }),
              HasSubstr("found int64, expected integers of at most 32 bits"));
  EXPECT_THAT(message_of([&] { file.dataset("words").read<double>(); }), HasSubstr("found string, expected numbers"));
  EXPECT_THAT(message_of([&] { file.dataset("real").read_strings(); }), HasSubstr("found float64, expected strings"));
  EXPECT_THAT(message_of([&] { file.dataset("absent"); }), HasSubstr("/absent: found nothing of that name"));
  EXPECT_THAT(message_of([&] { file.group("real"); }), HasSubstr("expected a group"));
}

TEST_F(Hdf5Test, missing_foreign_and_truncated_files_are_named) {
  EXPECT_THAT(message_of([&] { File::open(path_); }),
              HasSubstr(path_.string() + ": found no such file, expected an HDF5 file"));
  std::ofstream(path_) << "not at all";
  EXPECT_THAT(message_of([&] { File::open(path_); }), HasSubstr("found no HDF5 signature"));
  {
    File file = File::create(path_, Existing::replace);
    file.create_dataset<double>("x", {1000}).write<double>(ramp(1000));
    file.publish();
  }
  fs::resize_file(path_, fs::file_size(path_) / 2);
  EXPECT_THAT(message_of([&] { File::open(path_); }),
              AllOf(HasSubstr(path_.string()),
                    HasSubstr(" found a truncated file, 5,024 of 10,048 bytes, expected a whole HDF5 file")));
  EXPECT_THAT(message_of([&] { File::open("/"); }), HasSubstr("found no regular file"));
}

TEST_F(Hdf5Test, an_impossible_size_is_refused_before_memory_is_asked_for) {
  // The one dataset's shape is changed in the file's bytes from 3 to 2^45 elements.
  const std::size_t marker = 0x0123456789;
  {
    File file = File::create(path_);
    file.create_dataset<std::uint8_t>("x", {3});
    file.publish();
  }
  std::fstream stream(path_, std::ios::binary | std::ios::in | std::ios::out);
  std::string bytes(fs::file_size(path_), '\0');
  stream.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  const std::string extent("\3\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0", 16);  // size and maximal size
  const std::size_t place = bytes.find(extent);
  ASSERT_NE(place, std::string::npos);
  for (const std::size_t offset : {place, place + 8}) {
    stream.seekp(static_cast<std::streamoff>(offset));
    stream.write(reinterpret_cast<const char*>(&marker), 8);
  }
  stream.close();
  // HDF5 1.14 refuses it before we do: what a contiguous dataset has in the file must be what its shape says.
  EXPECT_THAT(message_of([&] { File::open(path_).dataset("x").read<double>(); }),
              AnyOf(HasSubstr("a size the file can hold"), HasSubstr("found invalid dataset size")));
}

TEST_F(Hdf5Test, an_existing_file_is_refused_before_any_work) {
  std::ofstream(path_) << "old";
  EXPECT_THAT(message_of([&] { File::create(path_); }), HasSubstr("found a file of that name"));
}

TEST_F(Hdf5Test, concurrent_calls_from_several_threads_are_safe) {
  File file = File::create(path_);
  Dataset x = file.create_dataset<double>("x", {4, 100});
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int repeat = 0; repeat < 20; ++repeat) {
        Dataset mine = file.dataset("x");
        mine.write<double>(ramp(100), {t, 0}, {1, 100});
        EXPECT_EQ(mine.read<double>({t, 0}, {1, 100}), ramp(100));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(x.read<double>()[399], 49.5);
}

}  // namespace
}  // namespace lockstep::hdf5
