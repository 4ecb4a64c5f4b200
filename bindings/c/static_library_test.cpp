// A plug-in of a host that holds liblockstep_c.a: what stays of it when the host closes it.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>

namespace {

const std::string kNet = std::string(LOCKSTEP_TEST_DATA) + "/ocean_relu_32_128_128_31.safetensors";

void* open_plug_in() {
  void* const plug_in = dlopen(LOCKSTEP_TEST_PLUG_IN, RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(plug_in, nullptr) << dlerror();
  return plug_in;
}

bool is_in_memory() {
  void* const still = dlopen(LOCKSTEP_TEST_PLUG_IN, RTLD_NOW | RTLD_NOLOAD);
  if (still != nullptr) dlclose(still);
  return still != nullptr;
}

int evaluate(void* plug_in) {
  const auto evaluates = reinterpret_cast<int (*)(const char*)>(dlsym(plug_in, "plug_in_evaluates"));
  return evaluates == nullptr ? -1 : evaluates(kNet.c_str());
}

TEST(StaticLibrary, a_plug_in_of_which_nothing_was_called_is_gone_once_closed) {
  void* const plug_in = open_plug_in();
  ASSERT_NE(plug_in, nullptr);
  EXPECT_TRUE(is_in_memory());
  EXPECT_EQ(dlclose(plug_in), 0);
  EXPECT_FALSE(is_in_memory());
}

TEST(StaticLibrary, a_plug_in_is_gone_once_closed_after_the_threads_that_evaluated) {
  void* const plug_in = open_plug_in();
  ASSERT_NE(plug_in, nullptr);
  std::thread([plug_in] { EXPECT_EQ(evaluate(plug_in), 0); }).join();
  EXPECT_EQ(dlclose(plug_in), 0);
  EXPECT_FALSE(is_in_memory());
}

// Whose scratch is freed by its code when they end; the C library takes it out when something is closed after that.
TEST(StaticLibrary, a_closed_plug_in_stays_while_a_thread_that_evaluated_lives) {
  void* const plug_in = open_plug_in();
  ASSERT_NE(plug_in, nullptr);
  std::promise<void> evaluated, closed;
  std::thread thread([&] {
    EXPECT_EQ(evaluate(plug_in), 0);
    evaluated.set_value();
    closed.get_future().wait();
  });
  evaluated.get_future().wait();
  EXPECT_EQ(dlclose(plug_in), 0);
  EXPECT_TRUE(is_in_memory());
  closed.set_value();
  thread.join();
  is_in_memory();  // opens it and closes it, where it is
  EXPECT_FALSE(is_in_memory());
}

}  // namespace
