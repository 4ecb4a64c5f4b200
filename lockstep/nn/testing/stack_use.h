// For tests: how much stack the functions of exported headers take, by which compilers.
#pragma once

#include <cstdlib>
#include <string>
#include <vector>

namespace lockstep::nn::testing {

// A C program of `calls`, which defines in_double(), in_float() and alone() as threads run them. It runs each on a
// stack whose bytes it has set before, and prints how many changed, after those of a thread that does nothing.
inline std::string stack_program(const std::string& calls) {
  return R"(#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
)" + calls +
         R"(
enum { kStack = 1 << 20 };
static void *nothing(void *unused) { return unused; }
static int used(void *(*function)(void *)) {
  unsigned char *stack;
  pthread_attr_t attributes;
  pthread_t thread;
  int i = 0;
  if (posix_memalign((void **)&stack, 4096, kStack)) exit(9);
  memset(stack, 0xa5, kStack);
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, stack, kStack);
  if (pthread_create(&thread, &attributes, function, NULL)) exit(8);
  pthread_join(thread, NULL);
  while (i < kStack && stack[i] == 0xa5) ++i;
  free(stack);
  return kStack - i;
}
int main(void) {
  used(nothing);
  printf("%d\n", used(nothing));
  printf("%d\n", used(in_double));
  printf("%d\n", used(in_float));
  printf("%d\n", used(alone));
  return 0;
}
)";
}

// The compiler of the build, and clang where there is one: with the widest registers of this machine they keep most.
inline std::vector<std::string> compilers_of_stacks(const std::string& compiler) {
  std::vector<std::string> commands = {compiler + " -O0", compiler + " -O2 -march=native",
                                       compiler + " -O3 -march=native"};
  for (const std::string clang : {"clang", "clang-14"}) {
    if (std::system(("command -v " + clang + " > /dev/null").c_str()) != 0) continue;
    commands.insert(commands.end(), {clang + " -O2 -march=native", clang + " -O3 -march=native"});
    break;
  }
  return commands;
}

}  // namespace lockstep::nn::testing
