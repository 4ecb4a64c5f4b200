// For tests: what goes on in a forked process, as of Python's multiprocessing.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

namespace lockstep {

// What `work` returns in a process forked here; an alarm ends one that waits for threads it does not have.
template <class Work>
int status_of_fork(const Work& work) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(work());
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  return status;
}

}  // namespace lockstep
