// Every body of a call runs once on its own thread, sleeping or awake; exceptions come out; the team can be reused.
#include "lockstep/core/parallel.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lockstep/core/detail/sanitizer.h"
#include "lockstep/core/testing/forked.h"
#include "lockstep/core/testing/message_of.h"
#include "lockstep/core/testing/no_threads.h"
#include "lockstep/core/thread_count.h"

namespace lockstep {
namespace {

TEST(Team, runs_every_body_once_in_each_call) {
  for (const int threads : {1, 2, 5}) {
    Team team(threads);
    EXPECT_EQ(team.threads(), threads);
    std::vector<int> runs(static_cast<std::size_t>(threads));
    const auto body = [&](int thread) { ++runs[static_cast<std::size_t>(thread)]; };
    for (int call = 1; call <= 300; ++call) {
      team.run(threads, body);
      ASSERT_EQ(runs, std::vector<int>(runs.size(), call));
    }
  }
}

TEST(Team, bodies_see_what_the_caller_wrote_and_the_caller_what_they_wrote) {
  Team team(3);
  long given = 0;
  std::vector<long> found(3);
  const auto body = [&](int thread) { found[static_cast<std::size_t>(thread)] = given + thread; };
  for (; given < 300; ++given) {
    team.run(3, body);
    ASSERT_EQ(found, (std::vector<long>{given, given + 1, given + 2}));
  }
}

TEST(Team, leaves_out_the_threads_that_a_call_does_not_ask_for) {
  Team team(4);
  for (const int count : {4, 1, 3, 2}) {
    std::vector<int> runs(4);
    const auto body = [&](int thread) { ++runs[static_cast<std::size_t>(thread)]; };
    team.run(count, body);
    std::vector<int> expected(4);
    std::fill_n(expected.begin(), count, 1);
    EXPECT_EQ(runs, expected) << count;
  }
}

TEST(Team, a_thread_keeps_its_number) {
  Team team(3);
  std::vector<std::thread::id> first(3), again(3);
  const auto note_first = [&](int thread) { first[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); };
  const auto note_again = [&](int thread) { again[static_cast<std::size_t>(thread)] = std::this_thread::get_id(); };
  team.run(3, note_first);
  team.run(3, note_again);
  EXPECT_EQ(first, again);
  EXPECT_EQ(first[0], std::this_thread::get_id());
  EXPECT_NE(first[1], first[2]);
}

TEST(Team, wakes_up_after_a_pause) {
  Team team(3);
  std::atomic<int> runs{0};
  const auto body = [&](int) { ++runs; };
  for (int call = 0; call < 10; ++call) {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    team.run(3, body);
  }
  EXPECT_EQ(runs, 30);
}

TEST(Team, a_call_in_two_parts_leaves_the_caller_free_and_throws_when_joined) {
  Team team(3);
  for (int call = 0; call < 100; ++call) {
    Signal go;
    std::atomic<int> runs{0};
    const auto body = [&](int thread) {
      go.await_change(0, team.patience());
      ++runs;
      if (thread == 2 && call % 10 == 0) throw std::runtime_error("thread 2");
    };
    team.start(3, body);
    EXPECT_EQ(runs, 0);
    go.set(1);
    go.wake();
    if (call % 10 == 0) {
      EXPECT_THROW(team.join(), std::runtime_error);
    } else {
      team.join();
    }
    EXPECT_EQ(runs, 2);
  }
}

TEST(Signal, wakes_who_sleeps_and_hands_on_what_was_written) {
  for (const auto patience : {std::chrono::microseconds(0), std::chrono::microseconds(100)}) {
    Signal ping, pong;
    int ball = 0;
    std::thread other([&] {
      for (std::uint32_t turn = 0; turn < 200; ++turn) {
        ping.await_change(turn, patience);
        ++ball;
        pong.set(turn + 1);
        pong.wake();
      }
    });
    for (std::uint32_t turn = 0; turn < 200; ++turn) {
      if (turn % 50 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++ball;
      ping.set(turn + 1);
      ping.wake();
      pong.await_change(turn, patience);
      ASSERT_EQ(ball, 2 * (static_cast<int>(turn) + 1));
    }
    other.join();
  }
}

TEST(Team, waits_for_the_slowest_body) {
  Team team(3);
  std::atomic<int> ended{0};
  const auto body = [&](int thread) {
    if (thread == 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    ++ended;
  };
  team.run(3, body);
  EXPECT_EQ(ended, 3);
}

TEST(Team, throws_the_exception_of_any_body_after_all_have_ended_and_goes_on) {
  Team team(3);
  for (int thrower = 0; thrower < 3; ++thrower) {
    std::atomic<int> ended{0};
    const auto body = [&](int thread) {
      ++ended;
      if (thread == thrower) throw std::runtime_error("thread " + std::to_string(thread));
    };
    try {
      team.run(3, body);
      FAIL() << "nothing thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(error.what(), "thread " + std::to_string(thrower));
    }
    EXPECT_EQ(ended, 3);
  }
  std::atomic<int> runs{0};
  const auto body = [&](int) { ++runs; };
  team.run(3, body);
  EXPECT_EQ(runs, 3);
}

TEST(Team, one_that_outnumbers_the_processors_still_gets_through) {
  const int threads = static_cast<int>(std::thread::hardware_concurrency()) + 3;
  Team team(threads);
  std::atomic<int> runs{0};
  const auto body = [&](int) { ++runs; };
  for (int call = 0; call < 50; ++call) team.run(threads, body);
  EXPECT_EQ(runs, 50 * threads);
}

TEST(Team, may_end_without_a_call) { Team team(4); }

TEST(Team, has_threads_anew_in_a_forked_process) {
#ifdef LOCKSTEP_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked process";
#endif
  Team team(3), idle(2);
  std::atomic<int> sum{0};
  const auto body = [&](int thread) { sum += 1 << thread; };
  team.run(3, body);
  EXPECT_FALSE(team.left_behind());
  EXPECT_EQ(status_of_fork([&] {
              if (!team.left_behind()) return 1;
              for (int call = 0; call < 100; ++call) team.run(3, body);
              if (sum != 7 + 700 || team.left_behind()) return 2;
              const auto again = [&] {
                team.run(3, body);
                return sum == 7 + 707 ? 0 : 1;
              };
              if (status_of_fork(again) != 0) return 3;
              { const Team fresh(2); }
              team.~Team();
              idle.~Team();  // without a call here
              return 0;
            }),
            0);
  team.run(3, body);
  EXPECT_EQ(sum, 14);
}

TEST(Team, join_waits_for_nobody_in_a_forked_process) {
#ifdef LOCKSTEP_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked process";
#endif
  Team team(3);
  Signal go;
  const auto body = [&](int) { go.await_change(0, team.patience()); };
  team.start(3, body);
  EXPECT_EQ(status_of_fork([&] {
              team.join();
              std::atomic<int> runs{0};
              const auto count = [&](int) { ++runs; };
              team.run(3, count);
              return runs == 3 ? 0 : 1;
            }),
            0);
  go.set(1);
  go.wake();
  team.join();
}

TEST(Team, says_so_when_the_system_gives_no_thread) {
  std::string message;
  {
    const NoThreads none;
    message = message_of([] { Team team(4); }, ErrorKind::unsupported);
  }
  EXPECT_EQ(message.substr(0, message.find(';')),
            "threads: found no other one to be had (Resource temporarily unavailable), expected 4");
  Team team(2);
  std::atomic<int> runs{0};
  const auto body = [&](int) { ++runs; };
  team.run(2, body);
  EXPECT_EQ(runs, 2);
}

TEST(RunOnThreads, goes_on_where_the_system_gives_no_thread) {
  std::vector<int> runs(100);
  {
    const NoThreads none;
    run_on_threads(100, [&](int thread) { ++runs[static_cast<std::size_t>(thread)]; });
  }
  EXPECT_EQ(runs, std::vector<int>(100, 1));
}

#ifdef LOCKSTEP_TEST_PLUG_IN
// A plug-in of a host, which holds this library, closed while its threads are there.
TEST(RunOnThreads, stays_in_memory_when_what_holds_it_is_closed) {
  void* const plug_in = dlopen(LOCKSTEP_TEST_PLUG_IN, RTLD_NOW | RTLD_LOCAL);
  ASSERT_NE(plug_in, nullptr) << dlerror();
  const auto run = reinterpret_cast<int (*)(int)>(dlsym(plug_in, "run_bodies"));
  ASSERT_NE(run, nullptr);
  EXPECT_EQ(run(3), 3);
  EXPECT_EQ(dlclose(plug_in), 0);
  void* const still = dlopen(LOCKSTEP_TEST_PLUG_IN, RTLD_NOW | RTLD_NOLOAD);
  EXPECT_NE(still, nullptr);
  if (still == nullptr) return;
  EXPECT_EQ(run(3), 3);
  dlclose(still);
}
#endif

TEST(RunOnThreads, goes_on_in_a_forked_process) {
#ifdef LOCKSTEP_THREAD_SANITIZER
  GTEST_SKIP() << "ThreadSanitizer starts no threads in a forked process";
#endif
  std::atomic<int> sum{0};
  const auto body = [&](int thread) { sum += 1 << thread; };
  run_on_threads(3, body);
  ASSERT_EQ(sum, 7);
  EXPECT_EQ(status_of_fork([&] {
              run_on_threads(4, body);
              bool thrown = false;
              try {
                run_on_threads(3, [](int thread) {
                  if (thread == 2) throw std::runtime_error("two");
                });
              } catch (const std::runtime_error&) {
                thrown = true;
              }
              return sum == 7 + 15 && thrown ? 0 : 1;
            }),
            0);
}

TEST(ChosenThreads, follow_one_rule) {
  EXPECT_EQ(chosen_threads(0), available_threads());
  EXPECT_EQ(chosen_threads(1), 1);
  EXPECT_EQ(chosen_threads(4096), 4096);
  for (const int bad : {-1, 4097}) {
    EXPECT_EQ(message_of([&] { chosen_threads(bad, "run.threads"); }, ErrorKind::invalid_argument),
              "run.threads: found " + std::to_string(bad) + ", expected a number of threads up to 4096, or 0 for all");
  }
}

// Many callers at once, and calls from within bodies.
TEST(RunOnThreads, serves_callers_side_by_side_and_within_bodies) {
  std::vector<std::atomic<int>> runs(6);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 4; ++caller) {
    callers.emplace_back([&] {
      for (int call = 0; call < 200; ++call) {
        run_on_threads(3, [&](int outer) {
          run_on_threads(2, [&](int inner) { ++runs[static_cast<std::size_t>(2 * outer + inner)]; });
        });
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  for (const std::atomic<int>& count : runs) EXPECT_EQ(count, 800);
}

// Those that another call keeps do nothing for this one.
TEST(RunOnThreads, goes_on_beside_a_call_that_does_not_end) {
  std::atomic<bool> released{false};
  std::thread other([&] {
    run_on_threads(3, [&](int) {
      while (!released) std::this_thread::yield();
    });
  });
  std::vector<int> runs(40);
  run_on_threads(40, [&](int thread) { ++runs[static_cast<std::size_t>(thread)]; });
  released = true;
  other.join();
  EXPECT_EQ(runs, std::vector<int>(40, 1));
}

TEST(RunOnThreads, works_while_the_threads_are_used) {
  std::atomic<long> sum{0};
  for (int call = 0; call < 2000; ++call) {
    std::atomic<int> next{0};
    run_on_threads(1 + call % 5, [&](int) {
      for (int i = next++; i < 20; i = next++) sum += i;
    });
  }
  EXPECT_EQ(sum, 2000 * 190);
}

// One call after another needs no more threads than the largest.
TEST(RunOnThreads, signals_are_for_the_hosts_own_threads) {
  std::atomic<bool> begun{false};
  sigset_t blocked;
  run_on_threads(2, [&](int thread) {
    if (thread == 0) {
      while (!begun) std::this_thread::yield();
      return;
    }
    pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
    begun = true;
  });
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 1);
  EXPECT_EQ(sigismember(&blocked, SIGUSR1), 1);
  EXPECT_EQ(sigismember(&blocked, SIGSEGV), 0);
  pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGTERM), 0);
}

TEST(RunOnThreads, starts_no_threads_that_are_there) {
  const auto threads = [] {
    const std::filesystem::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  };
  run_on_threads(4, [](int) {});
  const auto before = threads();
  for (int call = 0; call < 500; ++call) run_on_threads(2 + call % 3, [](int) {});
  EXPECT_EQ(threads(), before);
}

TEST(RunOnThreads, runs_every_body_once_and_throws_what_one_throws) {
  std::vector<int> runs(4);
  run_on_threads(4, [&](int thread) { ++runs[static_cast<std::size_t>(thread)]; });
  EXPECT_EQ(runs, std::vector<int>(4, 1));
  EXPECT_THROW(run_on_threads(4,
                              [](int thread) {
                                if (thread == 3) throw std::runtime_error("3");
                              }),
               std::runtime_error);
}

}  // namespace
}  // namespace lockstep
